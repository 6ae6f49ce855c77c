#!/usr/bin/python3
"""A backlog that is larger than the memory for it (docs/adr/0028-body-files.md).

    backlog_test.py CLAIMD

Messages leave memory from 1 MB on, so that a few thousand of them are enough. Each test drains
its queue, and expects every message once and in order.
"""

import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import eventually  # noqa: E402
from journalled import JournalCase, flip  # noqa: E402
from prometheus import samples  # noqa: E402

OPTIONS = ("--backlog-memory", "1M", "--max-messages-per-claim-or-pop", "100",
           "--max-messages-per-page", "100")
BATCH = 100
MESSAGES = 4000
PAD = "x" * 1000


class Backlog(JournalCase):
    def body_files(self):
        return sorted(name for name in os.listdir(self.path) if name.endswith(".bodies"))

    def fill(self, queue, count=MESSAGES):
        """Posts messages with their numbers; their ids."""
        ids = []
        for first in range(0, count, BATCH):
            ids += self.post(queue, *([n, PAD] for n in range(first, first + BATCH)))
        return ids

    def await_body_files(self):
        """Messages are unloaded with posts and with housekeeping."""
        def unloaded():
            self.post("other", *([n, PAD] for n in range(5)))
            self.post("q", ["more", PAD])
            return self.body_files()
        eventually(unloaded)

    def start_with_backlog(self):
        self.start(*OPTIONS)
        ids = self.fill("q")
        self.await_body_files()
        return ids

    def page(self, target):
        page = self.fetch("GET", target, status=200)
        return page["messages"], page["links"][0]["href"].split("/queues/")[1] if page["links"] else None

    def walk(self, queue):
        """The numbers that the pages of a listing have."""
        target, numbers = queue + "/messages?echo=true&limit=100", []
        while target is not None:
            messages, target = self.page(target)
            numbers += [message["body"][0] for message in messages]
            if not messages:
                break
        return [number for number in numbers if number != "more"]

    def drain(self, queue):
        """Claims and deletes all messages; their numbers."""
        numbers = []
        while True:
            claim = self.claim(queue, limit=BATCH)
            if claim is None:
                return [number for number in numbers if number != "more"]
            numbers += [message["body"][0] for message in claim.messages]
            for message in claim.messages:
                self.assertEqual(message["body"][1], PAD)
            ids = ",".join(message["id"] for message in claim.messages)
            self.fetch("DELETE", "%s/messages?ids=%s&claim_ids=%s" % (queue, ids, claim.id), status=204)

    def test_a_backlog_on_the_disk_is_listed_and_drained_in_order_after_a_kill(self):
        ids = self.start_with_backlog()
        self.crash_and_start(*OPTIONS)
        self.assertEqual(self.walk("q"), list(range(MESSAGES)))
        stats = self.fetch("GET", "q/stats", status=200)["messages"]
        self.assertGreaterEqual(stats["free"], MESSAGES)
        self.assertEqual(stats["oldest"]["href"].rsplit("/", 1)[1], ids[0])
        middle = ids[1000:1010]
        found = self.fetch("GET", "q/messages?ids=" + ",".join(middle), status=200)["messages"]
        self.assertEqual([message["body"][0] for message in found], list(range(1000, 1010)))
        self.fetch("DELETE", "q/messages?ids=" + ",".join(middle), status=204)
        self.crash_and_start(*OPTIONS)
        left = list(range(1000)) + list(range(1010, MESSAGES))
        self.assertEqual(self.drain("q"), left)
        self.assertIsNone(self.claim("q"))

    def test_messages_that_are_claimed_at_a_kill_are_there_with_their_claims(self):
        self.start_with_backlog()
        claims = [self.claim("q", limit=BATCH) for _ in range(3)]
        self.crash_and_start(*OPTIONS)
        for n, claim in enumerate(claims):
            shown = self.fetch("GET", "q/claims/" + claim.id, status=200)["messages"]
            self.assertEqual([message["body"] for message in shown],
                             [[number, PAD] for number in range(n * BATCH, (n + 1) * BATCH)])
        self.fetch("DELETE", "q/claims/" + claims[1].id, status=204)
        self.assertEqual(self.claim("q", limit=BATCH).bodies(), claims[1].bodies())

    def test_many_workers_get_each_message_once(self):
        self.start(*OPTIONS)
        got, lock = [], threading.Lock()

        def work():
            numbers = self.drain("q")
            with lock:
                got.extend(numbers)

        self.fill("q")
        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        self.fill("p", 1000)
        for worker in workers:
            worker.join()
        self.assertEqual(sorted(got), list(range(MESSAGES)))
        self.assertEqual(self.drain("p"), list(range(1000)))

    def test_body_files_go_when_a_queue_is_purged(self):
        self.start_with_backlog()
        before = self.body_files()
        self.fetch("POST", "q/purge", {"resource_types": ["messages"]}, 204)
        self.assertEqual(self.fetch("GET", "q/stats", status=200)["messages"]["total"], 0)

        def removed():
            self.post("other", "so that there is a commit")
            return not set(before) & set(self.body_files())
        eventually(removed)
        self.crash_and_start(*OPTIONS)
        self.assertEqual(self.fetch("GET", "q/stats", status=200)["messages"]["total"], 0)

    def test_a_start_without_the_option_finds_all_messages(self):
        self.start_with_backlog()
        self.stop()
        self.start()
        stats = self.fetch("GET", "q/stats", status=200)["messages"]
        self.assertGreaterEqual(stats["free"], MESSAGES)
        self.assertEqual(self.claim("q", limit=20).bodies(), [[n, PAD] for n in range(20)])

    def metrics(self):
        return samples(self.server.fetch("GET", "/metrics").body.decode(), is_open=False)

    def test_metrics_show_unloaded_messages_reads_and_waits_for_them(self):
        ids = self.start_with_backlog()
        eventually(lambda: self.metrics()["claimd_messages_unloaded",] > MESSAGES * 3 / 4)
        eventually(lambda: self.metrics()["claimd_journal_body_files",] == len(self.body_files()))
        before = self.metrics()
        for name in ("messages_unloaded", "unloaded_bytes"):  # queues are read after the sum
            of_queues = sum(value for key, value in before.items() if key[0] == "claimd_queue_" + name)
            self.assertGreaterEqual(of_queues, before["claimd_" + name,])
        self.assertGreater(before["claimd_unloaded_bytes",], MESSAGES * 3 / 4 * len(PAD))
        self.assertEqual(before["claimd_http_load_wait_seconds_count",], 0)
        self.fetch("GET", "q/messages/" + ids[MESSAGES // 2], status=200)
        after = self.metrics()
        self.assertEqual(after["claimd_http_load_wait_seconds_count",], 1)
        reads = after["claimd_journal_runs_loaded_total",]
        self.assertGreater(reads, before["claimd_journal_runs_loaded_total",])
        self.assertEqual(after["claimd_journal_load_seconds_count",], reads)

    def test_a_missing_or_foreign_body_file_is_damage(self):
        self.start_with_backlog()
        self.crash()
        path = os.path.join(self.path, self.body_files()[0])
        os.rename(path, path + ".away")
        self.refused(3, os.path.basename(path), "missing")
        os.rename(path + ".away", path)
        flip(path, 40)
        self.refused(3, os.path.basename(path), "head")
        flip(path, 40)
        size = os.path.getsize(path)
        with open(path, "r+b") as f:
            f.truncate(size // 2)
        self.refused(3, os.path.basename(path), "ends at")


if __name__ == "__main__":
    unittest.main()
