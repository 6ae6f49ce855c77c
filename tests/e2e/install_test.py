#!/usr/bin/python3
"""What is installed is complete: the unit starts the program, that starts the load generator,
and the documents' links lead on.

    install_test.py CMAKE BUILD-FOLDER
"""

import os
import re
import shutil
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
        for page in ("man1/claimd.1", "man1/claimd-token.1", "man5/claimd.conf.5"):
            self.find("/" + page)
        self.assertEqual([path for path in self.files if path.endswith(".in")], [])

    def scratch(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name

    def bench(self, claimd, *arguments, path="/nowhere"):
        return subprocess.run([claimd, "bench", *arguments], capture_output=True, text=True,
                              timeout=60, env=dict(os.environ, PATH=path))

    def test_the_load_generator_beside_the_program_is_started_with_its_arguments(self):
        alone = subprocess.run([self.find("/bin/claimd-bench"), "--help"], capture_output=True,
                               text=True, timeout=60, check=True)
        self.assertTrue(alone.stdout.startswith("usage: claimd-bench [options]"), alone.stdout)
        link = os.path.join(self.scratch(), "claimd")
        os.symlink(self.find("/bin/claimd"), link)
        for claimd in (self.find("/bin/claimd"), link):
            with self.subTest(claimd=claimd):
                shown = self.bench(claimd, "--help")
                self.assertEqual((shown.returncode, shown.stdout, shown.stderr),
                                 (0, alone.stdout, ""))
                wrong = self.bench(claimd, "--threads", "2", "--batch", "0")
                self.assertEqual((wrong.returncode, wrong.stdout, wrong.stderr),
                                 (2, "", "claimd-bench: bad value for: --batch\n"))

    def test_a_load_generator_elsewhere_is_found_in_the_path(self):
        claimd = shutil.copy(self.find("/bin/claimd"), self.scratch())
        shown = self.bench(claimd, "--help",
                           path="/nowhere:" + os.path.dirname(self.find("/bin/claimd-bench")))
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertIn("usage: claimd-bench", shown.stdout)

    def test_without_a_load_generator_it_says_what_is_missing(self):
        folder = self.scratch()
        claimd = shutil.copy(self.find("/bin/claimd"), folder)
        missing = self.bench(claimd, "--help")
        self.assertEqual((missing.returncode, missing.stdout, missing.stderr),
                         (2, "", "claimd: claimd-bench is missing: it is neither in %s/ nor in "
                          "PATH\n" % os.path.realpath(folder)))
        beside = os.path.join(os.path.realpath(folder), "claimd-bench")
        os.mkdir(beside)
        unfit = self.bench(claimd, "--help")
        self.assertEqual((unfit.returncode, unfit.stdout, unfit.stderr),
                         (2, "", "claimd: cannot run %s: Permission denied\n" % beside))

    def test_the_program_does_not_carry_the_load_generator(self):
        with open(self.find("/bin/claimd-bench"), "rb") as f:
            generator = f.read()
        with open(self.find("/bin/claimd"), "rb") as f:
            claimd = f.read()
        for said in (b"Drives a queue server and measures it.", b"X-Project-ID: %s",
                     b"keep-alive connections over all threads (16)"):
            with self.subTest(text=said):
                self.assertIn(said, generator)
                self.assertNotIn(said, claimd)


if __name__ == "__main__":
    unittest.main()
