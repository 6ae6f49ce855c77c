#!/usr/bin/python3
"""The judge of histories finds what it is there to find (and nothing else)."""

import unittest
from types import SimpleNamespace

from judge import DEAD, LIMITED, POPPED, Deletion, Held, Judge, LostClaim, LostPop, Post, Wait

END = 1000.0  # when all that is there was listed


def post(number, at, outcome="ok", queue="q"):
    numbers = number if isinstance(number, list) else [number]
    return Post(queue, [(1, one) for one in numbers], at, at + 0.1, outcome, "claimd0")


def held(number, at, ttl=10, claim=None, place=0, wait=0.1, name=None, queue="q",
         waits=False):
    return Held(queue, (1, number), name or "id%d" % number,
                int(at * 100) if claim is None else claim, place, at, at + wait, ttl,
                "claimd0", waits=waits)


def waiting(at, until, where="claimd0", queue="q"):
    return Wait(queue, at, until, where)


def deleted(number, at, outcome="ok", queue="q", by=None):
    return Deletion(queue, (1, number), at, at + 0.1, outcome, "claimd0", held=by)


def renewed(held_one, at, ttl=10, outcome="ok"):
    held_one.renewed(at, at + 0.1, ttl, outcome)
    return held_one


def released(held_one, at, outcome="ok"):
    held_one.released(at, outcome)
    return held_one


def lost_claim(at, ttl=10):
    return LostClaim("q", at, at + 1, ttl)


class JudgeTest(unittest.TestCase):
    def found(self, *events, there=(), **more):
        def of(kind):
            return [one for one in events if isinstance(one, kind)]
        producer = SimpleNamespace(posts=of(Post))
        worker = SimpleNamespace(held=of(Held),
                                 lost_pops=of(LostPop), waits=of(Wait),
                                 deletions=of(Deletion), lost_claims=of(LostClaim))
        if not isinstance(there, dict):
            there = {"q": there}
        there = {queue: [((1, number), "id%d" % number) for number in numbers]
                 for queue, numbers in there.items()}
        judge = Judge([producer], [worker], there, END)
        judge.judge(**more)
        return sorted(what for what, _, _ in judge.violations)

    def test_a_posted_claimed_and_deleted_message_is_correct(self):
        self.assertEqual(self.found(post(1, 0), held(1, 1), deleted(1, 2)), [])

    def test_an_existing_message_is_not_lost(self):
        self.assertEqual(self.found(post(1, 0), there=[1]), [])

    def test_a_missing_message_is_lost(self):
        self.assertEqual(self.found(post(1, 0)), ["lost"])
        self.assertEqual(self.found(post(1, 0), held(1, 1)), ["lost"])
        self.assertEqual(self.found(post(1, 0), held(1, 1), deleted(1, 2, "refused")), ["lost"])

    def test_a_message_with_an_unknown_delete_may_exist_or_not(self):
        gone = post(1, 0), held(1, 1), deleted(1, 2, "unknown")
        self.assertEqual(self.found(*gone), [])
        self.assertEqual(self.found(*gone, there=[1]), [])

    def test_an_unknown_post_may_be_there_or_not(self):
        self.assertEqual(self.found(post(1, 0, "unknown")), [])
        self.assertEqual(self.found(post(1, 0, "unknown"), there=[1]), [])

    def test_an_unknown_post_is_not_there_by_half(self):
        self.assertEqual(self.found(post([1, 2], 0, "unknown"), there=[2]), ["half"])

    def test_a_refused_message_does_not_exist(self):
        self.assertEqual(self.found(post(1, 0, "refused")), [])
        self.assertEqual(self.found(post(1, 0, "refused"), there=[1]), ["undone"])
        self.assertEqual(self.found(post(1, 0, "refused"), held(1, 1), deleted(1, 2)),
                         ["undone"])

    def test_a_message_without_a_post_is_reported(self):
        self.assertEqual(self.found(held(1, 1), deleted(1, 2)), ["undone"])

    def test_a_deleted_message_does_not_come_back(self):
        self.assertEqual(self.found(post(1, 0), held(1, 1), deleted(1, 2), held(1, 20),
                                    deleted(1, 21)), ["back"])
        self.assertEqual(self.found(post(1, 0), held(1, 1), deleted(1, 2), there=[1]), ["back"])

    def test_two_holders_at_a_time_are_seen(self):
        self.assertEqual(self.found(post(1, 0), held(1, 1), held(1, 5), deleted(1, 6)),
                         ["twice"])

    def test_one_holder_after_the_other_is_well(self):
        self.assertEqual(self.found(post(1, 0), held(1, 1), held(1, 11), deleted(1, 12)), [])

    def test_a_response_that_came_late_is_no_second_holder(self):
        # The first claim was over before the second one began, but had its response after it.
        self.assertEqual(self.found(post(1, 0), held(1, 1, ttl=2, wait=5, claim=1),
                                    held(1, 4, claim=2), deleted(1, 6)), [])

    def test_a_renewal_prolongs_the_hold_and_a_release_ends_it(self):
        first = renewed(held(1, 1), 8)
        self.assertEqual(self.found(post(1, 0), first, held(1, 13), deleted(1, 14)), ["twice"])
        self.assertEqual(self.found(post(1, 0), first, held(1, 18.2), deleted(1, 19)), [])
        lost = renewed(held(1, 1), 8, outcome="unknown")
        self.assertEqual(self.found(post(1, 0), lost, held(1, 11.2), deleted(1, 19)), [])
        early = released(held(1, 1), 2)
        self.assertEqual(self.found(post(1, 0), early, held(1, 2.1), deleted(1, 3)), [])
        refused = released(held(1, 1), 2, "refused")
        self.assertEqual(self.found(post(1, 0), refused, held(1, 2.1), deleted(1, 3)), ["twice"])

    def test_a_claim_that_is_over_deletes_nothing(self):
        one, other = held(1, 1), held(1, 12)
        self.assertEqual(self.found(post(1, 0), one, deleted(1, 11.2, by=one)), ["fenced"])
        self.assertEqual(self.found(post(1, 0), one, deleted(1, 10.9, by=one)), [])
        # It is not there any more: another one has deleted it.
        self.assertEqual(self.found(post(1, 0), one, other, deleted(1, 13, by=other),
                                    deleted(1, 14, by=one)), [])
        self.assertEqual(self.found(post(1, 0), renewed(held(1, 1), 11.2), deleted(1, 12)),
                         ["fenced"])

    def test_a_holder_is_not_refused_while_its_claim_lives(self):
        one = held(1, 1)
        self.assertEqual(self.found(post(1, 0), one, deleted(1, 5, "denied", by=one), there=[1]),
                         ["early"])
        self.assertEqual(self.found(post(1, 0), one, deleted(1, 11, "denied", by=one), there=[1]),
                         [])
        for at, found in ((5, ["early"]), (11, [])):
            gone = renewed(held(1, 1), at, outcome="gone")
            self.assertEqual(self.found(post(1, 0), gone, there=[1]), found)

    def test_a_listing_is_in_order(self):
        self.assertEqual(self.found(post(1, 0), post(2, 1), there=[1, 2]), [])
        self.assertEqual(self.found(post(1, 0), post(2, 1), there=[2, 1]), ["order"])
        self.assertEqual(self.found(post(1, 0, "unknown"), post(2, 1), there=[2, 1]), [])

    def test_claims_are_numbered_in_their_order(self):
        self.assertEqual(self.found(post(1, 0), held(1, 1, claim=7), held(1, 20, claim=6),
                                    deleted(1, 21)), ["numbers"])

    def test_the_oldest_message_is_delivered_first(self):
        self.assertEqual(self.found(post(1, 0), post(2, 1), held(2, 3), held(1, 4),
                                    deleted(2, 5), deleted(1, 5)), ["order"])
        self.assertEqual(self.found(post(1, 0), post(2, 1), held(2, 3, place=0, claim=1),
                                    held(1, 3, place=1, claim=1), deleted(2, 5), deleted(1, 5)),
                         ["order"])

    def test_a_claim_that_waits_passes_over_what_is_reserved_for_others(self):
        passing = (post(1, 0), post(2, 1), held(2, 3, waits=True), waiting(3, 3.1), held(1, 4),
                   deleted(2, 5), deleted(1, 5))
        self.assertEqual(self.found(*passing), ["order"])  # no other client waited
        self.assertEqual(self.found(waiting(2, 3.05), *passing), [])
        self.assertEqual(self.found(waiting(2, 2.9), *passing), ["order"])
        self.assertEqual(self.found(waiting(2, 3.05, where="claimd1"), *passing), ["order"])
        self.assertEqual(self.found(waiting(2, 3.05), post(1, 0), post(2, 1), held(2, 3),
                                    held(1, 4), deleted(2, 5), deleted(1, 5)), ["order"])

    def test_a_redelivery_has_no_order(self):
        self.assertEqual(self.found(post(1, 0), post(2, 1), held(1, 2, ttl=1), held(2, 3),
                                    held(1, 4), deleted(2, 5), deleted(1, 5)), [])

    def test_a_possibly_claimed_message_may_come_later(self):
        events = post(1, 0), post(2, 1), held(2, 3), held(1, 14), deleted(2, 5), deleted(1, 15)
        self.assertEqual(self.found(*events), ["order"])
        self.assertEqual(self.found(lost_claim(2), *events), [])
        self.assertEqual(self.found(lost_claim(4), *events), ["order"])
        self.assertEqual(self.found(lost_claim(-10, ttl=1), *events), ["order"])

    def test_a_popped_message_may_be_gone_with_the_response(self):
        events = [post([1, 2, 3], 0, queue=POPPED)]
        self.assertEqual(self.found(*events), ["lost"] * 3)
        self.assertEqual(self.found(*events, LostPop(1, 2, 2)), ["lost"])
        self.assertEqual(self.found(*events, LostPop(1, 2, 4)), [])
        self.assertEqual(self.found(post(1, 0), LostPop(1, 2, 2)), ["lost"])
        half = post([1, 2], 0, "unknown", POPPED)
        self.assertEqual(self.found(half, there=[2]), ["half"])
        self.assertEqual(self.found(half, LostPop(1, 2, 1), there=[2]), [])

    def test_a_dead_letter_is_handed_out_elsewhere(self):
        tries = [post(1, 0, queue=LIMITED)] + [held(1, 20 * i, queue=LIMITED) for i in (1, 2)]
        last = [held(1, 60, queue=DEAD, claim=1), deleted(1, 61, queue=DEAD)]
        self.assertEqual(self.found(*tries, *last), [])
        self.assertEqual(self.found(*tries, held(1, 45, queue=DEAD), last[1]), ["twice"])
        self.assertEqual(self.found(*tries, held(1, 60, queue=LIMITED), last[1]), ["often"])
        # It was deleted while it was held; or it was not there any more.
        self.assertEqual(self.found(*tries, deleted(1, 45, queue=LIMITED), *last), ["back"])
        self.assertEqual(self.found(*tries, deleted(1, 55, queue=LIMITED), *last), [])

    def test_a_message_has_one_id(self):
        self.assertEqual(self.found(post(1, 0), held(1, 1), held(1, 20, name="other"),
                                    deleted(1, 21)), ["double"])

    def test_a_message_is_listed_once(self):
        for there, expected in (({"q": [1, 1]}, ["double"]), ({DEAD: [1], LIMITED: [1]}, ["double"]),
                                ({LIMITED: [1], DEAD: [1]}, []), ({LIMITED: [1, 1]}, ["double"])):
            with self.subTest(there=there):
                self.assertEqual(self.found(post(1, 0, queue=LIMITED), there=there), expected)

    def test_a_long_request_is_late_and_not_lost(self):
        self.assertEqual(self.found(post(1, 0), held(1, END + 1), deleted(1, END + 2),
                                    drained={(1, 1)}), ["late"])

    def test_an_existing_message_can_be_claimed(self):
        self.assertEqual(self.found(post(1, 0), there=[1], drained={(1, 1)}), [])
        self.assertEqual(self.found(post(1, 0), there=[1], drained=set(), left={"q": 1}),
                         ["listed", "stuck"])


if __name__ == "__main__":
    unittest.main()
