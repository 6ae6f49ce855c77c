#!/usr/bin/python3
"""The page in a browser: its views and actions, and who may do what.

    page_test.py CLAIMD [CLASS...]
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

from harness import CLAIMD  # noqa: E402
from page import NAME, PageCase, route  # noqa: E402

WORKER = "00000000-0000-0000-0000-0000000000a1"
HOST = "web3 4711"


def furnish(api):
    """One thing of each kind that the views show."""
    api.create("jobs", _dead_letter_queue="jobs-dead", _max_claim_count=3)
    api.dead_letter("jobs", {"order": 2}, {"order": 3}, reason="connection refused", client=WORKER, worker=HOST)
    api.dead_letter("jobs", {"order": 4}, reason="bad JSON", client=WORKER, worker=HOST)
    api.post("jobs", *({"order": 4711 + i, "mail": "a@example.org"} for i in range(6)))
    api.post("jobs", {"order": 1}, delay=600)
    return api.claim("jobs", 2, client=WORKER, worker=HOST)


class Views(PageCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.claim, cls.claimed = furnish(cls.api)
        cls.dead = cls.api.messages("jobs-dead")

    def looks_right(self):
        """Light and dark, axe-core finds nothing."""
        for theme in ("light", "dark"):
            self.theme(theme)
            with self.subTest(theme=theme):
                self.assertEqual(self.axe(), [])

    def test_queues(self):
        self.open("#/queues")
        self.until_cell("jobs", "ready", "4")
        self.until_cell("jobs", "claimed", "2")
        self.until_cell("jobs-dead", "dead_letters", "3")
        self.looks_right()
        self.type("#filter-text", "dead")
        self.until(lambda: self.cell("jobs", "name") is None, "the filter does nothing")
        self.type("#filter-project", "none")
        self.until(lambda: self.cell("jobs-dead", "name") is None, "the project does nothing")

    def test_queue(self):
        self.open(route("queue", "shop", "jobs"))
        self.until_text("#queue-title", "jobs")
        self.until_text('#claims tr[data-claim="%s"]' % self.claim, HOST)
        self.find('#claims tr[data-claim="%s"] progress' % self.claim)
        self.until(lambda: len(self.texts("#messages tr[data-message]")) == 7, "messages are missing")
        self.find("#chart-depth")
        self.find("#chart-rates")
        self.looks_right()

    def search(self, field, text):
        self.js("const e = document.querySelector('#search-field'); e.value = arguments[0];"
                "e.dispatchEvent(new Event('change', {bubbles: true}))", field)
        self.type("#search-text", text + Keys.ENTER)

    def test_search(self):
        self.open(route("queue", "shop", "jobs"))
        for field, text, found in (("id", self.claimed[1], 1), ("claim", self.claim, 2),
                                   ("client", WORKER, 2), ("text", "4713", 1)):
            self.search(field, text)
            self.until(lambda count=found: len(self.texts("#messages tr[data-message]")) == count,
                       "%s does not find %s" % (field, text))
        self.until_text("#search-progress", "7")

    def test_message(self):
        self.open(route("message", "shop", "jobs", self.claimed[0]))
        self.until_text("#message-state", "claimed")
        self.until_text("#message-next", HOST)
        self.until_text("#message-body", "4711")
        self.looks_right()
        self.click("#show-bytes")
        self.until_text("#message-bytes", "7b")
        self.looks_right()

    def test_dead_letter(self):
        letter = next(m for m in self.dead if m["last_reason"] == "bad JSON")
        self.open(route("message", "shop", "jobs-dead", letter["id"]))
        self.until_text("#message-history", "bad JSON")
        self.until_text("#message-history", HOST)

    def test_dead_letters(self):
        self.open(route("dead", "shop", "jobs-dead"))
        self.until(lambda: len(self.texts("#letters tr[data-message]")) == 3, "letters are missing")
        self.until_text("#groups", "connection refused")
        self.until_text('#groups tr[data-reason="bad JSON"]', "jobs")
        self.until_text('#groups tr[data-reason="bad JSON"]', HOST)
        self.looks_right()

    def test_server(self):
        self.open("#/server")
        for part in ("facts", "memory", "connections", "alerts"):
            self.find("#server-" + part)
        self.until_text("#server-facts", "0.")
        self.looks_right()

    def test_a_theme_can_be_chosen(self):
        self.theme("light")
        self.open("#/queues")
        color = "return getComputedStyle(document.body).backgroundColor"
        light = self.js(color)
        self.click("#theme")  # from auto to the one that differs
        self.until(lambda: self.js(color) != light, "it stays light")
        self.open("#/server")
        self.assertNotEqual(self.js(color), light)
        self.click("#theme")
        self.click("#theme")  # auto again

    def test_an_unknown_queue_says_so(self):
        self.open(route("queue", "shop", "nothing"))
        self.until_text("main", "There is no queue with this name")
        self.open(route("message", "shop", "jobs", "ffffffffffffffffffffffff"))
        self.until_text("main", "This message is gone")
        self.open(route("dead", "shop", "nothing"))
        self.until_text("main", "There is no queue with this name")

    def test_cookies_of_other_programs_on_the_host_do_no_harm(self):
        self.open()
        self.addCleanup(self.browser.delete_all_cookies)
        for i in range(60):
            self.browser.add_cookie({"name": "other%d" % i, "value": "v" * 200, "path": "/"})
        self.open()
        self.until_text("main", "jobs")


class Actions(PageCase):
    options = (*PageCase.options, "--max-messages-per-claim-or-pop=1000")

    def setUp(self):
        super().setUp()
        self.api("POST", "/claimd/reset")

    def make_dead(self, count, *bodies, reason="bad JSON"):
        self.api.create("jobs", _dead_letter_queue="dead")
        return self.api.dead_letter("jobs", *(bodies or range(count)), reason=reason)

    def test_post(self):
        self.api.create("jobs")
        self.open(route("queue", "shop", "jobs"))
        self.click("#action-post")
        self.set("#post-body", '{"a": ')
        self.click("#post-send")
        self.find("#post")  # with an error
        self.assertEqual(self.api.total("jobs"), 0)
        self.set("#post-body", '{"a": "\U0001f600"}')
        self.type("#post-ttl", "300")
        self.type("#post-delay", "60")
        self.click("#post-send")
        self.until(lambda: self.api.total("jobs") == 1, "the message is not posted")
        self.until(lambda: not self.is_shown("#post"), "the dialog stays open")
        message = self.api.messages("jobs")[0]
        self.assertEqual(json.loads(message["body_start"]), {"a": "\U0001f600"})
        self.assertEqual(message["state"], "delayed")
        self.until(lambda: len(self.texts("#messages tr[data-message]")) == 1, "the row is missing")

    def test_release_of_a_claim(self):
        self.api.post("jobs", 1, 2)
        claim, _ = self.api.claim("jobs", 2)
        self.open(route("queue", "shop", "jobs"))
        self.click('#claims tr[data-claim="%s"] button.release' % claim)
        self.confirm("2")
        self.until(lambda: {m["state"] for m in self.api.messages("jobs")} == {"ready"},
                   "the claim is not released")
        self.until_gone('#claims tr[data-claim="%s"]' % claim)

    def test_cancel(self):
        self.api.post("jobs", 1, 2)
        self.open(route("queue", "shop", "jobs"))
        self.purge()
        self.find("#confirm-cancel")
        self.click("#confirm-cancel")
        self.until(lambda: not self.is_shown("#confirm"), "the dialog stays open")
        self.purge()
        self.find("#confirm-ok")
        self.keys(Keys.ESCAPE)
        self.until(lambda: not self.is_shown("#confirm"), "the dialog stays open")
        self.assertEqual(self.api.total("jobs"), 2)

    def test_purge(self):
        self.api.post("jobs", *range(7))
        self.open(route("queue", "shop", "jobs"))
        self.until_text(".tiles", "7")
        self.purge()
        self.confirm("jobs", "7")
        self.until(lambda: self.api.total("jobs") == 0, "the queue is not purged")
        self.until_gone("#messages tr[data-message]")

    def row_of(self, queue):
        return next(row for row in self.api("GET", "/claimd/queues")["queues"] if row["name"] == queue)

    def test_pause_and_resume(self):
        self.api.post("jobs", 1)
        self.open(route("queue", "shop", "jobs"))
        self.click("#action-pause")
        self.confirm("jobs")
        self.until_text("#toasts", "Paused")
        self.assertIn("Resume", self.text("#action-pause"))  # the new state came before the toast
        self.until(lambda: re.search(r"Claims are paused \(last pause: [0-9:]+, by a client at 127[.]0[.]0[.]1\)[.]", self.text("main")),
                   "there is no last pause")
        self.assertTrue(self.row_of("jobs")["paused"]["claims"])
        self.click("#action-pause")
        if self.is_shown("#confirm-ok"):
            self.confirm("jobs")
        self.until(lambda: not self.row_of("jobs")["paused"]["claims"], "it is not resumed")
        self.until_text("#action-pause", "Pause")

    def test_delete_of_a_message(self):
        one, other = self.api.post("jobs", 1, 2)
        self.open(route("message", "shop", "jobs", one))
        self.click("#action-delete")
        self.confirm("jobs")
        self.until(lambda: [m["id"] for m in self.api.messages("jobs")] == [other],
                   "the message is not deleted")

    def test_release_of_a_message(self):
        one, _ = self.api.post("jobs", 1, 2)
        self.api.claim("jobs", 2)
        self.open(route("message", "shop", "jobs", one))
        self.click("#action-release")
        self.confirm()
        self.until(lambda: self.api.messages("jobs")[0]["state"] == "ready", "it is not released")
        self.until_text("#message-state", "ready")

    def test_redrive_of_a_message(self):
        one, other = self.make_dead(2)
        self.open(route("message", "shop", "dead", one))
        self.click("#action-redrive")
        self.confirm("jobs")
        self.until(lambda: [m["id"] for m in self.api.messages("jobs")] == [one], "it does not move")
        self.assertEqual([m["id"] for m in self.api.messages("dead")], [other])

    def select(self, *ids):
        for one in ids:
            self.click('#letters tr[data-message="%s"] input[type=checkbox]' % one)

    def test_redrive_of_a_selection(self):
        ids = self.make_dead(4)
        self.open(route("dead", "shop", "dead"))
        self.select(ids[1], ids[3])
        self.click("#redrive-selected")
        self.confirm("2", "jobs")
        self.until(lambda: [m["id"] for m in self.api.messages("jobs")] == [ids[1], ids[3]],
                   "they do not move")
        self.until(lambda: len(self.texts("#letters tr[data-message]")) == 2, "the rows stay")

    def test_delete_of_a_selection(self):
        ids = self.make_dead(4)
        self.open(route("dead", "shop", "dead"))
        self.click("#select-all")
        self.select(ids[2])
        self.click("#delete-selected")
        self.confirm("3")
        self.until(lambda: [m["id"] for m in self.api.messages("dead")] == [ids[2]],
                   "they are not deleted")

    def test_delete_of_all_that_match(self):
        self.make_dead(60, reason="bad JSON")
        kept = self.make_dead(3, reason="connection refused")
        self.open(route("dead", "shop", "dead"))
        self.click('#groups tr[data-reason="bad JSON"] button, #groups tr[data-reason="bad JSON"] a')
        self.until(lambda: "connection refused" not in (self.text("#letters") or ""),
                   "the group selects nothing")
        self.browser.refresh()  # keeps the choice
        self.until_text("main", "With the reason: bad JSON")
        self.click("#delete-all")
        self.confirm("60")
        self.until(lambda: [m["id"] for m in self.api.messages("dead")] == kept,
                   "they are not deleted")
        self.until_text("main", "All reasons")
        self.assertEqual(self.js("return location.hash"), route("dead", "shop", "dead"))
        self.until(lambda: len(self.texts("#letters tr[data-message]")) == 3, "the others are not shown")

    def test_redrive_of_all_with_progress(self):
        self.api.create("jobs", _dead_letter_queue="dead", _max_claim_count=1)
        for _ in range(3):
            self.api.post("jobs", *range(1000))
        for _ in range(3):
            self.api.claim("jobs", 1000, ttl=60)
        self.api("POST", "/claimd/clock/advance", {"seconds": 61})
        self.api("POST", "/v2/queues/jobs/claims", {"ttl": 60, "grace": 60})  # moves them
        self.assertEqual(self.api.total("dead"), 3000)
        self.open(route("dead", "shop", "dead"))
        self.js("window.seen = new Set();"
                "new MutationObserver(() => { const p = document.querySelector('#progress');"
                " if (p && p.offsetParent) window.seen.add(p.value); })"
                ".observe(document.body, {subtree: true, childList: true, attributes: true});")
        self.click("#redrive-all")
        self.confirm("3,000", "jobs")
        self.until(lambda: self.api.total("jobs") == 3000, "they do not move")
        self.assertEqual(self.api.total("dead"), 0)
        self.until_gone("#letters tr[data-message]")
        self.assertGreaterEqual(len(self.js("return [...window.seen]")), 3)

    def test_the_keyboard_is_enough(self):
        one = self.make_dead(1)[0]
        self.open("#/queues")
        self.until_cell("dead", "dead_letters", "1")
        self.tab_to(lambda: self.js("return document.activeElement.matches(arguments[0])",
                                    self.row("dead") + " [data-col=name] a"))
        self.keys(Keys.ENTER)
        self.until_text("#queue-title", "dead")
        self.tab_to(lambda: self.focused() == "action-dead-letters")
        self.keys(Keys.ENTER)
        self.find('#letters tr[data-message="%s"]' % one)
        self.tab_to(lambda: self.js("return document.activeElement.closest('#letters tr[data-message]')"
                                    " && document.activeElement.type === 'checkbox'"))
        self.keys(Keys.SPACE)
        self.tab_to(lambda: self.focused() == "redrive-selected", most=120)
        self.keys(Keys.ENTER)
        self.find("#confirm-ok")
        self.tab_to(lambda: self.focused() == "confirm-ok")
        self.keys(Keys.ENTER)
        self.until(lambda: [m["id"] for m in self.api.messages("jobs")] == [one], "it does not move")


class Schedules(PageCase):
    def setUp(self):
        super().setUp()
        while found := self.api("GET", "/claimd/schedules")["schedules"]:
            for one in found:
                self.api("DELETE", "/claimd/queues/%(queue)s/schedules/%(name)s" % one)
        self.api("POST", "/claimd/reset")

    def put(self, queue, name, **definition):
        self.api("PUT", "/claimd/queues/%s/schedules/%s" % (queue, name),
                 {"message": {"body": {"report": 1}}, **definition})

    def show(self, queue, name):
        return self.api("GET", "/claimd/queues/%s/schedules/%s" % (queue, name))

    def advance(self, seconds):
        self.api("POST", "/claimd/clock/advance", {"seconds": seconds})

    def cell_of(self, name, column):
        return '#schedules tr[data-schedule="%s"] [data-col=%s]' % (name, column)

    def looks_right(self):
        for theme in ("light", "dark"):
            self.theme(theme)
            self.assertEqual(self.axe(), [], theme)

    def test_a_list(self):
        self.put("reports", "nightly", cron="30 2 * * 1-5", timezone="Europe/Berlin")
        self.put("mail", "pulse", every=300, paused=True)
        self.put("reports", "often", every=60, overlap="skip")
        self.advance(61)
        self.open("#/schedules")  # of the only project
        self.until_text(self.cell_of("often", "last"), "ready")
        self.until_text(self.cell_of("often", "posted"), "1")
        self.until_text(self.cell_of("nightly", "when"), "30 2 * * 1-5Europe/Berlin")
        self.until_text(self.cell_of("nightly", "next"), "in ")
        self.until_text(self.cell_of("pulse", "when"), "every 5 min")
        self.until_text(self.cell_of("pulse", "next"), "paused")
        self.assertEqual(self.js("return [...document.querySelectorAll('#schedules tr[data-schedule]')]"
                                 ".map((e) => e.dataset.schedule)"), ["pulse", "nightly", "often"])
        self.looks_right()
        self.open(route("queue", "shop", "mail"))
        self.click("#action-schedules")
        self.find(self.cell_of("pulse", "name"))
        self.assertIsNone(self.text(self.cell_of("nightly", "name")))

    def test_a_schedule_that_cannot_post_says_why(self):
        self.put("jobs", "often", every=60)
        self.api("POST", "/claimd/queues/jobs/pause", {"posts": True})
        self.advance(61)
        self.open("#/schedules?project=shop")
        self.until_text(self.cell_of("often", "next"), "Cannot post: ")
        self.click(self.cell_of("often", "name") + " a")
        self.until_text(".notice.bad", "claimd cannot post: ")
        self.looks_right()

    def test_one_schedule(self):
        self.put("jobs", "often", every=60, message={"body": 9007199254740993, "ttl": 3600})
        self.advance(61)
        self.open(route("schedule", "shop", "jobs", "often"))
        self.until_text(".facts", "1 posted")
        self.until_text(".facts", "Lifetime of messages1 h")
        self.until_text("#message-body", "9007199254740993")
        self.assertEqual(len(self.texts("#schedule-next li")), 10)
        self.looks_right()
        self.open(route("schedule", "shop", "jobs", "none"))
        self.until_text("main", "There is no schedule with this name")

    def test_pause_resume_and_delete(self):
        self.put("jobs", "often", every=600)
        self.open("#/schedules?project=shop")
        self.click(self.cell_of("often", "actions") + " button.pause")
        self.confirm("often", "jobs")
        self.until_text(self.cell_of("often", "next"), "paused")
        self.assertTrue(self.show("jobs", "often")["paused"])
        self.click(self.cell_of("often", "name") + " a")
        self.until_text("#action-pause", "Resume")
        self.click("#action-pause")
        self.confirm("often")
        self.until_text("#action-pause", "Pause")
        self.assertFalse(self.show("jobs", "often")["paused"])
        self.click("#action-delete")
        self.confirm("often", "cannot undo")
        self.until_text("main", "There is no schedule.")
        self.assertEqual(self.api("GET", "/claimd/schedules")["schedules"], [])

    def test_more_than_a_few_pages(self):
        for i in range(101):
            self.put("jobs", "s%03d" % i, every=600)
        self.open("#/schedules?project=shop&queue=jobs")
        self.until_text("main", "100 schedules, and there are more")
        self.click("#schedules-more")
        self.find(self.cell_of("s100", "name"))


# ------------------------------------------------------------------ permissions


class Backlog(PageCase):
    """Messages that are only on the disk."""

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.options = ("--journal", os.path.join(folder, "journal"), "--backlog-memory", "1M")
        super().setUpClass()

    def test_unloaded_messages_are_shown_if_there_are_some(self):
        self.api.post("jobs", "first")
        self.open(route("queue", "shop", "jobs"))
        self.until_text(".tiles", "Ready")
        self.assertNotIn("Only on the disk", self.text("main"))
        for _ in range(200):
            self.api.post("jobs", *["x" * 1000] * 20)
        self.until_text(".notice.fact", "Only on the disk: ")
        self.open("#/server")
        self.until_text("#server-journal", "Body files")
        self.until_text("#server-journal", "Only on the disk")
        self.until_text("#server-journal", "since the start")


class Tokens(PageCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.file = os.path.join(folder, "tokens")
        cls.tokens = {name: cls.new(name, *words) for name, words in (
            ("boss", ("admin",)), ("eye", ("reader",)),
            ("shop-ops", ("operator", "--projects", "shop")))}
        cls.options = ("--auth=tokens", "--tokens=" + cls.file, "--allowed-hosts=" + NAME)
        super().setUpClass()
        cls.api.headers = {"Authorization": "Bearer " + cls.tokens["boss"]}
        furnish(cls.api)
        cls.api("PUT", "/claimd/queues/jobs/schedules/daily", {"cron": "@daily", "message": {"body": 1}})
        cls.api.post("secret", 1, project="bank")

    @classmethod
    def new(cls, name, role, *words):
        return subprocess.run([CLAIMD, "token", "new", name, "--role", role, *words, "--tokens", cls.file],
                              stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    def log_in(self, token, hash_="#/queues"):
        self.browser.get("about:blank")
        self.browser.get(self.page + hash_)
        self.find("#login-token")
        self.type("#login-token", token)
        self.click("#login-send")

    def enter(self, name, hash_="#/queues"):
        self.log_in(self.tokens[name], hash_)
        self.until(lambda: self.text("h1"), "the view has no heading")

    def test_a_wrong_token_shows_the_error(self):
        self.log_in("claimd_" + "0" * 64)
        self.until(lambda: (self.text("#login-error") or "").strip(), "there is no error")
        self.type("#login-token", self.tokens["boss"])
        self.click("#login-send")
        self.until_cell("jobs", "ready", "4")

    def test_no_token_goes_over_a_connection_that_others_can_read(self):
        self.browser.get(self.page.replace("127.0.0.1", NAME))
        self.until_text("#login-error", "https:")
        self.assertFalse(self.is_shown("#login-token"))
        self.assertFalse(self.is_shown("#login-send"))
        self.page = self.page.replace("127.0.0.1", NAME)

    def test_the_login_has_no_violation(self):
        self.browser.get(self.page)
        self.find("#login-token")
        for theme in ("light", "dark"):
            self.theme(theme)
            self.assertEqual(self.axe(), [])

    def test_a_token_is_kept_nowhere(self):
        self.enter("boss")
        self.until_cell("jobs", "ready", "4")
        self.click(self.row("jobs") + " a")
        self.until_text("#queue-title", "jobs")
        token = self.tokens["boss"]
        kept = self.js("return JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie,"
                       " location.href, history.state, document.documentElement.outerHTML])")
        self.assertNotIn(token, kept)
        self.assertNotIn(token[7:], kept)
        self.assertEqual(self.browser.get_cookies(), [])
        self.assertEqual([url for url in self.requests() if token[7:] in url], [])
        self.browser.refresh()
        self.find("#login-token")

    def test_a_token_stays_on_the_tab_if_the_user_wants_it(self):
        self.browser.get("about:blank")
        self.browser.get(self.page)
        self.click("#login-keep")
        self.type("#login-token", self.tokens["boss"])
        self.click("#login-send")
        self.until_cell("jobs", "ready", "4")
        self.browser.refresh()
        self.until_cell("jobs", "ready", "4")
        self.assertEqual(self.browser.get_cookies(), [])
        self.assertNotIn(self.tokens["boss"], self.js("return JSON.stringify({...localStorage})"))
        tab = self.browser.current_window_handle
        self.browser.switch_to.new_window("tab")
        self.browser.get(self.page)  # another tab does not know it
        self.find("#login-token")
        self.browser.close()
        self.browser.switch_to.window(tab)
        self.click("#logout")
        self.find("#login-token")
        self.assertEqual(self.js("return sessionStorage.length"), 0)

    def test_a_kept_token_that_is_refused_is_forgotten(self):
        self.browser.get(self.page)
        self.js("sessionStorage.setItem('claimd-token', 'claimd_' + '0'.repeat(64))")
        self.browser.refresh()
        self.find("#login-token")
        self.assertEqual(self.js("return sessionStorage.length"), 0)

    def test_a_reader_sees_and_acts_not(self):
        claim = self.api("GET", "/claimd/queues/jobs/claims")["claims"][0]["id"]
        letter = self.api.messages("jobs-dead")[0]["id"]
        self.enter("eye")
        self.until_text("h1", "Which project?")  # it may not see all of them at once
        self.type("#project-name", "shop" + Keys.ENTER)
        self.until_cell("jobs", "ready", "4")
        self.until_text("#caller", "read-only")
        for hash_, there in ((route("queue", "shop", "jobs"), "#messages tr[data-message]"),
                             (route("message", "shop", "jobs-dead", letter), "#message-body"),
                             (route("dead", "shop", "jobs-dead"), "#letters tr[data-message]"),
                             ("#/schedules?project=shop", "#schedules tr[data-schedule]"),
                             (route("schedule", "shop", "jobs", "daily"), "#message-body")):
            self.js("location.hash = arguments[0]", hash_)
            self.find(there)
            for action in ("post", "pause", "more", "purge", "delete", "release", "redrive"):
                self.assertFalse(self.is_usable("#action-" + action), action)
            for action in ("#redrive-selected", "#redrive-all", "#delete-selected", "#delete-all",
                           '#claims tr[data-claim="%s"] button.release' % claim, "#schedules td button"):
                self.assertFalse(self.is_usable(action), action)

    def is_usable(self, css):
        return any(e.is_displayed() and e.is_enabled() and e.get_attribute("aria-disabled") != "true"
                   for e in self.browser.find_elements(By.CSS_SELECTOR, css))

    def test_a_token_of_one_project_sees_that_one(self):
        self.enter("shop-ops")
        self.until_cell("jobs", "ready", "4")
        self.assertNotIn("bank", self.text("main"))
        self.js("location.hash = arguments[0]", route("queue", "bank", "secret"))
        self.until_text("main", "Not authorized")
        self.js("location.hash = arguments[0]", route("queue", "shop", "jobs"))
        self.until_text("#queue-title", "jobs")
        self.click("#action-more summary")
        self.assertTrue(self.is_usable("#action-purge"))

    def test_a_foreign_page_cannot_act(self):
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
            self.api("POST", "/v2/queues/jobs/messages", {"messages": [{"body": 1}]}, expect=403,
                     headers={"Origin": origin, "Claimd-UI": "1"})
        self.assertEqual(self.api.total("jobs"), 7)

    def test_actions_are_in_the_log(self):
        self.api.post("audited", 1)
        self.enter("boss", route("queue", "shop", "audited"))
        self.purge()
        self.confirm("audited")
        line = self.server.logged("path=/v2/queues/audited/purge")
        self.assertIn(" audit ", line)
        for part in ("boss", "shop", "audited", "purge"):
            self.assertIn(part, line)
        self.assertNotIn(self.tokens["boss"][7:], line)


if __name__ == "__main__":
    unittest.main()
