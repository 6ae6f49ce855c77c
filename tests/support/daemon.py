"""A claimd (or testd) process for tests in Python: start it, find its address, stop it."""

import http.client
import os
import re
import signal
import subprocess
import sys
import threading

# The options of a tester's own claimd are not meant for this one.
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("CLAIMD_")}

READY = re.compile(r"(\d+\.\d+\.\d+\.\d+):(\d+)")


class Daemon:
    """A server on a free port of the loopback; use it as a context manager.

    Leaving the context sends SIGTERM and insists that the server ends with status 0, so
    every test that starts a server also tests that it stops (and, in a sanitizer build,
    that it leaves nothing behind).
    """

    def __init__(self, program, *options):
        self.command = [program, "--listen", "127.0.0.1:0", *options]
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=ENVIRONMENT)
        line = self.process.stdout.readline()
        match = READY.search(line)
        if not match:
            self.process.kill()
            self.process.wait()
            raise RuntimeError("%s did not say where it listens: %r" % (program, line))
        self.host, self.port = match.group(1), int(match.group(2))
        self.url = "http://%s:%d" % (self.host, self.port)

    def connect(self, timeout=60):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def advance(self, milliseconds):
        """Moves the manual clock of a testd."""
        self.process.stdin.write("advance %d\n" % milliseconds)
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer.startswith("ok "):
            raise RuntimeError("advance: the server answered %r" % answer)

    def stop(self, within_s=60):
        """Ends the server; returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        watchdog = threading.Timer(within_s, self.process.kill)
        watchdog.start()
        try:
            self.process.communicate()
        finally:
            watchdog.cancel()
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        status = self.stop()
        if kind is None and status != 0:
            raise RuntimeError("%s ended with status %d" % (self.command[0], status))
        if kind is not None:
            print("(the server ended with status %d)" % status, file=sys.stderr)
