#!/usr/bin/python3
"""docs/changelog.md has the form that it says it has, and names what the program has.

    changelog_test.py CLAIMD
"""

import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

from daemon import PATIENCE_S, environment  # noqa: E402

CLAIMD = sys.argv.pop(1)
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
RELEASE = re.compile(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)")


def said(*words):
    return subprocess.run([CLAIMD, *words], capture_output=True, text=True, check=True,
                          timeout=PATIENCE_S, env=environment()).stdout


def page():
    path = os.path.join(HERE, "..", "..", "docs", "changelog.md")
    with open(path, encoding="utf-8") as f:
        return re.sub(r"<!--.*?-->", "", f.read(), flags=re.S)


def sections(text, level):
    """(title, text below it) of the headings of one level."""
    parts = re.split(r"^%s (.*)\n" % ("#" * level), text, flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


class Changelog(unittest.TestCase):
    def test_what_is_not_released_stands_above_releases_in_their_order(self):
        titles = [title for title, _ in sections(page(), 2)]
        self.assertEqual(titles[0], "[Unreleased]")
        releases = [RELEASE.fullmatch(title) for title in titles[1:]]
        self.assertNotIn(None, releases)
        versions = [tuple(map(int, release.groups()[:3])) for release in releases]
        days = [release[4] for release in releases]
        self.assertEqual(versions, sorted(versions, reverse=True))
        self.assertEqual(days, sorted(days, reverse=True))

    def test_no_release_is_newer_than_the_program(self):
        own = tuple(map(int, re.search(r"(\d+)\.(\d+)\.(\d+)", said("--version")).groups()))
        for release in RELEASE.finditer(page()):
            self.assertLessEqual(tuple(map(int, release.groups()[:3])), own)

    def test_kinds_of_change_stand_in_their_order_and_none_is_empty(self):
        for version, text in sections(page(), 2):
            kinds = [kind for kind, _ in sections(text, 3)]
            with self.subTest(version=version):
                self.assertTrue(kinds)
                self.assertEqual(kinds, [kind for kind in KINDS if kind in kinds])
                for kind, changes in sections(text, 3):
                    self.assertRegex(changes, r"(?m)^- ", kind)

    def test_options_that_are_named_exist(self):
        there = set(re.findall(r"^([a-z0-9_]+) *=", said("--print-config"), re.M))
        newest = sections(page(), 2)[0][1]
        named = set(re.findall(r"`([a-z]+(?:_[a-z0-9]+)+)`", newest)) - {"message_volume", "claim_ids"}
        named |= set(re.findall(r"`([a-z0-9_]+) = ", newest))
        self.assertGreater(len(named), 10)
        self.assertEqual(named - there, set())

    def test_commands_that_are_named_exist(self):
        named = set(re.findall(r"`claimd ([a-z]+)", page()))
        self.assertGreater(len(named), 3)
        for command, is_one in [(name, True) for name in named] + [("burn", False)]:
            run = subprocess.run([CLAIMD, command, "--help"], capture_output=True, text=True,
                                 timeout=PATIENCE_S, check=False, env=environment())
            self.assertIs("%s is not an option" % command not in run.stderr, is_one, run.stderr)


if __name__ == "__main__":
    unittest.main()
