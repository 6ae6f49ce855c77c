"""What a journal may cost, and the table that says whether it does."""

from bench_lib import tables
from bench_lib.measure import say

# key: (what, target as it is written, True when the value is to be at least the bound, bound)
TARGETS = {
    "before-one": ("no journal, one at a time, of the program before", "at least 0.99",
                   True, 0.99),
    "before-ten": ("no journal, ten at a time, of the program before", "at least 0.99",
                   True, 0.99),
    "beanstalkd-one-16": ("journal on the disk, one at a time, 16 connections, of beanstalkd "
                          "`-f0`", "at least 3", True, 3),
    "beanstalkd-one-256": ("the same, 256 connections", "at least 10", True, 10),
    "beanstalkd-ten-16": ("ten at a time, 16 connections, of beanstalkd `-f0`", "at least 20",
                          True, 20),
    "beanstalkd-ten-256": ("the same, 256 connections", "at least 20", True, 20),
    "redis-one": ("one at a time, of redis `appendfsync always`, the worse of 16 and 256 "
                  "connections", "at least 1", True, 1),
    "redis-ten": ("ten at a time, the same", "at least 1", True, 1),
    "tmpfs-rate": ("journal on tmpfs, ten at a time, of no journal, the worse of 16 and 256 "
                   "connections", "at least 0.75", True, 0.75),
    "tmpfs-cpu": ("the same, CPU a request, 256 connections", "at most 1.5", False, 1.5),
    "polls": ("CPU a request with 4000 long polls beside, of that without, the worse of 16 "
              "and 256 connections", "at most 1.2", False, 1.2),
    "latency-low": ("p50 of a post over one connection, beyond one sync", "at most 100 us",
                    False, 100),
    "latency-load": ("p50 of a post under load, beyond two syncs", "at most 200 us", False,
                     200),
    "recovery": ("recovery of 1 M messages of 100 bytes, warm", "at most 0.5 s", False, 0.5),
    "disk-steady": ("disk, in the middle, beyond 256 MiB, of what lives", "at most 2", False,
                    2),
    "disk-worst": ("disk, at worst, beyond 256 MiB, of what lives", "at most 3.5", False, 3.5),
    "sweep-disk": ("the same, sweep of 10 M messages", "at most 3.5", False, 3.5),
    "sweep-slowest": ("sweep of 10 M messages under load: slowest request, beyond that "
                      "without sweep and disk", "at most 5 ms", False, 5000),
    "sweep-slowest-tmpfs": ("the same, journal on tmpfs", "at most 5 ms", False, 5000),
    "sweep-memory": ("memory while it sweeps, of that before", "at most 1.05", False, 1.05),
}
NO_FIGURE = "-"


def target_cell(key, value, shown=None):
    """In brackets: missed."""
    _, _, at_least, bound = TARGETS[key]
    cell = shown or "%.2f" % value
    met = value >= bound if at_least else value <= bound
    return cell if met else "(%s)" % cell


def targets_table(before, found):
    """
    The table of the targets: cells that were found, and for the others what stood in the
    table before: the parts can be measured one by one.
    """
    stood = {(row["what"], row["target"]): row["measured"] for row in before}
    return tables.table(
        ["what", "target", "measured"],
        [[what, said, found.get(key) or stood.get((what, said), NO_FIGURE)]
         for key, (what, said, _, _) in TARGETS.items()])


def note(results, key, value, shown=None):
    results.found[key] = target_cell(key, value, shown)


def note_least(results, key, values, by):
    """The least of value / by, pair by pair; nothing if a peer did nothing in its time."""
    if all(by):
        note(results, key, min(value / to for value, to in zip(values, by)))
    else:
        say("  nothing to compare with for: " + TARGETS[key][0])
