#!/usr/bin/python3
"""claimd schedule: schedules by hand.

    schedule_commands_test.py CLAIMD
"""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from commands import Commands, response  # noqa: E402
from commands_test import CommandCase  # noqa: E402
from fake_server import FakeServer  # noqa: E402

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


class Schedules(CommandCase):
    OPTIONS = ("--ci",)

    def advance(self, seconds):
        body = json.dumps({"seconds": seconds}).encode()
        self.assertEqual(self.server.fetch("POST", "/claimd/clock/advance", body).status, 200)

    def shown(self, name):
        return json.loads(self.good("schedule", "show", self.queue, name, "--json"))

    def set(self, name, *words):
        return self.good("schedule", "set", self.queue, name, *words)

    def test_a_schedule_posts_its_message(self):
        self.assertRegex(self.set("often", "--every", "5m", '{"a": 1}'),
                         "^%s/often: next at %s\n$" % (self.queue, TIME))
        self.advance(301)
        self.assertEqual(self.bodies(), [{"a": 1}])
        self.assertRegex(self.good("schedule", "show", self.queue, "often"),
                         r"\nlast due +{0}\nposted at +{0}\nmessage +[0-9a-f]{{24}}\nstate +claimed\n"
                         r"counts +1 posted, 0 missed, 0 skipped, 0 refused\n$".format(TIME))

    def test_all_options_arrive(self):
        self.set("s", "--cron", "30 2 * * 1-5", "--timezone", "Europe/Berlin", "--ttl", "2h", "--delay", "90",
                 "--missed", "all", "--overlap", "skip", "--paused", "--string", "12")
        found = self.shown("s")
        self.assertEqual({name: found[name] for name in ("cron", "timezone", "message", "missed", "overlap",
                                                         "paused", "next")},
                         {"cron": "30 2 * * 1-5", "timezone": "Europe/Berlin",
                          "message": {"body": "12", "ttl": 7200, "delay": 90},
                          "missed": "all", "overlap": "skip", "paused": True, "next": []})
        self.assertEqual(self.good("schedule", "show", self.queue, "s").split("\n")[:11],
                         ["queue         " + self.queue, "schedule      s", "cron          30 2 * * 1-5",
                          "time zone     Europe/Berlin", 'body          "12"', "ttl           2h",
                          "delay         90s", "if missed     all", "if overlap    skip",
                          "next          paused",
                          "counts        0 posted, 0 missed, 0 skipped, 0 refused"])
        self.set("s", "--cron", "@daily", "12")
        self.assertEqual(self.shown("s")["message"], {"body": 12})

    def test_the_next_due_times(self):
        self.set("s", "--every", "60", "x")
        times = self.good("schedule", "next", self.queue, "s").split()
        self.assertEqual(len(times), 10)
        document = json.loads(self.good("schedule", "next", self.queue, "s", "--count", "3", "--json"))
        self.assertEqual([len(one) for one in document["next"]], [20] * 3)
        self.fails(2, "--count is 101. It must be", "schedule", "next", self.queue, "s", "--count", "101")

    def test_a_paused_schedule(self):
        self.set("s", "--every", "1d", "x")
        self.assertEqual(self.good("schedule", "pause", self.queue, "s"), self.queue + "/s: paused\n")
        self.assertTrue(self.shown("s")["paused"])
        self.fails(1, "%s/s is paused" % self.queue, "schedule", "next", self.queue, "s")
        self.assertRegex(self.good("schedule", "resume", self.queue, "s"), "/s: next at " + TIME)
        self.assertFalse(json.loads(self.good("schedule", "resume", self.queue, "s", "--json"))["paused"])

    def test_a_list(self):
        self.set("one", "--every", "5430", "x")
        self.set("two", "--cron", "@yearly", "--paused", "x")
        self.good("schedule", "set", self.queue + "-b", "three", "--every", "1d", "x")
        lines = [line.split() for line in self.good("schedule", "list", self.queue).strip().split("\n")]
        self.assertEqual(lines[0], "queue schedule when next error last message posted missed skipped refused"
                         .split())
        self.assertEqual([line[:4] for line in lines[1:]], [[self.queue, "one", "every", "5430s"],
                                                            [self.queue, "two", "@yearly", "UTC"]])
        self.assertEqual(lines[2][4:], ["paused", "-", "-", "-", "0", "0", "0", "0"])
        found = json.loads(self.good("schedule", "list", "--json"))["schedules"]
        self.assertLessEqual({"one", "two", "three"}, {one["name"] for one in found})

    def test_a_list_of_several_pages(self):
        for i in range(21):
            self.set("s%d" % i, "--every", "1d", "x")
        found = json.loads(self.good("schedule", "list", self.queue, "--json"))["schedules"]
        self.assertEqual({one["name"] for one in found}, {"s%d" % i for i in range(21)})

    def test_deletion(self):
        self.set("s", "--every", "1d", "x")
        self.assertEqual(self.good("schedule", "delete", self.queue, "s"), "")
        for action in ("delete", "show", "next", "pause", "resume"):
            self.fails(1, 'has no schedule "s"', "schedule", action, self.queue, "s")
        self.fails(1, "does not exist", "schedule", "list", "nothing-here")

    def test_refusals_of_the_server(self):
        self.fails(1, "has 4 fields", "schedule", "set", self.queue, "s", "--cron", "30 2 * *", "x")
        self.fails(1, "Did you mean Europe/Berlin?", "schedule", "set", self.queue, "s", "--cron", "@daily",
                   "--timezone", "Europe/Belin", "x")
        self.fails(1, 'missed is "some"', "schedule", "set", self.queue, "s", "--every", "5m", "--missed",
                   "some", "x")

    def test_wrong_arguments(self):
        for words, why in ((("now",), 'no action "now"'), (("set", "q", "s", "x"), "one of --cron and --every"),
                           (("set", "q", "s", "--every", "5m", "--cron", "@daily", "x"), "one of --cron"),
                           (("set", "q", "s", "--every", "5m"), "needs a queue, a name and a body"),
                           (("set", "q", "s", "--every", "5m", "--count", "3", "x"), "takes no --count"),
                           (("set", "q", "s", "--every", "soon", "x"), "--every is soon"),
                           (("list", "q", "s"), "needs no more than a queue"),
                           (("show", "q"), "needs a queue and a name"),
                           (("show", "q", "s", "--ttl", "5"), "takes no --ttl"),
                           ((), "schedule needs set, list, show")):
            self.fails(2, why, "schedule", *words)
        self.fails(2, "not UTF-8", "schedule", "set", self.queue, "s", "--every", "5m", b"\xff")

    def test_texts_of_a_server_command_no_terminal(self):
        evil = {"name": "s\u001b[2J", "queue": "q", "cron": "\u009b1m", "timezone": "UTC",
                "message": {"body": "\u001b]0;x"}, "next": ["\u001b[H"], "last": {"message_id": "\u001b"},
                "error": "\u001b[31m"}
        for words, document in ((("show", "q", "s"), evil), (("list",), {"schedules": [evil]}),
                                (("next", "q", "s"), evil), (("pause", "q", "s"), evil)):
            with FakeServer(response(json.dumps(document))) as fake:
                run = Commands(fake.url).run("schedule", *words)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertNotRegex(run.stdout, "[\x1b\x9b]", words)


if __name__ == "__main__":
    unittest.main()
