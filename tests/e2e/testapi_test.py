#!/usr/bin/python3
"""The test API of a real server (docs/api.md 23): its clock, its history, and a reset.

    testapi_test.py CLAIMD
"""

import json
import os
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import Server, eventually, post, request, run  # noqa: E402

CLAIMS = "/v2/queues/q/claims"
MINUTE = b'{"ttl":60,"grace":60}'


class TestApi(unittest.TestCase):
    def call(self, server, method, target, body=None, headers=(), status=200):
        response = server.fetch(method, target, body, headers=headers)
        self.assertEqual(response.status, status, response.body)
        return json.loads(response.body) if response.body else None

    def freeze(self, server):
        self.call(server, "PUT", "/claimd/clock", b'{"state":"frozen"}')

    def advance(self, server, seconds):
        return self.call(server, "POST", "/claimd/clock/advance",
                         json.dumps({"seconds": seconds}).encode())

    def events(self, page, name="events"):
        return [entry["event"] for entry in page[name]]

    def waiting(self, server, target=CLAIMS):
        """A client that waits for a message."""
        client = server.connect()
        self.addCleanup(client.close)
        client.send(request("POST", target, MINUTE, headers=["Prefer: wait=40"]))
        eventually(lambda: b'phase="parked"} 1' in server.fetch("GET", "/metrics").body)
        return client

    def test_a_reset_ends_waiters_and_deletes_everything(self):
        with Server("--ci") as server:
            client = self.waiting(server)
            server.fetch("POST", "/v2/queues/other/messages", b'{"messages":[{"body":1}]}')
            self.call(server, "POST", "/claimd/reset", status=204)
            self.assertEqual(client.response().status, 204)
            self.assertEqual(self.call(server, "GET", "/v2/queues")["queues"], [])

    def test_two_resets_at_once_under_load(self):
        with Server("--ci") as server:
            ends = threading.Event()
            seen = set()

            def work(number):
                with server.connect() as client:
                    while not ends.is_set():
                        client.send(post("q%d" % number))
                        seen.add(client.response().status)
            workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
            for worker in workers:
                worker.start()
            resets = [threading.Thread(target=lambda: [self.call(server, "POST", "/claimd/reset",
                                                                 status=204)
                                                       for _ in range(50)]) for _ in range(2)]
            for reset in resets:
                reset.start()
            for reset in resets:
                reset.join()
            ends.set()
            for worker in workers:
                worker.join()
            self.assertEqual(seen, {201})
            self.call(server, "POST", "/claimd/reset", status=204)
            self.assertEqual(self.call(server, "GET", "/v2/queues")["queues"], [])

    def test_time_goes_on_after_it_stood(self):
        with Server("--ci") as server:
            self.freeze(server)
            first = self.call(server, "GET", "/claimd/clock")
            self.assertEqual(first["now_ms"], self.call(server, "GET", "/claimd/clock")["now_ms"])
            self.call(server, "POST", "/v2/queues/q/messages",
                      b'{"messages":[{"body":1,"ttl":3600,"delay":1}]}', status=201)
            client = self.waiting(server)
            self.call(server, "PUT", "/claimd/clock", b'{"state":"running"}')
            self.assertEqual(client.response().status, 201)  # nothing else wakes it

    def test_a_journal_is_of_tests_or_not(self):
        with tempfile.TemporaryDirectory(prefix="claimd-testapi-") as folder:
            ours, others = os.path.join(folder, "ours"), os.path.join(folder, "others")
            os.mkdir(ours), os.mkdir(others)
            with Server("--ci", "--journal", ours) as server:
                self.freeze(server)
                self.call(server, "POST", "/v2/queues/q/messages",
                          b'{"messages":[{"body":1,"ttl":3600}]}', status=201)
                self.call(server, "POST", CLAIMS, MINUTE, status=201)
                self.advance(server, 50)
            with Server("--ci", "--journal", ours) as server:
                self.assertGreaterEqual(self.call(server, "GET", "/claimd/clock")["ahead_ms"],
                                        40000)
                self.assertEqual(self.call(server, "GET", CLAIMS.replace("claims", "stats"))
                                 ["messages"]["claimed"], 1)
                self.assertEqual(self.events(self.advance(server, 10)), ["claim_ended"])
            with Server("--journal", others) as server:
                server.fetch("PUT", "/v2/queues/q")
            for options, path, words in ((["--ci"], others, "not written by a test server"),
                                         ([], ours, "was written by a test server")):
                ended = run(*options, "--listen", "127.0.0.1:0", "--journal", path)
                self.assertEqual(ended.returncode, 3)
                self.assertIn(words, ended.stderr)

    def test_dead_letters_larger_than_one_write_of_the_journal_move_in_several(self):
        most, small = 1040000, 63
        limits = ["--journal-max-bytes", "32M", "--max-messages-post-size", str(most),
                  "--max-messages-per-claim-or-pop", "300"]
        with tempfile.TemporaryDirectory(prefix="claimd-testapi-") as folder, \
                Server("--ci", "--journal", folder, *limits) as server:
            self.call(server, "PUT", "/v2/queues/q",
                      b'{"_max_claim_count":1,"_dead_letter_queue":"dead"}', status=201)
            for count, size in ((small - 3, 16600), (3, 16600), (1, most - 100)):
                self.call(server, "POST", "/v2/queues/q/messages",
                          json.dumps({"messages": [{"body": "x" * size}] * count}).encode(),
                          status=201)
            claim = self.call(server, "POST", CLAIMS + "?limit=300", MINUTE, status=201)
            href = claim["messages"][0]["href"]
            self.assertEqual(len(claim["messages"]), small + 1)
            self.call(server, "DELETE", CLAIMS + "/" + href.rpartition("=")[2], status=204)
            self.call(server, "POST", CLAIMS, MINUTE, status=204)
            moved = self.call(server, "GET", "/v2/queues/dead/stats")["messages"]
            self.assertEqual(moved["free"], small + 1)


if __name__ == "__main__":
    unittest.main()
