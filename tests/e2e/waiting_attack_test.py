#!/usr/bin/python3
"""Clients that wait and go away, that pipeline, or that do not take their responses: nothing
is lost, and nothing is left over.

    waiting_attack_test.py CLAIMD

unit/http/respond_test has one case after the other, with a clock of its own. Here are crowds,
memory, and what lies in the kernel when the server looks.
"""

import os
import signal
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import (Server, eventually, post, request, resident_kb,  # noqa: E402
                     stand_still)
from waiting import (AT_ONCE_S, LONG, TERMS, Case, Slots, has_response, attempts, bodies,  # noqa: E402
                     claim, claim_any, pop, put, send, settle)


class GoneWhileWaiting(Case):
    """A client that is gone gets nothing; the next one gets it, and it counts once."""

    options = ("--max-waiters", "3")

    def kinds(self):
        def close(client):
            client.close()

        def reset(client):
            client.reset()

        def both_ways(client):
            client.socket.shutdown(socket.SHUT_RDWR)
            client.close()
        return (close, reset, both_ways)

    def assert_next_gets_it(self, begin, go):
        """begin() waits at q, go() ends it; then one more worker and a message come."""
        slots = Slots(self.server)
        for _ in range(3):
            begin()
            go()
            client = self.waiter(claim("q", LONG))
            put(self.server, "q", "m")
            response = self.take(client, "m")
            self.assertEqual(self.fetch("DELETE", response.headers["location"]).status, 204)
            self.assertEqual(attempts(self.server, "q"), [1])
        eventually(lambda: slots.free(4) == 3)
        settle(self.server)  # those who have just tried the places have left them

    def test_a_connection_that_is_closed_or_reset(self):
        for data in (claim("q", LONG), claim_any("p", "q", wait=LONG), pop("q", LONG)):
            for go in self.kinds():
                with self.subTest(data=data[:30], by=go.__name__):
                    gone = []
                    self.assert_next_gets_it(lambda: gone.append(self.waiter(data)),
                                             lambda: go(gone.pop()))

    def test_one_that_goes_at_the_same_time_as_the_message_comes(self):
        """Both lie in the kernel when the server looks, in either order."""
        for data in (claim("q", LONG), claim_any("p", "q", wait=LONG)):
            for go in self.kinds():
                for first in (True, False):
                    with self.subTest(data=data[:30], by=go.__name__, first=first):
                        client = self.waiter(data)
                        with self.server.connect() as other:
                            stand_still(self.server)
                            if first:
                                go(client)
                            other.send(post("q"))
                            if not first:
                                go(client)
                            self.server.signal(signal.SIGCONT)
                            self.assertEqual(other.response().status, 201)
                        eventually(lambda: self.server.stats("q") == (0, 1, 1))
                        self.assertEqual(attempts(self.server, "q"), [0])

    def test_the_whole_line_is_gone_but_for_the_last(self):
        """Of 300 who stand in front none is there any more when a message comes."""
        with Server("--workers", "2") as self.server:
            gone = [send(self.server, claim("q", LONG)) for _ in range(300)]
            last = self.waiter(claim("q", LONG))
            stand_still(self.server)
            for client in gone:
                client.reset()
            with self.server.connect() as other:
                other.send(post("q"))
                self.server.signal(signal.SIGCONT)
                self.assertEqual(other.response().status, 201)
            self.take(last, 1)
            self.assertEqual(self.server.stats("q"), (1, 0, 1))


class OneConnection(Case):
    """Bytes that a client sends on the connection on which it waits."""

    def test_a_half_close_does_not_lose_the_message_that_comes_with_it(self):
        client = self.waiter(claim("q", LONG))
        with self.server.connect() as other:
            stand_still(self.server)
            client.socket.shutdown(socket.SHUT_WR)
            other.send(post("q"))
            self.server.signal(signal.SIGCONT)
            self.assertEqual(other.response().status, 201)
        self.assertEqual(client.last_response().status, 204)
        self.assertEqual(self.server.stats("q"), (0, 1, 1))

    def test_nonsense_behind_it(self):
        client = self.waiter(claim("q", LONG))
        client.send(b"GET / HTTP/9.9\r\n\r\n")
        put(self.server, "q", 1)
        self.take(client, 1)
        self.assertEqual(client.last_response().status, 505)

    def test_very_much_behind_it_is_not_read_meanwhile(self):
        client = self.waiter(claim("q", LONG))
        before = resident_kb(self.server)
        client.socket.settimeout(0.5)
        junk, sent = b"x" * 65536, 0
        try:
            while sent < 2**28:
                sent += client.socket.send(junk)
        except TimeoutError:
            pass
        self.assertLess(sent, 2**26)  # the buffers of the kernel
        self.assertLess(resident_kb(self.server) - before, 4096)
        put(self.server, "q", 1)
        self.take(client, 1)

    def test_a_body_in_chunks_and_an_expectation(self):
        chunked = claim("q", LONG, headers=["Transfer-Encoding: chunked"]) \
            .replace(b"Content-Length: %d\r\n" % len(TERMS), b"")
        head = chunked[:-len(TERMS)]
        client = self.waiter(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(TERMS), TERMS))
        put(self.server, "q", 1)
        self.take(client, 1)
        self.assertTrue(client.closed())
        whole = claim("q", LONG, headers=["Expect: 100-continue"])
        client = send(self.server, whole[:-len(TERMS)])
        self.assertEqual(client.interim(), 100)
        client.send(TERMS)
        self.assertFalse(has_response(client, 0.1))
        put(self.server, "q", 2)
        self.take(client, 2)
        client.close()

class LostResponses(Case):
    """A response that does not reach its client."""

    COUNT, SIZE = 100, 200000  # more than the kernel takes off the server's hands
    options = ("--max-messages-per-claim-or-pop", "100")

    def fill(self):
        for _ in range(self.COUNT):
            put(self.server, "big", "x" * self.SIZE)

    def slow(self, data):
        client = self.server.connect()
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.send(data)
        return client

    def test_a_claim_whose_response_is_cut_is_released_at_once_and_counted(self):
        self.fill()
        for data in (claim("big", limit=100), claim("big", LONG, limit=100),
                    claim_any("big", wait=LONG, limit=100)):
            client = self.slow(data)
            self.assertIn(b"201", client.socket.recv(4096))
            self.assertEqual(self.server.stats("big"), (self.COUNT, 0, self.COUNT))
            client.reset()
            eventually(lambda: self.server.stats("big") == (0, self.COUNT, self.COUNT))
        self.assertEqual(attempts(self.server, "big"), [3] * self.COUNT)

    def test_a_message_goes_to_a_live_waiter(self):
        self.fill()
        client = self.slow(claim("big", LONG, limit=100))
        self.assertIn(b"201", client.socket.recv(4096))
        next_one = self.waiter(claim("big", LONG, limit=5))
        client.reset()
        self.assertTrue(has_response(next_one, AT_ONCE_S))
        response = next_one.response()
        self.assertEqual(len(bodies(response)), 5)
        self.assertEqual(self.fetch("DELETE", response.headers["location"]).status, 204)
        self.assertEqual(attempts(self.server, "big"), [2] * 5 + [1] * (self.COUNT - 5))

    def test_a_client_that_has_gone_before_its_response_can_be_sent(self):
        """Its request lies in the kernel, as does the reset. It may be claimed and given back."""
        put(self.server, "q", 1)
        for data in (claim("q"), claim("q", LONG), claim("q", LONG, "v1"), claim_any("q")):
            client = self.server.connect()
            settle(self.server)
            stand_still(self.server)
            client.send(data)
            client.reset()
            self.server.signal(signal.SIGCONT)
            settle(self.server)
            eventually(lambda: self.server.stats("q") == (0, 1, 1))
        self.assertEqual(attempts(self.server, "q"), [0])


class Churn(Case):
    """Everything at once, for a short while; in the end the accounts must be right."""

    SECONDS, THREADS = 4, 8

    def test_waits_that_are_ended_in_all_ways_lose_nothing(self):
        with Server("--workers", "2", "--max-waiters", "6", "--min-claim-ttl", "1",
                    "--min-claim-grace", "0") as self.server:
            until, posted = time.monotonic() + self.SECONDS, [0] * 2

            def post_all(i):
                while time.monotonic() < until:
                    put(self.server, "q-%d" % i, 1)
                    posted[i] += 1

            def wait_and_go(i):
                n = i
                while time.monotonic() < until:
                    n += 1
                    client = self.server.connect()
                    queues = ("q-0", "q-1") if n % 2 else ("q-1", "empty")
                    client.send(claim_any(*queues, wait=5, limit=1 + n % 3) +
                                (request("GET", "/v2/ping") if n % 4 == 0 else b""))
                    if n % 3 == 0:
                        has_response(client, 0.01)
                    elif n % 3 == 1:
                        client.socket.shutdown(socket.SHUT_WR)
                        client.rest()
                    if n % 5 < 3:
                        client.reset()
                    else:
                        client.close()

            threads = [threading.Thread(target=post_all, args=(i,)) for i in range(2)]
            threads += [threading.Thread(target=wait_and_go, args=(i,))
                        for i in range(self.THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for i in range(2):
                claimed, free, total = self.server.stats("q-%d" % i)
                self.assertEqual((total, claimed + free), (posted[i], posted[i]))
            slots = Slots(self.server)
            eventually(lambda: slots.free(7) == 6)


if __name__ == "__main__":
    unittest.main()
