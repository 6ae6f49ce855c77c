#!/usr/bin/python3
"""HTTP as clients really speak it, against a running claimd.

    http_test.py CLAIMD
"""

import contextlib
import itertools
import json
import os
import re
import socket
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import harness  # noqa: E402
from harness import Refusals, Server, post, request, without_tls  # noqa: E402

LIMIT = 65536           # the largest body: max_queue_metadata
SWALLOWED = 1024 * 1024  # how much more is read before the connection is given up

GOOD = request("GET", "/v2/queues")

with socket.create_server(("127.0.0.1", 0)) as _listener:
    COUNTED = len(_listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)) > 128


class Case(Refusals, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--max-messages-post-size", "1000", "--access-log")

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        if status != 0:
            raise RuntimeError("claimd ended with status %d: %r" % (status, cls.server.log))

    def talk(self, data, responses=1):
        with self.server.connect() as client:
            client.send(data)
            return [client.response() for _ in range(responses)]

    def assert_serving(self):
        self.assertEqual(self.talk(GOOD)[0].status, 200)

    def count(self, queue):
        stats = self.server.fetch("GET", "/v2/queues/%s/stats" % queue)
        return json.loads(stats.body)["messages"]["total"]


class Connections(Case):
    def test_a_connection_serves_many_requests(self):
        with self.server.connect() as client:
            for _ in range(100):
                client.send(GOOD)
                self.assertEqual(client.response().status, 200)

    def test_head_of_the_start_page_has_its_length_and_no_body(self):
        accept = ("Accept: text/html,application/xhtml+xml,*/*;q=0.8",)
        page = self.server.fetch("GET", "/", headers=accept)
        head = self.server.fetch("HEAD", "/", headers=accept)
        self.assertEqual((page.status, head.status, head.body), (200, 200, b""))
        self.assertEqual(int(head.headers["content-length"]), len(page.body))
        self.assertEqual(self.server.fetch("HEAD", "/").status, 405)

    def test_connection_close_is_respected(self):
        with self.server.connect() as client:
            client.send(request("GET", "/v2/queues", close=True))
            response = client.response()
            self.assertEqual(response.headers["connection"], "close")
            self.assertTrue(client.closed())

    def test_http_1_0_closes_without_keep_alive(self):
        with self.server.connect() as client:
            client.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            self.assertEqual(client.response().status, 300)
            client.send(b"GET / HTTP/1.0\r\n\r\n")
            self.assertEqual(client.response().status, 300)
            self.assertTrue(client.closed())

    def test_a_thousand_pipelined_requests_get_responses_in_order(self):
        with self.server.connect() as client:
            client.send(b"".join(request("GET", "/v2/queues/pipe-%d/stats" % (i % 2) if i % 3
                                         else "/nowhere/%d" % i) for i in range(1000)))
            statuses = [client.response().status for _ in range(1000)]
        self.assertEqual(statuses, [200 if i % 3 else 404 for i in range(1000)])

    def test_pipelined_bodies_stay_with_their_requests(self):
        bodies = [b'{"messages":[{"body":%d}]}' % i for i in range(50)]
        with self.server.connect() as client:
            client.send(b"".join(post("bodies", body) for body in bodies))
            self.assertEqual({client.response().status for _ in bodies}, {201})
            client.send(request("GET", "/v2/queues/bodies/messages?echo=true&limit=20"))
            shown = json.loads(client.response().body)["messages"]
        self.assertEqual([message["body"] for message in shown], list(range(20)))

    def test_many_ready_connections_do_not_stall_a_worker(self):
        clients = [self.server.connect() for _ in range(300)]
        try:
            for _ in range(3):
                for client in clients:
                    client.send(GOOD * 3)
                for client in clients:
                    for _ in range(3):
                        self.assertEqual(client.response().status, 200)
        finally:
            for client in clients:
                client.close()

    def test_every_response_has_an_id_of_its_own_that_the_log_has_too(self):
        responses = self.talk(GOOD * 20, 20) + self.talk(GOOD)
        ids = {response.headers["x-request-id"] for response in responses}
        self.assertEqual(len(ids), 21)
        form = r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # as of OpenStack
        self.assertEqual([name for name in ids if re.fullmatch(form, name) is None], [])
        for name in ids:
            self.assertIn("path=/v2/queues status=200",
                          self.server.logged("request_id=" + name))

    def test_a_request_may_come_byte_by_byte(self):
        with self.server.connect() as client:
            client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in post("dripped"):
                client.send(bytes([byte]))
            self.assertEqual(client.response().status, 201)

    def test_a_connection_cut_at_any_byte_changes_nothing(self):
        whole = post("cut")
        for length in range(len(whole)):
            client = self.server.connect()
            client.send(whole[:length])
            if length % 2:
                client.reset()
            else:
                client.close()
        self.assert_serving()
        self.assertEqual(self.count("cut"), 0)

    def test_a_client_that_does_not_wait_for_its_response_is_no_problem(self):
        for _ in range(50):
            client = self.server.connect()
            client.send(GOOD * 20)
            client.reset()
        self.assert_serving()


class Bodies(Case):
    def chunked(self, queue, *chunks, headers=(), end=b"0\r\n\r\n"):
        head = request("POST", "/v2/queues/%s/messages" % queue,
                       headers=["Transfer-Encoding: chunked", *headers])
        return head + b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks) + end

    def assert_last(self, data, status):
        """A chunked body is the last on its connection: nothing behind it is a request."""
        with self.server.connect() as client:
            client.send(data + post("behind-chunks"))
            response = client.response()
            self.assertEqual((response.status, response.headers["connection"]), (status, "close"))
            self.assertTrue(client.closed())
        self.assertEqual(self.count("behind-chunks"), 0)
        return response

    def test_a_chunked_body_is_put_together(self):
        body = [b'{"messages"', b':[{"bo', b'dy":', b"1}]}"]
        self.assert_last(self.chunked("c1", *body), 201)
        self.assertEqual(self.count("c1"), 1)

    @harness.without_library("1.0.1", "it takes the end of the line for a part of the chunk")
    def test_a_chunked_body_may_have_extensions_and_trailers(self):
        data = request("POST", "/v2/queues/c2/messages",
                       headers=["Transfer-Encoding: chunked"])
        data += b'19;name="x"\r\n{"messages":[{"body":1}]}\r\n0\r\nX-Trailer: yes\r\n\r\n'
        self.assert_last(data, 201)

    def test_chunk_sizes_that_are_none_are_refused(self):
        for size in (b"xyz", b"-5", b"", b"ffffffffffffffffff"):
            with self.subTest(size=size):
                head = self.chunked("c3", end=b"")
                status = 413 if size.startswith(b"f") else 400
                self.assert_refused(head + size + b"\r\nabc\r\n", status)
        self.assertEqual(self.count("c3"), 0)

    def test_a_client_that_waits_for_100_gets_it(self):
        body = b'{"messages":[{"body":1}]}'
        with self.server.connect() as client:
            data = post("e1", body, headers=["Expect: 100-continue"])
            client.send(data[:-len(body)])
            self.assertEqual(client.interim(), 100)
            client.send(body)
            self.assertEqual(client.response().status, 201)
            client.send(GOOD)
            self.assertEqual(client.response().status, 200)

    def test_a_client_that_waits_with_too_large_a_body_is_refused_at_once(self):
        with self.server.connect() as client:
            client.send(request("POST", "/v2/queues/e2/messages",
                                headers=["Expect: 100-continue",
                                         "Content-Length: %d" % (LIMIT + 1)]))
            response = client.response()
            self.assertEqual(response.status, 400)
            self.assertEqual(json.loads(response.body)["title"], "Invalid API request")
            self.assertTrue(client.closed())

    def test_a_missing_or_empty_body_is_no_body(self):
        for data in (request("POST", "/v2/queues/b1/messages"), post("b1", b"")):
            responses = self.talk(data + GOOD, 2)
            self.assertEqual([a.status for a in responses], [400, 200])
            self.assertEqual(json.loads(responses[0].body)["title"], "Invalid request body")

    def test_a_body_where_none_is_expected_is_read_and_ignored(self):
        data = request("GET", "/v2/queues", b"x" * 100)
        self.assertEqual([a.status for a in self.talk(data + GOOD, 2)], [200, 200])

    def assert_too_large(self, response):
        self.assertEqual(response.status, 400, response)
        self.assertEqual(json.loads(response.body)["title"], "Invalid API request")

    def test_a_body_somewhat_too_large_is_refused_and_the_connection_stays(self):
        for size in (LIMIT + 1, LIMIT + 5000, LIMIT + SWALLOWED):
            with self.subTest(size=size):
                responses = self.talk(post("b2", b"x" * size) + GOOD, 2)
                self.assert_too_large(responses[0])
                self.assertEqual(responses[1].status, 200)

    def test_a_chunked_body_somewhat_too_large_is_read_and_refused(self):
        chunks = [b"x" * 10000] * 20
        self.assert_too_large(self.assert_last(self.chunked("b3", *chunks), 400))

    def test_a_body_far_too_large_is_refused_before_it_is_read(self):
        with self.server.connect() as client:
            client.send(request("POST", "/v2/queues/b4/messages",
                                headers=["Content-Length: 1000000000000"]) + b"x" * 100)
            self.assert_too_large(client.response())
            self.assertEqual(client.rest(), b"")

    def test_a_client_that_sends_all_before_it_reads_sees_the_refusal_too(self):
        with self.server.connect() as client:
            client.send(post("b5", b"x" * (LIMIT + SWALLOWED + 4000000)))
            self.assert_too_large(client.response())

    def test_a_chunked_body_far_too_large_is_refused_before_its_end(self):
        with self.server.connect() as client:
            client.send(self.chunked("b6", *([b"x" * 10000] * 400), end=b""))
            response = client.response()
            self.assert_too_large(response)
            self.assertIn("x-request-id", response.headers)
            self.assertEqual(client.rest(), b"")

    @without_tls("TLS has no half-closed connections")
    def test_a_body_shorter_than_promised_posts_nothing(self):
        whole = post("b7")
        with self.server.connect() as client:
            client.send(whole[:-1])
            client.socket.shutdown(socket.SHUT_WR)
            self.assertEqual(client.rest(), b"")
        self.assertEqual(self.count("b7"), 0)

    def test_bytes_after_content_length_are_not_part_of_the_body(self):
        body = b'{"messages":[{"body":1}]}'
        with self.server.connect() as client:
            client.send(request("POST", "/v2/queues/b8/messages", body) + b"surplus\r\n\r\n")
            self.assertEqual(client.response().status, 201)
            client.rest()
        self.assertEqual(self.count("b8"), 1)


class Heads(Case):
    def line(self, *extra, target="/v2/queues"):
        base = request("GET", target).decode("latin-1").split("\r\n")[:-2]
        return "\r\n".join(base + list(extra) + ["", ""]).encode("latin-1")

    def test_a_header_sent_twice_counts_as_one_with_a_comma(self):
        data = request("GET", "/v2/queues", headers=["Accept: text/plain",
                                                     "Accept: application/json"])
        self.assertEqual(self.talk(data)[0].status, 200)
        data = request("GET", "/v2/queues", headers=["X-Project-ID: q"])
        self.assertEqual(self.talk(data)[0].status, 200)
        self.assertEqual(self.talk(GOOD.replace(b"\r\nHost", b"\r\nClient-ID: x\r\nHost"))[0]
                         .status, 400)

    def test_names_of_headers_know_no_case_and_values_are_trimmed(self):
        data = GOOD.replace(b"Client-ID: ", b"cLIENT-iD:\t ").replace(
            b"X-Project-ID: p", b"x-project-id:p \t")
        self.assertEqual(self.talk(data)[0].status, 200)

    def test_a_nul_byte_anywhere_in_the_head_is_refused(self):
        lines = [self.line(target="/v2/queues\0/x"), self.line(target="/\0"),
                 GOOD.replace(b"GET", b"GE\0T")]
        headers = [self.line("X-Extra: a\0b"), self.line("X-Extra: a\0\0\0"),
                   self.line("X-Extra: a\0\0\0", "X-More: b"), self.line("X-Ex\0tra: a"),
                   GOOD.replace(b"X-Project-ID: p", b"X-Project-ID: p\0q")]
        for data in lines + headers:
            with self.subTest(data=data):
                self.assert_refused(data, 400)

    def test_folded_and_nameless_headers_are_refused(self):
        for extra in (["X-Extra: a", " folded"], [": no name"]):
            with self.subTest(headers=extra):
                self.assert_refused(self.line(*extra), 400)
        self.assert_refused(self.line("no colon"), 400)

    def test_long_targets_and_headers_are_refused(self):
        # With TLS, the memory for large heads is for browsers.
        beyond = 165536 if harness.TLS is None else 65536
        self.assert_refused(self.line(target="/v2/queues?" + "x" * 20000), 414)
        self.assert_refused(self.line(target="/v2/queues?" + "x" * beyond), 414)
        self.assert_refused(self.line("X-Extra: " + "x" * beyond), 431)
        self.assert_refused(self.line(*["X-%d: y" % i for i in range(5000)]), 431)

    def test_a_head_just_within_the_limit_is_served(self):
        self.assertEqual(self.talk(self.line("X-Extra: " + "x" * 3500))[0].status, 200)
        self.assertEqual(self.talk(self.line(target="/v2/queues?x=" + "y" * 3500))[0].status,
                         200)

    def test_other_versions_of_http_are_refused(self):
        self.assert_refused(b"GET / HTTP/2.0\r\n\r\n", 505)
        self.assert_refused(b"GET / HTTP/0.9\r\n\r\n", 505)
        self.assert_refused(b"GET / HTCPCP/1.0\r\n\r\n", 400)
        self.assert_refused(b"GET /\r\n\r\n", 400)

    def used(self, server):
        """A connection whose requests have all been responded to."""
        client = server.connect()
        for data in (GOOD, post("q", b'{"messages":[{"body":1}]}'), GOOD):
            client.send(data)
            self.assertIn(client.response().status, (200, 201))
        return client

    @unittest.skipUnless(COUNTED, "the kernel, an emulator, does not count the bytes of a connection")
    def test_a_later_malformed_request_is_refused_as_the_first_one(self):
        """Without TLS, the worker has other connections, which wait for their next request."""
        refused = (b"GET / HTTP/2.0\r\n\r\n", b"GET /\r\n\r\n", b"GET / x HTTP/1.1\r\n\r\n",
                   GOOD.replace(b"GET", b"GE\0T"), GOOD.replace(b"GET", b"GE\rT"),
                   self.line("X-Extra: a", " folded"), self.line("X-Ex\0tra: a"),
                   self.line("X-Extra : a"), self.line("no colon"), b"GET / HTTP/1.1\r\n\r\n",
                   self.line("X-Extra: " + "x" * 9000), self.line(target="/" + "x" * 9000))
        # libmicrohttpd 0.9.75 closes these without a response or a line in its log.
        closed = (b" " + GOOD, b"GET\r\n\r\n", b"\x16\x03\x01\x02\r\n\r\n")
        with Server("--workers", "1") as server, contextlib.ExitStack() as stack:
            others = [stack.enter_context(self.used(server)) for _ in range(0 if harness.TLS else 6)]
            for data in refused + closed:
                with self.subTest(data=data), self.used(server) as client:
                    client.send(data)
                    try:
                        response = client.last_response()
                    except EOFError:
                        self.assertIn(data, closed)
                        continue
                    self.assertIn(response.status, (400, 414, 431, 505))
                    self.assertEqual(response.headers["content-type"], "application/json")
                    self.assertEqual(response.headers["connection"], "close")
            for other in others:
                other.send(GOOD)
                self.assertEqual(other.response().status, 200)

    def test_a_malformed_request_ends_no_other_one(self):
        """claimd does not know whose it is if several connections have a part of a head."""
        others = [self.server.connect() for _ in range(3)]
        for i, other in enumerate(others):
            other.send(GOOD)
            self.assertEqual(other.response().status, 200)
            other.send(GOOD[:10 * (i + 1)])
        for line in (b"GET / HTTP/2.0\r\n\r\n", self.line("X-Ex\0tra: a")):
            with self.server.connect() as client:
                client.send(GOOD)
                self.assertEqual(client.response().status, 200)
                client.send(line)
                self.assertIn(client.last_response().status, (400, 505))
        for i, other in enumerate(others):
            with other:
                other.send(GOOD[10 * (i + 1):])
                self.assertEqual(other.response().status, 200)

    def test_a_malformed_request_behind_another_ends_no_other_one(self):
        """Both come at once, with TLS in one record. One other connection has a part of a head."""
        bad = self.line("X-Ex\0tra: a")
        lines = (b"GET / HTTP/2.0\r\n\r\n", b"GET /\r\n\r\n", b"GET /" + b"x" * 9000, bad, bad[:-4])
        with Server("--workers", "1") as server:
            for behind, begun in itertools.product(lines, (3, 40)):
                with self.subTest(behind=behind, begun=begun), self.used(server) as other:
                    other.send(GOOD[:begun])
                    with self.used(server) as client:
                        client.send(GOOD + behind)
                        self.assertEqual(client.response().status, 200)
                        if behind == bad[:-4]:  # it is malformed with its last bytes
                            client.send(bad[-4:])
                        self.assertIn(client.last_response().status, (400, 414, 505))
                    other.send(GOOD[begun:])
                    self.assertEqual(other.response().status, 200)

    def test_a_malformed_trailer_ends_no_other_connection(self):
        """libmicrohttpd 1.0.10 has the same page for a malformed name in a header and in a trailer."""
        head = request("POST", "/v2/queues/trailers/messages",
                       headers=["Transfer-Encoding: chunked"]) + b"2\r\n{}\r\n0\r\n"
        with Server("--workers", "1") as server:
            for trailer in (b"X(: y", b"X\x01: y", b"X\0: y", b"X : y", b" X: y", b"X: a\0",
                            b"no colon", b": no name", b"X: a\rb"):
                for begun in (0, 40):  # bytes of the next request on the other connection
                    with self.subTest(trailer=trailer, begun=begun), server.connect() as other:
                        other.send(GOOD + GOOD[:begun])
                        self.assertEqual(other.response().status, 200)
                        with server.connect() as client:
                            client.send(head + trailer + b"\r\n\r\n")
                            self.assertEqual(client.last_response().status, 400)
                        other.send(GOOD[begun:])
                        self.assertEqual(other.response().status, 200)

    def test_noise_ends_the_connection_and_nothing_else(self):
        for noise in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300),
                      b"noise\r\n\r\n", b"\0" * 100 + b"\r\n\r\n", b"\r\n" * 2000 + b"x\n"):
            with self.server.connect() as client:
                client.send(noise)
                client.socket.shutdown(socket.SHUT_WR)
                client.rest()
        self.assert_serving()

    def test_targets_reach_the_api_as_they_were_sent(self):
        for target, status in (("/v2/queues/a%2Fb/stats", 404), ("/v2/queues/a%00b/stats", 400),
                               ("/v2/queues/%zz/stats", 400), ("/v2/queues/%", 400),
                               ("/v2/%71ueues/q/stats", 200), ("/v2/queues/a+b/stats", 400),
                               ("/v2/queues?limit=%31", 200), ("/v2/queues?limit=%", 400),
                               ("http://host/v2/queues", 200), ("http://host", 300),
                               ("*", 404), ("nowhere", 404), ("/v2/queues/a b/stats", 400)):
            with self.subTest(target=target):
                response = self.talk(request("GET", target))[0]
                self.assertEqual(response.status, status, response)

    def test_the_known_methods_and_others(self):
        options = self.server.fetch("OPTIONS", "/v2/queues")
        self.assertEqual((options.status, options.body), (200, b""))
        self.assertIn("GET", options.headers["allow"])
        for method in ("DELETE", "PURGE", "get", "CONNECT", "TRACE", "X" * 100):
            response = self.server.fetch(method, "/v2/queues")
            self.assertEqual(response.status, 405, method)
            self.assertIn("allow", response.headers)

    def test_head_has_no_body_and_the_connection_goes_on(self):
        with self.server.connect() as client:
            client.send(request("HEAD", "/v2/ping") + request("HEAD", "/nowhere") + GOOD)
            client.response(head_only=True)
            self.assertEqual(client.response(head_only=True).status, 404)
            self.assertEqual(client.response().status, 200)

    def test_a_response_without_content_says_nothing_about_content(self):
        response = self.server.fetch("GET", "/v2/ping")
        self.assertEqual((response.status, response.body), (204, b""))
        self.assertNotIn("content-type", response.headers)
        self.assertNotIn("content-length", response.headers)


if __name__ == "__main__":
    unittest.main()
