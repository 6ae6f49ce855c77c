#!/usr/bin/python3
"""The cost of viewers of the page for a server (docs/performance.md, "The page"). Run alone.

    tests/bench/viewers.py CLAIMD [QUEUES [VIEWERS [SECONDS]]]

Starts CLAIMD with so many queues, then runs a load of posts and claims, first without viewers and then
with them. Each viewer reads the stream of the first 50 queues. Prints the processor time of the server
as a share of one core, and its memory.
"""

import http.client
import json
import os
import re
import selectors
import socket
import subprocess
import sys
import threading
import time

HEADERS = {"Client-ID": "3381af92-2b9e-11e3-b191-71861300734c", "Content-Type": "application/json"}


def start(program):
    server = subprocess.Popen([program, "--listen=127.0.0.1:0", "--ui", "--log-level=error",
                               "--metrics-queues=1000"], stdout=subprocess.PIPE, text=True)
    return server, int(re.search(r":(\d+)$", server.stdout.readline().strip()).group(1))


def fetch(connection, method, path, body=None, project="p"):
    connection.request(method, path, body, {**HEADERS, "X-Project-ID": project})
    response = connection.getresponse()
    return response.status, response.read()


class Load(threading.Thread):
    """100 times a second: posts ten messages, claims ten and deletes them."""

    def __init__(self, port, queues):
        super().__init__()
        self.port, self.queues, self.going, self.done = port, queues, True, 0

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        post = json.dumps({"messages": [{"body": n} for n in range(10)]})
        due = time.monotonic()
        while self.going:
            queue = "/v2/queues/q%05d" % (self.done * 7 % self.queues)
            fetch(connection, "POST", queue + "/messages", post)
            _, text = fetch(connection, "POST", queue + "/claims?limit=10", '{"ttl": 60}')
            ids = [one["id"] for one in json.loads(text)["messages"]]
            fetch(connection, "DELETE", queue + "/messages?ids=" + ",".join(ids))
            self.done += 1
            due += 0.01
            time.sleep(max(0, due - time.monotonic()))


def usage(server):
    """Processor seconds, and resident kilobytes."""
    with open("/proc/%d/stat" % server.pid, encoding="ascii") as f:
        fields = f.read().rpartition(")")[2].split()
    with open("/proc/%d/status" % server.pid, encoding="ascii") as f:
        resident = next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), resident


def view(port, count, seconds):
    """Reads so many streams for a while. Returns the bytes read."""
    selector, read = selectors.DefaultSelector(), 0
    for _ in range(count):
        viewer = socket.create_connection(("127.0.0.1", port))
        viewer.sendall(("GET /claimd/queues?offset=0&limit=50 HTTP/1.1\r\nHost: localhost\r\n"
                        "Client-ID: %s\r\nAccept: text/event-stream\r\n\r\n" % HEADERS["Client-ID"]).encode())
        selector.register(viewer, selectors.EVENT_READ)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for key, _ in selector.select(0.1):
            read += len(key.fileobj.recv(1 << 20))
    return read


def main():
    program = sys.argv[1]
    queues, viewers, seconds = (int(word) for word in (sys.argv[2:] + ["10000", "100", "20"][len(sys.argv) - 2:]))
    server, port = start(program)
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for n in range(queues):
            fetch(connection, "POST", "/v2/queues/q%05d/messages" % n, '{"messages": [{"body": 1}]}')
        for load in (False, True):
            worker = Load(port, queues)
            if load:
                worker.start()
            for count in (0, 1, viewers):
                before, _ = usage(server)
                done = worker.done
                read = view(port, count, seconds) if count else time.sleep(seconds) or 0
                after, resident = usage(server)
                print("%-7s %4d viewers: %6.2f %% of a core, %6.1f MB resident, %5.1f kB/s for each viewer, "
                      "%.0f requests/s" % ("load" if load else "no load", count, 100 * (after - before) / seconds,
                                           resident / 1024, read / 1000 / seconds / max(count, 1),
                                           3 * (worker.done - done) / seconds))
            worker.going = False
            if load:
                worker.join()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
