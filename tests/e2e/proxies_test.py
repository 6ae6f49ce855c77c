#!/usr/bin/python3
"""claimd behind nginx, HAProxy, Apache and Caddy, configured as docs/operations.md prints
("Behind a proxy").

    proxies_test.py CLAIMD [CLASS...]
"""

from base64 import b64encode
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import CLAIMD, Server, Viewer, Workshop, eventually, post, request, run  # noqa: E402
from page import NAME, PageCase, PageServer  # noqa: E402
from proxies import Apache, Caddy, HAProxy, Nginx, free_port, messages, options, page, printed, suspended  # noqa: E402

JSON = "Content-Type: application/json"
LONG = 40  # seconds that a worker waits, at most
STRANGER = "127.0.0.9"  # the address of a client that is no proxy


def claim(queue, ttl=60, wait=None):
    headers = (JSON, "Prefer: wait=%d" % wait) if wait else (JSON,)
    return request("POST", "/v2/queues/%s/claims" % queue, b'{"ttl":%d,"grace":1}' % ttl, headers)


def skip_without(kind):
    if shutil.which(kind.program) is None:
        raise unittest.SkipTest("%s is not installed (scripts/packages install test)" % kind.program)


class Behind:
    """One server and one proxy for all tests of a class."""

    kind = None

    @classmethod
    def setUpClass(cls):
        skip_without(cls.kind)
        shop = Workshop()
        cls.addClassCleanup(shop.close)
        cls.server = PageServer("--access-log=true", "--identity-stub", "--ci", "--ci-short", *options(shop.folder.name))
        cls.addClassCleanup(cls.server.stop)
        cls.proxy = cls.kind(cls.server, shop.signed("queues", names="DNS:localhost,DNS:" + NAME))
        cls.addClassCleanup(cls.proxy.close)

    def setUp(self):
        self.queue = self.id().rpartition(".")[2].replace("test_", "")[:60]

    def fetch(self, data):
        """The response of the server itself."""
        with self.server.connect() as client:
            client.send(data)
            return client.response()

    def post_one(self):
        self.assertEqual(self.fetch(post(self.queue)).status, 201)

    def claimed(self):
        return self.server.stats(self.queue)[0]

    def waits(self, reason="message"):
        eventually(lambda: suspended(self.server, reason) == 1)

    def left(self, reason="message"):
        eventually(lambda: suspended(self.server, reason) == 0)

    # ------------------------------------------------------------------ requests

    def test_post_claim_and_delete(self):
        body = json.dumps({"messages": [{"body": "x" * 200_000}]}).encode()
        with self.proxy.connect() as client:
            for headers in (), ("Expect: 100-continue",):
                client.send(post(self.queue, body, headers=(JSON, *headers)))
                response = client.response()
                while response.status == 100:
                    response = client.response()
                self.assertEqual(response.status, 201, response)
        with self.proxy.connect() as client:
            client.send(request("POST", "/v2/queues/%s/messages" % self.queue,
                                headers=(JSON, "Transfer-Encoding: chunked")) +
                        b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
            self.assertEqual(client.response().status, 201)
        with self.proxy.connect() as client:
            client.send(claim(self.queue))
            found = messages(client.response())
            self.assertEqual(len(found), 3)
            for message in found:
                client.send(request("DELETE", message["href"]))
                self.assertEqual(client.response().status, 204)
        self.assertEqual(self.server.stats(self.queue)[2], 0)

    def test_a_message_that_comes_reaches_the_waiting_worker(self):
        with self.proxy.connect() as worker:
            worker.send(claim(self.queue, wait=LONG))
            self.waits()
            self.post_one()
            self.assertEqual(worker.response().status, 201)

    def test_a_refusal_of_claimd_is_passed_on(self):
        response = self.proxy.fetch("POST", "/v2/queues/%s/messages" % self.queue, b"x" * 2_000_000, headers=(JSON,))
        self.assertEqual((response.status, json.loads(response.body)["title"]), (400, "Invalid API request"))

    def test_headers_of_a_login_do_not_matter(self):
        response = self.proxy.fetch("GET", "/v2/queues", headers=(
            "Authorization: Bearer " + "e" * 1200, "X-Forwarded-User: ann", "X-Forwarded-Email: ann@example.org",
            "X-Auth-Request-User: ann", "X-Auth-Request-Groups: a,b", "Cookie: _oauth2_proxy=" + "c" * 900))
        self.assertEqual(response.status, 200, response)

    def test_health(self):
        for path in "/livez", "/readyz":
            self.assertEqual(self.proxy.fetch("GET", path).status, 200)
        self.post_one()
        self.server.signal(signal.SIGUSR1)
        try:
            eventually(lambda: self.proxy.fetch("GET", "/readyz").status == 503)
            with self.proxy.connect() as worker:  # the backlog goes on
                worker.send(claim(self.queue))
                self.assertEqual(worker.response().status, 201)
        finally:
            self.server.signal(signal.SIGUSR1)
        eventually(lambda: self.proxy.fetch("GET", "/readyz").status == 200)

    def test_the_log_has_the_address_of_the_client(self):
        for lie in (), ("X-Forwarded-For: 203.0.113.9",):
            response = self.proxy.fetch("GET", "/v2/queues", source=STRANGER, headers=lie)
            line = self.server.logged("request_id=" + response.headers["x-request-id"])
            self.assertRegex(line, r" client=%s[: ]" % re.escape(STRANGER))
        self.post_one()
        self.proxy.fetch("POST", "/claimd/queues/%s/pause" % self.queue, source=STRANGER, headers=("Claimd-UI: 1",))
        self.assertRegex(self.server.logged(" audit "), r" client=%s[: ]" % re.escape(STRANGER))

    def test_links_below_a_path(self):
        self.post_one()
        for prefix in "/mq", "":
            path = prefix + "/v2/queues/%s/messages" % self.queue
            response = self.proxy.fetch("POST", path, b'{"messages":[{"body":1}]}',
                                        headers=(JSON, "X-Forwarded-Prefix: /wrong"))
            self.assertEqual(response.status, 201, response)
            self.assertTrue(response.headers["location"].startswith(path + "?ids="), response)
            response = self.proxy.fetch("GET", path + "?echo=true")
            self.assertTrue(messages(response)[0]["href"].startswith(path + "/"), response)
            response = self.proxy.fetch("GET", prefix + "/identity/v3", headers=("X-Forwarded-Proto: http",))
            self.assertIn('"https://%s%s/identity/v3' % (NAME, prefix), response.body.decode())

    def test_commands_work_below_a_path(self):
        """They follow no link out of it."""
        self.post_one()
        url = ("--url", self.proxy.url.replace(NAME, "localhost") + "/mq", "--ca", self.proxy.pair.certificate, "--project", "p")
        for words in ("work", self.queue, *url, "--exit-when-empty", "--", "true"), ("queues", *url):
            ended = run(*words)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertEqual(self.server.stats(self.queue), (0, 0, 0))

    # ------------------------------------------------------------------ leaving

    def leaves(self, leave):
        """A worker that waits leaves. The next message is for another one, at the price that the page names."""
        self.fetch(request("PUT", "/v2/queues/" + self.queue))
        leave()
        if self.proxy.notices:
            self.left()
            self.post_one()
            response = self.fetch(claim(self.queue))
        else:
            self.post_one()
            eventually(lambda: self.claimed() == 1)
            response = self.fetch(claim(self.queue, wait=LONG))
        self.assertEqual(response.status, 201, response)
        self.fetch(request("DELETE", messages(response)[0]["href"]))

    def test_a_worker_that_leaves_over_http_1(self):
        def shut(client):
            socket.socket.shutdown(client.socket, socket.SHUT_WR)
        for name in "close", "reset", "close its sending half":
            with self.subTest(name), self.proxy.connect() as worker:
                def leave(worker=worker, name=name):
                    worker.send(claim(self.queue, ttl=1, wait=LONG))
                    self.waits()
                    {"close": worker.close, "reset": worker.reset}.get(name, lambda: shut(worker))()
                self.leaves(leave)

    def test_a_worker_that_leaves_over_http_2(self):
        def leave():
            with self.proxy.curl("/v2/queues/%s/claims" % self.queue, "--data", '{"ttl":1,"grace":1}',
                                 headers=(JSON, "Prefer: wait=%d" % LONG)) as worker:
                self.waits()
                worker.kill()
        self.leaves(leave)

    def test_a_reload_leaves_waiting_workers_alone(self):
        with self.proxy.connect() as worker:
            worker.send(claim(self.queue, wait=LONG))
            self.waits()
            self.proxy.reload()
            eventually(lambda: self.proxy.fetch("GET", "/livez").status == 200)
            self.post_one()
            self.assertEqual(worker.response().status, 201)

    # ------------------------------------------------------------------ the page

    def follows(self, viewer, events):
        """Events arrive while the stream is open, and its end arrives at the server."""
        def ready():
            rows = viewer.event()[1]["queues"]
            return sum(row["ready"] for row in rows if row["name"] == self.queue)
        self.assertEqual(ready(), 0)
        for count in range(events):
            self.post_one()
            eventually(lambda count=count: ready() == count + 1)

    def test_a_stream_is_live(self):
        with Viewer(self.proxy, "/mq/claimd/queues") as viewer:
            self.follows(viewer, 2)
        self.left("stream")

    def test_a_stream_is_live_over_http_2(self):
        with self.proxy.curl("/claimd/queues", "--no-buffer", headers=("Accept: text/event-stream",)) as curl:
            def event():
                line = next(line for line in curl.stdout if line.startswith("data: "))
                return "message", json.loads(line[len("data: "):])
            curl.event = event
            self.follows(curl, 1)
            curl.kill()
        self.left("stream")


class Restart(unittest.TestCase):
    """A post while claimd restarts is neither refused nor repeated."""

    def test_haproxy(self):
        skip_without(HAProxy)
        with Workshop() as shop:
            place = "127.0.0.1:%d" % free_port()
            server = Server(*options(shop.folder.name), listen=place)
            with HAProxy(server, shop.signed("queues", names="DNS:" + NAME)) as proxy:
                self.assertEqual(proxy.fetch("GET", "/livez").status, 200)
                server.stop()
                with proxy.curl("/v2/queues/q/messages", "--data", '{"messages":[{"body":1}]}',
                                "--write-out", "%{http_code}", "--output", os.devnull, headers=(JSON,)) as producer:
                    with Server(*options(shop.folder.name), listen=place) as server:
                        self.assertEqual(producer.stdout.read(), "201")
                        self.assertEqual(server.stats("q")[2], 1)


class BehindNginx(Behind, unittest.TestCase):
    kind = Nginx


class BehindHAProxy(Behind, unittest.TestCase):
    kind = HAProxy


class BehindApache(Behind, unittest.TestCase):
    kind = Apache


class BehindCaddy(Behind, unittest.TestCase):
    kind = Caddy


class PageBehind(PageCase):
    """The page in a browser, below a path of a proxy."""

    @classmethod
    def setUpClass(cls):
        cls.shop = Workshop()
        cls.addClassCleanup(cls.shop.close)
        cls.options = (*PageCase.options, *options(cls.shop.folder.name), *cls.access())
        super().setUpClass()
        cls.pair = cls.shop.signed("queues", names="DNS:localhost,DNS:" + NAME)

    @classmethod
    def access(cls):
        return ()

    def behind(self, kind, **more):
        skip_without(kind)
        proxy = kind(self.server, self.pair, **more)
        self.addCleanup(proxy.close)
        self.addCleanup(self.browser.get, "about:blank")
        self.page = proxy.url + "/mq/claimd/ui/"
        return proxy

    def is_live(self):
        """It shows events as they come, and acts."""
        self.until_text("#connection", "live")
        self.until_cell("jobs", "ready", "1")
        self.api.post("jobs", 2)
        self.until_cell("jobs", "ready", "2")
        self.click(self.row("jobs") + " a")
        self.purge()
        self.confirm("jobs")
        self.until(lambda: self.api.total("jobs") == 0, "the queue is not purged")
        self.requests()
        self.assertTrue(all(url.startswith(self.page.partition("claimd/ui/")[0])
                            for url in self.urls if url.startswith("http")), self.urls)


class Page(PageBehind):
    def shows(self, kind):
        self.behind(kind)
        self.api("POST", "/claimd/reset")
        self.api.post("jobs", 1)
        self.open("#/queues")
        self.is_live()

    def test_behind_nginx(self):
        self.shows(Nginx)

    def test_behind_haproxy(self):
        self.shows(HAProxy)

    def test_behind_apache(self):
        self.shows(Apache)

    def test_behind_caddy(self):
        self.shows(Caddy)


    def login_ends(self, name, response):
        """The proxy gives this response to each request."""
        ended = self.shop.path(name)
        self.behind(Nginx, edit=lambda text: text.replace(
            "server_name", "if (-f %s) { return %s; } server_name" % (ended, response)))
        self.api.create("jobs")
        self.open("#/queues")
        self.until_text("#connection", "live")
        self.shop.file(name, "", mode=0o644)
        self.js("location.hash = '#/queue/shop/jobs'")
        self.until_text("main", "Reload the page")

    def test_a_proxy_redirects_when_its_login_ends(self):
        self.login_ends("redirects", "302 /mq/login")

    def test_a_proxy_refuses_when_its_login_ends(self):
        self.login_ends("refuses", "401")


class PageWithLogins(PageBehind):
    """The proxy requires a password, and claimd a token."""

    @classmethod
    def access(cls):
        tokens = cls.shop.path("tokens")
        cls.token = subprocess.run([CLAIMD, "token", "new", "boss", "--role", "admin", "--tokens", tokens],
                                   stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        return "--auth=tokens", "--tokens=" + tokens

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.api.headers = {"X-Auth-Token": cls.token}

    def test_it_is_live(self):
        users = self.shop.file("users", "ann:{PLAIN}secret\n", mode=0o644)
        self.behind(Nginx, edit=lambda text: text.replace(
            "server_name", 'auth_basic "proxy"; auth_basic_user_file %s; server_name' % users))
        self.api.post("jobs", 1)
        # As a person who logs in. Chromium sends the request twice: it forgets a password when claimd responds with 401.
        self.browser.execute_cdp_cmd("Network.enable", {})
        self.browser.execute_cdp_cmd("Network.setExtraHTTPHeaders",
                                     {"headers": {"Authorization": "Basic " + b64encode(b"ann:secret").decode()}})
        self.addCleanup(self.browser.execute_cdp_cmd, "Network.setExtraHTTPHeaders", {"headers": {}})
        self.browser.get(self.page + "#/queues")
        self.type("#login-token", self.token)
        self.click("#login-send")
        self.is_live()


class Printed(unittest.TestCase):
    """The numbers in the configurations fit the defaults of claimd."""

    def test_timeouts(self):
        defaults = dict(line.split(" = ", 1) for line in
                        run("--print-config").stdout.splitlines() if " = " in line)
        longest, idle = int(defaults["max_wait"]), int(defaults["idle_seconds"])
        self.assertGreater(idle, 60)  # after which nginx and many load balancers close an idle connection
        self.assertIn("`max_wait` (%d s)" % longest, page())
        self.assertIn("`idle_seconds` (%d s)" % idle, page())
        for language, word in (("nginx", r"proxy_read_timeout (\d+)s"), ("haproxy", r"timeout client (\d+)s"),
                               ("haproxy", r"timeout server (\d+)s"), ("apache", r"ProxyTimeout (\d+)")):
            self.assertGreater(int(re.search(word, printed(language))[1]), longest, word)
        for language, word in (("nginx", r"keepalive_timeout (\d+)s"), ("apache", r"ttl=(\d+)"),
                               ("caddy", r"keepalive (\d+)s")):
            self.assertLess(int(re.search(word, printed(language))[1]), idle, word)


if __name__ == "__main__":
    unittest.main()
