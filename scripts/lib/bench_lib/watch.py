"""A server that is watched while it is measured: its memory, and the files of its journal."""

import collections
import os
import threading
import time

PERIOD = 0.1

# Segments that go within so many seconds went for the same sweep.
APART = 1

# at: monotonic seconds; resident, disk: bytes; log: bytes of the segments in use, without
# the spares; oldest: the name of the first of them
Sample = collections.namedtuple("Sample", "at resident disk log oldest")


def resident_bytes(pid):
    with open("/proc/%d/status" % pid) as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    raise RuntimeError("process %d has no memory" % pid)


def directory(path):
    """(bytes on the disk, bytes of the segments in use, name of the oldest)."""
    disk, log, oldest = 0, 0, None
    for entry in os.scandir(path):
        try:
            stat = entry.stat()
        except FileNotFoundError:
            continue  # a sweep has just dropped it
        disk += stat.st_blocks * 512
        if entry.name.endswith(".log"):
            log += stat.st_size
            oldest = entry.name if oldest is None else min(oldest, entry.name)
    return disk, log, oldest


def look(pid, path):
    return Sample(time.monotonic(), resident_bytes(pid), *directory(path))


class Watch:
    """Looks at a server and its journal every 100 ms, for as long as its block lasts."""

    def __init__(self, pid, path):
        self.pid = pid
        self.path = path
        self.samples = []
        self._failure = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.samples.append(look(self.pid, self.path))
        self._thread.start()
        return self

    def __exit__(self, *what):
        self._end.set()
        self._thread.join()
        if self._failure is not None and what[0] is None:
            raise self._failure

    def _run(self):
        try:
            while not self._end.wait(PERIOD):
                self.samples.append(look(self.pid, self.path))
        except (OSError, RuntimeError) as failure:
            self._failure = failure


def drops(samples):
    """(begin, end) of the times when sweeps ended, and the oldest segments went."""
    ends = []
    for before, now in zip(samples, samples[1:]):
        if now.oldest == before.oldest:
            continue
        if ends and before.at - ends[-1][1] < APART:
            ends[-1] = (ends[-1][0], now.at)  # they go one after the other, each synced
        else:
            ends.append((before.at, now.at))
    return ends
