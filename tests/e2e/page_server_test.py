#!/usr/bin/python3
"""The page in a bad hour: alerts, dead letters and their causes, and a server that is gone.

    page_server_test.py CLAIMD [CLASS...]
"""

import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from selenium.webdriver.common.by import By  # noqa: E402

from page import Api, PageCase, PageServer, route  # noqa: E402

TRACE = "Traceback (most recent call last):\n  File \"/srv/worker.py\", line 3, in run\r\n\tcharge()\nKeyError"
SHOWN = ["Traceback (most recent call last):", "  File \"/srv/worker.py\", line 3, in run", "\tcharge()",
         "KeyError"]


class Frozen(PageCase):
    """With a clock that only the tests move."""

    def setUp(self):
        super().setUp()
        self.api("POST", "/claimd/reset")
        self.api("PUT", "/claimd/clock", {"state": "frozen"})

    def pass_by(self, minutes):
        self.api("POST", "/claimd/clock/advance", {"seconds": 60 * minutes})

    def looks_right(self):
        for theme in ("light", "dark"):
            self.theme(theme)
            with self.subTest(theme=theme):
                self.assertEqual(self.axe(), [])


class Server(Frozen):
    def alert(self, name):
        return '#server-alerts [data-alert="%s"]' % name

    def firing(self):
        return {alert["name"] for alert in self.api("GET", "/claimd/alerts")["alerts"]
                if alert["state"] == "firing"}

    def test_a_view_that_opens_late_shows_what_fires(self):
        self.api.create("invoices", _dead_letter_queue="invoices-failed")
        for _ in range(25):
            self.api.dead_letter("invoices", *range(50), reason="declined")
        self.api.post("short", 1, ttl=60)
        self.api.post("hangs", 1, ttl=86400)
        self.api.claim("hangs", ttl=43200)
        self.pass_by(14)
        self.open("#/server")
        self.until_text(self.alert("ClaimdDeadLetters"), "1,250 messages")
        self.until_text(self.alert("ClaimdMessagesExpiredUnread"), "short (1 message)")
        self.assertEqual(set(self.js("return [...document.querySelectorAll('[data-state=firing]')]"
                                     ".map((e) => e.dataset.alert)")), self.firing())
        self.looks_right()
        self.pass_by(60)
        self.until_text(self.alert("ClaimdOldestClaimTooOld"), "hangs (1 h 1")
        self.until_gone(self.alert("ClaimdDeadLetters"))
        self.click(self.alert("ClaimdOldestClaimTooOld") + " a")
        self.until_text("h1", "hangs")

    def test_a_pending_alert_says_when_it_fires(self):
        self.api.post("hangs", 1, ttl=86400)
        self.api.claim("hangs", ttl=43200)
        self.pass_by(62)
        self.open("#/server")
        self.until_text(self.alert("ClaimdOldestClaimTooOld"), "if it goes on")
        self.assertEqual(self.firing(), set())
        self.until_text("#server-alerts", "No alert fires.")
        self.pass_by(5)
        self.until(lambda: self.js("return document.querySelector(arguments[0])?.dataset.state",
                                   self.alert("ClaimdOldestClaimTooOld")) == "firing", "it does not fire")
        self.assertNotIn("No alert fires", self.text("#server-alerts"))

    def test_a_pause_of_a_minute_is_no_notice(self):
        self.api.post("jobs", 1, ttl=86400)
        self.api("POST", "/claimd/queues/jobs/pause", {"claims": True})
        self.pass_by(2)
        self.open("#/server")
        self.until_text("#server-alerts", "No alert fires.")
        self.assertIsNone(self.text(self.alert("ClaimdQueuePausedLong")))
        self.pass_by(235)
        self.until_text(self.alert("ClaimdQueuePausedLong"), "if it goes on")

    def test_a_number_that_needs_time_is_being_measured(self):
        self.open("#/server")
        self.until_text("#server-facts", "Requestsmeasuring")
        self.assertNotIn("\u2013", self.text("main"))
        self.until_text("#connection", "updating every few seconds")
        self.until_text("#server-facts", "per second")
        self.assertNotIn("measuring", self.text("main"))

    def test_there_are_no_cards_of_parts_that_the_server_lacks(self):
        self.open("#/server")
        self.find("#server-facts")
        for part in ("journal", "redis", "subscriptions"):
            self.assertFalse(self.is_shown("#server-" + part), part)
        self.api("POST", "/v2/queues/jobs/subscriptions", {"subscriber": "http://127.0.0.1:1/", "ttl": 600})
        self.find("#server-subscriptions")


class Letters(Frozen):
    def rows(self):
        return self.texts("#letters tr[data-message]")

    def test_a_reason_keeps_its_lines(self):
        self.api.create("jobs", _dead_letter_queue="dead")
        one = self.api.dead_letter("jobs", 1, reason=TRACE + "\u202e\x1b")[0]
        self.open(route("dead", "shop", "dead"))
        self.until_text("#groups", "(most recent call last): \u23ce File")
        self.until_text("#letters td[data-col=holder]", "(most recent call last): \u23ce File")
        self.assertEqual(self.text("#letters td[data-col=deliveries]"), "1")
        self.assertEqual(self.texts("#groups .escape"), ["\\u202e", "\\u001b"])
        self.click("#groups button.link")
        self.until_text(".lines", TRACE.replace("\r\n", "\n"))
        self.open(route("message", "shop", "dead", one))
        self.until_text("#message-history", "charge()")
        lines = self.js("return document.querySelector('#message-history .lines').innerText").split("\n")
        self.assertEqual(lines, SHOWN[:3] + [SHOWN[3] + "\\u202e\\u001b"])
        self.looks_right()

    def test_the_cause_is_not_guessed(self):
        self.api.create("jobs", _dead_letter_queue="dead", _max_claim_count=1)
        one = self.api.post("jobs", 1)[0]
        claim, _ = self.api.claim("jobs")
        self.api.finish("jobs", claim, [one], "release", "declined")
        self.open(route("message", "shop", "dead", one))
        self.until_text("#message-history", "Moved here as a dead letter from jobs")
        self.until_text("#message-history", "declined")
        self.assertNotIn("dead-lettered it", self.text("#message-history"))
        self.assertNotIn("Attempts since it came here", self.text("main"))

    def past(self, **message):
        return self.js(
            "return import('./message.js').then((m) => {"
            " const box = document.createElement('div');"
            " box.append(...m.events('shop', arguments[0])); return box.textContent; })",
            {"created_at": "2026-01-01T00:00:00Z", "delivery_count": 0, "last_reason": "declined",
             "last_released_at": "2026-01-01T00:01:00Z", "dead_lettered_at": "2026-01-01T00:01:00Z",
             "origin_queue": "jobs", **message})

    def facts(self, **message):
        return self.js(
            "return import('./message.js').then((m) => {"
            " const box = document.createElement('div');"
            " for (const fact of m.stateFacts(arguments[0]).filter(Boolean)) box.append(...fact.flat(), '\\n');"
            " return box.textContent; })",
            {"created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-02T00:00:00Z", "state": "ready",
             "delivery_count": 0, **message})

    def test_a_kept_cause_is_shown(self):
        self.open("#/server")
        for cause, *parts in (("worker", "A worker dead-lettered it. Reason: declined", "from jobs."),
                              ("attempts", "A worker gave it back.",
                               "because it was delivered 3 times, as often as its queue allows."),
                              ("expired", "A worker gave it back.",
                               "because it was delivered 3 times, and the last claim expired.")):
            said = self.past(cause=cause, attempts=3)
            for part in parts:
                self.assertIn(part, said)
        self.assertIn("delivered 1 time,", self.past(cause="expired", attempts=1))
        self.assertIn("A worker failed on it.", self.past())
        dead = {"dead_lettered_at": "2026-01-01T00:01:00Z"}
        self.assertIn("Attempts before it failed3\n", self.facts(attempts=3, **dead))
        self.assertNotIn("Attempts", self.facts(**dead))
        self.assertIn("Attempts since it came here2\n", self.facts(delivery_count=2, **dead))
        self.assertIn("Attempts2 of 5\n", self.facts(delivery_count=2, max_claim_count=5))

    def test_a_worker_has_its_name(self):
        self.open("#/server")
        self.assertIn("A worker (web3 4711 at 10.0.0.5) failed on it.",
                      self.past(last_worker="web3 4711", last_address="10.0.0.5", last_client="c1"))
        self.assertIn("A worker (a client at 10.0.0.5)", self.past(last_address="10.0.0.5", last_client="c1"))
        self.assertIn("A worker (c1)", self.past(last_client="c1"))
        claim = {"ends_at": "2026-01-01T00:05:00Z", "number": 1, "client": "c1", "worker": "web3 4711",
                 "address": None}
        self.assertIn("Held byweb3 4711, until", self.facts(claim=claim))
        self.assertIn("Held byc1, until", self.facts(claim={**claim, "worker": None}))

    def test_the_target_stands_beside_put_back_and_delete_apart(self):
        self.api.create("jobs", _dead_letter_queue="dead")
        self.api.dead_letter("jobs", 1, 2)
        for width in (1200, 390):
            self.size(width)
            self.open(route("dead", "shop", "dead"))
            self.find("#letters tr[data-message]")
            box = {one: self.browser.find_element(By.CSS_SELECTOR, "#" + one).rect for one in
                   ("redrive-all", "redrive-to", "delete-selected", "delete-all")}
            with self.subTest(width=width):
                if width == 1200:
                    self.assertEqual({round(rect["y"] / 10) for rect in box.values()},
                                     {round(box["redrive-all"]["y"] / 10)})
                    self.assertLess(box["redrive-to"]["x"] - box["redrive-all"]["x"]
                                    - box["redrive-all"]["width"], 60)
                    self.assertGreater(box["delete-selected"]["x"] - box["redrive-to"]["x"]
                                       - box["redrive-to"]["width"], 20)
                else:
                    self.assertGreater(box["delete-selected"]["y"], box["redrive-to"]["y"])

    def test_one_message_is_in_the_singular(self):
        self.open("#/server")
        for number, said in ((1, "Its message becomes ready"), (3087, "Its 3,087 messages become ready")):
            self.js("import('./actions.js').then((m) => m.release('shop', 'jobs', {id: 'x', number: 1,"
                    " messages: arguments[0], client: 'c'}))", number)
            self.find("#confirm-cancel")
            self.assertIn(said, self.text("#confirm"))
            self.click("#confirm-cancel")

    def test_one_error_and_nothing_else(self):
        for hash_, said in ((route("dead", "shop", "none"), "There is no queue with this name."),
                            (route("message", "shop", "none", "f" * 24), "This message is gone.")):
            self.open(hash_)
            self.until_text("main .error", said)
            self.assertEqual([e.text for e in self.browser.find_elements(By.CSS_SELECTOR, "main .error")
                              if e.is_displayed()], [self.text("main .error")])
            for empty in ("table", "h2", "#message-history", "input"):
                self.assertFalse(self.is_shown("main " + empty), (hash_, empty))


class Gone(PageCase):
    """The server ends while a page is open."""

    def assert_old(self, hash_, there):
        server = PageServer("--ci", "--ci-short")
        self.addCleanup(server.__exit__, None, None, None)
        api = Api(server)
        api.create("jobs", _dead_letter_queue="dead")
        one = api.dead_letter("jobs", 1, reason="declined")[0]
        self.page = server.page
        self.open(hash_.replace("ID", one))
        self.find(there)
        self.assertFalse(self.is_shown("main.old"))
        server.signal(signal.SIGKILL)
        server.wait()
        self.find("main.old")
        self.may_fail = True
        self.assertRegex(self.find("main > .notice[role=alert]").text,
                         r"^No response from the server\. This is as of \d\d:\d\d:\d\d\.$")
        shown = self.js("return document.querySelector('main').innerText")
        self.assertEqual(shown.count("No response"), 1, shown)
        color = "return getComputedStyle(document.querySelector(arguments[0])).color"
        self.assertEqual(self.js(color, there), self.js(color, "main"))
        self.assertNotEqual(self.js(color, there), self.js(color, "body"))

    def test_the_server_view(self):
        self.assert_old("#/server", "#server-facts")

    def test_dead_letters(self):
        self.assert_old(route("dead", "shop", "dead"), "#letters tr[data-message]")

    def test_a_message(self):
        self.assert_old(route("message", "shop", "dead", "ID"), "#message-body")


if __name__ == "__main__":
    unittest.main()
