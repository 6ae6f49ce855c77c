#!/usr/bin/python3
"""A primary loses its power and comes back at once, before its replica has taken over: its
replica takes over what it has in its file.

The disk then has the synced data. With `appendfsync always` that is all. With less it may be an
older file, and acknowledged changes are gone from both nodes. So claimd refuses that, unless
restarts are held back (docs/scale-out.md).
"""

import os
import shutil
import time
import unittest

from on_redis import RedisCase
from redis_nodes import Cluster, eventually

PATIENT = 15000  # ms: no replica takes over while the primary starts again


def folder(node):
    return os.path.join(node.folder, "appendonlydir")


class Power(RedisCase):
    def lose_power(self, synced, **parameters):
        """Bodies that are there in the end, of ten that were acknowledged, after a primary has
        come back with what was `synced`: all, or the first five."""
        cluster = Cluster(primaries=3, replicas_each=1, cluster_node_timeout=PATIENT,
                          appendfsync=parameters.pop("appendfsync"))
        self.addCleanup(cluster.stop)
        api = self.serve(cluster.url(replicas=1, **parameters))
        primary = cluster.primary_of("{p/q}")
        replica, = cluster.replicas_of(primary)
        older = os.path.join(primary.folder, "older")
        for i in range(10):
            if i == 5:
                time.sleep(1.2)  # everysec
                shutil.copytree(folder(primary), older)
            api.post("q", i)
        before = replica.info("replication")["master_link_status"]
        self.assertEqual(before, "up")
        primary.kill()
        if synced == "five":
            shutil.rmtree(folder(primary))
            shutil.move(older, folder(primary))
        primary.start()
        eventually(lambda: primary.info("replication")["role"] == "master", "it is back")
        eventually(lambda: replica.info("replication").get("master_link_status") == "up",
                   "its replica follows it")
        eventually(lambda: api.response("GET", "q/messages?echo=true").status == 200, "it serves")
        return api.bodies("q")

    def test_synced_messages_always_exist(self):
        self.assertEqual(self.lose_power("all", appendfsync="always"), list(range(10)))

    def test_with_an_older_file_what_was_acknowledged_is_gone_from_the_replica_too(self):
        """If this fails, Redis has become safer than the manual says."""
        self.assertEqual(self.lose_power("five", appendfsync="everysec", restarts="held"),
                         list(range(5)))


if __name__ == "__main__":
    unittest.main()
