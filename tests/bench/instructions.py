#!/usr/bin/python3
"""Instructions of a request, counted by callgrind.

    instructions.py [--functions N] [--ends] PROGRAM... [-- OPTION...]

A program is claimd or floor_mhd. claimd serves with one worker, without a log, and with the
options. A cycle posts, claims and deletes one message, then ten messages, on one connection. The
figures are the difference between a run of 600 cycles and one of 100: the start does not count. A
cycle has three requests. Bytes that memset() clears count as one instruction each. Needs valgrind.

    --ends          compare three ways to end a claim of ten: with ten deletes, with a bulk delete
                    and with a finish

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
SHORT, LONG = 100, 600
ROW = re.compile(r"^ *([\d,]+) \([^)]*\)  (.*)$")  # of callgrind_annotate


def fetch(connection, method, path, body=None):
    connection.request(method, path, None if body is None else json.dumps(body), HEADERS)
    response = connection.getresponse()
    text = response.read()
    assert response.status in (200, 201, 204), (response.status, text)
    return json.loads(text) if text else None


def end_singly(connection, messages, ids, claim_id):
    for message in messages:
        fetch(connection, "DELETE", message["href"])


def end_in_bulk(connection, messages, ids, claim_id):
    fetch(connection, "DELETE",
          "/v2/queues/q/messages?ids=%s&claim_ids=%s" % (",".join(ids), claim_id))


def end_by_finish(connection, messages, ids, claim_id):
    fetch(connection, "POST", "/claimd/queues/q/claims/%s/finish" % claim_id, {"delete": ids})


def cycle(connection, count, end):
    fetch(connection, "POST", "/v2/queues/q/messages",
          {"messages": [{"body": {"n": n}, "ttl": 300} for n in range(count)]})
    claim = fetch(connection, "POST", "/v2/queues/q/claims?limit=%d" % count, {"ttl": 60})
    end(connection, claim["messages"], [message["id"] for message in claim["messages"]],
        claim["messages"][0]["href"].split("claim_id=")[1])


# The name, the number of messages, the end of the claim and the number of requests.
CYCLES = (" 1 at a time", 1, end_singly, 3), ("10 at a time", 10, end_in_bulk, 3)
ENDS = (("10, deleted singly", 10, end_singly, 12), ("10, deleted in bulk", 10, end_in_bulk, 3),
        ("10, finished", 10, end_by_finish, 3))


def command(program, options, count):
    if os.path.basename(program) == "floor_mhd":
        return [program, "127.0.0.1:0", str(count)]
    return [program, "--listen", "127.0.0.1:0", "--workers", "1", "--log-level", "error", *options]


def run(program, options, count, end, cycles):
    """Instructions of a whole run, by function."""
    with tempfile.NamedTemporaryFile() as out:
        server = subprocess.Popen(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out.name,
             *command(program, options, count)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = int(server.stdout.readline().rpartition(":")[2])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for _ in range(cycles):
            cycle(connection, count, end)
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
    parser.add_argument("--ends", action="store_true")
    parser.add_argument("programs", nargs="+")
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    args, options = parser.parse_args(words[:at]), words[at + 1:]
    for program in args.programs:
        for name, count, end, requests in ENDS if args.ends else CYCLES:
            costs = run(program, options, count, end, LONG)
            costs.subtract(run(program, options, count, end, SHORT))
            total = costs.pop("PROGRAM TOTALS")
            cleared = sum(n for function, n in costs.items() if "memset" in function)
            each = (LONG - SHORT) * requests
            print("%s, %s: %d instructions a cycle. A request: %d, and %d cleared bytes"
                  % (program, name, total // (LONG - SHORT), (total - cleared) // each,
                     cleared // each), flush=True)
            for function, n in costs.most_common(args.functions):
                print("    %6d  %s" % (n // each, function))


if __name__ == "__main__":
    main()
