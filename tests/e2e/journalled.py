"""Shared by the end-to-end tests of the journal: a daemon that is killed and starts again.

    class Example(JournalCase):
        def test_it_remembers(self):
            self.start()
            self.fetch("POST", "q/messages", {"messages": [{"body": 1}]}, status=201)
            self.crash()
            self.start()
"""

import json
import os
import shutil
import signal
import struct
import tempfile
import unittest

from harness import Server, eventually, run

HEAD_BYTES = 4096  # of a segment
FRAME_HEAD_BYTES = 64
SEAL = 1  # among a frame's flags

# Short lives, so that a test can see their ends.
OPTIONS = ("--min-message-ttl", "1", "--min-claim-ttl", "1", "--min-claim-grace", "0")


def crc32c(data):
    """The checksum of heads and frames, bit by bit: nothing here is in a hurry."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def flip(path, offset):
    """One byte of a file is not what it was."""
    with open(path, "r+b") as f:
        f.seek(offset)
        was = f.read(1)
        f.seek(offset)
        f.write(bytes([was[0] ^ 0xFF]))


def frames(path):
    """Where the frames of a segment stand: (offset, length with its head) of each."""
    with open(path, "rb") as f:
        data = f.read()
    found, at = [], HEAD_BYTES
    while data[at:at + 4] == b"Frm\n":
        size = FRAME_HEAD_BYTES + struct.unpack_from("<I", data, at + 44)[0]
        found.append((at, size))
        at += size
    return found


def is_seal(path, offset):
    """Whether the frame that stands there is one."""
    with open(path, "rb") as f:
        f.seek(offset + 6)
        return struct.unpack("<H", f.read(2))[0] & SEAL != 0


class JournalCase(unittest.TestCase):
    """Each test has a directory of its own; what it has started is killed in the end."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="claimd-journal-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "journal")
        self.server = None
        self.addCleanup(self.crash)

    def start(self, *options, path=None):
        self.server = Server("--journal", path or self.path, *OPTIONS, *options)
        return self.server

    def end(self, number):
        if self.server is None:
            return None
        self.server.signal(number)
        status, self.server = self.server.wait(), None
        return status

    def crash(self):
        """kill -9."""
        return self.end(signal.SIGKILL)

    def stop(self):
        self.assertEqual(self.end(signal.SIGTERM), 0)

    def crash_and_start(self, *options):
        self.crash()
        return self.start(*options)

    def stop_and_start(self, *options):
        self.stop()
        return self.start(*options)

    def fetch(self, method, target, body=None, status=None, headers=()):
        """A request about queues; the document of its response (None: it has none)."""
        response = self.response(method, target, body, headers)
        if status is not None:
            self.assertEqual(response.status, status, response)
        return json.loads(response.body) if response.body else None

    def response(self, method, target, body=None, headers=()):
        data = None if body is None else json.dumps(body).encode()
        return self.server.fetch(method, "/v2/queues/" + target, data, headers=headers)

    def post(self, queue, *bodies, **more):
        """Posts messages; their ids."""
        messages = [{"body": body, **more} for body in bodies]
        made = self.fetch("POST", queue + "/messages", {"messages": messages}, 201)
        return [href.rsplit("/", 1)[1] for href in made["resources"]]

    def listed(self, queue):
        """All messages, those that are claimed, too."""
        target = queue + "/messages?echo=true&include_claimed=true&limit=20"
        return self.fetch("GET", target, status=200)["messages"]

    def bodies(self, queue):
        return [message["body"] for message in self.listed(queue)]

    def claim(self, queue, limit=1, ttl=300, grace=60):
        """Claims; id, number and messages of the claim, or None if there was nothing."""
        response = self.response("POST", "%s/claims?limit=%d" % (queue, limit),
                                 {"ttl": ttl, "grace": grace})
        if response.status == 204:
            return None
        self.assertEqual(response.status, 201, response)
        return Claim(response)

    # ---------------------------------------------------------------- directories

    def segments(self, path=None):
        folder = path or self.path
        return sorted(os.path.join(folder, name) for name in os.listdir(folder)
                      if name.endswith(".log"))

    def await_seal(self):
        """Waits for the idle second after which what was changed is sealed."""
        segment = self.segments()[-1]
        eventually(lambda: is_seal(segment, frames(segment)[-1][0]))

    def refused(self, status, *parts, options=(), path=None, popen=None):
        """It does not start, with this status, and says why; the line."""
        ended = run("--journal", path or self.path, "--listen", "127.0.0.1:0", *options,
                    **(popen or {}))
        self.assertEqual(ended.returncode, status, ended)
        self.assertEqual(ended.stdout, "")
        lines = [line for line in ended.stderr.splitlines() if line.startswith("claimd: ")]
        self.assertEqual(len(lines), 1, ended.stderr)
        for part in parts:
            self.assertIn(part, lines[0])
        return lines[0]


class Claim:
    def __init__(self, response):
        self.location = response.headers["location"]
        self.id = self.location.rsplit("/", 1)[1]
        self.number = int(response.headers["claim-number"])
        self.messages = json.loads(response.body)["messages"]

    def bodies(self):
        return [message["body"] for message in self.messages]

