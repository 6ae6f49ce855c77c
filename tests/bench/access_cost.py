#!/usr/bin/python3
"""The cost of metrics and tokens: throughput and processor time of a cycle of post, claim, delete.

    access_cost.py CLAIMD CLAIMD-BENCH [ROUNDS [OTHER-CLAIMD]]

Two servers with one worker each take turns, a second each, for so many rounds (30):

    tokens   with auth tokens, and without, while each request carries a token
    binary   CLAIMD, and OTHER-CLAIMD: of before there were any figures, say

Of the rounds' ratios the median and the quartiles are printed: others on the machine reach both.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

CLAIMD, BENCH = sys.argv[1:3]
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 30
OTHER = sys.argv[4] if len(sys.argv) > 4 else None


class Side:
    """A server, and the requests that are sent to it."""

    def __init__(self, folder, program=CLAIMD, server=(), bench=()):
        self.report = os.path.join(folder, "report.json")
        self.bench = bench
        self.process = subprocess.Popen([program, "--listen", "127.0.0.1:0", "--workers", "1",
                                         "--log-level", "error", *server],
                                        stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split("http://")[1].strip()

    def run(self):
        """(requests a second, microseconds of the server's processor time a request)"""
        subprocess.run([BENCH, "--endpoint", self.address, "--duration", "1", "--warmup", "0.2",
                        "--connections", "16", "--server-pid", str(self.process.pid),
                        "--json", self.report, "--quiet", *self.bench],
                       stdout=subprocess.DEVNULL, check=True, timeout=60)
        with open(self.report, encoding="utf-8") as f:
            report = json.load(f)
        return report["requests_per_second"], report["server_cpu_us_per_request"]

    def end(self):
        self.process.terminate()
        self.process.wait()


def spread(ratios):
    ratios = sorted(ratios)
    quarter = len(ratios) // 4
    return "%.3f (%.3f to %.3f)" % (statistics.median(ratios), ratios[quarter],
                                    ratios[-1 - quarter])


def compare(name, on, off):
    rows = []
    for number in range(ROUNDS):
        order = (on, off) if number % 2 else (off, on)
        seen = {side: side.run() for side in order}
        rows.append((*seen[on], *seen[off]))
    on.end()
    off.end()
    print("%-7s throughput %s, processor time %s; medians %.1f and %.1f us a request"
          % (name, spread([row[0] / row[2] for row in rows]),
             spread([row[1] / row[3] for row in rows]),
             statistics.median(row[1] for row in rows),
             statistics.median(row[3] for row in rows)), flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        tokens, token = os.path.join(folder, "tokens"), os.path.join(folder, "token")
        with open(token, "w", encoding="ascii") as f:
            os.chmod(token, 0o600)
            subprocess.run([CLAIMD, "token", "new", "bench", "--role", "admin",
                            "--tokens", tokens], stdout=f, check=True)
        bench = ("--token-file", token)
        compare("tokens", Side(folder, server=("--auth", "tokens", "--tokens", tokens), bench=bench),
                Side(folder, bench=bench))
        if OTHER is not None:
            compare("binary", Side(folder), Side(folder, OTHER))


if __name__ == "__main__":
    main()
