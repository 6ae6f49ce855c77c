#!/usr/bin/python3
"""Finish and redrive on a Redis Cluster that loses nodes, and by claimd that are killed.

    redis_finish_kill.py CLAIMD SECONDS [--seed N] [--faults A,B,...]

Each token is one message. Workers claim it, and finish it with a post of the token's next step to another
queue, in another shard. Or they release it with a delay and a reason, or dead-letter it, and a redriver puts dead letters
back. So at any time a token is in exactly one queue, or in transfer. In the end each is there once.
A step whose finish was acknowledged is never seen again, and never finished twice. Status 1 otherwise.
"""

import argparse
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
from redis_kill import NODE_TIMEOUT_S, Faults, hash_tag, spread_queues  # noqa: E402
from redis_nodes import Cluster  # noqa: E402

TOKENS, WORKERS, FRONTS = 200, 8, 2
DEAD = "dead"
REASON = "the reason"
FAULTS = ("kill_claimd", "kill_primary", "kill_claimd", "stall_primary", "kill_claimd", "move_slot")
ARRIVAL_S = 40  # all transfers have arrived after this


class Asker:
    """Sends requests to one claimd after the other: (status, document); status 0 without a response."""

    def __init__(self, fronts):
        self.fronts, self.turn, self.connection = fronts, 0, None

    def ask(self, method, path, body=None):
        if self.connection is None:
            front = self.fronts[self.turn % len(self.fronts)]
            self.turn += 1
            self.connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=20)
        try:
            self.connection.request(method, path, None if body is None else json.dumps(body), HEADERS)
            response = self.connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            return 0, None
        return response.status, json.loads(data) if data else None

    def insist(self, method, path, body=None):
        deadline = time.monotonic() + 30
        while True:
            status, document = self.ask(method, path, body)
            if 200 <= status < 300:
                return document
            if time.monotonic() > deadline:
                raise RuntimeError("%s %s: %d %r" % (method, path, status, document))
            time.sleep(0.05)


class Load:
    def __init__(self, fronts, queues, seed):
        self.fronts, self.queues, self.seed = fronts, queues, seed
        self.over, self.lock = threading.Event(), threading.Lock()
        self.done = {}                 # (token, step): when its finish was acknowledged
        self.counts, self.wrong = Counter(), []
        self.threads = [threading.Thread(target=self.work, args=(i,), daemon=True)
                        for i in range(WORKERS)]
        self.threads.append(threading.Thread(target=self.redrive, daemon=True))

    def tell_wrong(self, text):
        with self.lock:
            self.wrong.append(text)

    def seen(self, token, step, sent):
        """A claim that was sent at this time shows this step."""
        with self.lock:
            done = self.done.get((token, step))
        if done is not None and done < sent:
            self.tell_wrong("token %d, step %d is there after it was finished" % (token, step))

    def work(self, number):
        dice, asker = random.Random("%d/%d" % (self.seed, number)), Asker(self.fronts)
        asker.turn = number
        while not self.over.is_set():
            at = dice.randrange(len(self.queues))
            sent = time.monotonic()
            status, document = asker.ask("POST", "/v2/queues/%s/claims?limit=4" % self.queues[at],
                                         {"ttl": 2, "grace": 3600})
            self.counts["claims %d" % status] += 1
            if status != 201:
                time.sleep(0.01)
                continue
            self.finish(dice, asker, at, document["messages"], sent)

    def finish(self, dice, asker, at, messages, sent):
        body = {"delete": [], "release": [], "dead_letter": [], "post": []}
        posts, finished = defaultdict(list), []
        for message in messages:
            token, step = message["body"]
            self.seen(token, step, sent)
            what = dice.random()
            if what < 0.1:
                body["release"].append({"id": message["id"], "delay": dice.randint(0, 1),
                                        "reason": REASON})
            elif what < 0.2:
                body["dead_letter"].append({"id": message["id"], "reason": REASON})
            else:
                body["delete"].append(message["id"])
                to = self.queues[(at + dice.randrange(1, len(self.queues))) % len(self.queues)]
                posts[to].append({"body": [token, step + 1], "ttl": 3600})
                finished.append((token, step))
        body["post"] = [{"queue": to, "messages": some} for to, some in posts.items()]
        claim = messages[0]["href"].split("claim_id=")[1]
        status, document = asker.ask("POST", "/claimd/queues/%s/claims/%s/finish"
                                     % (self.queues[at], claim), body)
        self.counts["finish %d" % status] += 1
        if status == 200:
            self.counts["pending"] += sum("posted" in one for one in document.get("posted", []))
            now = time.monotonic()
            with self.lock:
                for one in finished:
                    if one in self.done:
                        self.wrong.append("token %d, step %d was finished twice" % one)
                    self.done[one] = now
        elif status not in (0, 409, 503):
            self.tell_wrong("finish: %d %r" % (status, document))

    def redrive(self):
        asker = Asker(self.fronts)
        while not self.over.is_set():
            status, document = asker.ask("POST", "/claimd/queues/%s/redrive" % DEAD, {"limit": 20})
            self.counts["redrive %d" % status] += 1
            if status == 200:
                self.counts["put back"] += document["moved"]
            elif status not in (0, 404, 503):
                self.tell_wrong("redrive: %d %r" % (status, document))
            time.sleep(0.1)

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


class Trial:
    def __init__(self, program, cluster, folder, seed):
        self.program, self.cluster, self.folder, self.starts = program, cluster, folder, 0
        self.queues = spread_queues()[::2]
        self.fronts = [Front("claimd%d" % i, self.start_claimd) for i in range(FRONTS)]
        self.load = Load(self.fronts, self.queues, seed)
        self.asker = Asker(self.fronts)
        self.faults = Faults(cluster, self.fronts, self.queues + [DEAD], random.Random(seed))
        self.stranded = 0
        for queue in self.queues:
            self.asker.insist("PUT", "/v2/queues/%s" % queue, {"_dead_letter_queue": DEAD})

    def start_claimd(self, port):
        self.starts += 1
        log = os.path.join(self.folder, "claimd-%d" % self.starts)
        with open(log, "w", encoding="utf-8") as stderr:
            return Daemon("setpriv", "--pdeathsig", "KILL", self.program, "--store",
                          self.cluster.url(replicas=1), *OPTIONS, listen="127.0.0.1:%d" % port,
                          stderr=stderr, env=environment())

    def in_transfer(self):
        count = 0
        for queue in self.queues + [DEAD]:
            key = "claimd:1:%s:x" % hash_tag(queue)
            count += sum(field != "" for field in self.cluster.primary_of(key).say("HKEYS", key))
        return count

    def run(self, seconds, faults):
        for token in range(TOKENS):
            self.asker.insist("POST", "/v2/queues/%s/messages" % self.queues[token % len(self.queues)],
                              {"messages": [{"body": [token, 0], "ttl": 3600}]})
        self.load.start()
        begun, turn = time.monotonic(), []
        time.sleep(1)
        while turn or time.monotonic() - begun < seconds or seconds == 0:
            if not turn:
                turn = list(faults)
            name = turn.pop(0)
            _, what = getattr(self.faults, name)()
            self.cluster.wait_whole()
            print("%7.1f s  %s: %s" % (time.monotonic() - begun, name, what), flush=True)
            time.sleep(1)
            if seconds == 0 and not turn:
                break
        for front in self.fronts: # in the middle of whatever they do
            front.kill()
        self.stranded = self.in_transfer()
        self.load.stop()
        for front in self.fronts:
            front.start()

    def settle(self):
        """Waits until nothing is in transfer. Claims and redrives complete transfers."""
        deadline = time.monotonic() + ARRIVAL_S
        while self.in_transfer() > 0 and time.monotonic() < deadline:
            for queue in self.queues:
                _, document = self.asker.ask("POST", "/v2/queues/%s/claims?limit=1" % queue,
                                             {"ttl": 1, "grace": 3600})
                if document:
                    claim = document["messages"][0]["href"].split("claim_id=")[1]
                    self.asker.ask("DELETE", "/v2/queues/%s/claims/%s" % (queue, claim))
            self.asker.ask("POST", "/claimd/queues/%s/redrive" % DEAD, {"dry_run": False, "limit": 1})
            time.sleep(0.2)
        return self.in_transfer()

    def judge(self):
        load, found = self.load, defaultdict(list)
        left = self.settle()
        if left > 0:
            load.wrong.append("%d transfers do not arrive" % left)
        for queue in self.queues + [DEAD]:
            path = ("/v2/queues/%s/messages?echo=true&include_claimed=true&include_delayed=true"
                    "&limit=1000" % queue)
            for message in self.asker.insist("GET", path)["messages"]:
                found[message["body"][0]].append((queue, message["body"][1]))
        for token in range(TOKENS):
            if len(found[token]) != 1:
                load.wrong.append("token %d is there %d times: %r" % (token, len(found[token]), found[token]))
            for _, step in found[token]:
                if (token, step) in load.done:
                    load.wrong.append("token %d, step %d is there in the end" % (token, step))
        for name, count in sorted(load.counts.items()):
            print("    %6d %s" % (count, name))
        print("%d transfers were stranded by the last kill; %d steps" % (self.stranded, len(load.done)))
        for text in load.wrong[:20]:
            print("wrong: " + text)
        return bool(load.wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("seconds", type=float, help="0: each fault once")
    parser.add_argument("--seed", type=int, default=time.time_ns() & 0xFFFFFF)
    parser.add_argument("--faults", default=",".join(FAULTS))
    args = parser.parse_args()
    print("seed %d, project %s" % (args.seed, PROJECT), flush=True)
    with tempfile.TemporaryDirectory(prefix="claimd-redis-finish-") as folder, \
            Cluster(3, 1, cluster_node_timeout=int(NODE_TIMEOUT_S * 1000)) as cluster:
        trial = Trial(args.program, cluster, folder, args.seed)
        try:
            trial.run(args.seconds, args.faults.split(","))
            return 1 if trial.judge() else 0
        except BaseException:
            for i in range(trial.starts):
                print(tail(os.path.join(folder, "claimd-%d" % (i + 1))))
            raise
        finally:
            for front in trial.fronts:
                if not front.has_ended():
                    front.daemon.stop()


if __name__ == "__main__":
    sys.exit(main())
