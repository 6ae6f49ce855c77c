#!/usr/bin/python3
"""The lines of README.md and docs/quick-start.md can be pasted, and their responses are those that
the pages print. The options of README.md have the defaults that it names.

    readme_test.py CLAIMD
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

from certificates import Workshop  # noqa: E402
from daemon import Daemon, environment  # noqa: E402
import examples  # noqa: E402

CLAIMD = sys.argv.pop(1)
ROOT = os.path.join(HERE, "..", "..")


def page(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f.read()


def readme():
    return page("README.md")


def quick_start():
    """The blocks of bash of docs/quick-start.md. One shell runs all of them."""
    return examples.blocks(page(os.path.join("docs", "quick-start.md")), "bash")


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
            run = examples.run_bash(server, lines)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run

    def test_the_example_gives_the_responses_that_it_promises(self):
        lines, = examples.blocks(readme(), "bash")
        printed, = examples.blocks(readme(), "text")
        self.assertEqual(re.findall(r"-> (\d+)$", printed, re.M), examples.expected_statuses(lines))
        with Daemon(CLAIMD) as server:  # without WRAPPER, which has a -w of its own
            run = subprocess.run(["bash", "-c", "set -euo pipefail\n" + examples.at(server, lines)],
                                 capture_output=True, text=True, timeout=60, check=False,
                                 env=environment())
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)
        self.assertEqual(plain(run.stdout), plain(printed))

    def test_the_quick_start_gives_the_statuses_that_it_promises(self):
        blocks = quick_start()
        loop, = [block for block in blocks if "while" in block]
        expected = []
        for block in blocks:  # the loop finds one message, then none
            expected += (["201", "204", "204"] if block is loop
                         else examples.expected_statuses(block))
        run = self.run_lines("".join(blocks))
        self.assertEqual(examples.seen_statuses(run), expected, run.stdout)
        self.assertEqual(run.stdout.count("working on"), 1)

    def test_curl_is_a_group_of_packages_because_a_fresh_machine_lacks_it(self):
        listed = subprocess.run([os.path.join(ROOT, "scripts", "packages"), "list", "walk"],
                                capture_output=True, text=True, timeout=60, check=True).stdout
        for text in (readme(), page(os.path.join("docs", "quick-start.md"))):
            self.assertIn("`scripts/packages install walk`", text)
            # Every Debian has grep. All other commands are builtins of bash.
            used = set(re.findall(r"\b(curl|wget|jq|python3|grep|sed|awk)\b",
                                  "".join(examples.blocks(text, "bash"))))
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
        settings, = examples.blocks(readme(), "ini")
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


class ScriptsRun(unittest.TestCase):
    """scripts/run in a tree of its own, where cmake is a script that prints the lines of a build."""

    CMAKE = """#!/bin/bash
if [ "$1" = --preset ]; then
    mkdir -p "build/$2" && touch "build/$2/build.ninja"
elif [ -e broken ]; then
    echo "[ 50%] Building C object a.c.o"
    echo "a.c:1: error: nothing here"
    exit 2
elif [ -e "$2/claimd" ]; then
    echo "[100%] Reading the commit"
    echo "ninja: no work to do."
else
    for percent in "  3" " 24" " 25" " 30" " 74" " 98"; do
        echo "[$percent%] Building C object a.c.o"
    done
    echo "[ 99%] Linking C executable claimd"
    echo "[100%] Generating claimd.1"
    printf '#!/bin/bash\\necho "$0 $*"\\n' >"$2/claimd" && chmod +x "$2/claimd"
fi
"""

    def setUp(self):
        scratch = self.enterContext(tempfile.TemporaryDirectory())
        self.tree = os.path.realpath(scratch)
        os.mkdir(os.path.join(self.tree, "scripts"))
        for name in ("run", "build"):
            shutil.copy(os.path.join(ROOT, "scripts", name), os.path.join(self.tree, "scripts"))
        self.write("scripts/packages", "#!/bin/sh\n")
        self.write("cmake", self.CMAKE)

    def write(self, name, text):
        path = os.path.join(self.tree, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o755)

    def run_script(self, *words, stderr=subprocess.PIPE):
        return subprocess.run([os.path.join(self.tree, "scripts", "run"), *words], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=stderr, text=True, timeout=60, check=False,
                              env=environment(PATH=self.tree + ":" + os.environ["PATH"]))

    def test_it_prints_a_line_for_each_quarter_and_passes_the_arguments_on(self):
        done = self.run_script("--listen", "unix:/a b")
        self.assertEqual(done.stdout, self.tree + "/build/run/claimd --listen unix:/a b\n")
        self.assertEqual(done.stderr.splitlines(),
                         ["Installing missing packages, if any", "Building claimd (about 1 minute)",
                          "Building claimd: 25 %", "Building claimd: 50 %", "Building claimd: 75 %", "Building claimd: 100 %"])

    def test_on_a_terminal_it_updates_one_line(self):
        master, slave = os.openpty()
        self.addCleanup(os.close, master)
        done = self.run_script(stderr=slave)
        os.close(slave)
        self.assertEqual(done.returncode, 0)
        shown = os.read(master, 65536).decode().replace("\x1b[K", "").split("\n")
        self.assertEqual(shown[2].strip("\r").split("\r"),
                         ["Building claimd: %d %%" % percent for percent in (3, 24, 25, 30, 74, 98)] +
                         ["Building claimd: 99 %, linking", "Building claimd: 100 %"])
        self.assertEqual(shown[3:], [""])

    def test_without_a_change_it_prints_no_progress(self):
        self.run_script()
        self.assertEqual(self.run_script().stderr.splitlines(),
                         ["Installing missing packages, if any", "Building changed files, if any"])

    def test_the_fast_form_is_a_build_of_its_own(self):
        done = self.run_script("--fast", "--max-wait", "5")
        self.assertEqual(done.stdout, self.tree + "/build/fast/claimd --max-wait 5\n")
        self.assertFalse(os.path.exists(os.path.join(self.tree, "build", "run")))
        done = self.run_script("--max-wait", "5", "--fast")  # an option of claimd
        self.assertEqual(done.stdout, self.tree + "/build/run/claimd --max-wait 5 --fast\n")

    def test_a_failed_build_prints_its_output_and_starts_nothing(self):
        self.write("broken", "")
        done = self.run_script()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("a.c:1: error: nothing here", done.stderr.splitlines())


if __name__ == "__main__":
    unittest.main()
