#!/usr/bin/python3
"""Requests that want very much done, garbage that the server need not keep, and
claims that are over: others are served in between, and memory follows what is alive.

    attack_work_test.py CLAIMD

    ATTACK_CYCLES   posts that are claimed and deleted (100000; with sanitizers 10000)

Work is measured as processor time of the server, and compared with other work of the same
server: never with a clock.
"""

import collections
import json
import os
import re
import statistics
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import (SANITIZED, Fetcher, Server, eventually, peak_kb, post,  # noqa: E402
                     processor_s, request, resident_kb)

CYCLES = int(os.environ.get("ATTACK_CYCLES", "10000" if SANITIZED else "100000"))
FEWER = 10 if SANITIZED else 1  # a sanitizer's build is given a part of the work
AT_ONCE = Fetcher.AT_ONCE
OTHER = {"Client-ID": "d1b0a1c2-0000-4000-8000-00000000000b"}


def batch(count, body=b"1", more=b""):
    return b'{"messages":[' + b",".join([b'{"body":' + body + more + b"}"] * count) + b"]}"


def pages(fetch, target, kind, client_id=None):
    """The documents of a listing, page by page along its links, to the end."""
    seen = []
    while target is not None:
        page = json.loads(fetch("GET", target, client_id=client_id).body)
        seen.append(page[kind])
        links = page["links"]
        # An empty page is the last one: that is where clients stop.
        target = links[0]["href"] if links and page[kind] else None
    return seen


class Fairness(unittest.TestCase):
    """
    While one client's request looks at very much, the same worker serves another: what the
    server does between that other one's question and its response is a small part of it all.
    """

    WAITS = 11

    def beside(self, server, heavy, times=1):
        """
        Runs heavy(fetch) in `times` connections, again and again. Returns its result, the
        processor time it takes alone, and those that small requests had to wait for.
        """
        with Fetcher(server) as fetch:
            before = processor_s(server)
            result = heavy(fetch)
            whole = processor_s(server) - before
        others, enough = set(), threading.Event()

        def again():
            with Fetcher(server) as fetch:
                while not enough.is_set():
                    if heavy(fetch) != result:
                        others.add("another result")
        threads = [threading.Thread(target=again) for _ in range(times)]
        with Fetcher(server) as small:
            small("GET", "/v2/queues/nothing/stats")
            for thread in threads:
                thread.start()
            waited = [self.wait(server, small) for _ in range(self.WAITS)]
            enough.set()
            for thread in threads:
                thread.join()
        self.assertEqual(others, set())
        return result, whole, waited

    def wait(self, server, small):
        """The work of the server before it responds to a small request."""
        before = processor_s(server)
        self.assertEqual(small("GET", "/v2/queues/nothing/stats").status, 200)
        return processor_s(server) - before

    def assert_fair(self, whole, waited, times=1):
        bound = max(0.005 * (20 if SANITIZED else 1), whole * times / 3)
        self.assertLess(statistics.median(waited), bound, (whole, waited))

    def filtered(self, metadata, count, query, shown):
        """A listing of queues with metadata, of which those in `shown` match."""
        names = ["queue-%06d" % i for i in range(count)]
        with Server("--workers", "1", "--max-queue-metadata", "1M",
                    "--request-seconds", "600") as server:
            with Fetcher(server) as fetch:
                fetch.all((request("PUT", "/v2/queues/" + name, metadata(i))
                           for i, name in enumerate(names)), 201)
            alone, whole, waited = self.beside(server, lambda a: pages(
                a, "/v2/queues?limit=20&" + query, "queues"))
            found = [queue["name"] for page in alone for queue in page]
            self.assertEqual(found, [names[i] for i in shown])
            self.assertTrue(all(alone[:-1]), "an empty page before the last")
            self.assert_fair(whole, waited)

    def test_filtering_a_listing_of_queues_by_metadata(self):
        padding = ",".join('"m%d":"%s"' % (i, "x" * 30) for i in range(1200))
        query = "&".join("f%d=%d" % (i, i) for i in range(80))
        match = ",".join('"f%d":%d' % (i, i) for i in range(80))
        near = match.replace('"f79":79', '"f79":78')
        count = 200 // FEWER
        shown = [3, count // 2, count // 2 + 1, count - 1]

        def metadata(i):
            return ("{%s,%s}" % (padding, match if i in shown else near)).encode()
        self.assertGreater(len(metadata(0)), 46000)
        with self.subTest(matches="some"):
            self.filtered(metadata, count, query, shown)
        with self.subTest(matches="none"):
            self.filtered(metadata, count, query.replace("f79=79", "f79=77"), [])

    def test_filtering_very_many_queues_by_name(self):
        count = 100000 // FEWER
        for query, shown in (("name=zzz", []), ("name=99", [i for i in range(count)
                                                          if "99" in "%06d" % i])):
            with self.subTest(query=query):
                self.filtered(lambda i: b"{}", count, query, shown)

    def listing(self, query, more, mine, fill):
        """A listing of a queue in which many messages are not shown; `mine` are."""
        with Server("--workers", "1", "--request-seconds", "600") as server:
            with Fetcher(server) as fetch:
                expected = fill(fetch, mine, more)
            target = "/v2/queues/q/messages?limit=20" + query
            alone, whole, waited = self.beside(server, lambda a: [
                [m["body"] for m in page] for page in pages(a, target, "messages")], times=4)
            self.assertEqual([body for page in alone for body in page], expected)
            self.assertTrue(all(alone[:-1]), "an empty page before the last")
            self.assert_fair(whole, waited, times=4)

    HIDDEN = 500000 // FEWER

    def fill(self, fetch, shown, more):
        """Messages that are hidden, and between them some that are shown."""
        each = 5000 // FEWER
        expected = []
        for i in range(self.HIDDEN // each):
            self.assertEqual(fetch("POST", "/v2/queues/q/messages", batch(each, b"0", more))
                             .status, 201)
            if i in shown:
                self.assertEqual(fetch("POST", "/v2/queues/q/messages", batch(1, b"%d" % i),
                                       client_id=OTHER["Client-ID"]).status, 201)
                expected.append(i)
        return expected

    def test_listing_behind_ones_own_messages(self):
        for shown in ((), (0, 50, 51, 99)):
            with self.subTest(shown=shown):
                self.listing("", b"", shown, self.fill)

    def test_listing_behind_delayed_messages(self):
        with self.subTest(shown=2):
            self.listing("&echo=true&include_claimed=true", b',"delay":900', (0, 99), self.fill)

    def test_a_claim_that_meets_very_many_dead_letters(self):
        count, each = 200000 // FEWER, 10000
        body = b'{"_max_claim_count":1,"_dead_letter_queue":"dead"}'
        with Server("--workers", "1", "--max-messages-per-claim-or-pop", str(each),
                    "--request-seconds", "600") as server, Fetcher(server) as fetch:
            def prepare():
                fetch.all([request("DELETE", "/v2/queues/" + q) for q in ("q", "dead")], 204)
                self.assertEqual(fetch("PUT", "/v2/queues/q", body).status, 201)
                fetch.all([post("q", batch(each // 2))] * (2 * count // each), 201)
                claims = []
                for _ in range(count // each):
                    claims.append(fetch("POST", "/v2/queues/q/claims?limit=%d" % each, b"{}"))
                    self.assertEqual(claims[-1].status, 201)
                for claim in claims:
                    self.assertEqual(fetch("DELETE", claim.headers["location"]).status, 204)

            def heavy(a):
                """Claims until nothing is left, however little a claim may move at once."""
                for _ in range(count):
                    if a("POST", "/v2/queues/q/claims", b"{}").status == 204 and \
                            a.total("q") == 0:
                        return "empty"
                return "never"

            def longest_wait():
                prepare()
                waited, results = [], []
                with Fetcher(server) as other:
                    thread = threading.Thread(target=lambda: results.append(heavy(fetch)))
                    thread.start()
                    while thread.is_alive():
                        waited.append(self.wait(server, other))
                    thread.join()
                    self.assertEqual(results, ["empty"])
                    self.assertEqual(other.total("dead"), count)
                return max(waited)

            prepare()
            before = processor_s(server)
            self.assertEqual(heavy(fetch), "empty")
            whole = processor_s(server) - before
            limit = max(0.01 * (20 if SANITIZED else 1), whole / 3)
            # Of all the work, no other request waits for much. On a busy machine the server may work
            # before it sees one: that does not happen each time.
            waits = []
            while len(waits) < 3 and not (waits and waits[-1] < limit):
                waits.append(longest_wait())
            self.assertLess(waits[-1], limit, (whole, waits))


class Garbage(unittest.TestCase):
    """Deleted queues give their memory back as fast as new ones can take it."""

    CLIENTS = 6
    EACH = 5000 // FEWER
    SPARE_KB = 16 * 1024

    def together(self, work):
        """Runs work(number) for each client, and gives on what went wrong."""
        wrong = []

        def run(number):
            try:
                work(number)
            except Exception as error:  # pylint: disable=broad-except
                wrong.append(error)
        threads = [threading.Thread(target=run, args=(i,)) for i in range(self.CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if wrong:
            raise wrong[0]

    def live_kb(self, body):
        """Kilobytes of memory that what all clients have alive takes, by measurement."""
        with Server() as server, Fetcher(server) as fetch:
            fetch("GET", "/v2/queues")
            before = resident_kb(server)
            for i in range(self.CLIENTS):
                self.assertEqual(fetch("POST", "/v2/queues/q-%d/messages" % i, body).status, 201)
            return before, resident_kb(server) - before

    def churn(self, rounds, end, options=("--max-memory", "32M")):
        """Each client posts and makes garbage of it; `end` are the requests for that."""
        body = batch(self.EACH)
        empty, live = self.live_kb(body)
        with Server(*options) as server:
            def work(number):
                with Fetcher(server) as fetch:
                    for i in range(rounds):
                        queue = "q-%d" % number
                        requests = [post(queue, body)] + end(queue)
                        fetch.client.send(b"".join(requests))
                        got = [fetch.client.response().status for _ in requests]
                        self.assertEqual(got, [201] + [204] * len(end(queue)), (number, i))
            self.together(work)
            with Fetcher(server) as fetch:  # and nothing has been lost or kept
                for i in range(self.CLIENTS):
                    self.assertEqual(fetch.total("q-%d" % i), 0)
            if not SANITIZED:
                self.assertLess(peak_kb(server), empty + 1.5 * live + self.SPARE_KB)

    ROUNDS = 300

    def test_posting_and_purging(self):
        self.churn(self.ROUNDS, lambda q: [request("POST", "/v2/queues/%s/purge" % q)])

    def test_posting_and_deleting_the_queue(self):
        self.churn(self.ROUNDS, lambda q: [request("DELETE", "/v2/queues/" + q)])

    def test_posting_and_purging_in_many_queues(self):
        """No client comes back to the place where the garbage is."""
        body = batch(self.EACH)
        empty, live = self.live_kb(body)
        with Server("--max-memory", "64M", "--shards", "64") as server:
            def work(number):
                with Fetcher(server) as fetch:
                    for i in range(self.ROUNDS):
                        queue = "q-%d-%d" % (number, i)
                        fetch.client.send(post(queue, body)
                                          + request("DELETE", "/v2/queues/" + queue))
                        got = [fetch.client.response().status for _ in range(2)]
                        self.assertEqual(got, [201, 204], (number, i))
            self.together(work)
            if not SANITIZED:
                self.assertLess(peak_kb(server), empty + 1.5 * live + self.SPARE_KB)

    def test_the_metadata_of_deleted_queues(self):
        """Queues of 60 KB each, made and deleted."""
        metadata = b'{"a":"%s"}' % (b"x" * 60000)
        with Server("--max-memory", "16M") as server:
            before = resident_kb(server)

            def work(number):
                with Fetcher(server) as fetch:
                    for i in range(self.ROUNDS):
                        name = "/v2/queues/q-%d-%d" % (number, i)
                        fetch.client.send(request("PUT", name, metadata)
                                          + request("DELETE", name))
                        got = [fetch.client.response().status for _ in range(2)]
                        self.assertEqual(got, [201, 204], (number, i))
            self.together(work)
            if not SANITIZED:
                self.assertLess(peak_kb(server), before + self.SPARE_KB)

    def test_claims_of_deleted_queues(self):
        body = batch(self.EACH)
        empty, live = self.live_kb(body)
        with Server("--max-memory", "64M") as server:
            def work(number):
                queue = "q-%d" % number
                claims = [request("POST", "/v2/queues/%s/claims?limit=20" % queue, b"{}")] \
                    * (self.EACH // 100)
                with Fetcher(server) as fetch:
                    for i in range(self.ROUNDS // 2):
                        requests = [post(queue, body)] + claims + \
                            [request("DELETE", "/v2/queues/" + queue)]
                        fetch.client.send(b"".join(requests))
                        got = [fetch.client.response().status for _ in requests]
                        self.assertEqual(got, [201] * (len(requests) - 1) + [204], (number, i))
            self.together(work)
            if not SANITIZED:
                self.assertLess(peak_kb(server), empty + 2 * live + self.SPARE_KB)

    def test_messages_that_expire_unread(self):
        """
        Lives of one second. The number of live messages follows from the times of the responses:
        at most the messages that were claimed within a second and a little before each instant.
        """
        posts, ttl_s = 120, 1
        body = batch(self.EACH, b"1", b',"ttl":%d' % ttl_s)
        empty, live = self.live_kb(batch(self.EACH))
        per_post_kb = live / self.CLIENTS
        with Server("--min-message-ttl", "1") as server:
            peaks, spans, lock = [0], collections.deque(), threading.Lock()

            def work(number):
                with Fetcher(server) as fetch:
                    for i in range(posts):
                        begin = time.monotonic()
                        response = fetch("POST", "/v2/queues/q-%d-%d/messages"
                                         % (number, i % 50), body)
                        self.assertEqual(response.status, 201)
                        with lock:
                            spans.append((begin, time.monotonic() + ttl_s))
                            while spans[0][1] < begin:
                                spans.popleft()
                            peaks.append(len(spans))
            self.together(work)
            with Fetcher(server) as fetch:
                eventually(lambda: all(fetch.total("q-0-%d" % i) == 0 for i in range(50)))
            if not SANITIZED:
                self.assertLess(peak_kb(server),
                                empty + 1.5 * per_post_kb * (max(peaks) + self.CLIENTS)
                                + self.SPARE_KB)


class FinishedClaims(unittest.TestCase):
    """A claim that holds nothing any more is over, and takes no memory."""

    PATH = "/v2/queues/q/claims"

    def cycles(self, fetch, count, limit, finish):
        """Posts, claims and finishes messages, many at a time; all must work."""
        for _ in range(count // AT_ONCE):
            fetch.all([post("q")] * AT_ONCE, 201)
            claims = fetch.all([request("POST", self.PATH + "?limit=%d" % limit,
                                        b'{"ttl":300,"grace":60}')] * (AT_ONCE // limit), 201)
            messages = [m["href"] for claim in claims
                        for m in json.loads(claim.body)["messages"]]
            self.assertEqual(len(messages), AT_ONCE)
            fetch.all(finish(claims, messages), 204)

    def test_cycles_without_end_fit_into_a_small_budget(self):
        def one_by_one(_, messages):
            return [request("DELETE", href) for href in messages]

        def several(_, messages):
            ids = [re.sub(r"\?.*", "", href).rpartition("/")[2] for href in messages]
            return [request("DELETE", "/v2/queues/q/messages?ids=" + ",".join(ids[i:i + 20]))
                    for i in range(0, len(ids), 20)]

        def purge(*_):
            return [request("POST", "/v2/queues/q/purge")]

        with Server("--max-memory", "4M") as server, Fetcher(server) as fetch:
            self.cycles(fetch, CYCLES, 1, one_by_one)
            self.cycles(fetch, CYCLES // 5, 10, several)
            self.cycles(fetch, CYCLES // 5, 1, purge)
            self.assertEqual(fetch.total("q"), 0)


if __name__ == "__main__":
    unittest.main()
