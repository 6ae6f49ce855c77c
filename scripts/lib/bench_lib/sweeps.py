"""The parts about what is no longer needed: disk use, and requests while a sweep runs."""

import time

from bench_lib import tables
from bench_lib.measure import SERVER_CPU, median, processor_time, say
from bench_lib.tables import latency, number
from bench_lib.targets import note
from bench_lib.watch import Watch, drops

TMPFS = "/dev/shm"

# With so many connections a commit has much to write: the way to a long log.
FAST = ("--connections", 256)

MIB = 1 << 20
BODY = 100        # bytes: what claimd-bench posts
LIVE_EACH = 96    # what the journal counts for a message besides its texts
SEGMENT = 8 * MIB
ALLOWED = 256 * MIB  # by the target: on top of any multiple of what lives
NEAR = 128 * MIB     # before a sweep begins


def live_bytes(messages):
    return messages * (BODY + LIVE_EACH)


def due_bytes(messages):
    """A log longer than this is swept (docs/journal.md)."""
    return 2 * live_bytes(messages) + 4 * SEGMENT


def filled(bench, server, count):
    """Its first queue has so many messages, which live for a day."""
    bench.run(server, "fill", "--scenario", "release", "--backlog", count, "--batch", 10,
              "--message-ttl", 86400, *FAST, seconds=0.2, warmup=0)


# ------------------------------------------------------------------ disk

def share(disk, live):
    """How often it holds what lives, beyond what is allowed in any case."""
    return (disk - ALLOWED) / live


def cycles(bench, server, seconds, *arguments):
    """Posts at one end of the queue, claims and deletions at the other."""
    return bench.run(server, "claimd", "--scenario", "cycle", "--batch", 10, "--keep",
                     "--message-ttl", 86400, *arguments, seconds=seconds, warmup=0)


def disk(args, bench, servers, results):
    """As much as it can, with so much that lives, over several sweeps."""
    count, sweeps = (100000, 2) if args.quick else (1000000, 5)
    live = live_bytes(count)
    with servers.directory() as path, \
            servers.claimd(10, SERVER_CPU, options=("--journal", path)) as server, \
            Watch(server.pids[0], path) as watch:
        filled(bench, server, count)
        end = time.monotonic() + 600
        while len(drops(watch.samples)) < sweeps + 1:
            if time.monotonic() > end:
                raise RuntimeError("no %d sweeps in 600 s" % (sweeps + 1))
            cycles(bench, server, 1, *FAST)
    ends = drops(watch.samples)
    whole = [s.disk for s in watch.samples if ends[0][1] <= s.at <= ends[sweeps][1]]
    steady, worst = median(whole), max(s.disk for s in watch.samples)
    note(results, "disk-steady", share(steady, live))
    note(results, "disk-worst", share(worst, live))
    results.reports["journal-disk"] = watch.samples
    results.tables["journal-disk"] = tables.table(
        ["messages", "what lives", "sweeps", "in the middle", "beyond 256 MiB, of what lives",
         "at worst", "beyond 256 MiB, of what lives"],
        [[number(count), "%.0f MiB" % (live / MIB), str(sweeps), "%.0f MiB" % (steady / MIB),
          "%.2f" % share(steady, live), "%.0f MiB" % (worst / MIB),
          "%.2f" % share(worst, live)]])


# ------------------------------------------------------------------ sweep

SWEPT, SWEPT_QUICKLY = 10000000, 1000000

# Requests a second of ten messages each, far from what a worker or a disk can: over so many
# connections that they need not wait for one another's syncs.
SWEEP_RATE = 6000
MODEST = ("--connections", 64)

WITHOUT, SWEEPING, NEITHER = "without", "sweeping", None

# A run counts if no more of the machine's time than this was given to others: how long the
# slowest request took is otherwise what they did.
STOLEN_MOST = 0.02


def windows(bench, server, seconds, enough):
    """Runs one behind the other, (begin, end, report) each, until it is enough."""
    seen = []
    while not enough(seen):
        begin, (stolen, ticks) = time.monotonic(), processor_time()
        report = cycles(bench, server, seconds, *MODEST, "--rate", SWEEP_RATE)
        end, (stolen_then, ticks_then) = time.monotonic(), processor_time()
        report["stolen_share"] = (stolen_then - stolen) / (ticks_then - ticks)
        seen.append((begin, end, report))
    return seen


def counts(report):
    return report["stolen_share"] <= STOLEN_MOST


def undisturbed(reports):
    found = [report for report in reports if counts(report)]
    if not found:
        raise RuntimeError("none of %d runs had the machine for itself" % len(reports))
    return found


def phase_of(begin, end, samples, messages):
    """
    Was there a sweep in these seconds? It begins when the log is long enough, which is known
    here but for a segment, and ends when the oldest segments go.
    """
    due = [s.at for s in samples if s.log > due_bytes(messages)]
    near = [s.at for s in samples if s.log > due_bytes(messages) - SEGMENT]
    gone = [at for pair in drops(samples) for at in pair if due and at > due[0]]
    if due and end > due[0] and (not gone or begin <= gone[-1]):
        return SWEEPING
    if near and end > near[0] and (not gone or begin <= gone[-1]):
        return NEITHER
    return WITHOUT


def worst_of(report, step):
    return max(op[step] for op in report["operations"].values())


def sweep_row(place, when, reports):
    return [place, when, str(len(reports)),
            latency(median([worst_of(r, "p50_us") for r in reports])),
            latency(median([worst_of(r, "p99.9_us") for r in reports])),
            latency(max(worst_of(r, "p99.9_us") for r in reports)),
            latency(max(worst_of(r, "max_us") for r in reports))]


def approach(bench, server, watch, messages):
    """As fast as it goes, until a sweep is near."""
    end = time.monotonic() + 900
    while watch.samples[-1].log <= due_bytes(messages) - NEAR:
        if time.monotonic() > end:
            raise RuntimeError("no sweep came near in 900 s")
        cycles(bench, server, 0.5, *FAST)


def one_sweep(bench, servers, where, messages, seconds):
    """(samples, windows) from before a sweep until behind it."""
    with servers.directory(where) as path, \
            servers.claimd(10, SERVER_CPU, options=("--journal", path)) as server, \
            Watch(server.pids[0], path) as watch:
        filled(bench, server, messages)
        approach(bench, server, watch, messages)
        start = time.monotonic()

        def swept(seen):
            if time.monotonic() > start + 1500:
                raise RuntimeError("no sweep ended in 1500 s")
            return any(at > start for _, at in drops(watch.samples))

        seen = windows(bench, server, seconds, swept)
        calm = len(seen) // 4 + 3
        seen += windows(bench, server, seconds, lambda behind: len(behind) == calm)
        time.sleep(1)  # the last samples are behind the last window
    return [s for s in watch.samples if s.at >= start], seen


def sorted_windows(samples, seen, messages):
    found = {WITHOUT: [], SWEEPING: [], NEITHER: []}
    for begin, end, report in seen:
        found[phase_of(begin, end, samples, messages)].append(report)
    for phase in (WITHOUT, SWEEPING):
        found[phase] = undisturbed(found[phase])
    return found


def memory_of_sweep(samples, messages):
    """The most while it swept, of the most before."""
    due = [s.at for s in samples if s.log > due_bytes(messages)][0]
    gone = [at for pair in drops(samples) for at in pair][-1]
    sweeping = [s.resident for s in samples if due <= s.at <= gone]
    return max(sweeping) / max(s.resident for s in samples if s.at < due)


def no_journal(bench, servers, messages, seconds, count):
    """The same requests on the same backlog, until so many runs count."""
    def enough(seen):
        quiet = sum(counts(report) for _, _, report in seen)
        return quiet >= count or len(seen) == 3 * count

    with servers.claimd(10, SERVER_CPU) as server:
        filled(bench, server, messages)
        return undisturbed([report for _, _, report in
                            windows(bench, server, seconds, enough)])


def sweep(args, bench, servers, results):
    messages = SWEPT_QUICKLY if args.quick else SWEPT
    seconds = min(2, args.seconds)
    rows, found, memory, worst = [], {}, [], 0
    for place, where in (("the disk", None), ("tmpfs", TMPFS)):
        samples, seen = one_sweep(bench, servers, where, messages, seconds)
        found[place] = sorted_windows(samples, seen, messages)
        memory.append(memory_of_sweep(samples, messages))
        most = max(s.disk for s in samples)
        worst = max(worst, most)
        for when in (WITHOUT, SWEEPING):
            rows.append(sweep_row("journal on " + place, when, found[place][when]) +
                        ["%.2f" % memory[-1] if when == SWEEPING else "",
                         "%.0f MiB" % (most / MIB) if when == SWEEPING else ""])
        say("  %s: slowest %s without, %s sweeping; memory %.2f" %
            (place, rows[-2][6], rows[-1][6], memory[-1]))
        results.reports["journal-sweep-" + where_name(where)] = {
            "samples": samples, "windows": seen}
    # As many seconds: the slowest of more requests is slower, whatever serves them.
    plain = no_journal(bench, servers, messages, seconds, len(found["the disk"][SWEEPING]))
    rows.append(sweep_row("no journal", WITHOUT, plain) + ["", ""])
    results.reports["journal-sweep-none"] = plain
    sweep_targets(results, found, plain)
    note(results, "sweep-memory", max(memory))
    note(results, "sweep-disk", share(worst, live_bytes(messages)))
    results.tables["journal-sweep"] = tables.table(
        ["%s messages" % number(messages), "", "runs of %g s" % seconds, "p50", "p99.9",
         "p99.9, worst run", "slowest", "memory, of that before", "disk, at worst"], rows)


def where_name(where):
    return "disk" if where is None else "tmpfs"


def sweep_targets(results, found, plain):
    """On tmpfs besides: a disk's own pauses are none of the sweep's."""
    least = max(worst_of(r, "max_us") for r in plain)
    for place, key in (("the disk", "sweep-slowest"), ("tmpfs", "sweep-slowest-tmpfs")):
        beyond = max(worst_of(r, "max_us") for r in found[place][SWEEPING]) - least
        note(results, key, beyond, "%.1f ms" % (beyond / 1000))
