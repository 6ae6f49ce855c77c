#!/usr/bin/python3
"""Requests that wait for messages, over real sockets and with the real clock (docs/api.md 11).

    waiting_test.py CLAIMD

store/waiting_test, api/waiting_test and unit/http/respond_test test the ends of a wait and the order
of waiters with a clock that they move. These are the threads and timers of the whole program.
"""

import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import Server  # noqa: E402
from waiting import (EACH, LONG, Case, has_response, applied, claim, put, send, settle)  # noqa: E402


class Ends(Case):
    """The events that end a wait."""

    def together(self, prepare, wait):
        """Has all of them wait at the same time; (queue, request, client) of each."""
        waiting = []
        for name, make in EACH:
            queue = name.replace(" ", "-")
            prepare(queue)
            waiting.append((queue, make, self.waiter(make(queue, wait))))
        return waiting

    def test_a_post(self):
        for queue, _, client in self.together(lambda _: None, LONG):
            with self.subTest(queue=queue):
                put(self.server, queue, queue)
                self.assertEqual(applied(self.take(client, queue)), "wait=%d" % LONG)

    def test_the_end_of_a_delay(self):
        for queue, _, client in self.together(
                lambda queue: put(self.server, queue, queue, delay=2), LONG):
            with self.subTest(queue=queue):
                self.take(client, queue)

    def test_the_end_of_a_claim(self):
        def hold(queue):
            put(self.server, queue, queue)
            self.claimed(queue, b'{"ttl":2,"grace":0}')
        for queue, _, client in self.together(hold, LONG):
            with self.subTest(queue=queue):
                self.take(client, queue)

    def test_the_end_of_the_time(self):
        begun = time.monotonic()
        for queue, make, client in self.together(lambda _: None, 2):
            with self.subTest(queue=queue):
                response = client.response()
                self.assertGreater(time.monotonic() - begun, 1.9)
                self.assert_nothing(response)
                self.assertEqual(applied(response), "wait=2")
                client.send(make(queue))  # the connection goes on
                same = client.response()
                self.assertEqual((response.status, response.body), (same.status, same.body))
                self.assertIsNone(applied(same))


class FirstComeFirstServed(Case):
    options = ("--workers", "2")
    WORKERS = 20

    def test_twenty_workers_are_served_in_their_order(self):
        for name, make in EACH[:5]:
            with self.subTest(request=name):
                queue = name.replace(" ", "-")
                one = make(queue, LONG).replace(b"/claims ", b"/claims?limit=1 ") \
                    .replace(b"/claims?queue", b"/claims?limit=1&queue")
                clients = [send(self.server, one) for _ in range(self.WORKERS)]
                for n, client in enumerate(clients):
                    self.assertFalse(any(has_response(other) for other in clients[n:]))
                    put(self.server, queue, n)
                    self.take(client, n)
                for client in clients:
                    client.close()

    def test_the_fencing_token_grows_over_a_restart(self):
        def number(server):
            put(server, "q", 1)
            client = send(server, claim("q", limit=1))
            response = client.response()
            client.close()
            settle(server)
            return int(response.headers["claim-number"])
        before = number(self.server)
        self.assertEqual(self.server.stop(), 0)
        with Server(*self.options) as self.server:
            self.assertGreater(number(self.server), before)


if __name__ == "__main__":
    unittest.main()
