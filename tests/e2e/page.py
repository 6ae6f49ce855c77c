"""A browser for the tests of the page: Chromium, without a window.

    class Example(PageCase):
        def test_a_queue_is_shown(self):
            self.post("jobs", "a")
            self.open("#/queues")
            self.until_cell("jobs", "ready", "1")

Each test fails if a script of a message ran, the browser refused something by the Content Security Policy,
a script of the page failed, or a request went to another origin than the server's.
"""

import atexit
import http.client
import http.server
import json
import os
import shutil
import socketserver
import sys
import tempfile
import threading
import unittest
import urllib.parse
import uuid

from selenium import webdriver
from selenium.common import exceptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import HERE, PATIENCE_S, Server  # noqa: E402

CLIENT = str(uuid.UUID(int=0x5eed))
NAME = "queues.example.net"  # of this machine, for the browser: no loopback, as far as it knows
AXE = os.path.join(HERE, "axe", "axe.min.js")

# Runs before the scripts of each document. Violations of frames and reloads go to the log.
WATCH = """
document.addEventListener('securitypolicyviolation', (e) => {
  console.error(`CSP violation: ${e.violatedDirective} ${e.blockedURI} ${e.sample}`);
});
"""

_browser = None


def chromium():
    """The browser of all tests of this process."""
    global _browser  # pylint: disable=global-statement
    if _browser is None:
        profile = tempfile.mkdtemp(prefix="claimd-page-")
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                     "--user-data-dir=" + profile, "--no-first-run", "--disable-sync",
                     "--disable-background-networking", "--disable-component-update",
                     "--disable-default-apps", "--disable-extensions", "--force-device-scale-factor=1",
                     # One process draws all pages: else each page that is opened starts one.
                     "--renderer-process-limit=1", "--disable-site-isolation-trials",
                     "--disable-features=SpareRendererForSitePerProcess,BackForwardCache",
                     "--lang=en-US", "--hide-scrollbars", "--font-render-hinting=none",
                     "--host-resolver-rules=MAP %s 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1" % NAME):
            options.add_argument(word)
        options.set_capability("acceptInsecureCerts", True)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        os.environ.setdefault("TZ", "UTC")
        _browser = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        _browser.set_page_load_timeout(PATIENCE_S)
        _browser.set_script_timeout(PATIENCE_S)
        _browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})

        def close():
            _browser.quit()
            shutil.rmtree(profile, ignore_errors=True)
        atexit.register(close)
    return _browser


class Api:
    """Requests of another client than the page."""

    def __init__(self, server, project="shop", headers=None):
        self.server, self.project, self.headers = server, project, headers or {}

    def __call__(self, method, path, body=None, project=None, expect=None, headers=None):
        """The document of the response, or None. expect: its status; else below 300."""
        project = project or self.project
        sent = {"Client-ID": CLIENT, "X-Project-ID": project.encode(), **self.headers, **(headers or {})}
        text = None if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
        connection = self.server.connect_http()
        try:
            connection.request(method, path, text, sent)
            response = connection.getresponse()
            data = response.read()
        finally:
            connection.close()
        good = response.status < 300 if expect is None else response.status == expect
        if not good:
            raise AssertionError("%s %s: %d %r" % (method, path, response.status, data))
        is_json = "json" in (response.headers["Content-Type"] or "")
        return json.loads(data) if data and is_json else data.decode()

    def load(self, *lines):
        """Loads lines of a dump."""
        text = "".join(json.dumps(line) + "\n" for line in lines)
        self("POST", "/claimd/load", text)

    def create(self, queue, **metadata):
        self("PUT", "/v2/queues/" + queue, metadata)

    def post(self, queue, *bodies, **more):
        """The ids of the posted messages."""
        project = more.pop("project", None)
        found = self("POST", "/v2/queues/%s/messages" % queue,
                     {"messages": [{"body": body, **more} for body in bodies]}, project=project)
        return [href.rpartition("/")[2] for href in found["resources"]]

    def claim(self, queue, limit=1, ttl=300, client=CLIENT, project=None, worker=None):
        """The id of the claim, and the ids of its messages."""
        named = {"Claimd-Worker": worker} if worker else {}
        found = self("POST", "/v2/queues/%s/claims?limit=%d" % (queue, limit), {"ttl": ttl, "grace": 60},
                     project=project, headers={"Client-ID": client.encode(), **named})
        messages = found["messages"]
        return (messages[0]["href"].rpartition("claim_id=")[2],
                [m["id"] for m in messages])

    def finish(self, queue, claim, ids, action="dead_letter", reason=None, client=CLIENT, project=None, worker=None,
               **more):
        item = {**({"reason": reason} if reason else {}), **more}
        named = {"Claimd-Worker": worker} if worker else {}
        self("POST", "/claimd/queues/%s/claims/%s/finish" % (queue, claim),
             {action: [{"id": one, **item} for one in ids]}, project=project,
             headers={"Client-ID": client.encode(), **named})

    def dead_letter(self, queue, *bodies, reason=None, project=None, client=CLIENT, worker=None):
        """Posts messages that become dead letters at once; their ids."""
        ids = []
        for at in range(0, len(bodies), 20):
            self.post(queue, *bodies[at:at + 20], project=project)
            claim, some = self.claim(queue, 20, client=client, project=project, worker=worker)
            self.finish(queue, claim, some, reason=reason, client=client, project=project, worker=worker)
            ids += some
        return ids

    def messages(self, queue, project=None):
        """The messages of a queue, in all states."""
        return self("GET", "/claimd/queues/%s/messages?limit=200" % queue, project=project)["messages"]

    def total(self, queue, project=None):
        return self("GET", "/claimd/queues/%s/messages?limit=1" % queue, project=project)["total"]


class PageServer(Server):
    """A server with the page."""

    def __init__(self, *options, **more):
        super().__init__("--ui=true", *options, **more)

    def connect_http(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE_S)

    @property
    def page(self):
        return "%s:%d/claimd/ui/" % (self.url.rpartition(":")[0], self.port)


class PageCase(unittest.TestCase):
    """Tests with a server of their class, and the browser."""

    options = ("--ci", "--ci-short")

    @classmethod
    def setUpClass(cls):
        cls.browser = chromium()
        cls.server = PageServer(*cls.options)
        cls.api = Api(cls.server)
        cls.page = cls.server.page

    @classmethod
    def tearDownClass(cls):
        cls.browser.get("about:blank")  # no stream is open when the server stops
        cls.server.__exit__(None, None, None)

    def setUp(self):
        self.size()
        self.browser.get("about:blank")
        self.browser.get_log("browser")
        self.browser.get_log("performance")
        self.may_fail = False  # a script may report an error of a request
        self.urls = []

    def run(self, result=None):
        def count():
            return len(result.failures) + len(result.errors)
        before = count()
        super().run(result)
        if count() > before:
            sys.stderr.write("%s: %s\n" % (self.id(), self.report()))

    def report(self):
        """The files to look at after a failure."""
        try:
            lines = [entry["message"] for entry in self.browser.get_log("browser")]
            return "%s\n%s\nbrowser log: %s" % (
                self.browser.current_url, self.js("return document.body.innerText"),
                "\n".join(lines[-20:]))
        except exceptions.WebDriverException as error:
            return str(error)

    def tearDown(self):
        self.assert_clean()

    def requests(self):
        """The URLs that the browser has requested in this test."""
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                params = message["params"]
                self.urls.append(params.get("request", params)["url"])
        return self.urls

    def assert_clean(self):
        self.assertIsNone(self.js("return window.ran ?? null"), "a script of a message ran")
        problems = [entry["message"] for entry in self.browser.get_log("browser")
                    if self.is_problem(entry)]
        self.assertEqual(problems, [])
        foreign = {url for url in self.requests()
                   if not url.startswith((self.page.partition("/claimd/ui/")[0] + "/", "data:", "about:"))}
        self.assertEqual(foreign, set(), "requests to other origins")

    def is_problem(self, entry):
        message = entry["message"]
        if "Content Security Policy" in message or "CSP violation" in message:
            return True
        if entry["source"] == "network":  # a refused request is no fault of the page
            return False
        if "Cross-Origin-Opener-Policy header has been ignored" in message:
            return False  # without TLS
        return entry["level"] == "SEVERE" and not self.may_fail

    # -------------------------------------------------------------- looking

    def open(self, hash_="#/queues"):
        self.assertIsNone(self.js("return window.ran ?? null"), "a script of a message ran")
        self.browser.get("about:blank")  # else only the hash would change
        self.browser.get(self.page + hash_)
        self.until(lambda: self.text("h1"), "the view has no heading")

    def js(self, script, *args):
        return self.browser.execute_script(script, *args)

    def text(self, css):
        """The text of an element, None if there is none."""
        return self.js("return document.querySelector(arguments[0])?.textContent ?? null", css)

    def texts(self, css):
        return self.js("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", css)

    def until(self, is_so, why, patience=PATIENCE_S / 6):
        """Waits until it is so; returns what it returned."""
        def check(_):
            try:
                return is_so()
            except (exceptions.StaleElementReferenceException, exceptions.NoSuchElementException):
                return False
        try:
            return WebDriverWait(self.browser, patience, poll_frequency=0.05).until(check)
        except exceptions.TimeoutException:
            self.fail("%s\n%s" % (why, self.report()))

    def until_text(self, css, part):
        self.until(lambda: part in (self.text(css) or ""), "%s does not show %r" % (css, part))

    def until_gone(self, css):
        self.until(lambda: self.text(css) is None, "%s is still there" % css)

    def find(self, css):
        """An element that can be seen."""
        def seen():
            element = self.browser.find_element(By.CSS_SELECTOR, css)
            return element if element.is_displayed() else None
        return self.until(seen, "%s is not there" % css)

    def is_shown(self, css):
        return any(e.is_displayed() for e in self.browser.find_elements(By.CSS_SELECTOR, css))

    def row(self, queue, project="shop"):
        return "#queues tr[data-queue=%s][data-project=%s]" % (css_text(queue), css_text(project))

    def cell(self, queue, column, project="shop"):
        return self.text("%s [data-col=%s]" % (self.row(queue, project), column))

    def until_cell(self, queue, column, part, project="shop"):
        self.until(lambda: part in (self.cell(queue, column, project) or ""),
                   "%s of %s does not become %s" % (column, queue, part))

    # -------------------------------------------------------------- acting

    def click(self, css):
        def clicked():
            try:
                self.find(css).click()
                return True
            except (exceptions.ElementClickInterceptedException, exceptions.ElementNotInteractableException):
                return False
        self.until(clicked, "%s cannot be clicked" % css)

    def type(self, css, text):
        field = self.find(css)
        field.clear()
        field.send_keys(text)

    def set(self, css, value):
        """Sets a field whose characters a keyboard does not have."""
        self.js("const e = document.querySelector(arguments[0]); e.value = arguments[1];"
                "e.dispatchEvent(new Event('input', {bubbles: true}));"
                "e.dispatchEvent(new Event('change', {bubbles: true}));", css, value)

    def purge(self):
        """Asks to purge the queue. The button is in a menu."""
        self.click("#action-more summary")
        self.click("#action-purge")

    def confirm(self, *parts):
        """Confirms an action, whose dialog says all of this."""
        self.find("#confirm-ok")
        said = self.text("#confirm")
        for part in parts:
            self.assertIn(part, said)
        self.click("#confirm-ok")
        self.until(lambda: not self.is_shown("#confirm"), "the dialog stays open")

    def keys(self, *keys):
        self.browser.switch_to.active_element.send_keys(*keys)

    def focused(self):
        return self.js("const e = document.activeElement; return e.id || e.textContent.trim()")

    def tab_to(self, is_there, most=60):
        """Presses Tab until the focus is where is_there() says."""
        for _ in range(most):
            if is_there():
                return
            self.keys(Keys.TAB)
        self.fail("the keyboard does not reach it\n%s" % self.report())

    def axe(self):
        """The faults of the page that axe-core finds, as lines."""
        if not self.js("return typeof axe !== 'undefined'"):
            with open(AXE, encoding="utf-8") as file:
                self.js(file.read())
        found = self.browser.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']}).then((r) => done(r.violations.map((v) =>"
            " [v.id, v.help, v.nodes.slice(0, 3).map((n) => n.html + ' ' + n.failureSummary)])),"
            " (e) => done([[String(e)]]))")
        return ["%s" % (one,) for one in found]

    def size(self, width=1200, height=760):
        """The size of the window, also of screenshots."""
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def theme(self, name):
        """Light or dark, as the system of the user has it."""
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": name},
                         {"name": "prefers-reduced-motion", "value": "reduce"}]})


def css_text(text):
    """A text in a selector."""
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\a ")


def route(*parts):
    """The hash of a view."""
    return "#/" + "/".join(urllib.parse.quote(part, safe="") for part in parts)


# ------------------------------------------------------------------ a proxy


class Proxy:
    """A reverse proxy under a prefix, which does not keep the header Host. buffers: no response begins
    before its end."""

    def __init__(self, server, prefix="/tools/queues", buffers=False):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def pass_on(self):
                if not self.path.startswith(prefix + "/"):
                    self.send_error(404)
                    return
                size = int(self.headers.get("Content-Length") or 0)
                sent = {name: value for name, value in self.headers.items()
                        if name.lower() not in ("host", "connection")}
                upstream = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE_S)
                try:
                    upstream.request(self.command, self.path[len(prefix):], self.rfile.read(size), sent)
                    self.respond(upstream.getresponse())
                except (OSError, http.client.HTTPException):
                    self.close_connection = True
                finally:
                    upstream.close()

            def respond(self, response):
                streams = response.headers.get_content_type() == "text/event-stream"
                if streams and buffers:
                    while response.read1(65536):
                        pass
                    raise OSError("the stream ended")
                self.send_response_only(response.status)
                for name, value in response.getheaders():
                    if name.lower() not in ("connection", "transfer-encoding", "keep-alive"):
                        self.send_header(name, value)
                if streams:
                    self.send_header("Connection", "close")
                self.end_headers()
                while data := response.read1(65536):
                    self.wfile.write(data)
                    self.wfile.flush()

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on

        class Listener(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            block_on_close = False

        self.listener = Listener(("127.0.0.1", 0), Handler)
        self.page = "http://127.0.0.1:%d%s/claimd/ui/" % (self.listener.server_port, prefix)
        threading.Thread(target=self.listener.serve_forever, daemon=True).start()

    def close(self):
        self.listener.shutdown()
        self.listener.server_close()
