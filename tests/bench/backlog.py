#!/usr/bin/python3
"""Measures a backlog larger than memory, for claimd and its peers (docs/performance.md, "Backlog").

    backlog.py [OPTION...] CLAIMD BEFORE

CLAIMD keeps its messages in a journal with --max-memory. BEFORE is a build that keeps all bodies
in memory, so it has no limit. The peers are beanstalkd -b, which syncs every 50 ms, and RabbitMQ
with a lazy classic queue, persistent messages and publisher confirms. The servers run one after
the other:

    rounds    post a small backlog that fits into memory and drain it, again and again
    fill      post N messages, ten in a request
    kill      kill -9, and start again
    drain     claim ten and delete them, until the queue is empty, and check the order
    rounds    once more, so that a machine that became slower shows in both

Messages carry their number, so that a message that is missing, twice or out of order is an error.
A probe claims from another small queue all the time. The restart after kill -9 finds the journal in
the page cache. Nothing else should run on the machine. With the defaults it takes about two hours
and 20 GB of disk. scripts/packages install bench peers brings the peers. instructions.py measures
the cost for users without a backlog.
"""

import argparse
import contextlib
import multiprocessing
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from backlog_servers import BATCH, Beanstalkd, Claimd, RabbitMQ, Refused

PROBES_EACH_S = 100
SLICES = 20
# The phases that a figure needs.
FIGURES = {"memory": {"fill"}, "posts": {"rounds", "fill"}, "drain": {"rounds", "fill", "drain"},
           "claims": {"rounds", "fill", "drain"}, "recovery": {"fill", "kill"},
           "written": {"fill", "drain"}}
SERVERS = ("claimd", "before", "beanstalkd", "rabbitmq")


# ---------------------------------------------------------------------------- looking at a server


def processor_s(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def number_in(path, name):
    with open(path, encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name))


def written_bytes(pid):
    return number_in("/proc/%d/io" % pid, "write_bytes:")


def device_bytes(folder):
    """Bytes written to the disk of the folder by all programs, None for one without statistics.

    write_bytes of a process counts a large folio of the page cache as a whole, even if a small
    write changes a part of it. This figure does not.
    """
    subprocess.run(["sync", "-f", folder], check=True)
    device = os.stat(folder).st_dev
    numbers = [str(os.major(device)), str(os.minor(device))]
    with open("/proc/diskstats", encoding="ascii") as file:
        for line in file:
            fields = line.split()
            if fields[:2] == numbers:
                return int(fields[9]) * 512
    return None


def resident_bytes(pid, name="VmRSS:"):
    return number_in("/proc/%d/status" % pid, name) * 1024


def disk_bytes(folder):
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
    return total


def wait_until_calm(pid):
    """Until the server has written nothing for three seconds, such as a checkpoint."""
    deadline, before, since = time.monotonic() + 300, None, time.monotonic()
    while time.monotonic() < deadline and time.monotonic() < since + 3:
        now = written_bytes(pid)
        if now != before:
            before, since = now, time.monotonic()
        time.sleep(0.1)


# ---------------------------------------------------------------------------- probe


def probe_loop(server, pipe):
    """Claims from a queue of one message at a fixed rate. Sends (time, seconds) of each claim."""
    session, found, due = server.session("probe"), [], time.monotonic()
    while not pipe.poll(max(0, due - time.monotonic())):
        session.post(["probe"])
        found.append((time.monotonic(), session.claim()))
        due = max(due + 1 / PROBES_EACH_S, time.monotonic())
    pipe.send(found)
    session.close()


@contextlib.contextmanager
def probe(server):
    """Probes in a process of its own during the block. Its claims are in the list afterwards."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=probe_loop, args=(server, theirs), daemon=True)
    process.start()
    theirs.close()
    found = []
    try:
        yield found
        ours.send("end")
        found.extend(ours.recv())
    finally:
        process.terminate()
        process.join()


def percentiles(claims, spans):
    """(p50, p99, slowest) in ms of the claims within these spans of time."""
    seen = sorted(seconds for at, seconds in claims
                  if any(begin <= at <= end for begin, end in spans))
    if not seen:
        return None
    return tuple(1000 * seen[min(len(seen) - 1, len(seen) * share // 100)]
                 for share in (50, 99, 100))


# ---------------------------------------------------------------------------- load


class Progress:
    """Messages done by all threads, with the time and the processor time at each slice."""

    def __init__(self, pid, slice_size):
        self.pid, self.slice, self.done = pid, slice_size, 0
        self.lock, self.marks = threading.Lock(), []
        self.mark()

    def mark(self):
        self.marks.append((self.done, time.monotonic(), processor_s(self.pid), time.process_time()))

    def add(self, count):
        with self.lock:
            before, self.done = self.done, self.done + count
            if before // self.slice < self.done // self.slice:
                self.mark()

    def rates(self):
        """(messages before, messages a second) of each slice."""
        return [(one[0], (two[0] - one[0]) / (two[1] - one[1]))
                for one, two in zip(self.marks, self.marks[1:]) if two[0] > one[0]]

    def total(self, above=0):
        """Messages a second, server us a message and the client's share of a core."""
        first = next((mark for mark in self.marks[:-1] if mark[0] >= above), self.marks[-2])
        count, seconds, server, client = (b - a for a, b in zip(first, self.marks[-1]))
        return count / seconds, 1e6 * server / count, client / seconds

    def span(self):
        return self.marks[0][1], self.marks[-1][1]


def run_threads(function, count):
    """function(0) to function(count - 1) at the same time. Raises the first error."""
    errors = []

    def run(number):
        try:
            function(number)
        except Exception as error:  # the main thread raises it
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def fill(server, args, total, slice_size):
    """Each connection posts its own numbers, in order."""
    progress = Progress(server.pid, slice_size)

    def post(poster):
        session = server.session("backlog")
        filler = "x" * (args.bytes - 14)
        for first in range(0, total // args.connections, BATCH):
            try:
                session.post(["%02d-%010d-%s" % (poster, number, filler)
                              for number in range(first, first + BATCH)])
            except Refused as error:
                raise Refused("after %d messages: %s" % (progress.done, error)) from error
            progress.add(BATCH)
        session.close()

    run_threads(post, args.connections)
    return progress


class Arrivals:
    """Checks that each message arrives once, and that each poster's arrive in order."""

    def __init__(self, total, posters):
        self.seen = [bytearray(total // posters) for _ in range(posters)]

    def add(self, last, bodies):
        """`last` has the last number of each poster that this connection got."""
        for body in bodies:
            poster, number = int(body[:2]), int(body[3:13])
            if self.seen[poster][number]:
                raise AssertionError("message %s came twice" % body[:13])
            if number <= last.get(poster, -1):
                raise AssertionError("message %s came after %d" % (body[:13], last[poster]))
            self.seen[poster][number], last[poster] = 1, number

    def missing(self):
        return sum(seen.count(0) for seen in self.seen)


def drain(server, args, total, slice_size):
    """Returns the progress, and how many claims found nothing although messages were left."""
    progress, arrivals = Progress(server.pid, slice_size), Arrivals(total, args.connections)
    empty, under_way = [0] * args.connections, 2 * BATCH * args.connections

    def take(connection):
        session, last, since = server.session("backlog"), {}, time.monotonic()
        while progress.done < total:
            bodies = session.take(BATCH)
            arrivals.add(last, bodies)
            if bodies:
                progress.add(len(bodies))
                since = time.monotonic()
            elif time.monotonic() > since + 60:
                raise AssertionError("%d messages are missing" % arrivals.missing())
            else:
                empty[connection] += progress.done + under_way < total
        session.close()

    run_threads(take, args.connections)
    if arrivals.missing():
        raise AssertionError("%d messages are missing" % arrivals.missing())
    return progress, sum(empty)


# ---------------------------------------------------------------------------- phases


def say(text):
    print(time.strftime("%H:%M:%S ") + text, file=sys.stderr, flush=True)


def median_of(runs):
    return tuple(statistics.median(column) for column in zip(*(run.total() for run in runs)))


class Rounds:
    """Small backlogs, filled and drained for a while, before and after the large one."""

    def __init__(self):
        self.fills, self.drains, self.claims = [], [], []

    def run(self, server, args):
        until, least = time.monotonic() + args.seconds / 2, len(self.fills) + 2
        with probe(server) as claims:
            while len(self.fills) < least or time.monotonic() < until:
                self.fills.append(fill(server, args, args.small, args.small))
                self.drains.append(drain(server, args, args.small, args.small)[0])
        self.claims += claims

    def results(self):
        for name, runs in (("small posts", self.fills), ("small drain", self.drains)):
            if runs:
                yield name, median_of(runs)
                yield name + " claim", percentiles(self.claims, [run.span() for run in runs])


def measure_fill(server, args, found):
    found["device before"] = device_bytes(server.folder)
    written = written_bytes(server.pid)
    with probe(server) as claims:
        full = fill(server, args, args.messages, args.messages // SLICES)
    found["slices"] = [rate for _, rate in full.rates()]
    found["posts"] = full.total(above=args.past_memory)
    found["slowest slice"] = min(rate for before, rate in full.rates()
                                 if before >= args.past_memory or before == full.rates()[-1][0])
    found["posts claim"] = percentiles(claims, [full.span()])
    wait_until_calm(server.pid)
    found["resident"] = resident_bytes(server.pid)
    found["peak"] = resident_bytes(server.pid, "VmHWM:")
    found["disk"] = disk_bytes(server.folder) / (args.messages * args.bytes)
    found["written fill"] = written_bytes(server.pid) - written


def measure_drain(server, args, found):
    written = written_bytes(server.pid) if "kill" not in args.phases else 0
    with probe(server) as claims:
        run, found["empty"] = drain(server, args, args.messages, args.messages // SLICES)
    found["drain"], found["drain slices"] = run.total(), [rate for _, rate in run.rates()]
    found["drain claim"] = percentiles(claims, [run.span()])
    wait_until_calm(server.pid)
    total = found["written fill"] + written_bytes(server.pid) - written
    found["written"] = total / (args.messages * args.bytes)
    if found["device before"] is not None:
        device = device_bytes(server.folder) - found["device before"]
        found["device"] = device / (args.messages * args.bytes)


def measure(name, server, args):
    """All phases of one server. Returns what was found."""
    found, rounds = {}, Rounds()
    try:
        server.start("backlog")
        if "rounds" in args.phases:
            say("%s: rounds" % name)
            rounds.run(server, args)
        say("%s: fill" % name)
        measure_fill(server, args, found)
        if "kill" in args.phases:
            say("%s: kill -9" % name)
            server.kill()
            found["recovery"], waiting = server.start("backlog")
            if waiting != args.messages:
                found["fault"] = "%d of %d messages after kill -9" % (waiting, args.messages)
        if "drain" in args.phases:
            say("%s: drain" % name)
            measure_drain(server, args, found)
            if "rounds" in args.phases:
                say("%s: rounds" % name)
                rounds.run(server, args)
    except Exception as error:  # the figures of the other servers are not lost
        found["fault"] = "%s: %s" % (type(error).__name__, str(error)[:300])
    finally:
        server.stop()
    found.update(rounds.results())
    if "fault" in found:
        say("%s: %s" % (name, found["fault"]))
    return found


def servers(args):
    """(name, function that makes the server in a folder)"""
    return {"claimd": lambda folder: Claimd(folder, args.claimd, args.max_memory),
            "before": lambda folder: Claimd(folder, args.before, "0"),
            "beanstalkd": Beanstalkd, "rabbitmq": RabbitMQ}


# ---------------------------------------------------------------------------- table


def cell(text, value):
    return "-" if value is None else text % value


def part(found, name, index=None):
    value = found.get(name)
    return value if index is None or value is None else value[index]


def quotient(one, other):
    return None if one is None or other is None or other == 0 else one / other


def own_rows(found):
    """(figure, label, text) of one server, in the order of the table."""
    def megabytes(name):
        return quotient(part(found, name), 1e6)

    rows = [("memory", "resident memory, MB", cell("%.0f", megabytes("resident"))),
            ("memory", "  at its peak, MB", cell("%.0f", megabytes("peak")))]
    for figure, title in (("posts", "posts"), ("drain", "drain")):
        small, full = "small " + figure, figure
        rows += [
            (figure, title + " in memory, messages/s", cell("%.0f", part(found, small, 0))),
            (figure, title + " past memory, messages/s", cell("%.0f", part(found, full, 0))),
            (figure, "  of that in memory", cell(
                "%.2f", quotient(part(found, full, 0), part(found, small, 0)))),
            (figure, "  server us a message, in memory", cell("%.1f", part(found, small, 1))),
            (figure, "  server us a message, past memory", cell("%.1f", part(found, full, 1))),
            (figure, "  client, share of a core", cell("%.2f", part(found, full, 2)))]
        if figure == "posts":
            rows.append((figure, "  slowest slice, messages/s",
                         cell("%.0f", part(found, "slowest slice"))))
    for figure, title in (("posts", "posts"), ("drain", "drain")):
        small, full = part(found, "small %s claim" % figure), part(found, figure + " claim")
        rows += [
            ("claims", "claim meanwhile, %s in memory, p50/p99/max ms" % title,
             cell("%.2f/%.2f/%.1f", small)),
            ("claims", "claim meanwhile, %s past memory, p50/p99/max ms" % title,
             cell("%.2f/%.2f/%.1f", full)),
            ("claims", "  p99 of that in memory", cell(
                "%.2f", quotient(full and full[1], small and small[1])))]
    return rows + [
        ("recovery", "kill -9 to first response, s", cell("%.2f", part(found, "recovery"))),
        ("written", "bytes written a byte posted", cell("%.2f", part(found, "written"))),
        ("written", "  of them until the backlog was full",
         cell("%.2f", quotient(part(found, "written fill"), part(found, "posted")))),
        ("written", "  by all programs, as the disk counts", cell("%.2f", part(found, "device"))),
        ("written", "disk space a byte posted, full backlog", cell("%.2f", part(found, "disk")))]


def targets(results):
    """(figure, label, value, limit, whether it is an upper limit)"""
    ours, before, rabbit = (results.get(name, {}) for name in ("claimd", "before", "rabbitmq"))

    def ratio_of(name, other, index=None):
        return quotient(part(ours, name, index), part(other, name, index))

    rows = [
        ("memory", "resident memory of that before", ratio_of("resident", before), 0.05, True),
        ("memory", "resident memory of RabbitMQ's", ratio_of("resident", rabbit), 1, True),
        ("recovery", "kill -9 to response of that before", ratio_of("recovery", before), 0.2, True),
        ("written", "bytes written a byte posted", part(ours, "written"), 2.5, True)]
    for figure, title, limit in (("posts", "posts past memory of those in memory", 0.8),
                                 ("drain", "drain past memory of that in memory", 0.7)):
        rate = quotient(part(ours, figure, 0), part(ours, "small " + figure, 0))
        p99 = quotient(part(ours, figure + " claim", 1), part(ours, "small %s claim" % figure, 1))
        rows += [(figure, title, rate, limit, False),
                 ("claims", "p99 of a claim meanwhile, %s" % figure, p99, 2, True)]
    return rows


def print_aligned(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(text.ljust(width) if column == 0 else text.rjust(width)
                        for column, (text, width) in enumerate(zip(row, widths))).rstrip())


def report(results, args):
    table = [["", *results]]
    columns = [own_rows(found) for found in results.values()]
    for rows in zip(*columns):
        if rows[0][0] in args.figures:
            table.append([rows[0][1], *(row[2] for row in rows)])
    print("\n%d messages of %d bytes, %d connections, max_memory %s"
          % (args.messages, args.bytes, args.connections, args.max_memory))
    print(machine(args) + "\n")
    print_aligned(table)
    table = [["claimd", "", "target", ""]]
    for figure, label, value, limit, upper in targets(results):
        if figure in args.figures and value is not None:
            table.append([label, "%.3f" % value, "at %s %g" % ("most" if upper else "least", limit),
                          "met" if (value <= limit if upper else value >= limit) else "missed"])
    if len(table) > 1:
        print()
        print_aligned(table)
    for name, found in results.items():
        for key, title in (("slices", "posts"), ("drain slices", "drain")):
            if found.get(key):
                print("\n%s, %s, thousand messages/s in slices of %d:\n  %s" % (
                    name, title, args.messages // SLICES,
                    " ".join("%.1f" % (rate / 1000) for rate in found[key])))
        if found.get("empty"):
            print("%s: %d claims found nothing although messages were left"
                  % (name, found["empty"]))
        if "fault" in found:
            print("%s: FAULT %s" % (name, found["fault"]))


def first_line(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "none"
    return " ".join((done.stdout or done.stderr).split("\n")[:2])


def machine(args):
    """The machine and the versions of this measurement."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":", 1)[1].strip() for line in file
                      if line.startswith("model name")), "unknown")
    packages = first_line("dpkg-query", "--show", "--showformat=${Package} ${Version}, ",
                          "beanstalkd", "rabbitmq-server")
    return "%s, %d cores, Linux %s, %s\n%s, before: %s, %s" % (
        model, os.cpu_count(), platform.release(), time.strftime("%Y-%m-%d"),
        first_line(args.claimd, "--version"), first_line(args.before, "--version"),
        packages.rstrip(", "))


# ---------------------------------------------------------------------------- main


def size_of(text):
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * scale[text[-1]] if text[-1] in scale else int(text)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("claimd")
    parser.add_argument("before")
    parser.add_argument("--messages", type=int, default=5000000, help="size of the backlog")
    parser.add_argument("--bytes", type=int, default=1024, help="size of a body")
    parser.add_argument("--max-memory", default="256M", help="max_memory of CLAIMD")
    parser.add_argument("--connections", type=int, default=4, help="kept connections, at most 99")
    parser.add_argument("--seconds", type=float, default=30, help="duration of the rounds")
    parser.add_argument("--only", action="append", choices=FIGURES, help="figure, may be repeated")
    parser.add_argument("--servers", default=",".join(SERVERS), help="which, divided by commas")
    parser.add_argument("--folder", help="where the servers keep their data, on a disk")
    args = parser.parse_args()
    args.figures = args.only or list(FIGURES)
    args.phases = set().union(*(FIGURES[figure] for figure in args.figures))
    whole = args.connections * BATCH
    args.messages -= args.messages % (whole * SLICES)
    # claimd unloads messages beyond a quarter of max_memory. The small backlog stays below.
    args.past_memory = min(size_of(args.max_memory) // 4 // args.bytes, args.messages // 2)
    args.small = max(whole, min(40000, args.past_memory // 2) // whole * whole)
    unknown = set(args.servers.split(",")) - set(SERVERS)
    if unknown or args.messages <= 0 or args.bytes < 32:
        parser.error("no such server, no messages or too small bodies")
    return args


def main():
    args = arguments()
    results = {}
    for name in args.servers.split(","):
        folder = tempfile.mkdtemp(prefix="claimd-backlog-", dir=args.folder)
        try:
            results[name] = measure(name, servers(args)[name](folder), args)
            results[name]["posted"] = args.messages * args.bytes
        finally:
            shutil.rmtree(folder)
    report(results, args)
    return 1 if any("fault" in found for found in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
