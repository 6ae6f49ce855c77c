"""A claimd (or testd) process for tests in Python: start it, find its address, stop it."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

PATIENCE_S = 60  # no test waits longer than this for anything
READY = re.compile(r"^claimd listening on (?:https?://(.*):(\d+)|unix:(.*))$")


def environment(**variables):
    """Ours without a tester's own options of claimd, and with these variables.

    The search for leaks at the end of a process takes as long as the rest of a command (AddressSanitizer),
    so only servers are searched (Daemon).
    """
    clean = {k: v for k, v in os.environ.items() if not k.startswith("CLAIMD_")}
    clean.setdefault("ASAN_OPTIONS", "detect_leaks=0")
    clean.update(variables)
    return clean


def eventually(is_so, what="it is true", patience=PATIENCE_S):
    """Waits until is_so() is true, and returns the result: for a process that does its work in its own time."""
    deadline = time.monotonic() + patience
    while not (result := is_so()):
        if time.monotonic() > deadline:
            raise AssertionError("not in %g s: %s" % (patience, what))
        time.sleep(0.02)
    return result


def free_port():
    """A port of the loopback on which no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


class Daemon:
    """A running server, by default on a free port of the loopback; a context manager.

    Leaving the context sends SIGTERM and insists that the server ends with status 0, so
    every test that starts a server also tests that it stops (and, in a sanitizer build,
    that it leaves nothing behind).
    """

    def __init__(self, program, *options, listen="127.0.0.1:0", env=None, **popen):
        command = [program, *options]
        options_of_asan = os.environ.get("ASAN_OPTIONS", "detect_leaks=1")
        if listen is not None:
            command += ["--listen", listen]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True,
                                        env={**(env or environment()), "ASAN_OPTIONS": options_of_asan},
                                        **popen)
        self.started()
        self.ready = self.process.stdout.readline()
        match = READY.match(self.ready)
        if match is None:
            status = self.stop()
            raise RuntimeError("%s did not say where it listens: %r, status %d"
                               % (program, self.ready, status))
        self.host, port, self.path = match.groups()
        if self.path is None:
            self.port = int(port)
            self.url = "http://%s:%d" % (self.host, self.port)

    def started(self):
        """Called when the process runs and has said nothing yet."""

    def connect(self, timeout=PATIENCE_S):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def advance(self, milliseconds):
        """Moves the manual clock of a testd; what it shows then, in milliseconds."""
        self.process.stdin.write("advance %d\n" % milliseconds)
        self.process.stdin.flush()
        response = self.process.stdout.readline()
        if not response.startswith("ok "):
            raise RuntimeError("advance: the server responded %r" % response)
        return int(response[3:])

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self):
        """The exit status, once it has ended; it is killed if it does not."""
        watchdog = threading.Timer(PATIENCE_S, self.process.kill)
        watchdog.start()
        try:
            return self.process.wait()
        finally:
            watchdog.cancel()
            self.process.stdin.close()
            self.process.stdout.close()

    def stop(self):
        """Ends the server; returns its exit status."""
        if self.process.poll() is None:
            self.signal()
        return self.wait()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self.process.stdout.closed:
            return  # the test has waited for the end, and has seen the status
        status = self.stop()
        if kind is None and status != 0:
            raise RuntimeError("%s ended with status %d" % (self.process.args[0], status))
        if kind is not None:
            print("(the server ended with status %d)" % status, file=sys.stderr)
