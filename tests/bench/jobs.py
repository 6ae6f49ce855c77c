#!/usr/bin/python3
"""Measures what failing jobs, the commands and the views cost (docs/performance.md, "Jobs").

    jobs.py FOLDER [PART...]

FOLDER has the programs claimd and claimd-client. Parts:

    work      jobs per second of `claimd work` with /bin/true, against a shell loop of beanstalkd,
              one at a time and eight in parallel. The two take turns
    keep      jobs per second of `claimd work --keep` with a Python worker, with --batch 1, 20 and
              100, against a process for each job and a Python worker of beanstalkd. All take turns
    redrive   messages that a redrive moves per second, in memory, with a journal and on Redis,
              and the requests that a client would need to move them itself
    top       processor time of a server with 10,000 queues, with and without `claimd top`

Nothing else should run on the machine.
"""

import json
import os
import pty
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from daemon import Daemon, environment  # noqa: E402
from redis_nodes import Cluster  # noqa: E402

FOLDER = sys.argv[1]
CLAIMD = os.path.join(FOLDER, "claimd")
HEADERS = {"Client-ID": "3381af92-2b9e-11e3-b191-71861300734c", "X-Project-ID": "p",
           "Content-Type": "application/json"}
JOBS, KEPT_JOBS, ROUNDS = 4000, 20000, 5
LETTERS = 20000
QUEUES, WINDOW_S, LOAD_EACH_S = 10000, 10, 500
QUIET = ("--log-level", "error")

# A worker of beanstalkd in the shell. It keeps its connection, so a job costs two short exchanges
# and the start of a process, as under `claimd work`.
LOOP = r"""
exec 3<>/dev/tcp/127.0.0.1/$1
while :; do
    printf 'reserve-with-timeout 0\r\n' >&3
    read -r word id size <&3
    [ "$word" = RESERVED ] || break
    read -r body <&3
    /bin/true <<< "$body"
    printf 'delete %s\r\n' "$id" >&3
    read -r word <&3
done
"""

# A worker of beanstalkd in Python, with the two exchanges for each job that its client libraries make.
PYTHON_LOOP = r"""
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
lines = connection.makefile("rb")
while True:
    connection.sendall(b"reserve-with-timeout 0\r\n")
    words = lines.readline().split()
    if words[0] != b"RESERVED":
        break
    body = lines.read(int(words[2]) + 2)[:-2]
    connection.sendall(b"delete " + words[1] + b"\r\n")
    assert lines.readline() == b"DELETED\r\n"
"""

KEPT_LOOP = """
import json, sys
for line in sys.stdin:
    job = json.loads(line)
    print(json.dumps({"id": job["id"], "result": "delete"}), flush=True)
"""


class Caller:
    def __init__(self, server):
        self.connection = server.connect()

    def __call__(self, method, path, body=None, **headers):
        self.connection.request(method, path, None if body is None else json.dumps(body),
                                {**HEADERS, **headers})
        response = self.connection.getresponse()
        text = response.read()
        assert response.status < 300, (response.status, text)
        return json.loads(text) if text else None


def post(call, queue, count):
    for _ in range(count // 20):
        call("POST", "/v2/queues/%s/messages" % queue,
             {"messages": [{"body": "job", "ttl": 86400}] * 20})


# ---------------------------------------------------------------------------- work


def run_claimd(jobs, *words):
    with Daemon(CLAIMD, *QUIET) as server:
        post(Caller(server), "q", jobs)
        start = time.monotonic()
        subprocess.run([CLAIMD, "work", "q", "--url", server.url, "--project", "p",
                        "--exit-when-empty", *words],
                       check=True, env=environment(), stderr=subprocess.DEVNULL)
        return jobs / (time.monotonic() - start)


def work_claimd(parallel):
    return run_claimd(JOBS, "--parallel", str(parallel), "--", "/bin/true")


def run_beanstalkd(jobs, parallel, *command):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(["beanstalkd", "-l", "127.0.0.1", "-p", str(port)])
    try:
        while True:
            try:
                connection = socket.create_connection(("127.0.0.1", port))
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        for _ in range(jobs):
            connection.sendall(b"put 0 0 600 3\r\njob\r\n")
            assert connection.recv(64).startswith(b"INSERTED")
        start = time.monotonic()
        loops = [subprocess.Popen([*command, str(port)]) for _ in range(parallel)]
        assert all(loop.wait() == 0 for loop in loops)
        seconds = time.monotonic() - start
        connection.sendall(b"stats\r\n")
        assert b"current-jobs-ready: 0\n" in connection.recv(4096)
        return jobs / seconds
    finally:
        server.terminate()
        server.wait()


def work_beanstalkd(parallel):
    return run_beanstalkd(JOBS, parallel, "bash", "-c", LOOP, "loop")


def work():
    for parallel in (1, 8):
        rates = {work_claimd: [], work_beanstalkd: []}
        for _ in range(ROUNDS):
            for side in rates:
                rates[side].append(side(parallel))
        ours, theirs = (statistics.median(rates[side]) for side in rates)
        print("work, %d at a time: claimd work %.0f jobs/s, shell loop of beanstalkd %.0f jobs/s, "
              "ratio %.2f" % (parallel, ours, theirs, ours / theirs), flush=True)


# ---------------------------------------------------------------------------- keep


def keep():
    def kept(batch):
        return run_claimd(KEPT_JOBS, "--keep", "--batch", str(batch), "--", sys.executable, "-c",
                          KEPT_LOOP)

    sides = {"a process for each job": lambda: work_claimd(1), "--batch 1": lambda: kept(1),
             "--batch 20": lambda: kept(20), "--batch 100": lambda: kept(100),
             "beanstalkd": lambda: run_beanstalkd(KEPT_JOBS, 1, sys.executable, "-c", PYTHON_LOOP)}
    rates = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, side in sides.items():
            rates[name].append(side())
    for name in ("--batch 1", "--batch 20", "--batch 100"):
        print("keep, %s: %.0f jobs/s" % (name, statistics.median(rates[name])), end="")
        for other in ("a process for each job", "beanstalkd"):
            ratios = [a / b for a, b in zip(rates[name], rates[other])]
            print("; %s: %.0f jobs/s, ratio %.1f (%.1f to %.1f)"
                  % (other, statistics.median(rates[other]), statistics.median(ratios),
                     min(ratios), max(ratios)), end="")
        print(flush=True)


# ---------------------------------------------------------------------------- redrive


def letters(call):
    """Fills "dead" with dead letters of "q"."""
    call("PUT", "/v2/queues/dead")
    call("PUT", "/v2/queues/q", {"_dead_letter_queue": "dead"})
    post(call, "q", LETTERS)
    for _ in range(LETTERS // 20):
        claim = call("POST", "/v2/queues/q/claims?limit=20", {"ttl": 600})["messages"]
        call("POST", "/claimd/queues/q/claims/%s/finish"
             % claim[0]["href"].split("claim_id=")[1],
             {"dead_letter": [{"id": message["id"], "reason": "cannot parse the body"}
                              for message in claim]})


def redrive_on(store, *options):
    with Daemon(CLAIMD, *QUIET, *options) as server:
        call = Caller(server)
        letters(call)
        start, requests, moved, remaining = time.monotonic(), 0, 0, 1
        while remaining > 0:
            response = call("POST", "/claimd/queues/dead/redrive", {})
            moved, remaining = moved + response["moved"], response["remaining"]
            requests += 1
        seconds = time.monotonic() - start
    assert moved == LETTERS, moved
    print("redrive, %s: %.0f messages/s in %d requests" % (store, moved / seconds, requests),
          flush=True)


def redrive():
    redrive_on("memory")
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        redrive_on("journal", "--journal", folder)
    with Cluster() as cluster:
        redrive_on("Redis", "--store", cluster.url(replicas=1))


# ---------------------------------------------------------------------------- top


def processor_s(pid):
    with open("/proc/%d/stat" % pid) as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(server, until):
    """Posts, claims and deletes at a fixed rate, over many queues."""
    call, n = Caller(server), 0
    while not until.is_set():
        start = time.monotonic()
        for _ in range(LOAD_EACH_S // 3 // 10):
            queue = "queue%05d" % (n * 7919 % QUEUES)
            n += 1
            post_one = {"messages": [{"body": "job", "ttl": 86400}]}
            call("POST", "/v2/queues/%s/messages" % queue, post_one)
            claim = call("POST", "/v2/queues/%s/claims?limit=1" % queue, {"ttl": 600})
            call("DELETE", claim["messages"][0]["href"])
        until.wait(max(0, 0.1 - (time.monotonic() - start)))


def watch(server):
    """Runs `claimd top` in a terminal for the length of a window. Returns its processor time."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm", LINES="40", COLUMNS="120", CLAIMD_URL=server.url)
        os.execv(CLAIMD, [CLAIMD, "top"])
    screen = 0
    end = time.monotonic() + WINDOW_S
    os.set_blocking(terminal, False)
    while time.monotonic() < end:
        try:
            screen += len(os.read(terminal, 65536))
        except BlockingIOError:
            time.sleep(0.02)
    os.write(terminal, b"q")
    time.sleep(0.5)
    os.close(terminal)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert os.waitpid(pid, 0)[1] == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert screen > 1000, screen
    return after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime


def top():
    with Daemon(CLAIMD, *QUIET) as server:
        call = Caller(server)
        for n in range(QUEUES):
            call("POST", "/v2/queues/queue%05d/messages" % n,
                 {"messages": [{"body": "job", "ttl": 86400}]})
        stop = threading.Event()
        thread = threading.Thread(target=load, args=(server, stop))
        thread.start()
        without, shown, own = [], [], []
        try:
            for _ in range(ROUNDS):
                before = processor_s(server.process.pid)
                time.sleep(WINDOW_S)
                without.append(processor_s(server.process.pid) - before)
                before = processor_s(server.process.pid)
                own.append(watch(server))
                shown.append(processor_s(server.process.pid) - before)
        finally:
            stop.set()
            thread.join()
        extra = statistics.median(b - a for a, b in zip(without, shown)) / WINDOW_S
        print("top, %d queues, %d requests/s: the server uses %.2f %% of a core without it, and "
              "%.2f %% more with it. claimd top itself uses %.2f %%"
              % (QUEUES, LOAD_EACH_S, 100 * statistics.median(without) / WINDOW_S, 100 * extra,
                 100 * statistics.median(own) / WINDOW_S), flush=True)


if __name__ == "__main__":
    assert shutil.which("beanstalkd"), "scripts/packages install bench cluster"
    for part in sys.argv[2:] or ("work", "keep", "redrive", "top"):
        {"work": work, "keep": keep, "redrive": redrive, "top": top}[part]()
