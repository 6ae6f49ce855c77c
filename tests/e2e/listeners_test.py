#!/usr/bin/python3
"""Several listeners at a time, and what each of them serves.

    listeners_test.py CLAIMD
"""

import os
import re
import socket
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import Client, Server, eventually, post, request, run  # noqa: E402

LINE = re.compile(r"^claimd listening on (?:http://(.*):(\d+)|unix:(.*))\n$")


def bare(method, path):
    return ("%s %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % (method, path)).encode()


class Listeners(Server):
    """A server with more than one: `doors` are their addresses, in their order."""

    def __init__(self, listen, *options, count, **more):
        super().__init__(*options, listen=listen, **more)
        lines = [self.ready] + [self.process.stdout.readline() for _ in range(count - 1)]
        self.doors = [self.door(line) for line in lines]

    @staticmethod
    def door(line):
        host, port, path = LINE.match(line).groups()
        if path is not None:
            return socket.AF_UNIX, path
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return family, (host.strip("[]"), int(port))

    def at(self, index):
        return Client(*self.doors[index])

    def fetch_at(self, index, data):
        with self.at(index) as client:
            client.send(data)
            return client.response()


class Doors(unittest.TestCase):
    def test_all_of_them_are_served_and_said(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "socket")
            listen = "127.0.0.1:0, [::1]:0 metrics:127.0.0.1:0,unix:" + path
            with Listeners(listen, count=4) as server:
                self.assertEqual(server.doors[3], (socket.AF_UNIX, path))
                for index in (0, 1, 3):
                    self.assertEqual(server.fetch_at(index, post("q")).status, 201)
                self.assertEqual(server.fetch_at(2, bare("GET", "/readyz")).status, 200)
                for index, kind in ((0, "http"), (2, "metrics")):
                    server.logged("listening address=127.0.0.1:%d kind=%s"
                                  % (server.doors[index][1][1], kind))
                server.logged("listening address=unix:%s kind=unix" % path)
            self.assertFalse(os.path.exists(path))

    def test_behind_the_one_for_metrics_there_is_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            tokens = os.path.join(folder, "tokens")
            with open(tokens, "w", encoding="ascii"):
                os.chmod(tokens, 0o600)
            for options in ((), ("--auth", "tokens", "--tokens", tokens),
                            ("--identity-stub",)):
                with Listeners("metrics:127.0.0.1:0,127.0.0.1:0", *options,
                               count=2) as server, server.at(0) as client:
                    for path in ("/livez", "/readyz"):
                        client.send(bare("GET", path))
                        self.assertEqual(client.response().status, 200)
                        self.assertEqual(server.fetch_at(1, bare("GET", path)).status, 200)
                    for data in (post("q"), bare("GET", "/"), bare("GET", "/v2/"),
                                 bare("OPTIONS", "/v2/queues"), request("GET", "/v2/ping"),
                                 request("GET", "/v2/health"), bare("GET", "/identity/v3"),
                                 bare("GET", "/claimd/v1/claims")):
                        client.send(data)
                        self.assertEqual(client.response().status, 404, data)

    def test_the_ready_descriptor_gets_every_line(self):
        reading, writing = os.pipe()
        with Listeners("127.0.0.1:0,metrics:127.0.0.1:0", "--ready-fd", str(writing), count=2,
                       pass_fds=(writing,)) as server:
            os.close(writing)
            with os.fdopen(reading) as lines:
                self.assertEqual([Listeners.door(line) for line in lines], server.doors)

    def test_one_that_has_many_callers_does_not_keep_others_waiting(self):
        with Listeners("127.0.0.1:0,127.0.0.1:0", "--max-connections", "300",
                       count=2) as server:
            crowd = [server.at(0) for _ in range(280)]
            self.assertEqual(server.fetch_at(1, post("q")).status, 201)
            for client in crowd:
                client.send(request("GET", "/v2/ping"))
            for client in crowd:
                self.assertEqual(client.response().status, 204)
                client.close()

    def test_too_many_are_too_many_whichever_they_come_to(self):
        with Listeners("127.0.0.1:0,127.0.0.1:0", "--max-connections", "2",
                       count=2) as server:
            with server.at(0) as first, server.at(1) as second:
                for client in (first, second):
                    client.send(post("q"))
                    self.assertEqual(client.response().status, 201)
                for index in (0, 1):
                    with server.at(index) as third:
                        self.assertEqual(third.last_response().status, 503)
            eventually(lambda: server.fetch_at(1, post("q")).status == 201)

    def test_a_drain_responses_every_client_and_closes_all(self):
        with Listeners("127.0.0.1:0,[::1]:0", "--drain-seconds", "3600", count=2) as server:
            clients = [server.at(0), server.at(1)]
            whole = post("q")
            for client in clients:
                client.send(whole[:-1])
            eventually(lambda: len(os.listdir("/proc/%d/fd" % server.process.pid)) > 10)
            server.signal()
            server.logged("draining")
            for client in clients:
                client.send(whole[-1:])
                self.assertEqual(client.response().status, 201)
                client.close()
            self.assertEqual(server.wait(), 0)
            for family, address in server.doors:
                with self.assertRaises(ConnectionRefusedError), Client(family, address):
                    pass


class Refused(unittest.TestCase):
    def refused(self, listen, words, *options):
        for check in ((), ("--check-config",)):
            ended = run("--listen", listen, *options, *check)
            self.assertEqual(ended.returncode, 2, listen)
            self.assertIn(words, ended.stderr)

    def test_senseless_options_are_refused_at_start(self):
        self.refused("127.0.0.1:1,127.0.0.1:1", "are the same address")
        self.refused("metrics:127.0.0.1:1,metrics:0.0.0.0:1", "are the same address")
        self.refused("spdy:127.0.0.1:1", "the unknown prefix \"spdy:\"")
        self.refused("127.0.0.1:1,", "after its comma")
        self.refused(",".join("127.0.0.1:%d" % port for port in range(1, 10)), "at most 8")

    def test_every_open_address_needs_auth_or_insecure_listen(self):
        for listen in ("127.0.0.1:0,0.0.0.0:0", "unix:/x,metrics:0.0.0.0:0", "[::]:0,[::1]:0"):
            self.refused(listen, "every client that reaches")
            self.refused(listen, "identity_stub gives a token", "--identity-stub")

    def test_one_that_is_taken_closes_the_others(self):
        with socket.socket() as taken, tempfile.TemporaryDirectory() as folder:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            path = os.path.join(folder, "socket")
            ended = run("--listen", "unix:%s,127.0.0.1:%d" % (path, taken.getsockname()[1]))
            self.assertEqual(ended.returncode, 1)
            self.assertIn("address already in use", ended.stderr)
            self.assertFalse(os.path.exists(path))


if __name__ == "__main__":
    unittest.main()
