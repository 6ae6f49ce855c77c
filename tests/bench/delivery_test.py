#!/usr/bin/python3
"""The load generator's delivery: the requests that it sends, what it counts, and when it ends.

    delivery_test.py GENERATOR CLAIMD

Times are only bounded from the side on which a slow machine changes nothing.
"""

import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "..", "scripts", "lib"))

from bench_lib import plots  # noqa: E402
from daemon import Daemon  # noqa: E402

GENERATOR, CLAIMD = sys.argv[1:3]
del sys.argv[1:3]


class Waiting(http.server.ThreadingHTTPServer):
    """A queue that keeps a claim until there is a message; with hooks for what goes wrong."""

    daemon_threads = True
    block_on_close = False

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.changed = threading.Condition()
        self.messages = []
        self.posts = 0
        self.heads = {"post": set(), "claim": set()}  # the Prefer headers seen
        self.before_post = lambda count: 201
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def post(self, bodies):
        with self.changed:
            self.posts += 1
            count = self.posts
        status = self.before_post(count)
        if status == 201:
            with self.changed:
                self.messages += [("m%d-%d" % (count, i), body)
                                  for i, body in enumerate(bodies)]
                self.changed.notify_all()
        return status

    def claim(self, limit, seconds):
        with self.changed:
            self.changed.wait_for(lambda: self.messages, seconds)
            taken, self.messages = self.messages[:limit], self.messages[limit:]
        return taken


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def respond(self, status, document=None, location=None):
        text = b"" if document is None else json.dumps(document).encode()
        head = "HTTP/1.1 %d Word\r\n" % status
        if status != 204:
            head += "Content-Length: %d\r\n" % len(text)
        if location:
            head += "Location: %s\r\n" % location
        try:
            self.wfile.write(head.encode() + b"\r\n" + text)
        except OSError:  # the generator is gone, as a claim is when all has arrived
            self.close_connection = True

    def do_PUT(self):
        self.respond(201)

    def do_DELETE(self):
        self.respond(204)

    def do_POST(self):
        document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prefer = self.headers["Prefer"]
        if self.path.endswith("/messages"):
            self.server.heads["post"].add(prefer)
            self.respond(self.server.post([m["body"] for m in document["messages"]]), {})
            return
        self.server.heads["claim"].add(prefer)
        limit = int(re.search(r"limit=(\d+)", self.path).group(1))
        taken = self.server.claim(limit, int(prefer.split("=")[1]) if prefer else 0)
        if not taken:
            self.respond(204)
            return
        queue = self.path.split("/claims")[0]
        self.respond(201, {"messages": [
            {"href": "%s/messages/%s?claim_id=c" % (queue, name), "body": body}
            for name, body in taken]}, queue + "/claims/c")


class Delivery(unittest.TestCase):
    def run_it(self, address, *arguments, status=0):
        with tempfile.TemporaryDirectory() as folder:
            out = {kind: os.path.join(folder, "out." + kind) for kind in ("json", "csv")}
            ended = subprocess.run(
                [GENERATOR, "--endpoint", address, "--scenario", "delivery",
                 *map(str, arguments), *("--%s=%s" % item for item in out.items())],
                capture_output=True, text=True, timeout=120)
            self.assertEqual(ended.returncode, status, ended.stderr)
            with open(out["json"]) as file:
                report = json.load(file)
            with open(out["csv"]) as file:
                csv = file.read()
        for text in (ended.stdout, csv, plots.of_run(report)):
            self.assertIn("post to claim", text)
        self.assertEqual(report["unfinished"], 0)
        return report

    def waiting(self):
        server = Waiting()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server, "127.0.0.1:%d" % server.server_address[1]

    def test_every_due_message_arrives_and_the_run_ends(self):
        server, address = self.waiting()
        begin = time.monotonic()
        report = self.run_it(address, "--rate", 60, "--duration", 1, "--warmup", 0.5, "--wait",
                             60, "--poll", 1000, "--connections", 6, "--producers", 2,
                             "--threads", 3)
        self.assertLess(time.monotonic() - begin, 50)  # workers were dismissed as they waited
        self.assertEqual(report["delivery"]["messages"], 60)
        self.assertEqual(report["undelivered"], 0)
        self.assertEqual(report["empty_claims"], 0)
        self.assertEqual(server.heads, {"post": {None}, "claim": {"wait=60"}})
        self.assertEqual(server.messages, [])

    def test_a_batch_is_as_many_messages(self):
        _, address = self.waiting()
        report = self.run_it(address, "--rate", 20, "--duration", 1, "--warmup", 0.5, "--wait",
                             60, "--batch", 5)
        self.assertEqual(report["delivery"]["messages"], 100)
        self.assertEqual(report["undelivered"], 0)

    def test_latency_counts_from_the_scheduled_time_during_a_stall(self):
        server, address = self.waiting()

        def stall_once(count):
            if count == 20:
                time.sleep(0.5)
            return 201

        server.before_post = stall_once
        report = self.run_it(address, "--rate", 100, "--duration", 1.2, "--warmup", 0, "--wait",
                             60)
        # The first of 115 is due after 50 ms, and 50 are while the server stalls.
        self.assertGreaterEqual(report["delivery"]["max_us"], 500000)
        self.assertGreaterEqual(report["delivery"]["p90_us"], 300000)

    def test_a_refused_message_is_not_waited_for(self):
        server, address = self.waiting()
        server.before_post = lambda count: 503 if count % 10 == 0 else 201
        report = self.run_it(address, "--rate", 100, "--duration", 1, "--warmup", 0, "--wait",
                             60, status=1)
        self.assertEqual(report["errors"], 9)  # of 95
        self.assertEqual(report["undelivered"], 0)
        self.assertEqual(report["delivery"]["messages"], 86)

    def check_polling(self, server, *arguments):
        """Workers of a server that responds to an empty claim at once pause before the next one."""
        report = self.run_it(server.url, "--rate", 50, "--duration", 1, "--warmup", 0.5,
                             "--connections", 7, "--producers", 2, "--queues", 5, "--poll", 40,
                             *arguments)
        self.assertEqual(report["delivery"]["messages"], 50)
        self.assertEqual(report["undelivered"], 0)
        self.assertLessEqual(report["empty_claims"], 5 * (1 / 0.030 + 1))
        return report

    def test_workers_poll(self):
        with Daemon(CLAIMD) as server:
            self.assertGreater(self.check_polling(server)["empty_claims"], 0)

    def test_workers_poll_if_the_server_ignores_the_requested_wait(self):
        with Daemon(CLAIMD) as server:
            self.check_polling(server, "--wait", 20)

    def test_messages_of_another_run_are_not_measured(self):
        with Daemon(CLAIMD) as server:
            subprocess.run([GENERATOR, "--endpoint", server.url, "--scenario", "post", "--rate",
                            "100", "--duration", "0.5", "--quiet"], check=True, timeout=120)
            report = self.run_it(server.url, "--keep", "--rate", 50, "--duration", 1,
                                 "--warmup", 0)
            # The first is due after 50 ms. If others counted, workers would end too soon.
            self.assertEqual(report["delivery"]["messages"], 48)
            self.assertEqual(report["undelivered"], 0)


if __name__ == "__main__":
    unittest.main()
