#!/usr/bin/python3
"""Write the folder of a release: a small journal, a dump, and everything that a client reads of them.

    tests/e2e/releases/make.py BUILD-FOLDER VERSION

For example: tests/e2e/releases/make.py build/release 0.2.0

- journal/        with most types of records. Zeros at the ends of its segments are cut off
- dump.jsonl      `claimd dump` of a server on that journal
- expected.json   requests to that server, with their responses
- key             of the encrypted queue

Run it once for a release, with the programs of that release, and never change the folder again:
e2e/releases proves that each later claimd reads it. The clock is that of testd, so no time
passes, and lifetimes are exact. Checkpoints need a larger journal: tests/unit/journal/recorded has one.
"""

import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))

from daemon import PATIENCE_S, Daemon, environment  # noqa: E402

CLIENT = "3381af92-2b9e-11e3-b191-71861300734c"
OTHER_CLIENT = "11111111-2b9e-11e3-b191-71861300734c"
KEY = "0123456789abcdef" * 4 + "\n"
BLOCK = 4096
DAY_S = 86400
START_MS = 1790000000000  # when the first server starts
NOW_MS = START_MS + 3600000  # when the journal ends, and when the requests are sent
# Members that depend on the attempts to notify subscribers, which begin with the server, and on its samples.
VOLATILE = {"rates", "given_up", "behind", "failures", "failed", "delivering", "next_try"}


class Server(Daemon):
    """A server with the key of the folder. If it is a testd, its clock stands at NOW_MS."""

    def __init__(self, program, folder, *options, now_ms=NOW_MS):
        super().__init__(program, "--journal-downtime", "0", "--idempotency-window", str(DAY_S),
                         "--encryption-keys", os.path.join(folder, "key"),
                         "--default-message-ttl", "3600",  # as 0.2.0, because the responses show it
                         *options,
                         env=environment(TESTD_NOW_MS=str(now_ms)))

    def request(self, method, target, body=None, project="shop", client=CLIENT, **headers):
        connection = self.connect()
        try:
            connection.request(method, target, None if body is None else json.dumps(body),
                               {"Client-ID": client, "X-Project-ID": project,
                                "Content-Type": "application/json",
                                **{name.replace("_", "-"): value for name, value in headers.items()}})
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        return response.status, json.loads(text) if text else None, dict(response.getheaders())

    def fetch(self, *words, **more):
        """The document of a response of success."""
        status, document, _ = self.request(*words, **more)
        if status >= 300:
            raise RuntimeError("%r: %d %r" % (words, status, document))
        return document

    def post(self, queue, *bodies, ttl=14 * DAY_S, delay=None, version="v2", **more):
        messages = [{"body": body, "ttl": ttl, **({} if delay is None else {"delay": delay})}
                    for body in bodies]
        document = self.fetch("POST", "/%s/queues/%s/messages" % (version, queue),
                              messages if version == "v1" else {"messages": messages}, **more)
        return [path.rsplit("/", 1)[1] for path in document["resources"]]

    def claim(self, queue, limit=1, ttl=12 * 3600, grace=600, **more):
        """The id of a claim, and those of its messages."""
        claimed = self.fetch("POST", "/v2/queues/%s/claims?limit=%d" % (queue, limit),
                             {"ttl": ttl, "grace": grace}, **more)["messages"]
        return claimed[0]["href"].rsplit("=", 1)[1], [one["href"].split("/")[-1].split("?")[0] for one in claimed]

    def finish(self, queue, claim, **body):
        return self.fetch("POST", "/claimd/queues/%s/claims/%s/finish" % (queue, claim), body)


def protect(folder):
    """git does not keep the mode of the key, which claimd checks."""
    os.chmod(os.path.join(folder, "key"), 0o600)


class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
        self.server.notified.set()

    def log_message(self, *_):
        pass


def write_queues(server):
    server.fetch("PUT", "/v2/queues/jobs", {
        "_max_claim_count": 2, "_dead_letter_queue": "jobs-dead", "_dead_letter_queue_messages_ttl": 10 * DAY_S,
        "_default_message_ttl": 7 * DAY_S, "_default_claim_ttl": 3600, "_default_claim_grace": 120,
        "_max_messages_post_size": 100000, "team": "blue", "nested": {"list": [1, 2.5, None, True]}})
    server.post("jobs", {"n": 0}, "text", "Grüße, 世界 \U0001f40e\0", 1234567890123456789, [], None)
    server.advance(1234)
    server.post("jobs", {"n": 6}, {"n": 7}, {"n": 8}, {"large": "x" * 500}, Idempotency_Key="a-key-of-a-post")
    server.post("jobs", {"delayed": True}, delay=900)
    server.post("jobs", {"of": "another client"}, client=OTHER_CLIENT)
    claim, ids = server.claim("jobs", limit=6)
    server.finish("jobs", claim, delete=ids[:1], dead_letter=[{"id": ids[1], "reason": "bad JSON"}],
                  release=[{"id": ids[2], "delay": 40000, "reason": "kein Anschluß"}, ids[3]])
    server.advance(60000)
    for _ in range(2):  # the second release is the last attempt
        claim, ids = server.claim("jobs")
        server.finish("jobs", claim, release=[{"id": ids[0], "reason": "it failed again"}])
    claim, ids = server.claim("jobs", limit=2, client=OTHER_CLIENT, Idempotency_Key="a-key-of-a-claim")
    server.advance(1000)
    server.fetch("PATCH", "/v2/queues/jobs/claims/" + claim, {"ttl": 40000, "grace": 500})
    server.fetch("DELETE", "/v2/queues/jobs/messages/%s?claim_id=%s" % (ids[0], claim))
    server.fetch("PATCH", "/v2/queues/jobs", [{"op": "replace", "path": "/metadata/team", "value": "red"}],
                 Content_Type="application/openstack-messaging-v2.0-json-patch")

    server.fetch("PUT", "/v2/queues/secret", {"_enable_encrypt_messages": True})
    server.post("secret", {"password": "open sesame"}, "second")
    server.claim("secret")
    server.fetch("PUT", "/v2/queues/paused", {})
    server.post("paused", "waits")
    server.fetch("POST", "/claimd/queues/paused/pause", {"claims": True, "posts": True})
    server.fetch("PUT", "/v2/queues/memory", {"_persistence": "memory"})
    server.post("memory", "lost at a restart")
    server.post("gone", "with its queue")
    server.fetch("DELETE", "/v2/queues/gone")
    server.post("purged", 1, 2)
    server.fetch("POST", "/v2/queues/purged/purge", {"resource_types": ["messages"]})
    server.post("popped", 1, 2, 3)
    server.fetch("DELETE", "/v2/queues/popped/messages?pop=2", Idempotency_Key="a-key-of-a-pop")
    server.post("jobs", "of another project", project="other")


def write_old_versions(server):
    server.fetch("PUT", "/v1/queues/old", {})
    server.fetch("PUT", "/v1/queues/old/metadata", {"since": "version 1"})
    server.post("old", {"v": 1}, version="v1")
    server.fetch("PUT", "/v1.1/queues/older", {"since": "version 1.1"})
    server.post("older", {"v": 1.1}, version="v1.1")


def write_subscriptions(server, hook):
    address = "http://127.0.0.1:%d/" % hook.server_port

    def subscribe(where, name, **more):
        return server.fetch("POST", "/v2/%s/subscriptions" % where,
                            {"subscriber": address + name, "ttl": 30 * DAY_S, **more})["subscription_id"]

    subscribe("queues/hooks", "first", options={"_retry_policy": {"retries_with_no_delay": 1}, "mine": [1]})
    server.fetch("DELETE", "/v2/queues/hooks/subscriptions/" + subscribe("queues/hooks", "gone"))
    server.fetch("PUT", "/v2/topics/news", {"about": "releases"})
    confirmed = subscribe("topics/news", "confirmed")
    server.fetch("PUT", "/v2/topics/news/subscriptions/%s/confirm" % confirmed, {"confirmed": True})
    server.post("hooks", "delivered")
    if not hook.notified.wait(PATIENCE_S):
        raise RuntimeError("no notification came")
    while server.fetch("GET", "/claimd/queues/hooks/subscriptions")["subscriptions"][0]["delivered"] == 0:
        pass
    hook.shutdown()
    hook.server_close()
    server.post("hooks", "not delivered")
    server.fetch("POST", "/v2/topics/news/messages", {"messages": [{"body": "0.2.0", "ttl": 14 * DAY_S}]})


def write_journal(build, folder):
    testd = os.path.join(build, "tests", "testd")
    options = ("--journal", os.path.join(folder, "journal"), "--notify-allow", "127.0.0.0/8")
    with http.server.HTTPServer(("127.0.0.1", 0), Hook) as hook:
        hook.notified = threading.Event()
        threading.Thread(target=hook.serve_forever, daemon=True).start()
        with Server(testd, folder, *options, now_ms=START_MS) as server:
            write_queues(server)
            write_old_versions(server)
        with Server(testd, folder, *options, now_ms=NOW_MS - 1000) as server:  # a second segment
            server.fetch("POST", "/claimd/queues/jobs-dead/redrive", {"limit": 1})
            server.post("jobs", {"still": "delayed"}, delay=900)
            claimd(build, "load", "--url", server.url, input="".join(json.dumps(line) + "\n" for line in (
                {"claimd": "dump", "version": 1},
                {"project": "shop", "queue": "loaded", "metadata": {"from": "a dump"}},
                {"project": "shop", "queue": "loaded", "message": {
                    "body": 1, "ttl": 14 * DAY_S, "age": 5, "claim": {"id": "c1", "ttl": 40000, "age": 2}}},
                {"project": "shop", "queue": "loaded", "message": {"body": 2, "ttl": 14 * DAY_S}},
                {"end": 4})))
            write_subscriptions(server, hook)
            server.advance(1000)
            server.process.kill()  # without a mark that it is closed
            server.wait()


def claimd(build, *words, **more):
    return subprocess.run([os.path.join(build, "claimd"), *words], text=True, stdout=subprocess.PIPE, check=True,
                          timeout=PATIENCE_S, env=environment(), **more).stdout


def without_volatile(document):
    if isinstance(document, dict):
        return {name: without_volatile(value) for name, value in document.items() if name not in VOLATILE}
    return [without_volatile(one) for one in document] if isinstance(document, list) else document


def exchange(server, method, target, body=None, **more):
    status, document, headers = server.request(method, target, body, **more)
    return {"method": method, "target": target, **({} if body is None else {"body": body}), **more,
            "status": status, "response": without_volatile(document), **({"replayed": True} if "Idempotent-Replay" in headers else {})}


def exchanges(server):
    """Requests that show all queues. They change nothing."""
    details = {"Prefer": "details"}
    yield exchange(server, "GET", "/claimd/queues?sort=name&limit=1000")
    for kind in ("queues", "topics"):
        for item in server.fetch("GET", "/v2/%s?limit=20" % kind)[kind]:
            path = "/%s/%s" % (kind, item["name"])
            yield exchange(server, "GET", "/v2" + path)
            yield exchange(server, "GET", "/v2%s/stats" % path)
            if server.fetch("GET", "/v2%s/subscriptions" % path)["subscriptions"]:
                yield exchange(server, "GET", "/v2%s/subscriptions" % path)
                yield exchange(server, "GET", "/claimd%s/subscriptions" % path)
            yield exchange(server, "GET", "/v2%s/messages?echo=true&include_claimed=true&include_delayed=true&"
                           "limit=20" % path, **details)
            if kind == "queues":
                yield exchange(server, "GET", "/claimd%s/messages" % path)
                for claim in server.fetch("GET", "/claimd%s/claims" % path)["claims"]:
                    yield exchange(server, "GET", "/v2%s/claims/%s" % (path, claim["id"]))
                yield exchange(server, "GET", "/claimd%s/claims" % path)
    for path in ("v2/queues/jobs", "claimd/queues/jobs"):
        yield exchange(server, "GET", "/%s/messages" % path, project="other", client=OTHER_CLIENT)
    yield exchange(server, "GET", "/v1/queues/old/metadata")
    yield exchange(server, "GET", "/v1/queues/old/messages?echo=true")
    yield exchange(server, "GET", "/v1.1/queues/older/messages?echo=true")
    # The results of these keys. Another body than the first one would be 422.
    yield exchange(server, "DELETE", "/v2/queues/popped/messages?pop=2", Idempotency_Key="a-key-of-a-pop")
    yield exchange(server, "POST", "/v2/queues/jobs/claims?limit=2", {"ttl": 43200, "grace": 600},
                   client=OTHER_CLIENT, Idempotency_Key="a-key-of-a-claim")


def cut_zeros(folder):
    """As claimd itself does at a start, before it begins another segment."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.startswith("spare.") or name == "lock":
            os.remove(path)
        elif name.endswith(".log"):
            with open(path, "r+b") as f:
                f.truncate(max(-len(f.read().rstrip(b"\0")) // BLOCK * -BLOCK, BLOCK))


def main(build, version):
    folder = os.path.join(HERE, version)
    os.mkdir(folder)
    with open(os.path.join(folder, "key"), "w", encoding="ascii") as f:
        f.write(KEY)
    protect(folder)
    write_journal(build, folder)
    cut_zeros(os.path.join(folder, "journal"))
    with tempfile.TemporaryDirectory() as scratch:
        journal = shutil.copytree(os.path.join(folder, "journal"), os.path.join(scratch, "journal"))
        with Server(os.path.join(build, "tests", "testd"), folder, "--journal", journal) as server:
            with open(os.path.join(folder, "dump.jsonl"), "w", encoding="utf-8") as f:
                f.write(claimd(build, "dump", "--url", server.url))
            with open(os.path.join(folder, "expected.json"), "w", encoding="utf-8") as f:
                f.write("[\n" + ",\n".join(json.dumps(one) for one in exchanges(server)) + "\n]\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
