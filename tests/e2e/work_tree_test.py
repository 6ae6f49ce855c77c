#!/usr/bin/python3
"""`claimd work`: no process of a job outlives it, or the lease.

    work_tree_test.py CLAIMD

Each process of an attempt holds a lock. The next attempt at the same message notes whether it gets the lock
at its start. So no test compares times.
"""

import contextlib
import ctypes
import http.server
import json
import os
import pty
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import CLAIMD, PATIENCE_S, children, environment, eventually, stand_still  # noqa: E402
from runner import PROJECT, Runner, WorkCase, is_over  # noqa: E402

IS_ROOT = os.geteuid() == 0

# How an attempt goes on for ever. All processes of it inherit the lock.
WAYS = {
    "child": "sleep 1000; true",
    "session": "setsid -w sleep 1000",
    "timeout": "timeout 1000 sleep 1000; true",
    "daemon": "(setsid sleep 1000 &); sleep 1000; true",
    "deep": "sh -c \"setsid sh -c 'sleep 1000 & setsid sleep 1000 & wait' & wait\" & wait",
    "ignoring": "trap '' TERM; sleep 1000; sleep 1000",
    "stopped": "setsid sh -c 'kill -STOP $$' & kill -STOP $$; sleep 1000",
    "subreaper": "exec %s -c 'import ctypes, subprocess; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0);"
                 " subprocess.run(\"(setsid sleep 1000 &); sleep 1000; true\", shell=True)'"
                 % sys.executable,
    "runner": "(exec 3<&-; exec $CLAIMD work other --project p --lease 30 -- sleep 1000) & wait",
}
if IS_ROOT:
    WAYS["user"] = "setpriv --reuid 65534 --clear-groups sleep 1000; true"


def guards(runner):
    """The spawner of a runner, and its guards."""
    spawner, = children(runner.process.pid)
    return spawner, children(spawner)


def pipes(runner):
    """How many descriptors of pipes a runner has: one for each job, and some more."""
    folder = "/proc/%d/fd/" % runner.process.pid
    count = 0
    for fd in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            count += os.readlink(folder + fd).startswith("pipe:")
    return count


def without_subreapers():
    """A function that puts a process on a system without child subreapers, such as QEMU 7.2 for single programs."""
    number = {"x86_64": 157, "aarch64": 167}.get(os.uname().machine)
    if number is None:
        raise unittest.SkipTest("the number of prctl(2) is not known for this processor")
    load, equals, give, all_else, einval = 0x20, 0x15, 0x06, 0x7fff0000, 0x00050016
    code = b"".join(struct.pack("=HBBI", *words) for words in (
        (load, 0, 0, 0), (equals, 0, 3, number), (load, 0, 0, 16), (equals, 0, 1, 37),  # PR_GET_CHILD_SUBREAPER
        (give, 0, 0, einval), (give, 0, 0, all_else)))
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    prctl = ctypes.CDLL(None).prctl
    prctl.argtypes = ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong
    if prctl(21, 0, None, 0, 0) < 0:  # PR_GET_SECCOMP
        raise unittest.SkipTest("the system has no seccomp")

    def enter():
        no_new_privileges, seccomp, by_program = 38, 22, 2
        assert buffer and prctl(no_new_privileges, 1, None, 0, 0) == 0
        assert prctl(seccomp, by_program, program, 0, 0) == 0
    return enter


@contextlib.contextmanager
def frozen(pid):
    """The process gets no processor time. Its parent does not see that, and SIGCONT does not end it."""
    seize, interrupt, detach, wall = 0x4206, 0x4207, 17, 0x40000000
    trace = ctypes.CDLL(None, use_errno=True).ptrace
    trace.argtypes = ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p
    if trace(seize, pid, None, None) != 0:
        raise unittest.SkipTest("may not trace: %s" % os.strerror(ctypes.get_errno()))
    trace(interrupt, pid, None, None)
    os.waitpid(pid, wall)
    try:
        yield
    finally:
        trace(detach, pid, None, None)


def fill_spawner_socket(runner):
    """Sends to the spawner of an idle runner until its socket is full. It ignores messages without descriptor."""
    pidfd_getfd, full = 438, False
    process = os.pidfd_open(runner.process.pid)
    for fd in os.listdir("/proc/%d/fd" % runner.process.pid):
        copy = ctypes.CDLL(None).syscall(pidfd_getfd, process, int(fd), 0)
        if copy >= 0 and os.readlink("/proc/self/fd/%d" % copy).startswith("socket:"):
            with socket.socket(fileno=copy) as s, contextlib.suppress(BlockingIOError):
                while s.type == socket.SOCK_SEQPACKET:
                    full = True
                    s.send(b"x", socket.MSG_DONTWAIT)
        elif copy >= 0:
            os.close(copy)
    os.close(process)
    if not full:
        raise unittest.SkipTest("may not take descriptors of another process")


class TreeCase(WorkCase):
    def setUp(self):
        super().setUp()
        cases = "".join("%s) %s ;;\n" % way for way in WAYS.items())
        self.job = self.script(
            "cd %s\nway=$(cat)\nexec 9>$way.lock\n"
            "flock -n 9 && note=alone || note=overlap\n"
            "if [ -e go ]; then echo $note $way; exit 0; fi\n"
            "echo begun $way\ncase $way in\n%sesac\n" % (self.folder, cases))

    def attempt(self, *options):
        """A runner with a first attempt at one message for each way, none of which ends."""
        self.post("x", queue="other")
        self.post(*WAYS)
        runner = self.work("--raw", "--lease", "3", "--parallel", str(len(WAYS)), "--backoff", "0",
                           *options, "q", "--", self.job, CLAIMD=os.path.abspath(CLAIMD))
        for way in WAYS:
            runner.out.containing("begun " + way)
        return runner

    def assert_next_attempts_are_alone(self, deleted=True):
        open(self.path("go"), "w", encoding="ascii").close()
        other = self.work("--raw", "--lease", "3", "--max-jobs", str(len(WAYS)), "q", "--", self.job)
        self.assertEqual(other.wait(), 0, other.err.lines)
        self.assertEqual(sorted(other.out.lines), sorted("alone " + way for way in WAYS))
        if deleted:
            self.assertEqual(self.server.stats("q"), (0, 0, 0))


class Lease(TreeCase):
    """Two attempts at a message never run at the same time."""

    def test_kill_9_of_the_runner(self):
        runner = self.attempt()
        runner.signal(signal.SIGKILL)
        runner.wait()  # all processes of its jobs hold the pipe
        self.assert_next_attempts_are_alone()

    def test_kill_9_of_the_runner_and_its_group(self):
        self.post(*WAYS)
        self.post("x", queue="other")
        process = subprocess.Popen(
            [CLAIMD, "work", "--project", PROJECT, "--raw", "--lease", "3", "--parallel", "20", "q", "--",
             self.job], stdout=subprocess.PIPE, start_new_session=True,
            env=environment(CLAIMD_URL=self.server.url, CLAIMD=os.path.abspath(CLAIMD)))
        with process.stdout:
            for _ in WAYS:
                self.assertIn(b"begun", process.stdout.readline())
            os.killpg(process.pid, signal.SIGKILL)
            self.assertEqual(process.stdout.read(), b"")
        process.wait()
        self.assert_next_attempts_are_alone()

    def test_a_runner_that_is_stopped(self):
        runner = self.attempt()
        runner.signal(signal.SIGSTOP)
        self.assert_next_attempts_are_alone()
        runner.signal(signal.SIGCONT)
        runner.err.containing("ended, because the lease is lost", len(WAYS))
        runner.signal()
        self.assertEqual(runner.wait(), 0)

    def test_a_server_that_hangs(self):
        runner = self.attempt()
        stand_still(self.server)
        runner.err.containing("ended, because the lease is lost", len(WAYS))
        runner.signal()
        self.server.signal(signal.SIGCONT)
        self.assertEqual(runner.wait(), 0)
        self.assert_next_attempts_are_alone()

    def test_guards_that_are_killed(self):
        runner = self.attempt("--max-jobs", str(len(WAYS)))
        _, found = guards(runner)
        self.assertEqual(len(found), len(WAYS))
        for guard in found:
            os.kill(guard, signal.SIGKILL)
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(sum("killed by SIGKILL" in line for line in runner.err.lines), len(WAYS))
        self.assert_next_attempts_are_alone()

    def test_a_killed_spawner_does_not_matter(self):
        runner = self.attempt()
        spawner, found = guards(runner)
        os.kill(spawner, signal.SIGKILL)
        eventually(lambda: is_over(spawner))
        runner.signal()
        time.sleep(0.2)  # an earlier second one counts as the first
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        eventually(lambda: all(is_over(guard) for guard in found))  # only the spawner would wait for them
        self.assert_next_attempts_are_alone()

    def test_a_job_that_renews_its_lease_runs_on(self):
        """A stop that is shorter than the lease ends no job, and the guard gets the renewals."""
        self.post("x")
        runner = self.work("--lease", "3", "--max-jobs", "1", "q", "--",
                           self.script("echo begun; sleep 5; echo done\n"))
        runner.out.containing("begun")
        runner.signal(signal.SIGSTOP)
        time.sleep(0.5)
        runner.signal(signal.SIGCONT)
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(runner.out.lines, ["begun", "done"])
        self.assertEqual(self.server.stats("q"), (0, 0, 0))


class Ends(TreeCase):
    """The end of an attempt ends all its processes, also for the same runner."""

    def test_the_timeout(self):
        runner = self.attempt("--timeout", "1", "--max-jobs", str(len(WAYS)))
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(sum("timed out" in line for line in runner.err.lines), len(WAYS))
        self.assert_next_attempts_are_alone()

    def test_the_end_of_the_grace(self):
        runner = self.attempt("--grace", "1")
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        self.assert_next_attempts_are_alone()

    def test_a_daemon_ends_with_its_command(self):
        """A double fork, a session of its own, and no descriptors."""
        self.post("x")
        daemon = self.script(
            "import os, time\n"
            "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
            "        with open(%r, 'w') as f: f.write(str(os.getpid()))\n"
            "        os.closerange(0, 100)\n        time.sleep(1000)\n    os._exit(0)\n"
            "os.wait()\nwhile not os.path.exists(%r) or not os.path.getsize(%r): time.sleep(0.01)\n"
            % ((self.path("pid"),) * 3), "daemon.py")
        runner = self.work("--max-jobs", "1", "q", "--", sys.executable, daemon)
        self.assertEqual(runner.wait(), 0, runner.err.lines)
        self.assertEqual(self.server.stats("q"), (0, 0, 0))
        with open(self.path("pid"), encoding="ascii") as f:
            self.assertTrue(is_over(int(f.read())))

    def test_a_chain_of_forks_ends(self):
        """Each process forks one, and ends. Some chains at the same time, with a bound."""
        self.post("x")
        chain = self.script(
            "import os\nprint('begun', flush=True)\n"
            "for _ in range(4):\n    if os.fork() == 0:\n        break\nelse:\n    os._exit(0)\n"
            "for _ in range(20000):\n    if os.fork() != 0:\n        os._exit(0)\n    os.setsid()\n"
            "print('through', flush=True)\n", "chain.py")
        runner = self.work("--max-jobs", "1", "q", "--", sys.executable, chain)
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(runner.out.lines, ["begun"])
        self.assertEqual(self.server.stats("q"), (0, 0, 0))

    def test_ctrl_c_reaches_only_the_runner(self):
        """The job ends by itself within the grace."""
        self.post("x")
        os.mkfifo(self.path("pipe"))
        job = self.script("echo begun\nread go <%s\necho done\n" % self.path("pipe"))
        # The terminal drops its last output when the leader of its session ends, so that waits for a line.
        wait = 'trap : INT; "$@"; status=$?; read -r line; exit $status'
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve("/bin/sh", ["sh", "-c", wait, "sh", CLAIMD, "work", "--project", PROJECT, "q",
                                  "--", job], environment(CLAIMD_URL=self.server.url))
        with open(terminal, "r+b", buffering=0) as screen:
            def read_to(word):
                text = b""
                while word not in text:
                    text += screen.read(1000)

            read_to(b"begun")
            screen.write(b"\x03")
            read_to(b"^C")  # the terminal drops its output when it gets Ctrl-C, and then shows that
            with open(self.path("pipe"), "w", encoding="ascii") as f:
                f.write("\n")
            read_to(b"done")
            screen.write(b"\n")
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertEqual(self.server.stats("q"), (0, 0, 0))


class Guards(WorkCase):
    def test_guards_stay_for_later_jobs_and_are_as_many_as_needed(self):
        self.post(*range(5))
        runner = self.work("--parallel", "50", "q", "--", "true")
        self.assert_counts(0, 0, 0)
        spawner, found = guards(runner)
        self.assertLessEqual(len(found), 5)
        self.post(6)
        self.assert_counts(0, 0, 0)
        self.assertEqual(guards(runner), (spawner, found))
        for pid in (spawner, *found):
            with open("/proc/%d/comm" % pid, encoding="ascii") as f:
                self.assertEqual(f.read(), "job-guard\n")
            self.assertEqual(os.getpgid(pid), pid)
            with open("/proc/%d/cmdline" % pid, "rb") as f:
                self.assertRegex(f.read(), rb"^guard *\0work\0--project\0")
        runner.signal()
        self.assertEqual(runner.wait(), 0)

    def test_guards_do_not_stay_stopped(self):
        """The runner ends, and all processes of the job do."""
        self.post(1)
        runner = self.work("--grace", "0", "q", "--", "sh", "-c", "echo begun; sleep 1000; true")
        runner.out.containing("begun")
        spawner, (guard,) = guards(runner)
        os.kill(spawner, signal.SIGSTOP)
        os.kill(guard, signal.SIGSTOP)
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.server.stats("q"), (0, 1, 1))

    def test_an_idle_guard_that_is_killed_is_replaced(self):
        self.post(1)
        runner = self.work("--max-jobs", "2", "q", "--", "echo", "done")
        runner.out.containing("done")
        self.assert_counts(0, 0, 0)
        _, (guard,) = guards(runner)
        os.kill(guard, signal.SIGKILL)
        eventually(lambda: is_over(guard))
        self.post(2)
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(runner.out.lines, ["done"] * 2)
        self.assertEqual(self.server.stats("q"), (0, 0, 0))

    def test_a_job_whose_guard_was_killed_before_it_took_it_is_released_and_is_no_attempt(self):
        """The runner sees the end of a guard when the spawner has reaped it. A job may come before that."""
        self.post(1)
        runner = self.work("--max-jobs", "2", "q", "--", "sh", "-c", "echo $CLAIMD_DELIVERY_COUNT")
        runner.out.containing("1")
        self.parked(1)
        spawner, (guard,) = guards(runner)
        before = pipes(runner)
        with frozen(spawner):
            os.kill(guard, signal.SIGKILL)
            eventually(lambda: is_over(guard))
            self.post(2)
            eventually(lambda: pipes(runner) == before + 1)  # it has sent the job to the guard
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(runner.out.lines, ["1"] * 2)
        runner.err.containing("cannot start now")
        self.assertEqual(self.server.stats("q"), (0, 0, 0))

    def test_a_runner_does_not_start_on_a_system_without_child_subreapers(self):
        process = subprocess.run(
            [CLAIMD, "work", "--project", PROJECT, "q", "--", "true"], preexec_fn=without_subreapers(),
            stderr=subprocess.PIPE, timeout=PATIENCE_S, env=environment(CLAIMD_URL=self.server.url), check=False)
        self.assertEqual(process.stderr, b"claimd work: cannot start: the system has no child subreapers "
                                         b"(prctl(2)), which end all processes of a job\n")
        self.assertEqual(process.returncode, 1)

    def test_a_job_that_no_guard_can_take_is_released_and_is_no_attempt(self):
        runner = self.work("--max-jobs", "1", "q", "--", "sh", "-c", "echo $CLAIMD_DELIVERY_COUNT")
        self.parked(1)
        spawner, _ = guards(runner)
        with frozen(spawner):
            fill_spawner_socket(runner)
            self.post(1)
            runner.err.containing("cannot start now")
            self.assert_counts(0, 1, 1)
            time.sleep(0.5)  # it claims nothing meanwhile
            self.assertEqual(len(runner.err.lines), 1)
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(runner.out.lines, ["1"])
        self.assertEqual(self.server.stats("q"), (0, 0, 0))

    def test_many_jobs_fit_into_a_small_limit_of_descriptors(self):
        """The runner needs more than the soft limit. Its commands keep that."""
        self.post(*range(20))
        self.post(*range(20))
        process = subprocess.run(
            ["prlimit", "--nofile=50:4096", CLAIMD, "work", "--project", PROJECT, "--parallel", "40",
             "--max-jobs", "40", "q", "--", self.script(
                 "echo >>%s\nwhile [ $(wc -l <%s) -lt 40 ]; do sleep 0.05; done\nulimit -n\n"
                 % ((self.path("begun"),) * 2))], stdout=subprocess.PIPE, timeout=PATIENCE_S,
            env=environment(CLAIMD_URL=self.server.url), check=True)
        self.assertEqual(process.stdout, b"50\n" * 40)
        self.assertEqual(self.server.stats("q"), (0, 0, 0))

    def test_a_service_needs_no_guard(self):
        runner = self.work("--http", "http://127.0.0.1:1/", "q")
        self.parked(1)
        self.assertEqual(children(runner.process.pid), [])

    @unittest.skipUnless(IS_ROOT, "needs root, to make a namespace of processes")
    def test_pid_1_with_and_without_proc(self):
        for options in (["--mount-proc"], []):
            with self.subTest(options=options):
                self.post("x")
                job = self.script("(setsid sleep 1000 &); (sleep 1000 &); exec 9>%s; echo done\n"
                                  % self.path("lock"))
                process = subprocess.run(
                    ["unshare", "--fork", "--pid", *options, CLAIMD, "work", "--project", PROJECT,
                     "--max-jobs", "1", "q", "--", job], stdout=subprocess.PIPE, timeout=PATIENCE_S,
                    env=environment(CLAIMD_URL=self.server.url), check=True)
                self.assertEqual(process.stdout, b"done\n")
                self.assertEqual(self.server.stats("q"), (0, 0, 0))

    @unittest.skipUnless(IS_ROOT, "needs root, to make a process of another user")
    def test_a_process_of_another_user_is_named_and_does_not_delay_the_end(self):
        """The runner may not end it: it is not root, and the process is."""
        self.post("x")
        os.chmod(self.folder, 0o755)
        tool = self.path("setsid")
        subprocess.run(["cp", "/usr/bin/setsid", tool], check=True)
        # A program that becomes root, as sudo does.
        helper = self.path("sleeper")
        source = self.path("sleeper.c")
        with open(source, "w", encoding="ascii") as f:
            f.write("#include <unistd.h>\nint main(void) { return setuid(0) || sleep(1000); }\n")
        subprocess.run(["cc", "-o", helper, source], check=True)
        os.chmod(helper, 0o4755)
        job = self.script("%s >&- 2>&- & echo $!\nsleep 0.2\n" % helper)
        runner = subprocess.run(
            ["setpriv", "--reuid", "65534", "--clear-groups", CLAIMD, "work", "--project", PROJECT,
             "--max-jobs", "1", "q", "--", job], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment(CLAIMD_URL=self.server.url), timeout=PATIENCE_S, check=True)
        self.assertIn(b"processes of other users run on", runner.stderr)
        os.kill(int(runner.stdout), signal.SIGKILL)
        self.assertEqual(self.server.stats("q"), (0, 0, 0))


class LateClaim(http.server.BaseHTTPRequestHandler):
    """A server whose response to a claim comes when most of the lease is over."""

    claims, finished = 0, None

    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/finish"):
            type(self).finished = json.loads(body)
            self.respond(200, {"results": [{"id": "m-1", "result": "released"}]})
            return
        type(self).claims += 1
        if self.claims > 1:
            self.respond(204, None)
            return
        time.sleep(2.2)
        self.respond(201, {"messages": [{"id": "m-1", "body": 1, "age": 0, "ttl": 300, "href": "/",
                                         "details": {"delivery_count": 1}}]},
                     ("Location", "/v2/queues/q/claims/c-1"), ("Claim-Number", "1"))

    def respond(self, status, document, *headers):
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        for header in headers:
            self.send_header(*header)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


class Late(WorkCase):
    def test_a_claim_that_comes_late_is_released_and_no_job_starts(self):
        server = http.server.HTTPServer(("127.0.0.1", 0), LateClaim)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(lambda: (server.shutdown(), thread.join(), server.server_close()))
        runner = Runner(["--project", PROJECT, "--lease", "3", "q", "--", "echo", "started"],
                        "http://127.0.0.1:%d" % server.server_port)
        self.addCleanup(runner.end)
        eventually(lambda: LateClaim.finished is not None)
        runner.signal()
        self.assertEqual(runner.wait(), 0, runner.err.lines)
        self.assertEqual(runner.out.lines, [])
        self.assertIn("release", LateClaim.finished, LateClaim.finished)


if __name__ == "__main__":
    unittest.main()
