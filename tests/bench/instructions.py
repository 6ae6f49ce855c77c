#!/usr/bin/python3
"""Instructions of a cycle of post, claim and delete, counted by callgrind.

    instructions.py CLAIMD... [-- OPTION...]

Each program serves with one worker, without a log, and the options. A cycle posts, claims and
deletes one message, then ten messages, on one connection. The figures are the difference between
a run of 600 cycles and one of 100, divided by 500: the start does not count. Needs valgrind.
"""

import http.client
import json
import re
import subprocess
import sys
import tempfile

HEADERS = {"Client-ID": "3381af92-2b9e-11e3-b191-71861300734c", "X-Project-ID": "p",
           "Content-Type": "application/json"}


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


def run(program, options, count, cycles):
    """Instructions of a whole run."""
    with tempfile.NamedTemporaryFile() as out:
        server = subprocess.Popen(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out.name, program,
             "--listen", "127.0.0.1:0", "--workers", "1", "--log-level", "error", *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        host, port = server.stdout.readline().split("http://")[1].strip().split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        for _ in range(cycles):
            cycle(connection, count)
        connection.close()
        server.terminate()
        return int(re.search(r"Collected : (\d+)", server.communicate()[1]).group(1))


def main():
    words = sys.argv[1:]
    options = []
    if "--" in words:
        at = words.index("--")
        words, options = words[:at], words[at + 1:]
    if not words:
        sys.exit(__doc__)
    for program in words:
        for count in (1, 10):
            whole, start = (run(program, options, count, cycles) for cycles in (600, 100))
            print("%s: %d instructions for a cycle of %d" % (program, (whole - start) // 500, count),
                  flush=True)


if __name__ == "__main__":
    main()
