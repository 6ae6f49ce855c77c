#!/usr/bin/python3
"""No lease ends early: not by a millisecond, and not over a restart.

    lease_test.py CLAIMD

Each message is claimed alone. Then this program claims messages until it has claimed all of
them again. A second claim whose response came before the first one's request was sent plus its ttl
is early. Delays are measured in the same way. Being late proves nothing on a busy machine.
"""

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import CLAIMD, CLIENT_ID, Daemon  # noqa: E402  (it finds the next)
from redis_nodes import Node  # noqa: E402

MESSAGES, STARTS = 60, 6
HEADERS = {"Client-ID": CLIENT_ID, "X-Project-ID": "p", "Content-Type": "application/json"}


class Killed(Daemon):
    """A server whose end is a kill -9."""

    def stop(self):
        self.signal(signal.SIGKILL)
        return 0 if self.wait() == -signal.SIGKILL else 1


class LeaseTest(unittest.TestCase):
    def serve(self, kind, store, value):
        return kind(CLAIMD, "--" + store, value, "--min-claim-ttl", "1", "--min-claim-grace", "0",
                    "--log-level", "error")

    def serve_journal(self, folder):
        return self.serve(Killed, "journal", os.path.join(folder, "journal"))

    def fetch(self, connection, target, body, expected):
        connection.request("POST", "/v2/queues/q/" + target, json.dumps(body), HEADERS)
        response = connection.getresponse()
        data = response.read()
        self.assertIn(response.status, expected, data)
        return json.loads(data) if response.status != 204 else None

    def claim(self, connection, ttl):
        response = self.fetch(connection, "claims?limit=1", {"ttl": ttl, "grace": 60}, (201, 204))
        return response["messages"][0]["body"] if response is not None else None

    def begin(self, server, delay):
        """The earliest moment at which each message may be handed out (again)."""
        earliest = {}
        with contextlib.closing(server.connect()) as connection:
            for body in range(MESSAGES):
                sent = time.monotonic()
                self.fetch(connection, "messages",
                           {"messages": [{"body": body, "ttl": 300, "delay": delay}]}, (201,))
                earliest[body] = sent + delay
            while delay == 0:
                sent = time.monotonic()
                body = self.claim(connection, 1)
                if body is None:
                    break
                earliest[body] = sent + 1
        return earliest

    def judge(self, server, earliest):
        left = dict(earliest)
        with contextlib.closing(server.connect()) as connection:
            while left:
                body = self.claim(connection, 300)
                now = time.monotonic()
                if body is not None:
                    early_ms = 1000 * (left.pop(body) - now)
                    self.assertLessEqual(early_ms, 0,
                                         "message %d is %.3f ms early" % (body, early_ms))

    def test_a_lease_over_a_restart(self):
        for _ in range(STARTS):
            with tempfile.TemporaryDirectory(prefix="claimd-lease-") as folder:
                with self.serve_journal(folder) as server:
                    earliest = self.begin(server, 0)
                with self.serve_journal(folder) as server:
                    self.judge(server, earliest)

    def test_a_delay_over_a_restart(self):
        with tempfile.TemporaryDirectory(prefix="claimd-lease-") as folder:
            with self.serve_journal(folder) as server:
                earliest = self.begin(server, 1)
            with self.serve_journal(folder) as server:
                self.judge(server, earliest)

    def test_a_lease_without_a_restart(self):
        with self.serve(Daemon, "journal", "none") as server:
            self.judge(server, self.begin(server, 0))

    def test_a_lease_on_redis(self):
        with Node() as node:
            with self.serve(Daemon, "store", node.url()) as server:
                self.judge(server, self.begin(server, 0))


if __name__ == "__main__":
    unittest.main()
