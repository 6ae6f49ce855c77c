"""The clients of soak.py: each a process with one connection that does all a client can do.

Lives are short (seconds), so that within a minute everything that can end has ended in each
of the ways there are: finished, released, expired, purged, moved to the dead letters.
"""

import json
import random
import time
from collections import Counter

from harness import Client, post, request

QUEUES = ["soak-%d" % i for i in range(8)]
DEAD = "soak-dead"
KEPT = "soak-kept"  # nothing is taken out: it grows until the end of the round
PATCH_TYPE = "Content-Type: application/openstack-messaging-v2.0-json-patch"


class Unexpected(Exception):
    """A response that no rule allows."""


class Person:
    def __init__(self, where, seed):
        self.where = where
        self.dice = random.Random(seed)
        self.client = Client(*where)
        self.counts = Counter()
        self.acts = [getattr(self, name) for name, weight in self.WEIGHTS.items()
                     for _ in range(weight)]

    WEIGHTS = {"produce": 30, "produce_large": 2, "keep": 1, "finish": 16, "finish_some": 4,
               "abandon": 4, "renew": 4, "pop": 3, "delete_several": 2, "browse": 6,
               "look": 6, "purge": 1, "delete_queue": 1, "configure": 2, "come_back": 2,
               "hang_up": 2, "cut_off": 2}

    def live(self, seconds):
        """Acts at random for so long; returns what was counted."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.dice.choice(self.acts)()
        self.client.close()
        return self.counts

    # -------------------------------------------------------------- requests

    def queue(self):
        return self.dice.choice(QUEUES)

    def responses(self, requests, allowed):
        """Sends these at once; the responses, each with an allowed status."""
        self.client.send(b"".join(requests))
        responses = [self.client.response() for _ in requests]
        self.counts["requests"] += len(responses)
        for response in responses:
            if response.status not in allowed:
                raise Unexpected("%r instead of %r" % (response, allowed))
        return responses

    def fetch(self, method, path, *allowed, body=None, headers=()):
        data = request(method, path, None if body is None else json.dumps(body).encode(),
                       headers)
        return self.responses([data], allowed)[0]

    def post(self, queue, messages):
        self.responses([post(queue, json.dumps({"messages": messages}).encode())], [201])
        self.counts["posted"] += len(messages)

    def claim(self):
        """A claim of some messages: where it is, and the messages; None if there are none."""
        terms = {"ttl": self.dice.randint(1, 4), "grace": self.dice.randint(1, 3)}
        response = self.fetch("POST", "/v2/queues/%s/claims?limit=%d"
                              % (self.queue(), self.dice.choice((1, 5, 20, 100))), 201, 204,
                              body=terms)
        if response.status == 204:
            return None, []
        messages = json.loads(response.body)["messages"]
        self.counts["claimed"] += len(messages)
        return response.headers["location"], messages

    def delete(self, messages):
        """Deletes claimed messages; too late is 400 or 403."""
        requests = [request("DELETE", message["href"]) for message in messages]
        for response in self.responses(requests, (204, 400, 403)):
            self.counts["finished" if response.status == 204 else "too late"] += 1

    # ---------------------------------------------------------------- acts

    def produce(self):
        life = self.dice.choices((self.dice.randint(1, 5), self.dice.randint(10, 60), 3600),
                                 (75, 20, 5))[0]
        self.post(self.queue(),
                  [{"body": "x" * self.dice.choice((1, 10, 100, 1000, 10000)), "ttl": life,
                    "delay": min(self.dice.choice((0, 0, 0, 1, 3)), life - 1)}
                   for _ in range(self.dice.randint(1, 20))])

    def produce_large(self):
        self.post(self.queue(), [{"body": "x" * 200000, "ttl": self.dice.randint(1, 3)}])

    def keep(self):
        self.post(KEPT, [{"body": "x" * self.dice.choice((1, 100, 1000))}] * 10)

    def finish(self):
        _, messages = self.claim()
        self.delete(messages)

    def finish_some(self):
        place, messages = self.claim()
        self.delete(messages[::2])
        if place is not None:
            self.fetch("DELETE", place, 204)
            self.counts["released"] += 1

    def abandon(self):
        self.claim()  # until it expires; some become dead letters

    def renew(self):
        place, messages = self.claim()
        if place is None:
            return
        self.fetch("PATCH", place, 204, 404, body={"ttl": 2, "grace": 1})
        self.fetch("GET", place, 200, 404)
        self.delete(messages)

    def pop(self):
        response = self.fetch("DELETE", "/v2/queues/%s/messages?pop=%d"
                              % (self.queue(), self.dice.randint(1, 100)), 200)
        self.counts["popped"] += len(json.loads(response.body)["messages"])

    def delete_several(self):
        queue = self.queue()
        listed = self.fetch("GET", "/v2/queues/%s/messages?echo=true&include_claimed=true&limit=20"
                            % queue, 200)
        ids = [message["id"] for message in json.loads(listed.body)["messages"]]
        if ids:
            self.fetch("DELETE", "/v2/queues/%s/messages?ids=%s" % (queue, ",".join(ids)), 204)

    def browse(self):
        target = "/v2/queues/%s/messages?echo=true&limit=100" % self.queue()
        for _ in range(5):
            page = json.loads(self.fetch("GET", target, 200).body)
            if not page["links"]:
                break
            target = page["links"][0]["href"]

    def look(self):
        self.fetch("GET", "/v2/queues/%s/stats" % self.queue(), 200)
        self.fetch("GET", "/v2/queues?detailed=true&with_count=true", 200)

    def purge(self):
        if self.dice.random() < 0.2:
            self.fetch("POST", "/v2/queues/%s/purge" % self.queue(), 204)
            self.counts["purges"] += 1

    def delete_queue(self):
        if self.dice.random() < 0.2:
            self.fetch("DELETE", "/v2/queues/%s" % self.queue(), 204)
            self.counts["queues deleted"] += 1

    def configure(self):
        """A queue with dead letters, or an old one that gets them, or gets rid of them."""
        queue = self.queue()
        self.fetch("PUT", "/v2/queues/" + queue, 201, 204,
                   body={"_max_claim_count": 2, "_dead_letter_queue": DEAD,
                         "_dead_letter_queue_messages_ttl": self.dice.randint(1, 30)})
        self.fetch("PATCH", "/v2/queues/" + queue, 200, 404, headers=[PATCH_TYPE],
                   body=[{"op": "replace", "path": "/metadata/_max_claim_count",
                          "value": self.dice.choice((1, 2, 1000))}])

    def come_back(self):
        self.client.close()
        self.client = Client(*self.where)
        self.counts["connections"] += 1

    def hang_up(self):
        """Resets the connection in the middle of a response."""
        self.client.send(request("GET", "/v2/queues/%s/messages?echo=true&limit=1000"
                                 % self.queue()))
        self.client.socket.recv(self.dice.choice((1, 100, 10000)))
        self.client.reset()
        self.come_back()

    def cut_off(self):
        """Closes the connection in the middle of a request."""
        data = post(self.queue(), b'{"messages":[{"body":"' + b"x" * 5000 + b'"}]}')
        self.client.send(data[:self.dice.randrange(len(data))])
        self.come_back()
