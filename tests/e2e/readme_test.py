#!/usr/bin/python3
"""The lines of README.md and docs/quick-start.md can be pasted, and their responses are those that
the pages print. The options of README.md have the defaults that it names.

    readme_test.py CLAIMD
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

from certificates import Workshop  # noqa: E402
from daemon import Daemon, environment  # noqa: E402
import walk  # noqa: E402

CLAIMD = sys.argv.pop(1)
ROOT = os.path.join(HERE, "..", "..")


def page(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f.read()


def readme():
    return page("README.md")


def quick_start():
    """The blocks of bash of docs/quick-start.md. One shell runs all of them."""
    return walk.blocks(page(os.path.join("docs", "quick-start.md")), "bash")


def table_rows(text):
    """{first cell: second cell} of the table rows that begin with a name in back quotes."""
    return dict(re.findall(r"^\| `([a-z0-9_]+)` \| (.*?) \|", text, re.M))


def plain(output):
    """The text without white space, with a word in place of each id and each age."""
    output = re.sub(r"\b[a-f][0-9a-f]{23}\b", "ID", re.sub(r"\s", "", output))
    return re.sub(r'"age":\d+', '"age":AGE', output)


class Readme(unittest.TestCase):
    def run_lines(self, lines):
        with Daemon(CLAIMD) as server:
            run = walk.run_bash(server, lines)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run

    def test_the_example_gives_the_responses_that_it_promises(self):
        lines, = walk.blocks(readme(), "bash")
        printed, = walk.blocks(readme(), "text")
        self.assertEqual(re.findall(r"-> (\d+)$", printed, re.M), walk.promises(lines))
        with Daemon(CLAIMD) as server:  # without the wrapper of walk, which has a -w of its own
            run = subprocess.run(["bash", "-c", "set -euo pipefail\n" + walk.at(server, lines)],
                                 capture_output=True, text=True, timeout=60, check=False,
                                 env=environment())
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)
        self.assertEqual(plain(run.stdout), plain(printed))

    def test_the_quick_start_gives_the_statuses_that_it_promises(self):
        blocks = quick_start()
        loop, = [block for block in blocks if "while" in block]
        expected = []
        for block in blocks:  # the loop finds one message, then none
            expected += ["201", "204", "204"] if block is loop else walk.promises(block)
        run = self.run_lines("".join(blocks))
        self.assertEqual(walk.statuses(run), expected, run.stdout)
        self.assertIn('"messages":[]', run.stdout.replace(" ", ""))  # a listing hides its own
        self.assertEqual(run.stdout.count("working on"), 1)

    def test_curl_is_a_group_of_packages_because_a_fresh_machine_lacks_it(self):
        listed = subprocess.run([os.path.join(ROOT, "scripts", "packages"), "list", "walk"],
                                capture_output=True, text=True, timeout=60, check=True).stdout
        for text in (readme(), page(os.path.join("docs", "quick-start.md"))):
            self.assertIn("`scripts/packages install walk`", text)
            # Every Debian has grep. All other commands are builtins of bash.
            used = set(re.findall(r"\b(curl|wget|jq|python3|grep|sed|awk)\b",
                                  "".join(walk.blocks(text, "bash"))))
            self.assertEqual(used - {"grep"}, set(listed.split()))

    def test_the_ten_options_exist_and_have_the_defaults_of_the_table(self):
        shown = subprocess.run([CLAIMD, "--print-config"], capture_output=True, text=True,
                               timeout=60, check=True, env=environment()).stdout
        options = dict(re.findall(r"^([a-z0-9_]+) *= *(.*?) *$", shown, re.M))
        rows = table_rows(readme())
        self.assertEqual(len(rows), 10)
        for name, default in rows.items():
            with self.subTest(option=name):
                self.assertEqual(default, "`%s`" % options.get(name))

    def test_claimd_accepts_the_settings_for_a_network(self):
        settings, = walk.blocks(readme(), "ini")
        self.assertIn("tls:", settings)
        with Workshop() as shop, tempfile.TemporaryDirectory() as folder:
            pair = shop.signed("server")
            for name, source in (("chain.pem", pair.certificate), ("key.pem", pair.key)):
                os.rename(source, os.path.join(folder, name))
            path = os.path.join(folder, "claimd.conf")
            with open(path, "w", encoding="utf-8") as f:
                f.write(settings.replace("/etc/claimd", folder))
                f.write("tokens = %s\n" % os.path.join(folder, "tokens"))
            self.claimd("token", "new", "billing", "--role", "worker", "--tokens",
                        os.path.join(folder, "tokens"))
            self.claimd("--config", path, "--check-config")

    def claimd(self, *words):
        done = subprocess.run([CLAIMD, *words], capture_output=True, text=True, timeout=60,
                              check=False, env=environment())
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
