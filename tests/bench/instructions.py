#!/usr/bin/python3
"""Instructions of a request, counted by callgrind.

    instructions.py [--functions N] PROGRAM... [-- OPTION...]

A program is claimd or floor_mhd. claimd serves with one worker, without a log, and with the
options. A cycle posts, claims and deletes one message, then ten messages, on one connection. The
figures are the difference between a run of 600 cycles and one of 100: the start does not count. A
cycle has three requests. Bytes that memset() clears count as one instruction each. Needs valgrind.

    --functions N   print the N functions with most instructions of a request, without those
                    that they call
"""

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter

HEADERS = {"Client-ID": "3381af92-2b9e-11e3-b191-71861300734c", "X-Project-ID": "p",
           "Content-Type": "application/json"}
SHORT, LONG, REQUESTS = 100, 600, 3
ROW = re.compile(r"^ *([\d,]+) \([^)]*\)  (.*)$")  # of callgrind_annotate


def ask(connection, method, path, body=None):
    connection.request(method, path, None if body is None else json.dumps(body), HEADERS)
    response = connection.getresponse()
    text = response.read()
    assert response.status in (201, 204), (response.status, text)
    return json.loads(text) if text else None


def cycle(connection, count):
    ask(connection, "POST", "/v2/queues/q/messages",
        {"messages": [{"body": {"n": n}, "ttl": 300} for n in range(count)]})
    claim = ask(connection, "POST", "/v2/queues/q/claims?limit=%d" % count, {"ttl": 60})
    if count == 1:
        ask(connection, "DELETE", claim["messages"][0]["href"])
        return
    ids = ",".join(message["id"] for message in claim["messages"])
    claim_id = claim["messages"][0]["href"].split("claim_id=")[1]
    ask(connection, "DELETE", "/v2/queues/q/messages?ids=%s&claim_ids=%s" % (ids, claim_id))


def command(program, options, count):
    if os.path.basename(program) == "floor_mhd":
        return [program, "127.0.0.1:0", str(count)]
    return [program, "--listen", "127.0.0.1:0", "--workers", "1", "--log-level", "error", *options]


def run(program, options, count, cycles):
    """Instructions of a whole run, by function."""
    with tempfile.NamedTemporaryFile() as out:
        server = subprocess.Popen(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out.name,
             *command(program, options, count)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = int(server.stdout.readline().rpartition(":")[2])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for _ in range(cycles):
            cycle(connection, count)
        connection.close()
        server.terminate()
        server.wait()
        table = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", out.name],
                               check=True, capture_output=True, text=True).stdout
    rows = filter(None, map(ROW.match, table.splitlines()))
    return Counter({row[2]: int(row[1].replace(",", "")) for row in rows})


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--functions", type=int, default=0)
    parser.add_argument("programs", nargs="+")
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    args, options = parser.parse_args(words[:at]), words[at + 1:]
    for program in args.programs:
        for count in (1, 10):
            costs = run(program, options, count, LONG)
            costs.subtract(run(program, options, count, SHORT))
            total = costs.pop("PROGRAM TOTALS")
            cleared = sum(n for name, n in costs.items() if "memset" in name)
            each = (LONG - SHORT) * REQUESTS
            print("%s, %2d at a time: %d instructions a cycle. A request: %d, and %d cleared bytes"
                  % (program, count, total // (LONG - SHORT), (total - cleared) // each,
                     cleared // each), flush=True)
            for name, n in costs.most_common(args.functions):
                print("    %6d  %s" % (n // each, name))


if __name__ == "__main__":
    main()
