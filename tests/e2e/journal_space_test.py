#!/usr/bin/python3
"""A journal whose capacity is used up: what it refuses, what goes on, and how it recovers.

    journal_space_test.py CLAIMD

Some tests mount a small file system, which only root may do.
"""

import json
import os
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import PATIENCE_S, eventually, request  # noqa: E402
from journalled import JournalCase  # noqa: E402

MB = 1 << 20
BODY = "x" * 200_000
PAGES = ("--max-messages-per-page", "1000", "--max-messages-per-claim-or-pop", "100")


class SpaceCase(JournalCase):
    options = PAGES

    def start(self, *options, path=None):
        return super().start(*self.options, *options, path=path)

    def try_post(self, client, number, body=BODY):
        data = json.dumps({"messages": [{"body": [number, body]}]}).encode()
        client.send(request("POST", "/v2/queues/q/messages", data))
        return client.response()

    def fill(self, first=0, most=100_000, body=BODY):
        """Posts until it is refused; how many were taken."""
        with self.server.connect() as client:
            for number in range(first, first + most):
                response = self.try_post(client, number, body)
                if response.status == 503:
                    self.assertEqual(json.loads(response.body)["title"],
                                     "Insufficient storage", response)
                    self.assertEqual(response.headers["retry-after"], "5")
                    return number - first
                self.assertEqual(response.status, 201, response)
        return self.fail("it took %d posts" % most)

    def numbers(self):
        """The numbers of all messages that are there."""
        found, target = [], "q/messages?echo=true&include_claimed=true&limit=50"
        while True:
            page = self.fetch("GET", target, status=200)
            if not page["messages"]:
                return found
            found += [message["body"][0] for message in page["messages"]]
            target = page["links"][0]["href"].split("/queues/")[1]

    def takes_posts(self):
        with self.server.connect() as client:
            status = self.try_post(client, -1, "small").status
        self.assertIn(status, (201, 503))
        return status == 201

    def recovers(self):
        """Waits until it takes posts again; the seconds that it took."""
        begun = time.monotonic()
        eventually(self.takes_posts)
        return time.monotonic() - begun

    def pop(self, count):
        for _ in range(count // 100):
            self.fetch("DELETE", "q/messages?pop=100", status=200)


class Bytes(SpaceCase):
    """--journal-max-bytes."""

    options = PAGES + ("--journal-max-bytes", "64M")

    def test_claims_and_deletes_continue_on_a_full_disk(self):
        self.start()
        taken = self.fill()
        self.assertGreater(taken, 100)
        self.fetch("PUT", "another", {}, 503)
        self.assertEqual(self.numbers(), list(range(taken)))
        held = self.claim("q", limit=3)
        self.fetch("PATCH", "q/claims/" + held.id, {"ttl": 500, "grace": 60}, 204)
        self.fetch("DELETE", held.messages[0]["href"].split("/queues/")[1], status=204)
        self.fetch("DELETE", "q/claims/" + held.id, status=204)
        self.fetch("DELETE", "q/messages?pop=1", status=200)
        self.crash_and_start()
        self.assertEqual(self.numbers(), list(range(2, taken)))

    def test_it_recovers_by_itself_when_nothing_but_a_purge_comes(self):
        self.start()
        taken = self.fill()
        self.crash_and_start()
        self.fetch("POST", "q/purge", {"resource_types": ["messages"]}, 204)
        self.assertLess(self.recovers(), PATIENCE_S / 2)
        self.assertGreater(self.fill(taken), 100)
        self.crash_and_start()
        self.assertGreater(self.numbers()[-1], taken)

    def test_it_restarts_when_it_is_full(self):
        """Each start begins a segment, whatever is allowed: it must not be the last."""
        self.start()
        taken = self.fill()
        for _ in range(8):
            self.crash_and_start()
        self.assertEqual(self.numbers(), list(range(taken)))
        self.fetch("DELETE", "q/messages?pop=1", status=200)
        self.fetch("POST", "q/purge", {"resource_types": ["messages"]}, 204)
        self.recovers()

    def test_small_messages_that_are_claimed_and_released(self):
        """All messages stay alive, and every claim makes the log longer."""
        self.start()
        batch = json.dumps({"messages": [{"body": 1}] * 1000}).encode()
        posted = 0
        with self.server.connect() as client:
            while True:
                client.send(50 * request("POST", "/v2/queues/q/messages", batch))
                statuses = [client.response().status for _ in range(50)]
                posted += 1000 * statuses.count(201)
                self.assertLessEqual(set(statuses), {201, 503})
                if 503 in statuses:
                    break
            for _ in range(3000):
                client.send(request("POST", "/v2/queues/q/claims?limit=100", b"{}"))
                response = client.response()
                self.assertEqual(response.status, 201, response)
                client.send(request("DELETE", response.headers["location"]))
                self.assertEqual(client.response().status, 204)
        self.crash_and_start()
        total = self.fetch("GET", "q/stats", status=200)["messages"]["total"]
        self.assertEqual(total, posted)
        self.fetch("POST", "q/purge", {"resource_types": ["messages"]}, 204)
        self.recovers()


class Disk(SpaceCase):
    """A file system that is too small."""

    def mount(self, size):
        where = os.path.join(self.folder, "disk")
        os.mkdir(where)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % size, "claimd",
                               where], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.skipTest("no file system can be mounted here: " + done.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", where], check=True)
        self.addCleanup(self.crash)
        self.path = os.path.join(where, "journal")
        self.other = os.path.join(where, "other")

    def use_up(self):
        """Another file takes all that is left."""
        with open(self.other, "ab", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(MB))
            except OSError:
                pass

    def test_others_use_it_up_and_give_it_back(self):
        """No request comes meanwhile: it looks by itself."""
        self.mount(120 * MB)
        self.start()
        self.use_up()
        taken = self.fill()
        self.assertGreater(taken, 0)
        os.unlink(self.other)
        self.assertLess(self.recovers(), PATIENCE_S / 2)
        self.crash_and_start()
        self.assertEqual([n for n in self.numbers() if n >= 0], list(range(taken)))

    def test_it_restarts_on_a_disk_that_others_have_filled(self):
        """Other processes fill any space that it frees before it starts again, so it keeps its spare files."""
        self.mount(64 * MB)
        self.start()
        taken = 100
        with self.server.connect() as client:
            for number in range(taken):
                self.assertEqual(self.try_post(client, number).status, 201)
        for turn in range(5):
            self.use_up()
            self.crash_and_start()
            self.use_up()
            self.assertEqual(self.numbers(), list(range(turn, taken)))
            self.fetch("DELETE", "q/messages?pop=1", status=200)
        os.unlink(self.other)
        self.recovers()

    def test_a_backlog_on_the_disk_until_it_is_full(self):
        """Body files end before the journal lacks space for a checkpoint and for deletes."""
        unloading, body = ("--backlog-memory", "1M"), "x" * 20_000
        self.mount(200 * MB)
        self.start(*unloading)
        taken = self.fill(body=body)
        self.assertIn("bodies", {name.split(".")[-1] for name in os.listdir(self.path)})
        self.use_up()
        self.crash_and_start(*unloading)
        self.assertEqual(self.numbers(), list(range(taken)))
        self.pop(1000)
        self.assertEqual(self.numbers(), list(range(1000, taken)))
        self.fetch("POST", "q/purge", {"resource_types": ["messages"]}, 204)
        self.recovers()
        self.assertGreater(self.fill(taken, body=body), 1000)

    def test_a_disk_without_space_for_a_start(self):
        self.mount(3 * MB)
        self.refused(1, self.path, "No space left on device")

    def test_it_never_confirms_what_is_lost(self):
        """Producers go on, others use up the disk, and it is killed."""
        self.mount(80 * MB)
        self.start()
        taken, refused, failures = [[], [], []], [[], [], []], []

        def produce(mine, refused, first):
            with self.server.connect() as client:
                for number in range(first, first + 100_000):
                    try:
                        status = self.try_post(client, number).status
                    except (EOFError, ConnectionError):
                        return
                    if status == 201:
                        mine.append(number)
                    else:
                        (refused if status == 503 else failures).append(status)

        producers = [threading.Thread(target=produce, args=(mine, refused[i], i * 1_000_000))
                     for i, mine in enumerate(taken)]
        for producer in producers:
            producer.start()
        eventually(lambda: all(taken))
        self.use_up()
        eventually(lambda: any(refused))
        self.crash()
        for producer in producers:
            producer.join()
        os.unlink(self.other)
        self.start()
        self.assertEqual(failures, [])
        there = set(self.numbers())
        lost = [n for mine in taken for n in mine if n not in there]
        self.assertEqual(lost, [])
        self.assertGreater(sum(len(mine) for mine in taken), 0)


if __name__ == "__main__":
    unittest.main()
