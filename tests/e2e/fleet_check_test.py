#!/usr/bin/python3
"""The judge of the fleet finds what it is there to find (and nothing else)."""

import unittest

from fleet_check import judge

POST = [{"what": "post", "numbers": [1]}]


def claim(name, at, ttl=10):
    return {"what": "claim", "claim": name, "ttl": ttl, "sent": at, "done": at + 0.1,
            "messages": [1]}


def step(what, name, at, **members):
    return {"what": what, "claim": name, "number": 1, "sent": at, "done": at + 0.1, **members}


def finish(name, at):
    return [step("try", name, at), step("finish", name, at)]


class Judge(unittest.TestCase):
    def good(self, *journals):
        self.assertEqual(judge([POST, *journals]).violations, [])

    def bad(self, words, *journals):
        violations = judge([POST, *journals]).violations
        self.assertTrue(any(words in text for text in violations), violations)

    def test_a_plain_run_is_good(self):
        self.good([claim("a", 0), *finish("a", 1)])

    def test_a_message_that_nobody_finished_is_lost(self):
        self.bad("was lost", [claim("a", 0)])

    def test_two_holders_at_once_are_seen(self):
        self.bad("at once", [claim("a", 0), *finish("a", 5)], [claim("b", 3)])

    def test_a_crashed_worker_holds_until_its_claim_ends(self):
        crash = [claim("a", 0), step("crash", "a", 1)]
        self.bad("at once", crash, [claim("b", 9), *finish("b", 9.5)])
        self.good(crash, [claim("b", 10.2), *finish("b", 11)])

    def test_a_renewal_prolongs_the_hold(self):
        renewed = [claim("a", 0), step("renew", "a", 8, ttl=10)]
        self.bad("at once", renewed, [claim("b", 12), *finish("b", 13)])
        self.good(renewed, [claim("b", 18.2), *finish("b", 19)])

    def test_a_release_ends_the_hold(self):
        self.good([claim("a", 0), step("release", "a", 2)], [claim("b", 2.1), *finish("b", 3)])

    def test_a_message_that_comes_back_is_seen(self):
        self.bad("came back", [claim("a", 0), *finish("a", 1)], [claim("b", 2)])

    def test_a_message_finished_twice_is_seen(self):
        self.bad("finished twice", [claim("a", 0), *finish("a", 1)],
                 [claim("b", 2), *finish("b", 3)])

    def test_a_holder_must_not_be_refused(self):
        self.bad("refused to its holder", [claim("a", 0), step("refused", "a", 5)])

    def test_a_late_worker_may_be_refused(self):
        self.good([claim("a", 0), step("try", "a", 10.2), step("refused", "a", 10.2)],
                  [claim("b", 11), *finish("b", 12)])

    def test_a_dead_claim_must_not_delete(self):
        self.bad("dead claim", [claim("a", 0), *finish("a", 10.2)])

    def test_a_late_deletion_of_a_finished_message_is_nothing(self):
        self.good([claim("a", 0), *finish("a", 13)], [claim("b", 11), *finish("b", 12)])

    def test_a_dead_claim_must_not_be_renewed(self):
        self.bad("renewed after its end", [claim("a", 0), step("renew", "a", 10.2, ttl=10)])

    def test_a_live_claim_must_not_be_gone(self):
        self.bad("gone before its end", [claim("a", 0), step("gone", "a", 5)])

    def test_a_message_out_of_nowhere_is_seen(self):
        self.bad("never posted", [{**claim("a", 0), "messages": [1, 2]}, *finish("a", 1)])


if __name__ == "__main__":
    unittest.main()
