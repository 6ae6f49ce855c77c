"""The requests of the client: retries, long polling, and the end of both by stop()."""
import contextlib
import http.client
import io
import json
import logging
import os
import random
import socket
import threading
import time
import urllib.parse
import uuid
from typing import Any, Callable, List, Sequence, Tuple

LOG = logging.getLogger("claimd")
NEVER = float("inf")
REPEATED = (0, 429, 502, 503, 504)  # statuses that ask for another attempt. 0: no response
LONGEST_PAUSE_S = 10.0  # between two attempts. The first pause is 0.1 s, and they double
PATIENCE_S = 60.0  # how long a request is repeated
STOPPING_S = 5.0  # how long it is repeated after stop()
LONG_POLL_S = 20.0  # how long the server may wait for a message
SLACK_S = 10.0  # how long a response may take besides
CHECK_S = 0.5  # how often a read looks for stop()
Response = Tuple[int, Any, Any, float]  # status, headers, document, time.monotonic() when sent


class Failed(Exception):
    """claimd refused a request. If there was no response until the deadline, the status is 0."""

    __module__ = "claimd"  # where users import it from

    def __init__(self, status: int, text: str):
        super().__init__(text)
        self.status = status


class Lost(Exception):
    """The job is not yours any more. Another worker has it or will have it: undo your work."""

    __module__ = "claimd"


def _parse_url(url: str) -> urllib.parse.SplitResult:
    try:
        found = urllib.parse.urlsplit(url)
        found.port  # raises an exception if it is no number
    except ValueError as error:
        raise ValueError("the URL is %r. Its host or port is not valid" % url) from error
    if found.scheme not in ("http", "https") or not found.hostname:
        raise ValueError("the URL is %r. It must begin with http:// or https://" % url)
    if any(c in url for c in "@?# \t\r\n"):
        raise ValueError("the URL is %r. It must be scheme, host, port and path only" % url)
    return found


def _read_document(status: int, headers: Any, body: bytes) -> Any:
    """The document of a response. A string if another server than claimd sent it."""
    text = body.decode("utf-8", "replace")
    if 300 <= status < 400:
        return "Location: %s" % headers.get("Location")
    try:
        return json.loads(text or "null")
    except (RecursionError, ValueError):  # no JSON, too deep, or too long a number
        return text[:200]


class _Reader(io.RawIOBase):
    """The received bytes of a socket, until a deadline that stop() may bring nearer. For
    http.client, it is the socket."""

    def __init__(self, sock: Any, deadline: Callable[[], float]):
        self._sock = sock
        self._deadline = deadline
        self._reference = sock.makefile("rb", 0)  # http.client may close the socket before us

    def makefile(self, _: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Any:
        while True:
            left = self._deadline() - time.monotonic()
            if left <= 0:
                raise TimeoutError("no response in time")
            self._sock.settimeout(min(left, CHECK_S))
            with contextlib.suppress(socket.timeout):
                return self._sock.recv_into(buffer)

    def close(self) -> None:
        self._reference.close()
        super().close()


def _worker_name() -> str:
    """Host and process, in at most 40 visible characters."""
    pid = " %d" % os.getpid()
    host = "".join(c if "!" <= c <= "~" else "?" for c in socket.gethostname())
    return host[:40 - len(pid)] + pid


class Server:
    """A server, seen from one project, and the connections of each thread and process to it."""

    def __init__(self, url: str = "", project: str = "", token: str = "", client_id: str = ""):
        url = url or os.environ.get("CLAIMD_URL") or "http://127.0.0.1:8888"
        self.url = _parse_url(url)
        headers = {
            "Client-ID": client_id or str(uuid.uuid4()),
            "Claimd-Worker": _worker_name(),
            "Content-Type": "application/json",
            "X-Project-ID": project or os.environ.get("CLAIMD_PROJECT", ""),
            "X-Auth-Token": token or os.environ.get("CLAIMD_TOKEN", ""),
        }
        self.headers = {name: value.encode() for name, value in headers.items() if value}
        self.stopped = NEVER  # when stop() was called
        self._of_thread = threading.local()
        self._polling: List[Any] = []  # the connections with a long-polling request

    def stop(self, *_: object) -> None:
        """Ends workers and their long polling. It takes no lock, so signal handlers may call it."""
        self.stopped = min(self.stopped, time.monotonic())
        for connection in list(self._polling):
            # Only the sending half, so that a claim that was just made still arrives.
            with contextlib.suppress(OSError, AttributeError):  # it is not connected
                connection.sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Closes the connections of this thread. The next request connects again."""
        for connection in vars(self._of_thread).values():
            connection.close()

    def _connection(self, poll: bool) -> Any:
        """The connection of this thread for such requests. A fork makes its own."""
        connections = vars(self._of_thread)
        name = "%d %d" % (os.getpid(), poll)
        if name not in connections:
            is_tls = self.url.scheme == "https"
            kind = http.client.HTTPSConnection if is_tls else http.client.HTTPConnection
            connections[name] = kind(self.url.netloc, timeout=STOPPING_S)  # to connect
        return connections[name]

    def _send(self, method: str, path: str, body: Any, headers: Any, poll: bool) -> Response:
        """Sends a request once. The status is 0 if there was no response."""
        connection = self._connection(poll)
        polling = self._polling if poll else []
        polling.append(connection)
        sent = time.monotonic()
        latest = sent + SLACK_S + (LONG_POLL_S if poll else 0)

        def reader(sock: Any) -> Any:
            return _Reader(sock, lambda: min(latest, max(sent, self.stopped) + STOPPING_S))

        connection.response_class = lambda sock, **terms: http.client.HTTPResponse(
            reader(sock), **terms)
        try:
            if not connection.sock:
                connection.connect()
            connection.sock.settimeout(SLACK_S)
            connection.request(method, self.url.path.rstrip("/") + path, body, headers)
            if self.stopped < NEVER:
                self.stop()  # again, because there may have been no connection
            response = connection.getresponse()
            said = _read_document(response.status, response.headers, response.read())
            return response.status, response.headers, said, sent
        except (OSError, http.client.HTTPException) as error:
            connection.close()  # the next request reconnects
            return 0, {}, repr(error), sent
        finally:
            polling.remove(connection)

    def request(self, method: str, path: str, document: Any = None, accept: Sequence[int] = (),
                seconds: float = PATIENCE_S, poll: bool = False) -> Response:
        """Sends a request, and repeats it for so many seconds as long as that may help. The last
        response may take 10 s more."""
        body = None if document is None else json.dumps(document)
        headers: Any = {"Idempotency-Key": uuid.uuid4().hex, **self.headers}
        until = time.monotonic() + seconds
        longest = 0.1
        grace = 0 if poll else STOPPING_S
        while True:
            wait = min(LONG_POLL_S, max(1, until - time.monotonic())) if poll else 0
            headers["Prefer"] = "details, wait=%d" % wait
            status, found, said, sent = self._send(method, path, body, headers, poll)
            now = time.monotonic()
            until = min(until, self.stopped + grace)
            after = found.get("Retry-After", "")
            pause = random.uniform(0, longest) + (float(after) if after.isdigit() else 0)
            is_empty = poll and status == 204
            if is_empty and now > sent + 1:  # the server has waited
                pause, longest = 0, 0.1
            is_repeated = is_empty or status in REPEATED or after != ""
            if not is_repeated or now + pause >= until:
                break
            if longest > 1 and status != 204:
                LOG.warning("%s %s: %d %s. Trying again", method, path, status, said or "")
            while time.monotonic() < min(now + pause, self.stopped + grace):
                time.sleep(max(0, min(0.1, now + pause - time.monotonic())))
            if time.monotonic() >= self.stopped + grace:
                break
            longest = min(2 * longest, LONGEST_PAUSE_S)
        is_good = 200 <= status < 300 and not isinstance(said, str)
        was_stopped = poll and self.stopped < NEVER
        if not is_good and status not in accept and not was_stopped:
            raise Failed(status, "%s %s: %d %s" % (method, path, status, said))
        return status, found, said, sent
