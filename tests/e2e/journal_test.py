#!/usr/bin/python3
"""Acknowledged changes are still there after kill -9 and after SIGTERM.

    journal_test.py CLAIMD
"""

import json
import os
import re
import select
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import PATIENCE_S, eventually, request  # noqa: E402
from journalled import JournalCase, Server  # noqa: E402


def without_age(messages):
    """Time goes on while a server is down; the rest does not."""
    return [{k: v for k, v in message.items() if k != "age"} for message in messages]


class Restarts(JournalCase):
    """The promises of tests/store, model/replay_test and model/crash_test about the engine and the
    journal, once through the whole program."""

    def make(self):
        """Something of everything; returns what shows it."""
        self.fetch("PUT", "dead", {}, 201)
        self.fetch("PUT", "q", {"_default_message_ttl": 500, "_max_claim_count": 1, "a": [1],
                                "_dead_letter_queue": "dead"}, 201)
        ids = self.post("q", "poison", *range(6))
        self.fetch("DELETE", "q/claims/" + self.claim("q").id, status=204)
        renewed = self.claim("q", limit=2)  # "poison" is a dead letter from now on
        deleted = self.claim("q", limit=2)
        self.fetch("PATCH", "q/claims/" + renewed.id, {"ttl": 1000, "grace": 60}, 204)
        self.fetch("DELETE", deleted.messages[0]["href"].split("/queues/")[1], status=204)
        self.fetch("DELETE", "q/messages?pop=1", status=200)
        self.late_from = time.monotonic() + 3
        self.post("q", "late", delay=3)
        self.fetch("PUT", "m", {"_persistence": "memory"}, 201)
        self.post("m", 1)
        page = self.fetch("GET", "q/messages?echo=true&limit=1", status=200)
        return ids, renewed, page["links"][0]["href"].split("/queues/")[1]

    def shown(self, renewed):
        """On a slow machine, "late" may have become ready during the restarts."""
        claim = self.fetch("GET", "q/claims/" + renewed.id, status=200)
        ready = self.listed("q")
        if time.monotonic() < self.late_from:
            self.assertNotIn("late", [message["body"] for message in ready])
        ready = [message for message in ready if message["body"] != "late"]
        return (without_age(ready), without_age(self.listed("dead")), claim["ttl"],
                without_age(claim["messages"]), self.fetch("GET", "q", status=200))

    def all_is_as_it_was(self, again):
        self.start()
        ids, renewed, marker = self.make()
        before = self.shown(renewed)
        self.assertEqual([message["body"] for message in before[0]], [0, 1, 3, 5])
        self.assertEqual([message["body"] for message in before[1]], ["poison"])
        for _ in range(3):
            again()
            self.assertEqual(self.shown(renewed), before)
            self.assertEqual(self.bodies("m"), [])
            self.assertEqual(self.fetch("GET", "m", status=200)["_persistence"], "memory")
        eventually(lambda: "late" in self.bodies("q"))
        number = self.claim("q", limit=6).number
        self.assertGreater(number, renewed.number)
        more = self.post("q", "new")
        self.assertEqual(len(set(ids + more)), len(ids + more))
        page = self.fetch("GET", marker, status=200)["messages"]
        self.assertEqual(page[-1]["body"], "new")

    def test_after_kill_9_all_is_as_it_was(self):
        self.all_is_as_it_was(self.crash_and_start)

    def test_after_a_stop_all_is_as_it_was_and_no_loss_is_logged(self):
        def again():
            server = self.server
            self.stop_and_start()
            self.assertEqual([line for line in server.log if "messages_lost" in line], [])
        self.all_is_as_it_was(again)

    def test_a_claim_ends_when_it_would_have_ended(self):
        self.start()
        self.post("q", 1)
        claimed = time.monotonic()
        held = self.claim("q", ttl=1)
        self.crash_and_start()
        eventually(lambda: self.response("GET", "q/claims/" + held.id).status == 404)
        self.assertGreater(time.monotonic() - claimed, 0.9)
        self.assertEqual(self.claim("q").bodies(), [1])


class Lifetimes(JournalCase):
    def test_messages_live_for_two_weeks_and_stored_ones_keep_their_ttl(self):
        self.start("--default-message-ttl", "3600")  # the default of claimd 0.2.0
        self.fetch("POST", "q/messages", {"messages": [{"body": "old"}]}, 201)
        self.crash()
        self.start()
        self.fetch("PUT", "short", {"_default_message_ttl": 60}, 201)
        for queue, body in (("q", {"body": "new"}), ("q", {"body": "own", "ttl": 90}), ("short", {"body": 1})):
            self.fetch("POST", queue + "/messages", {"messages": [body]}, 201)
        self.assertEqual({m["body"]: m["ttl"] for m in self.listed("q")},
                         {"old": 3600, "new": 14 * 24 * 3600, "own": 90})
        self.assertEqual([m["ttl"] for m in self.listed("short")], [60])
        self.assertEqual(self.fetch("GET", "q", status=200)["_default_message_ttl"], 14 * 24 * 3600)

    def test_the_test_api_keeps_the_hour(self):
        self.start("--ci")
        self.fetch("POST", "q/messages", {"messages": [{"body": 1}]}, 201)
        self.assertEqual([m["ttl"] for m in self.listed("q")], [3600])


class TimeGoesOn(JournalCase):
    def test_deadlines_that_passed_while_down_are_processed(self):
        self.start()
        self.post("q", "short", ttl=1)
        self.post("q", "long", ttl=300)
        held = self.claim("q", ttl=1, grace=0)
        self.crash()
        time.sleep(1.2)
        self.start()
        self.assertEqual(self.bodies("q"), ["long"])
        self.assertEqual(self.response("GET", "q/claims/" + held.id).status, 404)
        self.assertEqual(self.fetch("GET", "q/stats", status=200)["messages"]["total"], 1)


class Serving(JournalCase):

    def test_the_end_does_not_wait_for_clients(self):
        """Of those that wait for a message, and those that wait for the disk."""
        self.start("--drain-seconds", "2")
        self.fetch("PUT", "q", {}, 201)
        clients = [self.server.connect() for _ in range(8)]
        for client in clients:
            client.send(request("POST", "/v2/queues/q/claims", b"{}",
                                headers=["Prefer: wait=10"]))
        posting = self.server.connect()
        posting.send(100 * request("POST", "/v2/queues/other/messages",
                                   b'{"messages":[{"body":1}]}'))
        begun = time.monotonic()
        self.stop()
        self.assertLess(time.monotonic() - begun, 10)
        for client in clients + [posting]:
            client.close()

    def test_it_says_that_it_listens_when_it_has_recovered(self):
        self.start()
        for at in range(0, 200, 20):
            self.post("q", *range(at, at + 20))
        self.crash()
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        self.server = Server("--journal", self.path, "--ready-fd", str(writing),
                             pass_fds=[writing])
        os.close(writing)
        ready, _, _ = select.select([reading], [], [], PATIENCE_S)
        self.assertEqual(ready, [reading])
        self.assertEqual(os.read(reading, 1000).decode(), self.server.ready)
        self.assertEqual(self.fetch("GET", "q/stats", status=200)["messages"]["total"], 200)
        self.server.logged(" started ")
        order = [line.split()[2] for line in self.server.log]
        self.assertLess(order.index("recovered"), order.index("started"))

    def test_posts_that_are_as_large_as_they_may_be(self):
        self.start("--max-messages-post-size", "8M")
        many = b'{"messages":[' + b",".join([b'{"body":1}'] * 130_000) + b"]}"
        self.assertEqual(self.server.fetch("POST", "/v2/queues/many/messages", many).status, 201)
        body = "x" * ((8 << 20) - 100)
        self.post("long", body)
        self.crash_and_start("--max-messages-post-size", "8M")
        total = self.fetch("GET", "many/stats", status=200)["messages"]["total"]
        self.assertEqual(total, 130_000)
        self.assertEqual(self.bodies("long"), [body])

    def test_more_than_it_takes_at_once(self):
        """Each message takes more capacity than in the request: it says so, and how much."""
        self.start("--max-messages-post-size", "8M", "--max-queue-metadata", "32M")
        many = b'{"messages":[' + b",".join([b'{"body":1}'] * 160_000) + b"]}"
        self.assertLess(len(many), 8 << 20)
        response = self.server.fetch("POST", "/v2/queues/many/messages", many)
        self.assertEqual(response.status, 400, response)
        said = json.loads(response.body)
        self.assertEqual(said["title"], "Invalid API request")
        self.assertRegex(said["description"],
                         r"^these 160000 messages are too large for one write to the journal. "
                         r"The maximum is \d+ bytes, and each message needs up to 120 bytes "
                         r"besides its body. Post them in several requests$")
        queues = json.loads(self.server.fetch("GET", "/v2/queues").body)["queues"]
        self.assertEqual(queues, [])
        most = int(re.search(r"is (\d+) bytes", said["description"])[1])
        fits = (most - 1000) // 121
        some = b'{"messages":[' + b",".join([b'{"body":1}'] * fits) + b"]}"
        self.assertEqual(self.server.fetch("POST", "/v2/queues/many/messages", some).status, 201)
        said = self.fetch("PUT", "large", {"text": "x" * (most + 1)}, status=400)
        self.assertEqual(said, {"title": "Invalid API request", "description":
                                "the request is larger than one write to the journal allows"})
        self.crash_and_start()
        total = self.fetch("GET", "many/stats", status=200)["messages"]["total"]
        self.assertEqual(total, fits)

    def test_other_numbers_of_shards(self):
        self.start("--shards", "16")
        before = {}
        for name in map(str, range(20)):
            self.post(name, *range(3))
            before[name] = (self.claim(name).id, without_age(self.listed(name)))
        for shards in ("1", "64", "4"):
            self.crash_and_start("--shards", shards)
            for name, (claim, messages) in before.items():
                self.assertEqual(without_age(self.listed(name)), messages)
                self.fetch("GET", name + "/claims/" + claim, status=200)


if __name__ == "__main__":
    unittest.main()
