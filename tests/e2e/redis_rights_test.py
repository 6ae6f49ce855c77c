#!/usr/bin/python3
"""The rights that docs/security.md gives claimd on a Redis suffice, and all of them are needed.
Redis never gets bodies of encrypted queues as plain text.

    redis_rights_test.py CLAIMD

Needs redis-server.
"""

import concurrent.futures
import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)

from harness import CLAIMD, PATIENCE_S  # noqa: E402
from on_redis import SECRET, RedisCase  # noqa: E402
from redis_nodes import Cluster, RedisError  # noqa: E402

PAGE = os.path.join(HERE, "..", "..", "docs", "security.md")
SCRIPTS = os.path.join(HERE, "..", "..", "src", "redis", "scripts")
WAIT = ("Prefer: wait=20",)
SECRET_BODY = "a body that must stay secret"
SPY = """#!lua name=spy
redis.register_function('spy', function() return redis.call('GET', 'other') end)"""


def rights():
    """The words of the command in the page."""
    with open(PAGE, encoding="utf-8") as f:
        command, = re.findall(r"^    (ACL SETUSER claimd .*\n(?:     +.*\n)*)", f.read(), re.M)
    return [">" + SECRET if word == ">PASSWORD" else word for word in command.split()]


class Rights(RedisCase):
    """A user of Redis who may do what docs/security.md says, and nothing else."""

    def setUp(self):
        super().setUp()
        self.redis = self.node()
        self.redis.say(*rights())
        self.url = "redis://claimd:@" + self.redis.address()

    def serve_as_it(self, *options):
        return self.serve(self.url, "--store-password-file", self.file("password", SECRET),
                          *options)

    def refusals(self):
        """The commands that Redis denied."""
        log = [dict(zip(entry[::2], entry[1::2])) for entry in self.redis.say("ACL", "LOG")]
        return [(entry["reason"], entry["object"]) for entry in log]

    def test_they_are_enough_for_everything(self):
        one, other = self.serve_as_it(), self.serve_as_it("--notify-allow", "127.0.0.0/8")
        one.fetch("PUT", "q", {"_max_claim_count": 1, "_dead_letter_queue": "dead"}, status=201)
        one.fetch("PATCH", "q", [{"op": "add", "path": "/metadata/x", "value": 1}],
                  headers=("Content-Type: application/openstack-messaging-v2.0-json-patch",))
        ids = one.post("q", *range(8))
        one.post("q", "late", delay=900)
        place, _ = one.claim("q", 2)
        other.fetch("GET", place)
        other.fetch("PATCH", place, {"ttl": 500, "grace": 60}, status=204)
        other.fetch("DELETE", place, status=204)
        self.assertEqual([m["body"] for m in one.claim("q")[1]], [2])
        self.assertEqual(one.bodies("dead"), [0, 1])
        one.fetch("DELETE", "q/messages/" + ids[3], status=204)
        one.fetch("DELETE", "q/messages?ids=" + ids[4], status=204)
        one.fetch("DELETE", "q/messages?pop=1")
        for target in ("", "?detailed=true&with_count=true", "q", "q/stats", "q/messages/" + ids[6],
                       "q/messages?ids=" + ids[6], "q/messages?echo=true&include_delayed=true"):
            one.fetch("GET", target)
        self.subscribe(other)
        self.wait(one, other)
        whole = self.claimd("dump", "--url", one.server.url)
        self.claimd("load", "--existing", "replace", "--url", other.server.url, given=whole)
        self.assertEqual(one.server.fetch("GET", "/metrics").status, 200)
        one.fetch("POST", "q/purge", {"resource_types": ["messages"]}, status=204)
        for name in one.names():
            one.fetch("DELETE", name, status=204)
        self.assertEqual(one.health(), 200)
        self.assertEqual(self.refusals(), [])

    def subscribe(self, api):
        """A user who is not there  is to be named."""
        made = api.fetch("POST", "s/subscriptions", {"subscriber": "http://127.0.0.1:1/"}, status=201)
        mine = "s/subscriptions/" + made["subscription_id"]
        api.fetch("PATCH", mine, {"ttl": 900}, status=204)
        api.fetch("PUT", mine + "/confirm", {"confirmed": True}, status=204)
        api.post("s", "news")
        self.eventually(lambda: b'"failed":0' not in
                        api.server.fetch("GET", "/claimd/queues/s/subscriptions").body, "it is tried")
        api.fetch("GET", mine)
        api.fetch("DELETE", mine, status=204)

    def wait(self, one, other):
        """A post at the other server wakes a waiter here."""
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waits = pool.submit(one.claim, "w", headers=WAIT)
            self.eventually(lambda: self.redis.say("PUBSUB", "SHARDCHANNELS"), "it listens")
            other.post("w", "news")
            self.assertEqual(waits.result()[1][0]["body"], "news")

    def claimd(self, *words, given=None):
        return subprocess.run([CLAIMD, *words], input=given, capture_output=True, text=True,
                              check=True, timeout=PATIENCE_S).stdout

    def test_they_name_each_command_of_the_scripts(self):
        documented = {word[1:].upper() for word in rights() if word[0] == "+"}
        used = set()
        for folder, _, files in os.walk(SCRIPTS):
            for name in files:
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    used |= set(re.findall(r"'([A-Z]{3,})'", f.read()))
        words = {"LIMIT", "WITHSCORES", "WITHVALUES", "COUNT"}  # these are none
        self.assertEqual(used - documented - words, set())
        self.assertGreater(len(used - words), 15)
        self.assertEqual(documented - used, {
            "FCALL", "FUNCTION|LOAD", "WAIT", "ASKING", "PING", "INFO", "CONFIG|GET",
            "CLUSTER|SLOTS", "CLUSTER|SHARDS", "CLUSTER|INFO", "SSUBSCRIBE", "SUNSUBSCRIBE"})

    def test_it_may_nothing_else(self):
        with self.redis.connect() as speaker:
            speaker.say("AUTH", "claimd", SECRET)
            speaker.say("FUNCTION", "LOAD", SPY)
            for words in (("GET", "other"), ("HGET", "claimd:2:x", "y"), ("KEYS", "*"),
                          ("FLUSHALL",), ("CONFIG", "SET", "appendonly", "no"), ("SHUTDOWN",),
                          ("REPLICAOF", "127.0.0.1", "1"), ("MONITOR",), ("ACL", "LIST"),
                          ("EVAL", "return redis.call('GET', 'other')", 0),
                          ("FUNCTION", "FLUSH"), ("FCALL", "spy", 0),
                          ("SSUBSCRIBE", "other")):
                with self.subTest(words=words), self.assertRaisesRegex(
                        RedisError, "NOPERM|can.t access|ACL failure in script"):
                    speaker.say(*words)

    def test_bodies_of_an_encrypted_queue_are_nowhere_in_it(self):
        api = self.serve_as_it("--encryption-keys", self.file("keys", "%064x\n" % 0xc1a13d))
        api.fetch("PUT", "q", {"_enable_encrypt_messages": True}, status=201)
        api.post("q", SECRET_BODY)
        api.post("open", "in clear")
        self.assertEqual(api.bodies("q"), [SECRET_BODY])
        kept = str([self.redis.say("HGETALL", "claimd:1:{p/%s}:m" % name)
                    for name in ("q", "open")])
        self.assertNotIn(SECRET_BODY, kept)
        self.assertIn("in clear", kept)


class Shards(RedisCase):
    """On each node of a cluster."""

    def test_they_are_enough_there(self):
        cluster = Cluster(primaries=3, replicas_each=1)
        self.addCleanup(cluster.stop)
        for node in cluster.nodes:
            node.say(*rights())
        url = cluster.url().replace("redis://", "redis://claimd:@")
        api = self.serve(url, "--store-password-file", self.file("password", SECRET))
        for i in range(8):
            self.assert_well(api, "q%d" % i)
        slot = cluster.nodes[0].say("CLUSTER", "KEYSLOT", "{p/q0}")
        old = cluster.primary_of(slot)
        cluster.move_slot(slot, next(node for node in cluster.primaries() if node is not old))
        self.assert_well(api, "q0")
        if cluster.can_migrate():
            cluster.migrate_slot(slot, old)
            self.assert_well(api, "q0")
        for node in cluster.nodes:
            self.assertEqual(node.say("ACL", "LOG"), [])


if __name__ == "__main__":
    unittest.main()
