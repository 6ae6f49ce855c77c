#!/usr/bin/python3
"""kill -9 at random moments under load: nothing that was answered is lost, or done twice.

    journal_kill.py CLAIMD [KILLS [SEED]] [--every SECONDS] [--bench CLAIMD-BENCH]

With --bench that one posts, claims and deletes beside the others, as fast as it can.
Producers and workers go on through all kills; some come while it is still recovering. Each
thread writes down what it was answered and when; what it was not answered may have happened
or not, but never by half. In the end all is judged:

    lost       posted (201), never given back (204), and not there
    back       there, or handed out, after its deletion was answered
    twice      handed out while a claim of somebody else was certainly alive
    half       of a batch that was not answered a part is there
    order      what one producer posted is listed, or stands in one claim, in another order
    numbers    a later claim of a message has no larger number
    refusals   it did not start, or did not answer as it should
    left       more of claimd-bench's messages are there than it had not deleted yet
"""

import argparse
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..",
                                "support"))

from daemon import PATIENCE_S, READY, environment  # noqa: E402

QUEUES = ("a", "b", "c")
PRODUCERS, WORKERS = 6, 6
PAGE = 1000
HEADERS = {"Client-ID": "5ca1ab1e-0000-4000-8000-000000000000",
           "Content-Type": "application/json"}


class Place:
    """The daemon in turn: where it is, and when there is none."""

    def __init__(self, program, folder, seed):
        self.command = [program, "--journal", os.path.join(folder, "journal"), "--listen",
                        "127.0.0.1:0", "--min-claim-ttl", "1", "--min-claim-grace", "0",
                        "--max-messages-per-page", str(PAGE), "--log-level", "warn"]
        self.dice = random.Random(seed)
        self.port = None
        self.over = threading.Event()
        self.refusals, self.torn, self.recovery_s = [], 0, 0.0
        self.process = None

    def spawn(self):
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, env=environment())

    def bury(self, number):
        """Sends a signal, waits, and looks at what it has said."""
        self.port = None
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        self.log.seek(0)
        text = self.log.read()
        self.log.close()
        self.torn += text.count(" journal_torn ")
        if status != (-number if number == signal.SIGKILL else 0):
            self.refusals.append("ended with status %d: %s" % (status, text))

    def start(self):
        begun = time.monotonic()
        self.spawn()
        match = READY.match(self.process.stdout.readline())
        if match is None:
            self.bury(signal.SIGKILL)
            return False
        self.recovery_s = max(self.recovery_s, time.monotonic() - begun)
        self.port = int(match.group(2))
        return True

    def kill_while_it_starts(self):
        self.spawn()
        time.sleep(self.dice.random() * 0.1)
        self.bury(signal.SIGKILL)

    def run(self, kills, every_s):
        """Starts it and kills it so often; in the end it is there. How many there were."""
        done = 0
        while done < kills:
            if every_s is None and self.dice.random() < 0.25:
                self.kill_while_it_starts()
            elif self.start():
                time.sleep(every_s or self.dice.random() * self.dice.choice((0.1, 0.5, 2.0)))
                self.bury(signal.SIGKILL)
            done += 1
            if self.refusals:
                return done
        self.start()
        return done


class Actor(threading.Thread):
    """Asks as long as the trial lasts; a request that is not answered is None."""

    def __init__(self, place, number):
        super().__init__(daemon=True)
        self.place, self.number = place, number
        self.dice = random.Random(number)
        self.connection, self.port = None, None
        self.surprises = []

    def ask(self, method, target, body=None, expected=(), project="p"):
        if self.place.port is None:
            time.sleep(0.005)
            return None
        try:
            if self.port != self.place.port:
                self.port = self.place.port
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port or 1,
                                                             timeout=PATIENCE_S)
            self.connection.request(method, "/v2/queues/" + target,
                                    None if body is None else json.dumps(body),
                                    dict(HEADERS, **{"X-Project-ID": project}))
            answer = self.connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.port = None
            return None
        if answer.status not in expected:
            self.surprises.append("%s %s: %d %r" % (method, target, answer.status, data))
            return None
        return answer.status, answer.headers, json.loads(data) if data else None

    def run(self):
        while not self.place.over.is_set():
            self.step()


class Producer(Actor):
    def __init__(self, place, number):
        super().__init__(place, number)
        self.posted, self.unknown = [], []  # batches
        self.next = 0

    def step(self):
        queue = self.dice.choice(QUEUES)
        batch = [(self.number, self.next + i) for i in range(self.dice.randint(1, 6))]
        self.next += len(batch)
        body = {"messages": [{"body": one, "ttl": 3600} for one in batch]}
        answer = self.ask("POST", queue + "/messages", body, (201,))
        (self.unknown if answer is None else self.posted).append(batch)


class Worker(Actor):
    def __init__(self, place, number):
        super().__init__(place, number)
        self.held = []     # (message, sent, done, certain end, number of the claim)
        self.claims = []   # of each claim, for each producer: its messages in their order
        self.tried = {}    # message: when its deletion was first asked for
        self.deleted = {}  # message: when its deletion was answered

    def step(self):
        queue, ttl = self.dice.choice(QUEUES), self.dice.choice((1, 1, 5))
        sent = time.monotonic()
        answer = self.ask("POST", "%s/claims?limit=%d" % (queue, self.dice.randint(1, 8)),
                          {"ttl": ttl, "grace": 60}, (201, 204))
        done = time.monotonic()
        if answer is None or answer[0] == 204:
            return
        location, number = answer[1]["Location"], int(answer[1]["Claim-Number"])
        messages = answer[2]["messages"]
        for producer in {message["body"][0] for message in messages}:
            self.claims.append([m["body"] for m in messages if m["body"][0] == producer])
        ends = sent + ttl
        if self.dice.random() < 0.1:
            ends = time.monotonic()
            self.ask("DELETE", location.split("/queues/")[1], None, (204,))
        for message in messages:
            body = tuple(message["body"])
            self.held.append((body, sent, done, ends, number))
        if ends == sent + ttl and self.dice.random() < 0.9:
            for message in messages:
                self.delete(message)

    def delete(self, message):
        body = tuple(message["body"])
        self.tried.setdefault(body, time.monotonic())
        # 400, 403: the claim has ended meanwhile; nothing was deleted then.
        answer = self.ask("DELETE", message["href"].split("/queues/")[1], None,
                          (204, 400, 403))
        if answer is not None and answer[0] == 204:
            self.deleted[body] = time.monotonic()


class Bench(threading.Thread):
    """claimd-bench, started again with the daemon."""

    CONNECTIONS, BATCH = 32, 10

    def __init__(self, place, program):
        super().__init__(daemon=True)
        self.place, self.program = place, program
        self.runs = 0

    def command(self, port):
        return [self.program, "--endpoint", "127.0.0.1:%d" % port, "--keep",
                "--connections", str(self.CONNECTIONS), "--batch", str(self.BATCH),
                "--duration", "600", "--warmup", "0", "--quiet"]

    def run(self):
        while not self.place.over.is_set():
            port = self.place.port
            if port is None:
                time.sleep(0.005)
                continue
            with open(os.devnull, "w", encoding="ascii") as nothing:
                process = subprocess.Popen(self.command(port), stdout=nothing, stderr=nothing)
            self.runs += 1
            while self.place.port == port and not self.place.over.is_set():
                time.sleep(0.005)
            process.kill()
            process.wait()

    def judge(self):
        """Each connection deletes what it claims before it posts more."""
        reader = Actor(self.place, 0)
        answer = reader.ask("GET", "bench-0/stats", None, (200,), project="bench")
        if answer is None:
            return ["refusals: %r" % reader.surprises]
        left = answer[2]["messages"]["total"]
        most = self.runs * self.CONNECTIONS * self.BATCH
        print("claimd-bench: %d runs, %d messages left of at most %d" % (self.runs, left, most))
        return [] if left <= most else ["left: %d messages of at most %d" % (left, most)]


def list_all(place):
    """What is there in the end: for each queue its messages in order."""
    reader, found = Actor(place, 0), {}
    for queue in QUEUES:
        found[queue] = []
        target = "%s/messages?echo=true&include_claimed=true&limit=%d" % (queue, PAGE)
        while True:
            answer = reader.ask("GET", target, None, (200,))
            if answer is None:
                raise RuntimeError("the listing fails: %r" % reader.surprises)
            page = answer[2]["messages"]
            found[queue] += [tuple(message["body"]) for message in page]
            if not page:
                break
            target = answer[2]["links"][0]["href"].split("/queues/")[1]
    return found


def judge_holders(workers, deleted, violations):
    """Claims of the same message, by the time at which they were answered."""
    held = {}
    for worker in workers:
        for body, sent, done, ends, number in worker.held:
            held.setdefault(body, []).append((done, sent, ends, number))
    for body, claims in held.items():
        claims.sort()
        for before, after in zip(claims, claims[1:]):
            # A deletion ends a claim as well, but then nobody gets the message again.
            if after[0] < before[2]:
                violations.append("twice: %r %r" % (body, claims))
            if before[0] < after[1] and before[3] >= after[3]:
                violations.append("numbers: %r %r" % (body, claims))
        if body in deleted and claims[-1][1] > deleted[body]:
            violations.append("back: %r was handed out after its deletion" % (body,))
    return held


def judge(producers, workers, found):
    violations, deleted, tried = [], {}, set()
    for worker in workers:
        deleted.update(worker.deleted)
        tried.update(worker.tried)
    there = [body for queue in QUEUES for body in found[queue]]
    alive = set(there)
    held = judge_holders(workers, deleted, violations)
    violations += ["order: a claim has %r" % (one,) for worker in workers for one in worker.claims
                   if one != sorted(one)]
    if len(alive) != len(there):
        violations.append("twice: a message is listed more than once")
    violations += ["back: %r" % (body,) for body in alive if body in deleted]
    for producer in producers:
        for batch in producer.posted:
            violations += ["lost: %r" % (body,) for body in batch
                           if body not in alive and body not in tried]
        for batch in producer.unknown:
            seen = [body in alive or body in held for body in batch]
            if any(seen) and not all(seen):
                violations.append("half: %r %r" % (batch, seen))
    for queue in QUEUES:
        for producer in producers:
            own = [body for body in found[queue] if body[0] == producer.number]
            if own != sorted(own):
                violations.append("order: of %d in %s" % (producer.number, queue))
    return violations


def trial(program, kills, every_s, seed, bench, folder):
    place = Place(program, folder, seed)
    producers = [Producer(place, 1 + n) for n in range(PRODUCERS)]
    workers = [Worker(place, 101 + n) for n in range(WORKERS)]
    actors = producers + workers
    load = [Bench(place, bench)] if bench is not None else []
    for thread in actors + load:
        thread.start()
    done = place.run(kills, every_s)
    place.over.set()
    for thread in actors + load:
        thread.join()
    violations = ["refusals: " + text for text in place.refusals]
    for actor in actors:
        violations += ["refusals: " + text for text in actor.surprises]
    posted = sum(len(batch) for p in producers for batch in p.posted)
    deleted = sum(len(w.deleted) for w in workers)
    if place.port is not None:
        violations += judge(producers, workers, list_all(place))
        for one in load:
            violations += one.judge()
        place.bury(signal.SIGTERM)
    print("%d kills: %d posted, %d claimed, %d deleted, %d batches unknown, %d torn,"
          " slowest start %.2f s" %
          (done, posted, sum(len(w.held) for w in workers), deleted,
           sum(len(p.unknown) for p in producers), place.torn, place.recovery_s))
    if posted == 0 or deleted == 0:
        violations.append("nothing was done at all: there is nothing to judge")
    return violations


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
        violations = trial(args.program, args.kills, args.every, args.seed, args.bench, folder)
    for violation in violations[:20]:
        print(violation)
    print("%d violations" % len(violations))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
