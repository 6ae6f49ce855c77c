#!/usr/bin/python3
"""docs/security.md: its defaults are those of the program, the unit says what the page says of it,
and the page is right about the limits of the protection.

    security_test.py CLAIMD
"""

import contextlib
import json
import os
import re
import shutil
import ssl
import stat
import subprocess
import sys
import tempfile
import unittest
import warnings

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)

from harness import (CLAIMD, PATIENCE_S, Client, Server, Workshop, environment, post,  # noqa: E402
                     request, trusting)

TESTS = os.path.join(HERE, "..")
UNIT = os.path.join(TESTS, "..", "scripts", "packaging", "systemd", "claimd.service.in")
SECRET = "a body that must stay secret"


def page():
    path = os.path.join(TESTS, "..", "docs", "security.md")
    with open(path, encoding="utf-8") as f:
        return f.read()


def print_config(*options):
    shown = subprocess.run([CLAIMD, *options, "--print-config"], capture_output=True, text=True,
                           timeout=PATIENCE_S, check=True, env=environment()).stdout
    return dict(re.findall(r"^([a-z0-9_]+) *= *(.*?) *$", shown, re.M))


def unit():
    with open(UNIT, encoding="utf-8") as f:
        return f.read()


def speaking(version, certificate):
    """A client's context for this version of TLS and no other, however old."""
    context = trusting(certificate)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = version
    return context


def server_without_tokens(folder, **more):
    """A server with a list of tokens that is empty."""
    tokens = os.path.join(folder, "tokens")
    os.close(os.open(tokens, os.O_WRONLY | os.O_CREAT, 0o600))
    return Server("--auth", "tokens", "--tokens", tokens, **more)


class Page(unittest.TestCase):
    def test_the_defaults_are_those_of_the_program(self):
        shown = print_config()
        rows = re.findall(r"^\| `([a-z0-9_]+)` \| `(.*?)` \|", page(), re.M)
        self.assertGreater(len(rows), 10)
        for name, default in rows:
            with self.subTest(option=name):
                self.assertEqual(shown[name], default)

    def test_routes_that_are_said_to_be_for_every_client_are(self):
        everybody, = re.findall(r"^- \*\*(`.*`) are for everybody", page(), re.M)
        paths = [path.split()[-1] for path in re.findall(r"`([^`]*)`", everybody)]
        self.assertEqual(len(paths), 5)
        with tempfile.TemporaryDirectory() as folder, server_without_tokens(folder) as server:
            for path in paths:
                self.assertIn(server.fetch("GET", path).status, (200, 204, 300), path)
            for path in ("/v2/ping", "/metrics", "/v2/", "/v1.1/ping"):
                self.assertEqual(server.fetch("GET", path).status, 401, path)

    def test_versions_of_tls_are_those_that_are_named(self):
        named = re.search(r"^\| TLS (1\.\d) and (1\.\d) only,", page(), re.M).groups()
        spoken = set()
        with contextlib.closing(Workshop()) as shop:
            pair = shop.signed("server")
            with Server(*pair.options(), listen="tls:127.0.0.1:0") as server:
                for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1,
                                ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                    context = speaking(version, pair.certificate)
                    with contextlib.suppress(ssl.SSLError, ConnectionResetError), \
                            Client(*server.endpoint(), context=context) as client:
                        spoken.add(client.socket.version())
        self.assertEqual(spoken, {"TLSv" + name for name in named})


class Unit(unittest.TestCase):
    def named(self):
        """The settings that the table names, in their order."""
        table, = re.findall(r"^\| the unit says .*\n\|---\|---\|\n((?:\|.*\n)+)", page(), re.M)
        return [name for row in table.splitlines()
                for name in re.findall(r"`(\w+=[^`]*)`", row.split(" | ")[0])]

    def test_the_documented_text_is_the_logged_text(self):
        lines = unit().splitlines()
        self.assertGreater(len(self.named()), 20)
        for name in self.named():
            with self.subTest(setting=name):
                self.assertIn(name, lines)

    def test_all_that_it_forbids_is_named(self):
        sandbox = unit().split("NoNewPrivileges=")[1].split("[Install]")[0]
        forbidden = re.findall(r"^\w+=.*$", "NoNewPrivileges=" + sandbox, re.M)
        self.assertGreater(len(forbidden), 20)
        self.assertEqual(set(forbidden) - set(self.named()), set())

    def exposure(self, name):
        """The figure of systemd for a unit."""
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, name)
            with open(os.path.join(os.path.dirname(UNIT), name + ".in"), encoding="utf-8") as f, \
                    open(copy, "w", encoding="utf-8") as out:
                out.write(f.read().replace("@CMAKE_INSTALL_FULL_BINDIR@", "/usr/bin"))
            shown = subprocess.run(["systemd-analyze", "security", "--offline=true",
                                    "--no-pager", copy], capture_output=True, text=True,
                                   check=True, timeout=PATIENCE_S).stdout
        return re.search(r"exposure level for \S+: ([\d.]+) ", shown)[1]

    def test_the_figures_are_those_of_debian_12(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze")
        about = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True,
                               check=True, timeout=PATIENCE_S).stdout
        if not about.startswith("systemd 252 "):
            self.skipTest("others have other rules")
        words = " ".join(page().split())
        self.assertIn("`systemd-analyze security` gives it %s (" % self.exposure("claimd.service"),
                      words)
        self.assertIn("has an exposure of %s." % self.exposure("claimd-work@.service"), words)

    def test_a_command_of_claimd_work_gets_no_rights(self):
        """And no system calls that only an administrator needs, whatever the user of the unit."""
        with open(os.path.join(os.path.dirname(UNIT), "claimd-work@.service.in"),
                  encoding="utf-8") as f:
            lines = f.read().splitlines()
        for setting in ("NoNewPrivileges=yes", "CapabilityBoundingSet=", "LimitCORE=0",
                        "SystemCallArchitectures=native", "SystemCallErrorNumber=EPERM"):
            self.assertIn(setting, lines)
        refused, = re.findall("^SystemCallFilter=~(.*)$", "\n".join(lines), re.M)
        for group in ("@clock", "@debug", "@module", "@mount", "@raw-io", "@reboot", "@swap"):
            self.assertIn(group, refused.split())
        # Compilers at run time, the tools of a shell and the memory of the machine stay.
        self.assertNotIn("@resources", refused)
        self.assertFalse([line for line in lines if line.startswith(
            ("MemoryDenyWriteExecute=", "ProcSubset="))])


class Files(unittest.TestCase):
    def setUp(self):
        scratch = self.enterContext(tempfile.TemporaryDirectory())
        self.journal = os.path.join(scratch, "journal")
        self.copy = os.path.join(scratch, "copy")

    def fill(self):
        body = json.dumps({"messages": [{"body": SECRET}]}).encode()
        with Server("--journal", self.journal, "--access-log", "--log-level", "debug") as server:
            self.assertEqual(server.fetch("POST", "/v2/queues/q/messages", body,
                                          headers=["X-Auth-Token: " + SECRET]).status, 201)
            self.assertEqual(server.fetch("POST", "/v2/queues/q/claims", b"{}").status, 201)
            server.signal()
            self.assertEqual(server.wait(), 0)
        return "\n".join(server.log)

    def test_neither_bodies_nor_tokens_are_logged(self):
        log = self.fill()
        self.assertIn("path=/v2/queues/q/claims", log)
        self.assertNotIn(SECRET, log)

    def test_the_journal_and_its_backups_are_for_their_owner_alone_and_not_encrypted(self):
        self.fill()
        subprocess.run([CLAIMD, "backup", self.journal, self.copy], check=True,
                       stdout=subprocess.DEVNULL, timeout=PATIENCE_S)
        for folder in (self.journal, self.copy):
            self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
            there = b""
            for name in os.listdir(folder):
                path = os.path.join(folder, name)
                self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
                with open(path, "rb") as f:
                    there += f.read()
            self.assertIn(SECRET.encode(), there)


class EveryResponse(unittest.TestCase):
    """No browser or proxy keeps a response, or takes its body for a script."""

    def test_it_is_not_stored_and_its_type_is_not_guessed(self):
        with Server("--ui", "--ci") as server:
            for words, stored in (
                    (("PUT", "/v2/queues/q", b"{}"), "no-store"),
                    (("POST", "/v2/queues/q/messages", b'{"messages":[{"body":1}]}'), "no-store"),
                    (("POST", "/v2/queues/q/claims", b"{}"), "no-store"),
                    (("GET", "/v2/queues/q/messages?echo=true"), "no-store"),
                    (("HEAD", "/v2/queues/q"), "no-store"),
                    (("DELETE", "/v2/queues/q"), "no-store"),
                    (("GET", "/v2/nowhere"), "no-store"), (("GET", "/livez"), "no-store"),
                    (("GET", "/metrics"), "no-store"), (("GET", "/claimd/dump"), "no-store"),
                    (("GET", "/openapi.json"), "max-age=60"),
                    (("GET", "/claimd/ui/"), "no-cache")):
                with self.subTest(request=words[:2]):
                    headers = server.fetch(*words).headers
                    self.assertEqual(headers.get("cache-control"), stored)
                    self.assertEqual(headers.get("x-content-type-options"), "nosniff")


class NotProtected(unittest.TestCase):
    def fetch(self, server, data):
        with server.connect() as client:
            client.send(data)
            return client.response()

    TERMS = b'{"ttl": 43200, "grace": 60}'
    CLAIM = (b"POST /v1/p/queues/q/claims HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\n"
             b"Content-Type: text/plain\r\nContent-Length: 27\r\n\r\n" + TERMS)

    def test_a_page_of_another_site_is_refused(self):
        """It could send a claim of version 1, which needs no header."""
        with Server() as server:
            self.fetch(server, post("q"))
            for origin in (b"http://other.example", b"null", b"", b"http://127.0.0.1:1",
                           b"127.0.0.1:8888"):
                response = self.fetch(server, self.CLAIM % (b"127.0.0.1:8888", origin))
                self.assertEqual(response.status, 403, origin)
                self.assertFalse([name for name in response.headers
                                  if name.startswith("access-control")])
            own = self.CLAIM % (b"127.0.0.1:8888", b"http://127.0.0.1:8888")
            self.assertEqual(self.fetch(server, own).status, 201)

    def test_a_page_of_another_site_is_refused_what_concerns_all_projects(self):
        with Server("--ci") as server:
            for method, target in (("GET", "/claimd/dump"), ("GET", "/claimd/history"),
                                   ("GET", "/claimd/state"), ("GET", "/metrics"),
                                   ("POST", "/claimd/reset"), ("GET", "/v2/queues")):
                for other in ("Origin: http://other.example", "Sec-Fetch-Site: cross-site"):
                    with self.subTest(target=target, header=other):
                        response = self.fetch(server, request(method, target, headers=[other]))
                        self.assertEqual(response.status, 403, response)
                for own in ("Sec-Fetch-Site: none", "Sec-Fetch-Site: same-origin"):
                    with self.subTest(target=target, header=own):
                        response = self.fetch(server, request(method, target, headers=[own]))
                        self.assertIn(response.status, (200, 204), response)

    def test_a_page_of_another_site_may_link_to_the_page(self):
        with Server("--ui") as server:
            link = request("GET", "/claimd/ui/", headers=["Sec-Fetch-Site: cross-site"])
            self.assertEqual(self.fetch(server, link).status, 200)

    def called(self, host, *words, body=None):
        """A request to a server by this name."""
        data, count = re.subn(rb"\r\nHost: [^\r]*", b"\r\nHost: " + host, request(*words, body))
        self.assertEqual(count, 1)
        return data

    def test_a_page_whose_name_leads_here_is_refused(self):
        """DNS rebinding: its browser takes claimd for the site of the page."""
        with Server("--ci", "--identity-stub", "--allowed-hosts", "mq.example.org") as server:
            for method, target in (("GET", "/v2/queues"), ("GET", "/metrics"), ("GET", "/livez"),
                                   ("POST", "/claimd/reset"), ("GET", "/claimd/history"),
                                   ("POST", "/identity/v3/auth/tokens"), ("OPTIONS", "/v2/queues"),
                                   ("GET", "/nowhere")):
                with self.subTest(method=method, target=target):
                    for host in (b"evil.example:%d" % server.port, b"localhost.evil.example"):
                        response = self.fetch(server, self.called(host, method, target))
                        self.assertEqual(response.status, 403)
                        self.assertIn(b'Host is \\"%s\\"' % host, response.body)
                        self.assertIn(b"allowed_hosts", response.body)
            for host in (b"127.0.0.1:%d" % server.port, b"localhost", b"[::1]:1", b"MQ.example.org"):
                self.assertEqual(self.fetch(server, self.called(host, "GET", "/v2/queues")).status, 200)
            old = b"GET /livez HTTP/1.0\r\n\r\n"
            self.assertEqual(self.fetch(server, old).status, 200)

    def test_a_listener_for_metrics_on_the_loopback_knows_its_names_with_tokens_too(self):
        with tempfile.TemporaryDirectory() as folder, \
                server_without_tokens(folder, listen="metrics:127.0.0.1:0") as server:
            self.assertEqual(self.fetch(server, self.called(b"evil.example", "GET", "/metrics")).status,
                             403)

    def test_the_host_is_not_looked_at_elsewhere(self):
        """With tokens, on a Unix socket, and on addresses of other machines, which have names."""
        with tempfile.TemporaryDirectory() as folder:
            other = self.called(b"other.example", "GET", "/livez")
            with server_without_tokens(folder) as server:
                self.assertEqual(self.fetch(server, other).status, 200)
            for listen in ("unix:" + os.path.join(folder, "socket"), "0.0.0.0:0"):
                with self.subTest(listen=listen), \
                        Server("--insecure-listen", listen=listen) as server:
                    self.assertEqual(self.fetch(server, other).status, 200)

    def test_a_metrics_listener_needs_no_token(self):
        with tempfile.TemporaryDirectory() as folder, \
                server_without_tokens(folder, listen="metrics:127.0.0.1:0") as server:
            self.assertEqual(server.fetch("GET", "/metrics").status, 200)

    def test_the_body_of_a_denied_request_is_read_before_the_response(self):
        with tempfile.TemporaryDirectory() as folder, server_without_tokens(folder) as server, \
                server.connect() as client:
            data = post("q", headers=["Expect: 100-continue"])
            head = data.index(b"\r\n\r\n") + 4
            client.send(data[:head])
            self.assertEqual(client.interim(), 100)
            client.send(data[head:])
            self.assertEqual(client.response().status, 401)

    def test_a_worker_may_end_what_another_one_holds(self):
        with Server() as server:
            self.fetch(server, post("q"))
            self.fetch(server, request("POST", "/v2/queues/q/claims", b"{}"))
            listed = self.fetch(server, request(
                "GET", "/v2/queues/q/messages?echo=true&include_claimed=true"))
            claim = re.search(rb"claim_id=(\w+)", listed.body)[1].decode()
            released = self.fetch(server, request("DELETE", "/v2/queues/q/claims/" + claim))
            self.assertEqual(released.status, 204)
            again = self.fetch(server, request("POST", "/v2/queues/q/claims", b"{}"))
            self.assertEqual(again.status, 201)


if __name__ == "__main__":
    unittest.main()
