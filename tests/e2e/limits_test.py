#!/usr/bin/python3
"""Slow clients, and too many of them.

    limits_test.py CLAIMD
"""

import json
import os
import socket
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import STREAM, Server, descriptors, eventually, post, request  # noqa: E402

GOOD = request("GET", "/v2/queues")


def drip(client, data):
    """Sends byte by byte, slowly, until the server has had enough; returns its response."""
    client.socket.settimeout(0.02)
    for byte in data:
        try:
            client.send(bytes([byte]))
        except OSError:
            break
        try:
            if not client._more():
                break
        except TimeoutError:
            continue
        except OSError:
            break
    client.socket.settimeout(60)
    return client.rest()


KERNEL_BOUND = 262144  # docs/security.md, "Limits of a connection": of each direction


def waiting_bytes(server, peer):
    """The state of the server's socket to this peer, and the bytes that the kernel keeps for both
    directions. None, 0, 0 if there is no socket."""
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f][1:]
    for row in rows:
        local, remote = (int(address.split(":")[1], 16) for address in row[1:3])
        if (local, remote) == (server.port, peer):
            sent, received = (int(n, 16) for n in row[4].split(":"))
            return row[3], sent, received
    return None, 0, 0


class Unread:
    """A client that sends requests and reads no response."""

    def __init__(self, server, data):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        self.socket.connect(server.endpoint()[1])
        self.socket.setblocking(False)
        self.server, self.data = server, data
        self.port = self.socket.getsockname()[1]

    def push(self):
        """Sends until the kernel takes no more."""
        try:
            while self.socket.send(self.data):
                continue
        except OSError:
            return

    def fill(self):
        """Sends until the server takes no more."""
        last = None
        while last != waiting_bytes(self.server, self.port):
            last = waiting_bytes(self.server, self.port)
            for _ in range(10):
                self.push()
                time.sleep(0.02)
        return last

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


class UnreadResponses(unittest.TestCase):
    LARGE = request("GET", "/openapi.json")

    def test_the_kernel_keeps_a_bounded_part_of_what_is_not_read(self):
        with Server("--request-seconds", "3600", "--idle-seconds", "3600") as server:
            self.assertGreater(len(server.fetch("GET", "/openapi.json").body), 100000)
            with Unread(server, self.LARGE * 100) as client:
                _, sent, received = client.fill()
                self.assertTrue(10000 < sent <= KERNEL_BOUND, sent)
                self.assertTrue(10000 < received <= KERNEL_BOUND, received)
            with Unread(server, post("q", b" " * 2000000)) as client:  # a body is read at once
                _, sent, received = client.fill()
                self.assertTrue(received <= KERNEL_BOUND, received)

    def test_the_kernel_keeps_nothing_when_claimd_has_closed_the_connection(self):
        with Server("--request-seconds", "1", "--idle-seconds", "1") as server:
            before = descriptors(server)
            with Unread(server, self.LARGE * 100) as client:
                client.push()
                eventually(lambda: waiting_bytes(server, client.port)[1] > 10000)
                eventually(lambda: descriptors(server) <= before)
                eventually(lambda: waiting_bytes(server, client.port) == (None, 0, 0))

    def test_the_kernel_gives_up_a_last_response_that_is_not_read(self):
        """claimd has sent it, and closed the connection. So only the kernel knows it."""
        last = request("GET", "/openapi.json", headers=["Connection: close"])
        with Server("--request-seconds", "1", "--idle-seconds", "1") as server:
            with Unread(server, last) as client:
                self.assertEqual(client.socket.send(last), len(last))
                eventually(lambda: waiting_bytes(server, client.port)[1] > 10000)
                eventually(lambda: waiting_bytes(server, client.port) == (None, 0, 0))

    def test_a_stream_sends_no_event_while_the_last_one_is_not_read(self):
        """And it ends when the time limit of a response is over."""
        stream = request("GET", "/claimd/queues?limit=50&offset=0", headers=STREAM)
        with Server("--request-seconds", "4", "--idle-seconds", "3600") as server:
            for i in range(50):
                self.assertEqual(server.fetch("PUT", "/v2/queues/%s" % ("q%d" % i).ljust(64, "x"),
                                              b"{}").status, 201)
            event = len(server.fetch("GET", "/claimd/queues?limit=50&offset=0").body)
            seen = []

            def is_over(client):
                state, sent, _ = waiting_bytes(server, client.port)
                seen.append(sent)
                return state is None

            with Unread(server, stream) as client:
                self.assertEqual(client.socket.send(stream), len(stream))
                eventually(lambda: waiting_bytes(server, client.port)[1] > 0)
                eventually(lambda: is_over(client))
            self.assertLess(max(seen), event + 1024)

    def test_a_client_that_reads_slowly_gets_all(self):
        """A claim of 20 messages of 100 KB, read within the time limit."""
        body = b'{"messages":[{"body":"' + b"x" * 100000 + b'"}]}'
        with Server("--max-messages-post-size", "1M") as server:
            for _ in range(20):
                with server.connect() as client:
                    client.send(post("q", body))
                    self.assertEqual(client.response().status, 201)
            with server.connect() as client:
                client.send(request("POST", "/v2/queues/q/claims?limit=20", b"{}"))
                client.socket.settimeout(30)
                while len(client.pending) < 2000000:
                    client.pending += client.socket.recv(30000)
                response = client.response()
            self.assertEqual(response.status, 201)
            self.assertEqual(len(json.loads(response.body)["messages"]), 20)


class SlowClients(unittest.TestCase):
    def test_a_connection_that_says_nothing_is_closed(self):
        with Server("--idle-seconds", "1") as server:
            with server.connect() as silent, server.connect() as idle:
                idle.send(GOOD)
                self.assertEqual(idle.response().status, 200)
                self.assertTrue(silent.closed())
                self.assertTrue(idle.closed())

    def test_a_head_that_only_drips_is_given_up(self):
        with Server("--request-seconds", "1") as server, server.connect() as client:
            line, rest = GOOD.split(b"\r\n", 1)
            client.send(line + b"\r\n")
            response = drip(client, b"X-Slow: " + b"x" * 3000 + b"\r\n" + rest)
            self.assertIn(b"HTTP/1.1 408 ", response)
            self.assertIn(b"X-Request-ID: ", response)

    def test_a_request_line_that_only_drips_is_given_up(self):
        with Server("--idle-seconds", "1", "--request-seconds", "1") as server:
            with server.connect() as client:
                drip(client, b"GET /" + b"x" * 3000)
            self.assertEqual(server.fetch("GET", "/v2/queues").status, 200)

    def test_a_body_that_only_drips_is_given_up_and_changes_nothing(self):
        with Server("--request-seconds", "1") as server:
            whole = post("slow", b'{"messages":[{"body":"' + b"x" * 3000 + b'"}]}')
            head = whole.index(b"\r\n\r\n") + 4
            with server.connect() as client:
                client.send(whole[:head])
                self.assertIn(b"HTTP/1.1 408 ", drip(client, whole[head:]))
            stats = json.loads(server.fetch("GET", "/v2/queues/slow/stats").body)
            self.assertEqual(stats["messages"]["total"], 0)

    def test_a_connection_in_use_outlives_both_limits(self):
        with Server("--idle-seconds", "1", "--request-seconds", "1") as server:
            with server.connect() as client:
                end = time.monotonic() + 2.5
                while time.monotonic() < end:
                    client.send(GOOD)
                    self.assertEqual(client.response().status, 200)
                    time.sleep(0.1)


class TooMany(unittest.TestCase):
    def test_one_connection_too_many_gets_503(self):
        with Server("--max-connections", "3") as server:
            clients = [server.connect() for _ in range(3)]
            for client in clients:
                client.send(GOOD)
                self.assertEqual(client.response().status, 200)
            for _ in range(100):
                with server.connect() as refused:
                    refused.send(GOOD)
                    response = refused.response()
                    self.assertEqual(response.status, 503)
                    self.assertEqual(response.headers["retry-after"], "1")
                    self.assertIn("x-request-id", response.headers)
                    self.assertIn("Try again in 1 second.",
                                  json.loads(response.body)["description"])
                    self.assertTrue(refused.closed())
            clients.pop().close()
            self.wait_for_capacity(server)
            server.logged("accepting_again")
            for client in clients:
                client.send(GOOD)
                self.assertEqual(client.response().status, 200)
                client.close()
        self.assertEqual(sum("refusing_connections" in line for line in server.log), 1)

    def wait_for_capacity(self, server):
        while server.fetch("GET", "/v2/queues").status == 503:
            pass

    def test_hundreds_of_connections_are_spread_over_the_workers(self):
        with Server("--workers", "4") as server:
            clients = [server.connect() for _ in range(400)]
            workers = {}
            for client in clients:
                client.send(GOOD)
                worker = client.response().headers["x-request-id"].split("-")[2]
                workers[worker] = workers.get(worker, 0) + 1
            for client in clients:
                client.close()
        self.assertEqual(workers, {"0000": 100, "0001": 100, "0002": 100, "0003": 100})


if __name__ == "__main__":
    unittest.main()
