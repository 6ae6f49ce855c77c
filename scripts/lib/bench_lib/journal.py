"""The parts that measure claimd with a journal, and the tables they fill."""

import contextlib
import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.request

from bench_lib import measure, sweeps, tables
from bench_lib.measure import SERVER_CPU, median, middle, say
from bench_lib.servers import pinned
from bench_lib.tables import latency, number, ratio
from bench_lib.targets import NO_FIGURE, note, note_least
from bench_lib.watch import look

NAMES = {
    "claimd": "claimd, no journal",
    "claimd_journal": "claimd, journal on the disk",
    "claimd_tmpfs": "claimd, journal on tmpfs",
    "beanstalkd_sync": "beanstalkd, -b and -f0",
    "redis_sync": "redis lists, by hand, `appendfsync always`",
}
# With 256 connections and ten at a time all that its connections have under way is thousands
# of syncs: a cycle takes seconds.
SLOW = ("beanstalkd_sync",)
BATCHES = {1: "one", 10: "ten"}
CONNECTIONS = (16, 256)


# ------------------------------------------------------------------ cycle

def rate_of(runs):
    return median([r["messages_per_second"] for r in runs])


def cpu_of(runs):
    return median([r["server_cpu_us_per_request"] for r in runs])


def cycle_names(args):
    return [name for name in NAMES if name != "redis_sync" or args.peers]


def cycle_rows(by_connections):
    """A row for each number of connections and server."""
    rows = []
    for connections, reports in by_connections.items():
        off, on = reports["claimd"], rate_of(reports["claimd_journal"])
        for name, runs in reports.items():
            ops = middle(runs)["operations"]
            rows.append([NAMES[name], str(connections), number(rate_of(runs)),
                         ratio(rate_of(runs), rate_of(off)), ratio(on, rate_of(runs)),
                         number(cpu_of(runs)), ratio(cpu_of(runs), cpu_of(off)),
                         *(latency(ops[op]["p50_us"]) if op in ops else NO_FIGURE
                           for op in ("post", "claim"))])
    return rows


def cycle_targets(results, name, by_connections):
    rates = {connections: {server: rate_of(runs) for server, runs in reports.items()}
             for connections, reports in by_connections.items()}
    every = list(rates.values())
    on = [r["claimd_journal"] for r in every]
    for connections, r in rates.items():
        note_least(results, "beanstalkd-%s-%d" % (name, connections), [r["claimd_journal"]],
                   [r["beanstalkd_sync"]])
    if all("redis_sync" in r for r in every):
        note_least(results, "redis-" + name, on, [r["redis_sync"] for r in every])
    if name == "ten":
        note_least(results, "tmpfs-rate", [r["claimd_tmpfs"] for r in every],
                   [r["claimd"] for r in every])
        last = by_connections[max(by_connections)]
        note(results, "tmpfs-cpu", cpu_of(last["claimd_tmpfs"]) / cpu_of(last["claimd"]))


def cycle(args, bench, servers, results):
    """All on the same disk within a minute: what a sync takes changes by the hour."""
    for batch, name in BATCHES.items():
        by_connections = {}
        for connections in CONNECTIONS:
            by_connections[connections] = measure.rounds(
                bench, servers, cycle_names(args), batch, args.rounds, "--connections",
                connections, slow=SLOW)
            results.reports["journal-%s-%d" % (name, connections)] = \
                by_connections[connections]
        cycle_targets(results, name, by_connections)
        results.tables["journal-cycle-" + name] = tables.table(
            ["server", "connections", "messages/s", "of no journal",
             "journal on the disk is x times", "CPU us a request", "of no journal", "post p50",
             "claim p50"], cycle_rows(by_connections))


# ------------------------------------------------------------------ before

def quartiles(values):
    """Of some ratios: the middle, and in brackets where the middle half of them lies."""
    if len(values) < 2:
        return "%.2f" % values[0]
    low, mid, high = statistics.quantiles(values, n=4, method="inclusive")
    return "%.2f (%.2f - %.2f)" % (mid, low, high)


def pairs(bench, one, two, count, *arguments):
    """
    Short runs of two servers in turn, each first in every other pair; those of one and those
    of two.
    """
    runs = ([], [])
    for turn in range(count):
        for i in ((0, 1), (1, 0))[turn % 2]:
            runs[i].append(bench.run((one, two)[i], "pair", *arguments,
                                     seconds=min(1, bench.seconds), warmup=0.2))
    return runs


def ratios(runs, figure):
    """two / one, pair by pair."""
    return [late[figure] / early[figure] for early, late in zip(*runs)]


def before(args, bench, servers, results):
    """Without a journal, against an older program."""
    if args.before is None:
        say("  skipped: no --before PROGRAM")
        return
    rows = []
    for batch, name in BATCHES.items():
        with servers.claimd(batch, SERVER_CPU, program=args.before) as old, \
                servers.claimd(batch, SERVER_CPU) as new:
            runs = pairs(bench, old, new, 6 * args.rounds, "--batch", batch)
        rate = ratios(runs, "messages_per_second")
        cpu = ratios(runs, "server_cpu_us_per_request")
        rows.append([name, str(len(rate)), quartiles(rate), quartiles(cpu)])
        note(results, "before-" + name, median(rate))
        results.reports["journal-before-" + name] = runs
    results.tables["journal-before"] = tables.table(
        ["messages at a time", "pairs", "messages/s, after / before",
         "CPU a request, after / before"], rows)


# ------------------------------------------------------------------ polls

POLLS = 4000
POLL = (b"POST /v2/queues/parked/claims HTTP/1.1\r\nHost: localhost\r\n"
        b"Client-ID: c1a1b0de-0000-4000-8000-00000000beac\r\nX-Project-ID: parked\r\n"
        b"Prefer: wait=3600\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
POLL_OPTIONS = ("--max-wait", "3600", "--max-waiters", str(2 * POLLS))


@contextlib.contextmanager
def parked(server, count):
    """So many connections, each with a claim that waits."""
    host, port = server.address.split(":")
    waiting = []
    try:
        for _ in range(count):
            waiting.append(socket.create_connection((host, int(port)), 10))
            waiting[-1].sendall(POLL)
        time.sleep(1)  # until the last of them is read
        for connection in waiting:
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                raise RuntimeError("a long poll was answered: %r" % connection.recv(100))
        yield
    finally:
        for connection in waiting:
            connection.close()


def polls(args, bench, servers, results):
    """In a queue without posts no waiter wakes, whatever the journal commits."""
    wanted = POLLS * 2 + 1000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))
    rows, worst = [], 0
    with servers.claimd_journal(1, SERVER_CPU, options=POLL_OPTIONS) as alone, \
            servers.claimd_journal(1, SERVER_CPU, options=POLL_OPTIONS) as beside, \
            parked(beside, POLLS):
        for connections in CONNECTIONS:
            runs = pairs(bench, alone, beside, 2 * args.rounds, "--connections", connections)
            cpu = ratios(runs, "server_cpu_us_per_request")
            worst = max(worst, median(cpu))
            rows.append([str(connections), str(len(cpu)), quartiles(cpu),
                         quartiles(ratios(runs, "requests_per_second"))])
            results.reports["journal-polls-%d" % connections] = runs
    note(results, "polls", worst)
    results.tables["journal-polls"] = tables.table(
        ["connections", "pairs", "CPU a request, with / without",
         "requests/s, with / without"], rows)


# ------------------------------------------------------------------ latency

# In a process of its own on the server's core, as claimd's are: what a commit of one post
# writes, into a file that was allocated as a segment is.
SYNC_PROBE = """
import os, sys, time
path, count = sys.argv[1], int(sys.argv[2])
file = os.open(path, os.O_RDWR | os.O_CREAT)
os.posix_fallocate(file, 0, 64 << 20)
os.fsync(file)
took = []
for i in range(count):
    start = time.perf_counter()
    os.pwrite(file, b'x' * 304, 4096 + i * 304)
    os.fdatasync(file)
    took.append((time.perf_counter() - start) * 1e6)
os.close(file)
os.unlink(path)
print(sorted(took)[len(took) // 2])
"""

LOADED_RATE = 8000


def sync_us(bench, count):
    path = os.path.join(bench.work, "sync-probe")
    return float(subprocess.run(
        pinned([sys.executable, "-c", SYNC_PROBE, path, str(count)], SERVER_CPU, bench.first),
        check=True, text=True, stdout=subprocess.PIPE, start_new_session=True).stdout)


def post_us(bench, server, *arguments):
    return bench.run(server, "post", "--scenario", "post",
                     *arguments)["operations"]["post"]["p50_us"]


LATENCY_CASES = {
    "one connection": ("latency-low", 1, ("--connections", 1)),
    "64 connections, %s posts a second" % number(LOADED_RATE):
        ("latency-load", 2, ("--connections", 64, "--rate", LOADED_RATE)),
}


def latencies(args, bench, servers, results):
    """Each post between two looks at what a sync takes, as that changes by the minute."""
    count = 200 if args.quick else 1500
    seen = {case: [] for case in LATENCY_CASES}
    for turn in range(args.rounds):
        with servers.claimd_journal(1, SERVER_CPU) as on, \
                servers.claimd(1, SERVER_CPU) as off:
            sync = sync_us(bench, count)
            for case, (_, allowed, arguments) in LATENCY_CASES.items():
                with_journal = post_us(bench, on, *arguments)
                without = post_us(bench, off, *arguments)
                early, sync = sync, sync_us(bench, count)
                one = (early + sync) / 2
                seen[case].append((one, without, with_journal, with_journal - allowed * one))
                say("  round %d  %-34s sync %5.0f us, post %5.0f us, no journal %5.0f us" %
                    (turn + 1, case, one, with_journal, without))
    rows = []
    for case, rounds in seen.items():
        key, allowed, _ = LATENCY_CASES[case]
        one, without, with_journal, beyond = [median(column) for column in zip(*rounds)]
        rows.append([case, latency(one), latency(without), latency(with_journal),
                     str(allowed), "%.0f us" % beyond])
        note(results, key, beyond, "%.0f us" % beyond)
    results.reports["journal-latency"] = seen
    results.tables["journal-latency"] = tables.table(
        ["load", "a sync", "post p50, no journal", "with a journal", "syncs allowed",
         "beyond them"], rows)


# ------------------------------------------------------------------ recovery

def queued(server, queue="bench-0"):
    """How many messages a queue has."""
    request = urllib.request.Request(
        "http://%s/v2/queues/%s/stats" % (server.address, queue),
        headers={"Client-ID": "c1a1b0de-0000-4000-8000-00000000beac", "X-Project-ID": "bench"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["messages"]["total"]


def recovery(args, bench, servers, results):
    """From the program's start to its address, after kill -9, with the files in memory."""
    counts = (100000,) if args.quick else (100000, 1000000)
    rows = []
    for count in counts:
        took, memory = [], []
        with servers.directory() as path:
            options = ("--journal", path)
            with servers.claimd(10, SERVER_CPU, options=options) as server:
                sweeps.filled(bench, server, count)
                full = look(server.pids[0], path)
                os.kill(server.pids[0], signal.SIGKILL)
            for _ in range(3 + args.rounds):
                start = time.monotonic()
                with servers.claimd(10, SERVER_CPU, options=options) as server:
                    took.append(time.monotonic() - start)
                    if queued(server) != count:
                        raise RuntimeError("%d messages of %d came back" %
                                           (queued(server), count))
                    memory.append(look(server.pids[0], path).resident)
                    os.kill(server.pids[0], signal.SIGKILL)
        rows.append([number(count), "%.0f MiB" % (full.log / sweeps.MIB),
                     "%.3f s" % median(took), "%.3f s" % max(took),
                     number(count / median(took)),
                     ratio(median(memory), full.resident)])
        say("  %s messages: %s" % (rows[-1][0], " ".join("%.3f" % t for t in took)))
        if count == 1000000:
            note(results, "recovery", median(took), "%.2f s" % median(took))
        results.reports["journal-recovery-%d" % count] = took
    results.tables["journal-recovery"] = tables.table(
        ["messages", "log", "start", "slowest start", "messages/s", "memory, of that before"],
        rows)


ALL = {"journal-cycle": cycle, "journal-before": before, "journal-latency": latencies,
       "journal-polls": polls, "journal-recovery": recovery, "journal-disk": sweeps.disk,
       "journal-sweep": sweeps.sweep}
