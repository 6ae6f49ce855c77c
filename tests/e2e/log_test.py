#!/usr/bin/python3
"""The log as seen from outside: whether it is read or not, requests get responses.

    log_test.py CLAIMD
"""

import fcntl
import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import (CLAIMD, RESTLESS, Client, Daemon, Server, becomes_idle,  # noqa: E402
                     environment, request)

GOOD = request("GET", "/v2/queues")
MANY = 10000  # requests; their lines are more than pipe and buffer hold
DROPPED = re.compile(r" warn log_lines_dropped count=(\d+)$")


class PipedServer(Daemon):
    """A claimd whose log goes into a pipe without a reader."""

    def __init__(self, *options):
        self.reader, writer = os.pipe()
        fcntl.fcntl(self.reader, fcntl.F_SETPIPE_SZ, 4096)
        try:
            super().__init__(CLAIMD, *options, stderr=writer)
        finally:
            os.close(writer)

    endpoint = Server.endpoint

    def fetch(self, count, data=GOOD):
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


class Proxies(unittest.TestCase):
    FORWARDED = ("X-Forwarded-For: 198.51.100.1, 203.0.113.9", "X-Forwarded-For: 127.0.0.1")

    def line(self, server):
        """That of a request with the headers of a proxy."""
        with server.connect() as client:
            client.send(request("GET", "/v2/queues", headers=self.FORWARDED))
            self.assertEqual(client.response().status, 200)
        return server.logged(" info request ")

    def test_a_trusted_proxy_names_the_client(self):
        with Server("--access-log") as server:
            self.assertRegex(self.line(server),
                             r" client=203\.0\.113\.9 proxy=127\.0\.0\.1(:\d+)? ")
        with tempfile.TemporaryDirectory() as folder:
            with Server("--access-log", listen="unix:" + os.path.join(folder, "s")) as server:
                self.assertIn(" client=203.0.113.9 proxy=unix ", self.line(server))

    def test_the_headers_of_others_have_no_effect(self):
        with Server("--access-log", "--trusted-proxies", "none") as server:
            line = self.line(server)
            self.assertRegex(line, r" client=127\.0\.0\.1(:\d+)? ")
            self.assertNotIn("203.0.113.9", line)


class UnreadLog(unittest.TestCase):
    def test_requests_get_responses_and_the_lines_missing_are_counted(self):
        with PipedServer("--access-log") as server:
            self.assertEqual(server.fetch(MANY), [200] * MANY)
            written = dropped = 0
            ended = None
            for line in server.lines():
                match = DROPPED.search(line)
                if match:
                    dropped += int(match[1])
                    server.fetch(100)  # there is capacity again: these have their lines
                    server.signal()
                elif " info request " in line:
                    self.assertRegex(line, r" client=127\.0\.0\.1(:\d+)? project=p$")
                    written += 1
                else:
                    ended = line
            self.assertEqual(server.wait(), 0)
            self.assertGreater(dropped, 0)
            self.assertEqual(written + dropped, MANY + 100)
            self.assertIn("stopped requests_cut_off=0", ended)

    def test_it_ends_on_request(self):
        with PipedServer("--access-log") as server:
            self.assertEqual(server.fetch(MANY), [200] * MANY)
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
            self.assertEqual(server.fetch(MANY), [200] * MANY)
            self.assertTrue(RESTLESS or becomes_idle(server))
            server.signal()
            self.assertEqual(server.wait(), 0)


class OfARequest(unittest.TestCase):
    """The fields of a request in the access log, and secrets that are never in it."""

    TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    def fetch(self, server, *args, **more):
        with server.connect() as client:
            client.send(request(*args, **more))
            return client.response()

    def line_of(self, server, response):
        return server.logged("request_id=" + response.headers["x-request-id"])

    def test_a_claim_is_logged_with_project_queue_and_id(self):
        with Server("--access-log") as server:
            self.fetch(server, "POST", "/v2/queues/q/messages",
                       b'{"messages":[{"body":"a secret"}]}')
            made = self.fetch(server, "POST", "/v2/queues/q/claims?limit=3", b"{}",
                              headers=["X-Request-ID: theirs-7", "traceparent: " + self.TRACE])
            claim = made.headers["location"].rpartition("/")[2]
            line = self.line_of(server, made)
            self.assertIn(" path=/v2/queues/q/claims query=\"limit=3\" status=201 ", line)
            self.assertTrue(line.endswith(
                " project=p queue=q claim=%s client_request_id=theirs-7 traceparent=%s"
                % (claim, self.TRACE)), line)
            released = self.fetch(server, "DELETE", "/v2/queues/q/claims/" + claim)
            self.assertIn(" queue=q claim=%s" % claim, self.line_of(server, released))
            self.assertNotIn("a secret", "".join(server.log))

    def test_the_uri_of_a_subscriber_is_in_no_line(self):
        """It may have a password in it; one of 4 KB, and some that are refused."""
        path = "/v2/queues/q/subscriptions"
        long = "https://ann:hush@example.org/" + 4000 * "x"
        with Server("--access-log", "--log-level=debug") as server:
            made = self.fetch(server, "POST", path, b'{"subscriber":"%s"}' % long.encode())
            self.assertEqual(made.status, 201)
            item = path + "/" + re.search(rb'"([0-9a-f]{24})"', made.body)[1].decode()
            shown = self.fetch(server, "GET", item)
            self.assertIn(b"ann:hush@", shown.body)
            for body in (b'{"subscriber":"ftp://ann:hush@example.org"}',
                         b'{"subscriber":"https://ann:hush@\\n"}', b'{"subscriber":"hush'):
                refused = self.fetch(server, "POST", path, body)
                self.assertEqual(refused.status, 400)
                self.assertNotIn(b"hush", refused.body)
            response = self.fetch(server, "PATCH", item, b'{"subscriber":"http://ann:hush@b"}')
            self.assertEqual(response.status, 204)
            self.assertIn(" path=%s " % item, self.line_of(server, response))
        self.assertNotIn("hush", "".join(server.log))


class UnderJournald(unittest.TestCase):
    def test_lines_have_priorities_where_standard_error_is_journalds(self):
        for ours in (True, False):
            with self.subTest(ours=ours):
                reader, writer = os.pipe()
                what = os.fstat(writer)
                stream = "%d:%d" % (what.st_dev, what.st_ino + (not ours))
                with Daemon(CLAIMD, stderr=writer, env=environment(JOURNAL_STREAM=stream)):
                    os.close(writer)
                with os.fdopen(reader, encoding="ascii") as log:
                    lines = log.readlines()
                self.assertTrue(lines)
                for line in lines:
                    self.assertEqual(re.match(r"<[46]>\d{4}-", line) is not None, ours, line)


if __name__ == "__main__":
    unittest.main()
