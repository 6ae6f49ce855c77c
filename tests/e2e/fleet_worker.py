"""The people of the fleet: producers and workers, each a process with python-zaqarclient.

Every process appends what it did to a journal of its own, one JSON object a line, written
straight to the file, so that even a killed process leaves all it had written. Times are of
CLOCK_MONOTONIC, which all processes of a machine share. An event that stands for a request
has the time before it was sent (`sent`) and after its response (`done`): the server
acted somewhere in between.

    post     numbers                         these messages were accepted
    claim    claim ttl messages              these messages were handed to us
    renew    claim ttl                       the claim begins anew
    release  claim                           logged before it is sent
    try      claim number                    a deletion is about to be sent
    finish   claim number                    its response is 204
    refused  claim number                    its response is 400 or 403
    gone     claim                           the response to a renewal is 404
    crash    claim                           the process kills itself now
"""

import json
import os
import random
import signal
import time
import uuid

from zaqarclient.queues import client as zaqar
from zaqarclient.transport import errors

QUEUE = "work"
PROJECT = "fleet"
REFUSALS = (errors.MalformedRequest, errors.ForbiddenError)


def open_queue(url):
    """The queue, seen by a client of its own."""
    options = {"backend": "noauth", "options": {"os_project_id": PROJECT}}
    conf = {"auth_opts": options, "client_uuid": str(uuid.uuid4())}
    return zaqar.Client(url, version=2, conf=conf).queue(QUEUE)


class Journal:
    def __init__(self, path):
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, what, **members):
        line = json.dumps({"what": what, "at": time.monotonic(), **members})
        os.write(self.fd, line.encode() + b"\n")


def produce(url, path, seed, numbers):
    """Posts messages with these numbers, one to twenty at a time."""
    dice = random.Random(seed)
    journal = Journal(path)
    queue = open_queue(url)
    while numbers:
        count = dice.randint(1, 20)
        batch, numbers = numbers[:count], numbers[count:]
        response = queue.post([
            {"ttl": 3600, "body": {"number": n, "word": "ž" * dice.randint(0, 40)}} for n in batch])
        if len(response["resources"]) != len(batch):
            raise RuntimeError("posted %d messages, %r came back" % (len(batch), response))
        journal.write("post", numbers=batch)


class Held:
    """A claim as its worker knows it."""

    def __init__(self, claim, sent, ttl):
        self.claim = claim
        self.messages = list(claim)
        self.ends = sent + ttl  # it certainly lives until then


class Worker:
    def __init__(self, url, path, seed, ttl):
        self.dice = random.Random(seed)
        self.journal = Journal(path)
        self.queue = open_queue(url)
        self.ttl = ttl

    def run(self, stop):
        """Works until the file `stop` exists (a lock could die with a killed worker)."""
        while not os.path.exists(stop):
            held = self.take()
            if held is None:
                time.sleep(0.05)
                continue
            self.dice.choices(self.HABITS, self.WEIGHTS)[0](self, held)

    def take(self):
        sent = time.monotonic()
        claim = self.queue.claim(ttl=self.ttl, grace=1, limit=self.dice.randint(1, 20))
        done = time.monotonic()
        if claim.id is None:
            return None
        held = Held(claim, sent, self.ttl)
        self.journal.write("claim", claim=claim.id, ttl=self.ttl, sent=sent, done=done,
                           messages=[m.body["number"] for m in held.messages])
        return held

    def finish(self, held, count):
        """Deletes the next `count` messages, one by one, each with the claim's id."""
        batch, held.messages = held.messages[:count], held.messages[count:]
        for message in batch:
            about = {"claim": held.claim.id, "number": message.body["number"]}
            sent = time.monotonic()
            self.journal.write("try", sent=sent, **about)
            try:
                message.delete()
                self.journal.write("finish", sent=sent, done=time.monotonic(), **about)
            except REFUSALS:
                self.journal.write("refused", sent=sent, done=time.monotonic(), **about)

    def renew(self, held):
        sent = time.monotonic()
        try:
            held.claim.update(ttl=self.ttl, grace=1)
        except errors.ResourceNotFound:
            self.journal.write("gone", claim=held.claim.id, sent=sent, done=time.monotonic())
            return False
        held.ends = sent + self.ttl
        self.journal.write("renew", claim=held.claim.id, ttl=self.ttl, sent=sent,
                           done=time.monotonic())
        return True

    def release(self, held):
        self.journal.write("release", claim=held.claim.id, sent=time.monotonic())
        held.claim.delete()

    # Ends of the work on a claim.

    def do_all(self, held):
        self.finish(held, len(held.messages))

    def do_slowly(self, held):
        """Holds on to the messages until the claim is nearly over."""
        time.sleep(self.ttl * self.dice.uniform(0.2, 0.7))
        self.finish(held, len(held.messages))

    def renew_halfway(self, held):
        self.finish(held, len(held.messages) // 2)
        time.sleep(self.ttl * self.dice.uniform(0, 0.8))
        if self.renew(held):
            self.finish(held, len(held.messages))

    def give_back(self, held):
        self.finish(held, self.dice.randint(0, len(held.messages)))
        self.release(held)

    def come_late(self, held):
        """Oversleeps the claim, then tries to go on as if nothing had happened."""
        time.sleep(max(0, held.ends - time.monotonic()) + self.dice.uniform(0.01, 0.3))
        if self.dice.random() < 0.3:
            self.renew(held)
        self.finish(held, len(held.messages))

    def crash(self, held):
        self.finish(held, self.dice.randint(0, len(held.messages) - 1))
        self.journal.write("crash", claim=held.claim.id)
        os.kill(os.getpid(), signal.SIGKILL)

    HABITS, WEIGHTS = zip(
        (do_all, 70), (do_slowly, 6), (renew_halfway, 7), (give_back, 10), (come_late, 4),
        (crash, 3))


def work(url, path, seed, ttl, stop):
    Worker(url, path, seed, ttl).run(stop)
