#!/usr/bin/python3
"""The API is what the transcripts say.

    contract_test.py TESTD [--redis] [PART-OF-A-FILE-NAME...]

Every transcript below transcripts/ is replayed against a testd (the daemon with a manual
clock, so that lifetimes pass in no time) with the options it requires.

With --redis the messages are kept by a redis-server, a new one for each kind of server; its
time is the server's then.
"""

import contextlib
import glob
import hashlib
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../support"))

import patterns  # noqa: E402
import replay  # noqa: E402
from daemon import Daemon  # noqa: E402
from redis_nodes import Node  # noqa: E402

# As in Zaqar, a dead letter keeps its TTL, a delay is at most 15 minutes, requests need their headers,
# and a message lives for an hour (docs/differences.md).
ZAQAR = ["--dead-letter-ttl=0", "--max-message-delay=900", "--require-headers=true",
         "--default-message-ttl=3600"]

# A requirement of a transcript -> the options of a server that has it.
OPTIONS = {
    "": ["--admin-mode=true"],
    "checksum": ["--admin-mode=true", "--enable-checksum=true"],
    "claim-limit-100": ["--admin-mode=true", "--max-messages-per-claim-or-pop=100"],
    "client-id-off": ["--admin-mode=true", "--client-id-uuid-safe=off"],
    "notifications": ["--admin-mode=true", "--notify-allow=127.0.0.0/8"],
    "notifications+confirmation": ["--admin-mode=true", "--notify-allow=127.0.0.0/8",
                                   "--require-confirmation=true"],
    "policy": ["--auth=tokens"],
    "topics": ["--admin-mode=true"],
    "restricted": ["--admin-mode=false", "--enable-v1=false", "--enable-v1-1=false"],
    "strict-delete": ["--admin-mode=true", "--message-delete-with-claim-id=true"],
}


def load_all(parts):
    """{requirement: {file name: document}} of all transcripts, or of the chosen ones."""
    groups = {}
    for path in sorted(glob.glob(os.path.join(HERE, "transcripts", "*.json"))):
        name = os.path.basename(path)
        if not parts or any(part in name for part in parts):
            document = replay.load(path)
            requirement = "+".join(document.get("requires", []))
            groups.setdefault(requirement, {})[name] = document
    return groups


@contextlib.contextmanager
def key_file(text):
    """A file with this key, that others cannot read."""
    with tempfile.NamedTemporaryFile("w", encoding="ascii", prefix="claimd-keys-") as f:
        f.write(text + "\n")
        f.flush()
        yield f.name


@contextlib.contextmanager
def store_options(on_redis):
    if not on_redis:
        yield []
        return
    with Node(socket=True) as node:
        yield ["--store", node.url()]


TOKEN = "word"  # of the only caller that a server with a policy has


@contextlib.contextmanager
def policy_files(requirement):
    """The options and headers of a server that forbids what policy.v2.json says."""
    if requirement != "policy":
        yield [], {}
        return
    with tempfile.TemporaryDirectory(prefix="claimd-policy-") as folder:
        tokens, policy = os.path.join(folder, "tokens"), os.path.join(folder, "policy")
        digest = hashlib.sha256(TOKEN.encode()).hexdigest()
        for path, text in ((tokens, "all admin * never sha256:%s\n" % digest),
                           (policy, '{"queues:purge": "!"}')):
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w",
                      encoding="ascii") as f:
                f.write(text)
        yield ["--tokens", tokens, "--policy", policy], {"X-Auth-Token": TOKEN}


def main():
    program, parts = sys.argv[1], sys.argv[2:]
    on_redis = "--redis" in parts
    parts = [part for part in parts if part != "--redis"]
    groups = load_all(parts)
    files, steps, failures = 0, 0, []
    for requirement, documents in groups.items():
        if requirement not in OPTIONS:
            failures += ["%s: the tests cannot provide '%s'" % (name, requirement)
                         for name in documents]
            continue
        with key_file(patterns.KEY) as signing, key_file(2 * patterns.KEY) as encryption, \
                policy_files(requirement) as (policy, headers), \
                store_options(on_redis) as store, \
                Daemon(program, *ZAQAR, *OPTIONS[requirement], *policy, *store, "--signing-keys",
                       signing, "--encryption-keys", encryption) as server:
            for name, document in documents.items():
                document["headers"] = {**document.get("headers", {}), **headers}
                client = replay.Client(server.host, server.port)
                matched, wrong = replay.run_transcript(
                    document, client, lambda seconds: server.advance(seconds * 1000),
                    lambda: server.advance(0) / 1000)
                client.close()
                files, steps = files + 1, steps + matched
                failures += ["%s %s" % (name, one) for one in wrong]
    for failure in failures:
        print("FAIL %s" % failure)
    print("contract: %d files, %d steps matched, %d failures" % (files, steps, len(failures)))
    return 1 if failures or steps == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
