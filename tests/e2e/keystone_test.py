#!/usr/bin/python3
"""The access that tokens of Keystone give, with a stand-in that is slow, lies, or is gone.

    keystone_test.py CLAIMD
"""

import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import PATIENCE_S, Server, eventually, post, request, run  # noqa: E402
from daemon import environment  # noqa: E402
from keystone import Keystone, unused_port  # noqa: E402


class KeystoneCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="claimd-keystone-")
        self.addCleanup(subprocess.run, ["rm", "-rf", self.folder], check=True)
        self.keystone = Keystone()
        self.addCleanup(self.keystone.stop)
        self.path = os.path.join(self.folder, "token")
        self.write_service(self.keystone.service)

    def write_service(self, token):
        """Replaces the file in one step, as an operator should."""
        fresh = self.path + ".new"
        with open(os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o640), "w",
                  encoding="ascii") as file:
            file.write(token + "\n")
        os.rename(fresh, self.path)

    def options(self, *more):
        return ["--auth", "keystone", "--keystone-url", self.keystone.url,
                "--keystone-token-file", self.path, *more]

    def start(self, *more, **how):
        return Server(*self.options(*more), **how)

    def fetch(self, server, token, method="GET", target="/v2/queues", body=None, headers=()):
        headers = [*headers, "X-Auth-Token: " + token] if token is not None else headers
        with server.connect() as client:
            client.send(request(method, target, body, headers=headers, close=True))
            return client.response()

    def status(self, *args, **more):
        return self.fetch(*args, **more).status

    def assert_away(self, response):
        self.assertEqual(response.status, 503, response)
        self.assertEqual(response.headers["retry-after"], "1")


class Admission(KeystoneCase):
    def test_roles_of_keystone_decide_access(self):
        member = self.keystone.issue("p", ["member"])
        reader = self.keystone.issue("p", ["reader", "unheard-of"])
        with self.start("--access-log") as server:
            with server.connect() as client:
                client.send(post("q", headers=["X-Auth-Token: " + member]))
                self.assertEqual(client.response().status, 201)
                client.send(post("q", headers=["Authorization: Bearer " + reader]))
                self.assertEqual(client.response().status, 403)
            self.assertEqual(self.status(server, reader, target="/v2/queues/q/stats"), 200)
            self.assertEqual(self.status(server, member, "DELETE", "/v2/queues/q"), 403)
            for token, status in ((self.keystone.issue("r", ["admin"]), 403),
                                  (self.keystone.issue(None, ["admin"]), 403),
                                  (self.keystone.issue("p", ["boss"]), 403),
                                  (self.keystone.issue("p", []), 403),
                                  (self.keystone.issue("p", ["admin"], seconds=-10), 401),
                                  ("never-issued", 401), (member[:-1], 401), (None, 401)):
                with self.subTest(status=status):
                    response = self.fetch(server, token)
                    self.assertEqual(response.status, status)
                    if status == 401:
                        self.assertEqual(response.headers["www-authenticate"], "Keystone")
            self.assertEqual(self.status(server, None, target="/livez"), 200)
            server.signal()
            self.assertEqual(server.wait(), 0)
            log = "\n".join(server.log)
        for secret in (member, self.keystone.service):
            self.assertNotIn(secret, log)
            self.assertNotIn(secret[10:30], log)

    def test_another_table_of_roles(self):
        token = self.keystone.issue("p", ["boss"])
        with self.start("--keystone-roles", "boss=operator,member=reader") as server:
            self.assertEqual(self.status(server, token, "PUT", "/v2/queues/q"), 201)
            self.assertEqual(self.status(server, token, "DELETE", "/v2/queues/q"), 204)
            member = self.keystone.issue("p", ["member"])
            self.assertEqual(self.status(server, member, "PUT", "/v2/queues/q"), 403)

    def test_a_revoked_token_lives_on_as_long_as_it_is_remembered(self):
        token = self.keystone.issue("p", ["member"])
        with self.start("--keystone-cache-seconds", "1") as server:
            self.assertEqual(self.status(server, token), 200)
            self.keystone.revoke(token)
            began = time.monotonic()
            eventually(lambda: self.status(server, token) == 401)
            self.assertGreater(self.keystone.questions(token), 1)
            self.assertLess(time.monotonic() - began, PATIENCE_S)

    def test_sighup_clears_the_cached_tokens_of_keystone(self):
        token = self.keystone.issue("p", ["member"])
        with self.start("--keystone-cache-seconds", "3600") as server:
            self.assertEqual(self.status(server, token), 200)
            self.keystone.revoke(token)
            self.assertEqual(self.status(server, token), 200)
            server.signal(signal.SIGHUP)
            server.logged("reloaded")
            self.assertEqual(self.status(server, token), 401)

    def certificate(self, name):
        pair = [os.path.join(self.folder, name + end) for end in (".pem", ".key")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=keystone", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-out", pair[0], "-keyout", pair[1]],
                       check=True, capture_output=True)
        return pair

    def serve_tls(self, pair):
        """Restarts Keystone, on its port, with another certificate."""
        self.keystone.stop()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*pair)
        self.keystone.start(self.keystone.port, tls=context)

    def test_https_is_verified(self):
        pair = self.certificate("one")
        self.serve_tls(pair)
        token = self.keystone.issue("p", ["member"])
        with self.start("--keystone-ca", pair[0]) as server:
            self.assertEqual(self.status(server, token), 200)
        with self.start() as server:
            self.assert_away(self.fetch(server, token))
            server.logged("keystone_unavailable")

    def test_the_next_connection_reads_the_ca_file_again(self):
        first, second = self.certificate("first"), self.certificate("second")
        ca = os.path.join(self.folder, "ca.pem")
        shutil.copy(first[0], ca)
        self.serve_tls(first)
        with self.start("--keystone-ca", ca) as server:
            self.assertEqual(self.status(server, self.keystone.issue("p", ["member"])), 200)
            shutil.copy(second[0], ca)
            self.serve_tls(second)
            self.assertEqual(self.status(server, self.keystone.issue("p", ["member"])), 200)


class Verification(KeystoneCase):

    def test_slow_responses_delay_no_other_request(self):
        known = self.keystone.issue("p", ["member"])
        unknown = [self.keystone.issue("p", ["member"]) for _ in range(64)]
        with self.start("--keystone-timeout-ms", "60000") as server:
            self.assertEqual(self.status(server, known), 200)
            self.keystone.shut()
            clients = [server.connect() for _ in unknown]
            for client, token in zip(clients, unknown):
                client.send(request("GET", "/v2/queues", headers=["X-Auth-Token: " + token]))
            self.keystone.await_standing(8)  # all threads wait for Keystone
            for _ in range(100):
                self.assertEqual(self.status(server, known), 200)
            self.assertEqual(self.keystone.questions(known), 1)
            self.keystone.open()
            for client in clients:
                self.assertEqual(client.response().status, 200)
                client.close()


class Trouble(KeystoneCase):
    def test_while_keystone_is_down_only_cached_tokens_are_accepted(self):
        known = self.keystone.issue("p", ["member"])
        other = self.keystone.issue("p", ["member"])
        with self.start() as server:
            self.assertEqual(self.status(server, known), 200)
            port = self.keystone.port
            self.keystone.stop()
            self.assert_away(self.fetch(server, other))
            self.assertEqual(self.status(server, known), 200)
            server.logged("keystone_unavailable")
            time.sleep(1.1)  # a change of health is reported once a second
            self.keystone.start(port)
            self.assertEqual(self.status(server, other), 200)
            server.logged("keystone_available")

    def test_a_server_starts_while_keystone_is_gone(self):
        token = self.keystone.issue("p", ["member"])
        port = self.keystone.port
        self.keystone.stop()
        with self.start() as server:
            self.assert_away(self.fetch(server, token))
            self.keystone.start(port)
            self.assertEqual(self.status(server, token), 200)

    def test_a_slow_keystone_is_one_that_is_gone(self):
        token = self.keystone.issue("p", ["member"])
        self.keystone.shut()
        with self.start("--keystone-timeout-ms", "300") as server:
            self.assert_away(self.fetch(server, token))
            self.assertIn("imeout", server.logged("keystone_unavailable"))
            self.keystone.open()
            self.assertEqual(self.status(server, token), 200)

    def test_wrong_responses_of_keystone_deny_access(self):
        token = self.keystone.issue("p", ["admin"])
        good = Keystone.document("p", ["admin"])

        def lie(**more):
            document = dict(good["token"], **more)
            return {"token": {k: v for k, v in document.items() if v != "gone"}}

        def endless_body(handler):
            handler.send_response(200)
            handler.send_header("Connection", "close")
            handler.end_headers()
            self.pour(handler, b'{"token":{"x":"' + 65536 * b"x")

        def endless_head(handler):
            self.pour(handler, b"HTTP/1.1 200 OK\r\n" + 1000 * (b"X-A: " + 60 * b"x" + b"\r\n"))

        def drip(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            for _ in range(100):
                handler.wfile.write(b" ")
                handler.wfile.flush()
                time.sleep(0.1)

        def raw(data):
            def write(handler):
                handler.wfile.write(data)
                handler.close_connection = True
            return write

        def say(code, document, *headers):
            return lambda handler: handler.reply(code, document, headers)

        elsewhere = Keystone()
        self.addCleanup(elsewhere.stop)
        lies = {
            "no JSON": say(200, b"<html>"), "nothing": say(200, b""),
            "half": say(200, b'{"token":{'), "deep": say(200, 500000 * b"["),
            "no end": say(200, lie(expires_at="gone")), "null": say(200, lie(expires_at=None)),
            "a number": say(200, lie(expires_at=4e9)), "roles": say(200, lie(roles="admin")),
            "roles of text": say(200, lie(roles=["admin"])),
            "no user": say(200, lie(user="gone")), "project": say(200, lie(project="p")),
            "empty project": say(200, lie(project={"id": ""})),
            "created": say(201, good), "no content": say(204, b""),
            "redirect": say(302, b"", ("Location", elsewhere.url + "/auth/tokens")),
            "permanent": say(308, good, ("Location", elsewhere.url + "/auth/tokens")),
            "error": say(500, good), "unavailable": say(503, good), "teapot": say(418, good),
            "endless body": endless_body, "endless head": endless_head, "drip": drip,
            "garbage": raw(b"\0\1\2\3 garbage\r\n\r\n"), "old": raw(b'{"token":{}}'),
            "closed": raw(b""), "short": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"),
        }
        with self.start("--keystone-timeout-ms", "1500") as server:
            for name, behave in lies.items():
                with self.subTest(lie=name):
                    self.keystone.behave = behave
                    self.assert_away(self.fetch(server, token))
            self.assertEqual(elsewhere.questions(), 0)
            self.keystone.behave = say(200, lie(expires_at="2001-01-01T00:00:00.000000Z"))
            self.assertEqual(self.status(server, token), 401)
            self.keystone.behave = None
            eventually(lambda: self.status(server, token) == 200)

    @staticmethod
    def pour(handler, data):
        """Writes until it is not taken any more."""
        handler.close_connection = True
        try:
            while True:
                handler.wfile.write(data)
        except OSError:
            pass

    def test_the_service_token_can_be_renewed(self):
        tokens = [self.keystone.issue("p", ["member"]) for _ in range(3)]
        with self.start() as server:
            self.assertEqual(self.status(server, tokens[0]), 200)
            self.keystone.service = "renewed"
            self.assert_away(self.fetch(server, tokens[1]))
            server.logged("keystone_refuses_service_token")
            self.write_service("renewed")
            self.assertEqual(self.status(server, tokens[1]), 200)
            os.unlink(self.path)
            self.assert_away(self.fetch(server, tokens[2]))
            self.write_service("renewed")
            os.chmod(self.path, 0o644)
            self.assert_away(self.fetch(server, tokens[2]))
            os.chmod(self.path, 0o600)
            self.assertEqual(self.status(server, tokens[2]), 200)

    def test_tokens_of_a_wrong_form_are_not_verified(self):
        with self.start("--max-header-size", "32K") as server:
            for token in (9000 * "a", "a b", "a\tb", "ä"):
                with self.subTest(token=token[:10]):
                    self.assertEqual(self.status(server, token), 401)
            self.assertEqual(self.keystone.questions(), 0)
            self.assertEqual(self.status(server, 8192 * "a"), 401)
            self.assertEqual(self.keystone.questions(), 1)

    def test_many_made_up_tokens_cost_bounded_memory(self):
        good = self.keystone.issue("p", ["member"])
        with self.start("--keystone-cache-tokens", "16") as server, server.connect() as client:
            self.assertEqual(self.status(server, good), 200)
            for i in range(3000):
                client.send(request("GET", "/v2/queues", headers=["X-Auth-Token: m%d" % i]))
                self.assertEqual(client.response().status, 401)
            self.assertEqual(self.status(server, good), 200)
            self.assertEqual(self.keystone.questions(good), 1)


class Options(KeystoneCase):
    def assert_refused(self, options, *why):
        ended = run("--listen", "127.0.0.1:0", *options)
        self.assertEqual(ended.returncode, 2, ended.stderr)
        for part in why:
            self.assertIn(part, ended.stderr)

    def test_invalid_values_are_refused(self):
        for url in ("keystone", "ftp://k/v3", "http:///v3", "http://k:5000", "http://k/v3/",
                    "http://user@k/v3", "http://k/v3?x/v3", "http://k k/v3", "HTTP://k/v3"):
            with self.subTest(url=url):
                self.assert_refused([*self.options(), "--keystone-url", url], "keystone_url")
        for table, why in (("admin", "NAME=ROLE"), ("admin=boss", 'the role "boss" does not exist'),
                           ("=admin", "NAME=ROLE")):
            self.assert_refused([*self.options(), "--keystone-roles", table],
                                "keystone_roles", why)
        os.chmod(self.path, 0o644)
        self.assert_refused(self.options(), "chmod o-rwx")
        for text in ("", "two words", "two\nlines", 9000 * "x"):
            self.write_service(text)
            self.assert_refused(self.options(), "must contain one token")
        os.unlink(self.path)
        self.assert_refused(self.options(), "No such file")

    def test_without_a_configured_keystone_no_token_is_verified(self):
        ended = run("--check-config", "--keystone-url", "nonsense", "--keystone-roles", "none")
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_the_configuration_is_checked_without_a_keystone(self):
        url = "http://127.0.0.1:%d/v3" % unused_port()
        ended = run("--check-config", *self.options(), "--keystone-url", url)
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_without_libcurl_it_does_not_start(self):
        for name in ("libcurl-gnutls.so.4", "libcurl.so.4"):
            with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
                file.write("no library\n")
        blind = environment(LD_LIBRARY_PATH=self.folder)
        ended = run("--listen", "127.0.0.1:0", *self.options(), env=blind)
        self.assertEqual(ended.returncode, 2, ended.stderr)
        self.assertIn("auth keystone needs libcurl (Debian: libcurl3-gnutls or libcurl4)",
                      ended.stderr)
        with Server(env=blind) as server:  # it is not missed where it is not needed
            self.assertEqual(server.fetch("GET", "/v2/queues").status, 200)

    def test_an_address_that_others_reach_is_fine(self):
        with self.start(listen="0.0.0.0:0") as server:
            self.assertIn("0.0.0.0", server.ready)

    def libraries(self, server):
        with open("/proc/%d/maps" % server.process.pid, encoding="utf-8") as maps:
            return maps.read()

    def test_libcurl_is_loaded_when_it_is_needed(self):
        with self.start() as server:
            self.assertIn("libcurl", self.libraries(server))
        with Server() as server:
            self.assertNotIn("libcurl", self.libraries(server))


if __name__ == "__main__":
    unittest.main()
