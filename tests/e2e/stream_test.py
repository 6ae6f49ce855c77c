#!/usr/bin/python3
"""Views as streams of events (docs/api.md 26.6), against a running claimd.

    stream_test.py CLAIMD
"""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import STREAM, Server, Viewer, descriptors, eventually, post, request  # noqa: E402


class Case(unittest.TestCase):
    options = ()

    def setUp(self):
        self.server = Server(*self.options, **self.listen())
        self.addCleanup(self.end)

    @staticmethod
    def listen():
        return {}

    def end(self):
        self.assertEqual(self.server.stop(), 0, self.server.log)

    def post(self, queue):
        with self.server.connect() as client:
            client.send(post(queue))
            self.assertEqual(client.response().status, 201)


class Streams(Case):
    def test_each_event_is_the_response_of_its_moment(self):
        with Viewer(self.server) as viewer:
            self.assertEqual(viewer.event(), ("message", {"queues": [], "links": [], "total": 0}))
            self.post("a")
            eventually(lambda: viewer.event()[1]["total"] == 1)
            self.post("a")
            eventually(lambda: viewer.event()[1]["queues"][0]["ready"] == 2)

    def test_a_request_that_fails_later_ends_its_stream_and_not_its_connection(self):
        self.post("a")
        with Viewer(self.server, "/claimd/queues/a/claims") as viewer:
            self.assertEqual(viewer.event(), ("message", {"claims": [], "links": []}))
            self.assertEqual(self.server.fetch("DELETE", "/v2/queues/a").status, 204)
            name, said = next(event for event in iter(viewer.event, 0) if event[0] != "message")
            self.assertEqual((name, said["title"]), ("end", "Not found"))
            self.assertIsNone(viewer.event())
            viewer.client.send(request("GET", "/v2/queues"))
            self.assertEqual(viewer.client.response().status, 200)

    def test_a_request_that_fails_at_first_gets_its_error(self):
        with self.server.connect() as client:
            client.send(request("GET", "/claimd/queues/none/claims", headers=STREAM))
            response = client.response()
            self.assertEqual((response.status, response.headers["content-type"]), (404, "application/json"))

    def test_a_server_that_stops_ends_all_streams(self):
        viewers = [Viewer(self.server) for _ in range(20)]
        for viewer in viewers:
            self.assertIsNotNone(viewer.event())
        self.server.process.terminate()
        for viewer in viewers:
            while viewer.event() is not None:
                pass
            viewer.client.close()

    def test_streams_of_clients_that_are_gone_end(self):
        before = descriptors(self.server)
        for _ in range(20):
            with Viewer(self.server) as viewer:
                self.assertIsNotNone(viewer.event())
        eventually(lambda: descriptors(self.server) <= before)


class SlowViewer(Case):
    """A viewer that does not read, on a socket whose buffer is small."""
    options = ("--request-seconds=1",)

    def listen(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        return {"listen": "unix:" + os.path.join(folder, "socket")}

    def test_it_is_dropped(self):
        before = descriptors(self.server)
        with self.server.connect() as client:
            for n in range(1000):
                client.send(post("queue-with-a-long-name-%d" % n))
                self.assertEqual(client.response().status, 201)
        with self.server.connect() as client:
            client.send(request("GET", "/claimd/queues?limit=1000", headers=STREAM))
            self.assertEqual(client._head()[0], 200)
            eventually(lambda: descriptors(self.server) == before)
            self.assertNotIn(b"event: end", client.rest())


class WithoutWaiters(Case):
    """The server lets no request wait."""
    options = ("--max-waiters=0",)

    def test_the_response_is_no_stream(self):
        with self.server.connect() as client:
            client.send(request("GET", "/claimd/queues", headers=STREAM))
            response = client.response()
            self.assertEqual((response.status, response.headers["content-type"]), (200, "application/json"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
