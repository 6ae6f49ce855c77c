#!/usr/bin/python3
"""A backlog that is larger than the memory for it (docs/adr/0028-body-files.md).

    backlog_test.py CLAIMD

Messages leave memory from 1 MB on, so that a few thousand of them are enough. Each test expects
every message once and in order, whatever happened to the others, the files or the process.
"""

import json
import os
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import eventually, run  # noqa: E402
from journalled import HEAD_BYTES, JournalCase, flip  # noqa: E402
from prometheus import samples  # noqa: E402

OPTIONS = ("--backlog-memory", "1M", "--max-messages-per-claim-or-pop", "100",
           "--max-messages-per-page", "100")
BATCH = 100
MESSAGES = 4000
PAD = "x" * 1000


def without_times(document):
    """A document without ages, and the moments and texts that tell them."""
    if isinstance(document, list):
        return [without_times(each) for each in document]
    if isinstance(document, dict):
        return {key: without_times(value) for key, value in document.items() if key not in ("age", "next")}
    return document


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

    def await_bodies(self, size):
        """So many bytes have left memory."""
        def unloaded():
            self.await_body_files()
            return sum(os.path.getsize(os.path.join(self.path, name)) for name in self.body_files()) > size
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

    def shown(self, ids):
        """The responses to all kinds of reads, without what depends on the time."""
        targets = ["/v2/queues/q/messages?echo=true&limit=100&marker=%s" % ids[n] for n in (0, 1990, 2900)]
        targets += ["/v2/queues/q/messages/" + ids[2001], "/claimd/queues/q/messages/" + ids[2002],
                    "/v2/queues/q/messages?ids=%s" % ",".join(ids[5::190])]
        targets += ["/claimd/queues/q/messages?" + search
                    for search in ("text=%5B39", "text=%5B3&limit=200", "text=nowhere", "state=ready&text=%5B123,",
                                   "state=claimed", "group=reason&text=%5B2", "id=" + ids[3000])]
        return {target: without_times(self.whole_search(target)) for target in targets}

    def whole_search(self, target):
        """The document of a response; of a search, the messages of all its pages."""
        document = json.loads(self.server.fetch("GET", target).body)
        messages, page = document.get("messages"), document
        while page.get("marker") is not None:
            page = json.loads(self.server.fetch("GET", "%s&marker=%s" % (target, page["marker"])).body)
            messages += page["messages"]
        return {key: value for key, value in document.items() if key not in ("marker", "searched", "total", "links")}

    def test_reads_show_the_same_as_of_messages_in_memory(self):
        self.start(*OPTIONS[2:])
        ids = self.fill("q")
        in_memory = self.shown(ids)
        self.assertEqual(len(in_memory["/claimd/queues/q/messages?text=%5B3&limit=200"]["messages"]), 1111)
        self.stop_and_start(*OPTIONS)
        self.await_bodies(1500000)
        for target, document in self.shown(ids).items():
            self.assertEqual(document, in_memory[target], target)

    def test_deletes_in_the_middle_of_unloaded_runs(self):
        ids = self.start_with_backlog()
        self.await_bodies(1500000)
        gone = set(range(2, MESSAGES, 37))
        for first in range(0, MESSAGES, 1000):
            some = [ids[n] for n in sorted(gone) if first <= n < first + 500]
            self.fetch("DELETE", "q/messages?ids=" + ",".join(some), status=204)
            for n in sorted(gone):
                if first + 500 <= n < first + 1000:
                    self.fetch("DELETE", "q/messages/" + ids[n], status=204)
        left = [n for n in range(MESSAGES) if n not in gone]
        self.assertEqual(self.walk("q"), left)
        self.crash_and_start(*OPTIONS)
        self.assertEqual(self.drain("q"), left)

    def test_backups_while_messages_leave_memory(self):
        self.start(*OPTIONS)
        self.fill("q", 1000)
        posts = threading.Thread(target=self.fill, args=("p", 3000))
        posts.start()
        copies = []
        while posts.is_alive() or not copies:
            copies.append(os.path.join(self.folder, "copy%d" % len(copies)))
            self.assertEqual(run("backup", self.path, copies[-1]).returncode, 0)
        posts.join()
        self.crash()
        for copy in copies[0], copies[len(copies) // 2], copies[-1]:
            verified = run("verify", copy)
            self.assertEqual(verified.returncode, 0, verified)
            self.start(*OPTIONS, path=copy)
            self.assertEqual(self.walk("q"), list(range(1000)))
            numbers = self.walk("p")
            self.assertEqual(numbers, list(range(len(numbers))))
            self.crash()
        self.assertTrue(any(name.endswith(".bodies") for name in os.listdir(copies[-1])))

    def test_all_unloaded_messages_expire_in_one_moment(self):
        self.start(*OPTIONS)
        self.fill("kept", 1000)
        for first in range(0, 20000, BATCH):
            self.post("q", *([n, "x" * 100] for n in range(first, first + BATCH)), ttl=6)
        end = time.monotonic() + 7
        self.assertTrue(self.body_files())
        self.server.signal(signal.SIGSTOP)
        eventually(lambda: time.monotonic() > end)
        self.server.signal(signal.SIGCONT)
        self.assertEqual(self.walk("kept"), list(range(1000)))
        self.assertEqual(self.walk("q"), [])
        self.crash_and_start(*OPTIONS)
        self.assertEqual(self.walk("q"), [])
        self.assertEqual(self.drain("kept"), list(range(1000)))

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

    def test_a_start_that_unloads_none_finds_all_messages(self):
        self.start_with_backlog()
        self.stop()
        self.start("--backlog-memory", "0")
        stats = self.fetch("GET", "q/stats", status=200)["messages"]
        self.assertGreaterEqual(stats["free"], MESSAGES)
        self.assertEqual(self.claim("q", limit=20).bodies(), [[n, PAD] for n in range(20)])

    def metrics(self):
        return samples(self.server.fetch("GET", "/metrics").body.decode(), is_open=False)

    def test_metrics_show_unloaded_messages_reads_and_waits_for_them(self):
        ids = self.start_with_backlog()
        eventually(lambda: self.metrics()["claimd_messages_unloaded",] > MESSAGES * 3 / 4)

        def files_are_counted():
            sizes = [os.path.getsize(os.path.join(self.path, name)) for name in self.body_files()]
            now = self.metrics()
            return (now["claimd_journal_body_files",], now["claimd_journal_body_bytes",]) == \
                (len(sizes), sum(sizes))
        eventually(files_are_counted)
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

    def test_a_flipped_byte_ends_the_process_when_it_is_read(self):
        self.start_with_backlog()
        name = self.body_files()[0]
        flip(os.path.join(self.path, name), HEAD_BYTES + 200)
        with self.assertRaises((EOFError, ConnectionError)):
            self.walk("q")
        server, self.server = self.server, None
        self.assertEqual(server.wait(), 4)
        self.assertIn("%s is damaged at %d" % (name, HEAD_BYTES), server.logged("journal_failed"))
        verified = run("verify", self.path)
        self.assertEqual(verified.returncode, 3)
        self.assertIn("%s at %d has a damaged frame" % (name, HEAD_BYTES), verified.stdout)


if __name__ == "__main__":
    unittest.main()
