#!/usr/bin/python3
"""Very many that wait, and a server that stops or runs out of something while they do.

    waiting_many_test.py CLAIMD

    ATTACK_WAITERS   how many are very many (4000; with sanitizers 500)
"""

import os
import re
import resource
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import (RESTLESS, SANITIZED, Server, descriptors, eventually,  # noqa: E402
                     more_descriptors, post, processor_s, resident_kb, stand_still)
from waiting import (LONG, Case, Crowd, has_response, applied, claim, claim_any, pop,  # noqa: E402
                     put, send, settle)

MANY = int(os.environ.get("ATTACK_WAITERS", "500" if SANITIZED else "4000"))
WATCHED_S = 3  # how long a server that has nothing to do is looked at


# For so many connections a worker opens one more section, with a descriptor that it keeps
# (section.h).
SECTIONS = MANY // 512 + 1


def voluntary_switches(server):
    """How often its threads have gone to sleep, that is how often they had woken up."""
    total, tasks = 0, "/proc/%d/task" % server.process.pid
    for task in os.listdir(tasks):
        with open("%s/%s/status" % (tasks, task), encoding="ascii") as f:
            total += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", f.read(), re.M)[1])
    return total


class VeryMany(Case):
    options = ("--max-waiters", str(MANY), "--workers", "2")

    def setUp(self):
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        more_descriptors()
        super().setUp()

    def crowd(self, data, count=MANY):
        crowd = Crowd(self.server, count, data)
        self.addCleanup(lambda: crowd.process.poll() is None and crowd.kill())
        settle(self.server)
        return crowd

    def is_full(self):
        """No client may wait any more."""
        with self.server.connect() as client:
            client.send(claim("full", 1))
            return applied(client.response()) is None

    def test_killed_at_once_they_leave_nothing_behind(self):
        idle, sizes = descriptors(self.server), []
        for data in (claim("q", LONG), pop("q", LONG) + post("p"),
                     claim_any(*["q-%d" % n for n in range(32)], wait=LONG), claim("q", LONG)):
            crowd = self.crowd(data)
            eventually(self.is_full)
            self.assertGreaterEqual(descriptors(self.server), idle + MANY)
            crowd.kill()
            eventually(lambda: descriptors(self.server) <= idle + SECTIONS)
            self.assertFalse(self.is_full())
            sizes.append(resident_kb(self.server))
        # Each of them has given its place back: exactly so many may wait again.
        crowd = self.crowd(claim("q", LONG), MANY - 1)
        self.assertFalse(self.is_full())
        last = self.waiter(claim("q", LONG))
        self.assertTrue(self.is_full())
        last.close()
        crowd.kill()
        eventually(lambda: not self.is_full())
        # AddressSanitizer keeps for a while what was freed.
        self.assertTrue(SANITIZED or sizes[-1] < sizes[0] * 1.3 + 8192, sizes)

    def test_all_get_responses_when_the_time_is_over(self):
        crowd = self.crowd(claim("q", 5))
        self.assertEqual(crowd.empty_handed(), MANY)

    def test_all_get_responses_when_the_queue_is_deleted(self):
        self.fetch("PUT", "/v2/queues/q")
        crowd = self.crowd(claim("q", LONG))
        eventually(self.is_full)
        self.assertEqual(self.fetch("DELETE", "/v2/queues/q").status, 204)
        self.assertEqual(crowd.empty_handed(), MANY)

    def test_one_post_wakes_few_and_costs_little(self):
        crowd = self.crowd(claim("q", LONG, limit=1))
        eventually(self.is_full)
        before = processor_s(self.server)
        for n in range(20):
            put(self.server, "q", n)
        eventually(lambda: self.server.stats("q")[0] == 20)
        self.assertLess(processor_s(self.server) - before, 0.5 + 5 * SANITIZED)
        crowd.kill()

    def stop_with_all(self, signals):
        crowd = self.crowd(claim("q", LONG))
        eventually(self.is_full)
        begun = time.monotonic()
        for _ in range(signals):
            self.server.signal()
        empty_handed = crowd.empty_handed()
        self.assertEqual(self.server.wait(), 0)
        self.assertLess(time.monotonic() - begun, 10 + 20 * SANITIZED)
        return empty_handed

    def test_a_stop_responds_to_all(self):
        self.assertEqual(self.stop_with_all(1), MANY)
        self.server.logged("requests_cut_off=0")

    def test_two_stops_end_as_well_as_one(self):
        self.stop_with_all(2)

    def test_killed_while_the_server_stops(self):
        crowd = self.crowd(claim("q", LONG))
        eventually(self.is_full)
        stand_still(self.server)
        self.server.signal()
        crowd.kill()
        self.server.signal(signal.SIGCONT)
        self.assertEqual(self.server.wait(), 0)

    @unittest.skipIf(RESTLESS, "ThreadSanitizer's own thread wakes up")
    def test_they_cost_nothing_while_nothing_happens(self):
        crowd = self.crowd(claim("q", LONG), min(MANY, 1000))
        some = self.crowd(claim_any("a", "b", "c", wait=LONG), 100)

        def is_at_rest():
            before = voluntary_switches(self.server), processor_s(self.server)
            time.sleep(WATCHED_S)
            return (voluntary_switches(self.server), processor_s(self.server)) == before
        self.assertTrue(any(is_at_rest() for _ in range(5)))
        crowd.kill()
        some.kill()


class Exhaustion(Case):
    def test_memory_that_runs_out_is_a_clear_response(self):
        with Server("--max-memory", "4M", "--workers", "1") as self.server:
            idle = descriptors(self.server)
            names = ["queue-number-%d" % n for n in range(32)]
            clients = []
            for _ in range(900):
                clients.append(self.server.connect())
                clients[-1].send(claim_any(*names, wait=LONG))
            settle(self.server)
            time.sleep(0.5)
            refused = [client.response().status for client in clients if has_response(client)]
            self.assertLessEqual(set(refused), {503, 204})
            self.assertLess(resident_kb(self.server), 64 * 1024 + 2**20 * SANITIZED)
            for client in clients:
                client.reset()
            eventually(lambda: descriptors(self.server) <= idle + SECTIONS)
            for _ in range(3):
                client = self.waiter(claim_any(*names, wait=LONG))
                put(self.server, names[-1], 1)
                self.take(client, 1)

    def test_a_full_memory_budget_still_allows_waiting_and_claiming(self):
        with Server("--max-memory", "4M") as self.server:
            body = b'{"messages":[{"body":"' + b"x" * 100000 + b'"}]}'
            for _ in range(100):
                response = self.fetch("POST", "/v2/queues/full/messages", body)
            self.assertEqual(response.status, 503)
            client = send(self.server, claim("other", 1))
            self.assertIn(client.response().status, (204, 503))
            client.send(claim("full", LONG, limit=2))
            response = client.response()
            self.assertEqual(response.status, 201)
            client.close()

    def test_waiters_are_served_without_free_descriptors(self):
        few = 128
        with Server("--workers", "2", preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_NOFILE, (few, few))) as self.server:
            idle = descriptors(self.server)
            promised = int(re.search(r"max_connections=(\d+)",
                                     self.server.logged("max_connections_lowered"))[1])
            sender = self.server.connect()
            clients = []
            for _ in range(promised - 1):
                clients.append(self.server.connect())
                clients[-1].send(claim("q", LONG, limit=1))
            for _ in range(50):
                with self.server.connect() as knocking:
                    self.assertIn(b"HTTP/1.1 503 ", knocking.rest())
            for _ in clients:
                sender.send(post("q"))
                self.assertEqual(sender.response().status, 201)
            self.assertEqual([client.response().status for client in clients],
                             [201] * len(clients))
            sender.close()
            for client in clients:
                client.close()
            eventually(lambda: descriptors(self.server) <= idle)


if __name__ == "__main__":
    unittest.main()
