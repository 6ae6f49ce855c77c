#!/usr/bin/python3
"""The Python client of claimd (src/clients/python), its fixture for pytest, and their types.

    python_client_test.py CLAIMD
"""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

from client_case import CLAIMD, HERE
from daemon import PATIENCE_S
from fake_server import FakeServer
from own_client import SHORT, SOURCES, Case, Fixture, OwnClient, without_options

PYTHON = os.path.join(SOURCES, "python")
SUITE = """
import os, subprocess, sys, time
import claimd as client
import pytest

def test_redelivered(claimd):
    queue = claimd.queue("jobs")
    queue.post({"job": 1})
    queue.claim(lease=60)
    assert claimd.advance(59) == []
    assert claimd.advance(1) == ["claim_ended"]
    queue.claim(lease=60).jobs[0].delete()
    claimd.expect("jobs", messages=0)
    assert [entry["event"] for entry in claimd.history("claimed", "finished")] == ["claimed"] * 2 + ["finished"]

def test_faults(claimd):
    queue = claimd.queue("jobs")
    claimd.faults(("messages:create", "cut=after"), ("messages:delete", "status=503; retry_after=0"))
    queue.post(1)
    claimd.expect("jobs", messages=1, free=1)
    queue.work(lambda job: queue.client.stop())
    claimd.expect("jobs", messages=0, wait=5)
    assert len(claimd.history("fault")) == 2
    code = "import claimd; claimd.Client(project=%r).queue('jobs').post(1)" % claimd.project
    subprocess.run([sys.executable, "-c", code], check=True)  # CLAIMD_URL is set
    with queue.claim() as claim:
        claim.jobs[0].delete()

@pytest.mark.parametrize("text", [256 * "x " + ".."])
def test_a_long_name(claimd, text):
    claimd.check_leaks = False
    claimd.queue("jobs").post(1)
    claimd.queue("jobs").claim(lease=60)
    assert claimd.advance(60) == ["claim_ended"]

def test_left_on_purpose(claimd):
    claimd.check_leaks = False
    claimd.queue("jobs").post(1)

def test_claim_left(claimd):
    claimd.queue("jobs").post(1)
    claimd.queue("jobs").claim(lease=60)

def test_message_left(claimd):
    claimd.queue("jobs").post(1)

def test_dead_letter_left(claimd):
    claimd.ask("PUT", "/v2/queues/jobs", {"_max_claim_count": 1, "_dead_letter_queue": "dead"})
    queue = claimd.queue("jobs")
    queue.post(1)
    queue.claim().jobs[0].retry()
    claimd.advance(60)

def hang(claimd):
    print("pid", os.getpid(), flush=True)
    time.sleep(600)
"""


SHARED = """
import os, signal, threading
import claimd
queue = claimd.Client(project="demo").queue("jobs")
queue.post(0)
forks = []
for _ in range(4):
    forks.append(os.fork())
    if forks[-1] == 0:
        for n in range(20):
            queue.post(n)
        os._exit(0)
for n in range(20):
    queue.post(n)
assert [os.waitpid(pid, 0)[1] for pid in forks] == [0] * 4
left = [101]
lock = threading.Lock()
def handle(job):
    with lock:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGTERM)
workers = [threading.Thread(target=queue.work, args=(handle,)) for _ in range(8)]
for worker in workers:
    worker.start()
queue.work(handle)  # only this one has the handlers of signals
for worker in workers:
    worker.join()
"""


FORKS = """
import multiprocessing, time
import claimd
client = claimd.Client(project="demo")
client.queue("jobs").post(1)
def run(has_begun):
    has_begun.set()
    time.sleep(600)
def handle(job):
    has_begun = multiprocessing.Event()
    process = multiprocessing.Process(target=run, args=(has_begun,))
    process.start()
    has_begun.wait()
    process.terminate()
    process.join()
    print(process.exitcode)
    client.stop()
client.queue("jobs").work(handle)
"""


def has(module):
    return importlib.util.find_spec(module) is not None


class Client(OwnClient, Case):
    command = (sys.executable, "-B", os.path.join(HERE, "driver", "driver.py"))
    language, variables, authorities = "python", {}, "SSL_CERT_FILE"
    refused_functions = ("async", "generator", "nothing")
    refused_results = ("coroutine", "generator")

    def test_a_number_that_python_does_not_read_is_no_document(self):
        text = "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\nConnection: close\r\n\r\n" + 5000 * "1"
        with FakeServer(text.encode()) as server:
            driver = self.drive(server.url)
            self.assert_fails("Failed", 200, driver, "request", method="GET", path="/", seconds=0.3)

    def test_a_process_that_a_job_forks_can_be_terminated(self):
        server = self.serve(*SHORT)
        run = subprocess.run([sys.executable, "-B", "-c", FORKS], capture_output=True, text=True,
                             env=without_options(CLAIMD_URL=server.url), timeout=PATIENCE_S, check=False)
        self.assertEqual((run.returncode, run.stdout + run.stderr), (0, "-15\n"))
        self.assertEqual(server.counts(), (0, 0))

    def test_forks_and_threads_share_a_client(self):
        server = self.serve(*SHORT)
        run = subprocess.run([sys.executable, "-B", "-c", SHARED], capture_output=True, text=True,
                             env=without_options(CLAIMD_URL=server.url), timeout=PATIENCE_S, check=False)
        self.assertEqual((run.returncode, run.stdout + run.stderr), (0, ""))
        self.assertEqual((server.counts(), len(server.history("finished"))), ((0, 0), 101))


@unittest.skipUnless(has("pytest"), "pytest is not installed (scripts/packages install clients)")
class Plugin(Fixture, unittest.TestCase):
    missing = "there is no program claimd beside this Python or on PATH"
    passing = Fixture.passing | {"a_long_name"}
    ends_in_failure = 3  # these tests pass, and then fail

    def setUp(self):
        super().setUp()
        self.write(test_suite_dot_py=SUITE)

    def write_test(self, call):
        self.write(test_suite_dot_py="def test_it(claimd):\n    claimd.%s\n" % call)

    def pytest(self, *words):
        return (sys.executable, "-B", "-W", "error", "-m", "pytest", "-p", "claimd.pytest_plugin",
                "-p", "no:cacheprovider", *words)

    def run_suite(self, tests=(), under=(), **variables):
        names = ["test_suite.py::test_" + name for name in sorted(tests)] or ["test_suite.py"]
        return self.run_in_folder(*under, *self.pytest(*names), **variables)

    def hanging(self):
        return self.pytest("-s", "-o", "python_functions=hang", "test_suite.py")

    def results(self, said):
        """How many passed, and how many failed or had an error at their end."""
        counts = re.findall(r"^=+ (.*) in [\d.]+s", said, re.M)[-1]
        return tuple(sum(map(int, re.findall(r"(\d+) (?:%s)" % words, counts)))
                     for words in ("passed", "failed|errors?"))

    @unittest.skipUnless(has("xdist"), "xdist is not installed (scripts/packages install clients)")
    def test_each_process_of_xdist_has_its_own_server(self):
        words = ("-n", "2", *("test_suite.py::test_" + name for name in sorted(self.passing)))
        status, said = self.run_in_folder(*self.pytest(*words))
        self.assertEqual((status, *self.results(said)), (0, len(self.passing), 0), said)
        run = (os.path.realpath(CLAIMD), "run", "--instances", "2", "--log", "log", "--access-log", "--")
        status, said = self.run_in_folder(*run, *self.pytest(*words))
        self.assertEqual((status, *self.results(said)), (0, len(self.passing), 0), said)
        with open(os.path.join(self.folder, "log"), encoding="utf-8") as f:
            self.assertIn("path=/claimd/reset", f.read())  # so these servers were used

    def test_an_old_pytest_runs_suites_without_the_fixture(self):
        self.write(test_suite_dot_py="def test_it():\n    pass\n")
        code = "import pytest, sys; del pytest.FixtureRequest, pytest.MonkeyPatch; sys.exit(pytest.main())"
        status, said = self.run_in_folder(sys.executable, "-B", "-c", code, "-p", "claimd.pytest_plugin",
                                          "-p", "no:cacheprovider", "test_suite.py")
        self.assertEqual((status, *self.results(said)), (0, 1, 0), said)

    def test_a_failed_test_shows_its_history_and_no_leaks(self):
        self.write(test_suite_dot_py="def test_it(claimd):\n    claimd.queue('jobs').post(1)\n"
                                     "    assert False\n")
        status, said = self.run_suite()
        self.assertEqual((status, *self.results(said)), (1, 0, 1), said)
        self.assertRegex(said, '"event": "posted"')
        self.assertNotIn("leaked", said)


class Types(unittest.TestCase):
    @unittest.skipUnless(has("mypy"), "mypy is not installed (scripts/packages install clients)")
    def test_types_are_complete(self):
        with tempfile.TemporaryDirectory() as cache:
            run = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, "claimd"],
                                 cwd=PYTHON, env=without_options(), capture_output=True, text=True,
                                 check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = PYTHON
    unittest.main(warnings="ignore")  # zaqarclient leaves connections open
