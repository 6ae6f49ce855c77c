#!/usr/bin/python3
"""Schedules of a real server (docs/api.md 31): a due time posts once, whatever happens meanwhile.

    schedules_test.py CLAIMD

The clock of the test API moves step by step, so that each due time posts at its own time.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import threading
import time
import unittest
import zoneinfo
from datetime import datetime, timedelta

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import Server, environment, eventually, run  # noqa: E402
from journalled import JournalCase  # noqa: E402

ITEM = "/claimd/queues/q/schedules/n"
HOUR, DAY = 3600, 86400
KILLS = 10
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


def utc(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def next_change(now, ahead):
    """The UTC time after `now` at which the clocks of Berlin go ahead, or back."""
    at = now.replace(minute=0, second=0, microsecond=0)
    while True:
        before, at = at, at + timedelta(hours=1)
        step = at.astimezone(BERLIN).utcoffset() - before.astimezone(BERLIN).utcoffset()
        if (step > timedelta(0)) if ahead else (step < timedelta(0)):
            return at


class Case(JournalCase):
    def request(self, method, target, document=None, status=200):
        body = None if document is None else json.dumps(document).encode()
        response = self.server.fetch(method, target, body)
        self.assertEqual(response.status, status, response)
        return json.loads(response.body) if response.body else None

    def open(self, *options, **more):
        self.server = Server("--ci", *options, **more)
        self.request("PUT", "/claimd/clock", {"state": "frozen"})

    def put(self, recurrence, target=ITEM, status=201, body=1, **more):
        """Sets a schedule by an expression, or by an interval. Its messages live for days."""
        by = {"every": recurrence} if isinstance(recurrence, int) else {"cron": recurrence}
        return self.request("PUT", target, {**by, "message": {"body": body, "ttl": 14 * DAY}, **more}, status)

    def show(self, target=ITEM):
        return self.request("GET", target)

    def now(self):
        return utc(self.request("GET", "/claimd/clock")["now"])

    def advance(self, seconds):
        self.request("POST", "/claimd/clock/advance", {"seconds": int(seconds)})

    def advance_to(self, moment):
        self.advance((moment - self.now()).total_seconds())

    def messages(self, queue="q"):
        """All messages, oldest first: when each was posted, and its key."""
        found, target = [], "/claimd/queues/%s/messages?limit=200" % queue
        marker = ""
        while True:
            page = self.request("GET", target + marker)
            found += [(m["created_at"], m["unique"]) for m in page["messages"]]
            if page.get("marker") is None:
                return found
            marker = "&marker=" + page["marker"]

    def due(self, queue="q", name="n"):
        """The due times of all messages of a schedule, as seconds since 1970."""
        before = "schedule/%s/%s/" % (queue, name)
        return [int(key[len(before):]) for _, key in self.messages(queue) if key.startswith(before)]


class Running(Case):
    def test_each_due_time_posts_one_message_at_its_own_time(self):
        self.open()
        self.advance_to(self.now().replace(minute=0, second=0) + timedelta(hours=1))
        self.put("*/5 * * * *")
        begin = self.now()
        self.advance(HOUR)
        expected = [begin + timedelta(minutes=5 * i) for i in range(1, 13)]
        self.assertEqual([utc(at) for at, _ in self.messages()], expected)
        self.assertEqual(self.due(), [int(at.timestamp()) for at in expected])
        shown = self.show()
        self.assertEqual((shown["posted"], shown["missed_count"]), (12, 0))
        self.assertEqual(utc(shown["last"]["due"]), expected[-1])
        self.assertEqual(shown["last"]["message_state"], "ready")

    def test_a_move_to_the_next_event_ends_at_a_due_time(self):
        self.open()
        self.put("30 2 * * *")
        for day in (1, 2):
            moved = self.request("POST", "/claimd/clock/advance", {"to": "next"})
            self.assertEqual(moved["now"][11:19], "02:30:00")
            self.assertEqual([event["event"] for event in moved["events"]], ["schedule_posted"])
            self.assertEqual(len(self.due()), day)
        self.request("DELETE", "/v2/queues/q", status=204)
        # Nothing was posted, so it was no event.
        moved = self.request("POST", "/claimd/clock/advance", {"seconds": DAY})
        self.assertEqual(moved["events"], [])

    def berlin(self, ahead, expression):
        """The due times on the day of a clock change, in UTC."""
        self.open()
        change = next_change(self.now(), ahead)
        self.advance_to(change - timedelta(hours=3))
        self.put(expression, timezone="Europe/Berlin")
        self.advance(DAY)
        return [timedelta(seconds=at - change.timestamp()) for at in self.due()]

    def test_a_time_in_a_gap_is_due_at_its_end(self):
        self.assertEqual(self.berlin(True, "30 2 * * *"), [timedelta(0)])

    def test_a_repeated_time_is_due_once(self):
        self.assertEqual(self.berlin(False, "30 2 * * *"), [-timedelta(minutes=30)])

    def test_an_hourly_schedule_follows_the_clock(self):
        self.assertEqual(self.berlin(False, "30 * * * *"),
                         [timedelta(minutes=60 * i - 30) for i in range(-2, 22)])

    def test_a_paused_schedule_posts_nothing(self):
        self.open()
        self.put(60)
        self.advance(120)
        self.request("PATCH", ITEM, {"paused": True})
        self.advance(600)
        self.assertEqual(len(self.due()), 2)
        self.assertEqual(self.show()["next"], [])
        self.request("PATCH", ITEM, {"paused": False})
        self.advance(60)
        self.assertEqual(len(self.due()), 3)
        self.assertEqual(self.show()["missed_count"], 0)

    def test_an_overlap_is_skipped_while_the_message_before_is_in_the_queue(self):
        self.open()
        self.put(60, overlap="skip")
        self.advance(180)
        shown = self.show()
        self.assertEqual((shown["posted"], shown["skipped_count"]), (1, 2))
        self.assertEqual([key for _, key in self.messages()], ["schedule/q/n"])
        claim = self.claim("q", ttl=600)
        self.advance(60)
        self.assertEqual(self.show()["skipped_count"], 3)  # also while it is claimed
        self.assertEqual(self.show()["last"]["message_state"], "claimed")
        self.server.fetch("DELETE", claim.messages[0]["href"])
        self.assertNotIn("message_id", self.show()["last"])
        self.advance(60)
        self.assertEqual(self.show()["posted"], 2)

    def test_a_paused_queue_gets_the_latest_message_when_it_resumes(self):
        self.open()
        self.put(60)
        self.request("POST", "/claimd/queues/q/pause", {"posts": True})
        self.advance(180)
        shown = self.show()
        self.assertEqual((shown["posted"], shown["last"]), (0, None))
        self.assertEqual(shown["error"], "posts to queue q are paused")
        self.assertGreater(shown["refused_count"], 2)
        self.server.logged("schedule_refused")
        self.request("POST", "/claimd/queues/q/pause", {"posts": False})
        self.advance(60)
        shown = self.show()
        self.assertIsNone(shown["error"])
        self.assertEqual(shown["posted"] + shown["missed_count"], 4)
        self.assertLess(shown["missed_count"], 4)
        self.assertEqual(len(self.due()), shown["posted"])
        metrics = self.server.fetch("GET", "/metrics").body.decode()
        for name, value in (("posts", shown["posted"]), ("missed", shown["missed_count"]),
                            ("refused", shown["refused_count"]), ("skipped", 0)):
            self.assertIn("\nclaimd_schedule_%s_total %d\n" % (name, value), metrics)
        self.assertNotIn('queue="schedules"', metrics)

    def test_a_change_forgets_the_error(self):
        self.open()
        self.put(HOUR)
        for change in (lambda: self.put("0 0 1 1 *", status=200),
                       lambda: self.request("PATCH", ITEM, {"paused": True})):
            self.put(HOUR, status=200)
            self.request("POST", "/claimd/queues/q/pause", {"posts": True})
            self.advance(HOUR)
            self.assertEqual(self.show()["error"], "posts to queue q are paused")
            change()
            self.assertIsNone(self.show()["error"])
            self.request("POST", "/claimd/queues/q/pause", {"posts": False})

    def test_a_deleted_queue_refuses_until_it_is_made_again(self):
        self.open()
        self.put(HOUR)
        self.server.fetch("DELETE", "/v2/queues/q")
        self.advance(HOUR)
        self.assertEqual(self.show()["error"], "queue q does not exist")
        self.request("PUT", "/v2/queues/q", {}, 201)
        self.advance(60)  # the longest time between two tries
        self.assertEqual(len(self.due()), 1)
        self.assertIsNone(self.show()["error"])

    def test_maintenance_posts_nothing(self):
        self.open()
        self.put(HOUR)
        self.server.signal(signal.SIGUSR1)
        self.server.logged(" maintenance ")
        self.advance(HOUR)
        self.assertGreater(self.show()["refused_count"], 0)
        self.assertEqual(self.due(), [])
        self.server.signal(signal.SIGUSR1)
        eventually(lambda: self.server.fetch("GET", "/readyz").status == 200)
        self.advance(60)
        self.assertEqual(len(self.due()), 1)

    def test_an_encrypted_queue_gets_encrypted_messages(self):
        keys = os.path.join(self.folder, "keys")

        def set_key(digit):
            with open(keys, "w", encoding="ascii") as f:
                f.write(digit * 64 + "\n")
            os.chmod(keys, 0o600)

        set_key("5")
        self.open("--encryption-keys", keys)
        self.request("PUT", "/v2/queues/q", {"_enable_encrypt_messages": True}, 201)
        self.put(60, body="secret")
        self.advance(60)
        self.assertEqual(self.claim("q").bodies(), ["secret"])
        self.assertIn(b"\nclaimd_bodies_encrypted_total 2\n", self.server.fetch("GET", "/metrics").body)
        set_key("6")
        self.server.reload()
        self.advance(60)
        self.assertIn(" queue=q schedule=n ", self.server.logged(" schedule_refused "))
        set_key("5")
        self.server.reload()
        self.advance(60)
        self.assertEqual(self.show()["posted"] + self.show()["missed_count"], 3)

    def test_rules_of_a_time_zone_may_change_meanwhile(self):
        zones = os.path.join(self.folder, "zones")
        os.mkdir(zones)

        def install(name):
            shutil.copy(os.path.join("/usr/share/zoneinfo", name), os.path.join(zones, "new"))
            os.rename(os.path.join(zones, "new"), os.path.join(zones, "Somewhere"))

        install("Asia/Tokyo")
        self.open(env=environment(TZDIR=zones))
        self.advance_to(self.now().replace(hour=0, minute=0, second=0) + timedelta(days=1))
        self.put("0 12 * * *", timezone="Somewhere")
        begin = self.now()
        self.assertEqual(utc(self.show()["next"][0]), begin + timedelta(hours=3))
        install("Asia/Kolkata")
        self.advance(HOUR + 1)  # a file is looked at once an hour
        expected = begin + timedelta(hours=6, minutes=30)
        self.assertEqual(utc(self.show()["next"][0]), expected)
        self.advance(DAY - HOUR)
        self.assertEqual(self.due(), [int(expected.timestamp())])
        os.remove(os.path.join(zones, "Somewhere"))  # the old rules stay
        self.advance(DAY)
        self.assertEqual(len(self.due()), 2)


class Restarts(Case):
    def test_due_times_that_pass_while_the_server_is_down(self):
        self.start("--ci")
        self.request("PUT", "/claimd/clock", {"state": "frozen"})
        self.advance_to(self.now().replace(minute=59, second=0) + timedelta(hours=1))
        begin = self.now()
        for missed in ("last", "all", "none"):
            self.put("@hourly", "/claimd/queues/q/schedules/" + missed, missed=missed)
        self.stop()
        self.start("--ci", "--journal-downtime", str(2 * HOUR + 5 * 60))
        due = [int(begin.timestamp()) + 60 + HOUR * i for i in range(3)]
        expected = {"last": (due[2:], 2), "all": (due, 0), "none": ([], 3)}
        for missed, (posted, count) in expected.items():
            shown = eventually(lambda: (s := self.show("/claimd/queues/q/schedules/" + missed))
                               and s["posted"] + s["missed_count"] == 3 and s)
            self.assertEqual(self.due(name=missed), posted)
            self.assertEqual((shown["posted"], shown["missed_count"]), (len(posted), count))

    def move_until_it_dies(self):
        """A thread that moves the clock on and on."""
        server = self.server

        def move():
            with contextlib.suppress(OSError, EOFError):
                while True:
                    server.fetch("POST", "/claimd/clock/advance", b'{"seconds":10}')
        mover = threading.Thread(target=move)
        mover.start()
        return mover

    def test_kill_9_at_any_moment_neither_loses_nor_doubles_a_due_time(self):
        seed = random.randrange(1 << 30)
        dice = random.Random(seed)
        items = {missed: "/claimd/queues/%s/schedules/n" % missed for missed in ("all", "last")}
        self.start("--ci")
        for missed, item in items.items():
            self.put(1, item, missed=missed)
        for _ in range(KILLS):
            mover = self.move_until_it_dies()
            time.sleep(dice.uniform(0.05, 0.3))
            self.crash()
            mover.join()
            self.start("--ci")
        self.request("PUT", "/claimd/clock", {"state": "frozen"})
        self.advance(120)  # claims of the last scheduler end
        for missed, item in items.items():
            with self.subTest(missed=missed, seed=seed):
                shown, due = self.show(item), self.due(missed)
                self.assertEqual(len(set(due)), len(due))
                self.assertEqual(shown["posted"], len(due))
                first, last = due[0], int(utc(shown["last"]["due"]).timestamp())
                self.assertEqual(max(due), last)
                self.assertEqual(shown["posted"] + shown["missed_count"], last - first + 1)
                if missed == "all":
                    self.assertEqual(due, list(range(first, last + 1)))


class Dumps(Case):
    def test_a_dump_has_schedules_and_a_load_runs_them(self):
        self.open()
        self.put(60, missed="all")
        self.advance(120)
        before = self.show()
        dump = run("dump", "--url", self.server.url)
        self.assertEqual(dump.returncode, 0, dump.stderr)
        self.stop()
        self.open()
        loaded = run("load", "--url", self.server.url, input=dump.stdout)
        self.assertEqual(loaded.returncode, 0, loaded.stderr)
        self.assertEqual(self.show()["posted"], before["posted"])
        self.advance(240)  # twice as far as the first server
        self.assertGreaterEqual(len(self.due()), 4)
        self.assertEqual(len(set(self.due())), self.show()["posted"])

    def test_a_load_refuses_what_is_no_schedule(self):
        self.open()
        self.put(60)
        dump = run("dump", "--url", self.server.url)
        self.stop()
        self.open()
        for old, new, why in (('"name":"n"', '"name":"%s"' % ("n" * 41), "it is not a schedule"),
                              ('"queue":"q","name"', '"queue":"a/b","name"', "it is not a schedule"),
                              ('"every":60', '"every":0', "it is not a schedule"),
                              ('"name":"n"', '"name":"m"', "it is not that of the schedule")):
            self.assertIn(old, dump.stdout)
            self.request("POST", "/claimd/reset", status=204)
            loaded = run("load", "--url", self.server.url, input=dump.stdout.replace(old, new))
            self.assertEqual(loaded.returncode, 1, loaded.stderr)
            self.assertIn(why, loaded.stderr)
            self.request("GET", ITEM, status=404)
        self.request("POST", "/claimd/reset", status=204)
        loaded = run("load", "--url", self.server.url, input=dump.stdout)
        self.assertEqual(loaded.returncode, 0, loaded.stderr)


if __name__ == "__main__":
    unittest.main()
