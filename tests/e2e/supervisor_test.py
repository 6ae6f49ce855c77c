#!/usr/bin/python3
"""The notifications of claimd to its supervisor, on the socket that NOTIFY_SOCKET names (sd_notify).

    supervisor_test.py CLAIMD
"""

import os
import resource
import signal
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import CLAIMD, PATIENCE_S, Server, environment, post  # noqa: E402
from journalled import FRAME_HEAD_BYTES, OPTIONS, JournalCase, flip, frames  # noqa: E402


def open_files(pid):
    """The names of the files that the process has open."""
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            yield os.readlink("/proc/%d/fd/%s" % (pid, fd))
        except FileNotFoundError:
            pass  # closed meanwhile


class Supervised(JournalCase):
    """The process that starts claimd listens at a path, unless the test says otherwise."""

    def setUp(self):
        super().setUp()
        self.ear = None
        self.more = {}
        self.listen_at(os.path.join(self.folder, "notify"))

    def listen_at(self, name):
        if self.ear is not None:
            self.ear.close()
        self.name = name
        self.ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.ear.settimeout(PATIENCE_S)
        self.ear.bind(name.replace("@", "\0", 1) if name[0] == "@" else name)
        self.addCleanup(self.ear.close)

    def environment(self):
        return environment(NOTIFY_SOCKET=self.name, **self.more)

    def start(self, *options, path=None, **more):
        self.server = Server("--journal", path or self.path, *OPTIONS, *options,
                             env=self.environment(), **more)
        return self.server

    def receive(self):
        """The next message, as a dictionary; it may yet have to come."""
        lines = self.ear.recv(4096).decode().split("\n")
        return dict(line.split("=", 1) for line in lines)

    def received(self):
        """All that have come."""
        found = []
        self.ear.setblocking(False)
        try:
            while True:
                found.append(self.receive())
        except BlockingIOError:
            pass
        self.ear.settimeout(PATIENCE_S)
        return found

    def assert_refused(self, status, part):
        line = self.refused(status, part, popen={"env": self.environment()})
        received = self.received()
        self.assertEqual(received[-1], {"STATUS": line[len("claimd: "):]})
        self.assertEqual([message for message in received if "READY" in message], [])
        return received


class Notices(Supervised):
    def test_it_is_ready_and_it_stops(self):
        for options in ((), ("--journal", "none")):
            server = self.start(*options)
            *before, ready = self.received()  # it has said that it listens: all has come
            where = server.ready.removeprefix("claimd ").strip()
            self.assertEqual(ready, {"READY": "1", "STATUS": where})
            self.assertEqual(len(before), 0 if options else 1)
            self.stop()
            self.assertEqual(self.received(), [
                {"STOPPING": "1", "STATUS": "draining, for 8 s at most"}])

    def test_it_logs_every_address_where_it_listens(self):
        server = self.start(listen="127.0.0.1:0,metrics:127.0.0.1:0")
        lines = [server.ready, server.process.stdout.readline()]
        places = [line.removeprefix("claimd listening on ").strip() for line in lines]
        self.assertEqual(self.received()[-1]["STATUS"], "listening on " + ", ".join(places))
        self.assertEqual(len(set(places)), 2)

    def test_it_listens_when_it_says_so_and_the_descriptor_comes_after(self):
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        self.start("--ready-fd", str(writing), pass_fds=[writing])
        os.close(writing)
        self.assertIn(b"listening", os.read(reading, 1000))
        self.assertEqual(self.received()[-1]["READY"], "1")
        self.assertEqual(self.server.fetch("GET", "/v2/ping").status, 204)


class Reloads(Supervised):
    def reload(self):
        """The notifications of a SIGHUP."""
        self.received()
        self.server.process.send_signal(signal.SIGHUP)
        begun = self.receive()
        self.assertEqual((begun["RELOADING"], begun["STATUS"]), ("1", "reloading"))
        # systemd distinguishes two reloads by the time.
        self.assertLessEqual(int(begun["MONOTONIC_USEC"]), time.monotonic_ns() // 1000)
        over = self.receive()
        self.assertEqual(over.pop("READY"), "1")
        return over

    def listening(self):
        return {"STATUS": self.server.ready.removeprefix("claimd ").strip()}

    def test_a_reload_begins_and_ends_and_reports_errors(self):
        tokens = os.path.join(self.folder, "tokens")
        open(tokens, "w", encoding="utf-8").close()
        os.chmod(tokens, 0o640)
        self.start("--auth", "tokens", "--tokens", tokens)
        self.assertEqual(self.reload(), self.listening())
        with open(tokens, "w", encoding="utf-8") as f:
            f.write("this is no token\n")
        self.assertTrue(self.reload()["STATUS"].startswith("not reloaded: tokens: %s:1: " % tokens))
        open(tokens, "w", encoding="utf-8").close()
        self.assertEqual(self.reload(), self.listening())

    def test_a_reload_in_the_midst_of_maintenance_does_not_hide_it(self):
        self.start()
        self.received()
        self.server.process.send_signal(signal.SIGUSR1)
        maintenance = {"STATUS": "maintenance: posts are refused"}
        self.assertEqual(self.receive(), maintenance)
        self.assertEqual(self.reload(), maintenance)


class Watchdog(Supervised):
    def test_an_idle_server_notifies_the_watchdog(self):
        self.more = {"WATCHDOG_USEC": "200000"}
        self.start("--journal", "none")
        while "READY" not in self.receive():
            continue
        for _ in range(5):
            self.assertEqual(self.receive(), {"WATCHDOG": "1"})

    def test_a_server_that_stands_still_says_nothing(self):
        """All of its threads do: which of them hangs is a matter of unit/main/watchdog."""
        self.more = {"WATCHDOG_USEC": "100000"}
        self.start("--journal", "none")
        while "WATCHDOG" not in self.receive():
            continue
        self.server.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.server.process.pid, os.WSTOPPED | os.WNOWAIT)
        self.received()
        time.sleep(0.5)
        self.assertEqual(self.received(), [])
        self.server.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.receive(), {"WATCHDOG": "1"})


class Replays(Supervised):
    def fill(self, posts):
        self.start()
        body = b'{"messages":[%s]}' % b",".join([b'{"body":1}'] * 20_000)
        for _ in range(posts):
            response = self.server.fetch("POST", "/v2/queues/q/messages", body)
            self.assertEqual(response.status, 201, response)
        self.crash()
        self.received()

    def test_a_replay_comes_before_it_is_ready(self):
        self.fill(posts=1)
        self.start()
        replaying, ready = self.received()
        self.assertEqual(replaying["STATUS"], "replaying the journal")
        self.assertGreaterEqual(int(replaying["EXTEND_TIMEOUT_USEC"]), 60_000_000)
        self.assertEqual(ready["READY"], "1")
        self.assertEqual(self.fetch("GET", "q/stats", status=200)["messages"]["total"], 20_000)

    def progress(self):
        """The notifications of a replay that was stopped for a second; None: it was not stopped.

        claimd runs on the processor of the test and yields to it, so that the test sees claimd
        open the first segment and stops it before the replay ends, on a busy machine too.
        """
        processors = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(processors)})
        self.addCleanup(os.sched_setaffinity, 0, processors)
        process = subprocess.Popen([CLAIMD, "--journal", self.path, "--listen", "127.0.0.1:0"],
                                   env=self.environment(), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, preexec_fn=lambda: os.nice(19))
        self.assertEqual(self.receive()["STATUS"], "replaying the journal")
        while not any(name.endswith(".log") for name in open_files(process.pid)):
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.1)
        process.send_signal(signal.SIGCONT)
        message = self.receive()
        process.kill()
        process.wait()
        return message if "READY" not in message else None

    def test_a_long_replay_says_how_far_it_is(self):
        """The test makes the replay long: it stops claimd meanwhile."""
        self.fill(posts=10)
        for _ in range(10):
            message = self.progress()
            if message is not None:
                break
        self.assertIsNotNone(message)
        self.assertRegex(message["STATUS"],
                         r"^replaying the journal: segment \d+ of \d+, \d+ messages, \d+ % read, "
                         r"about \d+ s left$")
        self.assertGreaterEqual(int(message["EXTEND_TIMEOUT_USEC"]), 60_000_000)


class Failures(Supervised):
    def test_a_damaged_journal(self):
        self.start()
        for number in range(3):
            self.post("q", number)
        self.crash()
        self.received()
        segment = self.segments()[0]
        offset, _ = frames(segment)[-2]
        flip(segment, offset + FRAME_HEAD_BYTES)
        received = self.assert_refused(3, "damaged")
        self.assertEqual(received[0]["STATUS"], "replaying the journal")

    def test_a_journal_that_fails(self):
        """No file may grow any more, which no disk of ours would say."""
        # Python ignores the signal for that, and so does what it starts then.
        self.start(restore_signals=False)
        self.received()
        self.post("q", "kept")
        self.await_seal()  # which would fail before the post does
        resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE, (0, 0))
        with self.server.connect() as client:
            client.send(post("q"))
            self.assertEqual(client.rest(), b"")
        self.assertEqual(self.server.wait(), 4)
        self.server = None
        message, = self.received()
        self.assertEqual(message["ERRNO"], "27")  # EFBIG
        self.assertRegex(message["STATUS"], "^the journal cannot (write|seal): ")


if __name__ == "__main__":
    unittest.main()
