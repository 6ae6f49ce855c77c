#!/usr/bin/python3
"""What README.md says can be pasted: the curl walk works, the table of options is true, and so are
the settings for a network.

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


def readme():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        return f.read()


def table_rows(text):
    """{first cell: second cell} of the table rows that begin with a name in back quotes."""
    return dict(re.findall(r"^\| `([a-z0-9_]+)` \| (.*?) \|", text, re.M))


class Readme(unittest.TestCase):
    def test_the_walk_gives_the_statuses_it_promises(self):
        lines, = walk.blocks(readme(), "bash")
        with Daemon(CLAIMD) as server:
            run = walk.run_bash(server, lines)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(walk.statuses(run), walk.promises(lines), run.stdout)
        self.assertIn('"messages":[]', run.stdout.replace(" ", ""))  # what a listing hides

    def test_what_the_walk_needs_and_a_fresh_machine_lacks_is_a_group_of_packages(self):
        text = readme()
        self.assertIn("`scripts/packages install walk`", text)
        listed = subprocess.run([os.path.join(ROOT, "scripts", "packages"), "list", "walk"],
                                capture_output=True, text=True, timeout=60, check=True).stdout
        # grep is in every Debian; the rest of the walk is bash.
        used = set(re.findall(r"\b(curl|wget|jq|python3|grep|sed|awk)\b",
                              "".join(walk.blocks(text, "bash"))))
        self.assertEqual(used - {"grep"}, set(listed.split()))

    def test_the_table_has_every_option_with_its_default(self):
        shown = subprocess.run([CLAIMD, "--print-config"], capture_output=True, text=True,
                               timeout=60, check=True, env=environment()).stdout
        options = dict(re.findall(r"^([a-z0-9_]+) *= *(.*?) *$", shown, re.M))
        self.assertGreater(len(options), 20)
        rows = table_rows(readme())
        self.assertEqual(sorted(rows), sorted(options))
        for name, default in options.items():
            with self.subTest(option=name):
                self.assertEqual(rows[name].replace("`", ""), default)

    def test_the_settings_for_a_network_are_taken(self):
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
