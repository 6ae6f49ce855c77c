"""Runs a Redis Cluster and two claimd until Ctrl-C (scripts/cluster).

    play.py CLAIMD [CLAIMD-OPTION...]
"""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "..",
                                "tests", "support"))

from daemon import Daemon  # noqa: E402
from redis_nodes import Cluster, is_free  # noqa: E402

PRIMARIES, REPLICAS_EACH = 3, 1
REDIS_PORT, CLAIMD_PORTS = 7001, (8888, 8889)
AGAIN_S = 8  # what has ended is started again after this
NODE_TIMEOUT_MS = 2000


def say(text=""):
    print(text, flush=True)


class Front:
    """A claimd, started again at the same place when it has ended."""

    def __init__(self, program, port, options):
        self.program, self.options = program, options
        self.port = port if is_free("127.0.0.1", port) else 0
        self.start()

    def start(self):
        self.daemon = Daemon(self.program, *self.options, start_new_session=True,
                             listen="127.0.0.1:%d" % self.port)
        self.port = self.daemon.port

    def is_up(self):
        return self.daemon.process.poll() is None

    def name(self):
        return "claimd %s" % self.daemon.url

    def pid(self):
        return self.daemon.process.pid


class Shown:
    """A node of the cluster, as a Front is."""

    def __init__(self, node):
        self.node = node
        self.start, self.is_up = node.start, node.is_up

    def name(self):
        return "redis-server %r" % self.node

    def pid(self):
        return self.node.process.pid


def roles(cluster):
    """The owners of the slots, with their replicas. Nodes that are down are left out."""
    found = []
    view = cluster.view()
    up = {node.id: node for node in cluster.up()}
    for entry in sorted(view, key=lambda one: one.ranges):
        if entry.ranges and entry.id in up and not entry.failed():
            found.append((entry.ranges, up[entry.id],
                          [up[one.id] for one in view
                           if one.primary == entry.id and one.id in up]))
    return found


def show_roles(shards):
    for ranges, primary, replicas in shards:
        slots = ", ".join("%d-%d" % pair for pair in ranges)
        say("  slots %-12s primary %r (pid %d), %s" % (
            slots, primary, primary.process.pid,
            " ".join("replica %r (pid %d)" % (one, one.process.pid) for one in replicas)
            or "no replica: it takes no changes"))


def introduce(fronts, cluster):
    one, other = fronts[0].daemon.url, fronts[1].daemon.url
    pid = roles(cluster)[0][1].process.pid
    say("claimd:")
    for front in fronts:
        say("  %s (pid %d)" % (front.daemon.url, front.pid()))
    say("Redis Cluster:")
    show_roles(roles(cluster))
    head = ('-H "Client-ID: 5ca1ab1e-0000-4000-8000-000000000000" -H "X-Project-ID: p" '
            '-H "Content-Type: application/json"')
    say("""
Post at the one, and claim at the other:
  curl -i %s -d '{"messages":[{"body":"hello"}]}' %s/v2/queues/tasks/messages
  curl -i %s -d '{}' %s/v2/queues/tasks/claims
Kill a primary: its replica takes over within %d s. Or a replica, or a claimd:
  kill -9 %d
A process that ended starts again after %d s. Ctrl-C ends all.
""" % (head, one, head, other, 2 * NODE_TIMEOUT_MS // 1000 + 1, pid, AGAIN_S))


def watch(cluster, things):
    """Tells what happens, and starts again what has ended; until it is interrupted."""
    begun, ended, known = time.monotonic(), {}, None
    while True:
        for thing in things:
            now = time.monotonic()
            if thing.is_up():
                continue
            if thing not in ended:
                ended[thing] = now
                say("%7.1f s  %s has ended" % (now - begun, thing.name()))
            elif now > ended[thing] + AGAIN_S:
                del ended[thing]
                thing.start()
                say("%7.1f s  %s is started again (pid %d)"
                    % (now - begun, thing.name(), thing.pid()))
        if cluster.up():
            shards = roles(cluster)
            if known is not None and shards != known:
                say("%7.1f s  now" % (time.monotonic() - begun))
                show_roles(shards)
            known = shards
        time.sleep(0.25)


def main():
    program, options = sys.argv[1], sys.argv[2:]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    fronts = []
    places = [{"port": REDIS_PORT + i} for i in range(PRIMARIES * (1 + REPLICAS_EACH))]
    try:
        with Cluster(PRIMARIES, REPLICAS_EACH, places=places,
                     cluster_node_timeout=NODE_TIMEOUT_MS) as cluster:
            options = ["--store", cluster.url(replicas=REPLICAS_EACH), "--log-level", "warn",
                       *options]
            try:
                for port in CLAIMD_PORTS:
                    fronts.append(Front(program, port, options))
                introduce(fronts, cluster)
                watch(cluster, fronts + [Shown(node) for node in cluster.nodes])
            finally:
                for front in fronts:
                    if front.is_up():
                        front.daemon.stop()
    except KeyboardInterrupt:
        say("ended")
    return 0


if __name__ == "__main__":
    sys.exit(main())
