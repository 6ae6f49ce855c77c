#!/usr/bin/python3
"""Responses that go wrong because a test wants them to (docs/api.md 23.7), over a real socket.

    faults_test.py CLAIMD [--tls]
"""

import json
import os
import signal
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import RESTLESS, Server, becomes_idle, request  # noqa: E402

MESSAGES, CLAIMS, STATS = ("/v2/queues/q/" + name for name in ("messages", "claims", "stats"))
THREE = b'{"messages":[{"body":1,"ttl":3600},{"body":2,"ttl":3600},{"body":3,"ttl":3600}]}'
LONG = 600000  # ms: no client waits that long


class Faults(unittest.TestCase):
    def start(self, *options):
        return Server("--ci", *options)

    def begin(self, server, fault, method, target, body=None):
        """A client that has sent this request, with that fault."""
        client = server.connect()
        self.addCleanup(client.close)
        client.send(request(method, target, body, headers=["Claimd-Fault: " + fault]))
        return client

    def everything(self, server, *args):
        """All that comes of it until the connection is closed."""
        return self.begin(server, *args).rest()

    def counts(self, server):
        now = json.loads(server.fetch("GET", STATS).body)["messages"]
        return now["total"], now["claimed"]

    def set(self, server, *rules):
        response = server.fetch("PUT", "/claimd/faults", json.dumps({"faults": rules}).encode())
        self.assertEqual(response.status, 204, response.body)

    def rules(self, server):
        return json.loads(server.fetch("GET", "/claimd/faults").body)["faults"]

    def test_a_lost_response_has_happened(self):
        with self.start() as server:
            self.assertEqual(self.everything(server, "cut=before", "POST", MESSAGES, THREE), b"")
            self.assertEqual(self.counts(server), (0, 0))
            self.assertEqual(self.everything(server, "cut=after", "POST", MESSAGES, THREE), b"")
            self.assertEqual(self.counts(server), (3, 0))
            self.assertEqual(
                self.everything(server, "cut=after", "POST", CLAIMS + "?limit=1", b"{}"), b"")
            for _ in range(20):  # no client releases it
                self.assertEqual(self.counts(server), (3, 1))

    def test_half_a_response_is_half(self):
        with self.start() as server:
            server.fetch("POST", MESSAGES, THREE)
            said = self.everything(server, "half", "POST", CLAIMS + "?limit=2", b"{}")
            head, body = said.split(b"\r\n\r\n", 1)
            length = next(line for line in head.split(b"\r\n") if line.startswith(b"Content-Le"))
            self.assertEqual(len(body), int(length.split()[1]) // 2)
            self.assertEqual(self.counts(server), (3, 2))

    def test_late_and_slow_responses_come_whole(self):
        with self.start() as server:
            server.fetch("POST", MESSAGES, THREE)
            wanted = server.fetch("GET", "/v2/").body
            for fault in ("latency; ms=60", "slow; bytes=200; every_ms=5",
                          "slow; bytes=100; every_ms=1"):
                began = time.monotonic()
                client = self.begin(server, fault, "GET", "/v2/")
                response = client.response()
                self.assertEqual((response.status, response.body), (200, wanted), fault)
                self.assertGreater(time.monotonic() - began, 0.06, fault)
                client.send(request("GET", STATS))  # and the connection goes on
                self.assertEqual(client.response().status, 200)

    def test_waiting_costs_no_processor_time_and_others_are_served(self):
        with self.start("--workers", "1") as server:
            for fault in ("latency; ms=%d" % LONG, "slow; bytes=1; every_ms=%d" % LONG):
                for _ in range(10):
                    self.begin(server, fault, "GET", "/v2/")
            self.assertTrue(RESTLESS or becomes_idle(server))
            self.assertEqual(server.fetch("GET", STATS).status, 200)

    def test_a_rule_counts_requests_of_all_clients(self):
        with self.start("--workers", "2") as server:
            self.set(server, {"match": {"action": "queues:stats"}, "every": 3,
                              "fault": "status=503; retry_after=2"})
            seen = []

            def work():
                with server.connect() as client:
                    for _ in range(75):
                        client.send(request("GET", STATS))
                        response = client.response()
                        seen.append((response.status, response.headers.get("retry-after")))
            workers = [threading.Thread(target=work) for _ in range(4)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            self.assertEqual(seen.count((503, "2")), 100)
            self.assertEqual(seen.count((200, None)), 200)
            rule = self.rules(server)[0]
            self.assertEqual((rule["matched"], rule["struck"]), (300, 100))
            self.assertEqual(server.fetch("DELETE", "/claimd/faults").status, 204)
            self.assertEqual(server.fetch("GET", STATS).status, 200)

    def test_a_hidden_response_is_durable_first(self):
        with tempfile.TemporaryDirectory(prefix="claimd-faults-") as folder:
            with self.start("--journal", folder) as server:
                self.everything(server, "cut=after", "POST", MESSAGES, THREE)
                self.everything(server, "half", "POST", CLAIMS + "?limit=1", b"{}")
                late = self.begin(server, "latency; ms=60", "POST", CLAIMS + "?limit=1", b"{}")
                self.assertEqual(late.response().status, 201)
                server.signal(signal.SIGKILL)
                self.assertEqual(server.wait(), -signal.SIGKILL)
            with self.start("--journal", folder) as server:
                self.assertEqual(self.counts(server), (3, 2))


if __name__ == "__main__":
    unittest.main()
