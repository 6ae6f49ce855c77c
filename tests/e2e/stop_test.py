#!/usr/bin/python3
"""SIGTERM under full load: acknowledged requests are done, and others have no response.

    stop_test.py CLAIMD

The store lives in memory, so no client can look at it when the server has ended. But a request
in flight is finished while the server drains: an observer sends the heads of its requests
before the signal and the rest when all producers have been cut off. It sees the
final state.
"""

import json
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import Server, post, request  # noqa: E402

PRODUCERS = 6
ENOUGH = 300  # responses a producer must have had before the signal comes
PAGE = 10000  # as many as one producer can post: the observer has one look


class Producer(threading.Thread):
    """Posts the numbers 1, 2, 3 ..., `depth` at a time without waiting, until cut off."""

    def __init__(self, server, queue, depth):
        super().__init__()
        self.client = server.connect()
        self.queue, self.depth = queue, depth
        self.sent = self.acknowledged = 0
        self.warm = threading.Event()
        self.failure = None

    def message(self):
        self.sent += 1
        return post(self.queue, b'{"messages":[{"body":%d}]}' % self.sent)

    def run(self):
        try:
            while self.sent + self.depth <= PAGE:
                self.client.send(b"".join(self.message() for _ in range(self.depth)))
                for _ in range(self.depth):
                    response = self.client.response()
                    if response.status != 201:
                        self.failure = response
                        return
                    self.acknowledged += 1
                if self.acknowledged >= ENOUGH:
                    self.warm.set()
        except (EOFError, ConnectionError):
            pass  # cut off
        finally:
            self.warm.set()
            self.client.close()


class Observer:
    """A look at a queue: requests of which all but the last byte is sent."""

    def __init__(self, server, queue):
        base = "/v2/queues/%s/" % queue
        self.clients = []
        for target in ("stats", "messages?echo=true&limit=%d" % PAGE):
            self.clients.append(server.connect())
            self.clients[-1].send(request("GET", base + target, b"{}")[:-1])

    def finish(self):
        """The total of the statistics, and the bodies of all messages."""
        responses = []
        for client in self.clients:
            client.send(b"}")
            responses.append(json.loads(client.response().body)["messages"])
            client.close()
        return responses[0]["total"], [message["body"] for message in responses[1]]


class Stop(unittest.TestCase):
    def stop_under_load(self, depth):
        """Runs producers into a SIGTERM; returns each with what its observer saw."""
        queues = ["load-%d" % i for i in range(PRODUCERS)]
        with Server("--drain-seconds", "60", "--max-messages-per-page", str(PAGE)) as server:
            producers = [Producer(server, queue, depth) for queue in queues]
            observers = [Observer(server, queue) for queue in queues]
            for producer in producers:
                producer.start()
            for producer in producers:
                producer.warm.wait()
            server.signal()
            server.logged("draining")
            for producer in producers:
                producer.join()
            seen = [observer.finish() for observer in observers]
            self.assertEqual(server.wait(), 0)
            server.logged("requests_cut_off=0")
        self.assertEqual([p.failure for p in producers if p.failure], [])
        return zip(producers, seen)

    def test_the_final_count_has_exactly_the_acknowledged_requests(self):
        """A producer that waits for each response always knows: no response, no message."""
        for producer, (total, bodies) in self.stop_under_load(depth=1):
            self.assertGreaterEqual(producer.acknowledged, ENOUGH)
            self.assertEqual(bodies, list(range(1, producer.acknowledged + 1)))
            self.assertEqual(total, len(bodies))

    def test_nothing_acknowledged_in_a_pipeline_is_missing(self):
        """Responses to a pipeline may be cut off on their way, but nothing is skipped."""
        for producer, (total, bodies) in self.stop_under_load(depth=50):
            self.assertGreaterEqual(producer.acknowledged, ENOUGH)
            self.assertEqual(bodies, list(range(1, total + 1)))
            self.assertLessEqual(producer.acknowledged, total)
            self.assertLessEqual(total, producer.sent)

    def test_losses_are_counted_and_logged_only_if_there_are_any(self):
        with Server() as server:
            for body in (b'{"messages":[{"body":1},{"body":2},{"body":3}]}',
                         b'{"messages":[{"body":4}]}'):
                self.assertEqual(server.fetch("POST", "/v2/queues/q/messages", body).status, 201)
            self.assertEqual(server.fetch("PUT", "/v2/queues/empty", b"{}").status, 201)
            self.assertEqual(
                server.fetch("POST", "/v2/queues/q/claims?limit=2", b"{}").status, 201)
            self.assertEqual(server.stop(), 0)
            self.assertIn(" warn messages_lost messages=4 claimed=2 queues=2",
                          server.logged("messages_lost"))
        with Server() as server:
            self.assertEqual(server.fetch("PUT", "/v2/queues/empty", b"{}").status, 201)
            self.assertEqual(server.stop(), 0)
            server.logged("stopped")
            self.assertFalse([line for line in server.log if "messages_lost" in line])


if __name__ == "__main__":
    unittest.main()
