#!/usr/bin/python3
"""Tests how scripts/bench reads the files of a journal and its targets, without a server.

    journal_test.py
"""

import os
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))

from bench_lib import journal, parts, sweeps, tables, targets, watch  # noqa: E402
from bench_lib.watch import Sample  # noqa: E402

MESSAGES = 1000000
DUE = sweeps.due_bytes(MESSAGES)


def sample(at, log, oldest="1.log", resident=100):
    return Sample(at, resident, log, log, oldest)


# Due at 20, gone from 40 to 41.
STORY = [sample(0, DUE - 3 * sweeps.SEGMENT, resident=90),
         sample(10, DUE - sweeps.SEGMENT // 2),
         sample(20, DUE + sweeps.SEGMENT // 2),
         sample(30, DUE + 2 * sweeps.SEGMENT, resident=104),
         sample(40, DUE + 2 * sweeps.SEGMENT),
         sample(40.1, DUE, "2.log"),
         sample(40.2, DUE, "2.log"),
         sample(40.3, DUE // 2, "3.log"),
         sample(50, DUE // 2, "3.log", resident=200)]


class Files(unittest.TestCase):
    def test_spares_and_the_lock_take_space_but_are_no_log(self):
        with tempfile.TemporaryDirectory() as path:
            for name, size in (("0000000000000007.log", 8192), ("0000000000000003.log", 4096),
                               ("spare.0", 16384), ("lock", 0)):
                with open(os.path.join(path, name), "wb") as file:
                    file.write(b"x" * size)
                    os.fsync(file.fileno())
            disk, log, oldest = watch.directory(path)
        self.assertEqual((log, oldest), (12288, "0000000000000003.log"))
        self.assertGreaterEqual(disk, 12288 + 16384)

    def test_segments_that_go_one_by_one_went_for_one_sweep(self):
        self.assertEqual(watch.drops(STORY), [(40, 40.3)])
        later = [sample(60, DUE, "3.log"), sample(61, DUE, "9.log")]
        self.assertEqual(watch.drops(STORY + later), [(40, 40.3), (60, 61)])

    def test_a_process_is_watched_until_the_block_ends(self):
        with tempfile.TemporaryDirectory() as path, watch.Watch(os.getpid(), path) as seen:
            pass
        self.assertGreater(seen.samples[0].resident, 1000000)
        self.assertIsNone(seen.samples[0].oldest)


class Sweeps(unittest.TestCase):
    def phase(self, begin, end):
        return sweeps.phase_of(begin, end, STORY, MESSAGES)

    def test_a_run_sweeps_if_any_of_it_lies_between_due_and_gone(self):
        for begin, end in ((15, 21), (22, 24), (39, 45), (19, 60)):
            with self.subTest(begin=begin):
                self.assertEqual(self.phase(begin, end), sweeps.SWEEPING)

    def test_a_run_near_the_beginning_counts_neither_way(self):
        self.assertEqual(self.phase(12, 18), sweeps.NEITHER)

    def test_runs_before_and_behind_are_without(self):
        self.assertEqual(self.phase(1, 9), sweeps.WITHOUT)
        self.assertEqual(self.phase(41, 50), sweeps.WITHOUT)

    def test_runs_in_which_others_had_the_machine_do_not_count(self):
        runs = [{"stolen_share": share} for share in (0, 0.02, 0.021, 0.5)]
        self.assertEqual(sweeps.undisturbed(runs), runs[:2])
        with self.assertRaises(RuntimeError):
            sweeps.undisturbed(runs[2:])

    def test_memory_is_that_of_the_sweep_not_of_later(self):
        self.assertAlmostEqual(sweeps.memory_of_sweep(STORY, MESSAGES), 1.04)


class Targets(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(ROOT, "tests", "bench", "results.md"), encoding="utf-8") as file:
            self.text = file.read()

    def test_missed_targets_are_in_brackets(self):
        self.assertEqual(targets.target_cell("tmpfs-rate", 0.75), "0.75")
        self.assertEqual(targets.target_cell("tmpfs-rate", 0.74), "(0.74)")
        self.assertEqual(targets.target_cell("tmpfs-cpu", 1.5), "1.50")
        self.assertEqual(targets.target_cell("tmpfs-cpu", 1.51), "(1.51)")
        self.assertEqual(targets.target_cell("recovery", 0.7, "0.70 s"), "(0.70 s)")

    def test_a_value_that_misses_by_little_does_not_look_as_if_it_met(self):
        self.assertEqual(targets.target_cell("tmpfs-rate", 0.7499), "(0.75)")

    def cells(self, table):
        """The rows of a table, and what was measured by its key."""
        rows = tables.rows("<!-- bench:a -->\n%s\n<!-- end -->" % table, "a")
        return rows, {key: row["measured"] for key, row in zip(targets.TARGETS, rows)}

    def test_rows_not_measured_again_stay(self):
        first = targets.targets_table([], {"polls": "1.10", "recovery": "0.40 s"})
        rows, _ = self.cells(first)
        _, cells = self.cells(targets.targets_table(rows, {"polls": "1.05"}))
        self.assertEqual((cells["polls"], cells["recovery"], cells["tmpfs-cpu"]),
                         ("1.05", "0.40 s", "-"))

    def test_rows_of_the_same_words_keep_their_own_figures(self):
        first = targets.targets_table([], {"beanstalkd-one-256": "(7.58)",
                                           "beanstalkd-ten-256": "48.30"})
        rows, _ = self.cells(first)
        _, cells = self.cells(targets.targets_table(rows, {"polls": "1.05"}))
        self.assertEqual((cells["beanstalkd-one-256"], cells["beanstalkd-ten-256"]),
                         ("(7.58)", "48.30"))

    def test_the_document_has_each_target_once_as_it_is_judged(self):
        self.assertEqual([(row["what"], row["target"])
                          for row in tables.rows(self.text, "journal-targets")],
                         [(what, said) for what, said, _, _ in targets.TARGETS.values()])

    def test_the_bound_is_the_one_that_is_written(self):
        factor = {"ms": 1000, "us": 1, "s": 1}
        for key, (_, said, at_least, bound) in targets.TARGETS.items():
            words = said.split()
            with self.subTest(target=key):
                self.assertEqual(words[:2], ["at", "least" if at_least else "most"])
                self.assertEqual(float(words[2]) * factor[(words + ["s"])[3]], bound)

    def test_the_document_has_a_place_for_each_part(self):
        for part in journal.ALL:
            with self.subTest(part=part):
                self.assertIn("<!-- bench:%s" % part, self.text)
                self.assertIs(parts.ALL[part], journal.ALL[part])


if __name__ == "__main__":
    unittest.main()
