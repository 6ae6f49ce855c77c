"""The judge of histories over HTTP: the responses to producers and workers, against the promises.

It serves redis_kill.py, journal_kill.py and fleet_test.py. The clients write down Post, Held, Wait,
Deletion, LostClaim and LostPop. The server acts between the request and the response, when exactly
no client knows. A slow machine therefore makes the judge blind, but never makes a good server look wrong.

    lost      acknowledged, never (perhaps) deleted, and not there in the end; of those of a
              queue that is popped, more than pops without a response may have taken
    back      handed out, or there, after its deletion was acknowledged
    twice     handed out to two who had it at the same time by their own account
    undone    handed out or there, although its post was refused (so: not done)
    half      of a post whose outcome is unknown a part was there
    double    one message with two ids, or listed more than once
    often     handed out more often than its queue allows
    order     handed out first after one that the same producer has posted later, or listed
              so; a claim that waits may pass over messages reserved for another waiter
    fenced    deleted or renewed with a claim that was over
    early     refused to its holder while its claim was alive
    numbers   a later claim of a message has no larger number
    stuck     there in the end, and no claim got it
    late      not there in the end, and claimed all the same: a letter that was under way
    listed    there in the end, and then not claimed

A request whose outcome is unknown may have been done or not; the judge is content with either.
"""

import math
from collections import defaultdict
from dataclasses import dataclass, field

POPPED = "popped" # the queue of which workers pop, without claims
LIMITED, DEAD = "limited", "dead"  # from the one, claimed too often, messages go to the other
MOST_CLAIMS = 2
EFFECT_S = 12     # a claim without a response has happened within this, or never
TICK_S = 0.001    # the server counts in whole milliseconds


@dataclass
class Post:
    queue: str
    bodies: list  # (producer, number) ...
    sent: float
    done: float
    outcome: str
    where: str


@dataclass
class Held:
    """A message in the response to a claim."""

    queue: str
    body: tuple
    id: str
    number: int  # of the claim; 0: none is known
    at: int      # the place of the message in it
    sent: float
    done: float
    ttl: float
    where: str
    notes: list = field(default_factory=list)
    waits: bool = False  # the claim had the header Prefer: wait

    def __post_init__(self):
        self.ends = self.sent + self.ttl - TICK_S  # until then the worker certainly has it
        self.dead = self.done + self.ttl           # from then on its claim is certainly over
        self.wrong = []                            # (kind, text)

    def renewed(self, sent, done, ttl, outcome):
        if outcome == "ok":
            if sent >= self.dead:
                self.wrong.append(("fenced", "its claim was renewed after its end"))
            self.ends, self.dead = sent + ttl - TICK_S, done + ttl
        elif outcome == "unknown":
            self.ends, self.dead = min(self.ends, sent + ttl - TICK_S), math.inf
        elif outcome == "gone" and done < self.ends:
            self.wrong.append(("early", "its claim was gone before its end"))

    def released(self, sent, outcome):
        if outcome != "refused":
            self.ends = min(self.ends, sent)


@dataclass
class Wait:
    """A claim with the header Prefer: wait, whatever its response was."""

    queue: str
    sent: float
    done: float
    where: str


@dataclass
class Deletion:
    """A request that deletes a message."""

    queue: str
    body: tuple
    sent: float
    done: float
    outcome: str
    where: str
    why: str = ""
    held: object = None  # the Held whose claim the request names


@dataclass
class LostClaim:
    """A claim without a response. It may hold messages."""

    queue: str
    sent: float
    done: float
    ttl: float


@dataclass
class LostPop:
    """A pop without a response. It may have deleted so many messages."""

    sent: float
    done: float
    limit: int


class Judge:
    """Collects what all have written down; judge() then says what is wrong."""

    def __init__(self, producers, workers, there, listed_at, begun=0.0):
        """there: queue -> (body, id) of all that was there in the end, at listed_at."""
        self.there, self.listed_at, self.begun = there, listed_at, begun
        self.violations, self.excused = [], 0
        self.posts = {}                    # body: Post
        self.held = defaultdict(list)      # body: Held, in the order of the responses
        self.deletions = defaultdict(list)  # body: Deletion
        self.lost_claims = defaultdict(list)  # queue: claims with unknown outcome
        self.waits = defaultdict(list)     # (queue, claimd): claims that waited
        self.popped = 0                    # so many may be gone with pops without a response
        self.batches = [post for producer in producers for post in producer.posts]
        for post in self.batches:
            for body in post.bodies:
                self.posts[body] = post
        for worker in workers:
            for held in worker.held:
                self.held[held.body].append(held)
            for deletion in worker.deletions:
                self.deletions[deletion.body].append(deletion)
            for claim in worker.lost_claims:
                self.lost_claims[claim.queue].append(claim)
            for wait in worker.waits:
                self.waits[wait.queue, wait.where].append(wait)
            self.popped += sum(pop.limit for pop in worker.lost_pops)
        for helds in self.held.values():
            helds.sort(key=lambda one: one.done)

    def _wrong(self, what, body, text):
        self.violations.append((what, body, text))

    def judge(self, drained=None, left=None):
        """drained: bodies that were claimed after all was listed."""
        self.where = {body: queue for queue, listed in self.there.items()
                      for body, _ in listed}
        self.alive = set(self.where)
        if drained is not None:
            for body in drained - self.alive:
                self._wrong("late", body, "it was not listed")
            for body in self.alive - drained:
                self._wrong("listed", body, "it was not claimed then")
        self.late = (drained or set()) - self.alive
        for body, post in self.posts.items():
            self._judge_message(body, post)
        for body in set(self.held) | self.alive:
            if body not in self.posts:
                self._wrong("undone", body, "it was never posted")
        self._judge_ids()
        self._judge_halves()
        self._judge_order()
        self._judge_listings()
        for queue, count in (left or {}).items():
            self._wrong("stuck", None, "%d messages of %s cannot be claimed" % (count, queue))
        return self.violations

    def _judge_message(self, body, post):
        held, deletions = self.held.get(body, []), self.deletions.get(body, [])
        is_there = body in self.alive
        if post.outcome == "refused" and (held or is_there):
            self._wrong("undone", body, "its post was refused")
        if post.outcome == "ok" and not is_there and body not in self.late and not any(
                one.outcome in ("ok", "unknown") and one.sent < self.listed_at
                for one in deletions):
            if post.queue == POPPED and self.popped > 0:
                self.popped -= 1
            else:
                self._wrong("lost", body,
                            "it is not there; handed out %d times" % len(held))
        for one in deletions:
            if one.outcome == "ok":
                if (is_there and one.done < self.listed_at and
                        self._is_final(one, held, self.where[body])):
                    self._wrong("back", body, "it is there after its deletion")
                for after in held:
                    if after.sent > one.done and self._is_final(one, held, after.queue):
                        self._wrong("back", body, "it was handed out after its deletion")
        if sum(one.queue == LIMITED for one in held) > MOST_CLAIMS:
            self._wrong("often", body, "%d times" % len(held))
        for one in deletions:
            self._judge_fence(body, one, deletions)
        for i, one in enumerate(held):
            for what, text in one.wrong:
                self._wrong(what, body, text)
            for other in held[i + 1:]:
                self._judge_pair(body, one, other)

    def _judge_fence(self, body, deletion, deletions):
        """A claim that is alive can delete, and a dead one deletes nothing."""
        held = deletion.held
        if held is None:
            return
        if deletion.outcome == "denied" and deletion.done < held.ends:
            self._wrong("early", body, "its deletion was refused to its holder")
        # 204 also says that it is not there: another one has deleted it, or it is a dead letter.
        if (deletion.outcome == "ok" and deletion.sent >= held.dead and held.queue != LIMITED
                and not any(one.held is not held and one.sent < deletion.done for one in deletions)):
            self._wrong("fenced", body, "it was deleted with a claim that was over")

    @staticmethod
    def _is_final(deletion, held, queue):
        """Whether a message can be in `queue` no more after an acknowledged deletion.

        204 also says that it was not in the queue of the deletion: once its claim is over, it
        may have become a dead letter.
        """
        return queue == deletion.queue or any(
            one.queue == deletion.queue and one.sent <= deletion.sent and
            deletion.done < one.ends for one in held)

    def _judge_pair(self, body, one, other):
        """There must be an order in which the first had ended when the second began."""
        if other.done < one.ends and one.done < other.ends:
            self._wrong("twice", body, "at the same time")
        if one.queue != other.queue or one.queue == POPPED:
            return
        if one.done < other.sent and one.number >= other.number and one.number:
            self._wrong("numbers", body, "%d, then %d" % (one.number, other.number))

    def _judge_ids(self):
        ids = defaultdict(set)
        for body, helds in self.held.items():
            ids[body] |= {one.id for one in helds}
        seen = {}
        for queue, listed in self.there.items():
            for body, one in listed:
                ids[body].add(one)
                # A claim may end, and its message move to DEAD, between the two lists.
                if body in seen and (seen[body], queue) != (LIMITED, DEAD):
                    self._wrong("double", body, "listed more than once")
                seen[body] = queue
        for body, names in ids.items():
            if len(names) > 1:
                self._wrong("double", body, "it has the ids %s" % sorted(names))

    def _judge_halves(self):
        for post in self.batches:
            if post.outcome == "unknown":
                seen = [body in self.alive or body in self.held for body in post.bodies]
                missing = seen.count(False)
                if any(seen) and post.queue == POPPED and self.popped >= missing:
                    self.popped -= missing
                elif any(seen) and missing > 0:
                    self._wrong("half", post.bodies[seen.index(False)],
                                "of %r there were %r" % (post.bodies, seen))

    def _judge_order(self):
        """In each queue, of each producer, by the numbers of the claims."""
        series = defaultdict(list)
        for body, post in self.posts.items():
            # A redelivery in another queue (a dead letter) is no first delivery.
            first = [one for one in self.held.get(body, []) if one.queue == post.queue]
            if post.outcome == "ok" and first and post.queue != POPPED:
                first = min(first, key=lambda one: one.number)
                series[post.queue, body[0]].append((body[1], first))
        for (queue, _), firsts in series.items():
            earliest = None  # of those that were posted later
            for _, one in sorted(firsts, key=lambda pair: pair[0], reverse=True):
                if earliest is not None and (one.number, one.at) >= (earliest.number, earliest.at):
                    self._judge_late(queue, one, earliest)
                elif not self._may_pass_over(queue, one):
                    earliest = one

    def _judge_listings(self):
        """Messages that a producer has posted one after the other are in the queue in that order."""
        for queue, listed in self.there.items():
            last = {}
            for (producer, number), _ in listed:
                post = self.posts.get((producer, number))
                if queue != DEAD and post is not None and post.outcome == "ok":
                    if number < last.get(producer, number):
                        self._wrong("order", (producer, number), "%s is listed out of order" % queue)
                    last[producer] = number

    def _may_pass_over(self, queue, held):
        """Its claim waited, and others did so at the same claimd: it got messages behind theirs."""
        return held.waits and any(
            wait.sent < held.done and held.sent < wait.done and wait.sent != held.sent
            for wait in self.waits[queue, held.where])

    def _judge_late(self, queue, late, early):
        """`late` was posted before `early`, and handed out after it: it must have been held."""
        if any(one.sent < early.done and late.sent < one.sent + EFFECT_S + one.ttl
               for one in self.lost_claims[queue]):
            self.excused += 1
        else:
            self._wrong("order", late.body, "%r was handed out before it" % (early.body,))

    # ------------------------------------------------------------------ evidence

    def history(self, body):
        """All that is known of a message, in the order of time."""
        def at(when):
            return "%8.3f" % (when - self.begun)
        lines = []
        post = self.posts.get(body)
        if post is not None:
            lines.append((post.sent, "%s-%s posted to %s by %s: %s" % (
                at(post.sent), at(post.done), post.queue, post.where, post.outcome)))
        for one in self.held.get(body, []):
            lines.append((one.sent, "%s-%s claimed in %s by %s, held until %s, claim %d, "
                          "place %d, id %s %s%s" % (
                              at(one.sent), at(one.done), one.queue, one.where, at(one.ends),
                              one.number, one.at, one.id, "waited " if one.waits else "",
                              "; ".join(one.notes))))
        for one in self.deletions.get(body, []):
            lines.append((one.sent, "%s-%s deleted by %s: %s %s" % (
                at(one.sent), at(one.done), one.where, one.outcome, one.why)))
        lines.sort()
        return "\n".join("      " + line for _, line in lines)
