"""Running `claimd-bench`, and taking medians over interleaved rounds."""

import json
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from bench_lib.servers import pinned

SERVER_CPU = "0"
GENERATOR_CPU = "1"
CPUS = (SERVER_CPU, GENERATOR_CPU)
BOTH_CPUS = "0,1"


class Bench:
    """The load generator with what all measurements of a run share."""

    def __init__(self, build, work, seconds, first=None):
        self.first = first
        self.program = os.path.join(build, "claimd-bench")
        self.work = work
        self.seconds = seconds

    def run(self, server, label, *arguments, seconds=None, cpus=GENERATOR_CPU,
            warmup=0.5, first=None, spin=True):
        """
        One measurement; returns the report, or raises when requests failed. The generator
        spins only where it has its core to itself.
        """
        path = os.path.join(self.work, "report-%s.json" % cpus)
        command = [self.program, "--endpoint", server.address, "--protocol",
                   server.protocol, "--quiet", "--label", label, "--warmup", str(warmup),
                   "--duration", str(seconds or self.seconds), "--json", path,
                   *map(str, arguments)]
        if spin and cpus == GENERATOR_CPU:
            command.append("--spin")
        for pid in server.pids:
            command += ["--server-pid", str(pid)]
        subprocess.run(pinned(command, cpus, first or self.first), check=True, timeout=900,
                       start_new_session=True)
        with open(path) as file:
            return json.load(file)


# Both cores at once, as a measurement has them: the share of a second that other processes had
# them, and for how many ms at most. A round of the loop takes well under 1 us.
STALL_PROBE = """
import gc, time
gc.disable()
start = now = time.perf_counter_ns()
lost = worst = 0
while now - start < 1000000000:
    before, now = now, time.perf_counter_ns()
    if now - before > 100000:
        lost += now - before
        worst = max(worst, now - before)
print(lost / (now - start), worst / 1e6)
"""


def stalls():
    """(share, ms) for each core."""
    probes = [subprocess.Popen(pinned([sys.executable, "-c", STALL_PROBE], cpu),
                               stdout=subprocess.PIPE, text=True) for cpu in CPUS]
    return [tuple(map(float, probe.communicate()[0].split())) for probe in probes]


def processor_time():
    """(stolen, all): ticks since the machine started, in which a hypervisor let others run."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return ticks[7], sum(ticks)


def say(text):
    print(text, file=sys.stderr, flush=True)


def middle(reports):
    """The report whose throughput is the median, whole."""
    ordered = sorted(reports, key=lambda report: report["messages_per_second"])
    return ordered[len(ordered) // 2]


def median(values):
    return statistics.median(values)


def punctual(bench, server, label, *arguments):
    """
    A measurement of single requests' latencies. On a busy machine both sides run in real
    time, for less than a second: then nothing takes them off their cores.
    """
    if bench.first is None:
        return bench.run(server, label, *arguments)
    time.sleep(1)
    return bench.run(server, label, *arguments, seconds=0.7, warmup=0.1, first="realtime")


def cpu_seconds(pid):
    """What a process has used so far: in its own code, and in the kernel's for it."""
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rpartition(")")[2].split()
    return [int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in fields[11:13]]


def together(bench, loads, *arguments):
    """
    Several generators at once, each (server, core). Returns requests/s of all, and user and
    system CPU us a request of their servers.
    """
    pids = {pid for server, _ in loads for pid in server.pids}

    def used():
        return [sum(column) for column in zip(*map(cpu_seconds, pids))]

    before = used()
    with ThreadPoolExecutor(len(loads)) as pool:
        reports = list(pool.map(
            lambda load: bench.run(load[0], "claimd", *arguments, cpus=load[1], warmup=0,
                                   spin=False), loads))
    count = sum(o["requests"] for r in reports for o in r["operations"].values())
    spent = [(late - early) * 1e6 / count for early, late in zip(before, used())]
    return (sum(r["requests_per_second"] for r in reports), *spent)


def rounds(bench, servers, names, batch, count, *arguments, slow=()):
    """
    Interleaved: every server once a round, so that what else the machine does hits all
    alike; those that are slow for four times as long. Returns the reports by name.
    """
    reports = {name: [] for name in names}
    for turn in range(count):
        for name in names:
            with servers.start(name, batch, SERVER_CPU) as server:
                report = bench.run(server, name, "--batch", batch, *arguments,
                                   seconds=bench.seconds * (4 if name in slow else 1),
                                   cpus=GENERATOR_CPU if server.cores == 1 else BOTH_CPUS)
            say("  round %d  %-12s %9.0f messages/s %7.2f us CPU a request" %
                (turn + 1, name, report["messages_per_second"],
                 report["server_cpu_us_per_request"]))
            reports[name].append(report)
    return reports
