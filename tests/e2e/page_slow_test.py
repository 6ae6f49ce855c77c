#!/usr/bin/python3
"""The page in a browser, where it takes longer: live data, hostile texts, many queues, screenshots.

    page_slow_test.py CLAIMD [CLASS...]
    PAGE_IMAGES=docs/images page_slow_test.py CLAIMD Images     makes the screenshots of the documentation
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from random import Random

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from selenium.webdriver.common.keys import Keys  # noqa: E402

import page_test  # noqa: E402  (it finds the next)
from certificates import Workshop  # noqa: E402
from page import NAME, Api, PageCase, PageServer, Proxy, route  # noqa: E402
from redis_nodes import Node  # noqa: E402


class Live(PageCase):
    options = (*PageCase.options, "--allowed-hosts=" + NAME)

    def test_a_row_changes_without_a_reload(self):
        self.api.create("live")
        self.open("#/queues")
        self.until_cell("live", "ready", "0")
        self.js("window.sameDocument = true")
        self.api.post("live", 1, 2, 3)
        self.until_cell("live", "ready", "3")
        self.until_text("#connection", "live")
        self.assertTrue(self.js("return window.sameDocument"))

    def test_the_messages_of_a_queue_change(self):
        self.api.create("live2")
        self.open(route("queue", "shop", "live2"))
        self.until_text("#queue-title", "live2")
        one = self.api.post("live2", 1)[0]
        self.find('#messages tr[data-message="%s"]' % one)

    def test_a_claim_runs_out(self):
        self.api.post("short", 1)
        claim, _ = self.api.claim("short", ttl=4)
        bar = '#claims tr[data-claim="%s"] progress' % claim
        self.open(route("queue", "shop", "short"))
        self.find(bar)
        value = "return document.querySelector(arguments[0])?.value ?? -1"
        first = self.js(value, bar)
        self.until(lambda: 0 <= self.js(value, bar) < first, "the bar does not run out")
        self.until_gone(bar)
        self.until_text("#messages tr[data-message]", "ready")

    def streams(self):
        """The number of streams of the server, which wait until the next second."""
        metrics = self.api("GET", "/metrics")
        return int(re.search(r'claimd_http_connections{phase="parked"} (\d+)', metrics)[1])

    def test_a_hidden_page_sends_no_request(self):
        self.api.create("hidden")
        self.open("#/queues")
        self.until(lambda: self.streams() > 0, "there is no stream")
        page = self.browser.current_window_handle
        self.browser.switch_to.new_window("tab")
        try:
            self.until(lambda: self.streams() == 0, "the hidden page still has a stream")
            self.api.post("hidden", 1)
        finally:
            self.browser.close()
            self.browser.switch_to.window(page)
        self.until_cell("hidden", "ready", "1")
        self.until(lambda: self.streams() > 0, "there is no stream")

    def post_here(self, queue):
        """Posts a message in the page, which shows it."""
        self.open(route("queue", "shop", queue))
        self.click("#action-post")
        self.set("#post-body", "1")
        self.click("#post-send")
        self.find("#messages tr[data-message]")
        self.until_text("#connection", "live")

    def test_under_a_name_without_tls(self):
        self.page = self.page.replace("127.0.0.1", NAME)
        self.post_here("named")

    def test_over_tls(self):
        workshop = Workshop()
        self.addCleanup(workshop.close)
        with PageServer(*workshop.signed("everywhere").options(), listen="tls:127.0.0.1:0") as server:
            self.page = server.page.replace("http:", "https:")
            self.post_here("secure")
            self.browser.get("about:blank")

    def test_behind_a_proxy_under_a_prefix(self):
        proxy = Proxy(self.server)
        self.addCleanup(proxy.close)
        self.api.post("behind", 1, 2)
        self.page = proxy.page
        self.open(route("queue", "shop", "behind"))
        self.until_text("#connection", "live")
        self.purge()
        self.confirm("behind")
        self.until(lambda: self.api.total("behind") == 0, "the queue is not purged")
        self.requests()
        self.assertTrue(all(url.startswith(proxy.page.partition("claimd/ui/")[0])
                            for url in self.urls if url.startswith("http")), self.urls)

    def test_behind_a_proxy_that_buffers(self):
        proxy = Proxy(self.server, buffers=True)
        self.addCleanup(proxy.close)
        self.api.create("buffered")
        self.page = proxy.page
        self.open("#/queues")
        self.until_text("#connection", "updating every few seconds")
        self.until_cell("buffered", "ready", "0")
        self.api.post("buffered", 1)
        self.until_cell("buffered", "ready", "1")

    def test_the_page_recovers_from_a_restart(self):
        with tempfile.TemporaryDirectory() as folder:
            options = ("--journal", os.path.join(folder, "journal"))
            first = PageServer(*options)
            api = Api(first)
            api.post("kept", 1)
            self.page = first.page
            self.open("#/queues")
            self.until_cell("kept", "ready", "1")
            self.until_text("#connection", "live")
            first.signal(signal.SIGKILL)
            first.wait()
            self.until_text("#connection", "disconnected")
            self.may_fail = True
            second = PageServer(*options, listen="127.0.0.1:%d" % first.port)
            with second:
                Api(second).post("kept", 2)
                self.until_cell("kept", "ready", "2")
                self.until_text("#connection", "live")
                self.browser.get("about:blank")

# ------------------------------------------------------------------ hostile texts

HOSTILE = (
    "<script>window.ran = 1</script>",
    "</script><script>window.ran = 2</script>",
    "\"><img src=x onerror=\"window.ran = 3\">",
    "' onmouseover='window.ran = 4' x='",
    "javascript:window.ran=5",
    "<svg onload=window.ran=6><style>*{display:none}</style>",
    "<iframe srcdoc=\"<script>parent.ran = 7</script>\"></iframe>",
    "<a href=\"http://192.0.2.1/\">x</a><link rel=stylesheet href=//192.0.2.1/x.css>",
    "\u202egnp.exe\u2066\u200b",
    "constructor", "__proto__", "toString", "{{7*7}}${7*7}",
    "\U0001f600\U0001f469\u200d\U0001f680 \u05e9\u05dc\u05d5\u05dd \ufeff",
    "a\x01\x1b[31mb\tc\nd",
    "&lt;b&gt;&amp;",
)
LONG = "w" * 1000  # a word


class Hostile(PageCase):
    options = (*PageCase.options, "--client-id-uuid-safe=off")
    client = "<img src=x onerror=window.ran=8>"  # at most 36 characters
    worker = "<img src=x onerror=window.ran=10>"  # at most 40
    project = "<b onclick=window.ran=9>\u202e'\"&/?#%2f"
    queue = "-" * 10 + "Q" * 54  # the longest; a name has no other characters than letters, digits, _ and -

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        api = cls.api
        api.project = cls.project
        api.create(cls.queue, _dead_letter_queue="dead")
        api.create("__proto__")
        api.create("constructor")
        cls.dead = []
        for text in (*HOSTILE, LONG):
            cls.dead += api.dead_letter(cls.queue, {"text": text}, reason=text, client=cls.client,
                                       worker=cls.worker)
        cls.ids = api.post(cls.queue, *([text, {text: text}] for text in HOSTILE), "\0", LONG * 30)
        cls.claim, _ = api.claim(cls.queue, 3, client=cls.client, worker=cls.worker)

    def hover(self):
        """Moves the mouse over all that can be seen, for handlers of it."""
        self.js("for (const e of document.querySelectorAll('main *'))"
                " for (const type of ['mouseover', 'mouseenter', 'focus', 'load', 'error'])"
                "  e.dispatchEvent(new Event(type, {bubbles: false}));")

    def assert_harmless(self):
        self.hover()
        self.assertIsNone(self.js("return window.ran ?? null"))
        self.assertEqual(self.js(
            "return [...document.querySelectorAll('main script, main iframe, main img, main style, main link,"
            " main svg [onload], [onclick], [onerror], [onmouseover], a[href^=\"javascript\" i],"
            " a[href*=\"192.0.2.1\"]')].map((e) => e.outerHTML)"), [])
        # A text that changes the direction stays in an element that isolates it, or is escaped.
        self.assertEqual(self.js(
            "const all = []; const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);"
            "while (walk.nextNode()) if (/[\\u202a-\\u202e\\u2066-\\u2069]/.test(walk.currentNode.data))"
            " all.push(walk.currentNode.data); return all"), [])
        self.assertLessEqual(self.js("return document.documentElement.scrollWidth - innerWidth"), 0)

    def test_queues(self):
        self.open("#/queues")
        self.until_cell(self.queue, "claimed", "3", project=self.project)
        self.assert_harmless()
        self.set("#filter-project", self.project)
        self.until_cell("__proto__", "ready", "0", project=self.project)
        self.assert_harmless()
        self.click(self.row(self.queue, self.project) + " a")
        self.until_text("#queue-title", self.queue)

    def test_queue(self):
        self.open(route("queue", self.project, self.queue))
        self.until_text("#claims", "onerror=window.ran=10")
        self.until(lambda: len(self.texts("#messages tr[data-message]")) >= 15, "messages are missing")
        self.until_text("#messages", "<script>window.ran = 1</script>")
        self.assert_harmless()
        for text in HOSTILE[:4]:
            self.set("#search-text", text)
            self.keys(Keys.ENTER)
        self.js("document.querySelector('#search-form').requestSubmit()")
        self.assert_harmless()

    def test_messages(self):
        for one in self.ids:
            self.open(route("message", self.project, self.queue, one))
            self.until(lambda: self.text("#message-body"), "there is no body")
            self.assert_harmless()
        self.click("#show-bytes")
        self.assert_harmless()

    def test_dead_letters(self):
        self.open(route("dead", self.project, "dead"))
        self.until(lambda: len(self.texts("#groups tr[data-reason]")) == len(HOSTILE) + 1,
                   "groups are missing")
        self.until_text("#letters", "<script>window.ran = 1</script>")
        self.assert_harmless()
        self.click("#redrive-all")
        self.find("#confirm-ok")
        self.assert_harmless()
        self.click("#confirm-cancel")

    def test_reasons(self):
        for one in self.dead:
            self.open(route("message", self.project, "dead", one))
            self.until_text("#message-history", "onerror=window.ran=10")
            self.assert_harmless()

    def test_schedules(self):
        for i, text in enumerate((*HOSTILE, LONG)):
            self.api("PUT", "/claimd/queues/%s/schedules/%d" % (self.queue, i),
                     {"every": 60, "message": {"body": [text, {text: text}]}, "paused": i % 2 == 0})
        self.api("POST", "/claimd/queues/%s/pause" % self.queue, {"posts": True})
        self.addCleanup(self.api, "POST", "/claimd/queues/%s/pause" % self.queue, {"posts": False})
        self.api("POST", "/claimd/clock/advance", {"seconds": 61})
        self.open("#/schedules")
        self.set("#filter-project", self.project)
        self.js("document.querySelector('main form').requestSubmit()")
        self.until(lambda: len(self.texts("#schedules tr[data-schedule]")) == len(HOSTILE) + 1,
                   "schedules are missing")
        self.until_text("#schedules", "Cannot post: ")
        self.assert_harmless()
        self.click("#schedules button.danger")
        self.find("#confirm-ok")
        self.assert_harmless()
        self.click("#confirm-cancel")
        for i in range(len(HOSTILE) + 1):
            self.open(route("schedule", self.project, self.queue, str(i)))
            self.until(lambda: self.text("#message-body"), "there is no body")
            self.assert_harmless()

    def test_server(self):
        self.open("#/server")
        self.find("#server-facts")
        self.assert_harmless()

    def test_these_tests_can_fail(self):
        for script in ("const e = document.createElement('script'); e.textContent = 'window.ran = 1';"
                       " document.body.append(e)",
                       "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = 1\">')",
                       "document.body.setAttribute('onclick', 'window.ran = 1'); document.body.click()",
                       "fetch('http://192.0.2.1/').catch(() => 0)",
                       "setTimeout(() => { throw new Error('a fault') })"):
            self.open("#/queues")
            self.js(script)
            self.until(lambda: any(self.is_problem(entry) for entry in self.browser.get_log("browser")),
                       "nothing notices: " + script)
            self.assertIsNone(self.js("return window.ran ?? null"))
        self.js("window.ran = 1")
        self.assertRaises(AssertionError, self.assert_harmless)
        self.js("delete window.ran")

    def test_routes(self):
        for hash_ in ("#/queue/%zz/x", "#/<img src=x onerror=window.ran=1>", "#javascript:window.ran=1",
                      "#/queue/p/..", "#/message/p/../x", "#/__proto__", "#/constructor",
                      "#/queue/p/<script>", route("dead", "p", "../../v2/queues"), "#/schedule/p/q/..",
                      "#/schedules?project=p&queue=..", "#/schedules?project=<script>"):
            self.open(hash_)
            self.assert_harmless()

class Phone(PageCase):
    def test_a_phone_scrolls_only_down(self):
        _, claimed = page_test.furnish(self.api)
        self.api("PUT", "/claimd/queues/jobs/schedules/" + "n" * 40,
                 {"cron": "0 9 1 jan,apr,jul,oct mon", "timezone": "America/Argentina/Buenos_Aires",
                  "message": {"body": 1}})
        self.size(390, 800)
        for hash_, there in (("#/queues", self.row("jobs")),
                             (route("queue", "shop", "jobs"), "#messages tr[data-message]"),
                             (route("message", "shop", "jobs", claimed[0]), "#message-body"),
                             (route("dead", "shop", "jobs-dead"), "#letters tr[data-message]"),
                             ("#/schedules", "#schedules tr[data-schedule]"),
                             (route("schedule", "shop", "jobs", "n" * 40), "#message-body"),
                             ("#/server", "#server-facts")):
            self.open(hash_)
            self.find(there)
            self.assertLessEqual(self.js("return document.documentElement.scrollWidth"), 390, hash_)
            self.assertEqual(self.axe(), [])


class OnRedis(page_test.Views):
    """The same views with a store on Redis."""

    @classmethod
    def setUpClass(cls):
        node = Node()
        cls.addClassCleanup(node.__exit__, None, None, None)
        cls.options = ("--store", node.url())
        super().setUpClass()

    def test_server(self):
        self.open("#/server")
        self.until_text("#server-redis", "Primaries1")


# ------------------------------------------------------------------ many


class Many(PageCase):
    QUEUES = 10000

    def test_a_search_is_continued(self):
        for first in range(0, 20500, 500):
            self.api.post("large", *range(first, first + 500))
        self.open(route("queue", "shop", "large"))
        self.until_text(".tiles", "20,500")
        self.type("#search-text", "20499" + Keys.ENTER)
        self.until_text("#search-progress", "20,000 of 20,500")
        self.click("#search-continue")
        self.until_text("#messages tr[data-message]", "20499")
        self.until_text("#search-progress", "20,500 of 20,500")

    def test_ten_thousand_queues_scroll(self):
        for first in range(0, self.QUEUES, 1000):
            self.api.load(*({"project": "shop", "queue": "q%05d" % i, "metadata": {}}
                            for i in range(first, first + 1000)))
        self.open("#/queues?sort=name")
        self.until_cell("q00000", "ready", "0")
        for where, name in (("document.body.scrollHeight", "q09999"), ("document.body.scrollHeight / 2", "q05000"),
                            ("0", "q00000")):
            def there(where=where, name=name):  # the height of the page changes with that of the rows
                self.js("window.scrollTo(0, %s)" % where)
                return self.cell(name, "ready") == "0"
            self.until(there, "%s is not drawn" % name)
            self.assertLess(self.js("return document.querySelectorAll('#queues tr').length"), 200)
            if name == "q05000":
                self.goes_back_to(name)
        for _ in range(60):  # not only jumps
            self.js("window.scrollBy(0, innerHeight * 3)")
        self.until(lambda: self.js("return document.querySelectorAll('#queues tr[data-queue]').length > 5"),
                   "no rows are drawn")
        self.assertLess(self.js("return document.querySelectorAll('#queues tr').length"), 200)

    def goes_back_to(self, queue):
        top = self.js("return window.scrollY")
        self.click("tr[data-queue=%s] a" % queue)
        self.until_text("h1", queue)
        self.assertEqual(self.js("return window.scrollY"), 0)
        self.browser.back()
        self.until(lambda: self.cell(queue, "ready") == "0" and abs(self.js("return window.scrollY") - top) < 200,
                   "Back does not lead to the row")

# ------------------------------------------------------------------ screenshots

# Moves the time of the page to that of the server, whose clock is an hour ahead.
LATER = """
(() => {
  const Real = Date;
  const ahead = %d;
  window.Date = class extends Real {
    constructor(...parts) { parts.length ? super(...parts) : super(Real.now() + ahead); }
    static now() { return Real.now() + ahead; }
  };
  const get = Headers.prototype.get;
  Headers.prototype.get = function (name) {
    const value = get.call(this, name);
    return name === 'Date' && value ? new Real(Real.parse(value) + ahead).toUTCString() : value;
  };
})();
"""
TRACEBACK = """Traceback (most recent call last):
  File "/srv/invoices/worker.py", line 48, in run
    tax = rates.lookup(invoice)
ConnectionRefusedError: tax.example.net:443"""
CLIENTS = ["8c4d1f0e-5b7a-4d2c-9e61-%012x" % (0x3b5f7a91 * i) for i in range(1, 7)]


class Images(PageCase):
    """Makes the screenshots of the documentation, with PAGE_IMAGES=docs/images, else elsewhere."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        script = cls.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument",
                                             {"source": LATER % (3600 * 1000)})
        cls.addClassCleanup(cls.browser.execute_cdp_cmd, "Page.removeScriptToEvaluateOnNewDocument",
                            {"identifier": script["identifier"]})

    def hour(self):
        """An hour of three projects. The workers of the queue `emails` are stuck after a while. The id of its
        oldest message."""
        api, random = self.api, Random(36)
        queues = (("shop", "orders", 12, 12), ("shop", "emails", 7, 7), ("shop", "invoices", 3, 3),
                  ("media", "thumbnails", 20, 19), ("media", "transcode", 2, 2),
                  ("billing", "charges", 9, 9), ("billing", "reports", 1, 1))
        for project, queue, _, _ in queues:
            api("PUT", "/v2/queues/" + queue, {"_max_claim_count": 5,
                                               "_dead_letter_queue": queue + "-failed"}, project=project)
        for minute in range(60):
            for project, queue, posted, taken in queues:
                api.post(queue, *(self.body(queue, random) for _ in range(random.randint(1, posted))),
                         project=project, ttl=86400)
                if queue != "emails" or minute < 14:
                    api("DELETE", "/v2/queues/%s/messages?pop=%d" % (queue, taken), project=project)
            if minute == 55:
                self.failures()
            if minute == 57:
                oldest = self.claims()
            api("POST", "/claimd/clock/advance", {"seconds": 60 if minute < 59 else 25})
        return oldest

    @staticmethod
    def body(queue, random):
        number = random.randint(40000, 59999)
        return {"orders": {"order": number, "items": random.randint(1, 9), "currency": "EUR"},
                "emails": {"to": "customer-%d@example.org" % number, "template": "order-confirmed",
                           "order": number, "language": "en"},
                "invoices": {"invoice": number, "total": "%d.90" % (number % 300)},
                "thumbnails": {"image": "photos/%d.jpg" % number, "sizes": [160, 480, 1280]},
                "transcode": {"video": "clips/%d.mp4" % number, "codec": "av1"},
                "charges": {"customer": number, "cents": number % 9000},
                "reports": {"month": "2026-10", "customer": number}}[queue]

    def failures(self):
        api, random = self.api, Random(7)
        for count, reason, client in ((23, TRACEBACK, 0),
                                      (9, "invoice has no address", 1), (2, "timeout after 30 s", 0)):
            bodies = [self.body("invoices", random) for _ in range(count)]
            api("POST", "/v2/queues/invoices/purge", {"resource_types": ["messages"]})
            api.dead_letter("invoices", *bodies, reason=reason, client=CLIENTS[client],
                            worker="billing-%d 4711" % (client + 1))
            api("POST", "/claimd/clock/advance", {"seconds": 7})
        api.post("invoices", *(self.body("invoices", random) for _ in range(4)))

    def claims(self):
        """The claims that are shown; the oldest message of emails, which was tried before."""
        api = self.api
        claim, ids = api.claim("emails", 2, ttl=600, client=CLIENTS[2], worker="mailer-1 1907")
        api.finish("emails", claim, ids, "release", "550 mailbox unavailable: smtp.example.org",
                   client=CLIENTS[2], worker="mailer-1 1907")
        _, ids = api.claim("emails", 2, ttl=900, client=CLIENTS[3], worker="mailer-1 2231")
        api("POST", "/claimd/clock/advance", {"seconds": 100})
        api.claim("emails", 3, ttl=300, client=CLIENTS[4], worker="mailer-2 871")
        for project, queue, count in (("media", "thumbnails", 8), ("media", "transcode", 1), ("shop", "orders", 5),
                                      ("billing", "charges", 3)):
            api.post(queue, *(self.body(queue, Random(count)) for _ in range(2 * count)), project=project)
            api.claim(queue, count, ttl=300, client=CLIENTS[5], project=project, worker="%s-1 512" % queue)
        api("POST", "/claimd/queues/reports/pause", {"claims": True}, project="billing")
        return ids[0]

    def test_images(self):
        folder = os.environ.get("PAGE_IMAGES")
        if folder is None:
            folder = tempfile.mkdtemp(prefix="claimd-images-")
            self.addCleanup(shutil.rmtree, folder)
        os.makedirs(folder, exist_ok=True)
        self.api("PUT", "/claimd/clock", {"state": "frozen"})
        oldest = self.hour()
        def queues_are_whole(sparklines=8):
            return self.cell("emails", "posted") != "0" and len(self.texts("#queues canvas")) == sparklines
        views = {"queues": ("#/queues", 560, queues_are_whole),
                 "queue": (route("queue", "shop", "emails"), 1140, self.claims_are_whole),
                 "message": (route("message", "shop", "emails", oldest), 760,
                             lambda: self.text("#message-body")),
                 "dead-letters": (route("dead", "shop", "invoices-failed"), 900,
                                  lambda: self.texts("#letters tr[data-message]")),
                 "server": ("#/server", 900, lambda: "per second" in self.text("#server-facts"))}
        for name, (hash_, height, is_whole) in views.items():
            self.size(height=height)
            for theme in ("light", "dark"):
                with self.subTest(name=name, theme=theme):
                    self.theme(theme)
                    self.open(hash_)
                    self.until(is_whole, "something is missing")
                    self.draw(os.path.join(folder, "%s-%s.png" % (name, theme)))
        self.size(390, 844)
        self.theme("light")
        self.open("#/queues")
        self.until(lambda: queues_are_whole(sparklines=0), "something is missing")
        self.draw(os.path.join(folder, "queues-phone.png"))

    def claims_are_whole(self):
        """The page has read how long the leases are."""
        bars = self.js("return [...document.querySelectorAll('#claims progress')].map((p) => p.max - p.value)")
        return len(bars) == 2 and all(left > 0 for left in bars) and self.texts("#messages tr[data-message]")

    def draw(self, path):
        """Takes the screenshot when two in a row are equal."""
        last = [b""]

        def stands():
            now = self.browser.get_screenshot_as_png()
            same, last[0] = now == last[0], now
            return same
        self.until(stands, "the view does not come to rest")
        with open(path, "wb") as file:
            file.write(last[0])
        if shutil.which("pngquant"):
            subprocess.run(["pngquant", "--force", "--strip", "--skip-if-larger", "--output", path, "128", path],
                           check=False)
        self.assertGreater(os.path.getsize(path), 5000)


if __name__ == "__main__":
    unittest.main()
