#!/usr/bin/python3
"""All transcripts are laid out, and the check would see it if one were not."""

import contextlib
import io
import json
import os
import tempfile
import unittest

import layout

DOCUMENT = {"title": "ž", "requires": ["b", "a"], "steps": [
    {"name": "\"one\"\n", "request": {"z": [1, 1.5, -0.0, None, True], "a": {}}},
    {"name": "two"}]}
LAID_OUT = """{
 "title": "ž",
 "requires": ["b", "a"],
 "steps": [
  {"name": "\\"one\\"\\n", "request": {"z": [1, 1.5, -0.0, null, true], "a": {}}},
  {"name": "two"}
 ]
}
"""


def run(*arguments):
    """Exit status and output of the program."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        return layout.main(list(arguments)), output.getvalue()


class Layout(unittest.TestCase):
    def test_all_transcripts_are_laid_out(self):
        self.assertEqual(run("--check"), (0, ""))

    def test_each_step_has_a_line_and_nothing_else_changes(self):
        for indent in (None, 1, 4):
            text = json.dumps(DOCUMENT, indent=indent, ensure_ascii=False)
            self.assertEqual(layout.lay_out(text), LAID_OUT)
        self.assertEqual(layout.lay_out(LAID_OUT), LAID_OUT)
        self.assertEqual(json.dumps(json.loads(LAID_OUT)), json.dumps(DOCUMENT))

    def test_the_check_names_what_is_not_laid_out_and_leaves_it_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.json")
            for text in (json.dumps(DOCUMENT, indent=1), LAID_OUT[:-1],
                         LAID_OUT.replace("\n", "\r\n"), LAID_OUT.replace(": ", ":")):
                self.write(path, text)
                status, output = run("--check", path)
                self.assertEqual(status, 1)
                self.assertIn(path, output)
                self.assertEqual(self.read(path), text)
                self.assertEqual(run(path), (0, ""))
                self.assertEqual(self.read(path), LAID_OUT)
                self.assertEqual(run("--check", path), (0, ""))

    @staticmethod
    def write(path, text):
        with open(path, "w", encoding="utf-8", newline="") as f:
            f.write(text)

    @staticmethod
    def read(path):
        with open(path, encoding="utf-8", newline="") as f:
            return f.read()


if __name__ == "__main__":
    unittest.main()
