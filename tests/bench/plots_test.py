#!/usr/bin/python3
"""The plots of docs/performance.md show the figures of its tables and of results.md.

    plots_test.py
"""

import os
import re
import sys
import unittest
import xml.etree.ElementTree

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))

from bench_lib import parts, plots, tables  # noqa: E402


def document(name):
    with open(os.path.join(ROOT, "docs", name), encoding="utf-8") as f:
        return f.read()


def texts(svg):
    """Every text of a plot, in its order."""
    root = xml.etree.ElementTree.fromstring(svg)
    return [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]


class Plots(unittest.TestCase):
    def setUp(self):
        self.text = document("performance.md") + document(
            os.path.join("..", "tests", "bench", "results.md"))

    def test_the_plots_are_those_of_the_tables(self):
        drawn = plots.of_document(self.text)
        self.assertEqual(set(drawn), set(re.findall(r"\]\((performance-\w+\.svg)\)", self.text)))
        for name, svg in drawn.items():
            with self.subTest(plot=name):
                self.assertEqual(document(name), svg, "draw it again: scripts/bench --plots")

    def test_a_server_has_one_name_and_one_rate_in_table_and_plot(self):
        for table, plot in (("cycle-one", "performance-one.svg"),
                            ("cycle-ten", "performance-ten.svg")):
            shown = texts(document(plot))[2:]
            self.assertEqual(shown, [cell for row in tables.rows(self.text, table)
                                     for cell in (row["server"], row["messages/s"])])

    def test_each_latency_of_a_claim_is_that_of_the_table(self):
        shown = texts(document("performance-latency.svg"))
        claims = [row for row in tables.rows(self.text, "open") if row["request"] == "claim"]
        self.assertEqual([text for text in shown if text in parts.NAMES.values()],
                         [row["server"] for row in claims])
        for step in ("p50", "p99", "p99.9", "max"):
            self.assertEqual([text for text in shown if text.startswith(step + " ")],
                             ["%s %s" % (step, row[step]) for row in claims])

    def test_a_cell_is_read_as_it_was_written(self):
        for cell, number in (("43 300", 43300), ("8.41", 8.41), ("27.1 us", 27.1),
                             ("2.05 ms", 2050), ("1 290", 1290), ("441", 441)):
            self.assertEqual(tables.value(cell), number)
        self.assertEqual(tables.value(tables.latency(12345)), 12300)


if __name__ == "__main__":
    unittest.main()
