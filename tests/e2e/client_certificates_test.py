#!/usr/bin/python3
"""Certificates of clients: the access that one gives, and what may stand beside it.

    client_certificates_test.py CLAIMD
"""

import os
import signal
import ssl
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import (Client, Server, Workshop, environment, post, request,  # noqa: E402
                     run, trusting)

SHOP = Workshop()
unittest.addModuleCleanup(SHOP.close)
SERVER = SHOP.signed("server")
CA = SHOP.signed("authority", ca=True)
STRANGE = SHOP.signed("strange-authority", ca=True, subject="/CN=authority")  # the same name
FOR_CLIENTS = {"usage": "clientAuth"}
TOKEN = "claimd_" + "5" * 64  # no client's

LINES = """# name role projects certificate
worker1 worker p dns:Worker1.example
worker1 worker p email:worker1@example.org
worker1 worker p uri:spiffe://example.org/worker1
pages admin * subject:CN=Pages and more,O=Example
looker reader p dns:looker.example
"""


def options(auth="tokens", tokens="", lines=LINES):
    return (*SERVER.options(), "--tls-client-ca", CA.certificate, "--auth", auth,
            "--tokens", SHOP.file("tokens", tokens),
            "--certificates", SHOP.file("certificates", lines))


class Known(Server):
    """A server that asks for certificates of the authority."""

    def __init__(self, *more, listen="tls:127.0.0.1:0", **how):
        super().__init__(*options(**how), *more, listen=listen)

    def connect(self, pair=None, version=None):
        return Client(*self.endpoint(), trusting(SERVER.certificate, version, pair))

    def status(self, pair=None, data=None, **more):
        with self.connect(pair, **more) as client:
            client.send(data or request("GET", "/v2/queues"))
            return client.response().status

    def description(self, pair=None, data=None):
        with self.connect(pair) as client:
            client.send(data or request("GET", "/v2/queues"))
            response = client.response()
            return response.status, response.body.decode()


def client(name, by=CA, **more):
    return SHOP.signed(name, by=by, **{**FOR_CLIENTS, **more})


WORKER = client("worker1", names="DNS:other.example,DNS:WORKER1.example")


class LetIn(unittest.TestCase):
    def test_alternative_names_and_subjects_select_a_line(self):
        good = (WORKER, client("by-email", names="email:worker1@example.org"),
                client("by-uri", names="URI:spiffe://example.org/worker1"),
                client("by-subject", names=None, subject="/O=Example/CN=Pages and more"),
                client("any-usage", names="DNS:worker1.example", usage=None))
        with Known() as server:
            for pair in good:
                for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                    with server.connect(pair, version) as one:
                        for _ in range(3):  # it is looked at once, and counts for all
                            one.send(request("POST", "/v2/queues/q/claims", b"{}"))
                            self.assertEqual(one.response().status, 204)

    def test_a_certificate_has_the_roles_of_its_line(self):
        looker = client("looker", names="DNS:looker.example")
        with Known() as server:
            self.assertEqual(server.status(looker), 200)
            self.assertEqual(server.status(looker, post("q")), 403)
            self.assertEqual(server.status(WORKER, post("q")), 403)
            away = b"GET /v2/queues HTTP/1.1\r\nHost: localhost\r\nX-Project-ID: r\r\nClient-ID: " \
                   b"3381af92-2b9e-11e3-b191-71861300734c\r\n\r\n"
            status, body = server.description(WORKER, away)
            self.assertEqual(status, 403)
            self.assertIn('the certificate is not for the project \\"r\\"', body)
            self.assertEqual(server.status(WORKER, away.replace(b"X-Project-ID: r\r\n", b"")), 200)

    def test_without_tokens_there_is_no_file_of_them(self):
        with Known("--tokens", SHOP.path("nowhere"), auth="certificates") as server:
            self.assertEqual(server.status(WORKER), 200)
            self.assertEqual(server.status(), 401)
            self.assertEqual(server.status(
                None, request("GET", "/v2/queues", headers=("X-Auth-Token: " + TOKEN,))), 401)


class KeptOut(unittest.TestCase):
    def test_every_kind_of_certificate_that_is_not_good(self):
        names = {"names": "DNS:worker1.example"}
        middle = client("no-authority", ca=False, **names)
        bad = {"by itself": SHOP.signed("self", **names, **FOR_CLIENTS),
               "expired": client("late", days=-1, **names),
               "of another authority": client("foreign", by=STRANGE, **names),
               "for servers only": client("server-only", **{**names, "usage": "serverAuth"}),
               "by one who must not": client("below", by=middle, **names)}
        with Known() as server:
            for what, pair in bad.items():
                for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                    self.assertEqual(server.status(pair, version=version), 401, what)
                self.assertIn("the certificate is not valid", server.description(pair)[1], what)
            self.assertEqual(server.status(WORKER), 200)

    def test_no_certificate_and_an_unlisted_one(self):
        with Known() as server:
            status, body = server.description()
            self.assertEqual(status, 401)
            self.assertIn("a certificate or a token is required", body)
            for pair in (client("unmapped", names="DNS:worker2.example"),
                         client("wildcard", names="DNS:*.example"),
                         client("nameless", names=None)):
                status, body = server.description(pair)
                self.assertEqual(status, 401)
                self.assertIn("no entry of the file of certificates matches", body)
            with server.connect() as one:
                one.send(request("GET", "/readyz"))
                self.assertEqual(one.response().status, 200)

    def test_where_there_is_no_tls_there_is_no_certificate(self):
        with Known(listen="127.0.0.1:0,tls:127.0.0.1:0") as server:
            with Client(*server.endpoint()) as plain:
                plain.send(request("GET", "/v2/queues"))
                self.assertEqual(plain.response().status, 401)


    def test_a_page_of_another_site_whose_browser_has_one(self):
        """It could send a claim of version 1, which needs no header; the browser adds the rest."""
        claim = (b"POST /v1/queues/q/claims HTTP/1.1\r\nHost: queues.example\r\nOrigin: %s\r\n"
                 b"Content-Type: text/plain\r\nContent-Length: 25\r\n\r\n"
                 b'{"ttl": 300, "grace": 60}')
        with Known() as server:
            for origin in (b"https://other.example", b"null"):
                self.assertEqual(server.status(WORKER, claim % origin), 403)
            self.assertEqual(server.status(WORKER, claim % b"https://queues.example"), 204)


class Beside(unittest.TestCase):
    def test_a_token(self):
        tokens = SHOP.path("made-tokens")
        made = run("token", "new", "t", "--role", "admin", "--projects", "p", "--tokens", tokens,
                   env=environment())
        self.assertEqual(made.returncode, 0, made.stderr)
        token = next(word for word in made.stdout.split() if word.startswith("claimd_"))
        with open(tokens, encoding="ascii") as file:
            lines = file.read()

        def shown(value):
            return request("GET", "/v2/queues", headers=("X-Auth-Token: " + value,))
        with Known(tokens=lines) as server:
            self.assertEqual(server.status(None, shown(token)), 200)
            for value in (token, TOKEN, "x"):
                status, body = server.description(WORKER, shown(value))
                self.assertEqual(status, 401)
                self.assertIn("both a certificate and a token", body)
            # One that is no credential here does not take anything away from the token.
            self.assertEqual(server.status(client("guest", names=None), shown(token)), 200)
            self.assertEqual(server.status(client("guest2", by=STRANGE), shown(token)), 200)
            self.assertEqual(server.status(client("guest3", names=None), shown(TOKEN)), 401)

    def test_another_list(self):
        with Known() as server, server.connect(WORKER) as one:
            def status():
                one.send(request("GET", "/v2/queues"))
                return one.response().status
            self.assertEqual(status(), 200)
            SHOP.file("certificates", "worker1 worker p dns:worker1.example\nnonsense\n")
            server.signal(signal.SIGHUP)
            self.assertIn(":2: a line must be NAME ROLE PROJECTS", server.logged("reload_failed"))
            self.assertEqual(status(), 200)
            SHOP.file("certificates", "other worker p dns:other\n")
            server.signal(signal.SIGHUP)
            server.logged("reloaded")
            self.assertEqual(status(), 401)  # on the connection that is there
            SHOP.file("certificates", LINES)
            os.remove(SHOP.path("tokens"))
            server.signal(signal.SIGHUP)
            server.logged("No such file")
            self.assertEqual(status(), 401)  # all or nothing


class Options(unittest.TestCase):
    def complains(self, words, *more):
        for check in ((), ("--check-config",)):
            ended = run("--listen", "tls:127.0.0.1:0", *SERVER.options(), *more, *check)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertIn(words, ended.stderr)

    def test_options_that_need_each_other(self):
        tokens = ("--auth", "tokens", "--tokens", SHOP.file("tokens", ""))
        ca = ("--tls-client-ca", CA.certificate)
        lines = ("--certificates", SHOP.file("certificates", LINES))
        self.complains("tls_client_ca has no effect without certificates", *tokens, *ca)
        self.complains("certificates has no effect without tls_client_ca", *tokens, *lines)
        self.complains("certificates has no effect without auth", *ca, *lines)
        self.complains("auth certificates needs", "--auth", "certificates")
        self.complains("tls_client_ca: %s: the authorities cannot be read" % SERVER.key,
                       *tokens, *lines, "--tls-client-ca", SERVER.key)
        self.complains("No such file", *tokens, *lines, "--tls-client-ca", SHOP.path("none"))
        self.complains("certificates: %s:1: " % SHOP.path("broken"), *tokens, *ca,
                       "--certificates", SHOP.file("broken", "nonsense\n"))


if __name__ == "__main__":
    unittest.main()
