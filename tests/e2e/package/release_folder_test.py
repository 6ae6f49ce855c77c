#!/usr/bin/python3
"""scripts/release removes its folder before it builds: only an empty one, or one that it has made."""

import os
import re
import subprocess
import tempfile
import unittest

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../.."))
SUM = "0" * 64
# These take the place of programs. After it has looked at the folder, the script finds changes in the tree, and ends.
STANDINS = {"id": "echo 0", "git": "echo changes"}


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="claimd-release-"))
        self.write("out/")
        for name, text in STANDINS.items():
            self.write("bin/" + name, "#!/bin/sh\n%s\n" % text)
            os.chmod(os.path.join(self.folder, "bin", name), 0o755)

    def write(self, name, text=""):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not name.endswith("/"):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)

    def allows(self, out="out"):
        with open(TOP + "/CMakeLists.txt", encoding="utf-8") as f:
            version = re.search(r"(?m)^project\(claimd VERSION ([\d.]+)", f.read())[1]
        done = subprocess.run([TOP + "/scripts/release", version, out], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, "PATH": self.folder + "/bin:" + os.environ["PATH"]}, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, "the tree has changes|has files that are not of a release")
        return "the tree has changes" in done.stderr

    def test_an_empty_or_missing_folder_is_allowed(self):
        self.assertTrue(self.allows())
        self.assertTrue(self.allows("missing"))

    def test_a_release_is_replaced(self):
        self.write("out/SHA256SUMS", "%s  claimd-1.0.0-image.tar\n%s  claimd-1.0.0.cdx.json\n" % (SUM, SUM))
        self.assertTrue(self.allows())

    def test_a_failed_release_is_replaced(self):
        self.write("out/log", "log of scripts/release 1.0.0\nmore\n")
        self.assertTrue(self.allows())

    def test_a_folder_with_other_files_is_refused(self):
        for name, text in (("log/syslog", ""), ("log", "other\n"), ("SHA256SUMS", "%s  debian.iso\n" % SUM),
                           ("file", "")):
            with self.subTest(name=name, text=text):
                self.setUp()
                self.write("out/" + name, text)
                self.assertFalse(self.allows())
                self.assertFalse(self.allows(os.path.join(self.folder, "out")))

    def test_a_file_is_refused(self):
        self.write("file")
        self.assertFalse(self.allows("file"))


if __name__ == "__main__":
    unittest.main()
