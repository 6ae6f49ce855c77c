#!/usr/bin/python3
"""What is installed is complete: the unit starts the program, and the documents' links lead on.

    install_test.py CMAKE BUILD-FOLDER
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

CMAKE, BUILD = sys.argv[1:3]
del sys.argv[1:3]


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.root = scratch.name
        subprocess.run([CMAKE, "--install", BUILD], env=dict(os.environ, DESTDIR=cls.root),
                       check=True, capture_output=True, timeout=120)
        cls.files = [os.path.join(folder, name) for folder, _, names in os.walk(cls.root)
                     for name in names]

    def find(self, end):
        """The one installed file whose path ends so."""
        found, = [path for path in self.files if path.endswith(end)]
        return found

    def test_the_unit_stands_where_systemd_looks_and_needs_nothing_else(self):
        with open(self.find("/lib/systemd/system/claimd.service"), encoding="utf-8") as f:
            unit = f.read()
        program, = re.findall(r"^ExecStart=(\S+)$", unit, re.M)
        shown = subprocess.run([self.root + program, "--version"], capture_output=True,
                               text=True, timeout=60, check=True)
        self.assertIn("claimd ", shown.stdout)
        # A file behind "-" need not be there.
        self.assertEqual(re.findall(r"^EnvironmentFile=(?!-)", unit, re.M), [])

    def test_every_link_of_the_documents_leads_to_a_file_or_to_the_sources(self):
        pages = [path for path in self.files if path.endswith(".md")]
        self.assertGreater(len(pages), 8)
        for page in pages:
            with open(page, encoding="utf-8") as f:
                links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", f.read())
            for link in links:
                with self.subTest(page=os.path.basename(page), link=link):
                    self.assertTrue(os.path.exists(os.path.join(os.path.dirname(page), link)))

    def test_the_manual_is_there(self):
        self.find("/man1/claimd.1")


if __name__ == "__main__":
    unittest.main()
