#!/usr/bin/python3
"""A fleet of unmodified python-zaqarclient workers loses nothing and shares nothing.

    fleet_test.py CLAIMD

Producers post while workers claim, finish, release, renew, oversleep and crash; besides,
now and then a worker is killed from outside at any moment. A new worker replaces it. In the end
every message must have been finished, none may ever have had two holders, no claim may have
ended early or gone on behind its end (judge.py), and the queue must be empty.

    FLEET_MESSAGES   how many messages (2000)
    FLEET_SEED       for the dice (random; printed)
    FLEET_SECONDS    give up after this long (300)
"""

import json
import math
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from types import SimpleNamespace

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

import fleet_worker  # noqa: E402
from daemon import Daemon  # noqa: E402
from judge import Deletion, Held, Judge, Post  # noqa: E402

PRODUCERS = 2
WORKERS = 8
CLAIM_TTLS = (1, 2, 3)  # seconds; one for each worker in turn
KILL_EVERY_S = 0.7      # on average, from outside

# Lifetimes of a second, so that the messages of the dead are soon free again.
OPTIONS = ["--min-claim-ttl=1", "--min-claim-grace=1", "--min-message-ttl=1",
           "--log-level=warn"]


class Fleet:
    def __init__(self, url, folder, seed, messages):
        self.url, self.folder, self.messages = url, folder, messages
        self.dice = random.Random(seed)
        self.stop = os.path.join(folder, "stop")
        self.journals = []
        self.producers, self.workers = [], []
        self.killed = self.started = 0
        self.failures = []

    def start(self, role, *arguments):
        path = os.path.join(self.folder, "journal.%d" % len(self.journals))
        self.journals.append(path)
        process = multiprocessing.Process(
            target=role, args=(self.url, path, self.dice.random(), *arguments))
        process.start()
        return process

    def start_worker(self):
        ttl = CLAIM_TTLS[self.started % len(CLAIM_TTLS)]
        self.started += 1
        self.workers.append(self.start(fleet_worker.work, ttl, self.stop))

    def run(self, deadline):
        numbers = list(range(self.messages))
        for i in range(PRODUCERS):
            self.producers.append(self.start(fleet_worker.produce, numbers[i::PRODUCERS]))
        for _ in range(WORKERS):
            self.start_worker()
        queue = fleet_worker.open_queue(self.url)
        next_kill = time.monotonic() + 1
        while not self.is_done(queue):
            if time.monotonic() > deadline:
                self.failures.append("not done in time: %s" % queue.stats)
                break
            if time.monotonic() > next_kill:
                self.kill_one()
                next_kill = time.monotonic() + self.dice.uniform(0, 2 * KILL_EVERY_S)
            self.replace_dead()
            time.sleep(0.1)
        self.end()

    def is_done(self, queue):
        return (not any(p.is_alive() for p in self.producers)
                and queue.stats["messages"]["total"] == 0)

    def kill_one(self):
        self.dice.choice(self.workers).kill()
        self.killed += 1

    def replace_dead(self):
        for worker in [w for w in self.workers if not w.is_alive()]:
            self.end_worker(worker)
            self.start_worker()

    def end_worker(self, worker):
        """A worker may end by SIGKILL (its own or ours) or well; all else is a failure."""
        worker.join()
        self.workers.remove(worker)
        if worker.exitcode not in (0, -9):
            self.failures.append("a worker ended with status %d" % worker.exitcode)

    def end(self):
        with open(self.stop, "w", encoding="ascii"):
            pass
        for worker in list(self.workers):
            self.end_worker(worker)
        for producer in self.producers:
            producer.join()
            if producer.exitcode != 0:
                self.failures.append("a producer ended with status %d" % producer.exitcode)

    def events(self):
        """The events of each process that began; a line cut off by a kill is left out."""
        for path in self.journals:
            if not os.path.exists(path):
                continue  # killed before it had begun
            with open(path, encoding="utf-8") as f:
                yield [json.loads(line) for line in f if line.endswith("\n")]


class History:
    """The input of the judge, from the events of a process (fleet_worker.py). Clients of Zaqar know no
    numbers of claims, so each message has a producer of its own: nothing is said of their order."""

    def __init__(self, events):
        self.posts, self.held, self.deletions, self.lost_claims = [], [], [], []
        self.waits, self.lost_pops, self.claims = [], [], {}
        for event in events:
            getattr(self, "hear_" + event["what"])(SimpleNamespace(**event))

    def hear_post(self, event):
        self.posts.append(Post("work", [(n, 0) for n in event.numbers], 0.0, 0.0, "ok", ""))

    def hear_claim(self, event):
        claim = [Held("work", (n, 0), "", 0, at, event.sent, event.done, event.ttl, "")
                 for at, n in enumerate(event.messages)]
        self.claims[event.claim] = claim
        self.held += claim

    def hear_renew(self, event):
        for held in self.claims[event.claim]:
            held.renewed(event.sent, event.done, event.ttl, "ok")

    def hear_gone(self, event):
        for held in self.claims[event.claim]:
            held.renewed(event.sent, event.done, 0, "gone")

    def hear_release(self, event):
        for held in self.claims[event.claim]:
            held.released(event.sent, "ok")

    def hear_try(self, event):
        """Killed before the response: the outcome is unknown."""
        held = next(one for one in self.claims[event.claim] if one.body[0] == event.number)
        self.deletions.append(Deletion("work", held.body, event.sent, math.inf, "unknown", "", held=held))

    def hear_finish(self, event):
        self.deletions[-1].outcome, self.deletions[-1].done = "ok", event.done

    def hear_refused(self, event):
        self.deletions[-1].outcome, self.deletions[-1].done = "denied", event.done

    def hear_crash(self, event):
        """The server does not know: the claim lives on."""


def check_empty(queue):
    """The violations of a queue that should be empty."""
    failures = []
    stats = queue.stats["messages"]
    if (stats["claimed"], stats["free"], stats["total"]) != (0, 0, 0):
        failures.append("the statistics are not zero: %s" % stats)
    if list(queue.messages(echo=True, include_claimed=True)):
        failures.append("the queue still lists messages")
    if queue.claim(ttl=60, grace=60).id is not None:
        failures.append("the queue still has something to claim")
    return failures


def main():
    messages = int(os.environ.get("FLEET_MESSAGES", "2000"))
    seconds = float(os.environ.get("FLEET_SECONDS", "300"))
    seed = int(os.environ.get("FLEET_SEED", str(random.randrange(1 << 32))))
    print("fleet: %d messages, FLEET_SEED=%d" % (messages, seed), flush=True)

    with Daemon(sys.argv[1], *OPTIONS) as server, tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        fleet = Fleet(server.url, folder, seed, messages)
        fleet.run(started + seconds)
        took = time.monotonic() - started
        failures = fleet.failures + check_empty(fleet_worker.open_queue(server.url))
        events = list(fleet.events())
    histories = [History(some) for some in events]
    judge = Judge(histories, histories, {}, math.inf)
    judge.judge()
    if len(judge.posts) != messages:
        failures.append("%d messages were posted" % len(judge.posts))
    failures += ["%s: %r: %s\n%s" % (what, body, text, judge.history(body))
                 for what, body, text in judge.violations]
    for failure in failures:
        print("FAIL %s" % failure)

    counts = Counter(event["what"] for some in events for event in some)
    print("fleet: %.1f s, %d workers in turn, %d of them crashed, %d killed from outside"
          % (took, fleet.started, counts["crash"], fleet.killed))
    print("fleet: %d claims, %d renewals, %d releases; too late: %d renewals, %d deletions"
          % (counts["claim"], counts["renew"], counts["release"], counts["gone"],
             counts["refused"]))
    print("fleet: %d messages posted, %d delivered again"
          % (len(judge.posts), sum(len(one) - 1 for one in judge.held.values())))
    print("fleet: %d violations" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
