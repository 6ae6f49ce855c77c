"""The parts of the comparison: what is measured, and the table each of them fills."""

import contextlib
import itertools

from bench_lib import journal, measure, tables
from bench_lib.measure import (BOTH_CPUS, CPUS, SERVER_CPU, median, middle, rounds, say,
                               together)
from bench_lib.servers import Servers
from bench_lib.tables import latency, number, ratio

# Slow enough that the generator sleeps between requests: each is on time then.
STORM_RATE = 5000

NAMES = {
    "claimd": "claimd, one worker",
    "floor_mhd": "libmicrohttpd, fixed answers",
    "floor_epoll": "bare epoll, fixed answers",
    "beanstalkd": "beanstalkd, in memory",
    "redis": "redis lists, by hand",
    "zaqar": "Zaqar, 2 workers, redis (both cores)",
}


class Results:
    def __init__(self):
        self.tables = {}
        self.reports = {}
        self.found = {}  # cells of the journal's targets


def peers(args):
    names = ["claimd", "floor_mhd", "floor_epoll", "beanstalkd"]
    return names + (["redis", "zaqar"] if args.peers else [])


def cycle_table(reports, counted):
    base = median([r["messages_per_second"] for r in reports["claimd"]])
    rows = []
    for name, runs in reports.items():
        rate = median([r["messages_per_second"] for r in runs])
        shown = middle(runs)
        ops = shown["operations"]
        rows.append([NAMES[name], number(rate), ratio(base, rate),
                     number(median([r["server_cpu_us_per_request"] for r in runs])),
                     latency(ops["claim"]["p50_us"]), latency(ops["claim"]["p99_us"]),
                     "%.0f %%" % (100 * median([r["server_cpu_seconds"] /
                                                r["accounted_seconds"] for r in runs]))])
    return tables.table(["server", "messages/s", "claimd is x times", "CPU us a request",
                         "claim p50", "claim p99", "server busy"], rows)


def cycle(args, bench, servers, results):
    for batch, name in ((1, "one"), (10, "ten")):
        reports = rounds(bench, servers, peers(args), batch, args.rounds)
        results.reports["cycle-" + name] = reports
        results.tables["cycle-" + name] = cycle_table(reports, name)


def open_loop(args, bench, servers, results):
    """Half of the saturated rate, requests due at fixed times."""
    names = ("claimd", "floor_mhd", "beanstalkd")
    runs, rates = {name: [] for name in names}, {}
    if servers.first is not None:
        servers = Servers(servers.build, servers.work, "realtime")
    for turn in range(args.rounds + 1):
        for name in names:
            with servers.start(name, 1, SERVER_CPU) as server:
                if turn == 0:
                    rates[name] = bench.run(server, name)["requests_per_second"]
                else:
                    runs[name].append(measure.punctual(bench, server, name, "--rate",
                                                       int(rates[name] / 2)))
    rows = []
    for name in names:
        for op in ("post", "claim", "delete"):
            seen = [r["operations"][op] for r in runs[name]]
            p50 = median([s["p50_us"] for s in seen])
            p99 = median([s["p99_us"] for s in seen])
            rows.append([NAMES[name], op, number(rates[name] / 2), latency(p50),
                         latency(p99), ratio(p99, p50),
                         latency(median([s["p99.9_us"] for s in seen])),
                         latency(median([s["max_us"] for s in seen]))])
        results.reports["open-" + name] = runs[name]
    results.tables["open"] = tables.table(
        ["server", "request", "requests/s", "p50", "p99", "p99 / p50", "p99.9", "max"], rows)


def connections(args, bench, servers, results):
    counts = (16, 128, 1000) if args.quick else (1, 16, 128, 256, 1000, 4000)
    runs = {count: [] for count in counts}
    for turn in range(args.rounds):
        for count in counts:
            with servers.start("claimd", 1, SERVER_CPU) as server:
                runs[count].append(bench.run(server, "claimd", "--connections", count))
            say("  round %d  %5d connections %9.0f requests/s" %
                (turn + 1, count, runs[count][-1]["requests_per_second"]))
    base = median([r["requests_per_second"] for r in runs[16]])
    rows = []
    for count in counts:
        rate = median([r["requests_per_second"] for r in runs[count]])
        claim = middle(runs[count])["operations"]["claim"]
        rows.append([str(count), number(rate), ratio(rate, base), latency(claim["p50_us"]),
                     latency(claim["p99_us"]), latency(claim["max_us"])])
    results.reports["connections"] = runs
    results.tables["connections"] = tables.table(
        ["connections", "requests/s", "of that at 16", "claim p50", "claim p99",
         "claim max"], rows)


def backlog(args, bench, servers, results):
    """
    Claim and release with more and more messages queued, or held. All servers are filled
    first and measured in turn, so that what else the machine does hits all alike.
    """
    cases = [(1000, 0), (100000, 0), (100000, 90000)]
    if not args.quick:
        cases = [(1000, 0), (1000000, 0), (10000000, 0), (1100000, 1000000)]
    runs = {case: [] for case in cases}
    with contextlib.ExitStack() as stack:
        full = {}
        for queued, held in cases:
            full[queued, held] = stack.enter_context(servers.start("claimd", 1, SERVER_CPU))
            bench.run(full[queued, held], "claimd", "--scenario", "release", "--backlog",
                      queued, "--held", held, seconds=0.5)
        for _ in range(args.rounds):
            for case in cases:
                runs[case].append(bench.run(full[case], "claimd", "--scenario", "release",
                                            "--keep"))
    results.tables["backlog"] = backlog_table(runs)
    results.reports.update(("backlog-%d-%d" % case, runs[case]) for case in cases)


def backlog_table(runs):
    rows, base = [], None
    for (queued, held), reports in runs.items():
        claims = [r["operations"]["claim"] for r in reports]
        p50 = median([c["p50_us"] for c in claims])
        cpu = median([r["server_cpu_us_per_request"] for r in reports])
        base = base or (p50, cpu)
        rows.append([number(queued), number(held),
                     number(median([r["requests_per_second"] for r in reports])),
                     latency(p50), ratio(p50, base[0]), number(cpu), ratio(cpu, base[1]),
                     latency(median([c["p99_us"] for c in claims]))])
    return tables.table(["messages queued", "of them held", "requests/s", "claim p50",
                         "of the first", "CPU us a request", "of the first", "claim p99"],
                        rows)


def memory(args, bench, servers, results):
    count = 100000 if args.quick else 1000000
    rows = []
    for name in ("claimd", "beanstalkd") + (("redis",) if args.peers else ()):
        with servers.start(name, 10, SERVER_CPU) as server:
            report = bench.run(server, name, "--batch", 10, "--backlog", count, seconds=1)
        whole = report["resident_bytes_per_message"]
        rows.append([NAMES[name], number(count), number(whole), number(whole - 100)])
        results.reports["memory-" + name] = [report]
    results.tables["memory"] = tables.table(
        ["server", "messages of 100 bytes", "resident bytes each", "beyond the body"], rows)


def storm(args, bench, servers, results):
    count = 100000 if args.quick else 1000000
    lead = 12 if args.quick else 75
    low = ("--min-message-ttl", "1", "--min-claim-ttl", "1", "--min-claim-grace", "1")
    rows = []
    realtime = None if bench.first is None else "realtime"
    if realtime:
        servers = Servers(servers.build, servers.work, realtime)
    for kind in ("claims", "messages"):
        with servers.claimd(1, SERVER_CPU, options=low) as server:
            report = bench.run(server, "claimd", "--rate", STORM_RATE, "--storm", kind,
                               "--storm-count", count, "--storm-lead", lead,
                               "--message-ttl", 600, seconds=8, first=realtime,
                               spin=False)
        for when, ops in (("before and after", report["operations"]),
                          ("in the two seconds", report["storm"])):
            worst = max(ops.values(), key=lambda op: op["max_us"])
            p99 = max(op["p99_us"] for op in ops.values())
            p999 = max(op["p99.9_us"] for op in ops.values())
            rows.append(["%s %s" % (number(count), kind), when, number(STORM_RATE),
                         latency(max(op["p50_us"] for op in ops.values())), latency(p99),
                         latency(p999), latency(worst["max_us"])])
        say("  %s: max %s, in the storm %s" % (kind, rows[-2][-1], rows[-1][-1]))
        results.reports["storm-" + kind] = [report]
    results.tables["storm"] = tables.table(
        ["falling due", "", "requests/s", "p50", "p99", "p99.9", "max"], rows)


# Servers by the cores they may use and their workers.
SET_UPS = {
    "one worker": [(SERVER_CPU, 1)],
    "two workers": [(BOTH_CPUS, 2)],
    "two servers of one worker": [(cpu, 1) for cpu in CPUS],
}


def workers(args, bench, servers, results):
    """
    The same load in all cases: a generator of one thread and 16 connections on each core.
    The generators need those cores too, so what a worker more brings is taken from CPU
    accounting. Connections end up on either core; the servers that share nothing have their
    load come from the other core throughout.
    """
    cases = [("one worker", 16), ("one worker", 1), ("two workers", 16), ("two workers", 1),
             ("two servers of one worker", 16)]
    runs = {case: [] for case in cases}
    for turn in range(args.rounds):
        for set_up, queues in cases:
            with contextlib.ExitStack() as stack:
                started = [stack.enter_context(servers.claimd(1, cpus, workers=count))
                           for cpus, count in SET_UPS[set_up]]
                loads = list(zip(itertools.cycle(started), reversed(CPUS)))
                run = together(bench, loads, "--queues", queues)
            runs[set_up, queues].append(run)
            say("  round %d  %-26s %2d queues %9.0f requests/s %5.2f + %5.2f us CPU a request" %
                (turn + 1, set_up, queues, *run))
    seen = {case: [median(column) for column in zip(*run)] for case, run in runs.items()}
    rows = []
    for set_up, queues in cases:
        count = sum(count for _, count in SET_UPS[set_up])
        rate, user, system = seen[set_up, queues]
        _, one_user, one_system = seen["one worker", queues]
        rows.append([set_up, str(queues), number(rate), number(user), number(system),
                     ratio(count * one_user, user),
                     ratio(count * (one_user + one_system), user + system)])
    results.reports.update(("%s, %d queues" % case, run) for case, run in runs.items())
    results.tables["workers"] = tables.table(
        ["set-up", "queues", "requests/s", "user us a request", "system us a request",
         "of one worker, by user CPU", "by all CPU"], rows)


ALL = {"cycle": cycle, "open": open_loop, "connections": connections, "backlog": backlog,
       "memory": memory, "storm": storm, "workers": workers, **journal.ALL}
