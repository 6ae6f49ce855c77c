#!/usr/bin/python3
"""Measures what schedules cost (docs/performance.md, "Schedules").

    schedules.py CLAIMD [SCHEDULES [SECONDS]]

Starts servers with a journal, one without schedules and one with 10,000 that are due tomorrow. Reads
their processor time and wake-ups over a minute, in turns. Then a worker waits by long polling for the
messages of a schedule that is due each second, and takes the time from each due time to its response.

Nothing else should run on the machine.
"""

import concurrent.futures
import json
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from daemon import Daemon  # noqa: E402

CLAIMD = sys.argv[1]
SCHEDULES = int(sys.argv[2]) if len(sys.argv) > 2 else 10000
SECONDS = int(sys.argv[3]) if len(sys.argv) > 3 else 60
HEADERS = {"Client-ID": "3381af92-2b9e-11e3-b191-71861300734c", "X-Project-ID": "p",
           "Content-Type": "application/json"}
LATE = 30


def used(pid):
    """Processor milliseconds and context switches of all threads."""
    with open("/proc/%d/stat" % pid) as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    ticks = int(fields[11]) + int(fields[12])
    switches = 0
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, thread)) as status:
            switches += sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)
    return ticks * 1000 // os.sysconf("SC_CLK_TCK"), switches


def resident_kb(pid):
    with open("/proc/%d/status" % pid) as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def request(daemon, method, path, body=None, headers=None):
    """The status and the text of a response."""
    connection = daemon.connect()
    connection.request(method, path, body, headers or HEADERS)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response.status, text


def set_schedule(daemon, number, definition):
    status, text = request(daemon, "PUT", "/claimd/queues/q/schedules/s%d" % number,
                           json.dumps(definition))
    assert status == 201, text


def idle(folder, count):
    with Daemon(CLAIMD, "--journal", os.path.join(folder, str(count)), "--log-level", "error",
                "--max-schedules", "100000") as daemon:
        before = resident_kb(daemon.process.pid)
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda i: set_schedule(daemon, i, {
                "cron": "%d %d * * *" % (i % 60, (time.gmtime().tm_hour + 23) % 24),
                "message": {"body": {"job": i}}}), range(count)))
        took = time.monotonic() - began
        memory = resident_kb(daemon.process.pid) - before
        time.sleep(5)
        start = used(daemon.process.pid)
        time.sleep(SECONDS)
        end = used(daemon.process.pid)
        print("%6d schedules: %4d ms of processor time and %5d context switches in %d s; made in %.1f s,"
              " %d KB" % (count, end[0] - start[0], end[1] - start[1], SECONDS, took, memory))


def lateness(folder):
    with Daemon(CLAIMD, "--journal", os.path.join(folder, "late"), "--log-level", "error") as daemon:
        set_schedule(daemon, 1, {"every": 1, "message": {"body": 1}})
        late = []
        while len(late) < LATE:
            status, text = request(daemon, "POST", "/v2/queues/q/claims?limit=1",
                                   '{"ttl": 60, "grace": 60}', dict(HEADERS, Prefer="wait=5, details"))
            now = time.time()
            if status != 201:
                continue
            message = json.loads(text)["messages"][0]
            due = int(message["details"]["unique"].rsplit("/", 1)[1])
            late.append((now - due) * 1000)
            request(daemon, "DELETE", message["href"])
        late.sort()
        print("a due time to the response of a worker: median %.1f ms, most %.1f ms of %d"
              % (late[LATE // 2], late[-1], LATE))


def main():
    with tempfile.TemporaryDirectory() as folder:
        idle(folder, 0)
        idle(folder, SCHEDULES)
        lateness(folder)


if __name__ == "__main__":
    main()
