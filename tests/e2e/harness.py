"""Shared by the end-to-end tests: a claimd process, and HTTP spelt out byte by byte.

    class Example(unittest.TestCase):
        def test_it_responses(self):
            with Server() as server, server.connect() as client:
                client.send(request("GET", "/v2/ping"))
                self.assertEqual(client.response().status, 204)

The program is the first argument of the test script; with --tls behind it, all of the tests
speak TLS. http.client hides what these tests
are about (pipelining, lying lengths, cut connections), so they speak through sockets.
"""

import atexit
import contextlib
import itertools
import json
import os
import re
import resource
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import unittest
import uuid

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

from certificates import Workshop, trusting  # noqa: E402
from daemon import PATIENCE_S, Daemon, environment, eventually, free_port  # noqa: E402

CLAIMD = sys.argv.pop(1) if len(sys.argv) > 1 else os.environ.get("CLAIMD_BIN", "claimd")
CLIENT_ID = str(uuid.uuid4())
TLS = None  # or the workshop and the pair with which all tests speak TLS
if "--tls" in sys.argv:
    sys.argv.remove("--tls")
    TLS = Workshop()
    atexit.register(TLS.close)
    TLS.pair = TLS.signed("everywhere")
with open(CLAIMD, "rb") as _program:
    SANITIZED = re.search(b"__[at]san_init", _program.read()) is not None
    _program.seek(0)
    RESTLESS = b"__tsan_init" in _program.read()  # it has a thread that wakes up


def without_tls(why):
    """For a test of what is different with TLS: `why` it is (tls_test.py)."""
    return unittest.skipIf(TLS is not None, why)


def without_library(version, why):
    """For a test of what this version of libmicrohttpd does otherwise."""
    loaded = subprocess.run([CLAIMD, "--version"], capture_output=True, text=True, check=True)
    return unittest.skipIf("libmicrohttpd %s\n" % version in loaded.stdout,
                           "libmicrohttpd %s: %s" % (version, why))


def request(method, target, body=None, headers=(), close=False):
    """One request as bytes, with the headers every v2 request needs. The path may name the project."""
    lines = ["%s %s HTTP/1.1" % (method, target), "Host: localhost", "Client-ID: " + CLIENT_ID]
    if not re.match("/v[12.]+/(?!queues|topics)[^/]+/(queues|topics)", target):
        lines.append("X-Project-ID: p")
    lines.extend(headers)
    if body is not None:
        lines.append("Content-Length: %d" % len(body))
    if close:
        lines.append("Connection: close")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def post(queue, body=b'{"messages":[{"body":1}]}', **more):
    return request("POST", "/v2/queues/%s/messages" % queue, body, **more)


class Response:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __repr__(self):
        return "<%d %r %r>" % (self.status, self.headers, self.body)


class Client:
    """A connection to the server."""

    def __init__(self, family, address, context=None, name="localhost", source=None):
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE_S)
        if source is not None:
            self.socket.bind((source, 0))
        if context is None and TLS is not None:
            context = trusting(TLS.pair.certificate)
        try:
            self.socket.connect(address)
            if context is not None:
                self.socket = context.wrap_socket(self.socket, server_hostname=name)
        except OSError:
            self.socket.close()
            raise
        self.pending = b""

    def send(self, data):
        self.socket.sendall(data)

    def _more(self):
        data = self.socket.recv(65536)
        self.pending += data
        return bool(data)

    def _head(self):
        while b"\r\n\r\n" not in self.pending:
            if not self._more():
                raise EOFError("closed before the end of the head: %r" % self.pending)
        head, self.pending = self.pending.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            headers[name.lower()] = value.strip()
        return int(lines[0].split(" ")[1]), headers

    def interim(self):
        """The status of a 1xx response, which has no body."""
        return self._head()[0]

    def response(self, head_only=False):
        """The next response."""
        status, headers = self._head()
        if headers.get("x-request-id") != headers.get("x-openstack-request-id"):
            raise AssertionError("two ids of one request: %r" % headers)
        length = 0 if head_only else int(headers.get("content-length", 0))
        while len(self.pending) < length:
            if not self._more():
                raise EOFError("closed in the middle of the body")
        body, self.pending = self.pending[:length], self.pending[length:]
        return Response(status, headers, body)

    def last_response(self):
        """The next response, which must be the last thing the server says before it closes."""
        response = self.response()
        surplus = self.rest()
        # A second head may also hide where the body of the first is expected.
        if surplus or b"HTTP/1." in response.body:
            raise AssertionError("more than one response: %r, then %r" % (response, surplus))
        return response

    def rest(self):
        """Everything until the server closes; what came before, if it resets."""
        deadline = time.monotonic() + PATIENCE_S
        try:
            while self._more():
                if time.monotonic() > deadline:
                    raise AssertionError("the server still sends after %d s" % PATIENCE_S)
        except (ConnectionResetError, ssl.SSLEOFError):
            pass
        data, self.pending = self.pending, b""
        return data

    def closed(self):
        """True when the server has closed: waits for it."""
        return self.rest() == b""

    def reset(self):
        """Closes with a reset instead of an orderly end."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                               b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.socket.close()

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


STREAM = ("Accept: text/event-stream",)


class Viewer:
    """A client that reads a stream of chunks."""

    def __init__(self, server, target="/claimd/queues", headers=STREAM):
        self.client = server.connect()
        self.client.send(request("GET", target, headers=headers))
        self.head = self.client._head()
        self.text = ""

    def _chunk(self):
        """Adds the next chunk. False: the stream has ended."""
        client = self.client
        while b"\r\n" not in client.pending:
            self._more()
        size, client.pending = client.pending.split(b"\r\n", 1)
        length = int(size, 16)
        while len(client.pending) < length + 2:
            self._more()
        self.text += client.pending[:length].decode()
        client.pending = client.pending[length + 2:]
        return length > 0

    def _more(self):
        if not self.client._more():
            raise EOFError("the connection was closed within a stream")

    def event(self):
        """The name and the document of the next event. None: the stream has ended."""
        while "\n\n" not in self.text:
            if not self._chunk():
                return None
        event, self.text = self.text.split("\n\n", 1)
        name = "message"
        if event.startswith("event: "):
            line, event = event.split("\n", 1)
            name = line[len("event: "):]
        assert event.startswith("data: "), event
        return name, json.loads(event[len("data: "):])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()


def descriptor_numbers(server):
    """The descriptors that the server keeps open, without the files of /proc that it opens to measure itself."""
    folder = "/proc/%d/fd/" % server.process.pid
    numbers = set()
    for number in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):  # it was closed in the meantime
            if not os.readlink(folder + number).startswith("/proc/"):
                numbers.add(int(number))
    return numbers


def descriptors(server):
    """How many they are."""
    return len(descriptor_numbers(server))


def resident_kb(server):
    """The memory of the server that is in use, in kB."""
    with open("/proc/%d/status" % server.process.pid, encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def peak_kb(server):
    """The most memory of the server that ever was in use, in kB."""
    with open("/proc/%d/status" % server.process.pid, encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:"))


def more_descriptors():
    """Has as many as it may; a server inherits that. Returns how many."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
            return [int(child) for child in f.read().split()]
    except FileNotFoundError:
        return []


def all_threads_are(server, state):
    """Is this the state of each thread of the server, as /proc has it?"""
    tasks = "/proc/%d/task" % server.process.pid
    for task in os.listdir(tasks):
        with open("%s/%s/stat" % (tasks, task), encoding="ascii") as f:
            if f.read().rpartition(")")[2].split()[0] != state:
                return False
    return True


def stand_still(server):
    """Makes the process stand still, whatever it is at."""
    server.signal(signal.SIGSTOP)
    eventually(lambda: all_threads_are(server, "T"))


def processor_s(server):
    """The seconds of processor time that the server has used, all its threads together."""
    total, tasks = 0, "/proc/%d/task" % server.process.pid
    for task in os.listdir(tasks):
        with open("%s/%s/schedstat" % (tasks, task), encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total / 1e9


def becomes_idle(server):
    """True once no thread of the server runs any more, False if it goes on and on."""
    for _ in range(20):  # it may finish what it is at first
        before = processor_s(server)
        time.sleep(0.5)
        if processor_s(server) == before:
            return True
    return False


class Refusals:
    """Checks of refused requests, for a TestCase with a server (with --access-log)."""

    def refusal(self, data, status):
        """The response with this status (or one of these), alone, at the connection's end."""
        with self.server.connect() as client:
            client.send(data)
            response = client.last_response()
        self.assertIn(response.status, status if isinstance(status, tuple) else (status,), response)
        self.assertEqual(response.headers.get("connection"), "close", response)
        self.assertEqual(self.server.fetch("GET", "/v2/queues").status, 200)
        return response

    def assert_refused(self, data, status):
        """The response is a document of claimd's, and the log has it."""
        response = self.refusal(data, status)
        self.assertEqual(response.headers.get("content-type"), "application/json", response)
        self.assertEqual(response.headers.get("cache-control"), "no-store", response)
        self.assertEqual(response.headers.get("x-content-type-options"), "nosniff", response)
        self.assertIn("date", response.headers)
        self.assertEqual(set(json.loads(response.body)), {"title", "description"})
        line = self.server.logged("request_id=" + response.headers["x-request-id"])
        self.assertIn(" status=%d bytes=%d " % (response.status, len(response.body)), line)
        return response


def run(*options, env=None, **more):
    """A claimd that is expected to end by itself."""
    return subprocess.run([CLAIMD, *options], capture_output=True, text=True,
                          env=env or environment(), timeout=PATIENCE_S, check=False,
                          **more)


class Server(Daemon):
    """A running claimd that is spoken to through sockets and whose log can be read."""

    def __init__(self, *options, program=CLAIMD, **more):
        self.log = []
        self._log_changed = threading.Condition()
        self._reader = threading.Thread(target=self._read_log)
        if TLS is not None:
            options += TLS.pair.options()
            more["listen"] = "tls:" + more.get("listen", "127.0.0.1:0")
        try:
            super().__init__(program, *options, stderr=subprocess.PIPE, **more)
        except RuntimeError as error:
            raise RuntimeError("%s; it logged %r" % (error, self.log)) from error

    def started(self):
        self._reader.start()

    def _read_log(self):
        for line in self.process.stderr:
            with self._log_changed:
                self.log.append(line.rstrip("\n"))
                self._log_changed.notify_all()

    def logged(self, part):
        """Waits for a log line that contains part, and returns it."""
        def find():
            return next((line for line in self.log if part in line), None)
        with self._log_changed:
            if not self._log_changed.wait_for(lambda: find() is not None, PATIENCE_S):
                raise RuntimeError("nothing logged with %r: %r" % (part, self.log))
            return find()

    def endpoint(self):
        """Where it listens: family and address, as a Client wants them."""
        if self.path is not None:
            return socket.AF_UNIX, self.path
        host = self.host.strip("[]")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return family, (host, self.port)

    def connect(self):
        return Client(*self.endpoint())

    def fetch(self, *args, **more):
        """The response to one request on a connection of its own."""
        with self.connect() as client:
            client.send(request(*args, **more))
            return client.response(head_only=args[0] == "HEAD")

    def stats(self, queue):
        """How many of its messages are claimed, free and there."""
        counts = json.loads(self.fetch("GET", "/v2/queues/%s/stats" % queue).body)["messages"]
        return counts["claimed"], counts["free"], counts["total"]

    def reload(self, event="reloaded"):
        """SIGHUP; what is logged of it."""
        del self.log[:]
        self.signal(signal.SIGHUP)
        return self.logged(" %s " % event)

    def wait(self):
        """The exit status, once it has ended and its log is whole."""
        status = super().wait()
        self._reader.join()
        self.process.stderr.close()
        return status


class Fetcher:
    """A connection that sends requests and reads their responses one by one, or in pipelines."""

    AT_ONCE = 200  # requests in a pipeline

    def __init__(self, server):
        self.client = server.connect()

    def __call__(self, *args, client_id=None, **more):
        data = request(*args, **more)
        if client_id is not None:
            data = re.sub(rb"Client-ID: \S+", b"Client-ID: " + client_id.encode(), data)
        self.client.send(data)
        return self.client.response(head_only=args[0] == "HEAD")

    def all(self, requests, status):
        """The responses to all these requests, each of which must have this status."""
        responses = []
        requests = iter(requests)
        while some := list(itertools.islice(requests, self.AT_ONCE)):
            self.client.send(b"".join(some))
            responses += [self.client.response() for _ in some]
        wrong = next((a for a in responses if a.status != status), None)
        if wrong is not None:
            raise AssertionError("%d expected: %r" % (status, wrong))
        return responses

    def post(self, queue, body):
        self.client.send(post(queue, body))
        return self.client.response()

    def counts(self, queue):
        counts = json.loads(self("GET", "/v2/queues/%s/stats" % queue).body)["messages"]
        return counts["claimed"], counts["free"], counts["total"]

    def total(self, queue):
        return self.counts(queue)[2]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()
