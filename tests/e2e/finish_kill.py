#!/usr/bin/python3
"""Finish, redrive and Idempotency-Keys while claimd is killed, or nodes of the Redis Cluster behind it.

    finish_kill.py CLAIMD SECONDS [--redis] [--seed N] [--faults A,B,...]

Each token is one message. Workers claim it, and finish it with a post of the token's next step to another
queue. Or they release it with a delay and a reason, or dead-letter it, and a redriver puts dead letters back.
A popper pops it and posts the next step. A producer posts new tokens.
So at any time a token is in exactly one queue, or in transfer. In the end each is there once.
A step whose finish was acknowledged is never seen again, and never finished twice. The post of a finish that
was refused is never seen. A request with a key is repeated until its outcome is known, and sometimes once
more: it has one effect. Status 1 otherwise.
"""

import argparse
import contextlib
import http.client
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)

from daemon import Daemon, environment  # noqa: E402
from load import HEADERS, OPTIONS, PROJECT, Front, tail  # noqa: E402
from journal_kill import Place  # noqa: E402
from redis_kill import NODE_TIMEOUT_S, Faults, hash_tag, spread_queues  # noqa: E402
from redis_nodes import Cluster  # noqa: E402

TOKENS, WORKERS, FRONTS = 200, 8, 2
DEAD = "dead"
REASON = "the reason"
FAULTS = ("kill_claimd", "kill_primary", "kill_claimd", "stall_primary", "kill_claimd", "move_slot")
ARRIVAL_S = 40  # all transfers have arrived after this
OUTCOME_S = 60  # a request with a key has an outcome after this
KEYED = 0.5     # so many requests have a key
AGAIN = 0.2     # so many of these are repeated although their outcome is known


class Fetcher:
    """Sends requests to one claimd after the other: (status, document, headers); status 0 without a response."""

    def __init__(self, fronts, name="fetcher"):
        self.fronts, self.turn, self.connection = fronts, 0, None
        self.name, self.keys = name, 0

    def fetch(self, method, path, body=None, key=None):
        if self.connection is None:
            front = self.fronts[self.turn % len(self.fronts)]
            self.turn += 1
            self.connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=20)
        headers = HEADERS if key is None else dict(HEADERS, **{"Idempotency-Key": key})
        try:
            self.connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = self.connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            return 0, None, {}
        return response.status, json.loads(data) if data else None, response.headers

    def insist(self, method, path, body=None):
        deadline = time.monotonic() + 30
        while True:
            status, document, _ = self.fetch(method, path, body)
            if 200 <= status < 300:
                return document
            if time.monotonic() > deadline:
                raise RuntimeError("%s %s: %d %r" % (method, path, status, document))
            time.sleep(0.05)

    def new_key(self):
        self.keys += 1
        return "%s-key-%d" % (self.name, self.keys)

    def until_known(self, method, path, body, key):
        """Repeats the request until its outcome is known."""
        deadline = time.monotonic() + OUTCOME_S
        while True:
            status, document, headers = self.fetch(method, path, body, key)
            running = status == 409 and document["title"] == "Request in progress"
            if status not in (0, 503) and not running:
                return status, document, headers
            if time.monotonic() > deadline:
                raise RuntimeError("%s %s has no outcome: %d %r" % (method, path, status, document))
            time.sleep(0.02)


class Load:
    def __init__(self, fronts, queues, seed):
        self.fronts, self.queues, self.seed = fronts, queues, seed
        self.over, self.lock = threading.Event(), threading.Lock()
        self.tokens = 0
        self.done = {}                 # (token, step): when its finish was acknowledged
        self.refused = set()           # nonces of posts that were refused
        self.counts, self.wrong = Counter(), []
        self.threads = [threading.Thread(target=self.run, args=(self.work, "w%d" % i), daemon=True)
                        for i in range(WORKERS)]
        for name in ("pop", "produce", "redrive"):
            self.threads.append(threading.Thread(target=self.run, args=(getattr(self, name), name),
                                                 daemon=True))

    def run(self, step, name):
        """One kind of client, until the load is over."""
        dice, fetcher = random.Random("%d/%s" % (self.seed, name)), Fetcher(self.fronts, name)
        fetcher.turn = len(name) if name[0] != "w" else int(name[1:])
        try:
            while not self.over.is_set():
                step(dice, fetcher)
        except Exception as error:  # noqa: B902: whatever it was, the trial has failed
            self.report_wrong("%s has failed: %r" % (name, error))
            raise

    def report_wrong(self, text):
        with self.lock:
            self.wrong.append(text)

    def count(self, what, by=1):
        with self.lock:
            self.counts[what] += by

    def request(self, dice, fetcher, method, path, body, same):
        """With a key or without. same(first, again): what is wrong with a repeated response, or nothing."""
        if dice.random() >= KEYED:
            return fetcher.fetch(method, path, body)
        key = fetcher.new_key()
        status, document, headers = fetcher.until_known(method, path, body, key)
        self.count("repeated" if "Idempotent-Replay" in headers else "with a key")
        if status in (200, 201) and dice.random() < AGAIN:
            again = fetcher.until_known(method, path, body, key)
            text = same((status, document, headers), again)
            if text:
                self.report_wrong("%s %s: %s: %r, then %r" % (method, path, text, document, again))
        return status, document, headers

    @staticmethod
    def is_same(first, again):
        """Also if the posts of a finish are in transfer: the ids are not remembered."""
        if again[0] != first[0] or "Idempotent-Replay" not in again[2]:
            return "it is not repeated"
        for message in first[1].get("messages", []) + again[1].get("messages", []):
            message["age"] = 0 # it grows
        names = [name for name in first[1] if name != "posted"]
        return "" if all(first[1][name] == again[1][name] for name in names) else "another result"

    @staticmethod
    def is_same_claim(first, again):
        if again[0] == 409 and again[1]["title"] == "Claim has ended":
            return ""
        if again[0] != 201 or "Idempotent-Replay" not in again[2]:
            return "it is not repeated"
        return "" if first[2]["Location"] == again[2]["Location"] else "another claim"

    def seen(self, token, step, nonce, sent):
        """A request that was sent at this time shows this step."""
        with self.lock:
            done, refused = self.done.get((token, step)), nonce in self.refused
        if done is not None and done < sent:
            self.report_wrong("token %d, step %d is there after it was finished" % (token, step))
        if refused:
            self.report_wrong("token %d, step %d is there, but its post was refused"
                              % (token, step))

    def finished(self, steps):
        now = time.monotonic()
        with self.lock:
            for one in steps:
                if one in self.done:
                    self.wrong.append("token %d, step %d was finished twice" % one)
                self.done[one] = now

    def work(self, dice, fetcher):
        at = dice.randrange(len(self.queues))
        sent = time.monotonic()
        status, document, _ = self.request(dice, fetcher, "POST", "/v2/queues/%s/claims?limit=4" % self.queues[at],
                                           {"ttl": 2, "grace": 3600}, self.is_same_claim)
        self.count("claims %d" % status)
        if status == 201:
            self.finish(dice, fetcher, at, document["messages"], sent)
        else:
            time.sleep(0.01)

    def finish(self, dice, fetcher, at, messages, sent):
        body = {"delete": [], "release": [], "dead_letter": [], "post": []}
        posts, steps, nonce = defaultdict(list), [], fetcher.new_key()
        for message in messages:
            token, step, before = message["body"]
            self.seen(token, step, before, sent)
            what = dice.random()
            if what < 0.1:
                body["release"].append({"id": message["id"], "delay": dice.randint(0, 1),
                                        "reason": REASON})
            elif what < 0.2:
                body["dead_letter"].append({"id": message["id"], "reason": REASON})
            else:
                body["delete"].append(message["id"])
                to = self.queues[(at + dice.randrange(1, len(self.queues))) % len(self.queues)]
                posts[to].append({"body": [token, step + 1, nonce], "ttl": 3600})
                steps.append((token, step))
        body["post"] = [{"queue": to, "messages": some} for to, some in posts.items()]
        claim = messages[0]["href"].split("claim_id=")[1]
        status, document, _ = self.request(dice, fetcher, "POST", "/claimd/queues/%s/claims/%s/finish"
                                           % (self.queues[at], claim), body, self.is_same)
        self.count("finish %d" % status)
        if status == 200:
            self.count("pending", sum("posted" in one for one in document.get("posted", [])))
            self.finished(steps)
        elif status == 409:
            with self.lock:
                self.refused.add(nonce)
        elif status not in (0, 503):
            self.report_wrong("finish: %d %r" % (status, document))

    def pop(self, dice, fetcher):
        """Pops, and posts the next step. Only a key makes both safe."""
        path = "/v2/queues/%s/messages?pop=2" % dice.choice(self.queues)
        sent, key = time.monotonic(), fetcher.new_key()
        first = fetcher.until_known("DELETE", path, None, key)
        self.count("pops %d" % first[0])
        if first[1]["messages"] and dice.random() < AGAIN: # one that finds nothing keeps no key
            text = self.is_same(first, fetcher.until_known("DELETE", path, None, key))
            if text:
                self.report_wrong("a pop: " + text)
        for message in first[1]["messages"]:
            token, step, before = message["body"]
            self.seen(token, step, before, sent)
            self.finished([(token, step)])
            self.post(dice, fetcher, [token, step + 1, fetcher.new_key()])
        time.sleep(0.02)

    def post(self, dice, fetcher, body):
        path, key = "/v2/queues/%s/messages" % dice.choice(self.queues), fetcher.new_key()
        message = {"messages": [{"body": body, "ttl": 3600}]}
        first = fetcher.until_known("POST", path, message, key)
        self.count("posts %d%s" % (first[0], ", repeated" * ("Idempotent-Replay" in first[2])))
        if first[0] != 201:
            self.report_wrong("a post: %r" % (first,))
        elif dice.random() < AGAIN:
            text = self.is_same(first, fetcher.until_known("POST", path, message, key))
            if text:
                self.report_wrong("a post: " + text)

    def produce(self, dice, fetcher):
        with self.lock:
            self.tokens += 1
            token = self.tokens - 1
        self.post(dice, fetcher, [token, 0, ""])
        time.sleep(0 if token < TOKENS else 0.1)

    def redrive(self, _, fetcher):
        status, document, _ = fetcher.fetch("POST", "/claimd/queues/%s/redrive" % DEAD, {"limit": 20})
        self.count("redrive %d" % status)
        if status == 200:
            self.count("put back", document["moved"])
        elif status not in (0, 404, 503):
            self.report_wrong("redrive: %d %r" % (status, document))
        time.sleep(0.1)

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        for thread in self.threads:
            thread.join()

    def judge(self, fetcher):
        """Looks for each token once in all queues."""
        found = defaultdict(list)
        for queue in self.queues + [DEAD]:
            path = ("/v2/queues/%s/messages?echo=true&include_claimed=true&include_delayed=true"
                    "&limit=1000" % queue)
            for message in fetcher.insist("GET", path)["messages"]:
                token, step, nonce = message["body"]
                found[token].append((queue, step, nonce))
        for token in range(self.tokens):
            if len(found[token]) != 1:
                self.wrong.append("token %d is there %d times: %r" % (token, len(found[token]), found[token]))
            for _, step, nonce in found[token]:
                if (token, step) in self.done:
                    self.wrong.append("token %d, step %d is there in the end" % (token, step))
                if nonce in self.refused:
                    self.wrong.append("token %d, step %d was refused and is there" % (token, step))
        for name, count in sorted(self.counts.items()):
            print("    %6d %s" % (count, name))
        print("%d tokens, %d steps" % (self.tokens, len(self.done)))
        for text in self.wrong[:20]:
            print("wrong: " + text)
        return bool(self.wrong)


class OnJournal:
    QUEUES = ["a", "b", "c"]

    def __init__(self, args, folder):
        self.place = Place(args.program, folder, args.seed)
        self.load = Load([self.place.front], self.QUEUES, args.seed)
        self.fetcher = Fetcher(self.load.fronts)

    def run(self, seconds):
        begun = time.monotonic()
        while time.monotonic() - begun < seconds:
            self.place.run(1, None)
        self.load.over.set()
        print("%d starts" % self.place.starts)

    def settle(self):
        pass

    def show_logs(self):
        print(tail(self.place.log))


class OnRedis:
    def __init__(self, args, cluster, folder):
        self.program, self.cluster, self.folder, self.starts = args.program, cluster, folder, 0
        self.fault_names = args.faults.split(",")
        queues = spread_queues()[::2]
        fronts = [Front("claimd%d" % i, self.start_claimd) for i in range(FRONTS)]
        self.load = Load(fronts, queues, args.seed)
        self.fetcher = Fetcher(fronts)
        self.faults = Faults(cluster, fronts, queues + [DEAD], random.Random(args.seed))

    def start_claimd(self, port):
        self.starts += 1
        log = os.path.join(self.folder, "claimd-%d" % self.starts)
        with open(log, "w", encoding="utf-8") as stderr:
            return Daemon("setpriv", "--pdeathsig", "KILL", self.program, "--store",
                          self.cluster.url(replicas=1), *OPTIONS, listen="127.0.0.1:%d" % port,
                          stderr=stderr, env=environment())

    def in_transfer(self):
        count = 0
        for queue in self.load.queues + [DEAD]:
            key = "claimd:1:%s:x" % hash_tag(queue)
            count += sum(field != "" for field in self.cluster.primary_of(key).say("HKEYS", key))
        return count

    def run(self, seconds):
        begun, turn = time.monotonic(), []
        while turn or time.monotonic() - begun < seconds or seconds == 0:
            if not turn:
                turn = list(self.fault_names)
            _, what = getattr(self.faults, turn.pop(0))()
            self.cluster.wait_whole()
            print("%7.1f s  %s" % (time.monotonic() - begun, what), flush=True)
            time.sleep(1)
            if seconds == 0 and not turn:
                break
        for front in self.load.fronts: # in the middle of whatever they do
            front.kill()
        print("%d transfers were stranded by the last kill" % self.in_transfer())
        self.load.over.set()
        for front in self.load.fronts:
            front.start()

    def settle(self):
        """Waits until nothing is in transfer. Claims and redrives complete transfers."""
        deadline = time.monotonic() + ARRIVAL_S
        while self.in_transfer() > 0 and time.monotonic() < deadline:
            for queue in self.load.queues:
                _, document, _ = self.fetcher.fetch("POST", "/v2/queues/%s/claims?limit=1" % queue,
                                                    {"ttl": 1, "grace": 3600})
                if document:
                    claim = document["messages"][0]["href"].split("claim_id=")[1]
                    self.fetcher.fetch("DELETE", "/v2/queues/%s/claims/%s" % (queue, claim))
            self.fetcher.fetch("POST", "/claimd/queues/%s/redrive" % DEAD, {"dry_run": False, "limit": 1})
            time.sleep(0.2)
        if self.in_transfer() > 0:
            self.load.wrong.append("%d transfers do not arrive" % self.in_transfer())

    def show_logs(self):
        for i in range(self.starts):
            print(tail(os.path.join(self.folder, "claimd-%d" % (i + 1))))


def trial(args, stack):
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="claimd-finish-"))
    if args.redis:
        cluster = stack.enter_context(Cluster(3, 1, cluster_node_timeout=int(NODE_TIMEOUT_S * 1000)))
        place = OnRedis(args, cluster, folder)
    else:
        place = OnJournal(args, folder)
    load = place.load
    try:
        for queue in load.queues:
            place.fetcher.insist("PUT", "/v2/queues/%s" % queue, {"_dead_letter_queue": DEAD})
        load.start()
        time.sleep(1)
        place.run(args.seconds)
        load.stop()
        place.settle()
        return load.judge(place.fetcher)
    except BaseException:
        place.show_logs()
        raise
    finally:
        for front in load.fronts:
            if not front.has_ended():
                front.daemon.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("seconds", type=float, help="with --redis, 0: each fault once")
    parser.add_argument("--redis", action="store_true")
    parser.add_argument("--seed", type=int, default=time.time_ns() & 0xFFFFFF)
    parser.add_argument("--faults", default=",".join(FAULTS))
    args = parser.parse_args()
    print("seed %d, project %s" % (args.seed, PROJECT), flush=True)
    with contextlib.ExitStack() as stack:
        return 1 if trial(args, stack) else 0


if __name__ == "__main__":
    sys.exit(main())
