#!/usr/bin/python3
"""claimd on a Redis Cluster whose slots move, and whose nodes end, hang or are replaced.
redis_kill.py tests messages when nodes die under load.

    redis_cluster_test.py CLAIMD

Needs redis-server.
"""

import concurrent.futures
import contextlib
import json
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from on_redis import HANGING, QUICK, WAIT, RedisCase  # noqa: E402
from redis_nodes import Cluster, slot_of  # noqa: E402


class Shards(RedisCase):
    """A cluster of three primaries without replicas."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(primaries=3, replicas_each=0)
        cls.addClassCleanup(cls.cluster.stop)
        cls.url = cls.cluster.url(replicas=0, unsafe=1, **QUICK)

    def setUp(self):
        super().setUp()
        for node in self.cluster.nodes:
            node.say("FLUSHALL")

    def queues(self):
        """The name of a queue of project p at each of the primaries, in their order."""
        found = {}
        for i in range(1000):
            owner = self.cluster.primary_of("{p/q%d}" % i)
            found.setdefault(self.cluster.nodes.index(owner), "q%d" % i)
            if len(found) == 3:
                return [found[i] for i in range(3)]
        return self.fail("not all have slots")

    @contextlib.contextmanager
    def without_owner(self, queue, owner):
        """No node owns the slot of the queue meanwhile."""
        slot = owner.say("CLUSTER", "KEYSLOT", "{p/%s}" % queue)
        for node in self.cluster.nodes:
            node.say("CLUSTER", "DELSLOTS", slot)
        try:
            yield
        finally:
            owner.say("CLUSTER", "ADDSLOTS", slot)
            self.cluster.wait_whole()

    def test_an_unassigned_slot(self):
        api = self.serve(self.url)
        names = self.queues()
        for name in names:
            api.post(name, "kept")
        with self.without_owner(names[1], self.cluster.nodes[1]):
            for response in (api.try_post(names[1], 1), api.response("GET", names[1] + "/stats"),
                             api.response("POST", names[1] + "/claims", {})):
                self.assert_unavailable(response)
            for name in (names[0], names[2]):
                api.post(name, "well")
                self.assertEqual(api.bodies(name), ["kept", "well"])
            # Another node may still list the slot, until the nodes have notified each other.
            self.eventually(lambda: api.health() == 503, "claimd is not ready", 5)
            self.assert_alive(api)
            late = self.serve(self.url)  # one that starts meanwhile knows no more
            late.post(names[0], "late")
            self.assert_unavailable(late.try_post(names[1], 1))
            self.eventually(lambda: late.health() == 503, "the late claimd is not ready", 5)
        self.becomes_well(api)
        self.becomes_well(late)
        self.assertEqual(api.bodies(names[1]), ["kept"])

    def test_readiness_names_an_unassigned_slot(self):
        """Without a request for the queue."""
        api = self.serve(self.url)
        self.assert_well(api)
        with self.without_owner(self.queues()[1], self.cluster.nodes[1]):
            self.eventually(lambda: api.health() == 503, "/readyz is 503", 5)
        self.becomes_well(api)

    def dead_letter(self, api, source, target):
        """A message is claimed as often as it may be, and released. The next claim moves it."""
        api.fetch("PUT", source, {"_max_claim_count": 1, "_dead_letter_queue": target},
                  status=201)
        api.post(source, "dead")
        api.fetch("DELETE", api.claim(source)[0], status=204)

    def test_a_dead_letter_goes_elsewhere(self):
        api = self.serve(self.url)
        source, target, _ = self.queues()
        self.dead_letter(api, source, target)
        self.assertIsNone(api.claim(source))
        self.assertEqual(api.bodies(target), ["dead"])
        self.assertEqual(api.bodies(source), [])

    def test_a_dead_letter_for_an_unreachable_node(self):
        """It arrives when the node of its queue is back."""
        api = self.serve(self.url)
        source, target, _ = self.queues()
        self.dead_letter(api, source, target)
        self.cluster.nodes[1].kill()
        response = api.response("POST", source + "/claims", {})
        self.assertIn(response.status, (204, 503))
        self.cluster.nodes[1].start()
        self.cluster.wait_whole()
        self.becomes_well(api)

        def has_arrived():
            api.claim(source)
            return api.bodies(target) == ["dead"]
        self.eventually(has_arrived, "the dead letter has arrived", 15)

    def test_slots_are_moved(self):
        """The slots of a queue and of the list of queues. The first requests find them."""
        api = self.serve(self.url)
        name = self.queues()[0]
        api.post(name, "kept")
        for key in ("{p}", "{p/%s}" % name):
            slot = self.cluster.nodes[0].say("CLUSTER", "KEYSLOT", key)
            old = self.cluster.primary_of(slot)
            new = next(node for node in self.cluster.nodes if node is not old)
            moved = self.cluster.move_slot(slot, new)
            self.assertGreater(moved, 0, key)
        self.assertEqual(api.names(), [name])
        self.assertEqual(api.bodies(name), ["kept"])
        self.assertEqual(api.health(), 200)

    def test_slots_are_migrated_as_a_whole(self):
        """By CLUSTER MIGRATESLOTS, with a request that waits for a message there."""
        if not self.cluster.can_migrate():
            self.skipTest("%s has no CLUSTER MIGRATESLOTS" % self.cluster.nodes[0].server())
        api = self.serve(self.url)
        name = self.queues()[0]
        api.post(name, "kept")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waits = pool.submit(api.claim, "w", headers=WAIT)
            api.await_waiter()
            for key in ("{p}", "{p/%s}" % name, "{p/w}"):
                old = self.cluster.primary_of(key)
                new = next(node for node in self.cluster.nodes if node is not old)
                self.cluster.migrate_slot(slot_of(key), new)
                self.assertIs(self.cluster.primary_of(key), new)
            api.post("w", "news")
            self.assertEqual(waits.result()[1][0]["body"], "news")
        self.assertEqual(set(api.names()), {name, "w"})
        self.assertEqual(api.bodies(name), ["kept"])
        self.assertEqual(api.health(), 200)

    def test_a_queue_is_served_while_its_slot_is_moved(self):
        """Also a queue that was deleted and made again, and one with a subscriber."""
        api = self.serve(self.url)
        for name in ("new", "again", "subscribed"):
            with self.subTest(queue=name):
                if name == "again":
                    api.post(name, "old")
                    api.fetch("DELETE", name, status=204)
                if name == "subscribed":
                    api.fetch("POST", name + "/subscriptions", {"subscriber": "http://127.0.0.1:1/"},
                              status=201)
                api.post(name, "before")
                slot = self.cluster.nodes[0].say("CLUSTER", "KEYSLOT", "{p/%s}" % name)
                old = self.cluster.primary_of(slot)
                new = next(node for node in self.cluster.nodes if node is not old)
                new.say("CLUSTER", "SETSLOT", slot, "IMPORTING", old.id)
                old.say("CLUSTER", "SETSLOT", slot, "MIGRATING", new.id)
                api.post(name, "here")
                old.say("MIGRATE", new.host, new.port, "", 0, 5000, "KEYS",
                        *old.say("CLUSTER", "GETKEYSINSLOT", slot, 100))
                api.post(name, "there")
                self.assertEqual(api.bodies(name), ["before", "here", "there"])
                for node in (new, old, *(n for n in self.cluster.nodes if n not in (old, new))):
                    node.say("CLUSTER", "SETSLOT", slot, "NODE", new.id)
                self.assertEqual(len(api.claim(name, 5)[1]), 3)

    def test_the_first_request_after_a_move_lists_the_queues(self):
        api = self.serve(self.url)
        api.post("q", 1)
        slot = self.cluster.nodes[0].say("CLUSTER", "KEYSLOT", "{p}")
        old = self.cluster.primary_of(slot)
        new = next(node for node in self.cluster.nodes if node is not old)
        self.cluster.move_slot(slot, new)
        for _ in range(3):
            api.fetch("GET", "")

    def test_a_primary_is_away_and_comes_back(self):
        api = self.serve(self.url)
        names = self.queues()
        for name in names:
            api.post(name, "kept")
        self.cluster.nodes[2].kill()
        self.assert_unavailable(api.try_post(names[2], 1))
        self.assertEqual(api.health(), 503)
        self.assert_alive(api)
        api.post(names[0], "well")
        self.cluster.nodes[2].start()
        self.cluster.wait_whole()
        self.becomes_well(api)
        for name in names:
            self.assertEqual(api.bodies(name)[0], "kept")

    def test_a_primary_hangs_and_goes_on(self):
        """Requests to the other nodes get their responses meanwhile."""
        api = self.serve(self.cluster.url(replicas=0, unsafe=1, **HANGING))
        names = self.queues()
        api.post(names[0], "kept")
        self.cluster.nodes[2].stall()
        try:
            responses = []
            sender = threading.Thread(target=lambda: responses.append(api.try_post(names[2], 1)))
            sender.start()
            self.assert_alive(api, 0.5)
            self.assertEqual(api.bodies(names[0]), ["kept"])
            sender.join()
            self.assert_unavailable(responses[0])
            self.assertEqual(api.health(), 503)
        finally:
            self.cluster.nodes[2].go_on()
        self.cluster.wait_whole()
        self.becomes_well(api)


class Replaced(RedisCase):
    """A cluster whose primary is replaced while it hangs, so that no node sends MOVED."""

    def test_a_hanging_node_gets_no_more_requests(self):
        with Cluster(primaries=3, replicas_each=1) as cluster:
            api = self.serve(cluster.nodes[0].url(replicas=0, unsafe=1, **HANGING))
            api.post("q", "kept")
            primary = cluster.primary_of("{p/q}")
            cluster.wait_in_step(primary)
            primary.stall()
            cluster.wait_new_primary(primary)
            self.eventually(lambda: api.response("GET", "q/stats").status == 200,
                            "the new one gets requests", 6)
            self.assertEqual(api.bodies("q"), ["kept"])
            self.eventually(lambda: api.health() == 200, "/readyz is 200", 6)
            self.assert_well(api)
            self.end(api.server)

    def test_a_key_is_held_once_when_primaries_are_replaced(self):
        """Two clients post the same keys by different claimd, until each has a response."""
        keys = ["report-%02d" % i for i in range(60)]
        killed = threading.Event()

        def post_all(api):
            for i, key in enumerate(keys):
                if i == len(keys) // 3:
                    killed.wait(20)
                self.eventually(
                    lambda key=key: api.response("POST", "q/messages", {"messages": [{"body": key}]},
                                                 ("Claimd-Unique: " + key,)).status == 201,
                    "%s is posted" % key, 20)
        with Cluster(primaries=3, replicas_each=1) as cluster:
            apis = [self.serve(cluster.url(replicas=1, **HANGING)) for _ in range(2)]
            apis[0].fetch("PUT", "q", {}, status=201)
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                done = [pool.submit(post_all, api) for api in apis]
                primary = cluster.primary_of("{p/q}")
                primary.kill()
                killed.set()
                cluster.wait_new_primary(primary)
                primary.start()  # a post needs a replica
                for one in done:
                    one.result()
            page = json.loads(apis[0].server.fetch("GET", "/claimd/queues/q/messages?limit=100").body)
            self.assertEqual(sorted(message["unique"] for message in page["messages"]), keys)
            for api in apis:
                self.end(api.server)

    def test_a_repeated_request_waits_for_the_replica_that_lacks_the_first(self):
        headers = ("Idempotency-Key: a-key-of-one-post",)
        body = {"messages": [{"body": "once"}]}
        with Cluster(primaries=3, replicas_each=1) as cluster:
            first, other = (self.serve(cluster.url(replicas=1, **HANGING)) for _ in range(2))
            replica, = cluster.replicas_of(cluster.primary_of("{p/q}"))
            other.fetch("PUT", "q", status=201)
            replica.stall()
            for api in (first, other):
                refused = api.fetch("POST", "q/messages", body, 503, headers)
                self.assertEqual(refused["title"], "Outcome unknown")
            replica.go_on()
            self.eventually(lambda: other.response("POST", "q/messages", body,
                                                   headers).status == 201,
                            "the replica has confirmed it")
            self.assertEqual(other.bodies("q"), ["once"])
            for api in (first, other):
                self.end(api.server)


if __name__ == "__main__":
    unittest.main()
