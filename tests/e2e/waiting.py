"""Shared by the tests of long polling (docs/api.md 11 and 12)."""

import json
import select
import subprocess
import sys
import time
import unittest

from harness import PATIENCE_S, Server, all_threads_are, eventually, request

TERMS = b'{"ttl":60,"grace":60}'
LONG = 40        # seconds of a wait that something else than the time shall end
AT_ONCE_S = 5    # far less than LONG, and much for a machine that is busy
QUICK = ("--min-claim-ttl", "1", "--min-claim-grace", "0")


def prefer(*preferences):
    return ["Prefer: %s" % preference for preference in preferences]


def claim(queue, wait=None, version="v2", limit=None, terms=TERMS, headers=()):
    """The bytes of a claim that waits so many seconds; without `wait` it does not."""
    target = "/%s/queues/%s/claims" % (version, queue)
    if limit is not None:
        target += "?limit=%d" % limit
    more = [] if wait is None else prefer("wait=%d" % wait)
    return request("POST", target, terms, headers=[*headers, *more])


def claim_any(*queues, wait=None, limit=None, headers=()):
    """The bytes of a claim of several queues."""
    words = ["queue=" + queue for queue in queues]
    if limit is not None:
        words.append("limit=%d" % limit)
    more = [] if wait is None else prefer("wait=%d" % wait)
    return request("POST", "/claimd/claims?" + "&".join(words), TERMS,
                   headers=[*headers, *more])


def pop(queue, wait=None, version="v2", count=1):
    more = [] if wait is None else prefer("wait=%d" % wait)
    return request("DELETE", "/%s/queues/%s/messages?pop=%d" % (version, queue, count),
                   headers=more)


def messages(response):
    """Those of a claim's or a pop's response, in any version; none of a 204."""
    if response.status == 204:
        return []
    document = json.loads(response.body)
    return document["messages"] if isinstance(document, dict) else document


def bodies(response):
    return [message["body"] for message in messages(response)]


def applied(response):
    return response.headers.get("preference-applied")


def send(server, data):
    """A connection on which this was sent, and that the server has had the time to read."""
    client = server.connect()
    client.send(data)
    settle(server)
    return client


def settle(server):
    """
    Lets the server see what was sent to it: what comes now comes later. It sleeps when it
    has, whichever thread it was for; the question lies behind all that was sent before.
    """
    server.fetch("GET", "/v2/queues?limit=1")
    eventually(lambda: all_threads_are(server, "S"))


def has_response(client, within_s=0.0):
    """Is there something to read?"""
    return bool(client.pending or select.select([client.socket], [], [], within_s)[0])


def put(server, queue, *values, delay=None, ttl=300):
    """Posts messages with these bodies."""
    more = {} if delay is None else {"delay": delay}
    document = {"messages": [{"body": value, "ttl": ttl, **more} for value in values]}
    response = server.fetch("POST", "/v2/queues/%s/messages" % queue, json.dumps(document).encode())
    if response.status != 201:
        raise AssertionError(response)


def attempts(server, queue):
    """How often each message that is free was claimed; takes them out of the queue."""
    taken = []
    while True:
        popped = messages(server.fetch("DELETE", "/v2/queues/%s/messages?pop=20" % queue))
        if not popped:
            return taken
        taken += [message["claim_count"] for message in popped]


EACH = [("claim v2", lambda queue, wait=None: claim(queue, wait)),
        ("claim v1.1", lambda queue, wait=None: claim(queue, wait, "v1.1")),
        ("claim v1", lambda queue, wait=None: claim(queue, wait, "v1")),
        ("claim of several", lambda queue, wait=None: claim_any("other", queue, wait=wait)),
        ("pop v2", lambda queue, wait=None: pop(queue, wait)),
        ("pop v1.1", lambda queue, wait=None: pop(queue, wait, "v1.1"))]


class Case(unittest.TestCase):
    """Each test has a fresh server, with `options`."""

    options = QUICK

    def setUp(self):
        self.server = Server(*self.options)
        self.addCleanup(self.server.__exit__, None, None, None)

    def fetch(self, *args, **more):
        return self.server.fetch(*args, **more)

    def waiter(self, data):
        """A client with this request, which must be waiting."""
        client = send(self.server, data)
        self.addCleanup(client.close)
        self.assertFalse(has_response(client, 0.05))
        return client

    def take(self, client, *values, status=(200, 201)):
        """Its response, which must come soon and have messages with these bodies."""
        self.assertTrue(has_response(client, AT_ONCE_S))
        response = client.response()
        self.assertIn(response.status, status, response)
        self.assertEqual(bodies(response), list(values))
        return response

    def assert_nothing(self, response):
        """The response of a request that found no message."""
        self.assertIn(response.status, (200, 204), response)
        self.assertEqual(messages(response), [])

    def claimed(self, queue, terms=TERMS, limit=None):
        """The path of a claim that holds what there is in the queue."""
        with self.server.connect() as client:
            client.send(claim(queue, terms=terms, limit=limit))
            response = client.response()
        self.assertEqual(response.status, 201, response)
        return response.headers["location"]


class Slots:
    """Counts how many more may wait, from outside: by waiting until one is refused."""

    def __init__(self, server, queue="slots"):
        self.server, self.queue = server, queue

    def free(self, at_most):
        """How many could begin to wait, up to at_most; ends their waiting again."""
        clients = []
        try:
            for i in range(at_most + 1):
                client = self.server.connect()
                clients.append(client)
                client.send(claim(self.queue, LONG))
                if has_response(client, 0.3 if i >= at_most else 0):
                    break
            # Those who were refused have their responses by now or soon.
            settle(self.server)
            time.sleep(0.2)
            return sum(not has_response(client) for client in clients)
        finally:
            for client in clients:
                client.reset()


# Connects so many times, sends a request on each, says so, and goes on living.
CROWD = """
import resource, socket, sys
count, data = int(sys.argv[3]), sys.stdin.buffer.read()
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
crowd = []
for _ in range(count):
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    s.sendall(data)
    crowd.append(s)
print("all", flush=True)
ends = [s.recv(65536)[:12] for s in crowd]
print(sum(end == b"HTTP/1.1 204" for end in ends), flush=True)
"""


class Crowd:
    """A process with many connections, on each of which the same request was sent.

    It prints, when all have their responses, how many of the responses were 204; killed, it is
    gone with all its connections.
    """

    def __init__(self, server, count, data):
        self.process = subprocess.Popen(
            [sys.executable, "-c", CROWD, server.host, str(server.port), str(count)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdin.write(data)
        self.process.stdin.close()
        if self.process.stdout.readline() != b"all\n":
            raise AssertionError("the crowd could not connect")

    def empty_handed(self):
        """The number of responses with 204, once all have one."""
        line = self.process.stdout.readline()
        self.end()
        return int(line)

    def kill(self):
        self.process.kill()
        self.end()

    def end(self):
        self.process.stdout.close()
        self.process.wait(PATIENCE_S)
