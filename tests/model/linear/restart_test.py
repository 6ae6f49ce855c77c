#!/usr/bin/python3
"""Checks that responses stay linearizable while a server with a journal is killed.

    restart_test.py CLAIMD LINEAR [--unloading] [SEED...]

Starts CLAIMD with a journal and lets LINEAR record and check histories; whenever LINEAR requests
it, the server gets SIGKILL and is started again, on the same directory and port. With a
journal all histories must be good; without one a history must be refused, or the checker has
looked at nothing. With --unloading, CLAIMD must have used body files. LINEAR_ROUNDS sets how many rounds a seed has, LINEAR_KILLS how often the
server dies in each.
"""

import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

from killed import REFUSED, Killed, check  # noqa: E402


def check_one(linear, server, *words):
    return check([linear, server.host, str(server.port), *words], server.restart)


def newest_body_file(folder):
    """Its number. A start begins another one, and files without messages are removed."""
    numbers = [int(name.split(".")[0], 16) for name in os.listdir(folder) if name.endswith(".bodies")]
    return max(numbers, default=0)


# Without a journal a kill may come when no message is there. The first refused round ends it.
ROUNDS_UNSAFE = "8"


def main(claimd, linear, *seeds):
    unloading = "--unloading" in seeds
    seeds = [seed for seed in seeds if seed != "--unloading"]
    rounds = os.environ.get("LINEAR_ROUNDS", "4")
    kills = os.environ.get("LINEAR_KILLS", "4")
    seeds = seeds or ("1", str(int(time.time())))
    for shards in ("1", "16"):
        options = ("--workers", "4", "--shards", shards, "--log-level", "warn")
        with tempfile.TemporaryDirectory(prefix="claimd-linear-") as folder:
            journal = ("--journal", os.path.join(folder, "journal"))
            with Killed(claimd, *journal, *options) as server:
                for seed in seeds:
                    status, output = check_one(linear, server, seed, rounds, kills)
                    print(output, end="")
                    if status != 0:
                        sys.exit("refused with a journal: status %d" % status)
            if unloading and newest_body_file(journal[1]) < int(rounds):
                sys.exit("too little was unloaded: %d" % newest_body_file(journal[1]))
        with Killed(claimd, *options) as server:
            status, output = check_one(linear, server, "1", ROUNDS_UNSAFE, "1")
        if status == 0 or REFUSED not in output:
            sys.exit("not refused without a journal: %s" % output)


main(*sys.argv[1:])
