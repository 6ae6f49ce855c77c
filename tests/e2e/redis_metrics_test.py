#!/usr/bin/python3
"""/metrics of a server whose store is on Redis: the table in docs/scale-out.md is true, and the
counters count what happened."""

import os
import re
import unittest

from harness import HERE, Server, eventually
from metrics_test import families, metrics, no_worker_story, value
from redis_nodes import Cluster, Node

DOCUMENT = os.path.join(HERE, "..", "..", "docs", "scale-out.md")


class Metrics(unittest.TestCase):
    def test_the_table_in_the_documents_is_true(self):
        with open(DOCUMENT, encoding="utf-8") as file:
            rows = re.findall(r"^\| `(claimd_redis_[a-z_]+)` \| (\w+) \| ([^|]*) \|", file.read(),
                              re.M)
        with Node(socket=True) as node, Server("--store", node.url()) as server:
            text = server.fetch("GET", "/metrics").body.decode("utf-8")
        real = []
        for name, help_text in re.findall(r"^# HELP (claimd_redis_\S+) (.*)$", text, re.M):
            kind, = re.findall(r"^# TYPE %s (\w+)$" % name, text, re.M)
            real.append((name, kind, help_text))
        self.maxDiff = None
        self.assertEqual([(name, kind, text.strip()) for name, kind, text in rows], real)

    def test_there_are_none_without_redis(self):
        with Server() as server:
            self.assertFalse([name for name in families(metrics(server)) if "redis" in name])

    def test_the_alert_for_queues_without_a_worker_sees_all_claimd(self):
        with Node(socket=True) as node, Server("--store", node.url()) as first, \
                Server("--store", node.url()) as second:
            no_worker_story(self, [first, second])

    def test_they_say_what_happened(self):
        with Cluster(primaries=3, replicas_each=1) as cluster, \
                Server("--store", cluster.url(replicas=1)) as server:
            for i in range(12):  # in several slots
                response = server.fetch("POST", "/v2/queues/q%d/messages" % i,
                                        b'{"messages":[{"body":1},{"body":2}]}')
                self.assertEqual(response.status, 201)
            response = server.fetch("POST", "/v2/queues/q0/claims", b'{"ttl":60,"grace":60}')
            self.assertEqual(response.status, 201)
            says = lambda name, **labels: value(server, name, **labels)  # noqa: E731
            self.assertEqual(says("claimd_messages_posted_total"), 24)
            eventually(lambda: says("claimd_queues") == 12)  # it is counted once a second at most
            self.assertEqual(says("claimd_queues_made_total"), 12)
            self.assertEqual(says("claimd_queue_messages", project="p", queue="q0",
                                  state="claimed"), 2)
            self.assertEqual(says("claimd_redis_primaries"), 3)
            # Redis reports a replica once something was written to its primary.
            eventually(lambda: says("claimd_redis_replicas_least") == 1)
            self.assertEqual(says("claimd_redis_slots_without_owner"), 0)
            self.assertEqual(says("claimd_redis_unconfirmed_total"), 0)
            self.assertGreater(says("claimd_redis_confirmation_seconds_count"), 12)
            self.assertLess(says("claimd_redis_map_age_seconds"), 60)
            replica = cluster.replicas_of(cluster.primary_of("{p/q0}"))[0]
            replica.stall()
            try:
                response = server.fetch("POST", "/v2/queues/q0/messages",
                                        b'{"messages":[{"body":3}]}')
                self.assertEqual(response.status, 503)
                self.assertIn(b"Outcome unknown", response.body)
                self.assertGreater(says("claimd_redis_unconfirmed_total"), 0)
            finally:
                replica.go_on()


if __name__ == "__main__":
    unittest.main()
