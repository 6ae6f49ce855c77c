#!/usr/bin/python3
"""claimd run: servers for tests, while a command runs.

    run_test.py CLAIMD
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import CLAIMD, CLIENT_ID, PATIENCE_S, children, environment, eventually  # noqa: E402

OTHER = "11111111-2b9e-11e3-b191-71861300734c"

# Shared by the commands of these tests: requests to the server that they find.
PRELUDE = """
import http.client, json, os, sys, time
def fetch(method, path, body=None, client=%r, url="CLAIMD_URL"):
    server = http.client.HTTPConnection(os.environ[url][7:])
    server.request(method, path, None if body is None else json.dumps(body),
                   {"Client-ID": client, "X-Project-ID": "p", "Content-Type": "application/json"})
    response = server.getresponse()
    text = response.read()
    assert response.status < 300, (response.status, text)
    return json.loads(text) if text else None
def post(queue="jobs", **more):
    return fetch("POST", "/v2/queues/%%s/messages" %% queue,
               {"messages": [{"body": 1, "ttl": 3600}]}, **more)["resources"][0].split("/")[-1]
def claim(queue="jobs", **more):
    return fetch("POST", "/v2/queues/%%s/claims" %% queue, {"ttl": 60, "grace": 60}, **more)
""" % CLIENT_ID


def words(*options, script=None, command=None):
    if script is not None:
        command = ("/usr/bin/python3", "-c", PRELUDE + script)
    return (CLAIMD, "run", *options, "--", *command)


def run(*options, env=None, **more):
    """Its end, of a script that is run by it, or another command."""
    return subprocess.run(words(*options, **more), capture_output=True, text=True, check=False,
                          env=env or environment(), timeout=PATIENCE_S)


def state(pid):
    """Of a process, as ps shows it; Z when there is none."""
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii") as f:
            return f.read().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def is_gone(pid):
    return state(pid) == "Z"


@contextlib.contextmanager
def running(*options, **more):
    """A `claimd run` whose command has said "ready"; ended by force, if it is there still."""
    given = {name: more.pop(name) for name in ("script", "command") if name in more}
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(words(*options, **given), stdout=subprocess.PIPE,
                                   stderr=more.pop("stderr", output), text=True,
                                   env=environment(), **more)
        process.output = lambda: (output.seek(0), output.read())[1]
        try:
            line = process.stdout.readline()
            if line != "ready\n":
                raise RuntimeError("%r, %r" % (line, process.output()))
            process.family = children(process.pid)  # the servers, and the command
            yield process
        finally:
            process.kill()
            process.wait(PATIENCE_S)
            process.stdout.close()  # servers and command have died with it


READY = "print('ready', flush=True)\n"
STAYS = READY + "time.sleep(1000)\n"


class Environment(unittest.TestCase):
    def variables(self, *options, **more):
        done = run(*options, command=("env", "-0"), env=environment(**more))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return dict(line.split("=", 1) for line in done.stdout.split("\0")[:-1])

    def test_it_leads_to_the_server(self):
        found = self.variables(OS_CLOUD="production", OS_TOKEN="secret", CLAIMD_URL="x",
                               CLAIMD_URL_3="y", CLAIMD_MAX_WAIT="7", MINE="1")
        address = re.fullmatch(r"http://(127\.0\.0\.1:\d+)", found["CLAIMD_URL"])[1]
        self.assertEqual(found["OS_AUTH_URL"], "http://%s/identity" % address)
        self.assertEqual({name for name in found if name.startswith("OS_")},
                         {"OS_AUTH_URL", "OS_IDENTITY_API_VERSION", "OS_USERNAME", "OS_PASSWORD",
                          "OS_PROJECT_NAME", "OS_USER_DOMAIN_ID", "OS_PROJECT_DOMAIN_ID",
                          "OS_DOMAIN_ID", "OS_REGION_NAME", "OS_MESSAGE_CLIENT_ID"})
        self.assertEqual({name for name in found if name.startswith("CLAIMD_")},
                         {"CLAIMD_URL", "CLAIMD_MAX_WAIT"})
        self.assertEqual(found["MINE"], "1")

    def test_no_proxy_stands_between_the_command_and_its_server(self):
        for before, after in (({}, ("127.0.0.1", "127.0.0.1")),
                              ({"no_proxy": ""}, ("127.0.0.1", "127.0.0.1")),
                              ({"NO_PROXY": "a,b"}, ("a,b,127.0.0.1", "a,b,127.0.0.1")),
                              ({"no_proxy": "c", "NO_PROXY": "a"},
                               ("c,127.0.0.1", "a,127.0.0.1"))):
            with unittest.mock.patch.dict(os.environ):
                for name in ("no_proxy", "NO_PROXY"):
                    os.environ.pop(name, None)
                found = self.variables(**before)
            self.assertEqual((found["no_proxy"], found["NO_PROXY"]), after, before)

    def test_several_servers_are_numbered(self):
        found = self.variables("--instances", "3")
        urls = [found["CLAIMD_URL_%d" % i] for i in (1, 2, 3)]
        self.assertEqual(len(set(urls)), 3)
        self.assertEqual(found["CLAIMD_URL"], urls[0])
        self.assertNotIn("CLAIMD_URL_4", found)
        self.assertIn("CLAIMD_URL_1", self.variables("--instances=1"))

    def test_the_region_is_that_of_the_server(self):
        found = self.variables("--identity-region", "North")
        self.assertEqual(found["OS_REGION_NAME"], "North")

    def test_options_go_to_the_server(self):
        done = run("--max-claim-ttl=777", "--ci-short", script="""
limits = fetch("GET", "/openapi.json")
print(fetch("GET", "/claimd/clock")["state"], "777" in json.dumps(limits))""")
        self.assertEqual((done.returncode, done.stdout), (0, "running True\n"), done.stderr)

    def test_one_may_stand_in_another_and_start_servers_of_its_own(self):
        done = run(command=(CLAIMD, "run", "--", CLAIMD, "--check-config"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Statuses(unittest.TestCase):
    def test_that_of_the_command_is_passed_on(self):
        for status in (0, 1, 2, 70, 255):
            done = run(command=("sh", "-c", "exit %d" % status))
            self.assertEqual((done.returncode, done.stdout, done.stderr), (status, "", ""))

    def test_one_that_is_killed_is_128_and_the_signal(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
            done = run(command=("sh", "-c", "kill -%d $$" % number))
            self.assertEqual(done.returncode, 128 + number)

    def test_one_that_is_not_there_is_127_and_one_that_cannot_be_run_126(self):
        for command, status in ((("no-such-command",), 127), (("/no/such/command", "x"), 127),
                                (("/etc",), 126), (("/etc/passwd",), 126)):
            done = run(command=command)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertRegex(done.stderr, "^claimd: %s cannot be run: .*\n$" % command[0])

    def test_wrong_words_are_reported(self):
        for given, said in ((("run",), "needs a command"), (("run", "--"), "needs a command"),
                            (("run", "true"), "needs a command"),
                            (("run", "true", "--", "true"), "true is not an option"),
                            (("run", "--instances", "--", "true"), "--instances needs a value"),
                            (("run", "--instances", "0", "--", "true"), "between 1 and 64"),
                            (("run", "--instances", "65", "--", "true"), "between 1 and 64"),
                            (("run", "--instances=x", "--", "true"), "between 1 and 64"),
                            (("run", "--log", "/no/such/file", "--", "true"), "cannot be opened"),
                            (("run", "--max-wait", "x", "--", "true"), "--max-wait"),
                            (("run", "--listen", "127.0.0.1:8888", "--", "true"), "--listen"),
                            (("run", "--ready-fd=1", "--", "true"), "--ready-fd"),
                            (("run", "--ci=false", "--", "true"), "--ci"),
                            (("run", "--print-config", "--", "true"), "only options that configure a server"),
                            (("run", "--instances", "2", "--journal", "x", "--", "true"),
                             "--journal")):
            done = subprocess.run((CLAIMD, *given), capture_output=True, text=True, check=False,
                                  env=environment(), timeout=PATIENCE_S)
            self.assertEqual((done.returncode, done.stdout), (2, ""), given)
            self.assertIn(said, done.stderr)

    def test_help_needs_no_command(self):
        for given in (("-h",), ("--help",), ("-h", "--", "false")):
            done = subprocess.run((CLAIMD, "run", *given), capture_output=True, text=True,
                                  check=False, env=environment(), timeout=PATIENCE_S)
            self.assertEqual((done.returncode, done.stderr), (0, ""), given)
            self.assertIn("Usage: claimd run [OPTION]... -- CMD", done.stdout)

    def test_words_behind_the_hyphens_are_the_commands(self):
        done = run(command=("echo", "--help", "--", "--instances"))
        self.assertEqual((done.returncode, done.stdout), (0, "--help -- --instances\n"))

    def test_a_server_that_does_not_start_is_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("--journal", os.path.join(folder, "no", "journal"), command=("true",))
            self.assertEqual(done.returncode, 70, done.stderr)
            self.assertIn("a server did not start", done.stderr)
            self.assertIn("cannot be opened", done.stderr)


class Ends(unittest.TestCase):
    def assert_gone(self, family):
        for pid in family:
            eventually(lambda pid=pid: is_gone(pid))

    def test_no_process_is_left_when_the_command_ends(self):
        with running("--instances", "3", script=READY + "sys.stdin.read()",
                     stdin=subprocess.PIPE) as process:
            self.assertEqual(len(process.family), 4)
            process.stdin.close()
            self.assertEqual(process.wait(PATIENCE_S), 0)
            self.assert_gone(process.family)

    def test_no_process_is_left_after_a_kill(self):
        for script in (STAYS, "import signal\nsignal.signal(15, signal.SIG_IGN)\n" + STAYS):
            with running("--instances", "2", script=script) as process:
                self.assertEqual(len(process.family), 3)
                process.kill()
                self.assertEqual(process.wait(PATIENCE_S), -signal.SIGKILL)
                self.assert_gone(process.family)

    def test_it_dies_with_its_parent(self):
        for script in (STAYS, "import signal\nsignal.signal(15, signal.SIG_IGN)\n" + STAYS):
            parent = subprocess.Popen(
                ("/usr/bin/python3", "-c", "import subprocess, sys, time\n"
                 "p = subprocess.Popen(sys.argv[1:])\nprint(p.pid, flush=True)\n"
                 "time.sleep(1000)", *words(script=script)),
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment())
            lines = {parent.stdout.readline(), parent.stdout.readline()}
            lines.remove("ready\n")
            own = int(lines.pop())
            family = children(own)
            self.assertEqual(len(family), 2)
            parent.kill()
            parent.wait()
            parent.stdout.close()
            self.assert_gone([own, *family])

    def test_a_thread_of_its_parent_may_end(self):
        started = []

        def start():
            started.append(subprocess.Popen(words(script=READY + "sys.stdin.read()"),
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            text=True, env=environment()))

        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
        process, = started
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0)

    def test_background_processes_of_the_command_do_not_block_the_end(self):
        script = """
ready, done = os.pipe()
if os.fork() == 0:
    os.setsid()
    server = http.client.HTTPConnection(os.environ["CLAIMD_URL"][7:])
    server.request("GET", "/livez")
    server.getresponse().read()
    print(os.getpid(), flush=True)
    os.write(done, b"x")
    time.sleep(1000)
os.close(done)
os.read(ready, 1)
"""
        process = subprocess.Popen(words(script=script), stdout=subprocess.PIPE, text=True,
                                   env=environment())
        left = int(process.stdout.readline())
        try:
            self.assertEqual(process.wait(PATIENCE_S), 0)
            self.assertFalse(is_gone(left))  # it is its own master
        finally:
            os.kill(left, signal.SIGKILL)
            process.stdout.close()

    def test_a_server_that_dies_is_reported(self):
        with running("--fail-on-leak", script=READY + "sys.stdin.read()",
                     stdin=subprocess.PIPE) as process:
            os.kill(process.family[0], signal.SIGKILL)
            eventually(lambda: "was killed by signal 9" in process.output())
            self.assertIsNone(process.poll())  # the command goes on
            process.stdin.close()
            self.assertEqual(process.wait(PATIENCE_S), 70)

    def test_it_can_be_ended_before_the_command_begins(self):
        for number in (signal.SIGTERM, signal.SIGINT) * 5:
            process = subprocess.Popen(words("--instances", "8", command=("sleep", "1000")),
                                       env=environment(), stderr=subprocess.DEVNULL)
            process.send_signal(number)  # wherever it is by now
            self.assertIn(process.wait(PATIENCE_S), (128 + number, -number))


class Reports(unittest.TestCase):
    """A signal ends it while it reports. No process has to wait for that."""

    def await_report(self, process):
        """The command has ended, and another process of the family has begun."""
        eventually(lambda: is_gone(process.family[-1]) and
                   set(children(process.pid)) - set(process.family))
        process.family = children(process.pid)

    def assert_ended(self, process, number):
        process.send_signal(number)
        self.assertEqual(process.wait(PATIENCE_S), 128 + number)
        for pid in process.family:
            eventually(lambda pid=pid: is_gone(pid))

    def test_it_ends_while_its_output_is_unread(self):
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        self.addCleanup(os.close, writing)
        os.set_blocking(writing, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writing, bytes(4096))
        os.set_blocking(writing, True)
        for number in (signal.SIGTERM, signal.SIGINT):
            with running(command=("/usr/bin/python3", "-c", PRELUDE + "post()\n" + READY +
                                  "sys.stdin.read()"), stdin=subprocess.PIPE,
                         stderr=writing) as process:
                process.stdin.close()
                self.await_report(process)
                self.assert_ended(process, number)

    def test_it_can_be_ended_while_a_server_does_not_respond(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with running("--fail-on-leak", script=READY + "sys.stdin.read()",
                         stdin=subprocess.PIPE) as process:
                os.kill(process.family[0], signal.SIGSTOP)
                process.stdin.close()
                self.await_report(process)
                self.assert_ended(process, number)

    def test_it_dies_with_its_parent_while_a_server_does_not_respond(self):
        parent = subprocess.Popen(
            ("/usr/bin/python3", "-c", "import subprocess, sys, time\n"
             "p = subprocess.Popen(sys.argv[1:])\nprint(p.pid, flush=True)\n"
             "time.sleep(1000)", *words(script="sys.stdin.read()")),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=environment())
        own = int(parent.stdout.readline())
        eventually(lambda: len(children(own)) == 2)
        server, command = children(own)
        os.kill(server, signal.SIGSTOP)
        parent.stdin.close()
        eventually(lambda: is_gone(command))
        parent.kill()
        parent.wait()
        parent.stdout.close()
        for pid in (own, server):
            eventually(lambda pid=pid: is_gone(pid))


class Signals(unittest.TestCase):
    NAMES = ("HUP", "INT", "QUIT", "USR1", "USR2", "WINCH", "TERM")

    def test_they_are_passed_on(self):
        # print() must not be called again while it runs.
        script = """
import os, signal
for name in %r:
    signal.signal(getattr(signal, "SIG" + name),
                  lambda number, _: os.write(1, signal.Signals(number).name.encode() + b"\\n"))
print("ready", flush=True)
while True:
    signal.pause()
""" % (self.NAMES,)
        with running(script=script) as process:
            for name in self.NAMES:
                process.send_signal(getattr(signal, "SIG" + name))
                self.assertEqual(process.stdout.readline(), "SIG%s\n" % name)
            self.assertIsNone(process.poll())

    def test_a_signal_ends_the_command(self):
        with running(script=STAYS) as process:
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(PATIENCE_S), 128 + signal.SIGTERM)
        with running(script="import signal\nsignal.signal(15, lambda *_: sys.exit(7))\n"
                     + STAYS) as process:
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(PATIENCE_S), 7)

    def test_a_command_that_ignores_one_goes_on_with_its_server(self):
        with running(script="import signal\nsignal.signal(15, signal.SIG_IGN)\n" + READY
                     + "sys.stdin.read()\nfetch('GET', '/v2/queues')", stdin=subprocess.PIPE) as process:
            process.send_signal(signal.SIGTERM)
            process.stdin.close()
            self.assertEqual(process.wait(PATIENCE_S), 0, process.output())

    def test_signals_to_the_whole_group_leave_the_server(self):
        script = ("import signal, time\ngot = []\nsignal.signal(2, lambda *_: got.append(1))\n"
                  + READY + "while not got:\n    time.sleep(0.01)\n"
                  "print(fetch('GET', '/v2/queues')['queues'], flush=True)\n"
                  "while True: signal.pause()")
        with running(script=script, start_new_session=True) as process:
            os.killpg(process.pid, signal.SIGINT)  # which the command gets once or twice
            self.assertEqual(process.stdout.readline(), "[]\n")

    def test_it_stops_and_goes_on_with_the_command(self):
        with running(script=READY + "sys.stdin.read()", stdin=subprocess.PIPE,
                     preexec_fn=os.setpgrp) as process:
            server, command = process.family
            process.send_signal(signal.SIGTSTP)
            for pid in (command, process.pid):
                eventually(lambda pid=pid: state(pid) == "T")
            self.assertNotEqual(state(server), "T")
            process.send_signal(signal.SIGCONT)
            for pid in (command, process.pid):
                eventually(lambda pid=pid: state(pid) != "T")
            os.kill(command, signal.SIGSTOP)  # a debugger: none of its business
            eventually(lambda: state(command) == "T")
            self.assertNotEqual(state(process.pid), "T")
            os.kill(command, signal.SIGCONT)
            process.stdin.close()
            self.assertEqual(process.wait(PATIENCE_S), 0)

    def test_one_that_was_ignored_before_is_ignored_by_the_command(self):
        done = subprocess.run(("sh", "-c", 'trap "" HUP; exec "$@"', "sh", *words(
            script="import signal\nprint(signal.getsignal(1) == signal.SIG_IGN, "
                   "signal.pthread_sigmask(0, []))")), capture_output=True, text=True,
            check=False, env=environment(), timeout=PATIENCE_S)
        self.assertEqual(done.stdout, "True set()\n", done.stderr)


class Output(unittest.TestCase):
    def test_a_lot_of_it_costs_nothing(self):
        with tempfile.NamedTemporaryFile() as out:
            done = subprocess.run(words(command=("readlink", "/proc/self/fd/1")), stdout=out,
                                  env=environment(), timeout=PATIENCE_S, check=False)
            self.assertEqual(done.returncode, 0)
            with open(out.name, encoding="utf-8") as f:
                self.assertEqual(f.read(), out.name + "\n")  # it goes through no other process
        done = subprocess.run(words(command=("head", "-c", "1G", "/dev/zero")), check=False,
                              stdout=subprocess.DEVNULL, env=environment(), timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0)

    def test_unread_output_does_not_block(self):
        reader, writer = os.pipe()
        os.close(reader)
        process = subprocess.Popen(words("--fail-on-leak", script="post()"), env=environment(),
                                   stderr=writer)
        os.close(writer)
        self.assertEqual(process.wait(PATIENCE_S), 1)

    def test_the_log_goes_to_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "log")
            for _ in range(2):
                done = run("--log", path, "--access-log", "--instances=2", command=("true",))
                self.assertEqual((done.returncode, done.stderr), (0, ""))
            with open(path, encoding="utf-8") as f:
                log = f.read()
            self.assertEqual(log.count(" started "), 4)
            self.assertIn("path=/claimd/leaks", log)

    def test_without_one_there_are_only_warnings(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("--max-memory", "1M", script="""
try:
    for _ in range(20):
        fetch("POST", "/v2/queues/jobs/messages", {"messages": [{"body": "x" * 200000}]})
except AssertionError:
    pass""", env=environment(TMPDIR=folder))
            self.assertEqual(done.returncode, 0)
            self.assertIn(" warn refusing_requests ", done.stderr)
            self.assertNotIn(" info ", done.stderr)

    def test_a_supervisor_gets_nothing_from_servers(self):
        with tempfile.TemporaryDirectory() as folder, \
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
            path = os.path.join(folder, "notify")
            supervisor.bind(path)
            done = run(command=("true",), env=environment(NOTIFY_SOCKET=path))
            self.assertEqual(done.returncode, 0)
            supervisor.setblocking(False)
            with self.assertRaises(BlockingIOError):
                supervisor.recv(1000)


class Leaks(unittest.TestCase):
    def leaks(self, script, *options, status=0):
        done = run(*options, script=script)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout.split(), done.stderr.splitlines()

    def test_nothing_leaks_where_all_is_done(self):
        self.assertEqual(self.leaks("""
post()
got = claim()["messages"][0]
fetch("DELETE", got["href"])
post("seen")
fetch("GET", "/v2/queues/seen/messages?echo=true")
""", "--fail-on-leak"), ([], []))

    def test_a_claim_that_is_neither_finished_nor_released(self):
        (claimed,), lines = self.leaks("""
post()
post()
print(claim(client=%r)["messages"][0]["href"].split("=")[-1])""" % OTHER)
        self.assertRegex(lines[0], r"^claimd: leaked: claim %s of 2 messages in queue jobs "
                         r"\(project p\), neither finished nor released, claimed by %s at "
                         r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$" % (claimed, OTHER))
        self.assertEqual(lines[1:], ["claimd: 1 leak: 1 claim, 0 messages never read, "
                                     "0 dead letters"])

    def test_they_fail_a_command_that_has_succeeded(self):
        self.leaks("post()", "--fail-on-leak", status=1)
        _, lines = self.leaks("post()\nsys.exit(9)", "--fail-on-leak", status=9)
        self.assertEqual(len(lines), 2)

    def test_a_claim_that_a_later_test_lets_expire(self):
        """The first test forgets its claim. A later one moves the clock by a minute, gets the message
        and finishes it. Nothing is left at the end."""
        (claimed,), lines = self.leaks("""
post()
print(claim()["messages"][0]["href"].split("=")[-1])
fetch("POST", "/claimd/clock/advance", {"seconds": 60})
fetch("DELETE", claim(client=%r)["messages"][0]["href"])
fetch("GET", "/claimd/expect?queue=jobs&messages=0")
""" % OTHER, "--fail-on-leak", status=1)
        self.assertRegex(lines[0], r"^claimd: leaked: claim %s of 1 message in queue jobs "
                         r"\(project p\), neither finished nor released, claimed by %s at \S+Z, "
                         r"expired at \S+Z$" % (claimed, CLIENT_ID))
        self.assertEqual(lines[1:], [
            "claimd: 1 leak: 1 claim, 0 messages never read, 0 dead letters",
            "claimd: If a test lets leases or messages expire on purpose, it moves the clock with "
            '"may_expire": true, and names its project in X-Project-ID'])

    def test_a_claim_that_expires_on_purpose(self):
        self.assertEqual(self.leaks("""
post()
claim()
fetch("POST", "/claimd/clock/advance", {"seconds": 60, "may_expire": True})
fetch("DELETE", claim()["messages"][0]["href"])
post("short")
fetch("POST", "/claimd/clock/advance", {"seconds": 3600, "may_expire": True})
""", "--fail-on-leak"), ([], []))

    def test_a_claim_that_expires_while_a_later_test_runs(self):
        _, lines = self.leaks("""
post()
fetch("POST", "/v2/queues/jobs/claims", {"ttl": 1, "grace": 60})
fetch("GET", "/claimd/expect?queue=jobs&claimed=0&wait=20")
fetch("DELETE", claim()["messages"][0]["href"])
""", "--ci-short", "--fail-on-leak", status=1)
        self.assertIn("neither finished nor released", lines[0])
        self.assertRegex(lines[0], ", expired at ")

    def test_an_unread_message_and_a_claim_that_a_reset_deletes(self):
        _, lines = self.leaks("""
post()
claim()
post("unread")
fetch("POST", "/claimd/reset")
""", "--fail-on-leak", status=1)
        for line in lines[:2]:
            self.assertRegex(line, r"^claimd: leaked: .* at \S+Z, deleted by a reset at \S+Z$")
        self.assertEqual(lines[2:], ["claimd: 2 leaks: 1 claim, 1 message never read, 0 dead letters"])

    def test_a_reset_may_forget_what_leaked(self):
        self.assertEqual(self.leaks("""
post()
claim()
fetch("POST", "/claimd/clock/advance", {"seconds": 60})
post()
fetch("POST", "/claimd/reset?leaks=forget")
""", "--fail-on-leak"), ([], []))

    def test_leaks_of_each_server_are_reported(self):
        _, lines = self.leaks("""
post(url="CLAIMD_URL_1")
post(url="CLAIMD_URL_2")""", "--instances", "2", "--fail-on-leak", status=1)
        self.assertRegex(lines[0], r" \(instance 1\)$")
        self.assertRegex(lines[1], r" \(instance 2\)$")
        self.assertEqual(lines[2:], ["claimd: 2 leaks: 0 claims, 2 messages never read, "
                                     "0 dead letters"])

    def test_many_are_counted_and_some_are_named(self):
        _, lines = self.leaks("""
for _ in range(150):
    fetch("POST", "/v2/queues/jobs/messages", {"messages": 20 * [{"body": 1, "ttl": 3600}]})""")
        self.assertEqual(len(lines), 101)
        self.assertEqual(lines[-1], "claimd: 3000 leaks: 0 claims, 3000 messages never read, "
                         "0 dead letters")

    def test_a_server_that_denies_its_leaks_is_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            tokens = os.path.join(folder, "tokens")
            with open(tokens, "w", encoding="ascii"):
                os.chmod(tokens, 0o600)
            for options, status in (((), 0), (("--fail-on-leak",), 70)):
                done = run("--auth", "tokens", "--tokens", tokens, "--identity-stub=false",
                           *options, command=("true",))
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn("did not report its leaks", done.stderr)

    def test_a_journal_is_kept_for_the_next_one(self):
        with tempfile.TemporaryDirectory() as folder:
            journal = os.path.join(folder, "journal")
            (posted,), _ = self.leaks("print(post())", "--journal", journal)
            (found,), lines = self.leaks("""
print(fetch("GET", "/v2/queues/jobs/messages?echo=true")["messages"][0]["id"])""",
                                         "--journal", journal)
            self.assertEqual((found, lines), (posted, []))


if __name__ == "__main__":
    unittest.main()
