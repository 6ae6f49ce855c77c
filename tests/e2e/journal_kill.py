#!/usr/bin/python3
"""A server with a journal is killed again and again under load: nothing that was acknowledged is lost,
or done twice.

    journal_kill.py CLAIMD [KILLS [SEED]] [--every SECONDS] [--bench CLAIMD-BENCH]

With --bench that one posts, claims and deletes beside the others, as fast as it can.
Producers and workers (load.py) go on through all kills; some come while it is still recovering. In
the end all is listed and taken out, and judge.py compares the responses. Besides, claimd-bench
must not leave more messages than it had not deleted yet.
"""

import argparse
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

from daemon import PATIENCE_S, Daemon, environment  # noqa: E402
from judge import POPPED, Judge  # noqa: E402
from load import OPTIONS, Front, Load, Reader, Worker, tail  # noqa: E402

QUEUES = ["a", "b", "c", POPPED]
TTLS = (1, 1, 5)
SHOWN = 20  # violations


class Place:
    """The daemon in turn, and what becomes of it."""

    def __init__(self, program, folder, seed):
        self.log = os.path.join(folder, "log")
        self.words = (program, "--journal", os.path.join(folder, "journal"), *OPTIONS)
        self.dice = random.Random(seed)
        self.starts, self.slowest_s = 0, 0.0
        self.front = Front("claimd", self.start)

    def start(self, port):
        begun = time.monotonic()
        with open(self.log, "a", encoding="utf-8") as log:
            daemon = Daemon(*self.words, listen="127.0.0.1:%d" % port, stderr=log)
        self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
        self.starts += 1
        return daemon

    def kill_while_it_starts(self):
        with open(self.log, "a", encoding="utf-8") as log:
            process = subprocess.Popen([*self.words, "--listen", "127.0.0.1:%d" % self.front.port],
                                       stdout=subprocess.DEVNULL, stderr=log, env=environment())
        time.sleep(self.dice.random() * 0.1)
        process.kill()
        process.wait()

    def run(self, kills, every_s):
        """Kills it so often, and starts it again."""
        for _ in range(kills):
            time.sleep(every_s or self.dice.random() * self.dice.choice((0.1, 0.5, 2.0)))
            self.front.kill()
            while every_s is None and self.dice.random() < 0.25:
                self.kill_while_it_starts()
            self.front.start()


class Bench(threading.Thread):
    """claimd-bench, started again with the daemon."""

    CONNECTIONS, BATCH = 32, 10

    def __init__(self, place, load, program):
        super().__init__(daemon=True)
        self.place, self.load, self.program = place, load, program
        self.runs = 0

    def run(self):
        words = [self.program, "--endpoint", "127.0.0.1:%d" % self.place.front.port, "--keep",
                 "--connections", str(self.CONNECTIONS), "--batch", str(self.BATCH),
                 "--duration", "600", "--warmup", "0", "--quiet"]
        while not self.load.over.is_set():
            starts = self.place.starts
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.runs += 1
            while self.place.starts == starts and not self.load.over.wait(0.005):
                pass
            process.kill()
            process.wait()

    def violations(self):
        """Each connection deletes what it claims before it posts more."""
        connection = http.client.HTTPConnection("127.0.0.1", self.place.front.port,
                                                timeout=PATIENCE_S)
        connection.request("GET", "/v2/queues/bench-0/stats", headers={
            "Client-ID": "5ca1ab1e-0000-4000-8000-000000000000", "X-Project-ID": "bench"})
        left = json.load(connection.getresponse())["messages"]["total"]
        connection.close()
        most = self.runs * self.CONNECTIONS * self.BATCH
        print("claimd-bench: %d runs, %d messages left of at most %d" % (self.runs, left, most))
        return [] if left <= most else ["%d messages of claimd-bench are left" % left]


def judged(place, load):
    """Looks at what is left, and takes it out."""
    reader, drainer = Reader(load, place.front), Worker(load, 999, place.front)
    there = {queue: reader.listed(queue) for queue in QUEUES}
    judge = Judge(load.producers, load.workers + [drainer], there, time.monotonic(), load.begun)
    left = reader.drain(drainer, QUEUES, max(TTLS) + 20)
    judge.judge({held.body for held in drainer.held}, left)
    troubles = [text for client in load.clients() + [drainer, reader] for text in client.surprises]
    return judge, troubles


def trial(args, folder):
    place = Place(args.program, folder, args.seed)
    load = Load([place.front], QUEUES, args.seed, producers=6, workers=6, ttls=TTLS)
    bench = Bench(place, load, args.bench) if args.bench is not None else None
    load.start()
    if bench:
        bench.start()
    try:
        place.run(args.kills, args.every)
        load.stop()
        if bench:
            bench.join()
        judge, troubles = judged(place, load)
    except BaseException:
        print(tail(place.log))
        raise
    if bench:
        troubles += bench.violations()
    if place.front.daemon.stop() != 0:
        troubles.append("it ended badly: %s" % tail(place.log))
    deleted = sum(one.outcome == "ok" for worker in load.workers for one in worker.deletions)
    print("%d kills: %d posted, %d delivered, %d deleted; order: %d excused; slowest start %.2f s"
          % (args.kills, len(judge.posts), len(judge.held), deleted, judge.excused,
             place.slowest_s))
    if deleted == 0:
        troubles.append("nothing was done at all: there is nothing to judge")
    for what, body, text in judge.violations[:SHOWN]:
        print("%s: %r: %s\n%s" % (what, body, text, judge.history(body)))
    for text in troubles[:SHOWN]:
        print("trouble: " + text)
    print("%d violations, %d troubles" % (len(judge.violations), len(troubles)))
    return bool(judge.violations or troubles)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("kills", nargs="?", type=int, default=5)
    parser.add_argument("seed", nargs="?", type=int, default=time.time_ns() & 0xFFFFFF)
    parser.add_argument("--bench")
    parser.add_argument("--every", type=float, metavar="SECONDS",
                        help="kill after so long instead of at random moments")
    args = parser.parse_args()
    print("seed %d" % args.seed, flush=True)
    with tempfile.TemporaryDirectory(prefix="claimd-kill-") as folder:
        return 1 if trial(args, folder) else 0


if __name__ == "__main__":
    sys.exit(main())
