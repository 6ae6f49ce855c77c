#!/usr/bin/python3
"""Connections that are half closed, that never come to an end, or that have a request in the
kernel when the server has to stop: they cost no work, and no client is left without an
response.

    attack_socket_test.py CLAIMD

The bound is on the processor time of the server, not on how long any client waits.
"""

import os
import re
import select
import signal
import socket
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import (SANITIZED, Server, descriptors, eventually, post,  # noqa: E402
                     processor_s, request, stand_still)

GOOD = request("GET", "/v2/queues")
FOREVER = ("--request-seconds", "3600", "--idle-seconds", "3600", "--drain-seconds", "0")
WATCHED_S = 2     # how long a server that has nothing to do is looked at
AT_REST_S = 0.3   # the processor time it may use meanwhile; one that spins uses all of it
ROUNDS = 300 if SANITIZED else 2000  # requests of a client beside such connections


def settle(server):
    """Waits until the server has finished the requests before; for one that spins, not long."""
    for _ in range(20):
        before = processor_s(server)
        time.sleep(0.2)
        if processor_s(server) - before < 0.01:
            break


def used_at_rest(server):
    """The processor time that a server with nothing to do uses."""
    settle(server)
    before = processor_s(server)
    time.sleep(WATCHED_S)
    return processor_s(server) - before


def used_for_others(test, server, client):
    """The processor time that the server uses for ROUNDS requests of a client."""
    settle(server)  # the responses to others are made once
    before = processor_s(server)
    for _ in range(ROUNDS):
        client.send(GOOD)
        test.assertEqual(client.response().status, 200)
    return processor_s(server) - before


class HalfClosed(unittest.TestCase):
    LISTING = request("GET", "/v2/queues/big/messages?echo=true&limit=20")

    def fill(self, server):
        body = b'{"messages":[{"body":"' + b"x" * 50000 + b'"}]}'
        with server.connect() as client:
            for _ in range(20):
                client.send(post("big", body))
                self.assertEqual(client.response().status, 201)

    def half_closed(self, server, what, data):
        client = server.connect()
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.send(data)
        client.socket.shutdown(what)
        return client

    def test_half_closed_clients_that_do_not_read_cost_nothing(self):
        pipelines = {"responses": self.LISTING * 30, "one response": self.LISTING,
                     "half a head": GOOD[:40], "responses and half a head":
                     self.LISTING * 3 + GOOD[:40],
                     "half a body": post("big")[:-3]}
        for what in (socket.SHUT_WR, socket.SHUT_RD):
            for name, data in pipelines.items():
                with self.subTest(shutdown=what, of=name), \
                        Server("--workers", "1", *FOREVER) as server:
                    self.fill(server)
                    client = self.half_closed(server, what, data)
                    self.assertEqual(server.fetch("GET", "/v2/queues").status, 200)
                    self.assertLess(used_at_rest(server), AT_REST_S)
                    client.reset()

    def test_half_closed_clients_that_do_not_read_do_not_slow_others(self):
        with Server("--workers", "1", *FOREVER) as server, server.connect() as active:
            self.fill(server)
            alone = used_for_others(self, server, active)
            clients = [self.half_closed(server, socket.SHUT_WR, self.LISTING * 30)
                       for _ in range(10)]
            beside = used_for_others(self, server, active)
            for client in clients:
                client.reset()
            self.assertLess(beside, 2 * alone + 0.1, (alone, beside))

    def test_responses_are_still_taken_after_a_half_close(self):
        with Server("--workers", "1", *FOREVER) as server:
            self.fill(server)
            with self.half_closed(server, socket.SHUT_WR, self.LISTING * 30) as client:
                self.assertEqual([client.response().status for _ in range(30)], [200] * 30)
                self.assertTrue(client.closed())

    def test_a_listing_in_slices_ends_after_a_half_close(self):
        """A listing behind very many messages of one's own is processed in slices. The client may have
        gone, as far as a server can know."""
        listing = request("GET", "/v2/queues/own/messages?echo=false")
        body = b'{"messages":[' + b",".join([b'{"body":1}'] * 5000) + b"]}"
        with Server("--workers", "1", *FOREVER) as server, server.connect() as other:
            for _ in range(60):
                other.send(post("own", body))
                self.assertEqual(other.response().status, 201)
            # The other one stays: it makes a difference to libmicrohttpd.
            with self.half_closed(server, socket.SHUT_WR, listing * 3) as client:
                self.assertTrue(client.closed())
            self.assertLess(used_at_rest(server), AT_REST_S)


class EndlessLines(unittest.TestCase):
    """A chunk whose size line, or whose trailer, has no end."""

    ATTACKERS = 40

    def attack(self, server, size_line=b"5;" + b"x" * 20000):
        client = server.connect()
        client.send(request("POST", "/v2/queues/q/messages",
                            headers=["Transfer-Encoding: chunked"]))
        try:
            client.send(size_line)
        except ConnectionError:
            pass  # it may be refused as soon as it is too long
        return client

    def silent(self, server, _=None):
        client = server.connect()
        client.send(post("q")[:-1])
        return client

    def work(self, server, beside):
        """The processor time for ROUNDS requests of a client beside those connections."""
        clients = [beside(server) for _ in range(self.ATTACKERS)]
        with server.connect() as active:
            used = used_for_others(self, server, active)
        for client in clients:
            client.close()
        return used

    def test_others_are_served_at_the_cost_they_have_beside_silent_connections(self):
        with Server("--workers", "1", *FOREVER) as server:
            silent = self.work(server, self.silent)
            endless = self.work(server, self.attack)
            self.assertLess(endless, 2 * silent + 0.1, (silent, endless))

    def test_attackers_alone_cost_no_processor_time(self):
        with Server("--workers", "1", *FOREVER) as server:
            clients = [self.attack(server) for _ in range(self.ATTACKERS)]
            self.assertLess(used_at_rest(server), AT_REST_S)
            for client in clients:
                client.close()

    def test_attackers_that_have_gone_are_gone_at_once(self):
        """Not when their time is up: that is an hour here."""
        for line in (b"5;" + b"x" * 20000, b"5;" + b"x" * 3000, b"5;", b"",
                     b"3\r\nabc\r\n0\r\nX: " + b"y" * 5000,
                     b"3\r\nabc\r\n" * 3000 + b"7;" + b"x" * 20000):
            for reset in (False, True):
                with self.subTest(line=line[:20], size=len(line), reset=reset), \
                        Server("--workers", "1", *FOREVER) as server:
                    self.assertEqual(server.fetch("GET", "/v2/queues").status, 200)
                    before = descriptors(server)
                    for client in [self.attack(server, line) for _ in range(self.ATTACKERS)]:
                        if reset:
                            client.reset()
                        else:
                            client.close()
                    eventually(lambda: descriptors(server) <= before)

    def test_attackers_that_half_close_are_gone_too(self):
        for line in (b"5;" + b"x" * 20000, b"5;" + b"x" * 3000, b"3", b"3\r\nab",
                     b"0\r\nX: yyy"):
            with self.subTest(line=line[:20], size=len(line)), \
                    Server("--workers", "1", *FOREVER) as server:
                self.assertEqual(server.fetch("GET", "/v2/queues").status, 200)
                before = descriptors(server)
                clients = [self.attack(server, line) for _ in range(self.ATTACKERS)]
                for client in clients:
                    try:
                        client.socket.shutdown(socket.SHUT_WR)
                    except OSError:
                        pass  # it has been refused already
                eventually(lambda: descriptors(server) <= before)
                for client in clients:
                    client.close()

    def test_a_size_line_that_is_too_long_is_refused_or_waits_and_is_never_taken(self):
        with Server("--workers", "1", *FOREVER) as server:
            with self.attack(server) as client:
                if select.select([client.socket], [], [], WATCHED_S)[0]:
                    self.assertIn(client.last_response().status, (400, 413, 431))
            stats = server.fetch("GET", "/v2/queues/q/stats").body
            self.assertIn(b'"total":0', stats.replace(b" ", b""))


class Drain(unittest.TestCase):
    """SIGTERM while requests lie in the kernel, where the server has not seen them yet."""

    CLIENTS = 40

    def cut_off(self, server):
        """The number of requests that were cut off, by the log."""
        self.assertEqual(server.wait(), 0)
        return int(re.search(r"requests_cut_off=(\d+)",
                             server.logged("requests_cut_off=")).group(1))

    def responses(self, client):
        """The statuses of all responses; the last is None if it was cut in the middle."""
        seen = []
        while True:
            try:
                seen.append(client.response().status)
            except (EOFError, OSError):
                return seen + [None] if client.pending else seen

    def responses_of_all(self, clients):
        """The same of each, all read before one is closed."""
        seen = [self.responses(client) for client in clients]
        for client in clients:
            client.close()
        return seen

    def assert_served_or_refused(self, server, clients):
        """Each has one whole response, and the log says that no client was cut off."""
        seen = self.responses_of_all(clients)
        self.assertEqual(self.cut_off(server), 0)
        self.assertTrue(all(one in ([201], [503]) for one in seen), seen)

    def drain_with(self, server, prepare):
        """Clients whose requests come while the process stands still, as does SIGTERM."""
        clients = [server.connect() for _ in range(self.CLIENTS)]
        for client in clients:
            client.send(GOOD)
            self.assertEqual(client.response().status, 200)
        stand_still(server)
        for i, client in enumerate(clients):
            client.send(prepare(i))
        return clients

    def finish(self, server):
        server.signal()
        server.signal(signal.SIGCONT)

    def test_requests_in_the_kernel_get_responses(self):
        for workers in ("1", "2", "4"):
            for _ in range(3):
                with self.subTest(workers=workers), \
                        Server("--workers", workers, "--drain-seconds", "60") as server:
                    clients = self.drain_with(server, lambda i: post("q-%d" % i))
                    self.finish(server)
                    self.assertEqual(len(clients), self.CLIENTS)
                    self.assert_served_or_refused(server, clients)

    def test_connections_that_were_not_accepted_yet_get_responses(self):
        for workers in ("1", "2"):
            for _ in range(3):
                with self.subTest(workers=workers), \
                        Server("--workers", workers, "--drain-seconds", "60") as server:
                    stand_still(server)
                    clients = [server.connect() for _ in range(5 * self.CLIENTS)]
                    for client in clients:
                        client.send(post("q"))
                    self.finish(server)
                    self.assert_served_or_refused(server, clients)

    def test_of_a_pipeline_in_the_kernel_at_least_the_first_gets_a_response(self):
        with Server("--workers", "2", "--drain-seconds", "60") as server:
            clients = self.drain_with(server, lambda i: post("q-%d" % i) * 5)
            self.finish(server)
            seen = self.responses_of_all(clients)
            self.assertEqual(self.cut_off(server), 0)
            self.assertTrue(all(one and None not in one for one in seen), seen)

    def test_a_begun_request_may_be_finished(self):
        """Among them one whose first byte the server has not seen when it is stopped."""
        for sent in (1, 20, -1):
            with self.subTest(sent=sent), \
                    Server("--workers", "2", "--drain-seconds", "60") as server:
                whole = post("q")
                clients = self.drain_with(server, lambda i: whole[:sent])
                self.finish(server)
                server.logged("draining")
                if sent > 0:  # which may be called idle: no more than closed
                    for client in clients:
                        client.close()
                    self.cut_off(server)
                    continue
                for client in clients:
                    client.send(whole[sent:])
                self.assert_served_or_refused(server, clients)

    def test_the_log_counts_what_was_cut_off(self):
        """Some get their responses, some never finish: each is counted on the right side."""
        whole, unfinished = post("q"), 13
        with Server("--workers", "2", "--drain-seconds", "1") as server:
            clients = self.drain_with(
                server, lambda i: whole[:-1] if i < unfinished else whole)
            self.finish(server)
            seen = self.responses_of_all(clients)
            cut = self.cut_off(server)
            # A late client may get a response. A client without one was cut off.
            lost = sum(one == [] or one[-1] is None for one in seen)
            self.assertTrue(all(one in ([201], [503]) for one in seen[unfinished:]), seen)
            self.assertEqual(cut, lost)

    def test_a_response_that_is_not_taken_counts_as_cut_off(self):
        body = b'{"messages":[{"body":"' + b"x" * 200000 + b'"}]}'
        listing = request("GET", "/v2/queues/big/messages?echo=true&limit=100")
        readers, idle = 5, 5
        with Server("--workers", "2", "--drain-seconds", "1",
                    "--max-messages-per-page", "100") as server:
            with server.connect() as client:
                for _ in range(100):  # more than the kernel takes off the server's hands
                    client.send(post("big", body))
                    self.assertEqual(client.response().status, 201)
            clients = []
            for _ in range(readers):
                clients.append(server.connect())
                clients[-1].socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
                clients[-1].send(listing)
                clients[-1]._more()  # it is on its way
            clients += [server.connect() for _ in range(idle)]
            server.signal()
            cut = self.cut_off(server)
            seen = self.responses_of_all(clients)
            self.assertEqual(seen, [[None]] * readers + [[]] * idle)
            self.assertEqual(cut, readers)


if __name__ == "__main__":
    unittest.main()
