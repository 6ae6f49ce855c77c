#!/usr/bin/python3
"""docs/clients.md: what it prints can be pasted.

    guide_test.py CLAIMD
"""

import os
import subprocess
import sys
import tempfile
import unittest

from client_case import HERE, ClientCase, environment
import walk


def section(title):
    """The text of docs/clients.md below a heading."""
    path = os.path.join(HERE, "..", "..", "docs", "clients.md")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    head, found, rest = text.partition("\n## %s\n" % title)
    assert found, "there is no section %s" % title
    return rest.partition("\n## ")[0]


class Guide(ClientCase):
    def setUp(self):
        super().setUp()
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name

    def run_python(self, title):
        code, = walk.blocks(section(title), "python")
        run = subprocess.run([sys.executable, "-W", "ignore", "-c", walk.at(self.server, code)],
                             env=environment(), cwd=self.scratch, capture_output=True,
                             text=True, timeout=120, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def test_the_claims_guide(self):
        lines = "".join(walk.blocks(section("The claims guide, with curl"), "bash"))
        run = walk.run_bash(self.server, lines, cwd=self.scratch, env=environment())
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(walk.statuses(run), walk.promises(lines), run.stdout)
        self.assertIn('"free":2', run.stdout.replace(" ", ""))

    def test_the_walk_with_openstack_messaging(self):
        lines, = walk.blocks(section("`openstack messaging`"), "bash")
        run = walk.run_bash(self.server, lines, cwd=self.scratch, env=environment())
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("{'job': 3}", run.stdout)
        self.assertIn("'claimed': 2, 'free': 1, 'total': 3", run.stdout)
        self.assertIn('"owner": "me"', run.stdout.replace("'", '"'))

    def test_the_snippet_of_zaqarclient(self):
        self.assertEqual(self.run_python("python-zaqarclient"), "{'job': 0}\n{'job': 1}\n")

    def test_the_snippet_of_openstacksdk(self):
        self.run_python("openstacksdk")


if __name__ == "__main__":
    unittest.main()
