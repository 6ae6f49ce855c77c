#!/usr/bin/python3
"""claimd on one Redis that has troubles: what it does meanwhile, and that it recovers by
itself. And that what is large, odd or shared is as right there as in memory.

    redis_test.py CLAIMD

Needs redis-server.
"""

import json
import os
import re
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import Viewer, request  # noqa: E402
from on_redis import (HANGING, QUICK, SLOW_TO_LOAD, WAIT, RedisCase,  # noqa: E402
                      fetch_everything, at_once, fill, is_loading, target_of)
from redis_nodes import RedisError, eventually, free_port  # noqa: E402


class Away(RedisCase):
    """The only Redis is not there, or says nothing."""

    def assert_all_is_refused(self, api):
        for response in fetch_everything(api):
            self.assert_unavailable(response)
        self.assertEqual(api.health(), 503)
        self.assert_alive(api)

    def test_it_is_killed_and_comes_back(self):
        node = self.node()
        api = self.serve(node.url(**QUICK))
        api.post("q", "kept")
        place, _ = api.claim("q")
        for _ in range(2):
            node.kill()
            self.assert_all_is_refused(api)
            node.start()
            self.assertLess(self.becomes_well(api), 2)
        self.assertEqual(api.bodies("q"), ["kept"])
        api.fetch("DELETE", place, status=204)
        self.assertEqual(api.names(), ["q", "well"])

    def test_it_ends_streams_with_the_error_and_new_ones_follow(self):
        node = self.node()
        api = self.serve(node.url(**QUICK))
        api.post("q", 1)
        with Viewer(api.server, "/claimd/queues/q/claims") as viewer:
            self.assertEqual(viewer.event()[0], "message")
            node.kill()
            name, said = next(event for event in iter(viewer.event, 0) if event[0] != "message")
            self.assertEqual((name, said["title"]), ("end", "Service temporarily unavailable"))
        node.start()
        self.becomes_well(api)
        with Viewer(api.server, "/claimd/queues?offset=0") as viewer:
            self.eventually(lambda: viewer.event()[1]["totals"]["ready"] > 0, "the snapshot has q")

    def test_a_short_absence_is_not_noticed(self):
        """Requests wait meanwhile, up to patience_ms."""
        node = self.node()
        api = self.serve(node.url(patience_ms=10000))
        api.post("q", 1)
        node.kill()
        responses = []
        sender = threading.Thread(target=lambda: responses.extend(at_once(
            [lambda: api.response("GET", "q/stats"), lambda: api.try_post("q", 2),
             lambda: api.try_post("r", 3)])))
        sender.start()
        time.sleep(1)
        self.assertEqual(responses, [])
        node.start()
        sender.join()
        self.assertEqual([response.status for response in responses], [200, 201, 201])
        self.assertEqual(api.bodies("q"), [1, 2])

    def test_it_hangs_and_goes_on(self):
        """More requests hang than there are threads for them."""
        node = self.node()
        api = self.serve(node.url(**HANGING), "--store-threads", "4")
        api.post("q", "first")
        posts = [lambda i=i: api.try_post("q", i) for i in range(12)]
        node.stall()
        self.addCleanup(node.go_on)
        sender = threading.Thread(target=lambda: responses.extend(at_once(posts)))
        responses = []
        sender.start()
        self.assert_alive(api, seconds=2)
        sender.join()
        for response in responses:
            self.assert_unavailable(response)
        self.assertEqual(api.health(), 503)
        node.go_on()
        self.becomes_well(api)
        # Those whose outcome was unknown are there or not, but not twice.
        bodies = api.bodies("q")
        self.assertEqual(bodies[0], "first")
        self.assertEqual(len(bodies), len(set(bodies)))

    def test_it_hangs_while_others_wait_for_a_message(self):
        """Maintenance of them must not hold up the others."""
        node = self.node()
        api = self.serve(node.url(**HANGING), "--workers", "1")
        responses = []
        waiting = threading.Thread(target=lambda: responses.append(api.response(
            "POST", "q/claims", {"ttl": 1, "grace": 60}, headers=WAIT)))
        waiting.start()
        api.await_waiter()
        api.post("q", "late", delay=1)
        node.stall()
        self.addCleanup(node.go_on)
        self.assert_alive(api, seconds=3)
        node.go_on()
        waiting.join()
        if responses[0].status == 201:
            self.assertEqual(json.loads(responses[0].body)["messages"][0]["body"], "late")
        else:  # it was connecting just then
            self.assert_unavailable(responses[0])
        self.becomes_well(api)
        self.eventually(lambda: api.claim("q") is not None, "it is claimed again", 5)

    def test_it_hangs_and_clients_close_their_connections(self):
        node = self.node()
        api = self.serve(node.url(**HANGING), "--store-threads", "4")
        api.post("q", "first")
        node.stall()
        self.addCleanup(node.go_on)
        for i in range(30):
            with api.server.connect() as client:
                client.send(request("POST", "/v2/queues/q/claims", b'{"ttl":1}')
                            if i % 2 else request("GET", "/v2/queues/q/messages"))
                if i % 3:
                    client.reset()
        time.sleep(0.5)
        node.go_on()
        self.becomes_well(api)
        # Messages that were claimed for clients that left are ready again when the claim ends.
        self.eventually(lambda: api.claim("q") is not None, "it is claimed again", 5)

    def test_it_hangs_while_claimd_is_to_end(self):
        node = self.node()
        api = self.serve(node.url(**HANGING), "--drain-seconds", "2")
        api.post("q", 1)
        node.stall()
        self.addCleanup(node.go_on)
        sender = threading.Thread(target=fetch_everything, args=(api,))
        sender.start()
        time.sleep(0.2)
        begun = time.monotonic()
        api.server.signal()
        sender.join()
        self.assertEqual(api.server.wait(), 0)
        self.assertLess(time.monotonic() - begun, 6)

    def test_waiters_continue_when_redis_is_back(self):
        node = self.node()
        api = self.serve(node.url(**QUICK))
        api.post("r", 1)
        responses = []

        def claims():  # workers repeat a claim after a 503: Redis may go away in the middle of it
            responses.append(api.response("POST", "q/claims", {"ttl": 300, "grace": 60},
                                          headers=WAIT))
            return responses[-1].status != 503

        waiting = threading.Thread(target=lambda: self.eventually(claims, "it claims"),
                                   daemon=True)
        waiting.start()
        api.await_waiter()
        node.restart()
        self.eventually(lambda: api.health() == 200, "it is ready")
        api.post("q", "late")
        waiting.join(10)
        self.assertFalse(waiting.is_alive(), "nothing has woken the waiter")
        self.assertEqual(json.loads(responses[-1].body)["messages"][0]["body"], "late")

    def test_it_loads_what_it_has(self):
        node = self.node(**SLOW_TO_LOAD)
        api = self.serve(node.url(**QUICK))
        api.post("q", "kept")
        fill(node)
        node.restart(wait=False)
        eventually(lambda: is_loading(node), "it loads")
        self.assert_all_is_refused(api)
        self.assertTrue(is_loading(node), "it has loaded already")
        self.becomes_well(api)
        self.assertEqual(api.bodies("q"), ["kept"])

    def test_it_comes_back_empty(self):
        """All data was deleted: what was there is gone, and it works."""
        node = self.node(appendonly="no")
        api = self.serve(node.url(**QUICK))
        api.post("q", 1)
        place, messages = api.claim("q")
        node.restart()
        self.becomes_well(api)
        api.fetch("GET", place, status=404)
        api.fetch("DELETE", target_of(messages[0]["href"]), status=204)
        api.fetch("DELETE", place, status=204)
        self.assertEqual(api.names(), ["well"])
        api.post("q", 2)
        node.say("FLUSHALL")
        self.assertEqual(api.bodies("q"), [])
        self.assert_well(api, "q")

    def test_it_takes_no_changes(self):
        node = self.node()
        api = self.serve(node.url(**QUICK))
        api.post("q", 1)
        node.say("CONFIG", "SET", "min-replicas-to-write", 1)
        self.assert_unavailable(api.try_post("q", 2))
        self.assert_unavailable(api.response("POST", "q/claims", {}))
        self.assertEqual(api.bodies("q"), [1])
        node.say("CONFIG", "SET", "min-replicas-to-write", 0)
        self.becomes_well(api)
        self.assertEqual(api.bodies("q"), [1])

    def test_it_becomes_a_replica(self):
        node = self.node()
        api = self.serve(node.url(**QUICK))
        api.post("q", 1)
        node.say("REPLICAOF", "127.0.0.1", free_port())
        self.assert_unavailable(api.try_post("q", 2))
        self.assert_unavailable(api.response("POST", "q/claims", {}))
        self.assert_alive(api)
        self.assertEqual(api.health(), 503, "nothing can be changed")
        node.say("REPLICAOF", "NO", "ONE")
        self.becomes_well(api)
        self.assertEqual(api.bodies("q"), [1])


class Meddling(RedisCase):
    """Another program changes the Redis that serves."""

    def setUp(self):
        super().setUp()
        self.redis = self.node(lua_time_limit=100)
        self.api = self.serve(self.redis.url(**QUICK))

    def test_a_script_that_does_not_end(self):
        self.api.post("q", "kept")
        with self.redis.connect() as other:
            other.send("EVAL", "while true do end", 0)
            eventually(self.is_busy, "it is busy")
            for response in fetch_everything(self.api):
                self.assert_unavailable(response)
            self.assertEqual(self.api.health(), 503)
            self.assert_alive(self.api)
            self.redis.say("SCRIPT", "KILL")
            self.assertRaises(RedisError, other.receive)
        self.becomes_well(self.api)
        self.assertEqual(self.api.bodies("q"), ["kept"])

    def is_busy(self):
        try:
            self.redis.say("PING")
        except RedisError as error:
            return str(error).startswith("BUSY")
        return False

    def meanwhile(self, meddle, seconds=1.0):
        """Posts and claims while another program meddles; how many posts had which status."""
        over, statuses, posted = threading.Event(), {}, []

        def produce(i):
            number = 0
            while not over.is_set():
                number += 1
                response = self.api.try_post("q", [i, number])
                statuses[response.status] = statuses.get(response.status, 0) + 1
                if response.status == 201:
                    posted.append([i, number])
                else:
                    self.assert_unavailable(response)

        def all_of_them():
            over.wait(seconds)
            over.set()

        def meddler():
            while not over.is_set():
                meddle()
                time.sleep(0.02)

        at_once([lambda: produce(0), lambda: produce(1), lambda: produce(2), all_of_them,
                 meddler])
        self.becomes_well(self.api)
        found = []
        while True:
            page = self.api.fetch("DELETE", "q/messages?pop=20")["messages"]
            if not page:
                break
            found += [tuple(message["body"]) for message in page]
        self.assertEqual(len(found), len(set(found)), "some were posted twice")
        self.assertLessEqual({tuple(body) for body in posted}, set(found))
        return statuses

    def test_functions_are_forgotten_again_and_again(self):
        self.api = self.serve(self.redis.url())  # a slow machine needs several tries
        statuses = self.meanwhile(lambda: self.redis.say("FUNCTION", "FLUSH"))
        self.assertEqual(set(statuses), {201})

    def test_figures_are_reset_again_and_again(self):
        statuses = self.meanwhile(lambda: self.redis.say("CONFIG", "RESETSTAT"))
        self.assertEqual(set(statuses), {201})

    def test_connections_are_killed_again_and_again(self):
        """The outcome of requests that were under way then is not known."""
        statuses = self.meanwhile(lambda: self.redis.say("CLIENT", "KILL", "TYPE", "normal"))
        self.assertLessEqual(set(statuses), {201, 503})
        self.assertGreater(statuses[201], 10)

    def test_idle_connections_are_killed(self):
        """Nothing is under way: no client notices."""
        self.api.post("q", 1)
        for number in range(2, 10):
            self.redis.say("CLIENT", "KILL", "TYPE", "normal")
            self.api.post("q", number)
        self.assertEqual(self.api.bodies("q"), list(range(1, 10)))

    def test_all_pause(self):
        self.api.post("q", 1)
        self.redis.say("CLIENT", "PAUSE", 1000)
        begun = time.monotonic()
        self.assert_alive(self.api, 0.5)
        response = self.api.try_post("q", 2)
        self.assertIn(response.status, (201, 503))
        self.assertLess(time.monotonic() - begun, 5)
        self.becomes_well(self.api)

    def test_a_key_of_ours_is_something_else(self):
        """That queue cannot be used; the others can."""
        self.api.post("before", 1)
        self.redis.say("SET", "claimd:1:{p/q}:q", "x")
        for response in fetch_everything(self.api)[1:]:
            if response.status not in (200, 201):  # of what is not about that queue
                self.assert_unavailable(response)
        self.assert_unavailable(self.api.try_post("q", 1))
        self.assert_unavailable(self.api.response("POST", "q/claims", {}))
        self.assert_unavailable(self.api.response("GET", "q/stats"))
        self.assert_unavailable(self.api.response("PUT", "q", {}))
        self.assert_unavailable(self.api.response("DELETE", "q"))
        self.assertEqual(self.redis.say("GET", "claimd:1:{p/q}:q"), "x")
        self.assert_well(self.api)
        self.assertEqual(self.api.bodies("before"), [1])
        self.assertIn("before", self.api.names())
        self.redis.say("DEL", "claimd:1:{p/q}:q")
        self.assert_well(self.api, "q")

    def test_the_queue_in_a_listing_is_something_else(self):
        self.api.post("broken", 1)
        self.api.post("whole", 1)
        self.redis.say("DEL", "claimd:1:{p/broken}:q")
        self.redis.say("SET", "claimd:1:{p/broken}:q", "x")
        self.assertIn("whole", self.api.names())
        detailed = self.api.response("GET", "?detailed=true")
        if detailed.status != 503:
            self.assertIn(b'"whole"', detailed.body)

    def test_the_list_of_queues_is_something_else(self):
        """A queue that could not be entered there is entered later."""
        self.api.post("old", 1)
        self.redis.say("RENAME", "claimd:1:{p}:n", "claimd:1:{p}:kept")
        self.redis.say("SET", "claimd:1:{p}:n", "x")
        self.assert_unavailable(self.api.response("GET", ""))
        self.assert_unavailable(self.api.try_post("new", 1))
        self.api.post("old", 2)
        self.redis.say("RENAME", "claimd:1:{p}:kept", "claimd:1:{p}:n")
        self.api.post("new", 2)
        self.api.fetch("PUT", "new", {}, status=204)
        self.assertEqual(self.api.names(), ["new", "old"])

    def test_the_list_of_queues_cannot_be_changed_for_a_while(self):
        """A queue that is gone does not stay in it."""
        self.api.post("q", 1)
        self.redis.say("RENAME", "claimd:1:{p}:n", "claimd:1:{p}:kept")
        self.redis.say("SET", "claimd:1:{p}:n", "x")
        self.assert_unavailable(self.api.response("DELETE", "q"))
        self.redis.say("RENAME", "claimd:1:{p}:kept", "claimd:1:{p}:n")
        self.api.fetch("DELETE", "q", status=204)
        self.assertEqual(self.api.names(), [])


class Full(RedisCase):
    """maxmemory is used up, and nothing is thrown away."""

    def setUp(self):
        super().setUp()
        self.redis = self.node(maxmemory_policy="noeviction")
        self.api = self.serve(self.redis.url(**QUICK))
        self.api.post("q", *range(10))
        self.place, self.messages = self.api.claim("q", 4)

    def fill(self):
        self.redis.say("CONFIG", "SET", "maxmemory", 1)

    def test_posts_are_refused_and_it_recovers(self):
        self.fill()
        for response in (self.api.try_post("q", 1), self.api.response("PUT", "r", {}),
                         self.api.try_post("s", 1)):
            self.assert_unavailable(response)
            self.assertEqual(response.headers["retry-after"], "5", response)  # over budget
        self.redis.say("CONFIG", "SET", "maxmemory", 0)
        self.becomes_well(self.api)
        self.assertEqual(self.api.bodies("q"), list(range(10)))
        self.assertEqual(self.api.names(), ["q", "well"])

    def step(self, method, target, body=None, left=None):
        """A request that succeeds while it is full, and what is in the queue then."""
        with self.subTest(request=(method, target)):
            document = self.api.fetch(method, target, body, status=200 if "pop=" in target else 204)
            self.assertEqual(self.api.bodies("q"), left)
            return document

    def claimed(self):
        return self.api.fetch("GET", "q/stats")["messages"]["claimed"]

    def test_all_that_adds_nothing_goes_on(self):
        free = self.api.fetch("GET", "q/messages?echo=true")["messages"][0]
        self.api.post("q", "short", ttl=1)
        self.api.claim("q", 2, ttl=1)
        hrefs = [target_of(message["href"]) for message in self.messages]
        ids = [href.rsplit("/", 1)[1].split("?")[0] for href in hrefs]
        self.fill()
        self.assertEqual(self.api.names(), ["q"])
        self.api.fetch("GET", "q")
        self.api.fetch("GET", self.place)
        self.api.fetch("GET", hrefs[0])
        # The short life and the short claim end by themselves.
        eventually(lambda: self.claimed() == 4 and self.api.bodies("q") == list(range(10)),
                   "they have ended")
        self.step("DELETE", target_of(free["href"]), left=[0, 1, 2, 3, 5, 6, 7, 8, 9])
        self.step("DELETE", hrefs[0], left=[1, 2, 3, 5, 6, 7, 8, 9])
        self.step("DELETE", "q/messages?ids=" + ",".join(ids[1:3]), left=[3, 5, 6, 7, 8, 9])
        popped = self.step("DELETE", "q/messages?pop=2", left=[3, 7, 8, 9])["messages"]
        self.assertEqual([message["body"] for message in popped], [5, 6])
        _, messages = self.api.claim("q", 2)
        self.assertEqual([message["body"] for message in messages], [7, 8])
        self.step("PATCH", self.place, {"ttl": 100, "grace": 60}, left=[3, 7, 8, 9])
        self.step("DELETE", self.place, left=[3, 7, 8, 9])
        self.assertEqual(self.claimed(), 2)
        self.step("POST", "q/purge", left=[])
        self.api.fetch("DELETE", "q", status=204)
        self.assertEqual(self.api.names(), [])

    def test_a_paused_queue_can_resume(self):
        def send(method, path, **document):
            with self.api.server.connect() as client:
                client.send(request(method, path, json.dumps(document).encode()))
                return client.response()

        self.assertEqual(send("PUT", "/v1/queues/q/metadata", a=1).status, 204)
        self.assertEqual(send("POST", "/claimd/queues/q/pause", claims=True).status, 200)
        self.fill()
        self.assertEqual(self.api.response("POST", "q/claims", {}).status, 204)
        self.assert_unavailable(send("PUT", "/v1/queues/q/metadata", a=12))
        self.assertEqual(send("PUT", "/v1/queues/q/metadata", a=2).status, 204)
        self.assertEqual(send("POST", "/claimd/queues/q/pause", claims=False).status, 200)
        _, messages = self.api.claim("q", 2)
        self.assertEqual([message["body"] for message in messages], [4, 5])

    def finish(self, **members):
        path = "/claimd/queues/%s/finish" % self.place
        with self.api.server.connect() as client:
            client.send(request("POST", path, json.dumps(members).encode()))
            return client.response()

    def test_a_finish_goes_on_unless_it_posts(self):
        ids = [message["href"].rsplit("/", 1)[1].split("?")[0] for message in self.messages]
        self.fill()
        refused = self.finish(delete=ids[:1], post=[{"queue": "q", "messages": [{"body": 10}]}])
        self.assert_unavailable(refused)
        self.assertEqual(refused.headers["retry-after"], "5", refused)
        self.assertEqual(self.claimed(), 4)
        response = self.finish(delete=ids[:1], release=[{"id": ids[1], "reason": "no memory"}],
                               renew={"ttl": 300})
        self.assertEqual(response.status, 200, response)
        self.assertEqual(self.claimed(), 2)
        self.assertEqual(self.api.bodies("q"), list(range(1, 10)))


class Large(RedisCase):

    def commands(self, redis, api, target, count):
        """The commands that Redis runs for a GET of `count` messages."""
        redis.say("CONFIG", "RESETSTAT")
        self.assertEqual(len(api.fetch("GET", target)["messages"]), count)
        return sum(map(int, re.findall(r"calls=(\d+)", redis.say("INFO", "commandstats"))))

    def test_the_largest_claims_and_pops(self):
        """As many messages as the options can allow."""
        redis = self.node(appendonly="no")
        api = self.serve(redis.url(), "--max-messages-post-size", "1M",
                         "--max-messages-per-claim-or-pop", "10000")
        api.post("q", *range(10000))
        place, messages = api.claim("q", 10000)
        self.assertEqual([message["body"] for message in messages], list(range(10000)))
        # The record of a claim is as long as its list of messages. It is read once.
        self.assertLess(self.commands(redis, api, place, 10000), 100)
        self.assertLess(self.commands(redis, api, "q/messages?echo=true&include_claimed=true&limit=20", 20), 30)
        api.fetch("PATCH", place, {"ttl": 100, "grace": 60}, status=204)
        api.fetch("DELETE", place, status=204)
        api.claim("q", 10000, ttl=1)
        self.eventually(lambda: len(api.fetch("DELETE", "q/messages?pop=10000")["messages"])
                        == 10000, "they are free again", 5)


class Two(RedisCase):
    """Two claimd share a Redis."""

    def setUp(self):
        super().setUp()
        self.redis = self.node()
        self.one, self.other = self.serve(self.redis.url()), self.serve(self.redis.url())

    def test_queues_made_at_one_exist_at_the_other(self):
        self.one.fetch("PUT", "q", {"color": "red"}, status=201)
        self.other.fetch("PUT", "q", {}, status=204)
        self.assertEqual(self.other.fetch("GET", "q")["color"], "red")
        self.other.fetch("PATCH", "q", [{"op": "replace", "path": "/metadata/color",
                                         "value": "blue"}], headers=(
              "Content-Type: application/openstack-messaging-v2.0-json-patch",))
        self.assertEqual(self.one.fetch("GET", "q")["color"], "blue")
        ids = self.one.post("q", "a", "b") + self.other.post("q", "c")
        for api in (self.one, self.other):
            self.assertEqual(api.bodies("q"), ["a", "b", "c"])
            self.assertEqual(api.names(), ["q"])
            self.assertEqual(api.fetch("GET", "q/messages/" + ids[2])["body"], "c")
        self.other.fetch("DELETE", "q", status=204)
        self.assertEqual(self.one.names(), [])
        self.one.fetch("GET", "q/messages/" + ids[0], status=404)

    def assert_woken(self, meddle=None):
        """A waiter at one server is notified of a post at the other, whatever came between."""
        got = []
        waiting = threading.Thread(
            target=lambda: got.append(self.one.claim("q", headers=WAIT)))
        waiting.start()
        self.one.await_waiter()
        if meddle:
            meddle()
        self.other.post("q", "news")
        waiting.join()
        self.assertEqual(got[0] and got[0][1][0]["body"], "news")

    def test_a_post_at_one_wakes_a_waiter_at_the_other(self):
        self.assert_woken()

    def test_it_does_so_when_it_could_not_listen_for_a_while(self):
        self.assert_woken()
        self.assert_woken(lambda: self.redis.say("CLIENT", "KILL", "TYPE", "pubsub"))
        self.assert_woken(self.redis.restart)

    def pause(self, api, **members):
        with api.server.connect() as client:
            client.send(request("POST", "/claimd/queues/q/pause", json.dumps(members).encode()))
            self.assertEqual(client.response().status, 200)

    def test_a_queue_paused_at_one_is_paused_at_the_other(self):
        self.one.post("q", "old")
        self.pause(self.one, claims=True, posts=True)
        response = self.other.response("POST", "q/claims", {})
        self.assertEqual((response.status, response.headers["claimd-paused"]), (204, "claims"))
        response = self.other.try_post("q", "new")
        self.assertEqual((response.status, response.headers["claimd-paused"]), (503, "posts"))
        self.pause(self.other, claims=False, posts=False)
        self.one.post("q", "new")
        self.assertEqual(len(self.one.claim("q", 2)[1]), 2)

    def test_a_resume_at_one_wakes_a_waiter_at_the_other(self):
        self.one.post("q", "news")
        self.pause(self.other, claims=True)
        got = []
        waiting = threading.Thread(
            target=lambda: got.append(self.one.claim("q", headers=WAIT)))
        waiting.start()
        self.one.await_waiter()
        self.pause(self.other, claims=False)
        waiting.join()
        self.assertEqual(got[0] and got[0][1][0]["body"], "news")

    def test_the_end_of_a_claim_needs_no_request(self):
        """Also where the claimd that gave the claim has ended."""
        one, other = self.one, self.other
        settings = {"_max_claim_count": 1, "_dead_letter_queue": "dead"}
        for name in ("q", "r"):
            one.fetch("PUT", name, settings, status=201)
            one.post(name, name)
        one.claim("q", ttl=1)
        one.claim("r", ttl=2)
        self.eventually(lambda: other.bodies("dead") == ["q"], "q was dead-lettered")
        one.server.process.kill()
        one.server.wait()
        self.eventually(lambda: other.bodies("dead") == ["q", "r"], "r was dead-lettered")

    def test_one_ends_and_the_other_goes_on(self):
        self.one.post("q", 1)
        place, _ = self.one.claim("q")
        self.one.server.process.kill()
        self.one.server.wait()
        self.assert_well(self.other)
        self.other.fetch("DELETE", place, status=204)
        self.assertEqual(self.other.claim("q")[1][0]["body"], 1)


if __name__ == "__main__":
    unittest.main()
