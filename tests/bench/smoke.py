#!/usr/bin/python3
"""Run the load generator for a moment against a floor server and check what it writes.

    smoke.py GENERATOR FLOOR

Nothing is asserted about times: only that the figures are there and agree.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))

from bench_lib import plots  # noqa: E402


def start(floor, batch):
    server = subprocess.Popen([floor, "127.0.0.1:0", str(batch), "100"],
                              stdout=subprocess.PIPE, text=True)
    return server, server.stdout.readline().split()[-1]


def check(report, batch):
    ops = report["operations"]
    deleted = "delete" if batch == 1 else "bulk delete"
    assert set(ops) == {"post", "claim", deleted}, sorted(ops)
    assert report["errors"] == 0 and report["unfinished"] == 0, report["errors"]
    assert report["empty_claims"] == 0
    assert report["messages_per_second"] > 0
    total = sum(op["requests"] for op in ops.values())
    assert abs(total / report["seconds"] - report["requests_per_second"]) < 1
    assert report["server_cpu_us_per_request"] >= 0
    for op in ops.values():
        assert op["messages"] == batch * op["requests"], op
        steps = [op[name] for name in ("p50_us", "p90_us", "p99_us", "p99.9_us", "max_us")]
        assert steps == sorted(steps) and steps[0] > 0, steps
        assert op["curve"][-1] == [100, op["max_us"]]


def generate(generator, address, batch, rate, duration, pid, out):
    subprocess.run([generator, "--endpoint", "http://" + address, "--quiet",
                    "--batch", str(batch), "--connections", "5", "--threads", "2",
                    "--duration", str(duration), "--warmup", "0.1", "--rate", str(rate),
                    "--backlog", "100", "--server-pid", str(pid)] +
                   ["--%s=%s" % item for item in out.items()],
                   check=True, timeout=60)
    with open(out["json"]) as file:
        return json.load(file)


def run(generator, floor, batch, rate):
    server, address = start(floor, batch)
    with tempfile.TemporaryDirectory() as folder:
        out = {kind: os.path.join(folder, "out." + kind) for kind in ("json", "csv")}
        try:
            # A busy machine may not get through all three steps in the first moment.
            for duration in (0.4, 2, 10):
                report = generate(generator, address, batch, rate, duration, server.pid, out)
                if len(report["operations"]) == 3:
                    break
        finally:
            server.kill()
            server.wait()
        check(report, batch)
        with open(out["csv"]) as file:
            assert len(list(csv.DictReader(file))) == 3
        root = xml.etree.ElementTree.fromstring(plots.of_run(report))
        assert root.tag.endswith("svg") and len(list(root.iter())) > 40


def main():
    generator, floor = sys.argv[1:]
    for batch, rate in ((1, 0), (10, 0), (1, 500)):
        run(generator, floor, batch, rate)
    refused = subprocess.run([generator, "--endpoint", "127.0.0.1:1", "--quiet"],
                             stderr=subprocess.PIPE, text=True, timeout=60)
    assert refused.returncode == 1 and "connect" in refused.stderr, refused.stderr
    wrong = subprocess.run([generator, "--batch", "0"], stderr=subprocess.PIPE, text=True)
    assert wrong.returncode == 2 and "--batch" in wrong.stderr, wrong.stderr


main()
