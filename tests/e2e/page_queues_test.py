#!/usr/bin/python3
"""The page in an incident: what the lists of queues, claims and messages show, and how much of it fits.

    page_queues_test.py CLAIMD [CLASS...]
"""

import http.client
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from selenium.webdriver.common.keys import Keys  # noqa: E402

from page import CLIENT, Api, PageCase, PageServer, Proxy, route  # noqa: E402

ROWS = "#queues tr[data-queue]"


class Waiter(threading.Thread):
    """A worker that waits for messages of a queue."""

    def __init__(self, server, queue):
        super().__init__(daemon=True)
        self.server, self.queue = server, queue
        self.start()

    def run(self):
        connection = self.server.connect_http()
        try:
            connection.request("POST", "/v2/queues/%s/claims?limit=1" % self.queue, '{"ttl": 60, "grace": 60}',
                               {"Client-ID": CLIENT, "X-Project-ID": "shop", "Prefer": "wait=20"})
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            pass  # the server has stopped
        finally:
            connection.close()


class QueuesCase(PageCase):
    def setUp(self):
        super().setUp()
        self.api("POST", "/claimd/reset")

    def freeze(self):
        self.api("PUT", "/claimd/clock", {"state": "frozen"})
        self.addCleanup(self.api, "PUT", "/claimd/clock", {"state": "running"})

    def advance(self, seconds):
        self.api("POST", "/claimd/clock/advance", {"seconds": seconds})

    def fill(self, queue, count):
        for first in range(0, count, 20):
            self.api.post(queue, *range(first, min(first + 20, count)), ttl=86400)

    def pause(self, queue, **what):
        self.api("POST", "/claimd/queues/%s/pause" % queue, what or {"claims": True})

    def notice(self, name):
        return self.text("#attention [data-notice=%s]" % name) or ""

    def is_warning(self, queue, column):
        return self.js("return document.querySelector(arguments[0]).classList.contains('warn')",
                       "%s [data-col=%s]" % (self.row(queue), column))

    def looks_right(self):
        for theme in ("light", "dark"):
            self.theme(theme)
            with self.subTest(theme=theme):
                self.assertEqual(self.axe(), [])


class Notices(QueuesCase):
    def test_notices_are_about_all_queues(self):
        for i in range(60):  # older than those that need attention, so these are on no first page
            self.api.post("old%02d" % i, 1)
        self.advance(5)
        for queue in ("invoices", "reports"):
            self.api.create(queue)
            self.pause(queue)
        for i, count in enumerate((60, 40, 17)):
            self.api.create("jobs%d" % i, _dead_letter_queue="dead%d" % i)
            self.api.dead_letter("jobs%d" % i, *range(count), reason="bad JSON")
        self.open("#/queues")
        self.until(lambda: self.notice("paused"), "nothing is paused")
        self.assertEqual(self.notice("paused"), "Paused: invoices, reports")
        self.assertEqual(self.notice("dead_letters"), "117 dead letters: dead0 (60), dead1 (40), dead2 (17)")
        self.assertEqual(self.notice("no_worker"),
                         "60 messages and no worker: old00 (1), old01 (1), old02 (1) and 57 more")
        self.type("#filter-text", "jobs2")
        self.until(lambda: len(self.texts(ROWS)) == 1, "the filter does nothing")
        self.assertEqual(self.notice("paused"), "Paused: invoices, reports")
        self.click("#attention [data-notice=dead_letters] a")
        self.until_text("h1", "dead0")

    def test_messages_without_a_worker_are_amber_at_once(self):
        self.api.create("calm")
        self.open("#/queues")
        self.until_text("#attention li.good", "All is well")
        self.fill("jobs", 30)
        self.until(lambda: self.notice("no_worker"), "it stays green")
        self.assertIsNone(self.text("#attention .good"))
        for column in ("ready", "waiting"):
            self.assertTrue(self.is_warning("jobs", column))
        self.open(route("queue", "shop", "jobs"))
        self.until_text(".notice.bad", "No worker takes the 30 ready messages.")
        self.assertIsNone(self.text(".notice.good"))
        self.api.claim("jobs")
        self.until_text(".notice.good", "All is well")
        self.assertIsNone(self.text(".notice.bad"))
        self.looks_right()

    def test_facts_are_grey(self):
        self.api.create("jobs", _dead_letter_queue="dead", _max_claim_count=3)
        self.open(route("queue", "shop", "jobs"))
        self.until_text(".notice.fact", "After 3 attempts, a message moves to dead.")

        def color(css):
            return self.js("return getComputedStyle(document.querySelector(arguments[0])).borderLeftColor", css)
        fact, good = color(".notice.fact"), color(".notice.good")
        self.api.post("jobs", 1)
        self.find(".notice.bad")
        self.assertEqual(len({fact, good, color(".notice.bad")}), 3)

    def test_a_paused_queue_has_a_badge(self):
        for queue, what, badge in (("one", {"claims": True}, "paused"), ("two", {"posts": True}, "posts paused"),
                                   ("three", {"claims": True, "posts": True}, "claims, posts paused")):
            self.api.create(queue)
            self.pause(queue, **what)
            with self.subTest(queue=queue):
                self.open("#/queues")
                self.until(lambda queue=queue, badge=badge: self.text(
                    self.row(queue) + " .badge:not([hidden])") == badge, "no badge")
        self.api.create("free")
        self.until_cell("free", "ready", "0")
        self.assertFalse(self.is_shown(self.row("free") + " .badge"))
        self.assertIsNone(self.text("#queues thead [data-col=paused]"))

    def test_waiting_workers_and_returned_messages_have_columns(self):
        self.freeze()
        self.api.create("jobs")
        waiters = [Waiter(self.server, "jobs") for _ in range(2)]
        self.fill("poison", 20)
        claim, ids = self.api.claim("poison", 6)
        self.api.finish("poison", claim, ids, "release", "ValueError")
        self.advance(60)
        self.open("#/queues")
        self.until_cell("jobs", "waiting", "2")
        self.assertEqual(self.cell("poison", "waiting"), "0")
        self.until_cell("poison", "returned", "6")
        self.assertTrue(self.is_warning("poison", "returned"))
        self.assertEqual(self.notice("returned"), "6 messages a minute come back: poison (6)")
        self.open(route("queue", "shop", "poison"))
        self.until_text(".tiles", "Again / min6")
        self.until_text(".notice.bad", "6 messages a minute become ready again.")
        self.open(route("queue", "shop", "jobs"))
        self.until_text(".tiles", "Workers waiting2")
        self.api.post("jobs", 1, 2)
        for waiter in waiters:
            waiter.join(20)
            self.assertFalse(waiter.is_alive())


class Layout(QueuesCase):
    """60 queues and five notices."""

    def stage(self):
        for i in range(56):
            self.api.create("queue-%02d" % i, _dead_letter_queue="dead")
        self.fill("invoices", 3054)
        self.advance(3540)  # the widest age: 59m 30s and more
        for queue in ("reports", "archive"):
            self.api.create(queue)
            self.pause(queue)
        self.api.post("poison", *range(6))
        claim, ids = self.api.claim("poison", 6)
        self.api.finish("poison", claim, ids, "release", "ValueError")
        self.api.dead_letter("queue-00", 1, 2, reason="bad JSON")
        self.advance(30)

    def cut(self):
        """The cells, without those of names, that show only a part of their text."""
        return self.js(
            "return [...document.querySelectorAll('#queues :is(td, thead th)')].filter((e) => e.offsetParent &&"
            " e.scrollWidth > e.clientWidth).map((e) => e.textContent)")

    def rows_in_the_window(self):
        return self.js("return [...document.querySelectorAll(arguments[0])].map((e) => e.getBoundingClientRect())"
                       ".filter((r) => r.top >= 0 && r.bottom <= innerHeight).length", ROWS)

    def test_many_rows_fit(self):
        self.stage()
        for width, height, least in ((1280, 800, 12), (1920, 1080, 20)):
            with self.subTest(width=width):
                self.size(width, height)
                self.open("#/queues")
                self.until_cell("invoices", "ready", "3,054")
                self.assertEqual(len(self.texts("#attention li")), 5)
                self.assertEqual(self.cut(), [])
                self.assertGreaterEqual(self.rows_in_the_window(), least)
                self.assertGreater(self.js("return document.querySelector('#queues').offsetWidth"), width - 60)
                self.looks_right()

    def test_a_phone_shows_whole_numbers(self):
        self.stage()
        self.size(390, 844)
        self.open("#/queues")
        self.until_cell("invoices", "ready", "3.1k")
        self.assertEqual(self.cut(), [])
        top = self.js("return document.querySelector(arguments[0]).getBoundingClientRect().top", ROWS)
        self.assertLess(top, 844 / 2)
        self.looks_right()
        for n, text in ((0, "0"), (999, "999"), (3054, "3.1k"), (30540, "31k"), (999999, "1M"), (1234567, "1.2M")):
            self.assertEqual(self.js("return import('./format.js').then((m) => m.short(arguments[0]))", n), text)


class Keyboard(QueuesCase):
    def link_of(self, queue):
        return self.js("return document.activeElement.matches(arguments[0])", self.row(queue) + " [data-col=name] a")

    def test_from_the_filter_to_the_first_row(self):
        for queue in ("apples", "pears", "plums"):
            self.api.create(queue)
        self.open("#/queues?sort=name")
        self.until_cell("plums", "ready", "0")
        for key in (Keys.ARROW_DOWN, Keys.ENTER):
            self.keys("/")
            self.assertEqual(self.focused(), "filter-text")
            self.keys(key)
            self.until(lambda: self.link_of("apples"), "the focus stays")
        self.keys("/")
        self.keys("p", "l", "u", Keys.ENTER)  # before the page has filtered
        self.until(lambda: self.link_of("plums"), "the focus is not on the only row")
        self.keys(Keys.ENTER)
        self.until_text("#queue-title", "plums")


class Queue(QueuesCase):
    def test_claims_are_a_short_table_below_the_charts(self):
        self.fill("pdf", 200)
        for i in range(130):
            self.api.claim("pdf", ttl=600 + i)
        self.advance(10)
        self.open(route("queue", "shop", "pdf"))
        self.until(lambda: len(self.texts("#claims tr[data-claim]")) == 10, "there are not ten claims")
        self.find("#messages tr[data-message]")
        self.find("#chart-depth canvas")
        self.until_text("#claims [data-col=attempt]:is(td)", "1")
        tops = [self.js("return document.querySelector(arguments[0]).getBoundingClientRect().top", css)
                for css in ("#chart-depth", "#claims", "#messages")]
        self.assertEqual(tops, sorted(tops))
        self.assertLess(tops[2], 1200)
        self.assertLessEqual(self.js("return document.querySelector('#claims tr[data-claim]').offsetHeight"), 28)
        number = self.api("GET", "/claimd/queues/pdf/claims?limit=1")["claims"][0]["number"]
        self.assertNotIn(str(number), self.text("main"))
        self.assertIn("Claim number %d" % number, self.js(
            "return document.querySelector('#claims tr[data-claim] [data-col=worker]').title"))
        self.looks_right()
        self.click("#claims-more")
        self.until(lambda: len(self.texts("#claims tr[data-claim]")) > 10, "there are no more claims")
        self.click('#claims tr[data-claim] [data-col=actions] button')
        self.until_text("#search-progress", "1 message found")

    def test_the_holder_of_a_claim(self):
        self.open()
        for claim, name in (({"worker": "web3 4711", "address": "10.0.0.5", "client": CLIENT}, "web3 4711"),
                            ({"worker": None, "address": "10.0.0.5", "client": CLIENT}, "10.0.0.5"),
                            ({"client": CLIENT}, CLIENT), ({"client": None}, None)):
            self.assertEqual(self.js("return import('./format.js').then((m) => m.holderName(arguments[0]))", claim),
                             name)

    def test_purge_is_in_a_menu_and_posting_stands_out_only_in_a_calm_queue(self):
        self.api.create("jobs")
        self.open(route("queue", "shop", "jobs"))
        self.find("#action-post.primary")
        self.assertFalse(self.is_shown("#action-purge"))
        self.click("#action-more summary")
        self.find("#action-purge")
        self.looks_right()
        self.keys(Keys.ESCAPE)
        self.until(lambda: not self.is_shown("#action-purge"), "the menu stays open")
        self.api.post("jobs", 1)
        self.find("#action-post:not(.primary)")
        self.pause("jobs")
        self.find("#action-pause.primary")

    def label(self):
        return self.js("return document.querySelector('#chart-depth .plot').getAttribute('aria-label')")

    def test_charts_begin_with_the_data_or_the_chosen_minutes(self):
        self.freeze()
        self.api.post("jobs", 1, ttl=86400)
        self.advance(20 * 60)
        self.open(route("queue", "shop", "jobs"))
        self.find("#chart-depth canvas")
        samples = self.api("GET", "/claimd/queues/jobs/history")["samples"]
        times = self.js("return arguments[0].map((at) => Date.parse(at) / 1000)", [s["at"] for s in samples])

        def shows(first):
            return " from %s on" % self.js(
                "return new Date(arguments[0] * 1000).toTimeString().slice(0, 5)", first) in self.label()
        for minutes, first in ((60, times[0]), (15, times[-1] - 900), (5, times[-1] - 300)):
            self.click("#chart-range button:nth-child(%d)" % ((5, 15, 60).index(minutes) + 1))
            self.until(lambda first=first: shows(first), "the chart begins elsewhere: %s" % self.label())
            self.assertEqual(self.texts("#chart-range [aria-pressed=true]"), ["%d min" % minutes])


class Empty(QueuesCase):
    def test_a_new_server_says_how_to_post(self):
        self.open()
        url = "%s:%d" % (self.server.url.rpartition(":")[0], self.server.port)
        self.until_text("#first-message", "A queue exists from its first message on.")
        self.assertEqual(self.text("#first-message code"), "curl -d 'hello' %s/claimd/queues/jobs/raw" % url)
        self.assertFalse(self.is_shown("#queues"))
        self.assertNotIn("filter", self.js("return document.querySelector('main').innerText"))
        self.looks_right()
        self.browser.execute_cdp_cmd("Browser.grantPermissions", {
            "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
        self.click("#first-message button")
        self.until_text("#toasts", "Copied the command.")
        self.assertEqual(self.browser.execute_async_script(
            "navigator.clipboard.readText().then(arguments[0], (e) => arguments[0](String(e)))"),
            self.text("#first-message code"))
        posted = subprocess.run(["bash", "-c", self.text("#first-message code")], capture_output=True,
                                text=True, timeout=60, check=True)
        self.assertIn("resources", posted.stdout)
        self.until_cell("jobs", "ready", "1", project="default")
        self.assertFalse(self.is_shown("#first-message"))

    def test_commands_name_the_project_and_the_prefix(self):
        proxy = Proxy(self.server)
        self.addCleanup(proxy.close)
        self.page = proxy.page
        prefix = proxy.page.partition("/claimd/ui/")[0]
        self.open(route("queue", "it's", "mails"))
        self.until_text(".command code", "curl")
        self.assertEqual(self.text(".command code"),
                         "curl -d 'hello' -H 'X-Project-ID: it'\\''s' %s/claimd/queues/mails/raw" % prefix)
        self.api.post("mails", 1, project="it's")
        self.until_text(".command code", "claimd work")
        self.assertEqual(self.text(".command code"),
                         "claimd work mails --url %s --project 'it'\\''s' -- ./job" % prefix)
        self.open(route("queue", "a\u202eb", "mails"))  # looks like another name
        self.until_text(".command", "Post its first message:")
        self.assertIsNone(self.text(".command code"))

    def test_a_filter_without_a_match_says_so(self):
        self.api.create("jobs")
        self.open("#/queues?q=none")
        self.until_text("main", "No queue matches the filter.")
        self.assertFalse(self.is_shown("#first-message"))


class Old(PageCase):
    def test_old_data_is_grey_and_says_its_time(self):
        with tempfile.TemporaryDirectory() as folder:
            options = ("--ci", "--journal", os.path.join(folder, "journal"))
            first = PageServer(*options)
            self.page = first.page
            self.theme("light")
            Api(first).create("calm")
            self.open("#/queues")
            self.until_text("#attention .good", "All is well")
            color = "return getComputedStyle(document.querySelector('#attention .good')).borderLeftColor"
            green = self.js(color)
            first.signal(signal.SIGKILL)
            first.wait()
            self.until_text("main.old .since", "This is as of ")
            self.assertRegex(self.text(".since"), r"as of \d\d:\d\d:\d\d\.")
            self.assertNotEqual(self.js(color), green)
            for theme in ("light", "dark"):
                self.theme(theme)
                self.assertEqual(self.axe(), [])
            self.assertEqual(self.js("return document.querySelector('.error').textContent"), "")
            self.theme("light")
            self.may_fail = True
            with PageServer(*options, listen="127.0.0.1:%d" % first.port) as second:
                self.until_gone("main.old")
                self.assertFalse(self.is_shown(".since"))
                self.assertEqual(self.js(color), green)
                self.js("location.hash = arguments[0]", route("queue", "shop", "calm"))
                self.until_text(".notice.good", "All is well")
                second.signal(signal.SIGKILL)
                second.wait()
                self.until_text("main.old .since", "This is as of ")
                self.js("location.hash = '#/schedules'")
                self.until_gone("main.old")
                self.browser.get("about:blank")


if __name__ == "__main__":
    unittest.main()
