#!/usr/bin/python3
"""claimd verify, log and backup, with a real daemon and a real directory.

    journal_commands_test.py CLAIMD

A journal is looked at while it is used, after kill -9, and with a byte of it changed; what can
be saved of it is served again, and so is a copy that was made under load.
"""

import json
import os
import signal
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import Server, eventually, post, run  # noqa: E402

GOOD, FAILED, USAGE, DAMAGED = 0, 1, 2, 3
FIRST = "0000000000000001.log"
HEAD = 4096  # of a segment: frames follow


def bodies(server, queue):
    """The bodies of all messages of a queue, in order."""
    found, target = [], "/v2/queues/%s/messages?echo=true&include_claimed=true&limit=20" % queue
    while True:
        response = server.fetch("GET", target)
        page = json.loads(response.body)
        if not page["messages"]:
            return found
        found += [message["body"] for message in page["messages"]]
        target = page["links"][0]["href"]


class Producer(threading.Thread):
    """Posts 0, 1, 2 ... until it has to stop; `acknowledged` of them were accepted."""

    def __init__(self, server, queue):
        super().__init__()
        self.client, self.queue = server.connect(), queue
        self.acknowledged, self.refused = 0, None
        self.enough = threading.Event()

    def run(self):
        while not self.enough.is_set() and self.refused is None:
            self.client.send(post(self.queue, b'{"messages":[{"body":%d}]}' % self.acknowledged))
            response = self.client.response()
            if response.status == 201:
                self.acknowledged += 1
            else:
                self.refused = response

    def stop(self):
        self.enough.set()
        self.join()
        self.client.close()


class JournalCommands(unittest.TestCase):
    def setUp(self):
        self.root = self.enterContext(tempfile.TemporaryDirectory())
        self.journal = self.path("journal")

    def path(self, *names):
        return os.path.join(self.root, *names)

    def serve(self, journal=None):
        return Server("--journal", journal or self.journal)

    def command(self, *words, status=GOOD):
        done = run(*words)
        self.assertEqual(done.returncode, status, done)
        return done

    def fill(self, server, queue, count):
        for i in range(count):
            response = server.fetch("POST", "/v2/queues/%s/messages" % queue,
                                    b'{"messages":[{"body":%d}]}' % i)
            self.assertEqual(response.status, 201, response)

    def kill(self, server):
        server.signal(signal.SIGKILL)
        self.assertEqual(server.wait(), -signal.SIGKILL)

    def killed_journal(self, count):
        """The journal of a daemon that was killed with so many messages in "jobs"."""
        with self.serve() as server:
            self.fill(server, "other", 1)
            self.fill(server, "jobs", count)
            self.kill(server)

    def records(self, *options, status=GOOD):
        """The lines of `claimd log`."""
        done = self.command("log", self.journal, *options, status=status)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def spoil(self, lsn):
        """Changes a byte in the frame of this lsn; they are found one behind another."""
        path = self.path("journal", FIRST)
        with open(path, "r+b") as f:
            data, at = f.read(1 << 20), HEAD
            while int.from_bytes(data[at + 24:at + 32], "little") != lsn or \
                    int.from_bytes(data[at + 40:at + 44], "little") == 0:
                self.assertEqual(data[at:at + 4], b"Frm\n")
                at += 64 + int.from_bytes(data[at + 44:at + 48], "little")
            f.seek(at + 80)
            f.write(bytes([data[at + 80] ^ 0x10]))

    # ------------------------------------------------------------------ verify

    def test_a_journal_in_use_is_not_verified_and_not_disturbed(self):
        with self.serve() as server:
            self.fill(server, "jobs", 2)
            done = self.command("verify", self.journal, status=FAILED)
            self.assertIn("another process uses", done.stderr)
            self.fill(server, "jobs", 1)
        done = self.command("verify", self.journal)
        self.assertIn("queues 1, messages 3, claimed 0\n", done.stdout)
        self.assertIn(", sealed\n", done.stdout)

    def test_after_a_kill_it_is_good_and_stays_as_it_is(self):
        self.killed_journal(5)
        before = sorted(os.listdir(self.journal))
        done = self.command("verify", self.journal)
        self.assertIn("queues 2, messages 6, claimed 0\n", done.stdout)
        self.assertIn("the journal is good: 1 segment, ", done.stdout)
        self.assertEqual(sorted(os.listdir(self.journal)), before)
        with self.serve() as server:
            self.assertEqual(bodies(server, "jobs"), [0, 1, 2, 3, 4])

    def test_the_intact_part_of_a_damaged_journal_is_salvaged_and_served(self):
        self.killed_journal(6)
        posts = [line for line in self.records("--queue", "jobs") if line["type"] == "POST"]
        self.assertEqual(len(posts), 6)
        lost = posts[3]["lsn"]
        self.spoil(lost)
        refused = run("--journal", self.journal, "--listen", "127.0.0.1:0")
        self.assertEqual(refused.returncode, DAMAGED, refused)
        done = self.command("verify", self.journal, status=DAMAGED)
        self.assertRegex(done.stdout, r"damaged: %s at \d+ is not a frame, .*: missing LSN %s\n"
                         % (FIRST, lost))
        out = self.path("saved")
        done = self.command("verify", self.journal, "--salvage", out, status=DAMAGED)
        self.assertRegex(done.stdout, r"\nsalvage: missing LSN %s \(%s at " % (lost, FIRST))
        with self.serve(out) as server:
            self.assertEqual(bodies(server, "jobs"), [0, 1, 2, 4, 5])
            self.assertEqual(bodies(server, "other"), [0])
            self.fill(server, "jobs", 1)
        self.command("verify", out)
        # Existing files are not written over.
        done = self.command("verify", self.journal, "--salvage", out, status=FAILED)
        self.assertIn("is not empty", done.stderr)

    # ------------------------------------------------------------------ log

    def test_the_log_shows_what_happened_and_no_bodies(self):
        with self.serve() as server:
            server.fetch("POST", "/v2/queues/jobs/messages",
                         b'{"messages":[{"body":"secret"},{"body":12}]}')
            claim = json.loads(server.fetch("POST", "/v2/queues/jobs/claims",
                                            b'{"ttl":300,"grace":60}').body)
            self.assertEqual(len(claim["messages"]), 2)
            lines = self.records()  # while it runs
            self.assertEqual([line["lsn"] for line in lines],
                             list(range(1, len(lines) + 1)))
            self.assertEqual([line["type"] for line in lines],
                             ["MARK", "QUEUE", "POST", "CLAIM"])
            for line in lines:
                self.assertRegex(line["at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
            for line in lines[1:]:
                self.assertEqual((line["project"], line["queue"]), ("p", "jobs"))
            self.assertEqual(lines[2]["messages"], [{"number": 1, "bytes": 8},
                                                    {"number": 2, "bytes": 2}])
            self.assertTrue(claim["messages"][0]["href"].endswith("claim_id=" +
                                                                  lines[3]["claim"]))
            self.assertEqual(lines[3]["messages"], [{"number": 1, "claim_count": 1},
                                                    {"number": 2, "claim_count": 1}])
        done = self.command("log", self.journal)
        self.assertNotIn("secret", done.stdout)
        last = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual((last["type"], last["mark"]), ("MARK", "CLOSED"))
        self.assertEqual([line["lsn"] for line in self.records("--from", "3", "--project", "p")],
                         [3, 4])
        self.assertEqual(self.records("--queue", "nobody"), [])

    def test_the_log_names_topics_and_where_dead_letters_went(self):
        with self.serve() as server:
            server.fetch("PUT", "/v2/topics/news", b'{}')
            server.fetch("PUT", "/v2/queues/jobs",
                         b'{"_max_claim_count":1,"_dead_letter_queue":"dead"}')
            server.fetch("PUT", "/v2/queues/dead", b'{}')
            self.fill(server, "jobs", 1)
            for _ in range(2):
                claim = server.fetch("POST", "/v2/queues/jobs/claims", b'{"ttl":300,"grace":60}')
                if claim.status == 201:
                    href = json.loads(claim.body)["messages"][0]["href"]
                    server.fetch("DELETE", "/v2/queues/jobs/claims/" + href.split("=")[1])
        lines = self.records()
        self.assertEqual([line["topic"] for line in lines if "topic" in line], ["news"])
        moved, = (line for line in lines if line["type"] == "MOVE")
        self.assertEqual((moved["project"], moved["queue"], moved["target"]),
                         ("p", "jobs", "dead"))
        message, = moved["messages"]
        self.assertEqual((message["number"], message["old_number"], message["bytes"]), (1, 1, 1))
        self.assertRegex(message["id"], "^[0-9a-f]{24}$")

    def unique(self, server, key, existing):
        response = server.fetch("POST", "/v2/queues/jobs/messages", b'{"messages":[{"body":1}]}',
                                headers=["Claimd-Unique: " + key])
        self.assertEqual((response.status, response.headers.get("claimd-unique")),
                         (201, "existing" if existing else None))

    def test_keys_of_unique_messages_are_logged_and_outlive_a_kill_and_a_salvage(self):
        saved = self.path("saved")
        with self.serve() as server:
            self.fill(server, "other", 2)
            self.unique(server, "report-2026-11", False)
            self.unique(server, "another-key; until=claimed", False)
            self.kill(server)
        lines = [line for line in self.records() if line["type"] == "DETAILS"]
        self.assertEqual([line["messages"] for line in lines],
                         [[{"number": 1, "unique": "report-2026-11"}],
                          [{"number": 2, "unique": "another-key", "unique_until": "claimed"}]])
        with self.serve() as server:
            self.unique(server, "report-2026-11", True)
            self.kill(server)
        self.spoil(self.records("--queue", "other")[-1]["lsn"])
        self.command("verify", self.journal, "--salvage", saved, status=DAMAGED)
        with self.serve(saved) as server:
            self.unique(server, "report-2026-11", True)
            self.unique(server, "another-key", True)
            self.assertEqual(server.fetch("POST", "/v2/queues/jobs/claims").status, 201)
            self.unique(server, "another-key", False)

    def test_the_log_goes_on_behind_damage_and_says_so(self):
        self.killed_journal(3)
        lost, last = [line["lsn"] for line in self.records("--queue", "jobs")][-2:]
        self.spoil(lost)
        lines = self.records(status=DAMAGED)
        self.assertNotIn(lost, [line.get("lsn") for line in lines])
        self.assertEqual(lines[-1]["lsn"], last)
        self.assertEqual(lines[-2]["damaged"], FIRST)
        self.assertEqual((lines[-2]["missing_from"], lines[-2]["missing_to"]), (lost, lost))

    # ------------------------------------------------------------------ backup

    def test_a_copy_under_load_has_all_acknowledged_messages(self):
        out = self.path("copy")
        with self.serve() as server:
            producer = Producer(server, "jobs")
            producer.start()
            eventually(lambda: producer.acknowledged >= 100 or producer.refused)
            before = producer.acknowledged
            done = self.command("backup", self.journal, out)
            after = producer.acknowledged + 1  # one may be on its way
            eventually(lambda: producer.acknowledged > after or producer.refused)
            producer.stop()
            self.assertIsNone(producer.refused)
            self.assertRegex(done.stdout, r"has 1 segment up to LSN \d+, 0 linked, ")
            self.command("verify", out)
            with self.serve(out) as copy:
                there = bodies(copy, "jobs")
                self.assertEqual(there, list(range(len(there))))
                self.assertGreaterEqual(len(there), before)
                self.assertLessEqual(len(there), after)
                self.fill(copy, "jobs", 1)  # it is one of its own
            self.assertEqual(len(bodies(server, "jobs")), producer.acknowledged)

    def test_closed_segments_are_linked(self):
        out = self.path("copy")
        for i in range(3):  # each start begins a segment
            with self.serve() as server:
                self.fill(server, "jobs", 1)
        done = self.command("backup", self.journal, out)
        self.assertRegex(done.stdout, r"has 3 segments .*, 2 linked, \d+ bytes copied")
        self.assertEqual(os.stat(self.path("journal", FIRST)).st_ino,
                         os.stat(self.path("copy", FIRST)).st_ino)
        with self.serve(out) as copy:
            self.assertEqual(bodies(copy, "jobs"), [0, 0, 0])
        self.assertIn("messages 3, ", self.command("verify", self.journal).stdout)
        done = self.command("backup", self.journal, out, status=FAILED)
        self.assertIn("is not empty", done.stderr)

    # ------------------------------------------------------------------ body files

    def test_messages_out_of_memory_are_in_each_copy(self):
        copy, saved = self.path("copy"), self.path("saved")
        text = "x" * 30000
        with Server("--journal", self.journal, "--backlog-memory", "1M") as server:
            client = server.connect()
            for _ in range(50):
                body = json.dumps({"messages": [{"body": text}] * 8}).encode()
                client.send(post("jobs", body))
                self.assertEqual(client.response().status, 201)
            eventually(lambda: '"type":"RUN"' in self.command("log", self.journal).stdout)
            done = self.command("backup", self.journal, copy)
            self.assertRegex(done.stdout, r" bytes? copied, \d+ body files?\n")
        name = next(name for name in os.listdir(copy) if name.endswith(".bodies"))
        self.assertEqual(os.stat(self.path("journal", name)).st_ino,
                         os.stat(self.path("copy", name)).st_ino)
        for path in self.journal, copy:
            self.assertIn("messages 400, ", self.command("verify", path).stdout)
            dump = self.command("dump", "--journal", path).stdout
            self.assertEqual(dump.count(text), 400)
        with self.serve(copy) as server:
            self.assertEqual(bodies(server, "jobs"), [text] * 400)
        os.unlink(self.path("journal", name))
        done = self.command("verify", self.journal, "--salvage", saved, status=DAMAGED)
        self.assertRegex(done.stdout, "damaged: %s at 4096 is missing, so .* of the queue jobs" % name)
        self.command("verify", saved)

    # ------------------------------------------------------------------ words

    def test_a_folder_that_is_no_journal_is_named(self):
        os.mkdir(self.path("empty"))
        for words in (("verify", self.path("empty")), ("log", self.path("empty")),
                      ("verify", self.path("nowhere")), ("log", self.path("nowhere")),
                      ("backup", self.path("empty"), self.path("copy")),
                      ("backup", self.path("nowhere"), self.path("copy"))):
            with self.subTest(words=words):
                done = self.command(*words, status=FAILED)
                self.assertRegex(done.stderr, "^claimd: .*(no journal|No such file)")
        self.assertEqual(os.listdir(self.path("empty")), [])

    def test_wrong_words_are_refused_and_help_is_given(self):
        for words in (("verify",), ("verify", "a", "b"), ("verify", "a", "--salvage"),
                      ("verify", "a", "--loud"), ("log", "a", "--from", "x"),
                      ("log", "a", "--from", "-1"), ("backup", "a"),
                      ("log", "a", "--queue", "b", "--queue", "c")):
            with self.subTest(words=words):
                self.assertRegex(self.command(*words, status=USAGE).stderr, "^claimd: ")
        for name in ("verify", "log", "backup"):
            shown = self.command(name, "--help").stdout
            self.assertTrue(shown.startswith("Usage: claimd %s DIR" % name), shown)
            self.assertIn("  %s DIR" % name, self.command("--help").stdout)


if __name__ == "__main__":
    unittest.main()
