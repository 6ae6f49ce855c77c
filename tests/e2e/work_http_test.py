#!/usr/bin/python3
"""`claimd work --http`: what becomes of a message after each way in which a request to the service ends.

    work_http_test.py CLAIMD
"""

import email.utils
import http.server
import json
import os
import socket
import ssl
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import PATIENCE_S, Workshop, eventually, free_port  # noqa: E402
from runner import QUEUE, WorkCase  # noqa: E402


class Responder(http.server.BaseHTTPRequestHandler):
    """Responds as `respond(number, request)` of its server says: status, headers, body."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        with self.server.lock:
            self.server.requests.append(self)
            number = len(self.server.requests)
        self.respond(*self.server.respond(number, self))

    def do_GET(self):
        with self.server.lock:
            self.server.probes.append(self.path)
            number = len(self.server.probes)
        self.respond(self.server.health(number), {}, b"")

    def respond(self, status, headers, text):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status >= 200 and status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class HttpServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, place, respond, health=None):
        self.requests, self.probes, self.lock = [], [], threading.Lock()
        self.respond, self.health = respond, health or (lambda number: 204)
        super().__init__(place, Responder)

    def handle_error(self, *_):
        pass  # a request that was ended


class Case(WorkCase):
    def serve(self, respond, health=None, place=("127.0.0.1", 0), context=None):
        server = HttpServer(place, respond, health)
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        server.url = "http%s://127.0.0.1:%d/jobs" % ("s" if context else "", server.server_port)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def limited(self, count=1):
        """The queue dead-letters a message after this number of attempts."""
        self.queue(max_claim_count=count, dead_letter_queue="dead")

    def run_one(self, respond, *options):
        """One attempt at one message; the message, the runner, which has ended with status 0, and the service."""
        service = respond if isinstance(respond, HttpServer) else self.serve(respond)
        message, = self.post({"n": 1})
        runner = self.work("--max-jobs", "1", *options, "--http", service.url, "q")
        self.assertEqual(runner.wait(), 0)
        return message, runner, service


class Responses(Case):
    def test_success_deletes(self):
        message, _, service = self.run_one(lambda *_: (204, {}, b""))
        self.assertEqual(self.server.stats("q"), (0, 0, 0))
        got, = service.requests
        self.assertEqual(json.loads(got.body), {"n": 1})
        self.assertEqual(got.headers["Content-Type"], "application/json")
        self.assertEqual(got.headers["Claimd-Queue"], "q")
        self.assertEqual(got.headers["Claimd-Message-ID"], message)
        self.assertEqual(got.headers["Claimd-Delivery-Count"], "1")
        self.assertGreater(int(got.headers["Claimd-Claim-Number"]), 0)

    def test_an_empty_body_is_sent(self):
        service = self.serve(lambda *_: (200, {}, b""))
        self.post("", "")
        runner = self.work("--raw", "--max-jobs", "2", "--http", service.url, "q")
        self.assertEqual(runner.wait(), 0)
        self.assertEqual([got.body for got in service.requests], [b"", b""])
        self.assertEqual(self.server.stats("q"), (0, 0, 0))

    def test_failures_count(self):
        statuses = {1: (500, {"Retry-After": "40"}, b"broken"), 2: (404, {}, b""), 3: (302, {}, b"")}
        service = self.serve(lambda number, got: statuses[number])
        ids = self.post(1, 2, 3)
        runner = self.work("--max-jobs", "3", "--http", service.url, "q")
        self.assertEqual(runner.wait(), 0)
        self.assertEqual([self.details(i)["last_reason"] for i in ids],
                         ["HTTP status 500 from %s: broken" % service.url,
                          "HTTP status 404 from " + service.url,
                          "HTTP status 302 from " + service.url])
        self.assertEqual([self.details(i)["delivery_count"] for i in ids], [1, 1, 1])
        self.assertIn("The next attempt is in 40 s", runner.err.containing("500"))

    def test_a_service_that_is_not_available_does_not_count(self):
        self.limited()
        for status in (429, 503):
            message, runner, service = self.run_one(lambda *_: (status, {"Retry-After": "40"}, b"later"))
            details = self.details(message)
            self.assertEqual(details["delivery_count"], 0)
            self.assertEqual(details["state"], "delayed")
            self.assertEqual(details["last_reason"], "HTTP status %d from %s: later" % (status, service.url))
            self.assertIn("The next attempt is in 40 s", runner.err.containing("does not count"))
            self.fetch("DELETE", QUEUE + "/messages/" + message, status=204)

    def test_retry_after_may_be_a_date(self):
        message, runner, _ = self.run_one(
            lambda *_: (503, {"Retry-After": email.utils.formatdate(time.time() + 120, usegmt=True)}, b""))
        seconds = int(runner.err.containing("The next attempt is in").rsplit(" ", 2)[1])
        self.assertTrue(100 <= seconds <= 120, seconds)

    def test_a_service_dead_letters_at_once(self):
        self.limited(5)
        for response in ((422, {}, b"bad JSON"),
                         (200, {"Claimd-Result": "dead-letter"}, b"bad JSON"),
                         (400, {"claimd-result": "Dead-Letter"}, b"bad JSON")):
            message, runner, service = self.run_one(lambda *_: response)
            self.assertEqual(self.server.stats("q"), (0, 0, 0))
            self.assertEqual(self.details(message, "dead")["last_reason"],
                             "HTTP status %d from %s: bad JSON" % (response[0], service.url))
            runner.err.containing("It is dead-lettered")

    def test_without_a_dead_letter_queue_the_next_attempt_is_reported(self):
        _, runner, _ = self.run_one(lambda *_: (422, {}, b"bad JSON"))
        runner.err.containing("has no dead-letter queue")
        self.assertIn("The next attempt is in", runner.err.containing("attempt 1"))

    def test_an_unknown_result_does_not_delete(self):
        message, _, _ = self.run_one(lambda *_: (200, {"Claimd-Result": "deadletter"}, b""))
        self.assertIn("is unknown: deadletter", self.details(message)["last_reason"])

    def test_timeout_and_stop_end_a_request(self):
        release = threading.Event()
        self.addCleanup(release.set)
        message, runner, service = self.run_one(
            lambda *_: release.wait(PATIENCE_S) and (200, {}, b""), "--timeout", "1")
        self.assertEqual(self.details(message)["last_reason"], "timed out after 1 s: " + service.url)
        self.assertEqual(self.details(message)["delivery_count"], 1)
        self.fetch("DELETE", QUEUE + "/messages/" + message, status=204)
        self.post(2)
        runner = self.work("--grace", "0", "--http", service.url, "q")
        eventually(lambda: len(service.requests) == 2)
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.server.stats("q"), (0, 1, 1))


class Connections(Case):
    """Connections that are not made, or end too early."""

    def test_a_backlog_survives_a_restart_of_the_service(self):
        self.limited()
        port = free_port()
        ids = self.post(*range(20))
        runner = self.work("--parallel", "5", "--max-jobs", "20", "--http",
                           "http://127.0.0.1:%d/jobs" % port, "q")
        self.assertIn("http://127.0.0.1:%d/jobs: Connection refused" % port,
                      runner.err.containing("waiting for the service"))
        eventually(lambda: all("last_reason" in self.details(i) for i in ids[:5]))
        self.assertEqual({self.details(i)["delivery_count"] for i in ids} - {0, 1}, set())
        self.assertIn("cannot reach http://127.0.0.1:%d/jobs: " % port,
                      self.details(ids[0])["last_reason"])
        # It starts slowly, and each job has its first attempt.
        service = self.serve(lambda number, got: (503, {}, b"starting") if number == 1 else (200, {}, b""),
                             place=("127.0.0.1", port))
        runner.err.containing("the service takes jobs again")
        runner.signal()  # the job of the 503 has a pause
        self.assertEqual(runner.wait(), 0)
        self.assertEqual({got.headers["Claimd-Delivery-Count"] for got in service.requests}, {"1"})
        self.assertEqual(self.server.stats("dead"), (0, 0, 0))
        self.assertEqual(len([line for line in runner.err.lines if "waiting for" in line]), 1,
                         runner.err.lines)

    def test_a_service_that_is_away_is_given_up(self):
        self.post(1)
        runner = self.work("--give-up", "2", "--http", "http://127.0.0.1:%d/" % free_port(), "q")
        self.assertEqual(runner.wait(), 69)
        runner.err.containing("the service is away for 2 s")

    def test_an_idle_runner_with_a_service_that_is_away_stops(self):
        message, = self.post(1)
        runner = self.work("--http", "http://127.0.0.1:%d/" % free_port(), "q")
        runner.err.containing("waiting for the service")
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.details(message)["delivery_count"], 0)

    def test_a_request_without_response_counts_and_is_sent_once(self):
        """The service closes an old connection when it has the request: the job may have run."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        seen = []

        def serve(connection):
            with connection, connection.makefile("rb") as stream:
                while True:
                    head = [line for line in iter(stream.readline, b"\r\n") if line]
                    if not head:
                        return
                    body = stream.read(int(next(line.split()[1] for line in head
                                                if line.lower().startswith(b"content-length:"))))
                    seen.append(body)
                    if body != b"1":
                        return
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

        def accept():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        ids = self.post(1, 2, "", 1)
        url = "http://127.0.0.1:%d/" % listener.getsockname()[1]
        runner = self.work("--raw", "--max-jobs", "4", "--http", url, "q")
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(seen, [b"1", b"2", b"", b"1"])
        for message in ids[1:3]:
            details = self.details(message)
            self.assertEqual(details["delivery_count"], 1)
            self.assertIn("no response from %s: " % url, details["last_reason"])

    def test_an_address_of_ipv6(self):
        class Server6(HttpServer):
            address_family = socket.AF_INET6
        server = Server6(("::1", 0), lambda *_: (200, {}, b""))
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.post(1)
        runner = self.work("--max-jobs", "1", "--http", "http://[::1]:%d/" % server.server_port, "q")
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.server.stats("q"), (0, 0, 0))


class BrokenUrls(Case):
    """A URL that cannot work is a broken command."""

    def assert_broken(self, url, text, *options):
        self.limited()
        message, = self.post(1)
        runner = self.work(*options, "--http", url, "q")
        self.assertEqual(runner.wait(), 69)
        runner.err.containing(text)
        details = self.details(message)
        self.assertEqual((details["state"], details["delivery_count"]), ("ready", 0))
        self.fetch("DELETE", QUEUE + "/messages/" + message, status=204)
        self.fetch("DELETE", QUEUE, status=204)

    def test_a_url_without_host_or_with_a_bad_port(self):
        self.assert_broken("http://", "cannot work: ")
        self.assert_broken("http://127.0.0.1:99999/", "cannot work: ")
        self.assert_broken("http://127.0.0.1:1/\r\nX: y", "cannot work: ")

    def test_a_host_name_that_does_not_exist(self):
        self.assert_broken("http://a..b/", "there is no host of this name")

    def test_a_bad_url_does_not_show_its_password(self):
        runner = self.work("--http", "http://me:secret@127.0.0.1:99999/", "q")
        self.assertEqual(runner.wait(), 69)
        self.assertNotIn("secret", " ".join(runner.err.lines))

    def test_a_certificate_that_is_not_trusted(self):
        with Workshop() as shop:
            pair = shop.signed("server")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pair.certificate, pair.key)
            service = self.serve(lambda *_: (200, {}, b""), context=context)
            self.assert_broken(service.url, "certificate")
            self.assert_broken(service.url, "certificate", "--health", "/")
        self.assertEqual(service.requests, [])

    def test_a_service_that_has_moved(self):
        service = self.serve(lambda *_: (301, {"Location": "https://127.0.0.1/jobs"}, b""))
        self.assert_broken(service.url, "HTTP status 301 from %s: https://127.0.0.1/jobs" % service.url)

    def test_arguments_that_do_not_fit(self):
        for words in (("--http", "ftp://h/"), ("--http", "http://h/", "--health", "health"),
                      ("--http", "http://h/", "--health", "//h/x")):
            self.assertEqual(self.work(*words, "q").wait(), 2)
        self.assertEqual(self.work("--health", "/", "q", "--", "true").wait(), 2)


class Health(Case):
    def test_no_message_is_claimed_before_the_service_is_healthy(self):
        ready = threading.Event()
        service = self.serve(lambda *_: (200, {}, b""), health=lambda number: 200 if ready.is_set() else 500)
        message, = self.post(1)
        runner = self.work("--max-jobs", "1", "--health", "/health?full=1", "--http", service.url, "q")
        self.assertIn("HTTP status 500 from http://127.0.0.1:%d/health" % service.server_port,
                      runner.err.containing("waiting for the service"))
        eventually(lambda: len(service.probes) >= 3)
        self.assertEqual(self.details(message)["delivery_count"], 0)
        self.assertEqual(service.requests, [])
        ready.set()
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(set(service.probes), {"/health?full=1"})
        self.assertEqual(len(service.requests), 1)

    def test_a_failure_checks_the_health_before_the_next_claim(self):
        """A proxy without its service responds with 404 or 502: that costs one attempt of one message."""
        self.limited()
        service = self.serve(lambda *_: (404, {}, b""), health=lambda number: 200 if number == 1 else 404)
        ids = self.post(1, 2, 3)
        runner = self.work("--health", "/health", "--http", service.url, "q")
        runner.err.containing("waiting for the service")
        eventually(lambda: len(service.probes) >= 4)
        self.assertEqual(len(service.requests), 1)
        self.assertEqual([self.details(i)["delivery_count"] for i in ids[1:]], [0, 0])
        runner.signal()
        self.assertEqual(runner.wait(), 0)

    def test_without_health_a_proxy_without_its_service_gets_one_job_at_a_time(self):
        ready = threading.Event()
        service = self.serve(lambda *_: (200 if ready.is_set() else 502, {}, b""))
        ids = self.post(*range(30))
        runner = self.work("--parallel", "10", "--http", service.url, "q")
        runner.err.containing("failed in attempt 1", 12)
        self.assertLess(len(service.requests), 20)
        self.assertLessEqual(max(self.details(i)["delivery_count"] for i in ids), 1)
        ready.set()
        runner.err.containing("the service takes jobs again")
        runner.signal()
        self.assertEqual(runner.wait(), 0)


if __name__ == "__main__":
    unittest.main()
