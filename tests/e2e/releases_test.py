#!/usr/bin/python3
"""claimd reads the journal and the dump of each release, and refuses a journal of a later one.

    releases_test.py CLAIMD TESTD

tests/e2e/releases/make.py wrote the folders. testd continues at the time at which a folder was written, so
all times are exact. claimd itself starts at the time of today.
"""

import glob
import json
import os
import re
import shutil
import struct
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "releases"))
sys.path.insert(0, HERE)

from harness import CLAIMD, run  # noqa: E402
from journalled import FRAME_HEAD_BYTES, HEAD_BYTES, crc32c, frames  # noqa: E402
from make import Server, claimd, exchange, without_volatile  # noqa: E402

TESTD = sys.argv.pop(1)
FOLDERS = sorted(glob.glob(os.path.join(HERE, "releases", "*", "journal")))
TIMES = {"age", "ttl_left", "oldest_ready_age", "oldest_claim_age"}
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def files(folder):
    """The bytes of all files that a release wrote into its journal."""
    found = {}
    for path in glob.glob(os.path.join(folder, "*.log")) + [os.path.join(folder, "durable-lsn")]:
        with open(path, "rb") as f:
            found[os.path.basename(path)] = f.read()
    return found


class Releases(unittest.TestCase):
    def setUp(self):
        self.scratch = self.enterContext(tempfile.TemporaryDirectory())

    def each(self):
        """A copy of each folder, in which claimd may write."""
        self.assertGreater(len(FOLDERS), 0)
        for folder in map(os.path.dirname, FOLDERS):
            name = os.path.basename(folder)
            copy = os.path.join(self.scratch, name)
            shutil.copytree(folder, copy)
            os.chmod(os.path.join(copy, "key"), 0o600)  # git does not keep the mode
            with self.subTest(release=name):
                yield copy

    def assert_has(self, actual, expected, where, exact):
        """A later version may add members. Without `exact`, times may be others."""
        if isinstance(expected, dict):
            self.assertIsInstance(actual, dict, where)
            for name, value in expected.items():
                self.assertIn(name, actual, where)
                if exact or name not in TIMES:
                    self.assert_has(actual[name], value, "%s: %s" % (where, name), exact)
        elif isinstance(expected, list):
            self.assertEqual(len(actual), len(expected), where)
            for one, other in zip(actual, expected):
                self.assert_has(one, other, where, exact)
        elif exact or not isinstance(expected, str) or not DATE.search(expected):
            self.assertEqual(actual, expected, where)

    def assert_responses(self, server, folder, exact):
        with open(os.path.join(folder, "expected.json"), encoding="utf-8") as f:
            wanted = json.load(f)
        self.assertGreater(len(wanted), 20)
        for one in wanted:
            request = {name: value for name, value in one.items()
                       if name not in ("method", "target", "status", "response", "replayed")}
            found = exchange(server, one["method"], one["target"], **request)
            self.assert_has(found, one, "%(method)s %(target)s" % one, exact)

    def dump(self, folder):
        with open(os.path.join(folder, "dump.jsonl"), encoding="utf-8") as f:
            return f.read()

    def lines(self, dump):
        head, *rest = [json.loads(line) for line in dump.splitlines()]
        for line in rest:
            if "subscription" in line:
                line["subscription"] = without_volatile(line["subscription"])
        return head["now_ms"], rest

    def test_a_server_continues_the_journal_at_the_time_of_its_end(self):
        for folder in self.each():
            now_ms, lines = self.lines(self.dump(folder))
            with Server(TESTD, folder, "--journal", os.path.join(folder, "journal"), now_ms=now_ms) as server:
                self.assert_responses(server, folder, exact=True)
                dump = claimd(os.path.dirname(CLAIMD), "dump", "--url", server.url)
            self.assert_has(self.lines(dump)[1], lines, "dump", exact=True)

    def test_claimd_continues_the_journal_today_and_after_a_restart(self):
        for folder in self.each():
            journal = os.path.join(folder, "journal")
            for _ in range(2):
                with Server(CLAIMD, folder, "--journal", journal) as server:
                    self.assert_responses(server, folder, exact=False)
            self.assertEqual(run("verify", journal).returncode, 0)

    def test_verify_and_log_read_the_journal_and_leave_it_as_it_is(self):
        for folder in self.each():
            journal = os.path.join(folder, "journal")
            before = files(journal)
            verified, log = run("verify", journal), run("log", journal)
            self.assertEqual((verified.returncode, log.returncode), (0, 0), (verified, log))
            self.assertIn("the journal is good", verified.stdout)
            self.assertNotIn("torn", verified.stdout)
            records = sum(map(int, re.findall(r"records (\d+)", verified.stdout)))
            self.assertGreater(records, 10)
            self.assertEqual(len(log.stdout.splitlines()), records)
            self.assertEqual(files(journal), before)

    def test_a_new_server_loads_the_dump(self):
        for folder in self.each():
            now_ms, lines = self.lines(self.dump(folder))
            with Server(TESTD, folder, now_ms=now_ms) as server:
                claimd(os.path.dirname(CLAIMD), "load", "--url", server.url, input=self.dump(folder))
                dump = claimd(os.path.dirname(CLAIMD), "dump", "--url", server.url)
            self.assert_has(self.lines(dump)[1], lines, "dump", exact=True)

    # ------------------------------------------------------------------ a later release

    def refused(self, folder, *parts):
        """A server refuses the journal, says why, and leaves it as it is."""
        journal = os.path.join(folder, "journal")
        before = files(journal)
        ended = run("--journal", journal, "--journal-downtime", "0", "--listen", "127.0.0.1:0",
                    "--encryption-keys", os.path.join(folder, "key"))
        self.assertEqual((ended.returncode, ended.stdout), (3, ""), ended)
        for part in parts:
            self.assertIn(part, ended.stderr)
        self.assertEqual(files(journal), before)

    def change(self, segment, offset, data):
        """Changes bytes, and makes the checksums of the head and of the last frame right."""
        at, size = frames(segment)[-1]
        with open(segment, "r+b") as f:
            whole = bytearray(f.read())
            whole[offset:offset + len(data)] = data
            whole[HEAD_BYTES - 4:HEAD_BYTES] = struct.pack("<I", crc32c(whole[:HEAD_BYTES - 4]))
            crc_at = at + FRAME_HEAD_BYTES - 4
            whole[crc_at:crc_at + 4] = struct.pack("<I", crc32c(whole[at:crc_at] + whole[crc_at + 4:at + size]))
            f.seek(0)
            f.write(whole)

    def test_a_later_version_an_unknown_feature_and_an_unknown_record_are_refused(self):
        for folder in self.each():
            segment = max(glob.glob(os.path.join(folder, "journal", "*.log")))
            name = os.path.basename(segment)
            self.change(segment, 8, struct.pack("<I", 2))
            self.refused(folder, name, "newer", "version 2")
            self.change(segment, 8, struct.pack("<I", 1))
            self.change(segment, 16, struct.pack("<Q", 1 << 40))
            self.refused(folder, name, "newer")
            self.change(segment, 16, struct.pack("<Q", 0))
            self.change(segment, frames(segment)[-1][0] + FRAME_HEAD_BYTES + 4, struct.pack("<H", 9999))
            self.refused(folder, name, "record")


if __name__ == "__main__":
    unittest.main()
