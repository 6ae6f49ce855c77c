#!/usr/bin/python3
"""The node client of claimd (src/clients/node), its fixture for node:test, and the program of its package.

    node_client_test.py CLAIMD
"""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from client_case import CLAIMD, HERE
from daemon import PATIENCE_S
from own_client import SHORT, SOURCES, Case, Fixture, OwnClient, Requests, without_options

NODE = shutil.which("node")
CLIENT = os.path.join(SOURCES, "node")
SUITE = """
const test = require("node:test");
const assert = require("node:assert/strict");
const { execFileSync } = require("node:child_process");
const { claimd } = require("%(client)s/test");

test("redelivered", async (t) => {
  const server = await claimd(t);
  const queue = server.queue("jobs");
  await queue.post([{ job: 1 }]);
  await queue.claim({ lease: 60 });
  assert.deepEqual(await server.advance(59), []);
  assert.deepEqual(await server.advance(1), ["claim_ended"]);
  await (await queue.claim({ lease: 60 })).jobs[0].delete();
  await server.expect("jobs", { messages: 0 });
  const events = await server.history("claimed", "finished");
  assert.deepEqual(events.map((entry) => entry.event), ["claimed", "claimed", "finished"]);
});

test("faults", async (t) => {
  const server = await claimd(t);
  const queue = server.queue("jobs");
  await server.faults(["messages:create", "cut=after"], ["messages:delete", "status=503; retry_after=0"]);
  await queue.post([1]);
  await server.expect("jobs", { messages: 1, free: 1 });
  await queue.work(() => queue.client.stop());
  await server.expect("jobs", { messages: 0, wait: 5 });
  assert.equal((await server.history("fault")).length, 2);
  const code = `new (require("%(client)s").Client)("", { project: ${JSON.stringify(server.project)} })
    .queue("jobs").post([1])`;
  execFileSync(process.execPath, ["-e", code]); // CLAIMD_URL is set
  await (await server.queue("jobs").claim()).jobs[0].delete();
});

test(`${"x ".repeat(40)}\\n\U0001f600 `, async (t) => { // the last 64 characters begin with a blank
  const server = await claimd(t);
  server.checkLeaks = false;
  await server.queue("jobs").post([1]);
  await server.queue("jobs").claim({ lease: 60 });
  assert.deepEqual(await server.advance(60), ["claim_ended"]);
});

test("left_on_purpose", async (t) => {
  const server = await claimd(t);
  server.checkLeaks = false;
  await server.queue("jobs").post([1]);
});

test("claim_left", async (t) => {
  const queue = (await claimd(t)).queue("jobs");
  await queue.post([1]);
  await queue.claim({ lease: 60 });
});

test("message_left", async (t) => {
  await (await claimd(t)).queue("jobs").post([1]);
});

test("dead_letter_left", async (t) => {
  const server = await claimd(t);
  await server.ask("PUT", "/v2/queues/jobs", { _max_claim_count: 1, _dead_letter_queue: "dead" });
  const queue = server.queue("jobs");
  await queue.post([1]);
  await (await queue.claim()).jobs[0].retry();
  await server.advance(60);
});
""" % {"client": CLIENT}
SHARED = """
const { Client } = require("%s");
const queue = new Client("", { project: "demo" }).queue("jobs");
let left = 30;
const handle = () => --left === 0 && process.kill(process.pid, "SIGTERM");
Promise.all(Array.from({ length: left }, (_, n) => queue.post([n])))
  .then(() => Promise.all(Array.from({ length: 15 }, () => queue.work(handle))));
""" % CLIENT
ONE_CALL = """
const { claimd } = require("CLIENT/test");
require("node:test")("one call", async (t) => {
  await (await claimd(t)).%s;
});
""".replace("CLIENT", CLIENT)
HANG = """
const { claimd } = require("%s/test");
require("node:test")("hang", async (t) => {
  await claimd(t);
  process.stdout.write(`pid ${process.pid}\\n`);
  await new Promise((resolve) => setTimeout(resolve, 600000));
});
""" % CLIENT


class CommonJs(OwnClient, Case):
    command = (NODE, os.path.join(HERE, "driver", "driver.cjs"))
    language, authorities = "js", "NODE_EXTRA_CA_CERTS"
    refused_functions = ("generator", "nothing", "signal")
    refused_results = ("generator",)

    @property
    def variables(self):
        """By which `require("claimd")` finds the client outside of a package."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        shutil.copytree(CLIENT, os.path.join(folder, "claimd"))
        return {"NODE_PATH": folder}


    def test_many_workers_share_a_client(self):
        server = self.serve(*SHORT)
        run = subprocess.run([NODE, "-e", SHARED], capture_output=True, text=True, timeout=PATIENCE_S,
                             env=without_options(CLAIMD_URL=server.url), check=False)
        self.assertEqual((run.returncode, run.stdout + run.stderr), (0, ""))
        self.assertEqual((server.counts(), len(server.history("finished"))), ((0, 0), 30))


class Module(Requests, Case):
    command = (NODE, os.path.join(HERE, "driver", "driver.mjs"))


class TestRunner(Fixture, unittest.TestCase):
    missing = "claimd did not start: spawn claimd ENOENT"
    passing = Fixture.passing | {"x [^]*"}
    ends_in_failure = 0

    def setUp(self):
        super().setUp()
        self.write(suite_dot_test_dot_js=SUITE)

    def write_test(self, call):
        self.write(suite_dot_test_dot_js=ONE_CALL % call)

    def run_suite(self, tests=(), under=(), **variables):
        names = "--test-name-pattern=^(%s)$" % "|".join(tests) if tests else "--test-name-pattern=."
        return self.run_in_folder(*under, NODE, names, "--test", **variables)

    def hanging(self):
        self.write(hang_dot_js=HANG)
        return NODE, "hang.js"

    def results(self, said):
        return tuple(int(re.search(r"(?m)^\S+ %s (\d+)$" % word, said)[1]) for word in ("pass", "fail"))


class Program(unittest.TestCase):
    """bin.js, the program claimd of the npm package."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        shutil.copytree(CLIENT, self.path("node_modules/claimd"))
        self.program = self.path("node_modules/claimd/bin.js")
        self.platform = subprocess.run([NODE, "-p", "process.platform + '-' + process.arch"], check=True,
                                       stdout=subprocess.PIPE, text=True).stdout.strip()

    def path(self, name):
        return os.path.join(self.folder, name)

    def script(self, name, text):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o755)
        return path

    def run_program(self, *words, options=(), **variables):
        return subprocess.run([NODE, *options, self.program, *words], env=without_options(**variables),
                              input="in\n", capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    def test_it_runs_the_program_of_the_platform(self):
        self.script("node_modules/@claimd/%s/bin/claimd" % self.platform,
                    "#!/bin/sh\nread line\necho $line \"$@\" \nexit 7\n")
        run = self.run_program("a b", "c")
        self.assertEqual((run.returncode, run.stdout, run.stderr), (7, "in a b c\n", ""))

    def test_a_variable_names_another_program(self):
        run = self.run_program("--version", CLAIMD_BINARY=os.path.realpath(CLAIMD))
        self.assertRegex(run.stdout, "^claimd [0-9]")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        run = self.run_program("--check-config", CLAIMD_BINARY=os.path.realpath(CLAIMD))
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        run = self.run_program(CLAIMD_BINARY=self.path("none"))
        self.assertEqual(run.returncode, 1)
        self.assertIn("cannot be run", run.stderr)

    def test_signals_reach_the_program_and_its_end_is_ours(self):
        stops = "#!/bin/sh\ntrap 'exit 7' TERM INT HUP QUIT\necho ready\nwhile :; do sleep 0.1; done\n"
        ends = "#!/bin/sh\necho ready\nexec sleep 600\n"
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            for text, status in ((stops, 7), (ends, -number)):
                with subprocess.Popen([NODE, self.program], stdout=subprocess.PIPE, text=True,
                                      env=without_options(CLAIMD_BINARY=self.script("program", text)),
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
                                      ) as process:
                    self.assertEqual(process.stdout.readline(), "ready\n")
                    process.send_signal(number)
                    self.assertEqual(process.wait(PATIENCE_S), status)

    def test_without_a_program_it_says_which_one_is_missing(self):
        as_if = self.script("as_if.js", """
            const [platform, arch, glibc] = process.env.AS_IF.split(" ");
            Object.defineProperty(process, "platform", { value: platform });
            Object.defineProperty(process, "arch", { value: arch });
            process.report.getReport = () => ({ header: glibc ? { glibcVersionRuntime: glibc } : {} });
        """)
        for system, said in (
                ("linux x64 2.36", "the package @claimd/linux-x64 is missing. Run: npm install"),
                ("linux arm64 2.36", "the package @claimd/linux-arm64 is missing. Run: npm install"),
                ("linux x64", "claimd needs glibc, and this is linux-x64 with musl"),
                ("linux ia32 2.36", "with glibc, and this is linux-ia32"),
                ("darwin arm64", "with glibc, and this is darwin-arm64")):
            run = self.run_program("--version", options=("-r", as_if), AS_IF=system)
            self.assertEqual((run.returncode, run.stdout, run.stderr.count("\n")), (1, "", 1), run.stderr)
            self.assertIn(said, run.stderr)


if __name__ == "__main__":
    if NODE is None:
        print("skipped: nodejs is not installed (scripts/packages install clients)")
        sys.exit(77)
    unittest.main(warnings="ignore")  # zaqarclient leaves connections open
