#!/usr/bin/python3
"""docs/migrating-*.md: both programs of each page print the lines that it shows.

    migrating_pages_test.py CLAIMD
    MIGRATING_PEERS=1 migrating_pages_test.py CLAIMD

The programs with claimd always run. Those with the other library run with MIGRATING_PEERS only. They
need redis-server, `scripts/packages install peers`, and in NODE_PATH the node_modules of
`npm install bullmq@6.7.0 ioredis@6.0.0`.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path[:0] = [os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "bench")]

from backlog_servers import RabbitMQ  # noqa: E402
from daemon import Daemon, environment, eventually  # noqa: E402
import examples  # noqa: E402
from redis_nodes import Node  # noqa: E402

CLAIMD = os.path.realpath(sys.argv.pop(1))
# A file in a block begins with its name.
NAMED = re.compile(r"(?:#|//) (\w+\.(?:py|js|rb))\n")


def sections(name):
    """Of the page for this library: {the word before the colon of a heading, or the heading: its text}."""
    with open(os.path.join(ROOT, "docs", "migrating-" + name + ".md"), encoding="utf-8") as f:
        parts = re.split(r"^## (.*)\n", f.read(), flags=re.M)
    return {title.partition(":")[0]: text for title, text in zip(parts[1::2], parts[2::2])}


class Shell:
    """Bash runs the first block, and the others after next(). end() also ends all that it has started."""

    def __init__(self, blocks, folder, env):
        script = "set -euo pipefail\n%sread -r _\n%s" % (blocks[0], "".join(blocks[1:]))
        self.lines = []
        self.process = subprocess.Popen(["bash", "-c", script], stdin=subprocess.PIPE, text=True, cwd=folder,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env,
                                        start_new_session=True)
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout))
        self.reader.start()

    def next(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def wait(self):
        return self.process.wait()

    def end(self):
        """Ends the workers, and returns when their output has ended."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                pass
            self.reader.join(10)
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def counts(self, expected):
        """How many lines end with each of the expected ones. A worker may write the time in front."""
        return {line: sum(seen.rstrip("\n").endswith(line) for seen in self.lines) for line in expected}


class Page:
    """The tests of a page: its name, and the programs that it needs."""
    name, program = None, None

    def setUp(self):
        self.scratch = self.enterContext(tempfile.TemporaryDirectory())
        self.sections = sections(self.name)
        expected, = examples.blocks(self.sections["Before"], "text")
        self.expected = {line: expected.splitlines().count(line) for line in expected.splitlines()}
        shutil.copytree(os.path.join(ROOT, "src/clients/node"), self.path("node_modules/claimd"))
        os.mkdir(self.path("bin"))
        os.symlink(CLAIMD, self.path("bin/claimd"))
        os.symlink(sys.executable, self.path("bin/python3"))
        self.env = environment(
            PATH=self.path("bin") + os.pathsep + os.environ["PATH"], PYTHONDONTWRITEBYTECODE="1",
            PYTHONPATH=os.path.join(ROOT, "src/clients/python"), PYTHONUNBUFFERED="1")

    def path(self, name):
        return os.path.join(self.scratch, name)

    def assert_prints(self, title, **addresses):
        """The programs of a section print the lines. Returns the output of its further bash blocks."""
        text = self.sections[title]
        for address, present in addresses.values():
            self.assertIn(address, text)
            text = text.replace(address, present)
        for language in ("python", "js", "ruby"):
            for block in examples.blocks(text, language):
                with open(self.path(NAMED.match(block)[1]), "w", encoding="utf-8") as f:
                    f.write(block)
        shell = Shell(examples.blocks(text, "bash"), self.scratch, self.env)
        try:
            def has_printed():
                self.assertIn(shell.process.poll(), (None, 0), shell.lines)
                return sum(shell.counts(self.expected).values()) >= sum(self.expected.values())
            eventually(has_printed, "the lines of the page")
            before = len(shell.lines)
            shell.next()
            self.assertEqual(shell.wait(), 0, shell.lines)
        finally:
            shell.end()
        self.assertEqual(shell.counts(self.expected), self.expected, shell.lines)
        return "".join(shell.lines[before:])

    def test_after(self):
        if self.program and not shutil.which(self.program):
            self.skipTest("%s is not installed (scripts/packages install clients)" % self.program)
        with Daemon(CLAIMD) as server:
            address = {"claimd": (examples.ADDRESS, "%s:%d" % (server.host, server.port))}
            self.assertIn('"to":"cid"', self.assert_prints("After", **address).replace(" ", ""))

    @unittest.skipUnless(os.environ.get("MIGRATING_PEERS"), "MIGRATING_PEERS is not set")
    def test_before(self):
        with Node() as node:
            self.assert_prints("Before", redis=("127.0.0.1:6379", "127.0.0.1:%d" % node.port))


class Celery(Page, unittest.TestCase):
    name = "celery"


class Sidekiq(Page, unittest.TestCase):
    name, program = "sidekiq", "ruby"


class BullMQ(Page, unittest.TestCase):
    name, program = "bullmq", "node"


class Rabbit(Page, unittest.TestCase):
    name = "rabbitmq"

    @unittest.skipUnless(os.environ.get("MIGRATING_PEERS"), "MIGRATING_PEERS is not set")
    def test_before(self):
        os.mkdir(self.path("rabbitmq"))
        node = RabbitMQ(self.path("rabbitmq"))
        node.start("warm-up")
        self.addCleanup(node.stop)
        self.assert_prints("Before", rabbitmq=("127.0.0.1:5672", "127.0.0.1:%d" % node.port))


if __name__ == "__main__":
    unittest.main()
