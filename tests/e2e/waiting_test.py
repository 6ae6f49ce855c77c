#!/usr/bin/python3
"""Requests that wait for messages, and the numbers of claims (docs/api.md 11 and 12).

    waiting_test.py CLAIMD
"""

import json
import os
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import post, request  # noqa: E402
from waiting import (AT_ONCE_S, EACH, LONG, TERMS, Case, answered, applied, bodies,  # noqa: E402
                     claim, claim_any, messages, pop, prefer, put, send, settle, stats)


class Ends(Case):
    """What ends the waiting."""

    def each(self, what):
        for name, ask in EACH:
            with self.subTest(request=name):
                what(name.replace(" ", "-"), ask)

    def test_a_post(self):
        def go(queue, ask):
            client = self.waiter(ask(queue, LONG))
            put(self.server, queue, queue)
            answer = self.take(client, queue)
            self.assertEqual(applied(answer), "wait=%d" % LONG)
        self.each(go)

    def together(self, prepare, ask_for):
        """Has all of them wait at the same time; (queue, request, client) of each."""
        waiting = []
        for name, ask in EACH:
            queue = name.replace(" ", "-")
            prepare(queue)
            waiting.append((queue, ask, self.waiter(ask(queue, ask_for))))
        return waiting

    def test_the_end_of_a_delay(self):
        for queue, _, client in self.together(
                lambda queue: put(self.server, queue, queue, delay=2), LONG):
            with self.subTest(queue=queue):
                self.take(client, queue)

    def test_the_end_of_a_claim(self):
        def hold(queue):
            put(self.server, queue, queue)
            self.claimed(queue, b'{"ttl":2,"grace":0}')
        for queue, _, client in self.together(hold, LONG):
            with self.subTest(queue=queue):
                self.take(client, queue)

    def test_a_release(self):
        def go(queue, ask):
            put(self.server, queue, 1)
            place = self.claimed(queue)
            client = self.waiter(ask(queue, LONG))
            self.assertEqual(self.ask("DELETE", place).status, 204)
            self.take(client, 1)
        self.each(go)

    def test_a_dead_letter_that_moves_in(self):
        def go(queue, ask):
            source = "source-of-" + queue
            policy = {"_max_claim_count": 1, "_dead_letter_queue": queue}
            self.ask("PUT", "/v2/queues/" + source, json.dumps(policy).encode())
            put(self.server, source, 1)
            self.assertEqual(self.ask("DELETE", self.claimed(source)).status, 204)
            client = self.waiter(ask(queue, LONG))
            answer = self.ask("POST", "/v2/queues/%s/claims" % source, TERMS)
            self.assertEqual(answer.status, 204, answer)
            self.take(client, 1)
        self.each(go)

    def test_the_end_of_the_time(self):
        begun = time.monotonic()
        for queue, ask, client in self.together(lambda _: None, 2):
            with self.subTest(queue=queue):
                answer = client.response()
                self.assertGreater(time.monotonic() - begun, 1.9)
                self.assertLess(time.monotonic() - begun, 2 + AT_ONCE_S)
                self.assert_nothing(answer)
                self.assertEqual(applied(answer), "wait=2")
                client.send(ask(queue))  # the connection goes on
                same = client.response()
                self.assertEqual((answer.status, answer.body), (same.status, same.body))
                self.assertIsNone(applied(same))

    def test_the_deletion_of_the_queue_but_not_its_purge(self):
        def go(queue, ask):
            self.ask("PUT", "/v2/queues/" + queue)
            client = self.waiter(ask(queue, LONG))
            self.assertEqual(self.ask("POST", "/v2/queues/%s/purge" % queue).status, 204)
            self.assertFalse(answered(client, 0.05))
            self.assertEqual(self.ask("DELETE", "/v2/queues/" + queue).status, 204)
            self.assertTrue(answered(client, AT_ONCE_S))
            answer = client.response()
            self.assert_nothing(answer)
            self.assertEqual(applied(answer), "wait=%d" % LONG)
        self.each(go)

    def test_a_queue_that_does_not_exist_is_waited_for_and_not_made(self):
        def go(queue, ask):
            client = self.waiter(ask(queue, LONG))
            listed = json.loads(self.ask("GET", "/v2/queues").body)["queues"]
            self.assertNotIn(queue, [item["name"] for item in listed])
            self.ask("PUT", "/v2/queues/" + queue)
            self.assertFalse(answered(client, 0.05))
            put(self.server, queue, 1)
            self.take(client, 1)
        self.each(go)

    def test_what_is_there_is_taken_at_once(self):
        def go(queue, ask):
            put(self.server, queue, 1)
            client = send(self.server, ask(queue, LONG))
            self.assertEqual(applied(self.take(client, 1)), "wait=%d" % LONG)
            client.close()
        self.each(go)

    def test_a_message_of_another_project_or_queue_is_none(self):
        client = self.waiter(claim("q", LONG))
        put(self.server, "p", 1)
        with self.server.connect() as other:
            other.send(post("q").replace(b"X-Project-ID: p\r\n", b"X-Project-ID: q\r\n"))
            self.assertEqual(other.response().status, 201)
        self.assertFalse(answered(client, 0.2))

    def test_one_message_of_many_that_were_asked_for_is_enough(self):
        client = self.waiter(claim("q", LONG, limit=20))
        put(self.server, "q", 1)
        self.take(client, 1)


class Preference(Case):
    """How the header is read."""

    def waits(self, *preferences):
        """The Preference-Applied of a claim with these, which finds nothing."""
        with self.server.connect() as client:
            client.send(claim("empty", headers=prefer(*preferences)))
            answer = client.response()
        self.assertEqual(answer.status, 204, answer)
        return applied(answer)

    def test_what_is_malformed_is_ignored(self):
        for word in ("wait=-1", 'wait="x"', "wait=x", "wait=", "wait", "wait=1e9", "wait=1.5",
                     "wait=+1", "wait=0x1", "wait=1 2", "wait=0", "wait=00", "waits=1",
                     "wait==1", "=1", ",", ";", '"', '"wait=1', "wait='1'", "", "x;wait=1",
                     '"wait"=1', "respond-async", 'x="wait=1"', 'x=",wait=1"', "wait=\t",
                     "a" * 2000, "," * 2000):
            with self.subTest(preference=word[:20]):
                begun = time.monotonic()
                self.assertIsNone(self.waits(word))
                self.assertLess(time.monotonic() - begun, AT_ONCE_S)

    def assert_all_wait_a_second(self, *many):
        """All at the same time."""
        clients = [self.waiter(claim("empty", headers=prefer(*words))) for words in many]
        for words, client in zip(many, clients):
            with self.subTest(preferences=words):
                answer = client.response()
                self.assertEqual((answer.status, applied(answer)), (204, "wait=1"))

    def test_it_is_found_among_others(self):
        self.assert_all_wait_a_second(
            ["wait=1"], ["WAIT=1"], ["Wait = 1"], ["respond-async, wait=1"],
            ["respond-async", "wait=1"], ["return=minimal;x=y,wait=1;z"],
            ['x="a,b\\",wait=9",wait=1'], ["wait=01"], [", ,wait=1"])

    def test_the_first_of_several_counts(self):
        self.assert_all_wait_a_second(["wait=1, wait=40"], ["wait=1", "wait=40"])
        self.assertIsNone(self.waits("wait=0, wait=40"))

    def test_more_than_max_wait_is_cut(self):
        for word in ("46", "1000000000", "9" * 19, "9" * 40):
            with self.subTest(seconds=word):
                client = self.waiter(claim("q-" + word, headers=prefer("wait=" + word)))
                put(self.server, "q-" + word, 1)
                self.assertEqual(applied(self.take(client, 1)), "wait=45")

    def test_elsewhere_it_means_nothing(self):
        for method, target in (("GET", "/v2/queues/q/messages"), ("GET", "/v2/queues"),
                               ("DELETE", "/v2/queues/q/messages?ids=x"),
                               ("DELETE", "/v2/queues/q"), ("POST", "/v2/queues/q/purge"),
                               ("GET", "/v2/queues/q/claims/x"),
                               ("DELETE", "/v1/queues/q/messages?pop=1"), ("GET", "/nowhere")):
            with self.subTest(request=(method, target)):
                begun = time.monotonic()
                answer = self.ask(method, target, headers=prefer("wait=20"))
                self.assertIsNone(applied(answer))
                self.assertLess(time.monotonic() - begun, AT_ONCE_S)

    def test_what_is_refused_is_refused_at_once(self):
        for data in (claim("q", LONG, terms=b"{"), claim("q", LONG, limit=0),
                     pop("q", LONG, count=0), claim("a%20b", LONG), claim_any(wait=LONG)):
            client = send(self.server, data)
            self.assertTrue(answered(client, AT_ONCE_S))
            answer = client.response()
            self.assertEqual(answer.status, 400)
            self.assertIsNone(applied(answer))
            client.close()


class MaxWait(Case):
    options = ("--max-wait", "1")

    def test_it_caps(self):
        begun = time.monotonic()
        for client in [self.waiter(ask("q", LONG)) for _, ask in EACH]:
            answer = client.response()
            self.assertGreater(time.monotonic() - begun, 0.9)
            self.assertEqual(applied(answer), "wait=1")
            self.assert_nothing(answer)


class Never(Case):
    options = ("--max-wait", "0")

    def test_it_switches_waiting_off(self):
        for name, ask in EACH:
            with self.subTest(request=name), self.server.connect() as client:
                client.send(ask("q", LONG))
                self.assertTrue(answered(client, AT_ONCE_S))
                answer = client.response()
                self.assertIsNone(applied(answer))
                self.assert_nothing(answer)


class Few(Case):
    options = ("--max-waiters", "3")

    def test_who_is_too_many_is_answered_at_once(self):
        for name, ask in EACH:
            with self.subTest(request=name):
                queue = name.replace(" ", "-")
                clients = [self.waiter(ask(queue, LONG)) for _ in range(3)]
                for _ in range(2):
                    surplus = send(self.server, ask(queue, LONG))
                    self.assertTrue(answered(surplus, AT_ONCE_S))
                    answer = surplus.response()
                    self.assertIsNone(applied(answer))
                    self.assert_nothing(answer)
                    surplus.close()
                put(self.server, queue, 1)
                self.take(clients[0], 1)
                clients.append(self.waiter(ask(queue, LONG)))  # there is room for one again
                put(self.server, queue, 2, 3, 4)
                for n, client in enumerate(clients[1:], 2):
                    self.assertTrue(answered(client, AT_ONCE_S))
                    client.response()
                    if n == 2 and "claim" in name:
                        break  # a claim takes all of them
                for client in clients:
                    client.close()


class FirstComeFirstServed(Case):
    options = ("--workers", "2")
    WORKERS = 20

    def test_twenty_workers_are_served_in_their_order(self):
        for name, ask in EACH[:5]:
            with self.subTest(request=name):
                queue = name.replace(" ", "-")
                one = ask(queue, LONG).replace(b"/claims ", b"/claims?limit=1 ") \
                    .replace(b"/claims?queue", b"/claims?limit=1&queue")
                clients = []
                for _ in range(self.WORKERS):
                    clients.append(self.server.connect())
                    clients[-1].send(one)
                    settle(self.server)
                time.sleep(0.2)
                for n, client in enumerate(clients):
                    self.assertFalse(any(answered(other) for other in clients[n:]))
                    put(self.server, queue, n)
                    self.take(client, n)
                for client in clients:
                    client.close()

    def test_a_post_of_many_wakes_as_many(self):
        clients = [self.waiter(claim("q", LONG, limit=1)) for _ in range(self.WORKERS)]
        put(self.server, "q", *range(self.WORKERS - 5))
        taken = [bodies(client.response()) for client in clients[:-5]]
        self.assertEqual(taken, [[n] for n in range(self.WORKERS - 5)])
        self.assertFalse(any(answered(client, 0.05) for client in clients[-5:]))

    def test_the_longest_waiter_gets_the_oldest_messages_up_to_its_limit(self):
        for n in range(25):
            queue = "longest-%d" % n
            first, second = (self.waiter(claim(queue, LONG, limit=5)) for _ in range(2))
            put(self.server, queue, 0, 1, 2)
            self.assertEqual(bodies(first.response()), [0, 1, 2])
            third = self.waiter(claim(queue, LONG, limit=5))
            put(self.server, queue, *range(3, 10))
            self.assertEqual(bodies(second.response()), [3, 4, 5, 6, 7])
            self.assertEqual(bodies(third.response()), [8, 9])
            for client in (first, second, third):
                client.close()

    def test_every_message_is_given_to_exactly_one_of_many(self):
        """Workers in threads that claim, delete and wait again; two that post."""
        total, seen, lock = 400, [], threading.Lock()

        def work():
            with self.server.connect() as client:
                while True:
                    client.send(claim("q", 2, limit=3))
                    answer = client.response()
                    if answer.status == 204:
                        return
                    for message in messages(answer):
                        with lock:
                            seen.append(message["body"])
                        client.send(request("DELETE", message["href"]))
                        client.response()

        threads = [threading.Thread(target=work) for _ in range(self.WORKERS)]
        for thread in threads:
            thread.start()
        for n in range(total):
            put(self.server, "q", n)
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(seen), list(range(total)))
        self.assertEqual(stats(self.server, "q"), (0, 0, 0))


if __name__ == "__main__":
    unittest.main()
