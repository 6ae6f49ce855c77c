"""What must hold of a run of the fleet, judged from the journals of its processes.

The server acts at a moment between sending and answering that no client knows. So a claim
has two ends: `ends`, until which it certainly lives, counted from the sending of the claim
or of its last renewal, and `dead`, from which it certainly does not, counted from the
answer. A claim holds a message for certain from the arrival of its answer until `ends`, or
until its release or the deletion of the message is sent, if that is earlier. Two such
intervals of one message that overlap prove that it was held twice. A slow machine makes the
intervals shorter and never makes a sound server look wrong.
"""

from collections import defaultdict

# The server counts in whole milliseconds: a claim made at 10.0009 s was made at 10.000 s.
TICK_S = 0.001


class Claim:
    """One claim, pieced together from the events of its worker."""

    def __init__(self, event):
        self.id = event["claim"]
        self.messages = event["messages"]
        self.sent = event["sent"]
        self.begins = event["done"]
        self.tries = {}  # number -> when its deletion was sent
        self.live(event)

    def live(self, event):
        self.ends = event["sent"] + event["ttl"] - TICK_S
        self.dead = event["done"] + event["ttl"]

    def interval(self, number):
        """While it certainly held the message; empty if the end is not behind the begin."""
        return self.begins, min(self.ends, self.tries.get(number, self.ends))


class Trial:
    """Collects the events of all processes, then judges."""

    def __init__(self):
        self.violations = []
        self.counts = defaultdict(int)
        self.posted = set()
        self.claims = {}
        self.tries = defaultdict(list)     # number -> events
        self.finishes = defaultdict(list)  # number -> events of holders
        self.late = []                     # deletions with a dead claim that were not refused

    def hear(self, event):
        what = event["what"]
        self.counts[what] += 1
        if what == "post":
            self.posted.update(event["numbers"])
        elif what == "claim":
            self.claims[event["claim"]] = Claim(event)
        else:
            getattr(self, "hear_" + what)(self.claims[event["claim"]], event)

    def hear_renew(self, claim, event):
        if event["sent"] >= claim.dead:
            self.violations.append("claim %s was renewed after its end" % claim.id)
        claim.live(event)

    def hear_gone(self, claim, event):
        if event["done"] < claim.ends:
            self.violations.append("claim %s was gone before its end" % claim.id)

    def hear_release(self, claim, event):
        claim.ends = min(claim.ends, event["sent"])

    def hear_try(self, claim, event):
        claim.tries[event["number"]] = event["sent"]
        self.tries[event["number"]].append(event)

    def hear_finish(self, claim, event):
        if event["done"] < claim.ends:
            self.finishes[event["number"]].append(event)
        elif event["sent"] >= claim.dead:
            self.late.append(event)

    def hear_refused(self, claim, event):
        if event["done"] < claim.ends:
            self.violations.append("message %d was refused to its holder %s"
                                   % (event["number"], claim.id))

    def hear_crash(self, claim, event):
        """The server does not know: the claim lives on."""

    # ------------------------------------------------------------- judgement

    def judge(self):
        """Fills in `violations` and the last of the `counts`."""
        holders = defaultdict(list)
        for claim in self.claims.values():
            if len(set(claim.messages)) != len(claim.messages):
                self.violations.append("claim %s has a message twice" % claim.id)
            for number in claim.messages:
                holders[number].append(claim)
        for number in set(holders) - self.posted:
            self.violations.append("message %d was never posted" % number)
        for number, claims in holders.items():
            self.counts["handed out again"] += len(claims) - 1
            self.judge_holders(number, claims)
        for number in self.posted:
            self.judge_ending(number, holders[number])
        for event in self.late:
            self.judge_late(event)
        self.counts["late, already gone"] = len(self.late)
        self.counts["finished"] = sum(1 for n in self.posted if self.finishes[n])

    def judge_holders(self, number, claims):
        """Nobody holds what another one holds."""
        intervals = sorted((*claim.interval(number), claim.id) for claim in claims)
        latest, holder = float("-inf"), None
        for begin, end, claim in intervals:
            if begin < end and begin < latest:
                self.violations.append("message %d was held by %s and %s at once, for %.1f ms"
                                       % (number, holder, claim,
                                          1000 * (min(end, latest) - begin)))
            if end > latest:
                latest, holder = end, claim

    def judge_ending(self, number, claims):
        """A message is finished, once, and nobody gets it afterwards."""
        if not self.tries[number]:
            self.violations.append("message %d was lost: nobody finished it" % number)
        if len(self.finishes[number]) > 1:
            self.violations.append("message %d was finished twice" % number)
        for event in self.finishes[number]:
            if any(claim.sent > event["done"] for claim in claims):
                self.violations.append("message %d came back after its end" % number)

    def judge_late(self, late):
        """A dead claim deletes nothing: if it is told 204, another one was there before."""
        if not any(event["claim"] != late["claim"] and event["sent"] < late["done"]
                   for event in self.tries[late["number"]]):
            self.violations.append("message %d was deleted with the dead claim %s"
                                   % (late["number"], late["claim"]))


def judge(journals):
    """journals: for each process the list of its events in order. Returns a Trial."""
    trial = Trial()
    for events in journals:
        for event in events:
            trial.hear(event)
    trial.judge()
    return trial
