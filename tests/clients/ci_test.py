#!/usr/bin/python3
"""docs/ci.md: its recipes run as they are printed, and the fixture of pytest finds the bugs of a worker.

    ci_test.py CLAIMD
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import yaml

from client_case import CLAIMD, HERE, environment
from daemon import PATIENCE_S
import examples

GO_CACHE = os.path.join(os.path.dirname(os.path.realpath(CLAIMD)), "go-cache")
# The first line of a file has its name.
NAMED = re.compile(r"(?:#|//|<\?php //) (\S+\.[a-z]+)$", re.M)


# Packages of Debian 12 that a reader may not want to install.
HAVE = {"phpunit": shutil.which("phpunit"), "bats": shutil.which("bats"), "node": shutil.which("node"),
        "pytest": importlib.util.find_spec("pytest"), "xdist": importlib.util.find_spec("xdist")}


def needs(what):
    return unittest.skipUnless(HAVE[what], what + " is not installed (scripts/packages install "
                               "clients)")


def page():
    with open(os.path.join(HERE, "..", "..", "docs", "ci.md"), encoding="utf-8") as f:
        return f.read()


def section(title):
    """A recipe: the text below its heading, up to the next one outside of code."""
    head, found, rest = page().partition("\n### %s\n" % title)
    assert found, "there is no section %s" % title
    return re.match(r"(?:```.*?^```$|(?!^#).)*", rest, re.M | re.S)[0]


def files(text):
    """{name: content} of the files that a text prints."""
    found = {}
    for content in re.findall(r"^```\w+\n(.*?)^```", text, re.M | re.S):
        name = NAMED.match(content)
        if name:
            found[name[1]] = content
    return found


CLIENTS = os.path.join(HERE, "..", "..", "src", "clients")
# As installed by pip and npm.
METADATA = {"python/claimd-0.dist-info/METADATA": "Metadata-Version: 2.1\nName: claimd\nVersion: 0\n",
            "python/claimd-0.dist-info/entry_points.txt": "[pytest11]\nclaimd = claimd.pytest_plugin\n",
            "node_modules/claimd/package.json": json.dumps({
                "name": "claimd", "version": "0.0.0",
                "exports": {".": "./index.js", "./test": "./test.js"}})}

# A test that leaves a claim and a fault rule behind, and one that must not see them.
LEFTOVERS = """
def test_first(claimd):
    claimd.ask("POST", "/v2/queues/jobs/messages", {"messages": [{"body": 1, "ttl": 300}]})
    claimd.ask("POST", "/v2/queues/jobs/claims", {"ttl": 60, "grace": 60})
    claimd.ask("PUT", "/claimd/faults", {"faults": [
        {"match": {"action": "messages:create"}, "fault": "status=503"}]})
    assert False


def test_second(claimd):
    claimd.ask("POST", "/v2/queues/jobs/messages", {"messages": [{"body": 1, "ttl": 300}]})
    assert claimd.advance(60) == []
"""

# Tests without a fixture, in one project. The first one forgets a claim. The second one hides that: it
# moves the clock by a minute, gets the message, and finishes it.
HIDING = """
import json
import os
import urllib.request


def ask(method, path, document=None):
    request = urllib.request.Request(os.environ["CLAIMD_URL"] + path, json.dumps(document).encode(), {
        "Client-ID": "3381af92-2b9e-11e3-b191-71861300734c", "X-Project-ID": "demo",
        "Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request) as response:
        text = response.read()
    return json.loads(text) if text else None


def claim():
    return ask("POST", "/v2/queues/jobs/claims", {"ttl": 60, "grace": 60})["messages"]


def test_first():
    ask("POST", "/v2/queues/jobs/messages", {"messages": [{"body": 1, "ttl": 300}]})
    assert len(claim()) == 1


def test_second():
    ask("POST", "/v2/queues/jobs/messages", {"messages": [{"body": 2, "ttl": 300}]})
    assert len(claim()) == 1
    ask("POST", "/claimd/clock/advance", {"seconds": 60MAY})
    for message in claim():
        ask("DELETE", message["href"])
    ask("GET", "/claimd/expect?queue=jobs&messages=0")
"""

# A test for each recipe that leaves a claim, and hides that by a move of the clock.
LEAKS = {
    "pytest": ("test_leak.py", """
def test_leak(claimd):
    claimd.queue("jobs").post(1)
    claimd.queue("jobs").claim(lease=60)
    claimd.ask("POST", "/claimd/clock/advance", {"seconds": 60})
"""),
    "node:test": ("leak.test.js", """
const test = require("node:test");
const { claimd } = require("claimd/test");

test("leak", async (t) => {
  const server = await claimd(t);
  await server.queue("jobs").post([1]);
  await server.queue("jobs").claim({ lease: 60 });
  await server.ask("POST", "/claimd/clock/advance", { seconds: 60 });
});
"""),
    "Go": ("leak_test.go", """
package worker

import "testing"

func TestALeak(t *testing.T) {
	begin(t)
	post(1)
	claim()
	claimd(t, "POST", "/claimd/clock/advance", `{"seconds": 60}`)
}
"""),
}


class Case(unittest.TestCase):
    def setUp(self):
        self.scratch = self.enterContext(tempfile.TemporaryDirectory())
        # As a user would call it; beside other programs, not in front of them.
        os.symlink(os.path.realpath(CLAIMD), os.path.join(self.scratch, "claimd"))
        env = environment(PATH=os.environ["PATH"] + os.pathsep + self.scratch,
                          PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=os.path.join(self.scratch, "python"),
                          GO111MODULE="off",
                          GOPATH="/usr/share/gocode", GOFLAGS="", GOCACHE=GO_CACHE,
                          CGO_ENABLED="0", HOME=self.scratch)
        self.env = {k: v for k, v in env.items() if not k.startswith("CLAIMD_")}
        shutil.copytree(os.path.join(CLIENTS, "python"), os.path.join(self.scratch, "python"))
        shutil.copytree(os.path.join(CLIENTS, "node"), os.path.join(self.scratch, "node_modules/claimd"))
        self.write(METADATA)

    def write(self, contents):
        for name, content in contents.items():
            path = os.path.join(self.scratch, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(content)

    def run_bash(self, lines):
        return subprocess.run(["bash", "-c", lines], env=self.env, cwd=self.scratch,
                              capture_output=True, text=True, timeout=10 * PATIENCE_S,
                              check=False)


class Examples(Case):
    def test_every_line_in_a_shell_with_a_server(self):
        lines = "".join(examples.blocks(page().partition("\n## Recipes\n")[0], "bash"))
        self.write({"lines.sh": examples.WRAPPER + lines, "curls": ""})
        # A file of their own: the log of claimd may split a line that curl writes in two parts.
        run = self.run_bash("claimd run -- bash -c 'exec bash lines.sh 2> curls'")
        with open(os.path.join(self.scratch, "curls"), encoding="utf-8") as f:
            run.stderr += f.read()
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(examples.seen_statuses(run), examples.expected_statuses(lines), run.stdout)


class Words(unittest.TestCase):
    def test_every_option_that_is_named_exists(self):
        known = "".join(subprocess.run([CLAIMD, *words], capture_output=True, text=True,
                                       timeout=PATIENCE_S, check=True).stdout
                        for words in (("--help", "all"), ("run", "--help")))
        named = set(re.findall(r"(?<!\S)--[a-z][a-z-]+", " ".join(
            re.findall(r"claimd run (.*?)--(?= |$)", page(), re.M))))
        named |= set(re.findall(r"`(--(?:ci|instances|log|fail|profile|journal)[a-z-]*)", page()))
        self.assertGreater(len(named), 4)
        for option in named:
            self.assertRegex(known, r"(?m)^ +%s\b" % option)

    def test_workflows_are_well_formed(self):
        """e2e/package/recipes_test.py runs them, by hand."""
        documents = [yaml.safe_load(block) for block in examples.blocks(page(), "yaml")]
        workflow, = [document for document in documents if "jobs" in document]
        self.assertEqual(set(workflow["jobs"]), {"python", "node"})
        for job in workflow["jobs"].values():
            self.assertIn("claimd run --fail-on-leak ",
                          "".join(step.get("run", "") for step in job["steps"]))


class Recipes(Case):
    def assert_works(self, lines, said):
        run = self.run_bash("set -eu\n" + lines)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertRegex(run.stdout, "(?m)" + said, run.stderr)

    def assert_recipe(self, title, said):
        """A section's files, then its lines: they succeed, and say this."""
        text = section(title)
        self.write(files(text))
        lines, = examples.blocks(text, "bash")
        self.assert_works(lines, said)

    @needs("pytest")
    def test_pytest(self):
        self.assert_recipe("pytest", "^2 passed|=+ 2 passed")

    @needs("node")
    def test_node(self):
        self.assert_recipe("node:test", r"^\S+ pass 1$")

    def assert_leak_fails(self, title, said, result):
        """A test that leaks fails, and no other one of the recipe does."""
        text = section(title)
        self.write({**files(text), LEAKS[title][0]: LEAKS[title][1]})
        run = self.run_bash("set -eu\n" + examples.blocks(text, "bash")[0])
        self.assertNotEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertRegex(run.stdout + run.stderr, said)
        self.assertRegex(run.stdout, "(?m)" + result)
        self.assertNotRegex(run.stdout, "(?i)fail: .*late")

    @needs("pytest")
    def test_a_leak_fails_its_test_in_pytest(self):
        self.assert_leak_fails("pytest", r"leaked: claim \w+ of 1 messages in queue jobs",
                               r"^ERROR test_leak\.py::test_leak(?:.|\n)*=+ 3 passed.* 1 error")

    @needs("node")
    def test_a_leak_fails_its_test_in_node(self):
        self.assert_leak_fails("node:test", r"leaked: claim \w+ of 1 messages in queue jobs",
                               r"^\S+ pass 1\n\S+ fail 1$")

    def test_a_leak_fails_its_test_in_go(self):
        self.assert_leak_fails("Go", r"leaked: \[map\[.*ended_by:time.*kind:claim",
                               r"--- FAIL: TestALeak\b(?:.|\n)*^FAIL")

    @needs("bats")
    def test_a_leak_fails_its_test_in_bats(self):
        text = section("bats")
        script = files(text)["worker.bats"]
        leak = '@test "a leak" {\n    take\n    ask POST /claimd/clock/advance \'{"seconds": 60}\'\n}\n\n'
        self.write({"worker.bats": script.replace("@test", leak + "@test", 1)})
        run = self.run_bash(examples.blocks(text, "bash")[0])
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertRegex(run.stdout, r"(?m)^not ok 1 a leak\n(?:#.*\n)*ok 2 .*\nok 3 ")

    @needs("phpunit")
    def test_a_leak_fails_its_test_in_phpunit(self):
        text = section("PHPUnit")
        written = files(text)
        leak = """
    public function testALeak()
    {
        $this->claimd->queues('PUT', '/queues/jobs');
        $this->claimd->queues('POST', '/queues/jobs/messages', [['ttl' => 3600, 'body' => 1]]);
        $this->claimd->queues('POST', '/queues/jobs/claims', ['ttl' => 60, 'grace' => 60]);
        $this->claimd->control('POST', 'clock/advance', ['seconds' => 60]);
    }

    public function testALateWorker"""
        written["WorkerTest.php"] = written["WorkerTest.php"].replace("\n    public function testALateWorker", leak)
        self.write(written)
        run = self.run_bash(examples.blocks(text, "bash")[0])
        self.assertNotEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertRegex(run.stdout, r"(?m)^1\) WorkerTest::testALeak$")
        self.assertIn("Tests: 2, ", run.stdout)
        self.assertIn("Failures: 1.", run.stdout)

    @needs("pytest")
    def test_a_run_finds_a_leak_that_a_later_test_hides(self):
        self.write({"test_hiding.py": HIDING.replace("MAY", "")})
        run = self.run_bash("claimd run --fail-on-leak -- %s -m pytest -q" % sys.executable)
        self.assertIn("2 passed", run.stdout, run.stderr)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertEqual(len(re.findall(r"claimd: leaked: claim \w+ of 1 message in queue jobs "
                                        r"\(project demo\), .*, expired at ", run.stderr)), 2, run.stderr)
        self.write({"test_hiding.py": HIDING.replace("MAY", ', "may_expire": True')})
        run = self.run_bash("claimd run --fail-on-leak -- %s -m pytest -q" % sys.executable)
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)

    @needs("pytest")
    def test_a_failed_test_does_not_fail_the_next(self):
        self.write({"test_jobs.py": LEFTOVERS})
        run = self.run_bash("claimd run -- %s -m pytest" % sys.executable)
        self.assertRegex(run.stdout, "(?m)^=+ 1 failed, 1 passed", run.stderr)

    def test_go(self):
        self.assert_recipe("Go", "^ok ")

    @needs("phpunit")
    def test_phpunit(self):
        self.assert_recipe("PHPUnit", r"^OK \(1 test")

    @needs("bats")
    def test_bats(self):
        self.assert_recipe("bats", "^ok 2 ")

    @needs("xdist")
    def test_pytest_in_parallel(self):
        self.write(files(section("pytest")))
        self.assert_works(examples.blocks(section("Parallel suites"), "bash")[0], "=+ 2 passed")

    @needs("bats")
    def test_others_in_parallel(self):
        self.write(files(section("bats")))
        self.assert_works(examples.blocks(section("Parallel suites"), "bash")[1],
                          "^ok 2 (?:.|\n)*^ok 2 ")


@needs("pytest")
class Worker(Case):
    """The suite of ci/worker.py, and three bugs that are planted there."""

    def setUp(self):
        super().setUp()
        for name in ("worker.py", "test_worker.py"):
            shutil.copy(os.path.join(HERE, "ci", name), self.scratch)

    def plant(self, right, wrong):
        path = os.path.join(self.scratch, "worker.py")
        with open(path, encoding="utf-8") as f:
            code = f.read()
        self.assertEqual(code.count(right), 1)
        self.write({"worker.py": code.replace(right, wrong)})

    def run_suite(self, *selected):
        return self.run_bash("claimd run --fail-on-leak -- %s -m pytest -q -rf %s" % (
            sys.executable, " ".join(selected)))

    def failed(self, run):
        return set(re.findall(r"^FAILED test_worker\.py::(\w+)", run.stdout, re.M))

    def test_it_passes_within_seconds(self):
        began = time.monotonic()
        run = self.run_suite()
        took = time.monotonic() - began
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        print("the suite of the worker: %s; %.2f s with its server"
              % (run.stdout.strip().split("\n")[-1], took), file=sys.stderr)

    def test_a_worker_that_deletes_without_its_claim_is_found(self):
        self.plant("insist(message.delete)",
                   "insist(lambda: self.queue.delete_messages(message.id))")
        run = self.run_suite()
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertIn("test_a_late_worker_takes_back_what_it_did", self.failed(run))

    def test_a_worker_that_forgets_to_renew_is_found(self):
        self.plant("insist(lambda: claim.update(ttl=TTL, grace=GRACE))", "pass")
        run = self.run_suite()
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertIn("test_a_long_job_is_renewed", self.failed(run))

    def test_a_worker_that_forgets_to_release_is_found(self):
        self.plant("insist(claim.delete)", "pass")
        run = self.run_suite()
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertIn("test_a_job_that_failed_is_there_at_once_in_its_old_place",
                      self.failed(run))

    def test_unexpected_leaks_fail_the_run(self):
        stops = "test_a_worker_that_is_to_stop_finishes_the_job_in_hand"
        self.assertEqual(self.run_suite("-k", stops).returncode, 0)
        self.plant("insist(claim.delete)", "pass")
        run = self.run_suite("-k", stops)
        self.assertIn("1 passed", run.stdout)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertRegex(run.stderr, r"leaked: claim .* of 2 messages .*%s" % stops)


if __name__ == "__main__":
    unittest.main()
