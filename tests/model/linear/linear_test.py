#!/usr/bin/python3
"""Checks that a real server's responses to concurrent requests are linearizable.

    linear_test.py CLAIMD LINEAR [SEED...]

Starts CLAIMD twice (all queues in one shard, and spread) and lets the program LINEAR
record and check histories with each seed. LINEAR_ROUNDS sets how many rounds a seed has.
"""

import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

from daemon import Daemon  # noqa: E402


def main(claimd, linear, *seeds):
    rounds = os.environ.get("LINEAR_ROUNDS", "20")
    seeds = seeds or ("1", "2", str(int(time.time())))
    for shards in ("1", "16"):
        with Daemon(claimd, "--workers", "4", "--shards", shards) as server:
            for seed in seeds:
                subprocess.run([linear, server.host, str(server.port), seed, rounds],
                               check=True)


main(*sys.argv[1:])
