#!/usr/bin/python3
"""Mixed load for a long time: nothing grows, nothing drifts.

    soak.py CLAIMD SECONDS

In rounds: people (soak_people.py) do all that clients can do, then stop. After each round

    - the statistics of every queue must agree with its full listings,
    - the server must have as many descriptors open as in the beginning,
    - when everything is taken out, the statistics must say zero, and the resident memory
      must be back within 1.5 times what it was in the beginning.

The beginning is after some seconds of the same load, taken out as well. A fresh server has
less: malloc keeps some free blocks for each thread, a few in every size, and each of them may
hold a page. That is a constant, whatever was in the store before.

    SOAK_SEED      for the dice (random; printed)
    SOAK_PEOPLE    how many at a time (6)
    SOAK_ROUND     seconds of load in a round (60; less if there are not so many)
"""

import json
import multiprocessing
import os
import random
import sys
import time
from collections import Counter

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)

SECONDS = float(sys.argv.pop())

from harness import (SANITIZED, Server, descriptors, eventually, request,  # noqa: E402
                     resident_kb)
from soak_people import DEAD, KEPT, QUEUES, Person  # noqa: E402

PEOPLE = int(os.environ.get("SOAK_PEOPLE", "6"))
ROUND = float(os.environ.get("SOAK_ROUND", "60"))
BEGINNING = 5  # seconds
RATIO = 1.5
ALL = QUEUES + [DEAD, KEPT]
PAGE = 1000
OPTIONS = ("--min-message-ttl", "1", "--min-claim-ttl", "1", "--min-claim-grace", "1",
           "--max-messages-per-page", str(PAGE), "--max-messages-per-claim-or-pop", "100",
           "--idle-seconds", "3600", "--log-level", "warn")


class Observer:
    """Looks at the server from outside, on a connection of its own."""

    def __init__(self, server):
        self.client = server.connect()

    def fetch(self, method, target):
        self.client.send(request(method, target))
        response = self.client.response()
        return json.loads(response.body) if response.body else None

    def counts(self, queue):
        counts = self.fetch("GET", "/v2/queues/%s/stats" % queue)["messages"]
        return counts["claimed"], counts["free"], counts["total"]

    def listed(self, queue, claimed):
        """How many messages a full listing shows."""
        target = ("/v2/queues/%s/messages?echo=true&include_delayed=true&include_claimed=%s"
                  "&limit=%d" % (queue, claimed, PAGE))
        total = 0
        while True:
            page = self.fetch("GET", target)
            if not page["messages"]:
                return total
            total += len(page["messages"])
            target = page["links"][0]["href"]

    def compare(self, queue):
        """The counts of a queue when they agree with its listings, else both.

        While it is looked at claims and messages expire; so only a look counts before and
        after which the statistics were the same.
        """
        for _ in range(200):
            before = self.counts(queue)
            total, free = self.listed(queue, "true"), self.listed(queue, "false")
            if before == self.counts(queue):
                listed = (total - free, free, total)
                return before, None if before == listed else listed
            time.sleep(0.1)
        raise AssertionError("the queue never rests: %s" % queue)

    def take_out(self, queue):
        """Pops everything, also what is still delayed or claimed, as it becomes free."""
        while self.counts(queue)[2] > 0:
            if not self.fetch("DELETE", "/v2/queues/%s/messages?pop=100" % queue)["messages"]:
                time.sleep(0.1)


def act(where, seed, seconds, reports):
    try:
        reports.put(Person(where, seed).live(seconds))
    except Exception as problem:  # noqa: B902: whatever it was, the soak has failed
        reports.put("%s: %s" % (type(problem).__name__, str(problem)[:2000]))


class Soak:
    def __init__(self, server, dice):
        self.server, self.dice = server, dice
        self.where = server.endpoint()
        self.observer = Observer(server)
        self.counts = Counter()
        self.failures = []
        self.compared = 0
        self.memory_kb = self.files = None

    def load(self, seconds):
        """All clients act for so long."""
        # By default, Python 3.14 imports this file again in each process, with other arguments.
        fork = multiprocessing.get_context("fork")
        reports = fork.SimpleQueue()
        people = [fork.Process(
            target=act, args=(self.where, self.dice.random(), seconds, reports))
            for _ in range(PEOPLE)]
        for person in people:
            person.start()
        for _ in people:
            report = reports.get()
            if isinstance(report, str):
                self.failures.append(report)
            else:
                self.counts += report
        for person in people:
            person.join()

    def begin(self, seconds):
        """A little of everything; then remembers what the server has without anything."""
        self.load(seconds)
        self.empty()
        self.files = descriptors(self.server)
        self.memory_kb = resident_kb(self.server)

    def check_counters(self):
        for queue in ALL:
            counts, listed = self.observer.compare(queue)
            self.compared += counts[2]
            if listed is not None:
                self.failures.append("%s: statistics %r, listed %r" % (queue, counts, listed))

    def empty(self):
        """Takes everything out; the queues stay."""
        for queue in ALL:
            self.observer.take_out(queue)
        for queue in ALL:
            if self.observer.counts(queue) != (0, 0, 0):
                self.failures.append("%s is empty, but its statistics are not" % queue)
        time.sleep(0.5)  # idle, so that it may give memory back

    def check_resources(self):
        try:
            eventually(lambda: descriptors(self.server) <= self.files)
        except AssertionError as never:
            self.failures.append("more than %d descriptors: %s" % (self.files, never))
        now_kb = resident_kb(self.server)
        if now_kb > RATIO * self.memory_kb and not SANITIZED:
            self.failures.append("%d kB resident, %d in the beginning" % (now_kb, self.memory_kb))
        return now_kb, descriptors(self.server)

    def round(self, seconds):
        self.load(seconds)
        full_kb = resident_kb(self.server)
        live = sum(self.observer.counts(queue)[2] for queue in ALL)
        self.check_counters()
        self.empty()
        empty_kb, files = self.check_resources()
        print("soak: %6d kB with %d messages, %d kB without any, %d descriptors"
              % (full_kb, live, empty_kb, files), flush=True)


def main():
    seed = int(os.environ.get("SOAK_SEED", str(random.randrange(1 << 32))))
    rounds = max(1, round(SECONDS / ROUND))
    print("soak: %g s in %d rounds, SOAK_SEED=%d" % (SECONDS, rounds, seed), flush=True)
    with Server(*OPTIONS) as server:
        soak = Soak(server, random.Random(seed))
        fresh_kb = resident_kb(server)
        soak.begin(min(BEGINNING, SECONDS / 4))
        print("soak: %6d kB in the beginning (fresh: %d), %d descriptors"
              % (soak.memory_kb, fresh_kb, soak.files), flush=True)
        for _ in range(rounds):
            soak.round(SECONDS / rounds)
        soak.observer.client.close()
    for failure in soak.failures:
        print("FAIL %s" % failure)
    print("soak: " + ", ".join("%d %s" % (count, what)
                               for what, count in soak.counts.most_common()))
    print("soak: %d messages counted and listed; %d failures"
          % (soak.compared, len(soak.failures)))
    return 1 if soak.failures else 0


if __name__ == "__main__":
    sys.exit(main())
