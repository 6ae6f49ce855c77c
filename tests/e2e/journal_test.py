#!/usr/bin/python3
"""What was answered is as it was, after kill -9 and after SIGTERM.

    journal_test.py CLAIMD
"""

import json
import os
import re
import select
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import PATIENCE_S, eventually, request  # noqa: E402
from journalled import JournalCase, Server  # noqa: E402


def without_age(messages):
    """Time goes on while a server is down; the rest does not."""
    return [{k: v for k, v in message.items() if k != "age"} for message in messages]


class Exact(JournalCase):
    """Runs with kill -9; Stopped does the same with SIGTERM."""

    def again(self, *options):
        return self.crash_and_start(*options)

    def test_messages_keep_their_ids_order_bodies_and_lives(self):
        self.start()
        self.post("q", *range(5), ttl=300)
        self.post("q", {"deep": [1, "two", None]}, ttl=4000)
        before = self.listed("q")
        self.again()
        after = self.listed("q")
        self.assertEqual(len(after), 6)
        self.assertEqual(without_age(after), without_age(before))
        for old, new in zip(before, after):
            self.assertGreaterEqual(new["age"], old["age"])
            self.assertLess(new["age"], old["age"] + PATIENCE_S)

    def test_claims_keep_their_ids_messages_and_ends(self):
        self.start()
        self.post("q", *range(4))
        held = self.claim("q", limit=2, ttl=200)
        self.again()
        shown = self.ask("GET", "q/claims/" + held.id, status=200)
        self.assertEqual(shown["ttl"], 200)
        self.assertLess(shown["age"], PATIENCE_S)
        self.assertEqual(without_age(shown["messages"]), without_age(held.messages))
        self.assertEqual(self.claim("q", limit=4).bodies(), [2, 3])
        self.assertIsNone(self.claim("q"))

    def test_a_claim_ends_when_it_would_have_ended(self):
        self.start()
        self.post("q", 1)
        claimed = time.monotonic()
        held = self.claim("q", ttl=1)
        self.again()
        eventually(lambda: self.answer("GET", "q/claims/" + held.id).status == 404)
        self.assertGreater(time.monotonic() - claimed, 0.9)
        again = self.claim("q")
        self.assertNotEqual(again.id, held.id)
        self.assertEqual(again.bodies(), [1])

    def test_a_renewal_a_deletion_and_a_release(self):
        self.start()
        self.post("q", *range(6))
        renewed, deleted, released = (self.claim("q", limit=2) for _ in range(3))
        self.ask("PATCH", "q/claims/" + renewed.id, {"ttl": 1000, "grace": 60}, 204)
        self.ask("DELETE", deleted.messages[0]["href"].split("/queues/")[1], status=204)
        self.ask("DELETE", "q/claims/" + released.id, status=204)
        self.again()
        self.assertEqual(self.ask("GET", "q/claims/" + renewed.id, status=200)["ttl"], 1000)
        self.assertEqual(self.bodies("q"), [0, 1, 3, 4, 5])
        self.assertEqual(self.answer("GET", "q/claims/" + released.id).status, 404)
        self.assertEqual(self.claim("q", limit=6).bodies(), [4, 5])

    def test_how_often_a_message_was_claimed(self):
        self.start()
        self.post("q", "once", "twice", "never")
        held = self.claim("q", limit=2)
        self.again()
        self.ask("DELETE", held.messages[0]["href"].split("/queues/")[1], status=204)
        self.ask("DELETE", "q/claims/" + held.id, status=204)
        self.again()
        again = self.claim("q")
        self.ask("DELETE", "q/claims/" + again.id, status=204)
        self.again()
        popped = self.ask("DELETE", "q/messages?pop=2", status=200)["messages"]
        self.assertEqual([(m["body"], m["claim_count"]) for m in popped],
                         [("twice", 2), ("never", 0)])

    def test_pops_purges_and_deletions_of_several(self):
        self.start()
        for queue in ("popped", "purged", "several"):
            self.post(queue, *range(3))
        self.assertEqual(
            len(self.ask("DELETE", "popped/messages?pop=2", status=200)["messages"]), 2)
        self.ask("POST", "purged/purge", {"resource_types": ["messages"]}, 204)
        ids = ",".join(message["id"] for message in self.listed("several")[:2])
        self.ask("DELETE", "several/messages?ids=" + ids, status=204)
        self.again()
        self.assertEqual(self.bodies("popped"), [2])
        self.assertEqual(self.bodies("purged"), [])
        self.assertEqual(self.bodies("several"), [2])

    def test_queues_and_their_metadata(self):
        self.start()
        made = {"_default_message_ttl": 500, "_max_claim_count": 3, "color": {"a": [1, 2]}}
        self.ask("PUT", "made", made, 201)
        self.ask("PUT", "gone", {}, 201)
        self.ask("DELETE", "gone", status=204)
        self.ask("PUT", "changed", {"a": 1}, 201)
        patch = b'[{"op":"replace","path":"/metadata/a","value":2}]'
        kind = ["Content-Type: application/openstack-messaging-v2.0-json-patch"]
        changed = self.server.ask("PATCH", "/v2/queues/changed", patch, headers=kind)
        self.assertEqual(changed.status, 200, changed)
        before = self.ask("GET", "made", status=200)
        self.again()
        self.assertEqual(self.ask("GET", "made", status=200), before)
        self.assertEqual(self.ask("GET", "changed", status=200)["a"], 2)
        self.assertEqual(self.answer("DELETE", "gone").status, 204)
        self.assertNotIn(b'"gone"', self.server.ask("GET", "/v2/queues").body)
        self.post("made", 1)
        self.assertEqual(self.listed("made")[0]["ttl"], 500)

    def test_projects_stay_apart(self):
        self.start()
        other = ["X-Project-ID: other"]
        data = b'{"messages":[{"body":"theirs"}]}'
        theirs = request("POST", "/v2/queues/q/messages", data).replace(b": p\r\n",
                                                                       b": other\r\n")
        with self.server.connect() as client:
            client.send(theirs)
            self.assertEqual(client.response().status, 201)
        self.post("q", "ours")
        self.again()
        self.assertEqual(self.bodies("q"), ["ours"])
        with self.server.connect() as client:
            client.send(request("GET", "/v2/queues/q/messages?echo=true").replace(
                b"X-Project-ID: p", other[0].encode()))
            self.assertIn(b'"theirs"', client.response().body)

    def test_dead_letters(self):
        self.start()
        self.ask("PUT", "dead", {}, 201)
        self.ask("PUT", "q", {"_max_claim_count": 1, "_dead_letter_queue": "dead",
                              "_dead_letter_queue_messages_ttl": 700}, 201)
        self.post("q", "poison", "next")
        held = self.claim("q")
        self.again()
        self.ask("DELETE", "q/claims/" + held.id, status=204)
        self.assertEqual(self.claim("q").bodies(), ["next"])
        moved = self.listed("dead")
        self.assertEqual([m["body"] for m in moved], ["poison"])
        self.again()
        self.assertEqual(without_age(self.listed("dead")), without_age(moved))
        self.assertEqual(self.listed("dead")[0]["ttl"], 700)
        self.assertEqual(self.bodies("q"), ["next"])

    def test_delays_go_on(self):
        self.start()
        posted = time.monotonic()
        self.post("q", "late", delay=3)
        self.post("q", "later", delay=600)
        self.again()
        held = None
        while held is None:
            self.assertLess(time.monotonic() - posted, PATIENCE_S)
            held = self.claim("q")
        self.assertGreater(time.monotonic() - posted, 2.9)
        self.assertEqual(held.bodies(), ["late"])
        self.assertIsNone(self.claim("q"))

    def test_markers_that_a_client_holds_go_on(self):
        self.start()
        self.post("q", *range(4))
        page = self.ask("GET", "q/messages?echo=true&limit=2", status=200)
        self.assertEqual([m["body"] for m in page["messages"]], [0, 1])
        following = page["links"][0]["href"].split("/queues/")[1]
        self.again()
        self.post("q", 4)
        page = self.ask("GET", following, status=200)
        self.assertEqual([m["body"] for m in page["messages"]], [2, 3])
        following = page["links"][0]["href"].split("/queues/")[1]
        page = self.ask("GET", following, status=200)
        self.assertEqual([m["body"] for m in page["messages"]], [4])

    def test_ids_never_come_again(self):
        seen = []
        self.start()
        for _ in range(3):
            seen += self.post("q", 1, 2)
            self.ask("DELETE", "q", status=204)
            seen += self.post("q", 1, 2)
            self.ask("POST", "q/purge", {"resource_types": ["messages"]}, 204)
            self.again()
        self.assertEqual(len(seen), 12)
        self.assertEqual(len(set(seen)), len(seen))

    def test_claim_numbers_grow_also_of_a_queue_that_was_made_again(self):
        numbers = []
        self.start()
        for _ in range(4):
            self.post("q", *range(3))
            numbers += [self.claim("q").number, self.claim("q").number]
            self.again()
            numbers.append(self.claim("q").number)
            self.ask("DELETE", "q", status=204)
            self.again()
        self.assertEqual(len(numbers), 12)
        self.assertEqual(numbers, sorted(set(numbers)))

    def test_many_restarts_change_nothing(self):
        self.start()
        self.post("q", *range(3))
        held = self.claim("q")
        before = self.listed("q")
        for _ in range(8):
            self.again()
        self.assertEqual(without_age(self.listed("q")), without_age(before))
        self.ask("GET", "q/claims/" + held.id, status=200)


class Stopped(Exact):
    """The same when it ends peacefully."""

    def again(self, *options):
        return self.stop_and_start(*options)


class TimeGoesOn(JournalCase):
    def test_what_was_over_while_it_was_down_is_gone(self):
        self.start()
        self.post("q", "short", ttl=1)
        self.post("q", "long", ttl=300)
        held = self.claim("q", ttl=1, grace=0)
        self.crash()
        time.sleep(1.2)
        self.start()
        self.assertEqual(self.bodies("q"), ["long"])
        self.assertEqual(self.answer("GET", "q/claims/" + held.id).status, 404)
        self.assertEqual(self.ask("GET", "q/stats", status=200)["messages"]["total"], 1)


class Transient(JournalCase):
    """Queues whose messages are in memory only."""

    def test_the_queue_is_there_and_empty(self):
        self.start()
        self.ask("PUT", "m", {"_persistence": "memory", "a": [1]}, 201)
        self.post("m", 1, 2)
        self.post("kept", 1)
        before = self.ask("GET", "m", status=200)
        self.assertEqual(before["_persistence"], "memory")
        self.crash_and_start()
        self.assertEqual(self.ask("GET", "m", status=200), before)
        self.assertEqual(self.bodies("m"), [])
        self.assertEqual(self.bodies("kept"), [1])
        self.assertNotIn("_persistence", self.ask("GET", "kept", status=200))

    def test_ids_and_markers_neither_repeat_nor_go_back(self):
        seen, marker = [], None
        self.start()
        self.ask("PUT", "m", {"_persistence": "memory"}, 201)
        for turn in range(4):
            seen += self.post("m", [turn, 0], [turn, 1])
            target = marker or "m/messages?echo=true&limit=10"
            page = self.ask("GET", target, status=200)
            self.assertEqual([m["body"] for m in page["messages"]], [[turn, 0], [turn, 1]])
            marker = page["links"][0]["href"].split("/queues/")[1]
            (self.crash_and_start, self.stop_and_start)[turn % 2]()
        self.assertEqual(len(seen), 8)
        self.assertEqual(len(set(seen)), 8)


class Serving(JournalCase):
    def test_a_claim_that_waits_gets_its_message(self):
        self.start()
        self.ask("PUT", "q", {}, 201)
        with self.server.connect() as client:
            client.send(request("POST", "/v2/queues/q/claims", b"{}",
                                headers=["Prefer: wait=10"]))
            time.sleep(0.2)  # so that it most likely waits; either way it is answered
            self.post("q", "late")
            answer = client.response()
        self.assertEqual(answer.status, 201, answer)
        self.assertIn(b'"late"', answer.body)
        self.crash_and_start()
        self.assertIsNone(self.claim("q"))

    def test_the_end_waits_for_nobody(self):
        """Of those that wait for a message, and those that wait for the disk."""
        self.start("--drain-seconds", "2")
        self.ask("PUT", "q", {}, 201)
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
        self.assertEqual(self.ask("GET", "q/stats", status=200)["messages"]["total"], 200)
        self.server.logged(" started ")
        order = [line.split()[2] for line in self.server.log]
        self.assertLess(order.index("recovered"), order.index("started"))

    def test_nothing_is_said_to_be_lost(self):
        self.start()
        self.post("q", 1)
        server = self.server
        self.stop()
        server.logged("stopped")
        self.assertEqual([line for line in server.log if "messages_lost" in line], [])

    def test_posts_that_are_as_large_as_they_may_be(self):
        self.start("--max-messages-post-size", "8M")
        many = b'{"messages":[' + b",".join([b'{"body":1}'] * 130_000) + b"]}"
        self.assertEqual(self.server.ask("POST", "/v2/queues/many/messages", many).status, 201)
        body = "x" * ((8 << 20) - 100)
        self.post("long", body)
        self.crash_and_start("--max-messages-post-size", "8M")
        total = self.ask("GET", "many/stats", status=200)["messages"]["total"]
        self.assertEqual(total, 130_000)
        self.assertEqual(self.bodies("long"), [body])

    def test_more_than_it_takes_at_once(self):
        """Each message takes more room than in the request: it says so, and how much."""
        self.start("--max-messages-post-size", "8M", "--max-queue-metadata", "32M")
        many = b'{"messages":[' + b",".join([b'{"body":1}'] * 160_000) + b"]}"
        self.assertLess(len(many), 8 << 20)
        answer = self.server.ask("POST", "/v2/queues/many/messages", many)
        self.assertEqual(answer.status, 400, answer)
        said = json.loads(answer.body)
        self.assertEqual(said["title"], "Invalid API request")
        self.assertRegex(said["description"],
                         r"^these 160000 messages are too large for one write to the journal. "
                         r"The maximum is \d+ bytes, and each message needs up to 120 bytes "
                         r"besides its body. Post them in several requests$")
        queues = json.loads(self.server.ask("GET", "/v2/queues").body)["queues"]
        self.assertEqual(queues, [])
        most = int(re.search(r"is (\d+) bytes", said["description"])[1])
        fits = (most - 1000) // 121
        some = b'{"messages":[' + b",".join([b'{"body":1}'] * fits) + b"]}"
        self.assertEqual(self.server.ask("POST", "/v2/queues/many/messages", some).status, 201)
        said = self.ask("PUT", "large", {"text": "x" * (most + 1)}, status=400)
        self.assertEqual(said, {"title": "Invalid API request", "description":
                                "the request is larger than one write to the journal allows"})
        self.crash_and_start()
        total = self.ask("GET", "many/stats", status=200)["messages"]["total"]
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
                self.ask("GET", name + "/claims/" + claim, status=200)

    def test_posts_of_many_are_there_all(self):
        """Many share one sync: each is answered only when it is on the disk."""
        self.start()
        failures = []

        def produce(number):
            with self.server.connect() as client:
                for i in range(50):
                    client.send(request("POST", "/v2/queues/q%d/messages" % number,
                                        b'{"messages":[{"body":%d}]}' % i))
                    if client.response().status != 201:
                        failures.append((number, i))

        producers = [threading.Thread(target=produce, args=(n,)) for n in range(8)]
        for producer in producers:
            producer.start()
        for producer in producers:
            producer.join()
        self.crash_and_start()
        self.assertEqual(failures, [])
        for number in range(8):
            seen, target = [], "q%d/messages?echo=true&limit=20" % number
            while len(seen) < 50:
                page = self.ask("GET", target, status=200)
                self.assertTrue(page["messages"])
                seen += [m["body"] for m in page["messages"]]
                target = page["links"][0]["href"].split("/queues/")[1]
            self.assertEqual(seen, list(range(50)))


if __name__ == "__main__":
    unittest.main()
