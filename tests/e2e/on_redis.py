"""Shared by the end-to-end tests of the store on Redis: a Redis, and claimd in front of it.

    class Example(RedisCase):
        def test_it_remembers(self):
            api = self.serve(self.node().url())
            api.post("q", "a")
            self.assertEqual(api.bodies("q"), ["a"])
"""

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import CLAIMD, Server, environment, request  # noqa: E402  (it finds the next)
from daemon import READY  # noqa: E402
from redis_nodes import Node, RedisError, eventually  # noqa: E402

# Short lives, so that a test can see their ends.
OPTIONS = ("--min-message-ttl", "1", "--min-claim-ttl", "1", "--min-claim-grace", "0")
SAFE = {"appendonly": "yes", "appendfsync": "always"}  # a node that keeps what it has
SECRET = "Tür:z/u@50%?&#"  # a password in which everything means something in a URL
SECRET_IN_URL = "T%C3%BCr%3az%2fu%4050%25%3F%26%23"
QUICK = {"patience_ms": 200}  # a request gives up soon
HANGING = {"confirm_ms": 300, "patience_ms": 200}  # and a second more, with who says nothing
# A node that needs seconds to load what fill() has put into it.
SLOW_TO_LOAD = {"key_load_delay": 1000, "loading_process_events_interval_bytes": 1024}
START_S = 10  # a claimd that is not going to serve has ended by then
WAIT = ("Prefer: wait=20",)
ALIVE_S = 1   # /livez responds within this, whatever Redis does


class Api:
    """One claimd, and requests to the queues of one project."""

    def __init__(self, server, project=b"p"):
        self.server, self.project = server, project

    def of(self, project):
        return Api(self.server, project)

    def response(self, method, target="", body=None, headers=()):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        path = "/v2/queues" + ("/" + target if target and target[0] != "?" else target)
        whole = request(method, path, data, headers=headers)
        with self.server.connect() as client:
            client.send(whole.replace(b"X-Project-ID: p\r\n",
                                      b"X-Project-ID: %s\r\n" % self.project, 1))
            return client.response(head_only=method == "HEAD")

    def fetch(self, method, target="", body=None, status=200, headers=()):
        """The document of a response that must have this status (None: it has none)."""
        response = self.response(method, target, body, headers)
        if response.status != status:
            raise AssertionError("%s %s: %d was expected, it is %r"
                                 % (method, target, status, response))
        return json.loads(response.body) if response.body else None

    def try_post(self, queue, *bodies, **more):
        messages = [{"body": body, **more} for body in bodies]
        return self.response("POST", queue + "/messages", {"messages": messages})

    def post(self, queue, *bodies, **more):
        """Posts messages; their ids."""
        response = self.try_post(queue, *bodies, **more)
        if response.status != 201:
            raise AssertionError("a post: %r" % response)
        return [href.rsplit("/", 1)[1] for href in json.loads(response.body)["resources"]]

    def claim(self, queue, limit=1, ttl=300, headers=()):
        """Claims; its path behind /v2/queues and its messages, or None: there was nothing."""
        response = self.response("POST", "%s/claims?limit=%d" % (queue, limit),
                                 {"ttl": ttl, "grace": 60}, headers)
        if response.status == 204:
            return None
        if response.status != 201:
            raise AssertionError("a claim: %r" % response)
        return (response.headers["location"].split("/queues/", 1)[1],
                json.loads(response.body)["messages"])

    def bodies(self, queue, limit=20):
        """Those of the first messages, of those that are claimed too."""
        page = self.fetch("GET", "%s/messages?echo=true&include_claimed=true&limit=%d"
                          % (queue, limit))
        return [message["body"] for message in page["messages"]]

    def names(self, limit=10):
        """Those of all queues, page by page."""
        found, target = [], "?limit=%d" % limit
        while target:
            page = self.fetch("GET", target)
            found += [queue["name"] for queue in page["queues"]]
            target = page["links"][0]["href"].split("/queues", 1)[1] if page["links"] else ""
        return found

    def health(self, path="/readyz"):
        return self.server.fetch("GET", path).status

    def await_waiter(self):
        """Until a request waits for a message."""
        eventually(lambda: b'requests_parked{reason="message"} 1' in
                   self.server.fetch("GET", "/metrics").body, "a request waits")


def target_of(href):
    """The part of a href behind /v2/queues/."""
    return href.split("/queues/", 1)[1]


def fill(node, keys=2000):
    """Puts keys into it that it loads one by one, at a millisecond each (SLOW_TO_LOAD)."""
    node.say("EVAL", "for i = 1, ARGV[1] do redis.call('SET', 'other' .. i, 'x') end", 0, keys)
    node.say("BGREWRITEAOF")
    eventually(lambda: node.info("persistence")["aof_rewrite_in_progress"] == "0",
               "it has written its file anew")


def is_loading(node):
    try:
        node.say("PING")
    except RedisError as error:
        return str(error).startswith("LOADING")
    except OSError:
        pass
    return False


class RedisCase(unittest.TestCase):
    """Processes of a test end with it: first claimd, which must end well, then Redis."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="claimd-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def node(self, **config):
        node = Node(**{**SAFE, **config})
        self.addCleanup(node.stop)
        return node

    def serve(self, url, *options):
        server = Server("--store", url, *OPTIONS, *options)
        self.addCleanup(self.end, server)
        return Api(server)

    def end(self, server):
        if not server.process.stdout.closed:
            self.assertEqual(server.stop(), 0, server.log)

    def eventually(self, is_so, what, patience=20):
        """Waits until is_so() is true; how many seconds it took."""
        begun = time.monotonic()
        while not is_so():
            if time.monotonic() - begun > patience:
                self.fail("not in %d s: %s" % (patience, what))
            time.sleep(0.02)
        return time.monotonic() - begun

    def file(self, name, text, mode=0o600):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    # ------------------------------------------------------------------ starting

    def tried(self, *options):
        """A claimd that ends by itself, and does not serve before."""
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen([CLAIMD, *options], stdout=subprocess.PIPE, text=True,
                                       stderr=errors, env=environment())
            watchdog = threading.Timer(START_S, process.kill)
            watchdog.start()
            with process:
                output = process.stdout.readline()
                if READY.match(output):
                    process.kill()
                output += process.stdout.read()
            watchdog.cancel()
            errors.seek(0)
            said = errors.read()
        if READY.match(output):
            self.fail("it has started, and said %r" % said)
        return subprocess.CompletedProcess(options, process.returncode, output, said)

    def refused(self, url, *parts, options=(), secret=None):
        """It does not start, and says why in one sentence that has these parts; that line."""
        ended = self.tried("--store", url, "--listen", "127.0.0.1:0", *options)
        self.assertIn(ended.returncode, (1, 2), ended)
        self.assertEqual(ended.stdout, "")
        lines = [line for line in ended.stderr.splitlines() if line.startswith("claimd: ")]
        self.assertEqual(len(lines), 1, ended.stderr)
        for part in parts:
            self.assertIn(part, lines[0])
        if secret:
            self.assertNotIn(secret, ended.stderr)
        return lines[0]

    # ------------------------------------------------------------------ serving

    def assert_unavailable(self, response):
        """A 503 as the API has it."""
        self.assertEqual(response.status, 503, response)
        self.assertGreater(int(response.headers["retry-after"]), 0)
        document = json.loads(response.body)
        self.assertEqual(set(document), {"title", "description"})
        self.assertIn(document["title"], ("Service temporarily unavailable",
                                          "Outcome unknown"))

    def assert_alive(self, api, seconds=0.0):
        """/livez responds soon, all the time."""
        until = time.monotonic() + seconds
        while True:
            begun = time.monotonic()
            self.assertEqual(api.health("/livez"), 200)
            self.assertLess(time.monotonic() - begun, ALIVE_S, "/livez took so long")
            if time.monotonic() >= until:
                return
            time.sleep(0.05)

    def assert_well(self, api, queue="well"):
        """A message goes its way."""
        api.post(queue, "well")
        place, messages = api.claim(queue)
        self.assertEqual([message["body"] for message in messages], ["well"])
        api.fetch("DELETE", target_of(messages[0]["href"]), status=204)
        api.fetch("DELETE", place, status=204)
        self.assertEqual(api.health(), 200)

    def becomes_well(self, api, patience=20):
        """Waits until it is ready again, and is well then."""
        took = self.eventually(lambda: api.health() == 200, "/readyz is 200", patience)
        self.assert_well(api)
        return took


REQUESTS = (  # of every kind
    ("GET", "", None), ("PUT", "r", {}), ("GET", "q", None), ("DELETE", "q", None),
    ("GET", "q/stats", None), ("POST", "q/messages", {"messages": [{"body": "lost"}]}),
    ("GET", "q/messages?echo=true", None), ("DELETE", "q/messages?pop=1", None),
    ("POST", "q/claims", {}), ("POST", "q/purge", None),
    ("GET", "q/messages/a00000000000000000000001", None),
    ("DELETE", "q/messages/a00000000000000000000001", None),
    ("GET", "q/claims/a00000000000000000000001", None),
    ("PATCH", "q/claims/a00000000000000000000001", {"ttl": 60}),
    ("DELETE", "q/claims/a00000000000000000000001", None),
)


def at_once(calls):
    """The results of the calls, each in a thread of its own."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def fetch_everything(api):
    """The responses to a request of every kind, all sent at once."""
    return at_once([lambda one=one: api.response(*one) for one in REQUESTS])
