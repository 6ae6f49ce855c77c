#!/usr/bin/python3
"""`claimd work`: the command of each message, its end, and what becomes of the message.

    work_test.py CLAIMD
"""

import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import (CLAIMD, PATIENCE_S, Server, Workshop, children, environment, eventually,  # noqa: E402
                     free_port, stand_still)
from redis_nodes import Node  # noqa: E402
from runner import OPTIONS, QUEUE, Runner, WorkCase, is_over  # noqa: E402
from fake_server import FakeServer  # noqa: E402


class Input(WorkCase):
    def test_a_command_gets_body_metadata_and_environment(self):
        message, = self.post({"n": 1})
        job = self.script("cat; echo; cat <&3; env | grep ^CLAIMD_ | sort\n")
        runner = self.work("--timeout", "50", "--max-jobs", "1", "q", "--", job)
        before = int(time.time())
        self.assertEqual(runner.wait(), 0, runner.err.lines)
        body, metadata, *variables = runner.out.lines
        self.assertEqual(json.loads(body), {"n": 1})
        metadata = json.loads(metadata)
        variables = dict(line.split("=", 1) for line in variables)
        self.assertEqual(metadata["message_id"], message)
        self.assertEqual(variables["CLAIMD_MESSAGE_ID"], message)
        self.assertEqual(metadata["queue"], "q")
        self.assertEqual(variables["CLAIMD_QUEUE"], "q")
        self.assertEqual(metadata["delivery_count"], 1)
        self.assertEqual(variables["CLAIMD_DELIVERY_COUNT"], "1")
        self.assertEqual(variables["CLAIMD_CLAIM_ID"], metadata["claim_id"])
        self.assertEqual(variables["CLAIMD_CLAIM_NUMBER"], metadata["claim_number"])
        self.assertGreater(int(metadata["claim_number"]), 0)
        self.assertEqual(int(variables["CLAIMD_DEADLINE"]), metadata["deadline"])
        self.assertLessEqual(abs(metadata["deadline"] - before - 50), PATIENCE_S)
        self.assertEqual(metadata["details"]["delivery_count"], 1)
        self.assertEqual(self.server.stats("q"), (0, 0, 0))

    def test_raw_is_the_text_of_a_string(self):
        self.post("grüße \"x\"", {"n": 1})
        runner = self.work("--raw", "--max-jobs", "2", "q", "--", self.script("cat; echo\n"))
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(runner.out.lines, ["grüße \"x\"", '{"n": 1}'])

    def test_a_command_may_close_its_input_or_never_read_it(self):
        for _ in range(2):
            self.post("x" * 200000)
        runner = self.work("--max-jobs", "2", "q", "--",
                           self.script("exec <&-\nexec 3<&-\necho closed\n"))
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(runner.out.lines, ["closed"] * 2)
        self.assertEqual(self.server.stats("q"), (0, 0, 0))

    def test_a_command_gets_no_other_descriptors(self):
        self.post(1)
        runner = self.work("--max-jobs", "1", "q", "--",
                           sys.executable, "-c",
                           "import os; print(sorted(os.listdir('/proc/self/fd'), key=int)[:5])")
        self.assertEqual(runner.wait(), 0)
        # The fifth is the directory itself.
        self.assertEqual(runner.out.lines, ["['0', '1', '2', '3', '4']"])

    def test_a_command_may_start_a_claimd_of_its_own(self):
        """The variables of the job are not taken for options."""
        self.post(1)
        runner = self.work("--timeout", "50", "--max-jobs", "1", "q", "--", os.path.abspath(CLAIMD), "run",
                           "--", "echo", "done")
        self.assertEqual(runner.wait(), 0, runner.err.lines)
        self.assertEqual(runner.out.lines, ["done"])
        self.assertEqual(self.server.stats("q"), (0, 0, 0))

    def test_several_queues_in_their_order(self):
        self.post("last", queue="b")
        self.post("first", queue="a")
        job = self.script("echo $CLAIMD_QUEUE $(cat)\n")
        runner = self.work("--raw", "--max-jobs", "2", "a", "b", "--", job)
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(runner.out.lines, ["a first", "b last"])
        self.assertEqual(self.server.stats("a") + self.server.stats("b"), (0,) * 6)


class Ends(WorkCase):
    """The ways in which a command ends."""

    def one(self, text, *options):
        """Runs a script for one message; its id, and the runner, which has ended with status 0."""
        message, = self.post(1)
        runner = self.work(*options, "--max-jobs", "1", "q", "--", self.script(text))
        self.assertEqual(runner.wait(), 0)
        return message, runner

    def test_a_failure_is_released_with_delay_and_reason(self):
        message, runner = self.one("echo no such host >&2; exit 3\n")
        details = self.details(message)
        self.assertEqual(details["state"], "delayed")
        self.assertEqual(details["delivery_count"], 1)
        self.assertEqual(details["last_reason"], "exit status 3: no such host")
        self.assertEqual(runner.err.lines[0], "no such host")
        self.assertIn("exit status 3", runner.err.containing(message))
        self.assertEqual(len([line for line in runner.err.lines if message in line]), 1)

    def test_a_signal_is_a_failure(self):
        message, _ = self.one("kill -USR1 $$\n")
        self.assertEqual(self.details(message)["last_reason"], "killed by SIGUSR1")

    def test_status_65_dead_letters_with_the_reason(self):
        self.queue(max_claim_count=5, dead_letter_queue="dead")
        message, _ = self.one("echo bad JSON >&2; exit 65\n")
        self.assertEqual(self.server.stats("q"), (0, 0, 0))
        details = self.details(message, "dead")
        self.assertEqual(details["last_reason"], "bad JSON")
        self.assertEqual(details["origin_queue"], "q")

    def test_status_65_without_a_dead_letter_queue_releases(self):
        message, runner = self.one("echo bad JSON >&2; exit 65\n")
        self.assertEqual(self.details(message)["last_reason"], "bad JSON")
        runner.err.containing("has no dead-letter queue")

    def test_the_pause_grows_up_to_its_limit(self):
        self.queue(max_claim_count=3, dead_letter_queue="dead")
        message, = self.post(1)
        runner = self.work("--backoff", "0", "--max-jobs", "3", "q", "--", "false")
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(re.findall("failed in attempt ([0-9]+)", "\n".join(runner.err.lines)),
                         ["1", "2", "3"])
        runner = self.work("--exit-when-empty", "q", "--", "false")
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.details(message, "dead")["last_reason"], "exit status 1")

    def assert_broken(self, *command):
        message, = self.post(1)
        runner = self.work("q", "--", *command)
        self.assertEqual(runner.wait(), 69)
        details = self.details(message)
        self.assertEqual(details["state"], "ready")
        self.assertNotIn("last_reason", details)
        self.fetch("DELETE", QUEUE + "/messages/" + message, status=204)
        return runner

    def test_a_broken_command_ends_the_runner_and_harms_no_message(self):
        self.queue(max_claim_count=2, dead_letter_queue="dead")
        self.assert_broken("/nowhere/at/all").err.containing("No such file")
        self.assert_broken(self.folder).err.containing("Permission denied")
        self.assert_broken("sh", "-c", "no_such_command")
        self.assert_broken("sh", "-c", "exit 126")

    def test_a_broken_command_does_not_count(self):
        self.queue(max_claim_count=1, dead_letter_queue="dead")
        self.post("x")
        for _ in range(3):
            self.assertEqual(self.work("q", "--", "/nowhere").wait(), 69)
        runner = self.work("--raw", "--max-jobs", "1", "q", "--", "cat")
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(runner.out.lines, ["x"])

    def test_background_processes_end_with_the_command(self):
        """A child keeps standard error open, and its own child, too. Neither outlives the command."""
        _, runner = self.one("(sleep 1000 & sleep 1000) & echo $!; exit 0\n")
        self.assertEqual(self.server.stats("q"), (0, 0, 0))
        pid = int(runner.out.lines[0])
        eventually(lambda: is_over(pid))

    def test_timeout_is_a_failure(self):
        message, _ = self.one("echo half >&2; exec sleep 1000\n", "--timeout", "1")
        self.assertEqual(self.details(message)["last_reason"], "timed out after 1 s: half")

    def test_a_command_that_ignores_sigterm_is_killed(self):
        self.post(1)
        runner = self.work("--grace", "0", "q", "--", self.script(
            "trap '' TERM\necho begun\nwhile :; do sleep 0.1; done\n"))
        runner.out.containing("begun")
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.server.stats("q"), (0, 1, 1))


class OnRedis(Ends):
    """The same with a store on Redis."""

    def setUp(self):
        self.redis = Node(appendonly="yes", appendfsync="always")
        self.addCleanup(self.redis.stop)
        super().setUp()

    def start(self, *options, **more):
        self.server = Server("--store", self.redis.url(), *OPTIONS, *options, **more)


class Output(WorkCase):
    def test_a_gigabyte_of_output(self):
        """It does not pass through the runner, which stays small."""
        self.post(1)
        runner = Runner(["--project", "p", "--max-jobs", "1", "q", "--", "head", "-c", "1G",
                         "/dev/zero"], self.server.url, stdout=subprocess.DEVNULL)
        self.addCleanup(runner.end)
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.server.stats("q"), (0, 0, 0))

    def test_much_standard_error(self):
        """It is passed on, its end is the reason, and the runner does not keep it."""
        message, = self.post(1)
        runner = self.work("--max-jobs", "1", "q", "--", self.script(
            "head -c 20000000 /dev/zero | tr '\\0' 'x' | fold -w 99 >&2; echo >&2; echo last >&2\n"
            "exit 1\n"))
        self.assertEqual(runner.wait(), 0)
        passed = sum(line.count("x") for line in runner.err.lines if "claimd" not in line)
        self.assertEqual(passed, 20000000)
        reason = self.details(message)["last_reason"]
        self.assertEqual(len(reason), 1024)
        self.assertTrue(reason.startswith("exit status 1: xxx"), reason[:40])
        self.assertTrue(reason.endswith("x\nlast"), reason[-40:])

    def test_a_reader_that_stops_does_not_cost_the_lease(self):
        """The command waits for the reader of its standard error, and the runner goes on renewing."""
        self.post(1)
        runner = self.work("--lease", "3", "--max-jobs", "1", "q", "--", self.script(
            "echo begun\nhead -c 300000 /dev/zero >&2\necho through\n"), reading=False)
        runner.out.containing("begun")
        time.sleep(7)  # more than two leases
        self.assertEqual(self.server.stats("q"), (1, 0, 1))
        self.assertEqual(runner.out.lines, ["begun"])
        runner.err.thread.start()
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.server.stats("q"), (0, 0, 0))
        self.assertEqual(len("".join(runner.err.lines)), 300000)


class Lease(WorkCase):
    def test_a_job_may_be_longer_than_its_lease(self):
        self.post(1)
        runner = self.work("--lease", "3", "--max-jobs", "1", "q", "--",
                           self.script("echo begun; sleep 5; echo done\n"))
        runner.out.containing("begun")
        other = self.work("q", "--", "echo", "stolen")
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(runner.out.lines, ["begun", "done"])
        other.signal()
        self.assertEqual(other.wait(), 0)
        self.assertEqual(other.out.lines, [])
        self.assertEqual(self.server.stats("q"), (0, 0, 0))

    def numbers(self):
        """The notes of the jobs: the fencing token and the event, in order."""
        with open(self.path("noted"), encoding="utf-8") as f:
            return [line.split() for line in f]

    def noting(self, rest):
        return self.script("note() { echo $CLAIMD_CLAIM_NUMBER $1 >>%s; echo $1; }\n%s"
                           % (self.path("noted"), rest))

    def test_a_server_that_hangs_costs_the_lease_and_nothing_is_finished(self):
        self.post(1)
        job = self.noting("trap 'note ended; exit 0' TERM\nnote begun\n"
                          "[ -e %s ] || while :; do sleep 0.1; done\nnote done\n" % self.path("go"))
        runner = self.work("--lease", "3", "--grace", "0", "q", "--", job)
        runner.out.containing("begun")
        stand_still(self.server)
        runner.out.containing("ended")
        runner.err.containing("the lease is lost")
        open(self.path("go"), "w", encoding="utf-8").close()
        self.server.signal(signal.SIGCONT)
        runner.out.containing("done")
        self.assert_counts(0, 0, 0)
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        noted = self.numbers()
        self.assertEqual([what for _, what in noted], ["begun", "ended", "begun", "done"])
        self.assertLess(int(noted[0][0]), int(noted[2][0]))

    def test_a_claim_that_is_gone_ends_its_job(self):
        message, = self.post(1)
        runner = self.work("--lease", "3", "q", "--", self.script(
            "echo $CLAIMD_CLAIM_ID\nexec sleep 1000\n"))
        eventually(lambda: runner.out.lines)
        self.fetch("DELETE", QUEUE + "/claims/" + runner.out.lines[0], status=204)
        runner.err.containing("ended, because the lease is lost")
        runner.signal(signal.SIGKILL)
        runner.wait()
        self.assertNotIn("last_reason", self.details(message))

    def test_kill_9_of_the_runner_ends_its_job_and_another_does_it(self):
        self.post(1)
        job = self.noting("note begun\n[ -e %s ] || exec sleep 1000\nnote done\n" % self.path("go"))
        runner = self.work("--lease", "3", "q", "--", job)
        runner.out.containing("begun")
        child, = children(runner.process.pid)
        runner.signal(signal.SIGKILL)
        runner.wait()  # its job holds the pipes, so it has ended, too
        eventually(lambda: is_over(child))
        open(self.path("go"), "w", encoding="utf-8").close()
        other = self.work("--max-jobs", "1", "q", "--", job)
        self.assertEqual(other.wait(), 0)
        noted = self.numbers()
        self.assertEqual([what for _, what in noted], ["begun", "begun", "done"])
        self.assertLess(int(noted[0][0]), int(noted[1][0]))
        self.assertEqual(self.server.stats("q"), (0, 0, 0))

    def test_kill_9_of_the_server_loses_nothing_and_repeats_nothing(self):
        listen = "127.0.0.1:%d" % self.server.port
        self.post(*range(6))
        job = self.noting("note begun\nread go <%s\nnote done\n" % self.path("go"))
        os.mkfifo(self.path("go"))
        runner = self.work("--parallel", "2", "--lease", "30", "--max-jobs", "6", "q", "--", job)
        runner.out.containing("begun", 2)
        self.crash()
        with open(self.path("go"), "w", encoding="utf-8") as go:
            go.write("\n\n")  # both end while there is no server
            go.flush()
            runner.out.containing("done", 2)
        runner.err.containing("waiting for the server")
        self.start(listen=listen)
        runner.err.containing("responds again")
        with open(self.path("go"), "w", encoding="utf-8") as go:
            go.write("\n" * 4)
            go.flush()
            self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.server.stats("q"), (0, 0, 0))
        noted = self.numbers()
        self.assertEqual(sorted(what for _, what in noted), ["begun"] * 6 + ["done"] * 6)


class Stopping(WorkCase):
    def test_an_idle_runner_ends_at_once_and_leaves_no_claim(self):
        runner = self.work("q", "--", "true")
        self.parked(1)
        begun = time.monotonic()
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        self.assertLess(time.monotonic() - begun, 10)  # the long poll takes 20 s
        self.parked(0)
        message, = self.post(1)
        self.assertEqual(self.details(message)["delivery_count"], 0)

    def busy(self, *options):
        """A runner with a job that runs until its file `go` is written."""
        os.mkfifo(self.path("go"))
        self.post(1)
        runner = self.work(*options, "q", "--", self.script(
            "echo begun\nread go <%s\necho done\n" % self.path("go")))
        runner.out.containing("begun")
        return runner

    def go(self):
        with open(self.path("go"), "w", encoding="utf-8") as f:
            f.write("\n")

    def test_a_busy_runner_finishes_its_jobs_and_claims_no_more(self):
        runner = self.busy()
        self.post(2)
        runner.signal()
        self.go()
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(runner.out.lines, ["begun", "done"])
        self.assertEqual(self.server.stats("q"), (0, 1, 1))

    def test_jobs_are_released_after_the_grace(self):
        runner = self.busy("--grace", "1")
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.server.stats("q"), (0, 1, 1))
        message, = self.messages()
        self.assertNotIn("last_reason", message["details"])

    def test_a_second_sigterm_releases_now(self):
        runner = self.busy("--grace", "1000")
        runner.signal()
        time.sleep(0.2)  # an earlier second one counts as the first: timeout(1) sends two
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.server.stats("q"), (0, 1, 1))

    def test_sigusr1_claims_no_more_and_keeps_running_jobs(self):
        runner = self.busy()
        runner.signal(signal.SIGUSR1)
        self.post(2)
        self.go()
        runner.out.containing("done")
        self.assert_counts(0, 1, 1)
        self.assertIsNone(runner.process.poll())
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.server.stats("q"), (0, 1, 1))

    def test_sigusr1_after_the_start_of_the_last_job_does_not_keep_it_running(self):
        runner = self.busy("--max-jobs", "1")
        runner.signal(signal.SIGUSR1)
        self.go()
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.server.stats("q"), (0, 0, 0))

    def test_sigusr1_ends_the_long_poll(self):
        runner = self.work("q", "--", "true")
        self.parked(1)
        runner.signal(signal.SIGUSR1)
        self.parked(0)
        self.post(1)
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.server.stats("q"), (0, 1, 1))

    def test_it_says_that_claims_are_paused(self):
        self.post("a")
        self.server.fetch("POST", "/claimd/queues/q/pause")
        runner = self.work("--exit-when-empty", "q", "--", "true")
        self.assertEqual(runner.wait(), 0)
        self.assertEqual([line for line in runner.err.lines if "paused" in line],
                         ["claimd work: claims of a queue are paused. `claimd pause QUEUE --show` names the client that paused them"])
        self.server.fetch("POST", "/v2/queues/other/messages", b'{"messages":[{"body":1},{"body":2}]}')
        runner = self.work("--exit-when-empty", "other", "q", "--", "true")
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(len([line for line in runner.err.lines if "paused" in line]), 1)
        self.assertFalse([line for line in runner.err.lines if "resumed" in line])
        self.server.fetch("POST", "/claimd/queues/q/pause", b'{"claims":false}')
        runner = self.work("--exit-when-empty", "q", "--", "true")
        self.assertEqual(runner.wait(), 0)
        self.assertFalse([line for line in runner.err.lines if "paused" in line])

    def test_exit_when_empty(self):
        self.post(*range(25))
        runner = self.work("--exit-when-empty", "--parallel", "4", "q", "--", "echo", "done")
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(runner.out.lines, ["done"] * 25)
        self.assertEqual(self.work("--exit-when-empty", "q", "--", "echo", "done").wait(), 0)

    def test_a_claim_that_was_sent_before_a_job_ended_does_not_say_that_the_queue_is_empty(self):
        """The response to the second claim comes after that to the result of the job, which may be a release."""
        claims, ended = [], threading.Event()
        real = self.server

        class Late(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                claims.append("/claims?" in self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
                response = real.fetch(self.command, self.path, body, headers=[
                    "%s: %s" % pair for pair in self.headers.items() if pair[0] in ("Prefer", "Content-Type")])
                if sum(claims) == 2 and claims[-1]:
                    ended.wait(PATIENCE_S)
                self.send_response(response.status)
                for pair in response.headers.items():
                    self.send_header(*pair)
                self.end_headers()
                self.wfile.write(response.body)
                if not claims[-1]:
                    ended.set()

            do_DELETE = do_PATCH = do_POST

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Late) as between:
            threading.Thread(target=between.serve_forever, daemon=True).start()
            self.post(1)
            runner = self.work("--exit-when-empty", "--parallel", "2", "q", "--", "sleep", "0.3",
                               url="http://127.0.0.1:%d" % between.server_port)
            self.assertEqual(runner.wait(), 0)
            between.shutdown()
        self.assertEqual(sum(claims), 3)

    def test_a_poison_job_is_dead_when_the_queue_is_empty(self):
        """After its last attempt there is nothing that another runner would have to claim."""
        self.queue(max_claim_count=3, dead_letter_queue="dead")
        message, = self.post(1)
        runner = self.work("--exit-when-empty", "--backoff", "0", "q", "--",
                           self.script("echo $CLAIMD_DELIVERY_COUNT; exit 1\n"))
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(runner.out.lines, ["1", "2", "3"])
        self.assertEqual(self.server.stats("q"), (0, 0, 0))
        self.assertEqual(self.details(message, "dead")["last_reason"], "exit status 1")

    def test_exit_when_empty_takes_what_its_jobs_post(self):
        """A job that fails without a pause is ready again, and is not left behind."""
        self.post(1)
        runner = self.work("--exit-when-empty", "--backoff", "0", "--parallel", "3", "q", "--",
                           self.script("echo $CLAIMD_DELIVERY_COUNT\n"
                                       "[ $CLAIMD_DELIVERY_COUNT = 4 ]\n"))
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(runner.out.lines, ["1", "2", "3", "4"])

    def test_max_jobs(self):
        self.post(*range(10))
        runner = self.work("--max-jobs", "7", "--parallel", "3", "q", "--", "echo", "done")
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(runner.out.lines, ["done"] * 7)
        self.assertEqual(self.server.stats("q"), (0, 3, 3))

    def test_a_supervisor_is_notified(self):
        path = self.path("notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
            supervisor.settimeout(PATIENCE_S)
            supervisor.bind(path)
            runner = self.work("q", "--", "true", NOTIFY_SOCKET=path)
            self.assertIn(b"READY=1\n", supervisor.recv(4096))
            runner.signal()
            self.assertIn(b"STOPPING=1\n", supervisor.recv(4096))
            self.assertEqual(runner.wait(), 0)


class Connections(WorkCase):
    """Other ways to the server: an idle runner ends at once, and a busy one finishes."""

    def check(self, *options, url):
        runner = self.work(*options, "q", "--", self.script("echo $CLAIMD_DELIVERY_COUNT\n"), url=url)
        self.parked(1)
        self.post(1)
        runner.out.containing("1")
        self.assert_counts(0, 0, 0)
        self.parked(1)
        begun = time.monotonic()
        runner.signal()
        self.assertEqual(runner.wait(), 0, runner.err.lines)
        self.assertLess(time.monotonic() - begun, 10)
        self.parked(0)
        self.assertEqual(runner.err.lines, [])
        message, = self.post(2)
        self.assertEqual(self.details(message)["delivery_count"], 0)

    def test_a_unix_socket(self):
        path = "unix:" + self.path("socket")
        self.crash()
        self.start(listen="127.0.0.1:0," + path)
        self.check(url=path)

    def test_tls(self):
        with Workshop() as shop:
            pair = shop.signed("server")
            port = free_port()
            self.crash()
            self.start(*pair.options(), listen="127.0.0.1:0,tls:127.0.0.1:%d" % port)
            self.check("--ca", pair.certificate, url="https://localhost:%d" % port)

    def test_a_token_that_is_revoked_ends_the_runner(self):
        def claimd(*words, **variables):
            return subprocess.run([CLAIMD, *words], capture_output=True, text=True, timeout=PATIENCE_S,
                                  check=True, env=environment(**variables)).stdout

        tokens, mine = self.path("tokens"), self.path("mine")
        with open(mine, "w", encoding="ascii") as f:
            f.write(claimd("token", "new", "me", "--role", "admin", "--tokens", tokens))
        self.crash()
        self.start("--auth", "tokens", "--tokens", tokens)
        claimd("post", "q", "1", CLAIMD_URL=self.server.url, CLAIMD_PROJECT="p", CLAIMD_TOKEN_FILE=mine)
        runner = self.work("--token-file", mine, "q", "--", self.script(
            "echo begun\nuntil [ -e %s ]; do sleep 0.1; done\n" % self.path("go")))
        runner.out.containing("begun")
        claimd("token", "revoke", "me", "--tokens", tokens)
        self.server.reload()
        open(self.path("go"), "w", encoding="utf-8").close()
        self.assertEqual(runner.wait(), 1)
        runner.err.containing("the server refuses a finish request: HTTP status 401")


class Away(WorkCase):
    """A server that is not there, or no server."""

    def test_an_absent_server_is_reported_once_and_given_up(self):
        url = self.server.url
        self.crash()
        runner = self.work("--give-up", "2", "q", "--", "true", url=url)
        self.assertEqual(runner.wait(), 69)
        self.assertEqual(len(runner.err.lines), 2, runner.err.lines)
        self.assertIn("waiting for the server", runner.err.lines[0])
        self.assertIn("giving up", runner.err.lines[1])

    def test_a_runner_waits_for_its_server(self):
        url, listen = self.server.url, "127.0.0.1:%d" % self.server.port
        self.crash()
        runner = self.work("--max-jobs", "1", "q", "--", "echo", "done", url=url)
        runner.err.containing("waiting for the server")
        self.start(listen=listen)
        self.post(1)
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(runner.out.lines, ["done"])
        self.assertEqual(len(runner.err.lines), 2, runner.err.lines)

    def bad(self, response):
        return self.enterContext(FakeServer(response))

    def test_garbage_is_reported_once(self):
        head = b"HTTP/1.1 201 Created\r\nConnection: close\r\n"
        place = b"Location: /v2/queues/q/claims/c\r\nClaim-Number: 5\r\n"
        for response in (b"\0\1\2\3" * 99, b"", b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
                         head + b"Content-Length: 2\r\n\r\n{}",
                         head + place + b"Content-Length: 4\r\n\r\nwhat",
                         head + place + b'Content-Length: 20\r\n\r\n{"messages":[1,2,3]}',
                         head + place + b"Content-Length: 200000\r\n\r\n{",
                         b"HTTP/1.1 503 No\r\nRetry-After: 0\r\nContent-Length: 1\r\n\r\n["):
            with self.subTest(response=response):
                server = self.bad(response)
                runner = self.work("q", "--", "true", url=server.url)
                for _ in range(4):
                    self.assertTrue(server.requested.acquire(timeout=PATIENCE_S))
                runner.signal()
                self.assertEqual(runner.wait(), 0)
                self.assertEqual(len(runner.err.lines), 1, runner.err.lines)

    def test_a_refusal_ends_the_runner(self):
        server = self.bad(b"HTTP/1.1 401 No\r\nContent-Length: 61\r\n\r\n"
                          b'{"title": "No", "description": "credentials are missing now"}')
        runner = self.work("q", "--", "true", url=server.url)
        self.assertEqual(runner.wait(), 1)
        runner.err.containing("credentials are missing now")

    def test_another_service_ends_the_runner(self):
        for status in (b"200 OK", b"302 Found"):
            server = self.bad(b"HTTP/1.1 " + status + b"\r\nContent-Length: 2\r\n\r\n{}")
            runner = self.work("q", "--", "true", url=server.url)
            self.assertEqual(runner.wait(), 69)
            runner.err.containing("the response to a claim is not one of claimd: HTTP status " +
                                  status[:3].decode())

    def test_an_idle_runner_ends_at_once_although_the_server_hangs(self):
        server = self.bad(lambda other: other.recv(1))
        runner = self.work("q", "--", "true", url=server.url)
        self.assertTrue(server.requested.acquire(timeout=PATIENCE_S))
        begun = time.monotonic()
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        self.assertLess(time.monotonic() - begun, 10)


class Scripted(http.server.BaseHTTPRequestHandler):
    """A server of one message, which responds to a finish request as `finish` of its server says."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/finish"):
            self.server.finishes += 1
            self.respond(*self.server.finish)
        elif self.server.claimed:
            self.respond(204)
        else:
            self.server.claimed = True
            self.respond(201, {"Location": "/v2/queues/q/claims/c", "Claim-Number": "5"}, json.dumps(
                {"messages": [{"id": "m", "body": 1, "details": {"delivery_count": 1}}]}))

    def do_PATCH(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.renewals += 1
        if self.server.renewals == 1:
            self.respond(*self.server.bad_renewal)
        else:
            self.respond(204)

    def respond(self, status, headers=(), text=""):
        self.send_response(status)
        for name in headers:
            self.send_header(name, headers[name])
        if status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


class Unconfirmed(WorkCase):
    """Responses that leave out results, or contain others than those of the request."""

    def run_one(self, finish, *options, command=("true",), bad_renewal=None):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
        server.claimed, server.finish, server.finishes, server.renewals = False, finish, 0, 0
        server.bad_renewal = bad_renewal
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        runner = self.work("--lease", "3", *options, "q", "--", *command,
                           url="http://127.0.0.1:%d" % server.server_port)
        runner.status = runner.wait()
        return runner, server

    def test_a_last_result_that_is_not_confirmed_is_no_success(self):
        for option in (("--max-jobs", "1"), ("--exit-when-empty",)):
            for finish in ((500,), (404,)):
                runner, _ = self.run_one(finish, *option)
                self.assertEqual(runner.status, 69, runner.err.lines)
                runner.err.containing("It may run again")

    def test_a_long_retry_after_does_not_outlast_the_lease(self):
        runner, server = self.run_one((503, {"Retry-After": "2147483646"}), "--max-jobs", "1")
        self.assertEqual(runner.status, 69)
        self.assertGreaterEqual(server.finishes, 2)

    def test_a_renewal_that_says_nothing_of_the_claim_does_not_cost_the_lease(self):
        for bad in ((503, {"Retry-After": "2147483646"}), (404, {}, "<h1>a proxy without its server</h1>"),
                    (200, {}, "<h1>the login page of a proxy</h1>")):
            runner, server = self.run_one(self.result("deleted"), "--max-jobs", "1", command=("sleep", "4"),
                                          bad_renewal=bad)
            self.assertEqual(runner.status, 0, runner.err.lines)
            self.assertGreaterEqual(server.renewals, 3)

    def test_a_404_of_a_proxy_is_no_response_to_a_finish_request(self):
        for text, count in (("<h1>a proxy without its server</h1>", 2), ('{"title": "Not found"}', 1)):
            runner, server = self.run_one((404, {}, text), "--max-jobs", "1")
            self.assertEqual(runner.status, 69)
            self.assertEqual(min(server.finishes, 2), count)

    @staticmethod
    def result(text):
        return 200, {}, json.dumps({"results": [{"id": "m", "result": text}]})

    def test_the_log_says_what_the_server_did(self):
        result = self.result
        for response, words in ((result("released"), "The next attempt is in"),
                                (result("dead_lettered"), "It is dead-lettered"),
                                (result("not_held"), "Its lease ended before the server got the result"),
                                ((500,), "The server did not confirm the result")):
            for status in (1, 65) if "attempt" not in words else (1,):
                runner, _ = self.run_one(response, "--max-jobs", "1", command=("sh", "-c", "exit %d" % status))
                self.assertIn(words, runner.err.containing("exit status %d" % status))
                self.assertEqual(len([line for line in runner.err.lines if "job m" in line]), 1,
                                 runner.err.lines)


class Mixed(WorkCase):
    def test_poison_flaky_and_good_jobs_side_by_side_with_kills(self):
        """Three slots; the runner and the server are killed in between."""
        listen = "127.0.0.1:%d" % self.server.port
        self.queue(max_claim_count=5, dead_letter_queue="dead")
        bodies = ["good"] * 20 + ["flaky", "poison"]
        bodies = [{"kind": kind, "n": n} for n, kind in enumerate(bodies)]
        self.post(*bodies[20:], *bodies[:20])
        job = self.path("job.py")
        with open(job, "w", encoding="utf-8") as f:
            f.write(MIXED_JOB)
        options = ("--parallel", "3", "--backoff", "0", "q", "--", sys.executable, job,
                   self.path("noted"))
        first = self.work("--lease", "3", *options)
        first.out.containing("done", 3)
        first.signal(signal.SIGKILL)
        first.wait()
        second = self.work("--lease", "30", *options)
        second.out.containing("done", 5)
        self.crash()
        self.start(listen=listen)
        self.assert_counts(0, 0, 0)
        letter, = self.messages("dead")
        self.assertEqual(letter["body"]["kind"], "poison")
        self.assertEqual(letter["details"]["last_reason"], "exit status 1: cannot be done")
        second.signal()
        self.assertEqual(second.wait(), 0)
        with open(self.path("noted"), encoding="utf-8") as f:
            noted = [json.loads(line) for line in f]
        repeated = 0
        for n, body in enumerate(bodies):
            own = [entry for entry in noted if entry["n"] == n]
            numbers = [entry["number"] for entry in own if entry["what"] == "begun"]
            self.assertEqual(numbers, sorted(set(numbers)), own)  # each attempt has a larger one
            done = [entry for entry in own if entry["what"] == "done"]
            self.assertEqual(not done, body["kind"] == "poison", own)
            repeated += max(0, len(done) - 1)
        # Jobs of the first runner that it could not delete any more. The kill of the server repeats none.
        self.assertLessEqual(repeated, 3)


MIXED_JOB = """
import json, os, sys, time
body = json.load(sys.stdin)
number = int(os.environ["CLAIMD_CLAIM_NUMBER"])

def note(what):
    line = json.dumps({"n": body["n"], "number": number, "what": what}) + "\\n"
    fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, line.encode())
    os.close(fd)

note("begun")
if body["kind"] == "poison":
    sys.exit("cannot be done")
if body["kind"] == "flaky" and int(os.environ["CLAIMD_DELIVERY_COUNT"]) < 3:
    os.kill(os.getpid(), 9)
note("done")
print("done", flush=True)
"""


if __name__ == "__main__":
    unittest.main()
