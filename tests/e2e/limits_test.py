#!/usr/bin/python3
"""Slow clients, and too many of them.

    limits_test.py CLAIMD
"""

import json
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import Server, post, request  # noqa: E402

GOOD = request("GET", "/v2/queues")


def drip(client, data):
    """Sends byte by byte, slowly, until the server has had enough; returns its answer."""
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
            answer = drip(client, b"X-Slow: " + b"x" * 3000 + b"\r\n" + rest)
            self.assertIn(b"HTTP/1.1 408 ", answer)
            self.assertIn(b"X-Request-ID: ", answer)

    def test_a_request_line_that_only_drips_is_given_up(self):
        with Server("--idle-seconds", "1", "--request-seconds", "1") as server:
            with server.connect() as client:
                drip(client, b"GET /" + b"x" * 3000)
            self.assertEqual(server.ask("GET", "/v2/queues").status, 200)

    def test_a_body_that_only_drips_is_given_up_and_changes_nothing(self):
        with Server("--request-seconds", "1") as server:
            whole = post("slow", b'{"messages":[{"body":"' + b"x" * 3000 + b'"}]}')
            head = whole.index(b"\r\n\r\n") + 4
            with server.connect() as client:
                client.send(whole[:head])
                self.assertIn(b"HTTP/1.1 408 ", drip(client, whole[head:]))
            stats = json.loads(server.ask("GET", "/v2/queues/slow/stats").body)
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
    def test_one_connection_too_many_is_told_so(self):
        with Server("--max-connections", "3") as server:
            clients = [server.connect() for _ in range(3)]
            for client in clients:
                client.send(GOOD)
                self.assertEqual(client.response().status, 200)
            for _ in range(100):
                with server.connect() as refused:
                    refused.send(GOOD)
                    answer = refused.response()
                    self.assertEqual(answer.status, 503)
                    self.assertEqual(answer.headers["retry-after"], "1")
                    self.assertIn("x-request-id", answer.headers)
                    self.assertIn("title", json.loads(answer.body))
                    self.assertTrue(refused.closed())
            clients.pop().close()
            self.wait_for_room(server)
            server.logged("accepting_again")
            for client in clients:
                client.send(GOOD)
                self.assertEqual(client.response().status, 200)
                client.close()
        self.assertEqual(sum("refusing_connections" in line for line in server.log), 1)

    def wait_for_room(self, server):
        while server.ask("GET", "/v2/queues").status == 503:
            pass

    def test_hundreds_of_connections_are_spread_over_the_workers(self):
        with Server("--workers", "4") as server:
            clients = [server.connect() for _ in range(400)]
            workers = {}
            for client in clients:
                client.send(GOOD)
                worker = client.response().headers["x-request-id"].split("-")[1]
                workers[worker] = workers.get(worker, 0) + 1
            for client in clients:
                client.close()
        self.assertEqual(workers, {"00": 100, "01": 100, "02": 100, "03": 100})


if __name__ == "__main__":
    unittest.main()
