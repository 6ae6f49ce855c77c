#!/usr/bin/python3
"""The program against hostile clients: thousands of idle connections, half-closed sockets,
resets in the middle of responses, endless pipelines.

    attack_test.py CLAIMD

    ATTACK_CONNECTIONS   number of idle connections (2000)

limits_test.py tests slow clients, exhaustion_test.py a lack of resources, and stop_test.py the
stop of the server.
"""

import json
import os
import socket
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import (SANITIZED, Server, descriptors, eventually, more_descriptors,  # noqa: E402
                     post, request, resident_kb)

CONNECTIONS = int(os.environ.get("ATTACK_CONNECTIONS", "2000"))
GOOD = request("GET", "/v2/queues")


def statuses(client, count):
    return [client.response().status for _ in range(count)]


def totals_of(client, queue):
    client.send(request("GET", "/v2/queues/%s/stats" % queue))
    return json.loads(client.response().body)["messages"]


class IdleConnections(unittest.TestCase):
    WORKING = 4

    def work(self, client, cycles):
        """Posts, claims and deletes messages one by one."""
        for _ in range(cycles):
            client.send(post("work"))
            self.assertEqual(client.response().status, 201)
            client.send(request("POST", "/v2/queues/work/claims?limit=1", b"{}"))
            held = json.loads(client.response().body)["messages"]
            client.send(request("DELETE", held[0]["href"]))
            self.assertEqual(client.response().status, 204)

    def connect_idle(self, server, size):
        """Connections that wait before, in or after a request, in turn."""
        clients = []
        for i in range(size):
            client = server.connect()
            clients.append(client)
            if i % 4 == 1:
                client.send(GOOD[:-2])
            elif i % 4 == 2:
                client.send(post("slow")[:-1])
            elif i % 4 == 3:
                client.send(GOOD)
                self.assertEqual(client.response().status, 200)
        return clients

    def test_idle_connections_up_to_the_limit_do_not_disturb_requests(self):
        limit = min(CONNECTIONS, more_descriptors() - 200)
        options = ("--max-connections", str(limit), "--idle-seconds", "600",
                   "--request-seconds", "600")
        with Server(*options) as server:
            working = [server.connect() for _ in range(self.WORKING)]
            for client in working:
                self.work(client, 1)
            before = descriptors(server)
            idle = self.connect_idle(server, limit - self.WORKING)
            with server.connect() as refused:
                self.assertEqual(refused.response().status, 503)
            for client in working:
                self.work(client, 100)
            self.assertEqual(totals_of(working[0], "work")["total"], 0)
            self.complete(idle)
            for client in idle:
                client.close()
            eventually(lambda: descriptors(server) <= before)
            for client in working:
                self.work(client, 1)
                client.close()

    def complete(self, clients):
        """Each connection is still open, and its request completes."""
        for i, client in enumerate(clients):
            client.send((GOOD, GOOD[-2:], post("slow")[-1:], GOOD)[i % 4])
        for i, client in enumerate(clients):
            self.assertEqual(client.response().status, 201 if i % 4 == 2 else 200)


class HalfClosed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_a_half_closed_client_gets_all_responses(self):
        for count in (1, 2, 50):
            queue = "half-%d" % count
            with self.server.connect() as client:
                client.send(post(queue) * count)
                client.socket.shutdown(socket.SHUT_WR)
                self.assertEqual(statuses(client, count), [201] * count)
                self.assertTrue(client.closed())
            self.assertEqual(self.server.stats(queue)[2], count)

    def test_half_closed_sockets_are_not_kept(self):
        before = descriptors(self.server)
        clients = [self.server.connect() for _ in range(500)]
        for i, client in enumerate(clients):
            client.send(GOOD * (i % 3))
            client.socket.shutdown(socket.SHUT_WR)
        eventually(lambda: descriptors(self.server) <= before)
        for i, client in enumerate(clients):
            self.assertEqual(statuses(client, i % 3), [200] * (i % 3))
            client.close()


class Resets(unittest.TestCase):
    BIG = b'{"messages":[{"body":"' + b"x" * 200000 + b'"}]}'

    def fill(self, server, count):
        with server.connect() as client:
            for _ in range(count):
                client.send(post("big", self.BIG))
                self.assertEqual(client.response().status, 201)

    def test_resets_in_the_middle_of_big_responses_leave_nothing_behind(self):
        listing = request("GET", "/v2/queues/big/messages?echo=true&limit=20")
        with Server() as server:
            self.fill(server, 20)
            before = descriptors(server)
            for i in range(150):
                client = server.connect()
                client.send(listing * (1 + i % 3))
                while len(client.pending) < i * 1000:
                    client._more()
                client.reset()
            eventually(lambda: descriptors(server) <= before)
            self.assertEqual(server.fetch("GET", "/v2/queues").status, 200)
            self.assertEqual(server.stats("big")[1], 20)
            # Each response is 4 MB: had they been kept, there would be hundreds.
            self.assertTrue(SANITIZED or resident_kb(server) < 100 * 1024)

    def test_claims_with_unread_responses_are_released(self):
        options = ("--min-claim-ttl", "1", "--min-claim-grace", "1")
        claim = request("POST", "/v2/queues/big/claims?limit=7", b'{"ttl":1,"grace":60}')
        with Server(*options) as server:
            self.fill(server, 20)
            for i in range(60):
                client = server.connect()
                client.send(claim * 5)
                if i % 2:
                    client._more()
                client.reset()
            eventually(lambda: server.stats("big")[1] == 20)
            self.assertEqual(server.stats("big")[2], 20)


class Pipelines(unittest.TestCase):
    COUNT = 1000

    def pipeline(self, queue):
        """A thousand requests of every kind, and the expected response of each."""
        kinds = (
            (post(queue), 201),
            (request("POST", "/v2/queues/%s/claims?limit=1" % queue, b"{}"), 201),
            (request("GET", "/v2/queues/%s/stats" % queue), 200),
            (request("DELETE", "/v2/queues/%s/messages/nothing" % queue), 204),
            (request("PUT", "/v2/queues/%s" % queue, b"{}"), 204),
            (request("HEAD", "/v2/ping"), 204),
            (request("POST", "/v2/queues/%s/messages" % queue, b"[}"), 400),
            (request("GET", "/v2/nowhere"), 404),
        )
        return [kinds[i % len(kinds)] for i in range(self.COUNT)]

    def test_several_pipelines_of_a_thousand_requests_keep_their_order(self):
        with Server() as server:
            clients = [server.connect() for _ in range(6)]
            for i, client in enumerate(clients):
                script = self.pipeline("pipe-%d" % i)
                client.send(b"".join(data for data, _ in script))
            for i, client in enumerate(clients):
                script = self.pipeline("pipe-%d" % i)
                self.assertEqual(statuses(client, self.COUNT), [want for _, want in script])
                counts = totals_of(client, "pipe-%d" % i)
                self.assertEqual((counts["claimed"], counts["free"]), (self.COUNT // 8, 0))
                client.close()

    def test_a_client_that_does_not_read_gets_no_further_responses(self):
        listing = request("GET", "/v2/queues/heavy/messages?echo=true&limit=20")
        with Server("--request-seconds", "600") as server, server.connect() as client:
            body = b'{"messages":[{"body":"' + b"x" * 50000 + b'"}]}'
            client.send(post("heavy", body) * 20)
            statuses(client, 20)
            client.send(listing)
            size = len(client.response().body)
            sender = threading.Thread(target=client.send, args=(listing * self.COUNT,))
            sender.start()
            others = [server.fetch("GET", "/v2/queues").status for _ in range(200)]
            self.assertEqual(set(others), {200})
            # A thousand responses of 1 MB are wanted; no more than a few may be waiting.
            self.assertTrue(SANITIZED or resident_kb(server) < 100 * 1024)
            for _ in range(self.COUNT):
                # The ages of the 20 messages get longer meanwhile, by a digit or two.
                self.assertIn(len(client.response().body) - size, range(20 * 2 + 1))
            sender.join()


if __name__ == "__main__":
    unittest.main()
