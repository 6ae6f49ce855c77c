#!/usr/bin/python3
"""The wall clock is set while claimd runs: no message is lost, and no wrong time is shown.

    clock_test.py CLAIMD

libfaketime (Debian package faketime) sets the wall clock of one process.
"""

import calendar
import email.utils
import glob
import json
import os
import re
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))


from harness import SANITIZED, Server, environment, eventually  # noqa: E402
from journalled import JournalCase  # noqa: E402
from receiver import Receiver  # noqa: E402

LIBRARY = "".join(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")[:1])
HOUR = 3600
NEAR_S = 300  # receivers of Standard Webhooks tolerate as much


def seconds_of(text):
    """A date of a response or of a line of the log."""
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


@unittest.skipUnless(LIBRARY, "the package faketime is missing")
@unittest.skipIf(SANITIZED, "a sanitizer must be the first library that is loaded")
class WallClock(JournalCase):
    def start_with_clock(self, *options, hours=0):
        """Starts claimd with a wall clock that self.set_clock() sets."""
        self.file = os.path.join(self.folder, "clock")
        self.set_clock(hours)
        variables = {"LD_PRELOAD": LIBRARY, "FAKETIME_TIMESTAMP_FILE": self.file,
                     "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        self.server = Server("--journal", self.path, *options,
                             env=environment(**variables))
        return self.server

    def set_clock(self, hours):
        with open(self.file + ".new", "w", encoding="ascii") as f:
            f.write("%+dh\n" % hours)
        os.rename(self.file + ".new", self.file)

    def near(self, text, wanted=None):
        self.assertLess(abs(seconds_of(text) - (wanted or time.time())), NEAR_S, text)

    def dates_are_near(self, wanted):
        """With a document, without one, and of a refusal."""
        for target, status in (("/v2/queues", 200), ("/v2/ping", 204), ("/v2/queues\0", 400)):
            response = self.server.fetch("GET", target)
            self.assertEqual(response.status, status)
            date = email.utils.parsedate_to_datetime(response.headers["date"])
            self.assertLess(abs(date.timestamp() - wanted), NEAR_S, target)

    def logged_time(self, event):
        self.server.logged(" " + event)
        return [line for line in self.server.log if " " + event in line][-1].split()[0]

    def test_a_message_survives_a_restart_after_the_clock_was_set(self):
        for hours in (-3, -24 * 30, 3):
            with self.subTest(hours=hours):
                self.path = os.path.join(self.folder, "journal%d" % hours)
                self.start_with_clock(hours=hours)
                self.set_clock(0)
                self.post("q", "just now")
                self.stop()
                self.start().logged(" clock_was_set ahead_ms=%d" % (-hours * HOUR * 1000))
                recovered = self.server.logged(" recovered ")
                self.assertIn(" messages=1 expired=0 ", recovered)
                self.assertEqual(self.bodies("q"), ["just now"])
                self.crash_and_start()
                self.assertEqual(self.bodies("q"), ["just now"])
                self.stop()

    def test_a_start_logs_how_many_messages_expired(self):
        self.start()
        self.post("q", "short", ttl=1)
        self.post("q", "long")
        self.crash()
        time.sleep(1.1)
        self.assertIn(" messages=1 expired=1 ", self.start().logged(" recovered "))

    def test_the_downtime_can_be_given(self):
        self.start()
        self.post("q", "an hour", ttl=3600)
        self.stop()
        self.start_with_clock("--journal-downtime", "7200")
        self.assertEqual(self.bodies("q"), [])
        self.assertRegex(self.server.logged(" recovered "), " expired=1 down_ms=7200000")

    def test_every_time_that_is_shown_follows_the_clock(self):
        keys = os.path.join(self.folder, "keys")
        with open(keys, "w", encoding="ascii") as f:
            f.write("5" * 48 + "\n")
        os.chmod(keys, 0o600)
        self.start_with_clock("--webhook-keys", keys, "--signing-keys", keys,
                              "--notify-allow", "127.0.0.0/8", hours=-3)
        self.near(self.logged_time("started"), time.time() - 3 * HOUR)
        self.dates_are_near(time.time() - 3 * HOUR)
        self.set_clock(0)
        self.dates_are_near(time.time())
        stamps = []

        def receive(_, headers, __):
            stamps.append(int(headers["webhook-timestamp"]))
            return 200, {}

        sink = self.enterContext(Receiver(receive))
        self.fetch("POST", "q/subscriptions", {"subscriber": sink.url}, 201)
        [message] = self.post("q", 1, ttl=HOUR)
        eventually(lambda: stamps)
        self.assertLess(abs(stamps[0] - time.time()), NEAR_S)
        self.near(self.fetch("GET", "q/stats", status=200)["messages"]["oldest"]["created"])
        why = json.loads(self.server.fetch("GET", "/claimd/queues/q/messages/" + message).body)
        self.near(why["created_at"])
        self.near(why["expires_at"], time.time() + HOUR)
        self.near(why["next"]["at"] or why["created_at"], None)
        share = self.fetch("POST", "q/share", {"paths": ["messages"]}, 200)
        self.near(share["expires"] + "Z", time.time() + 24 * HOUR)
        started = re.search(r"^process_start_time_seconds ([0-9.e+]+)",
                            self.server.fetch("GET", "/metrics").body.decode(), re.M)
        self.assertLess(abs(float(started.group(1)) - time.time()), NEAR_S)
        views = json.loads(self.server.fetch("GET", "/claimd/queues?offset=0").body)
        self.near(views["as_of"])
        server = self.server
        self.stop()
        stopped = [line for line in server.log if " stopped " in line]
        self.near(stopped[-1].split()[0])

    def schedule(self, method="GET", body=None):
        response = self.server.fetch(method, "/claimd/queues/q/schedules/n", body)
        self.assertIn(response.status, (200, 201), response)
        return json.loads(response.body)

    def test_a_schedule_follows_a_clock_that_was_set_while_claimd_was_down(self):
        every_hour = b'{"every":3600,"message":{"body":1}}'
        with self.subTest("ahead"):
            self.start_with_clock(hours=-240)
            self.schedule("PUT", every_hour)
            self.stop()
            self.start_with_clock(hours=0)
            shown = eventually(lambda: (s := self.schedule())["posted"] and s)
            self.assertEqual(shown["posted"], 1)
            self.assertIn(shown["missed_count"], (239, 240))  # an hour may end meanwhile
            self.assertLess(abs(seconds_of(shown["last"]["due"]) + HOUR - seconds_of(shown["next"][0])), 1)
            self.near(shown["last"]["posted_at"])
            self.stop()
        with self.subTest("back by more than three hours"):  # the schedule does not wait for ten days
            self.start_with_clock(hours=-240)
            ahead = seconds_of(self.schedule()["next"][0]) - (time.time() - 240 * HOUR)
            self.assertTrue(-NEAR_S < ahead <= HOUR + NEAR_S, ahead)
            self.stop()
        with self.subTest("back by less"):  # due times do not repeat
            self.path += "2"
            self.start_with_clock(hours=0)
            self.schedule("PUT", every_hour)
            due = self.schedule()["next"]
            self.stop()
            self.start_with_clock(hours=-2)
            self.assertGreaterEqual(self.schedule()["next"], due)
            self.stop()


if __name__ == "__main__":
    unittest.main()
