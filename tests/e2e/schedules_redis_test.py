#!/usr/bin/python3
"""Schedules of several claimd on one Redis: each due time posts once, whichever of them
runs.

    schedules_redis_test.py CLAIMD

Needs redis-server.
"""

import json
import os
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from on_redis import HANGING, QUICK, RedisCase  # noqa: E402
from redis_nodes import Cluster  # noqa: E402


class Schedules(RedisCase):
    def fetch(self, api, method, target, body=None, status=200):
        data = None if body is None else json.dumps(body).encode()
        response = api.server.fetch(method, "/claimd/queues/" + target, data)
        self.assertEqual(response.status, status, response)
        return json.loads(response.body) if response.body else None

    def make(self, api, name, **more):
        self.fetch(api, "PUT", "q/schedules/" + name,
                   {"every": 1, "message": {"body": name, "ttl": 600}, **more}, status=201)

    def shown(self, api, name):
        return self.fetch(api, "GET", "q/schedules/" + name)

    def due_times(self, api, name):
        """Those of the messages, in seconds, in order."""
        page = self.fetch(api, "GET", "q/messages?limit=100")
        self.assertIsNone(page["marker"])
        keys = [message["unique"].rsplit("/", 1) for message in page["messages"]]
        return sorted(int(seconds) for key, seconds in keys if key == "schedule/q/" + name)

    def await_posts(self, api, *names):
        """Until each of these schedules has posted for a due time that comes now, and has
        caught up. So no claimd is at work on one: after a kill it would wait for the end of
        the claim."""
        begun_s = int(time.time())

        def have_posted():
            least = max(begun_s + 1, int(time.time()))
            return all(self.due_times(api, name)[-1:] >= [least] for name in names)
        self.eventually(have_posted, "%s have posted for a due time" % (names,), patience=40)

    def kill(self, api):
        api.server.signal(signal.SIGKILL)
        api.server.wait()

    def end_schedule(self, api, name):
        """Deletes it; what it has shown last, and its due times."""
        self.fetch(api, "PATCH", "q/schedules/" + name, {"paused": True})
        shown = self.shown(api, name)
        self.eventually(lambda: len(self.due_times(api, name)) >= shown["posted"],
                        "all messages of %s have arrived" % name)
        self.fetch(api, "DELETE", "q/schedules/" + name, status=204)
        return shown, self.due_times(api, name)

    def test_each_due_time_posts_once_over_kills(self):
        url = self.node().url()
        first, second = self.serve(url), self.serve(url)
        first.fetch("PUT", "q", {}, status=201)
        self.make(first, "each", missed="all")
        self.make(first, "latest")
        self.await_posts(first, "each", "latest")
        self.kill(first)
        self.await_posts(second, "each", "latest")  # it looks for projects every 5 s
        first = self.serve(url)
        self.kill(second)
        self.await_posts(first, "each", "latest")
        self.kill(first)
        time.sleep(1)  # no claimd runs
        first, second = self.serve(url), self.serve(url)
        self.await_posts(second, "each", "latest")

        shown, times = self.end_schedule(second, "each")
        self.assertEqual(len(times), shown["posted"])
        self.assertEqual(times, list(range(times[0], times[0] + len(times))))
        self.assertEqual(shown["missed_count"], 0)
        shown, times = self.end_schedule(second, "latest")
        self.assertEqual(len(times), shown["posted"])
        self.assertEqual(len(times), len(set(times)))
        self.assertEqual(times[-1] - times[0] + 1 - len(times), shown["missed_count"])
        self.fetch(first, "GET", "q/schedules/each", status=404)

    def test_it_goes_on_when_redis_comes_back(self):
        node = self.node()
        first, second = self.serve(node.url(**QUICK)), self.serve(node.url(**QUICK))
        first.fetch("PUT", "q", {}, status=201)
        self.make(first, "each", missed="all")
        self.await_posts(first, "each")
        node.say("CLIENT", "KILL", "SKIPME", "yes")
        self.becomes_well(first)
        self.await_posts(first, "each")
        node.kill()
        node.start()
        self.becomes_well(second)
        self.await_posts(second, "each")
        shown, times = self.end_schedule(second, "each")
        self.assertEqual(len(times), shown["posted"])
        self.assertEqual(times, list(range(times[0], times[0] + len(times))))

    def test_each_due_time_posts_once_when_primaries_are_replaced(self):
        with Cluster(primaries=3, replicas_each=1) as cluster:
            first, second = (self.serve(cluster.url(replicas=1, **HANGING)) for _ in range(2))
            first.fetch("PUT", "q", {}, status=201)
            self.make(first, "each", missed="all")
            self.await_posts(first, "each")
            for primary in cluster.primaries():
                primary.kill()
                cluster.wait_new_primary(primary)
                primary.start()
                cluster.wait_whole()
                self.becomes_well(second)
                self.await_posts(second, "each")
            shown, times = self.end_schedule(first, "each")
            self.assertEqual(len(times), shown["posted"])
            self.assertEqual(times, list(range(times[0], times[0] + len(times))))
            self.end(first.server)
            self.end(second.server)


if __name__ == "__main__":
    unittest.main()
