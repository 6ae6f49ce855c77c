#!/usr/bin/python3
"""A Redis Cluster loses nodes under load: nothing that was acknowledged is lost, or done twice.

    redis_kill.py CLAIMD SECONDS [OPTION...]

    --faults A,B,...   these, in turn, once at least, instead of all in an order from the seed
    --replicas N       of each primary (1); claimd insists on all of them
    --seed N           for the dice
    --short            claims are short, so that the end comes soon
    --no-letters       without a queue from which messages go to another one when they were
                       claimed too often
    --partitions       nodes are cut off, too, if there are network namespaces (apart.py)
    --lossy            shows that the judge sees losses: 2 replicas, of which 1 must confirm

Producers and workers (load.py) use two claimd in front of three primaries, each client
one of them, while one fault after the other is injected; before the next the cluster is whole
again. In the end all is listed and taken out, and judge.py compares the responses.
Status 1 if it finds anything; with --lossy, if it does not. Status 77: the server lacks a fault that
is named (migrate_slot needs Valkey 9).
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)

import apart  # noqa: E402
from daemon import Daemon, environment  # noqa: E402
from judge import DEAD, LIMITED, MOST_CLAIMS, POPPED, Judge  # noqa: E402
from load import OPTIONS, PROJECT, Front, Load, Reader, Worker, tail  # noqa: E402
from redis_nodes import SLOTS, Cluster, RedisError, eventually, slot_of  # noqa: E402

PRIMARIES, FRONTS, QUEUES_EACH = 3, 2, 2
NODE_TIMEOUT_S = 1.5
REST_S = 1.5  # between two faults
SHOWN = 4     # violations of a kind
LETTERS_S = 15  # that those that are under way have in the end


def hash_tag(queue):
    return "{%s/%s}" % (PROJECT, queue)


def spread_queues():
    """Names of queues, as many in each shard as in the others."""
    found, i = [[] for _ in range(PRIMARIES)], 0
    while any(len(shard) < QUEUES_EACH for shard in found):
        name = "q%d" % i
        shard = found[slot_of(hash_tag(name)) * PRIMARIES // SLOTS]
        if len(shard) < QUEUES_EACH:
            shard.append(name)
        i += 1
    return [name for shard in found for name in shard]


class Faults:
    """The faults. Each method returns the queues that the fault is about, and its description."""

    def __init__(self, cluster, fronts, queues, dice, network=None):
        self.cluster, self.fronts, self.queues, self.dice = cluster, fronts, queues, dice
        self.network = network

    def _victim(self):
        """A queue, its primary, its replicas, and all queues that are there too."""
        queue = self.dice.choice(self.queues)
        primary = self.cluster.primary_of(hash_tag(queue))
        view = self.cluster.view(primary)
        return primary, self.cluster.replicas_of(primary), self._beside(primary, view)

    def _beside(self, primary, view=None):
        """The queues that are at a primary."""
        view = view or self.cluster.view(primary)
        return [one for one in self.queues
                if self.cluster.owner(slot_of(hash_tag(one)), view) is primary]

    def _some_time(self, most=2.0):
        time.sleep(self.dice.random() * most)

    def kill_primary(self):
        primary, _, queues = self._victim()
        primary.kill()
        heir = self.cluster.wait_new_primary(primary)
        self._some_time()
        primary.start()
        return queues, "%r, replaced by %r" % (primary, heir)

    def restart_primary(self):
        """It is there again before claimd notices."""
        primary, _, queues = self._victim()
        primary.restart()
        return queues, repr(primary)

    def restart_primary_then_kill(self):
        """It goes for good while its replica perhaps takes all over anew."""
        primary, _, queues = self._victim()
        primary.restart()
        self._some_time(NODE_TIMEOUT_S)
        primary.kill()
        heir = self.cluster.wait_new_primary(primary)
        primary.start()
        return queues, "%r, replaced by %r" % (primary, heir)

    def kill_everything(self):
        """As if the power had gone."""
        for node in self.cluster.nodes:
            node.process.kill()
        self._some_time()
        nodes = list(self.cluster.nodes)
        self.dice.shuffle(nodes)
        for node in nodes:
            node.restart(wait=False)
            self._some_time(0.2)
        return self.queues, "%d nodes" % len(nodes)

    def hand_over(self):
        """An operator has a replica take over, in one of the three ways there are."""
        primary, replicas, queues = self._victim()
        heir = self.dice.choice(replicas)
        how = self.dice.choice(((), ("FORCE",), ("TAKEOVER",)))
        heir.say("CLUSTER", "FAILOVER", *how)
        slot = slot_of(hash_tag(queues[0]))
        eventually(lambda: self.cluster.owner(slot) is heir, "the replica takes over")
        return queues, "%r to %r %s" % (primary, heir, " ".join(how))

    def stall_primary(self):
        primary, _, queues = self._victim()
        primary.stall()
        heir = self.cluster.wait_new_primary(primary)
        self._some_time()
        primary.go_on()
        return queues, "%r, replaced by %r" % (primary, heir)

    def stall_primary_shortly(self):
        """Not for long enough to be replaced, or just about."""
        primary, _, queues = self._victim()
        primary.stall()
        time.sleep(NODE_TIMEOUT_S * (0.2 + self.dice.random()))
        primary.go_on()
        return queues, repr(primary)

    def kill_replica(self):
        _, replicas, queues = self._victim()
        replica = self.dice.choice(replicas)
        replica.kill()
        self._some_time(3)
        replica.start()
        return queues, repr(replica)

    def stall_replica(self):
        _, replicas, queues = self._victim()
        replica = self.dice.choice(replicas)
        replica.stall()
        self._some_time(3 * NODE_TIMEOUT_S)
        replica.go_on()
        return queues, repr(replica)

    def _both(self, first, second, queues):
        """Kills two of a shard, and starts them in either order."""
        first.kill()
        self._some_time(4 * NODE_TIMEOUT_S)
        second.kill()
        self._some_time()
        order = self.dice.choice(((first, second), (second, first)))
        order[0].start()
        self._some_time(2 * NODE_TIMEOUT_S)
        order[1].start()
        return queues, "%r, %r; back: %r, %r" % (first, second, *order)

    def kill_replica_then_primary(self):
        primary, replicas, queues = self._victim()
        return self._both(self.dice.choice(replicas), primary, queues)

    def kill_primary_then_replica(self):
        primary, replicas, queues = self._victim()
        return self._both(primary, self.dice.choice(replicas), queues)

    def stall_replica_kill_primary(self):
        """The one that knows less is the one that is left."""
        primary, replicas, queues = self._victim()
        stalled = self.dice.choice(replicas)
        stalled.stall()
        self._some_time(2 * NODE_TIMEOUT_S)
        primary.kill()
        for other in replicas:
            if other is not stalled:
                other.kill()
        stalled.go_on()
        self._some_time(4 * NODE_TIMEOUT_S)
        primary.start()
        for other in replicas:
            if other is not stalled:
                other.start()
        return queues, "%r stalled, %r killed" % (stalled, primary)

    def kill_claimd(self):
        front = self.dice.choice(self.fronts)
        front.kill()
        self._some_time(0.5)
        front.start()
        return None, front.name

    def move_slot(self):
        queue = self.dice.choice(self.queues)
        source = self.cluster.primary_of(hash_tag(queue))
        target = self.dice.choice([one for one in self.cluster.primaries()
                                   if one is not source])
        keys = self.cluster.move_slot(slot_of(hash_tag(queue)), target,
                                      pause=self.dice.choice((0.0, 0.05, 0.5)))
        return [queue], "%s with %d keys, %r to %r" % (queue, keys, source, target)

    def migrate_slot(self):
        """The cluster moves a slot as a whole."""
        queue = self.dice.choice(self.queues)
        source = self.cluster.primary_of(hash_tag(queue))
        target = self.dice.choice([one for one in self.cluster.primaries()
                                   if one is not source])
        self.cluster.migrate_slot(slot_of(hash_tag(queue)), target)
        return [queue], "%s, %r to %r" % (queue, source, target)

    def _kill_migrating(self, role):
        """Kills one of the two while they migrate a slot, which ends or does not."""
        queue = self.dice.choice(self.queues)
        source = self.cluster.primary_of(hash_tag(queue))
        target = self.dice.choice([one for one in self.cluster.primaries()
                                   if one is not source])
        beside = self._beside(source) + self._beside(target)
        self.cluster.begin_migration(slot_of(hash_tag(queue)), target)
        self._some_time(0.3)
        victim = {"source": source, "target": target}[role]
        victim.kill()
        heir = self.cluster.wait_new_primary(victim)
        self._some_time()
        victim.start()
        self._rejoin(victim, heir)
        owner = self.cluster.primary_of(hash_tag(queue))
        return beside, "%s, %r to %r, replaced by %r; it is at %r" % (
            queue, source, target, heir, owner)

    def _rejoin(self, node, primary):
        """The work of an operator: a node that lost its slots to two others becomes no replica by itself,
        because replicas do not migrate here."""
        def rejoined():
            mine = next(entry for entry in self.cluster.view(node) if entry.id == node.id)
            if not mine.primary and not mine.ranges:
                try:
                    node.say("CLUSTER", "REPLICATE", primary.id)
                except RedisError:  # it still has keys of those slots, or does not know the other yet
                    pass
            return mine.primary
        eventually(rejoined, "%r is a replica" % node)

    def migrate_kill_source(self):
        return self._kill_migrating("source")

    def migrate_kill_target(self):
        return self._kill_migrating("target")

    def cut_primary(self):
        primary, _, queues = self._victim()
        self.network.cut(primary)
        heir = eventually(lambda: self._other_owner(primary, queues[0]), "it is replaced")
        self._some_time()
        self.network.heal(primary)
        return queues, "%r, replaced by %r" % (primary, heir)

    def cut_primary_shortly(self):
        primary, _, queues = self._victim()
        self.network.cut(primary)
        time.sleep(NODE_TIMEOUT_S * (0.2 + 2 * self.dice.random()))
        self.network.heal(primary)
        return queues, repr(primary)

    def cut_replica(self):
        _, replicas, queues = self._victim()
        replica = self.dice.choice(replicas)
        self.network.cut(replica)
        self._some_time(3 * NODE_TIMEOUT_S)
        self.network.heal(replica)
        return queues, repr(replica)

    def cut_primary_from_nodes(self):
        """claimd goes on with it until it learns better."""
        primary, _, queues = self._victim()
        self.network.cut_from_nodes(primary)
        heir = eventually(lambda: self._other_owner(primary, queues[0]), "it is replaced")
        self._some_time()
        self.network.heal(primary)
        return queues, "%r, replaced by %r" % (primary, heir)

    def cut_stalled_primary(self):
        """It wakes up as a primary that has been replaced, and only claimd can reach it."""
        primary, _, queues = self._victim()
        self.network.cut_from_nodes(primary)
        primary.stall()
        heir = eventually(lambda: self._other_owner(primary, queues[0]), "it is replaced")
        primary.go_on()
        self._some_time()
        self.network.heal(primary)
        return queues, "%r, replaced by %r" % (primary, heir)

    def cut_pair_from_nodes(self):
        """A primary and a replica of it confirm what they are sent, alone."""
        primary, replicas, queues = self._victim()
        pair = primary, self.dice.choice(replicas)
        self.network.cut_from_nodes(*pair)
        self._some_time(4 * NODE_TIMEOUT_S)
        self.network.heal(*pair)
        return queues, "%r, %r" % pair

    def _other_owner(self, primary, queue):
        """The node with the slot of the queue, in the eyes of any but `primary`, or None."""
        slot = slot_of(hash_tag(queue))
        for node in self.cluster.up():
            if node is primary:
                continue
            owner = self.cluster.owner(slot, self.cluster.view(node))
            if owner not in (None, primary):
                return owner
        return None

    def names(self):
        return [name for name in dir(Faults) if not name.startswith("_") and name != "names"
                and (self.network or not name.startswith("cut_"))
                and (not name.startswith("migrate_") or self.cluster.can_migrate())]


class Trial:
    def __init__(self, program, cluster, folder, seed, store, letters=False, network=None,
                 **load):
        self.program, self.cluster, self.folder = program, cluster, folder
        self.store, self.starts = store, 0
        self.dice = random.Random(seed)
        self.queues = spread_queues() + [POPPED] + ([LIMITED] if letters else [])
        self.timeline, self.troubles = [], []
        self.spans = {}  # of a fault: when it was injected, and over
        self.fronts = []
        for i in range(FRONTS):
            self.fronts.append(Front("claimd%d" % i, self.start_claimd))
        self.load = Load(self.fronts, self.queues, seed, **load)
        self.reader = Reader(self.load, self.fronts[0])
        for queue in self.load.worked:
            self.reader.insist("PUT", queue, {"_max_claim_count": MOST_CLAIMS,
                                              "_dead_letter_queue": DEAD}
                               if queue == LIMITED else {})
        self.faults = Faults(cluster, self.fronts, self.queues, self.dice, network)

    def start_claimd(self, port):
        self.starts += 1
        log = os.path.join(self.folder, "claimd-%d" % self.starts)
        with open(log, "w", encoding="utf-8") as stderr:
            try:
                return Daemon("setpriv", "--pdeathsig", "KILL", self.program, "--store",
                              self.store, *OPTIONS, listen="127.0.0.1:%d" % port,
                              stderr=stderr, env=environment())
            except RuntimeError as error:
                raise RuntimeError("%s: %s" % (error, tail(log))) from error

    def now(self):
        return time.monotonic() - self.load.begun

    def log(self, text):
        line = "%7.1f s  %s" % (self.now(), text)
        self.timeline.append(line)
        print(line, flush=True)

    def inject(self, name):
        """One fault, and the time until all is well again."""
        begun = time.monotonic()
        queues, what = getattr(self.faults, name)()
        healed = time.monotonic()
        self.spans.setdefault(name, []).append((begun, healed))
        self.cluster.wait_whole()
        whole = time.monotonic()
        time.sleep(REST_S)
        until = time.monotonic()
        load = self.load
        self.log("%s: %s; over after %.1f s, whole after %.1f s; longest outage %.1f s, "
                 "%d unknown, %d refused" % (
                      name, what, healed - begun, whole - begun,
                      load.longest_gap(begun, until, queues=queues),
                      load.count("unknown", begun, until),
                      load.count("refused", begun, until)))
        for front in self.fronts:
            if front.has_ended():
                self.troubles.append("%s has ended by itself" % front.name)
                front.start()

    def run(self, seconds, names):
        """Faults for so long; those that are named once at least."""
        self.load.start()
        time.sleep(REST_S)
        turn = list(names or [])
        while (names and turn) or self.now() < seconds:
            if not turn:
                turn = list(names or self.faults.names())
                if not names:
                    self.dice.shuffle(turn)
            self.inject(turn.pop(0))
        self.load.stop()

    def finish(self):
        """Looks at what is left, takes it out, and judges; the judge."""
        self.cluster.wait_whole()
        load = self.load
        bringer, drainer = (Worker(load, number, self.fronts[0]) for number in (998, 999))
        self.bring_letters(bringer)
        listed_at = time.monotonic()
        there = {queue: self.reader.listed(queue) for queue in load.worked}
        left = self.reader.drain(drainer, load.worked, max(load.ttls) + 20)
        judge = Judge(load.producers, load.workers + [bringer, drainer], there, listed_at,
                      load.begun)
        judge.judge({held.body for held in drainer.held}, left)
        for client in load.clients() + [bringer, drainer, self.reader]:
            self.troubles += client.surprises
        return judge

    def under_way(self):
        """Messages that have left one queue and have not arrived in the other."""
        key = "claimd:1:%s:x" % hash_tag(LIMITED)
        fields = self.cluster.primary_of(key).say("HKEYS", key)
        return [field for field in fields if field != ""]

    def bring_letters(self, worker):
        """Claims until no letter is under way any more: that is what drives them on."""
        if LIMITED not in self.queues:
            return
        deadline = time.monotonic() + LETTERS_S
        while time.monotonic() < deadline:
            worker.claim(LIMITED, finish=1)
            if not self.under_way():
                return
            time.sleep(0.1)
        self.troubles.append("%d dead letters do not arrive: %r..."
                             % (len(self.under_way()), self.under_way()[:3]))

    def stop(self):
        for front in self.fronts:
            if not front.has_ended():
                status = front.daemon.stop()
                if status != 0:
                    self.troubles.append("%s ended with status %d" % (front.name, status))

    def report_times(self):
        rest = [(self.load.begun, self.load.begun + REST_S)]
        for spans in self.spans.values():
            rest += [(over, over + REST_S) for _, over in spans]
        for name, spans in [("between faults", rest)] + sorted(self.spans.items()):
            times = self.load.response_times(spans)
            if times:
                print("response times, %s (%d): median %.0f ms, p99 %.0f ms, longest %.0f ms" % (
                    name, len(spans), *(1000 * times[int(len(times) * share)]
                                        for share in (0.5, 0.99)), 1000 * times[-1]))

    def report(self, judge):
        load = self.load
        posts = Counter(post.outcome for p in load.producers for post in p.posts)
        requests = [one for w in load.workers for one in w.deletions]
        deletions = Counter(one.outcome for one in requests if one.queue != POPPED)
        pops = [one for w in load.workers for one in w.lost_pops]
        print("posts: %d acknowledged (%d messages), %d unknown, %d refused" % (
            posts["ok"], sum(len(post.bodies) for p in load.producers for post in p.posts
                             if post.outcome == "ok"), posts["unknown"], posts["refused"]))
        print("delivered: %d times, %d messages; unknown: %d claims, %d pops" % (
            sum(len(one) for one in judge.held.values()), len(judge.held),
            sum(len(one) for one in judge.lost_claims.values()), len(pops)))
        print("deletions: %d acknowledged, %d unknown, %d refused" % (
            deletions["ok"], deletions["unknown"], deletions["refused"] + deletions["denied"]))
        print("in the end: %d messages; order: %d excused by claims without a response" % (
            len(judge.alive), judge.excused))
        self.report_times()
        reasons = sum((client.reasons for client in load.clients()), Counter())
        for reason, count in reasons.most_common():
            print("    %6d times %s" % (count, reason))
        kinds = Counter(what for what, _, _ in judge.violations)
        shown = Counter()
        for what, body, text in judge.violations:
            shown[what] += 1
            if shown[what] <= SHOWN:
                print("%s: %r: %s\n%s" % (what, body, text, judge.history(body)))
        for trouble, count in Counter(self.troubles).most_common(20):
            print("trouble: %d times %s" % (count, trouble))
        print("violations: %s" % (dict(kinds) or "none"))
        counts = {name: len(spans) for name, spans in self.spans.items()}
        print("%s, %d replicas each: %d faults (%s), %d messages, lost %d, twice %d" % (
            self.cluster.nodes[0].server(), self.cluster.replicas_each, sum(counts.values()),
            ", ".join("%d %s" % (count, name) for name, count in sorted(counts.items())),
            len(judge.held), kinds["lost"], kinds["twice"]), flush=True)
        return bool(kinds or self.troubles)


def kill_trial(args, folder):
    ttls = (1, 2, 5) if args.short else (2, 2, 5, 20, 60)
    network = apart.Network(PRIMARIES * (1 + args.replicas)) if args.partitions else None
    with Cluster(PRIMARIES, args.replicas, network and network.places,
                 cluster_node_timeout=int(NODE_TIMEOUT_S * 1000)) as cluster:
        trial = Trial(args.program, cluster, folder, args.seed,
                      cluster.url(replicas=args.replicas), not args.no_letters, network,
                      ttls=ttls)
        try:
            names = args.faults.split(",") if args.faults else None
            lacking = set(names or ()) - set(trial.faults.names())
            if lacking:
                print("skipped: %s cannot do %s" % (cluster.nodes[0].server(), ", ".join(lacking)))
                sys.exit(77)
            trial.run(args.seconds, names)
            judge = trial.finish()
        except BaseException:
            for i in range(trial.starts):
                print(tail(os.path.join(folder, "claimd-%d" % (i + 1))))
            raise
        finally:
            trial.stop()
        return trial.report(judge)


def lossy_trial(args, folder):
    """The replica that is left has not received of what the other one has confirmed."""
    with Cluster(PRIMARIES, 2, cluster_node_timeout=int(NODE_TIMEOUT_S * 1000),
                 repl_timeout=3, repl_ping_replica_period=1) as cluster:
        trial = Trial(args.program, cluster, folder, args.seed,
                      cluster.url(replicas=1, unsafe=1), ttls=(1, 2))
        try:
            queue = trial.queues[0]
            primary = cluster.primary_of(hash_tag(queue))
            stalled, other = cluster.replicas_of(primary)
            trial.load.start()
            time.sleep(REST_S)
            trial.log("%r is stalled" % stalled)
            stalled.stall()
            # Until its primary gives it up: what is on its way to it would arrive later.
            eventually(lambda: int(primary.info("replication")["connected_slaves"]) == 1,
                       "the stalled replica is given up")
            trial.log("%r is given up" % stalled)
            time.sleep(1)
            primary.kill()
            other.kill()
            stalled.go_on()
            trial.log("%r and %r are killed" % (primary, other))
            cluster.wait_new_primary(primary)
            trial.log("%r is the primary" % stalled)
            primary.start()
            other.start()
            cluster.wait_whole(patience=120)  # a busy machine misses repl_timeout, and syncs again
            trial.log("all is whole")
            time.sleep(REST_S)
            trial.load.stop()
            judge = trial.finish()
        finally:
            trial.stop()
        trial.report(judge)
        lost = sum(what == "lost" for what, _, _ in judge.violations)
        print("%d acknowledged messages were lost; that had to be seen" % lost)
        return lost == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--faults")
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--seed", type=int, default=time.time_ns() & 0xFFFFFF)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--no-letters", action="store_true")
    parser.add_argument("--partitions", action="store_true")
    parser.add_argument("--lossy", action="store_true")
    args = parser.parse_args()
    args.partitions = args.partitions and apart.enter()
    print("seed %d" % args.seed, flush=True)
    with tempfile.TemporaryDirectory(prefix="claimd-redis-kill-") as folder:
        trial = lossy_trial if args.lossy else kill_trial
        return 1 if trial(args, folder) else 0


if __name__ == "__main__":
    sys.exit(main())
