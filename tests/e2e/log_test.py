#!/usr/bin/python3
"""The log as seen from outside: whoever reads it, or does not, requests are answered.

    log_test.py CLAIMD
"""

import fcntl
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import CLAIMD, RESTLESS, Client, Daemon, Server, becomes_idle, request  # noqa: E402

GOOD = request("GET", "/v2/queues")
MANY = 10000  # requests; their lines are more than pipe and buffer hold
DROPPED = re.compile(r" warn log_lines_dropped count=(\d+)$")


class PipedServer(Daemon):
    """A claimd whose log goes into a pipe that nobody reads yet."""

    def __init__(self, *options):
        self.reader, writer = os.pipe()
        fcntl.fcntl(self.reader, fcntl.F_SETPIPE_SZ, 4096)
        try:
            super().__init__(CLAIMD, *options, stderr=writer)
        finally:
            os.close(writer)

    endpoint = Server.endpoint

    def ask(self, count, data=GOOD):
        """Sends a request so often, a hundred at a time; returns the statuses."""
        statuses = []
        with Client(*self.endpoint()) as client:
            for _ in range(0, count, 100):
                client.send(data * 100)
                statuses += [client.response().status for _ in range(100)]
        return statuses

    def lines(self):
        """Reads the log: gives its lines as they come."""
        with os.fdopen(self.reader, encoding="ascii") as reader:
            self.reader = -1
            yield from (line.rstrip("\n") for line in reader)

    def hang_up(self):
        os.close(self.reader)
        self.reader = -1

    def __exit__(self, *what):
        super().__exit__(*what)
        if self.reader >= 0:
            self.hang_up()


class NobodyReads(unittest.TestCase):
    def test_requests_are_answered_and_the_lines_missing_are_counted(self):
        with PipedServer("--access-log") as server:
            self.assertEqual(server.ask(MANY), [200] * MANY)
            written = dropped = 0
            ended = None
            for line in server.lines():
                match = DROPPED.search(line)
                if match:
                    dropped += int(match[1])
                    server.ask(100)  # there is room again: these have their lines
                    server.signal()
                elif " info request " in line:
                    self.assertRegex(line, r" client=127\.0\.0\.1(:\d+)?$")
                    written += 1
                else:
                    ended = line
            self.assertEqual(server.wait(), 0)
            self.assertGreater(dropped, 0)
            self.assertEqual(written + dropped, MANY + 100)
            self.assertIn("stopped requests_cut_off=0", ended)

    def test_it_ends_when_it_is_told_to(self):
        with PipedServer("--access-log") as server:
            self.assertEqual(server.ask(MANY), [200] * MANY)
            self.assertTrue(RESTLESS or becomes_idle(server))
            server.signal()
            self.assertEqual(server.wait(), 0)

    def test_it_ends_though_not_even_the_first_lines_were_taken(self):
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        os.write(writer, b"x" * 4096)
        with Daemon(CLAIMD, stderr=writer) as server, Client(*Server.endpoint(server)) as client:
            client.send(GOOD)
            self.assertEqual(client.response().status, 200)
        os.close(reader)
        os.close(writer)

    def test_a_reader_that_went_away_changes_nothing(self):
        with PipedServer("--access-log") as server:
            server.hang_up()
            self.assertEqual(server.ask(MANY), [200] * MANY)
            self.assertTrue(RESTLESS or becomes_idle(server))
            server.signal()
            self.assertEqual(server.wait(), 0)


if __name__ == "__main__":
    unittest.main()
