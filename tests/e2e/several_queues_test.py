#!/usr/bin/python3
"""Claims of several queues, and the numbers of claims (docs/api.md 11.3 and 12).

    several_queues_test.py CLAIMD
"""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import CLIENT_ID, Server  # noqa: E402
from waiting import (AT_ONCE_S, LONG, TERMS, Case, answered, claim, claim_any,  # noqa: E402
                     messages, prefer, put, send)


class Several(Case):
    """Claims of several queues."""

    def test_the_first_queue_that_has_a_message_is_claimed_from(self):
        put(self.server, "b", "b")
        put(self.server, "c", "c")
        for queues, value in ((("a", "b", "c"), "b"), (("c", "b"), "c")):
            client = send(self.server, claim_any(*queues))
            answer = self.take(client, value)
            place = answer.headers["location"]
            self.assertTrue(place.startswith("/v2/queues/%s/claims/" % value), place)
            href = messages(answer)[0]["href"]
            self.assertTrue(href.startswith("/v2/queues/%s/messages/" % value), href)
            self.assertEqual(self.ask("GET", place).status, 200)
            self.assertEqual(self.ask("DELETE", href).status, 204)
            client.close()

    def test_a_post_to_any_of_thirty_two_ends_the_waiting(self):
        names = ["q-%d" % n for n in range(32)]
        for name in (names[0], names[17], names[31]):
            client = self.waiter(claim_any(*names, wait=LONG))
            put(self.server, name, name)
            self.take(client, name)
        # Of the other queues nothing is left over: the next one to wait is served there.
        client = self.waiter(claim("q-5", LONG))
        put(self.server, "q-5", 1)
        self.take(client, 1)

    def test_who_waits_at_several_is_served_at_his_place_in_each(self):
        first = self.waiter(claim_any("a", "b", wait=LONG))
        second = self.waiter(claim("b", LONG))
        third = self.waiter(claim_any("b", "a", wait=LONG))
        put(self.server, "b", 1)
        self.take(first, 1)
        put(self.server, "b", 2)
        self.take(second, 2)
        put(self.server, "a", 3)
        self.take(third, 3)

    def test_one_queue_named_twice_is_one(self):
        client = self.waiter(claim_any("a", "a", "a", wait=LONG))
        put(self.server, "a", 1, 2)
        self.take(client, 1, 2)

    def test_limit_and_terms_are_as_elsewhere(self):
        put(self.server, "a", *range(15))
        for limit, count in ((3, 3), (None, 10)):
            client = send(self.server, claim_any("a", limit=limit))
            self.assertEqual(len(messages(client.response())), count)
            client.close()
        for body in (b"{", b"[]", b'{"ttl":0}', b'{"grace":"x"}'):
            self.assertEqual(self.ask("POST", "/claimd/claims?queue=a", body).status, 400)

    def test_mistakes(self):
        wrong = [("", "Missing parameter"), ("?limit=1", "Missing parameter"),
                 ("?queue=", "Missing parameter"),
                 ("?" + "&".join("queue=q%d" % n for n in range(33)), "Invalid API request"),
                 ("?queue=a&limit=0", "Invalid API request"),
                 ("?queue=a&limit=21", "Invalid API request"),
                 ("?queue=a&limit=x", "Invalid parameter")]
        wrong += [("?queue=a&queue=" + name, "Invalid queue identification")
                  for name in ("a%20b", "a,b", "a%2Cb", "%00", "x" * 65, "%C3%A4", "a/b", "%2F",
                               "a+b", "%zz")]
        for query, title in wrong:
            for headers in ((), prefer("wait=20")):
                with self.subTest(query=query[:30]):
                    answer = self.ask("POST", "/claimd/claims" + query, TERMS, headers=headers)
                    self.assertEqual(answer.status, 400, answer)
                    self.assertEqual(json.loads(answer.body)["title"], title)

    def test_paths_and_methods(self):
        for method in ("GET", "PUT", "DELETE", "PATCH"):
            answer = self.ask(method, "/claimd/claims?queue=a", b"{}")
            self.assertEqual(answer.status, 405)
            self.assertEqual(answer.headers["allow"], "POST, OPTIONS")
        for target in ("/claimd", "/claimd/claims/x", "/claimd/queues", "/claimd/p/claims",
                       "/v2/claims", "/claimd/claim"):
            self.assertEqual(self.ask("POST", target, b"{}").status, 404, target)

    def test_headers_are_checked_as_in_v2(self):
        for header in (b"Client-ID: " + CLIENT_ID.encode() + b"\r\n", b"X-Project-ID: p\r\n"):
            with self.server.connect() as client:
                client.send(claim_any("a").replace(header, b""))
                self.assertEqual(client.response().status, 400)

    def test_the_deletion_of_any_ends_the_waiting(self):
        for name in ("a", "b", "c"):
            for queue in ("a", "b", "c"):
                self.ask("PUT", "/v2/queues/" + queue)
            client = self.waiter(claim_any("a", "b", "c", wait=LONG))
            self.assertEqual(self.ask("DELETE", "/v2/queues/" + name).status, 204)
            self.assertTrue(answered(client, AT_ONCE_S))
            self.assertEqual(client.response().status, 204)


class ClaimNumber(Case):
    def number(self, answer):
        text = answer.headers["claim-number"]
        self.assertRegex(text, "^[1-9][0-9]*$")
        self.assertLess(int(text), 2**63)
        return int(text)

    def claim(self, version="v2", queue="q"):
        """The path and the number of a new claim of one message."""
        put(self.server, queue, 1)
        with self.server.connect() as client:
            client.send(claim(queue, version=version, limit=1))
            answer = client.response()
        self.assertEqual(answer.status, 201)
        return answer.headers["location"], self.number(answer)

    def test_it_is_the_same_when_shown_and_renewed_and_grows_in_all_versions(self):
        last = 0
        for version in ("v2", "v1.1", "v1", "v2", "v1", "v1.1"):
            place, number = self.claim(version)
            self.assertGreater(number, last)
            last = number
            for _ in range(2):
                self.assertEqual(self.number(self.ask("GET", place)), number)
                self.assertEqual(self.number(self.ask("PATCH", place, TERMS)), number)
        with self.server.connect() as client:
            put(self.server, "q", 1)
            client.send(claim_any("other", "q"))
            self.assertGreater(self.number(client.response()), last)

    def test_only_answers_with_a_claim_have_one(self):
        place, _ = self.claim()
        for method, target in (("DELETE", place), ("GET", place), ("GET", "/v2/queues/q"),
                               ("DELETE", "/v2/queues/q/messages?pop=1"),
                               ("POST", "/v2/queues/q/claims")):
            answer = self.ask(method, target, TERMS if method == "POST" else None)
            self.assertNotIn("claim-number", answer.headers)
        self.assertNotIn("claim-number", self.ask("PATCH", place, TERMS).headers)

    def test_it_grows_over_releases_purges_deletions_and_restarts(self):
        last = 0

        def grows():
            nonlocal last
            place, number = self.claim()
            self.assertGreater(number, last)
            last = number
            return place
        self.ask("DELETE", grows())
        grows()
        self.ask("POST", "/v2/queues/q/purge")
        for _ in range(20):
            grows()
            self.ask("DELETE", "/v2/queues/q")
        grows()
        self.assertEqual(self.server.stop(), 0)
        with Server(*self.options) as self.server:
            grows()

    def test_who_waited_has_a_number_too(self):
        _, before = self.claim()
        client = self.waiter(claim("q", LONG))
        put(self.server, "q", 1)
        self.assertGreater(self.number(self.take(client, 1)), before)


if __name__ == "__main__":
    unittest.main()
