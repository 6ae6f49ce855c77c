#!/usr/bin/python3
"""Checks that the responses of two servers on one Redis Cluster are linearizable.

    redis_test.py CLAIMD LINEAR [SEED...]

Half of the workers send to one server, half to the other, as if they were one. LINEAR_ROUNDS sets how
many rounds a seed has.
"""

import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

from daemon import Daemon  # noqa: E402
from redis_nodes import Cluster  # noqa: E402


def main(claimd, linear, *seeds):
    rounds = os.environ.get("LINEAR_ROUNDS", "10")
    seeds = seeds or ("1", str(int(time.time())))
    with Cluster(primaries=3, replicas_each=1) as cluster, \
            Daemon(claimd, "--store", cluster.url(replicas=1)) as one, \
            Daemon(claimd, "--store", cluster.url(replicas=1)) as other:
        for seed in seeds:
            subprocess.run([linear, one.host, "%d,%d" % (one.port, other.port), seed, rounds],
                           check=True)


main(*sys.argv[1:])
