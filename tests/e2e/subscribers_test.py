#!/usr/bin/python3
"""Twenty subscribers, of which eleven are well, and a server that is killed meanwhile.

    subscribers_test.py CLAIMD

All of them confirm; then some misbehave, each in its own way (subscribers.py), messages are
posted, and the server is killed and started again on its journal. When all who are well have
everything, those who never are must still be tried. Then these become well, too, and all is
judged, by what they have received and by what the server says of their progress:

    lost      acknowledged with 201, and a working subscriber did not get it
    order     a client received messages in another order, repeats left out
    repeats   more than REPEATS of a subscriber and kill
    sum       delivered, failed, dropped and behind are not what was posted
    held up   a good subscriber had to wait until the others failed for good
    manner    what is to come of this kind of response has not

    SUBSCRIBERS_MESSAGES   how many messages (600)
    SUBSCRIBERS_KILLS      how many kills (3)
"""

import http.client
import json
import os
import signal
import ssl
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))

from certificates import Workshop  # noqa: E402
from harness import Server, request  # noqa: E402
from subscribers import Subscribers  # noqa: E402

WELL = 10        # and one more over TLS
STUCK = ("silent", "trickle", "close", "flood", "expired")  # as long as they are let
REPEATS = 16     # of a subscriber and kill: UNLOGGED_MAX of src/engine/delivery_ops.c
BATCH = 20       # messages a post
AHEAD = 400      # messages that are posted before those who are well have received them
WAITS = 5        # times that one of them says 429
FLOOD_MOST = 64 << 20  # bytes that may be on their way of one endless response
PATIENCE_S = 120  # for anything at all to happen
KEY = "0123456789abcdef" * 2
# Retried once at once, then twice within five seconds, then a permanent failure.
HASTY = {"retries_with_no_delay": 1, "minimum_delay_retries": 0, "minimum_delay": 0,
         "maximum_delay": 10, "maximum_delay_retries": 0}
STUBBORN = dict(HASTY, retries_with_no_delay=1000)


def until(is_so, progress, what):
    """Waits for it as long as there is some progress."""
    seen, since = None, time.monotonic()
    while not is_so():
        now = progress()
        if now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > PATIENCE_S:
            raise RuntimeError("%s: nothing happens any more, at %r" % (what, seen))
        time.sleep(0.02)


class Trial:
    def __init__(self, folder, workshop, subscribers, messages):
        self.folder, self.workshop, self.subscribers = folder, workshop, subscribers
        self.messages = messages
        self.ids = {}       # of subscriptions, by subscriber
        self.acknowledged, self.unknown = [], []
        self.server, self.port, self.kills = None, None, 0
        self.failures = []

    # ------------------------------------------------------------ server

    def start(self):
        keys = os.path.join(self.folder, "keys")
        if not os.path.exists(keys):
            with open(keys, "w", encoding="ascii") as f:
                os.chmod(keys, 0o600)
                f.write(KEY + "\n")
        self.server = Server("--journal", os.path.join(self.folder, "journal"),
                             "--notify-allow", "127.0.0.0/8", "--notify-timeout-ms", "2000",
                             "--notify-ca", self.authority.certificate,
                             "--require-confirmation", "--signing-keys", keys,
                             "--log-level", "error")
        self.port = self.server.port

    def kill(self):
        self.port = None
        self.server.signal(signal.SIGKILL)
        status, self.server = self.server.wait(), None
        if status != -signal.SIGKILL:
            self.failures.append("ended with status %d" % status)
        for one in self.subscribers.all:
            one.forget_wait()
        self.kills += 1

    def fetch(self, method, target, document=None, headers=()):
        body = None if document is None else json.dumps(document).encode()
        with self.server.connect() as client:
            client.send(request(method, target, body, headers=headers))
            return client.response()

    # ------------------------------------------------------------ subscribers

    def context(self, pair):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*pair)
        return context

    def invite(self):
        """Makes all of them, who are well as yet."""
        self.authority = self.workshop.signed("ca", ca=True)
        self.good = self.workshop.signed("hooks", by=self.authority)
        self.late = self.workshop.signed("late", by=self.authority, days=-1)
        add = self.subscribers.add
        self.well = [add("well %d" % i) for i in range(WELL)]
        self.well.append(add("well over TLS", context=self.context(self.good)))
        self.stuck = [add(name, context=self.context(self.good) if name == "expired" else None)
                      for name in STUCK]
        self.busy, self.recovering = add("busy"), add("recovering")
        self.redirect, self.gone = add("redirect"), add("gone")

    def subscribe(self):
        for one in self.subscribers.all:
            policy = {"recovering": STUBBORN, "busy": STUBBORN}.get(one.name, HASTY)
            options = {} if one in self.well else {"_retry_policy": policy}
            response = self.fetch("POST", "/v2/queues/q/subscriptions",
                                  {"subscriber": one.url, "options": options, "ttl": 86400})
            if response.status != 201:
                raise RuntimeError("%s is refused: %r" % (one.name, response))
            self.ids[one] = json.loads(response.body)["subscription_id"]
        for one in self.subscribers.all:
            until(lambda: one.notices, lambda: None, one.name + " gets no confirmation")
            notice = one.notices[0]
            names = ("URL-Signature", "URL-Methods", "URL-Paths", "URL-Expires")
            response = self.fetch("PUT", notice["URL-Paths"], notice["SubscribeBody"],
                                  ["%s: %s" % (name, notice[name]) for name in names])
            if response.status != 204:
                raise RuntimeError("%s cannot confirm: %r" % (one.name, response))

    def misbehave(self):
        for one in self.stuck:
            if one.name == "expired":
                one.turn("well", self.late)
            else:
                one.turn(one.name)
        self.recovering.fails = 40
        self.busy.busy_every = max(1, self.messages // WAITS)
        for one in (self.busy, self.recovering, self.redirect, self.gone):
            one.turn(one.name)

    # ------------------------------------------------------------ messages

    def least(self):
        return min(len(one.received) for one in self.well)

    def post_all(self):
        """On a thread of its own; numbers are not used again for posts without a response."""
        connection, port, next_ = None, None, 0
        while next_ < self.messages:
            if self.port is None or next_ - self.least() > AHEAD:
                time.sleep(0.005)
                continue
            if port != self.port:
                port = self.port
                connection = http.client.HTTPConnection("127.0.0.1", port or 1, timeout=60)
            batch = list(range(next_, min(next_ + BATCH, self.messages)))
            next_ += len(batch)
            try:
                connection.request("POST", "/v2/queues/q/messages", json.dumps(
                    {"messages": [{"body": {"n": n}, "ttl": 86400} for n in batch]}),
                    {"Client-ID": "5ca1ab1e-0000-4000-8000-000000000000",
                     "X-Project-ID": "p"})
                response = connection.getresponse()
                response.read()
            except (OSError, http.client.HTTPException):
                self.unknown += batch
                port = None
                continue
            if response.status == 201:
                self.acknowledged += batch
            else:
                self.failures.append("the response to a post is %d" % response.status)

    def delivered(self):
        return sum(len(one.received) for one in self.well)

    def run(self, kills):
        poster = threading.Thread(target=self.post_all, daemon=True)
        poster.start()
        for i in range(kills):
            # A message that was cut off may be lost, so the last one stays away from the end.
            goal = len(self.well) * self.messages * (i + 1) // (kills + 2)
            until(lambda: self.delivered() >= goal, self.delivered, "before a kill")
            self.kill()
            self.start()
        until(lambda: not poster.is_alive(), self.delivered, "posting")
        until(lambda: all(self.progress(one)["behind"] == 0 for one in self.well),
              self.delivered, "those who are well")

    # ------------------------------------------------------------ judgement

    def progress(self, one):
        """None: it is not subscribed any more."""
        response = self.fetch("GET", "/claimd/queues/q/subscriptions?limit=20")
        views = {view["id"]: view for view in json.loads(response.body)["subscriptions"]}
        return views.get(self.ids[one])

    def wait_for_given_up(self):
        """As long as one of them has no permanent failure yet, it has much to get."""
        for one in self.stuck:
            if self.progress(one)["behind"] == 0:
                self.failures.append("held up: %s was done before" % one.name)
        for one in self.stuck:
            until(lambda: self.progress(one)["given_up"] > 0,
                  lambda: self.progress(one)["failures"], one.name + " never fails for good")

    def recover(self):
        """Those who were stuck are well from now on, and get the rest."""
        for one in self.stuck:
            one.turn("well", self.good if one.name == "expired" else None)
        rest = [one for one in self.subscribers.all if one is not self.gone]
        until(lambda: all(self.progress(one)["behind"] == 0 for one in rest),
              lambda: sum(len(one.received) for one in rest), "those who are well again")

    def judge_received(self, one):
        """A subscriber that responds well has received everything, in order. Returns the number of repeats."""
        first = list(dict.fromkeys(one.received))
        missing = set(self.acknowledged) - set(first)
        repeats = len(one.received) - len(first)
        if missing:
            self.failures.append("lost: %d messages of %s" % (len(missing), one.name))
        if first != sorted(first):
            self.failures.append("order: of %s" % one.name)
        if repeats > REPEATS * self.kills:
            self.failures.append("repeats: %d of %s" % (repeats, one.name))
        return repeats

    def judge_sums(self):
        """All count the same; and it is what a subscriber has that received everything."""
        total = len(set(self.well[0].received))
        for one in self.subscribers.all:
            if one is self.gone:
                continue
            p = self.progress(one)
            if p["delivered"] + p["given_up"] + p["fallen_out"] + p["behind"] != total:
                self.failures.append("sum: of %s: %r of %d" % (one.name, p, total))
            if one in self.stuck:
                # It was well only after the last kill: nothing was repeated.
                if (p["delivered"] != len(one.received) or
                        one.received != sorted(set(one.received)) or
                        p["given_up"] == 0 or p["fallen_out"] != 0):
                    self.failures.append("manner: %s received %d: %r"
                                         % (one.name, len(one.received), p))
            elif one is self.redirect:
                if p["given_up"] != total or one.strayed != 0:
                    self.failures.append("manner: of redirections: %r" % p)
            elif p["delivered"] != total or set(one.received) != set(self.well[0].received):
                self.failures.append("lost: %s received %d: %r" % (one.name, len(one.received), p))
        return total

    def judge_manners(self):
        if self.progress(self.gone) is not None or not 0 < self.gone.requested <= 1 + self.kills:
            self.failures.append("manner: a subscriber that responded 410 was notified %d times" % self.gone.requested)
        if self.busy.hurried or len(self.busy.busy_at) == 0:
            self.failures.append("manner: Retry-After was not waited for %d times of %d" %
                                 (self.busy.hurried, len(self.busy.busy_at)))
        if self.recovering.fails != 0:
            self.failures.append("manner: 500 was not tried again")
        for one in self.stuck:
            if one.name == "flood" and not 0 < one.flooded / one.requested < FLOOD_MOST:
                self.failures.append("manner: %d bytes of %d responses were taken" %
                                     (one.flooded, one.requested))

    def judge(self):
        responding = self.well + [self.busy, self.recovering]
        repeats = [self.judge_received(one) for one in responding]
        total = self.judge_sums()
        self.judge_manners()
        if len(self.acknowledged) < self.messages // 2:
            self.failures.append("%d messages were posted" % len(self.acknowledged))
        print("subscribers: %d messages acknowledged, %d cut off, %d there" %
              (len(self.acknowledged), len(self.unknown), total))
        print("subscribers: %d kills, %d repeats, at most %d of a subscriber" %
              (self.kills, sum(repeats), max(repeats)))
        for one in self.stuck + [self.redirect]:
            p = self.progress(one)
            print("subscribers: %s: %d permanent failures, then %d delivered" %
                  (one.name, p["given_up"], p["delivered"]))


def main():
    messages = int(os.environ.get("SUBSCRIBERS_MESSAGES", "600"))
    kills = int(os.environ.get("SUBSCRIBERS_KILLS", "3"))
    with tempfile.TemporaryDirectory(prefix="claimd-subscribers-") as folder, \
            Workshop() as workshop, Subscribers() as subscribers:
        trial = Trial(folder, workshop, subscribers, messages)
        trial.invite()
        trial.start()
        try:
            trial.subscribe()
            trial.misbehave()
            began = time.monotonic()
            trial.run(kills)
            took = time.monotonic() - began
            trial.wait_for_given_up()
            trial.recover()
            trial.judge()
        finally:
            if trial.server is not None and trial.server.stop() != 0:
                trial.failures.append("it did not end well")
        print("subscribers: %d deliveries to those who were well in %.1f s, %d a second" %
              (trial.delivered(), took, trial.delivered() / took))
    for failure in trial.failures:
        print("FAIL %s" % failure)
    return 1 if trial.failures else 0


if __name__ == "__main__":
    sys.exit(main())
