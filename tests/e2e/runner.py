"""Shared by the end-to-end tests of `claimd work`: a runner, a queue to look at, and a server that misbehaves.

    class Example(WorkCase):
        def test_success_deletes(self):
            self.post(1)
            self.assertEqual(self.work("--max-jobs", "1", "q", "--", "true").wait(), 0)
            self.assertEqual(self.server.stats("q"), (0, 0, 0))
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

from harness import CLAIMD, PATIENCE_S, Server, environment, eventually

# Short lives, so that a test can see their ends.
OPTIONS = ("--min-message-ttl", "1", "--min-claim-ttl", "1", "--min-claim-grace", "0")
PROJECT = "p"
QUEUE = "/v2/queues/q"


class Lines:
    """The lines of a pipe, read as they come."""

    def __init__(self, pipe, reading=True):
        self.pipe, self.lines, self.changed, self.over = pipe, [], threading.Condition(), False
        self.thread = threading.Thread(target=self.read)
        if reading:
            self.thread.start()

    def read(self):
        for line in self.pipe:
            with self.changed:
                self.lines.append(line.decode(errors="replace").rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.over = True
            self.changed.notify_all()

    def containing(self, part, count=1):
        """Waits for this number of lines with the part, and returns the last of them."""
        def found():
            return [line for line in self.lines if part in line]
        with self.changed:
            self.changed.wait_for(lambda: len(found()) >= count or self.over, PATIENCE_S)
            if len(found()) < count:
                raise AssertionError("%d lines with %r expected: %r" % (count, part, self.lines))
            return found()[count - 1]

    def close(self):
        if self.thread.ident is not None:
            self.thread.join(PATIENCE_S)
        self.pipe.close()


def is_over(pid):
    """Has the process ended? PID 1 of a container may never reap it."""
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii") as f:
            return f.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def has_subreapers():
    """False under some emulators of user programs (qemu 7.2)."""
    get_child_subreaper = 37
    return ctypes.CDLL(None).prctl(get_child_subreaper, ctypes.byref(ctypes.c_int())) == 0


class Runner:
    """A `claimd work` process."""

    def __init__(self, arguments, url, stdout=subprocess.PIPE, reading=True, **variables):
        if not has_subreapers():
            raise unittest.SkipTest("the system has no child subreapers, which claimd work needs")
        self.process = subprocess.Popen(
            [CLAIMD, "work", *arguments], stdin=subprocess.DEVNULL, stdout=stdout,
            stderr=subprocess.PIPE, env=environment(CLAIMD_URL=url, **variables))
        self.out = None if stdout != subprocess.PIPE else Lines(self.process.stdout)
        self.err = Lines(self.process.stderr, reading)

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self):
        """The exit status; all that it wrote is read then."""
        status = self.process.wait(PATIENCE_S)
        for lines in (self.out, self.err):
            if lines is not None:
                lines.close()
        return status

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.wait()


class WorkCase(unittest.TestCase):
    """Each test has a server with a journal, a directory of its own, and the queue `q` of the project `p`."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="claimd-work-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.server = None
        self.addCleanup(self.crash)
        self.start()

    def start(self, *options, **more):
        self.server = Server("--journal", os.path.join(self.folder, "journal"), *OPTIONS, *options,
                             **more)

    def crash(self):
        """Kills the server, if there is one."""
        if self.server is None:
            return
        self.server.process.kill()
        self.server.wait()
        self.server = None

    def path(self, name):
        return os.path.join(self.folder, name)

    def script(self, text, name="job"):
        """The path of a shell script, as a command."""
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return path

    def work(self, *arguments, **more):
        arguments = ("--project", PROJECT, *arguments)
        runner = Runner(arguments, more.pop("url", None) or self.server.url, **more)
        self.addCleanup(runner.end)
        return runner

    def fetch(self, method, path, document=None, status=None, headers=()):
        body = None if document is None else json.dumps(document).encode()
        response = self.server.fetch(method, path, body, headers=headers)
        if status is not None:
            self.assertEqual(response.status, status, response)
        return json.loads(response.body) if response.body else None

    def queue(self, **metadata):
        self.fetch("PUT", QUEUE, {"_" + name: value for name, value in metadata.items()}, 201)

    def post(self, *bodies, queue="q"):
        """The ids of the posted messages."""
        found = self.fetch("POST", "/v2/queues/%s/messages" % queue,
                           {"messages": [{"body": body, "ttl": 3600} for body in bodies]}, 201)
        return [path.rpartition("/")[2] for path in found["resources"]]

    def details(self, message, queue="q"):
        return self.fetch("GET", "/v2/queues/%s/messages/%s" % (queue, message), None, 200,
                          ("Prefer: details",))["details"]

    def messages(self, queue="q"):
        """The messages of a queue, with their details."""
        return self.fetch("GET", "/v2/queues/%s/messages?echo=true&include_claimed=true"
                          "&include_delayed=true" % queue, None, 200, ("Prefer: details",))["messages"]

    def parked(self, count):
        """Waits until so many requests wait for a message."""
        def now():
            text = self.server.fetch("GET", "/metrics").body.decode()
            line = next(line for line in text.splitlines()
                        if line.startswith('claimd_http_connections{phase="parked"}'))
            return int(line.split()[1])
        eventually(lambda: now() == count)

    def assert_counts(self, claimed, free, total, queue="q"):
        eventually(lambda: self.server.stats(queue) == (claimed, free, total))
