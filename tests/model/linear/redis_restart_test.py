#!/usr/bin/python3
"""Checks that responses of two servers on one Redis stay linearizable while all of them are killed.

    redis_restart_test.py CLAIMD LINEAR [SEED...]

Whenever LINEAR requests it, the Redis gets SIGKILL, or both servers at once, in turn, and is
started again, on the same files and ports. Requests whose outcome is unknown have happened or
not. With a file that is synced all histories must be good; without one a history must be
refused. LINEAR_ROUNDS and LINEAR_KILLS are as in restart_test.py.
"""

import contextlib
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

from killed import REFUSED, Killed, check  # noqa: E402
from redis_nodes import Node  # noqa: E402

PATIENCE = {"replicas": 0, "patience_ms": 20000}  # longer than a Redis takes to come back

# Without a file a kill may come when no message is there. The first refused round ends it.
ROUNDS_UNSAFE = "8"


class Pair:
    """Two servers and their Redis."""

    def __init__(self, claimd, stack, **config):
        self.redis = stack.enter_context(Node(**config))
        self.servers = [stack.enter_context(Killed(
            claimd, "--store", self.redis.url(**PATIENCE), "--log-level", "error"))
            for _ in range(2)]
        self.kills = 0

    def restart(self):
        self.kills += 1
        if self.kills % 2 == 1:
            self.redis.restart()
            return
        for server in self.servers:
            server.kill()
        for server in self.servers:
            server.start()

    def check(self, linear, *words):
        one, other = self.servers
        return check([linear, one.host, "%d,%d" % (one.port, other.port), *words],
                     self.restart)


def main(claimd, linear, *seeds):
    rounds = os.environ.get("LINEAR_ROUNDS", "4")
    kills = os.environ.get("LINEAR_KILLS", "4")
    for seed in seeds or ("1", str(int(time.time()))):
        with contextlib.ExitStack() as stack:
            pair = Pair(claimd, stack, appendonly="yes", appendfsync="always")
            status, output = pair.check(linear, seed, rounds, kills)
            print(output, end="")
            if status != 0:
                sys.exit("refused: status %d" % status)
    with contextlib.ExitStack() as stack:
        status, output = Pair(claimd, stack).check(linear, "1", ROUNDS_UNSAFE, "1")
    if status == 0 or REFUSED not in output:
        sys.exit("not refused without a file: %s" % output)


main(*sys.argv[1:])
