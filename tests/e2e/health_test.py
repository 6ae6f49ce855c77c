#!/usr/bin/python3
"""The health of a server for load balancers, containers and operators: /livez, /readyz, claimd health, SIGUSR1.

    health_test.py CLAIMD
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import CLAIMD, Server, environment, post, request  # noqa: E402


def bare(method, path):
    """A request with only the headers that HTTP requires."""
    return ("%s %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % (method, path)).encode()


def health(*words, **variables):
    return subprocess.run([CLAIMD, "health", *words], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE, env=environment(**variables), timeout=60,
                          check=False)


class Paths(unittest.TestCase):
    def test_both_paths_need_no_headers_and_no_token(self):
        with tempfile.TemporaryDirectory() as folder:
            tokens = os.path.join(folder, "tokens")
            with open(tokens, "w", encoding="ascii"):
                os.chmod(tokens, 0o600)
            for options in ((), ("--auth", "tokens", "--tokens", tokens)):
                with Server(*options) as server, server.connect() as client:
                    for method in ("GET", "HEAD"):
                        for path in ("/livez", "/readyz"):
                            client.send(bare(method, path))
                            response = client.response(head_only=method == "HEAD")
                            self.assertEqual(response.status, 200)
                            self.assertEqual(response.body, b"ok\n" if method == "GET" else b"")
                            self.assertEqual(response.headers["content-length"], "3")

    def test_other_methods_and_paths_below_are_refused(self):
        with Server() as server, server.connect() as client:
            for method, path, status in (("POST", "/livez", 405), ("DELETE", "/readyz", 405),
                                         ("GET", "/livez/x", 404), ("GET", "/live", 404),
                                         ("GET", "/v2/livez", 404)):
                client.send(request(method, path))
                self.assertEqual(client.response().status, status, path)

    def test_a_stopping_server_is_not_ready(self):
        with Server("--drain-seconds", "3600") as server, server.connect() as client, \
                server.connect() as other:
            whole = post("q")
            client.send(whole[:-1])  # the server waits for the rest
            other.send(bare("GET", "/readyz")[:-1])
            server.signal()
            server.logged("draining")
            other.send(b"\n")
            response = other.response()
            self.assertEqual(response.status, 503)
            self.assertIn(b"shutting down", response.body)
            client.send(whole[-1:])
            self.assertEqual(client.response().status, 201)
            self.assertEqual(server.wait(), 0)


class Maintenance(unittest.TestCase):
    def test_posts_are_refused_and_other_requests_succeed(self):
        with Server() as server, server.connect() as client:
            def status(data):
                client.send(data)
                return client.response().status

            self.assertEqual(status(post("q")), 201)
            server.signal(signal.SIGUSR1)
            server.logged("maintenance posts=refused")
            client.send(post("q"))
            response = client.response()
            self.assertEqual(response.status, 503)
            self.assertIn(b"maintenance", response.body)
            self.assertEqual(response.headers["retry-after"], "1")
            self.assertEqual(status(request("GET", "/readyz")), 503)
            self.assertEqual(status(request("GET", "/livez")), 200)
            self.assertEqual(status(request("PUT", "/v2/queues/r")), 201)
            self.assertEqual(status(request("POST", "/v2/queues/q/claims", b"{}")), 201)
            server.signal(signal.SIGUSR1)
            server.logged("maintenance posts=taken")
            self.assertEqual(status(request("GET", "/readyz")), 200)
            self.assertEqual(status(post("q")), 201)


class Command(unittest.TestCase):
    def test_it_reports_whether_a_server_is_ready(self):
        with Server() as server:
            address = "127.0.0.1:%d" % server.port
            for words, variables in (((address,), {}), ((), {"CLAIMD_LISTEN": address}),
                                     ((), {"CLAIMD_LISTEN": "tls:127.0.0.1:1, " + address})):
                run = health(*words, **variables)
                self.assertEqual((run.returncode, run.stdout, run.stderr),
                                 (0, "%s is ready\n" % address, ""))
            server.signal(signal.SIGUSR1)
            server.logged("maintenance")
            run = health(address)
            self.assertEqual(run.returncode, 1)
            self.assertIn("is not ready. Its status is 503: the server is in maintenance", run.stderr)

    def test_it_reads_the_configuration_of_the_server(self):
        with Server() as server, tempfile.TemporaryDirectory() as folder:
            path, other = os.path.join(folder, "claimd.conf"), os.path.join(folder, "other.conf")
            with open(path, "w", encoding="ascii") as file:
                file.write("listen = tls:127.0.0.1:1, 127.0.0.1:%d\ntls_key = none\n" % server.port)
            with open(other, "w", encoding="ascii") as file:
                file.write("listen = tls:127.0.0.1:1\n")
            self.assertEqual(health("--config", path).returncode, 0)
            self.assertEqual(health(CLAIMD_CONFIG=path).returncode, 0)
            self.assertEqual(health("--config", path, CLAIMD_CONFIG=other).returncode, 0)
            for words, why in ((("--config", other), "Add an address for it: metrics:127.0.0.1:9188"),
                               (("--config", path + "x"), "claimd.confx: No such file")):
                run = health(*words)
                self.assertEqual(run.returncode, 1)
                self.assertIn(why, run.stderr)
            # The server's command line, which has `insecure_listen`, is unknown here.
            run = health(CLAIMD_LISTEN="0.0.0.0:%d" % server.port, CLAIMD_AUTH="none")
            self.assertEqual(run.returncode, 0, run.stderr)
            run = health(CLAIMD_LISTEN="nonsense")
            self.assertEqual(run.returncode, 1)
            self.assertIn("CLAIMD_LISTEN must be", run.stderr)

    def test_without_an_address_it_checks_the_server_of_claimd_url(self):
        with Server() as server, tempfile.TemporaryDirectory() as folder:
            url = "http://127.0.0.1:%d" % server.port
            path = os.path.join(folder, "claimd.conf")
            with open(path, "w", encoding="ascii") as file:
                file.write("listen = 127.0.0.1:%d\n" % server.port)
            run = health(CLAIMD_URL=url, CLAIMD_LISTEN="127.0.0.1:1")
            self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "%s is ready\n" % url, ""))
            self.assertEqual(health(CLAIMD_URL=url, CLAIMD_CONFIG=path + "x").returncode, 0)
            self.assertEqual(health(CLAIMD_URL="", CLAIMD_CONFIG=path).returncode, 0)
            away = "http://127.0.0.1:1"
            run = health(CLAIMD_URL=away, CLAIMD_CONFIG=path)
            self.assertEqual(run.returncode, 1)
            self.assertIn("http://127.0.0.1:1 does not respond", run.stderr)
            for words in (("127.0.0.1:%d" % server.port,), ("--config", path)):
                self.assertEqual(health(*words, CLAIMD_URL=away).returncode, 0, words)
            run = health(CLAIMD_URL="nonsense")
            self.assertEqual(run.returncode, 2)
            self.assertIn("CLAIMD_URL: ", run.stderr)

    def test_it_takes_a_url_of_plain_http(self):
        with Server() as server:
            url = "http://127.0.0.1:%d" % server.port
            for tail in ("", "/", "/readyz"):
                run = health(url + tail)
                self.assertEqual((run.returncode, run.stdout),
                                 (0, "127.0.0.1:%d is ready\n" % server.port))
            for word, why in ((url + "/mq", "the address must have no path, not \"/mq\""),
                              ("https://127.0.0.1:8443", "speaks plain HTTP, not TLS. Name an")):
                run = health(word)
                self.assertEqual(run.returncode, 2)
                self.assertIn(why, run.stderr)

    def test_an_address_has_only_a_host_and_a_port(self):
        for word in "127.0.0.1:1?x", "127.0.0.1:1#x", "127.0.0.1:1/v2", "127.0.0.1/x:1", "user@127.0.0.1:1":
            run = health(word)
            self.assertEqual((run.returncode, word + " is no address. Write HOST:PORT" in run.stderr), (2, True), run)
        self.assertIn("localhost: has no port", health("localhost:").stderr)

    def test_a_unix_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            path = "unix:" + os.path.join(folder, "socket")
            with Server(listen=path):
                self.assertEqual(health(path).returncode, 0)
            self.assertEqual(health(path).returncode, 1)

    def test_a_server_without_a_response_is_not_ready(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % silent.getsockname()[1]
            self.assertEqual(health(address).returncode, 1)
            silent.listen()
            run = health(address)
            self.assertEqual(run.returncode, 1)
            self.assertIn("does not respond", run.stderr)
        for address in ("nonsense", "127.0.0.1", "[::1]", ":80", "unix:" + "x" * 200, "x.invalid:80"):
            self.assertEqual(health(address).returncode, 1, address)
        self.assertEqual(health("127.0.0.1:1", "127.0.0.1:2").returncode, 2)

    def against(self, respond):
        """Runs the command against a server whose responses respond(socket) sends."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def serve():
                with listener.accept()[0] as other, contextlib.suppress(OSError):
                    other.recv(1000)
                    respond(other)

            thread = threading.Thread(target=serve)
            thread.start()
            run = health("127.0.0.1:%d" % listener.getsockname()[1])
            thread.join()
            return run

    def test_a_malformed_response_fails_the_check(self):
        for sent in (b"", b"HTTP/1.1 200", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 -5 x\r\n", b"HTTP/1.1 2 x\r\n",
                     b"HTTP/1.1 99999999999999999999 x\r\n", b"\r\n",
                     b"HTTP/1.1 200" + 1000 * b" ", b"\x15\x03\x01\0\2\2\x46"):
            run = self.against(lambda other, sent=sent: other.sendall(sent))
            self.assertEqual(run.returncode, 1, sent)
            self.assertIn("does not respond to plain HTTP. If it is a TLS address", run.stderr)
        run = self.against(lambda other: other.sendall(b"HTTP/1.1 299 Well\r\n"))
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_a_server_that_drips_bytes_times_out(self):
        def drip(other):
            for _ in range(100):
                other.sendall(b"H")
                time.sleep(1)

        self.assertEqual(self.against(drip).returncode, 1)


if __name__ == "__main__":
    unittest.main()
