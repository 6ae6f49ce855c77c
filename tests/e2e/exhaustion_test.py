#!/usr/bin/python3
"""A server that runs out of something says so, goes on with the rest, and recovers; and
one with very many queues does not care.

    exhaustion_test.py CLAIMD

    ATTACK_QUEUES   how many queues (100000; with sanitizers 10000)
"""

import json
import os
import random
import re
import resource
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import (SANITIZED, Fetcher, Server, descriptor_numbers, descriptors, eventually, post,  # noqa: E402
                     request, resident_kb)

QUEUES = int(os.environ.get("ATTACK_QUEUES", "10000" if SANITIZED else "100000"))


class Memory(unittest.TestCase):
    BATCH = b'{"messages":[' + b",".join([b'{"body":"' + b"x" * 2000 + b'"}'] * 10) + b"]}"
    SMALL = b'{"messages":[{"body":1}]}'

    def fill(self, fetch, queue):
        """Posts until there is no more capacity; returns the batches that were accepted."""
        accepted = self.post_until_refused(fetch, queue, self.BATCH)
        self.post_until_refused(fetch, queue, self.SMALL)
        return accepted

    def post_until_refused(self, fetch, queue, body):
        accepted = 0
        response = fetch.post(queue, body)
        while response.status == 201:
            accepted += 1
            response = fetch.post(queue, body)
        self.assert_refused(response)
        return accepted

    def assert_refused(self, response):
        self.assertEqual(response.status, 503, response)
        self.assertGreater(int(response.headers["retry-after"]), 0)
        self.assertEqual(json.loads(response.body)["title"], "Service temporarily unavailable")

    def assert_the_rest_goes_on(self, fetch):
        """Everything but adding data works while the budget is used up."""
        total = fetch.counts("full")[2]
        self.assert_refused(fetch("PUT", "/v2/queues/another", b'{"a":"%s"}' % (b"x" * 9000)))
        self.assertEqual(fetch("GET", "/v2/queues?limit=1").status, 200)
        self.assertEqual(fetch("GET", "/v2/queues/full").status, 200)
        page = fetch("GET", "/v2/queues/full/messages?echo=true&limit=20")
        self.assertEqual(len(json.loads(page.body)["messages"]), 20)
        claim = fetch("POST", "/v2/queues/full/claims?limit=20", b"{}")
        self.assertEqual(claim.status, 201)
        place = claim.headers["location"]
        self.assertEqual(fetch.counts("full"), (20, total - 20, total))
        self.assertEqual(fetch("GET", place).status, 200)
        self.assertEqual(fetch("PATCH", place, b"{}").status, 204)
        message = json.loads(claim.body)["messages"][0]["href"]
        self.assertEqual(fetch("GET", message).status, 200)
        self.assertEqual(fetch("DELETE", message).status, 204)
        self.assertEqual(fetch("DELETE", place).status, 204)
        self.assertEqual(fetch("DELETE", "/v2/queues/full/messages?pop=9").status, 200)
        self.assertEqual(fetch.counts("full"), (0, total - 10, total - 10))

    def test_posts_are_refused_everything_else_goes_on_and_it_recovers(self):
        """Each way of making capacity again works, and makes as much capacity as the first."""
        def purge(fetch):
            self.assertEqual(fetch("POST", "/v2/queues/full/purge").status, 204)

        def delete(fetch):
            self.assertEqual(fetch("DELETE", "/v2/queues/full").status, 204)

        def pop(fetch):
            while json.loads(fetch("DELETE", "/v2/queues/full/messages?pop=20").body)["messages"]:
                pass

        with Server("--max-memory", "8M") as server, Fetcher(server) as fetch:
            first = self.fill(fetch, "full")
            self.assertGreater(first, 100)
            for free_space in (purge, delete, pop, purge):
                with self.subTest(by=free_space.__name__):
                    self.assert_the_rest_goes_on(fetch)
                    free_space(fetch)
                    # Freeing is done aside: wait until there is as much capacity as before.
                    capacity = 0

                    def is_all_back():
                        nonlocal capacity
                        capacity += self.post_until_refused(fetch, "full", self.BATCH)
                        return capacity >= first * 0.99
                    eventually(is_all_back)
                    self.fill(fetch, "full")

    def test_exactly_the_accepted_messages_exist_after_overload(self):
        accepted = []

        def crush(server):
            with Fetcher(server) as fetch:
                for _ in range(200):
                    response = fetch.post("full", self.BATCH)
                    if response.status == 201:
                        accepted.extend(json.loads(response.body)["resources"])
                    else:
                        self.assert_refused(response)

        with Server("--max-memory", "8M") as server, Fetcher(server) as fetch:
            threads = [threading.Thread(target=crush, args=(server,)) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertLess(len(accepted), 6 * 200 * 10)
            self.assertEqual(fetch.counts("full"), (0, len(accepted), len(accepted)))
            taken = []
            while True:
                popped = json.loads(fetch("DELETE", "/v2/queues/full/messages?pop=20").body)
                if not popped["messages"]:
                    break
                taken += ["/v2/queues/full/messages/" + m["id"] for m in popped["messages"]]
        self.assertEqual(sorted(taken), sorted(accepted))

    def test_bodies_that_are_never_finished_are_within_the_budget(self):
        """Half-sent posts take memory too: 200 of them want six times what there is."""
        body = b'{"messages":[{"body":"' + b"x" * 250000 + b'"}]}'
        whole = post("half", body)
        with Server("--max-memory", "8M", "--request-seconds", "600", "--workers", "1") \
                as server, Fetcher(server) as fetch:
            self.assertEqual(fetch.post("small", self.SMALL).status, 201)
            clients = [server.connect() for _ in range(200)]
            for client in clients:
                client.send(whole[:-1])
            for _ in range(200):  # meanwhile the only worker reads the bodies in turn
                claim = fetch("POST", "/v2/queues/small/claims", b"{}")
                self.assertEqual(claim.status, 201)
                self.assertEqual(fetch("DELETE", claim.headers["location"]).status, 204)
            self.assertTrue(SANITIZED or resident_kb(server) < 32 * 1024)
            for client in clients:
                client.send(whole[-1:])
            responses = [client.response() for client in clients]
            for client in clients:
                client.close()
            for response in responses:
                if response.status != 201:
                    self.assert_refused(response)
            accepted = sum(response.status == 201 for response in responses)
            self.assertEqual(fetch.counts("half")[2], accepted)
            self.assertEqual(fetch("POST", "/v2/queues/half/purge").status, 204)
            eventually(lambda: fetch.post("half", body).status == 201)

    def test_unread_responses_are_bounded(self):
        """A hundred listings of 5 MB, with a budget of 8 MB that 5 MB of messages are in.

        The rest suffices for short pages, one after the other.
        """
        body = b'{"messages":[{"body":"' + b"x" * 250000 + b'"}]}'
        listing = "/v2/queues/big/messages?echo=true&limit=20"
        with Server("--max-memory", "8M", "--workers", "1") as server, Fetcher(server) as fetch:
            for _ in range(20):
                self.assertEqual(fetch.post("big", body).status, 201)
            self.assertEqual(self.walk(fetch, listing), 20)
            clients = [server.connect() for _ in range(100)]
            for client in clients:
                client.send(request("GET", listing))
            for _ in range(200):  # meanwhile the only worker responds to the others
                self.assertEqual(fetch("GET", "/v2/queues/big/stats").status, 200)
                self.assertEqual(fetch("GET", "/v2/queues").status, 200)
            self.assertTrue(SANITIZED or resident_kb(server) < 24 * 1024)
            responses = [client.response() for client in clients]
            for client in clients:
                client.close()
            for response in responses:
                if response.status == 200:
                    self.assertTrue(json.loads(response.body)["messages"])
                else:
                    self.assert_refused(response)
            # Those that the worker saw first.
            self.assertTrue(any(response.status == 200 for response in responses))
            eventually(lambda: fetch("GET", listing).status == 200)
            self.assertEqual(self.walk(fetch, listing), 20)

    def test_a_claim_takes_fewer_when_there_is_no_memory_for_all(self):
        body = b'{"messages":[{"body":"' + b"x" * 250000 + b'"}]}'
        with Server("--max-memory", "8M", "--workers", "1") as server, Fetcher(server) as fetch:
            for _ in range(20):
                self.assertEqual(fetch.post("big", body).status, 201)
            taken, claims = [], 0
            while len(taken) < 20:
                claim = fetch("POST", "/v2/queues/big/claims?limit=20", b"{}")
                self.assertEqual(claim.status, 201)
                taken += [m["id"] for m in json.loads(claim.body)["messages"]]
                claims += 1
            self.assertEqual(len(set(taken)), 20)
            self.assertGreater(claims, 1)
            self.assertEqual(fetch("POST", "/v2/queues/big/claims", b"{}").status, 204)

    def walk(self, fetch, href):
        """How many messages a listing shows, page by page; no page shows none but the last."""
        shown = 0
        while True:
            page = json.loads(fetch("GET", href).body)
            if not page["messages"]:
                return shown
            shown += len(page["messages"])
            href = page["links"][0]["href"]


class Descriptors(unittest.TestCase):
    def test_open_connections_are_served_without_free_descriptors(self):
        with Server("--workers", "2") as server:
            pid = server.process.pid
            before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            idle = descriptors(server)
            fetchers = [Fetcher(server) for _ in range(8)]
            for fetch in fetchers:
                self.assertEqual(fetch("PUT", "/v2/queues/q", b"{}").status // 100, 2)
            for times in (1, 2):
                eventually(lambda: descriptors(server) == idle + len(fetchers))
                used = descriptor_numbers(server)
                free = min(set(range(len(used) + 1)) - used)
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, before[1]))
                for _ in range(10):
                    self.knock(server)
                    for fetch in fetchers * 5:
                        self.assertEqual(fetch.post("q", b'{"messages":[{"body":1}]}').status,
                                         201)
                resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
                eventually(lambda: server.fetch("GET", "/v2/queues").status == 200)
                self.assertEqual(sum("cannot_accept" in line for line in server.log), times)
                server.logged("accepting_again")
            self.assertEqual(fetchers[0].counts("q")[2], 2 * 10 * 5 * len(fetchers))
            for fetch in fetchers:
                fetch.client.close()

    def test_few_descriptors_are_shared_out_sensibly(self):
        """With 128, dozens are for connections; and what is promised can be had at a time."""
        few = 128
        for workers, least in ((2, 60), (16, 16)):  # a worker takes one for large heads
            with Server("--workers", str(workers), preexec_fn=lambda: resource.setrlimit(
                    resource.RLIMIT_NOFILE, (few, few))) as server:
                lowered = server.logged("max_connections_lowered")
                self.assertIn("open_files=%d" % few, lowered)
                promised = int(re.search(r"max_connections=(\d+)", lowered)[1])
                self.assertGreaterEqual(promised, least)
                fetchers = [Fetcher(server) for _ in range(promised)]
                for fetch in fetchers:
                    self.assertEqual(fetch.post("q", b'{"messages":[{"body":1}]}').status, 201)
                for _ in range(few):  # lingering sockets make capacity for each other
                    self.knock(server)
                for fetch in fetchers:
                    self.assertEqual(fetch.counts("q")[2], promised)
                    fetch.client.close()
                eventually(lambda: server.fetch("GET", "/v2/queues").status == 200)
                self.assertFalse(any("cannot_accept" in line for line in server.log))

    def knock(self, server):
        """A new client gets a response that says when to retry."""
        with server.connect() as refused:
            self.assertIn(b"HTTP/1.1 503 ", refused.rest())


class ManyQueues(unittest.TestCase):
    PAGE = 1000
    AT_ONCE = 500  # requests in a pipeline

    def pipeline(self, client, requests):
        """The statuses of all these requests."""
        seen = set()
        for i in range(0, len(requests), self.AT_ONCE):
            some = requests[i:i + self.AT_ONCE]
            client.send(b"".join(some))
            seen.update(client.response().status for _ in some)
        return seen

    def listed(self, fetch):
        """The names of all queues, page by page."""
        target, seen = "/v2/queues?limit=%d" % self.PAGE, []
        while target is not None:
            page = json.loads(fetch("GET", target).body)
            seen += [queue["name"] for queue in page["queues"]]
            target = page["links"][0]["href"] if page["links"] else None
        return seen

    def test_very_many_queues_are_made_listed_used_and_deleted(self):
        names = ["queue-%06d" % i for i in range(QUEUES)]
        shuffled = random.Random(1).sample(names, len(names))
        with Server("--max-queues-per-page", str(self.PAGE)) as server, Fetcher(server) as fetch:
            puts = [request("PUT", "/v2/queues/" + name, b"{}") for name in shuffled]
            self.assertEqual(self.pipeline(fetch.client, puts), {201})
            self.assertEqual(self.pipeline(fetch.client, puts[:self.AT_ONCE]), {204})
            self.assertEqual(self.listed(fetch), names)
            self.assertEqual(self.pipeline(fetch.client, [post(n) for n in shuffled[::10]]), {201})
            for name in shuffled[:100]:
                self.assertEqual(fetch.counts(name)[2], 1 if name in shuffled[::10] else 0)
            half = ["/v2/queues/" + name for name in names[::2]]
            self.assertEqual(self.pipeline(fetch.client, [request("DELETE", t) for t in half]),
                             {204})
            self.assertEqual(self.listed(fetch), names[1::2])
            rest = ["/v2/queues/" + name for name in shuffled]
            self.assertEqual(self.pipeline(fetch.client, [request("DELETE", t) for t in rest]),
                             {204})
            response = json.loads(fetch("GET", "/v2/queues?with_count=true").body)
            self.assertEqual(response, {"queues": [], "links": [], "count": 0})


if __name__ == "__main__":
    unittest.main()
