"""Producers and workers for tests that kill servers. They send requests over HTTP, and record the
outcome of each for the judge (judge.py).

A request has one of these outcomes:

    ok        claimd has executed it, and the response says so
    denied    claimd has not executed it: 400 or 403
    gone      claimd has not executed it: 404 for a renewal
    refused   claimd has not executed it: 503 (but not "Outcome unknown"), or no connection
    unknown   claimd may have executed it: 503 "Outcome unknown", a broken connection, no response
    surprise  none of these. The test fails

Times are those of time.monotonic(), in seconds: `sent` before a request, `done` after it.
"""

import http.client
import json
import math
import os
import random
import socket
import threading
import time
from collections import Counter

from judge import DEAD, LIMITED, POPPED, Deletion, Held, LostClaim, LostPop, Post, Wait

PROJECT = "p"
PATIENCE_S = 20   # for a response; the time limits of claimd are much shorter
PAUSE_S = 0.02    # after a refusal
CROSSING = 0.1    # share of the deletions that go to another claimd than the claim
LIMIT = 8         # messages of a claim, at most
OPTIONS = ("--min-claim-ttl", "1", "--min-claim-grace", "0", "--max-messages-per-page", "1000",
           "--log-level", "warn")
HEADERS = {"Client-ID": "5ca1ab1e-0000-4000-8000-000000000000",
           "Content-Type": "application/json", "X-Project-ID": PROJECT}


class Front:
    """A claimd that a test kills and starts again, on the same port."""

    def __init__(self, name, start):
        self.name, self._start = name, start
        self.daemon = None
        self.port = None
        self.start()

    def start(self):
        self.daemon = self._start(self.port or 0)
        self.port = self.daemon.port

    def kill(self):
        self.daemon.process.kill()
        self.daemon.wait()

    def has_ended(self):
        return self.daemon.process.poll() is not None


class Client(threading.Thread):
    """A thread that sends requests to one claimd until the load is over."""

    def __init__(self, load, number, front):
        super().__init__(daemon=True)
        self.load, self.number, self.front = load, number, front
        self.dice = random.Random("%d/%d" % (load.seed, number))
        self.connections = {}
        self.surprises, self.reasons = [], Counter()

    def hang_up(self):
        for connection in self.connections.values():
            connection.close()
        self.connections = {}

    def connection(self, front):
        if front not in self.connections:
            connection = http.client.HTTPConnection("127.0.0.1", front.port,
                                                    timeout=PATIENCE_S)
            connection.connect()
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections[front] = connection
        return self.connections[front]

    def fetch(self, method, target, body=None, headers=None, front=None):
        """Sends a request: (outcome, status, headers, document)."""
        front = front or self.front
        try:
            connection = self.connection(front)
        except OSError as error:
            self.reasons[str(error)] += 1
            return "refused", 0, {}, str(error)
        sent = time.monotonic()
        try:
            connection.request(method, "/v2/queues/" + target,
                               None if body is None else json.dumps(body),
                               dict(HEADERS, **(headers or {})))
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.connections.pop(front).close()
            self.reasons[type(error).__name__] += 1
            return "unknown", 0, {}, repr(error)
        if response.status < 300 and "Prefer" not in (headers or {}):
            self.load.times.append((sent, time.monotonic() - sent))
        document = json.loads(data) if data else None
        return self.outcome(method, target, response.status, document), response.status, \
            response.headers, document

    def outcome(self, method, target, status, document):
        if status < 300:
            return "ok"
        self.reasons["%d %s" % (status, document and document["description"])] += 1
        if status == 503:
            return "unknown" if document["title"] == "Outcome unknown" else "refused"
        if status in (400, 403) and method != "POST":
            return "denied"
        if status == 404 and method == "PATCH":
            return "gone"
        self.surprises.append("%s %s: %d %r" % (method, target, status, document))
        return "surprise"

    def run(self):
        try:
            while not self.load.over.is_set():
                outcome = self.step()
                if outcome != "ok":
                    self.load.over.wait(PAUSE_S)
        except Exception as error:  # noqa: B902: any exception fails the trial
            self.surprises.append("%s has failed: %r" % (self.name, error))
            raise
        finally:
            self.hang_up()


class Producer(Client):
    def __init__(self, load, number, front):
        super().__init__(load, number, front)
        self.posts, self.next = [], 0

    def step(self):
        if self.load.backlog() > self.load.most:
            time.sleep(PAUSE_S)
            return "ok"
        queue = self.dice.choice(self.load.queues)
        bodies = [(self.number, self.next + i) for i in range(self.dice.randint(1, 6))]
        self.next += len(bodies)
        filler = self.load.filler
        body = {"messages": [{"body": [*one, filler] if filler else one, "ttl": 3600}
                             for one in bodies]}
        sent = time.monotonic()
        outcome, _, _, _ = self.fetch("POST", queue + "/messages", body)
        done = time.monotonic()
        self.posts.append(Post(queue, bodies, sent, done, outcome, self.front.name))
        self.load.record_outcome(self.front, queue, outcome, done)
        return outcome


class Worker(Client):
    def __init__(self, load, number, front):
        super().__init__(load, number, front)
        self.held, self.deletions, self.lost_claims, self.lost_pops = [], [], [], []
        self.waits = []
        self.count = 0

    def step(self):
        queue = self.dice.choice(self.load.worked)
        if queue == POPPED:
            return self.pop(queue)
        return self.claim(queue, 0.4 if queue == LIMITED else 0.85)

    def pop(self, queue):
        """Pops messages. If the response is lost, the messages may be lost."""
        limit = self.dice.randint(1, LIMIT)
        sent = time.monotonic()
        outcome, _, _, document = self.fetch("DELETE", "%s/messages?pop=%d" % (queue, limit))
        done = time.monotonic()
        self.load.record_outcome(self.front, queue, outcome, None)
        if outcome == "unknown":
            self.lost_pops.append(LostPop(sent, done, limit))
        if outcome != "ok":
            return outcome
        for message in document["messages"]:
            body = tuple(message["body"][:2])
            self.held.append(Held(queue, body, message["id"], 0, 0, sent, done, math.inf,
                                  self.front.name))
            self.deletions.append(Deletion(queue, body, sent, done, outcome, self.front.name))
        self.count += len(document["messages"])
        if not document["messages"]:
            time.sleep(PAUSE_S)
        return "ok"

    def claim(self, queue, finish=0.85, wait=0.2):
        """Claims messages. Then it deletes them, perhaps after a renewal, releases the claim, or
        does nothing, so that the claim expires.
        """
        ttl, limit = self.dice.choice(self.load.ttls), self.dice.randint(1, LIMIT)
        waits = self.dice.random() < wait
        headers = {"Prefer": "wait=1"} if waits else None
        sent = time.monotonic()
        outcome, status, headers, document = self.fetch(
            "POST", "%s/claims?limit=%d" % (queue, limit), {"ttl": ttl, "grace": 60}, headers)
        done = time.monotonic()
        if waits:
            self.waits.append(Wait(queue, sent, done, self.front.name))
        if outcome == "unknown":
            self.lost_claims.append(LostClaim(queue, sent, done, ttl))
        self.load.record_outcome(self.front, queue, outcome, done if status == 201 else None)
        if status != 201:
            if status == 204:
                time.sleep(PAUSE_S)
            return outcome
        mine = []
        for at, message in enumerate(document["messages"]):
            mine.append(Held(queue, tuple(message["body"][:2]), message["id"],
                             int(headers["Claim-Number"]), at, sent, done, ttl,
                             self.front.name, waits=waits))
            mine[-1].href = message["href"].split("/queues/")[1]
        self.held += mine
        location = headers["Location"].split("/queues/")[1]
        what = self.dice.random()
        if what < finish:
            if self.dice.random() < 0.1:
                self.renew(location, mine)
            self.delete(mine)
        elif what < (1 + finish) / 2:
            self.release(location, mine)
        return "ok"

    def renew(self, location, mine):
        ttl = self.dice.choice(self.load.ttls)
        sent = time.monotonic()
        outcome = self.fetch("PATCH", location, {"ttl": ttl, "grace": 60})[0]
        done = time.monotonic()
        for held in mine:
            held.renewed(sent, done, ttl, outcome)
            held.notes.append("renewed for %g s at %.3f: %s"
                              % (ttl, sent - self.load.begun, outcome))

    def release(self, location, mine):
        sent = time.monotonic()
        outcome = self.fetch("DELETE", location)[0]
        for held in mine:
            held.released(sent, outcome)
            held.notes.append("released at %.3f: %s" % (sent - self.load.begun, outcome))

    def delete(self, mine):
        """Deletes messages one by one, or all with one request."""
        if len(mine) > 1 and self.dice.random() < 0.2:
            target = "%s/messages?ids=%s&claim_ids=%s" % (
                mine[0].queue, ",".join(one.id for one in mine),
                mine[0].href.partition("?claim_id=")[2])
            return self.finish_job(target, mine)
        for held in mine:
            self.finish_job(held.href, [held])

    def finish_job(self, target, mine):
        front = self.front
        if self.dice.random() < CROSSING:
            front = self.dice.choice(self.load.fronts)
        sent = time.monotonic()
        outcome, _, _, document = self.fetch("DELETE", target, front=front)
        done = time.monotonic()
        for held in mine:
            self.deletions.append(Deletion(held.queue, held.body, sent, done, outcome,
                                           front.name, why=str(document or ""), held=held))
        self.load.record_outcome(self.front, mine[0].queue, outcome, done)
        if outcome == "ok":
            self.count += len(mine)


class Load:
    """All clients, and the outcomes of their requests."""

    def __init__(self, fronts, queues, seed, producers=8, workers=8, ttls=(2, 2, 5, 60),
                 filler=0, most=3000):
        self.fronts, self.queues, self.seed, self.ttls, self.most = \
            fronts, queues, seed, ttls, most
        self.worked = queues + [DEAD] if LIMITED in queues else queues
        self.filler = "x" * filler
        self.over, self.begun = threading.Event(), time.monotonic()
        self.good = []      # (when, claimd, queue) of each change with the outcome ok
        self.outcomes = []  # (when, outcome) of each request with another one
        self.times = []     # (when, seconds) of each request that succeeded without long polling
        self.producers = [Producer(self, 1 + i, fronts[i % len(fronts)])
                          for i in range(producers)]
        self.workers = [Worker(self, 101 + i, fronts[i % len(fronts)])
                        for i in range(workers)]

    def clients(self):
        return self.producers + self.workers

    def record_outcome(self, front, queue, outcome, when):
        """Records the outcome of a request. when None: ok, but it does not count as a change."""
        if outcome != "ok":
            self.outcomes.append((time.monotonic(), outcome))
        elif when is not None:
            self.good.append((when, front.name, queue))

    def backlog(self):
        return sum(p.next for p in self.producers) - sum(w.count for w in self.workers)

    def start(self):
        for client in self.clients():
            client.start()

    def stop(self):
        self.over.set()
        for client in self.clients():
            client.join()

    def longest_gap(self, since, until, front=None, queues=None):
        """The longest time without a change with the outcome ok, on that claimd and queues."""
        times = sorted(when for when, name, queue in list(self.good)
                       if since <= when <= until and (front is None or name == front)
                       and (queues is None or queue in queues))
        times = [since] + times + [until]
        return max(after - before for before, after in zip(times, times[1:]))

    def response_times(self, spans):
        """The sorted seconds of the requests that were sent in these spans of time."""
        return sorted(took for sent, took in list(self.times)
                      if any(since <= sent <= until for since, until in spans))

    def count(self, outcome, since, until):
        return sum(since <= when <= until and what == outcome
                   for when, what in list(self.outcomes))


class Reader(Client):
    """Lists the messages that are left in the end, and has a worker delete them."""

    def __init__(self, load, front):
        super().__init__(load, 0, front)

    def insist(self, method, target, body=None):
        """Repeats a request until its outcome is ok: (status, headers, document)."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            outcome, status, headers, document = self.fetch(method, target, body)
            if outcome == "ok":
                return status, headers, document
            if time.monotonic() > deadline:
                raise RuntimeError("%s %s: %d %r" % (method, target, status, document))
            time.sleep(PAUSE_S)

    def listed(self, queue):
        """(body, id) of all messages of a queue."""
        found = []
        target = "%s/messages?echo=true&include_claimed=true&limit=1000" % queue
        while True:
            document = self.insist("GET", target)[2]
            page = document["messages"]
            found += [(tuple(message["body"][:2]), message["id"]) for message in page]
            if not page:
                return found
            target = document["links"][0]["href"].split("/queues/")[1]

    def total(self, queue):
        return self.insist("GET", queue + "/stats")[2]["messages"]["total"]

    def drain(self, worker, queues, patience):
        """Has a worker claim and delete all messages. Returns the queues that are not empty then.

        The worker stops when the total has not shrunk for `patience` seconds: a busy machine is slow.
        """
        deadline, before = time.monotonic() + patience, None
        while True:
            # All queues again, because a dead letter moves from one to another.
            left = {queue: self.total(queue) for queue in queues}
            left = {queue: total for queue, total in left.items() if total > 0}
            if before is None or sum(left.values()) < before:
                deadline, before = time.monotonic() + patience, sum(left.values())
            if not left or time.monotonic() > deadline:
                return left
            for queue in left:
                worker.claim(queue, finish=1, wait=0)


def tail(path, count=5):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as f:
        return "".join(f.readlines()[-count:])
