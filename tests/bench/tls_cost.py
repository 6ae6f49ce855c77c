#!/usr/bin/python3
"""The cost of TLS for the server: processor time a request on kept connections, and a handshake.

    tls_cost.py CLAIMD [ROUNDS]

Needs wrk, openssl and nginx. Plain, TLS, and nginx with TLS in front of plain claimd take turns
against one server with one worker. The cost is the processor time of the server's threads, and of
nginx, so that others on the machine matter little.
"""

import os
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
ROUNDS = int(sys.argv.pop(2)) if len(sys.argv) > 2 else 5
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))

from harness import CLIENT_ID, Server, Workshop, children, processor_s  # noqa: E402
from proxies import Nginx  # noqa: E402

from certificates import P256, RSA  # noqa: E402

SECONDS = "3"
SCRIPTS = {
    "post of 1 KB": ("/v2/queues/q/messages", 'wrk.method = "POST"\n'
                     'wrk.body = \'{"messages":[{"ttl":60,"body":"\' .. string.rep("x", 1000)'
                     ' .. \'"}]}\'\n'),
    "statistics": ("/v2/queues/q/stats", ""),
}
HEADERS = ('wrk.headers["Client-ID"] = "%s"\n'
           'wrk.headers["X-Project-ID"] = "p"\n' % CLIENT_ID)


class Worker:
    """The process of nginx that serves."""

    def __init__(self, proxy):
        self.process = self
        self.pid, = children(proxy.process.pid)


def cost_us(servers, command, pattern):
    """The microseconds of the servers for each of what the command says it has done."""
    before = sum(map(processor_s, servers))
    done = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in done:
        raise RuntimeError(done)
    return (sum(map(processor_s, servers)) - before) * 1e6 / int(re.search(pattern, done).group(1))


def requests(shop, pair):
    with Server(*pair.options(), "--workers", "1", "--log-level", "error",
                listen="127.0.0.1:0,tls:127.0.0.1:0") as server, Nginx(server, pair) as proxy:
        ways = ((server.url, [server]), (server.process.stdout.readline().split()[-1], [server]),
                ("https://127.0.0.1:%d" % proxy.port, [server, Worker(proxy)]))
        for name, (path, lines) in SCRIPTS.items():
            script = shop.file("script.lua", lines + HEADERS)
            costs = [[cost_us(servers, ["wrk", "-t1", "-c16", "-d" + SECONDS, "-s", script,
                                        url + path], r"(\d+) requests in") for url, servers in ways]
                     for _ in range(ROUNDS)]
            medians = [statistics.median(column) for column in zip(*costs)]
            ratios = sorted(plain / tls for plain, tls, _ in costs)
            print("%-14s plain %5.1f us, TLS %5.1f us, behind nginx %5.1f us; ratio %.2f (%.2f to "
                  "%.2f)" % (name, *medians, statistics.median(ratios), ratios[0], ratios[-1]))


def handshakes(name, pair):
    with Server(*pair.options(), "--workers", "1", "--log-level", "error",
                listen="tls:127.0.0.1:0") as server:
        for version in ("tls1_3", "tls1_2"):
            costs = [cost_us([server], ["openssl", "s_time", "-new", "-time", SECONDS, "-" + version,
                                        "-connect", "127.0.0.1:%d" % server.port],
                             r"(\d+) connections in \d+ real seconds") for _ in range(ROUNDS)]
            cost = statistics.median(costs)
            print("%-8s %s  %5.0f us a handshake (%.0f to %.0f): %4.0f a second of a core"
                  % (name, version, cost, min(costs), max(costs), 1e6 / cost))


def main():
    with Workshop() as shop:
        pairs = {"P-256": shop.signed("p256", algorithm=P256),
                 "RSA-2048": shop.signed("rsa", algorithm=RSA)}
        requests(shop, pairs["P-256"])
        for name, pair in pairs.items():
            handshakes(name, pair)


if __name__ == "__main__":
    main()
