"""Post jobs to claimd and process them. It needs Python 3.9 or later and no other package.

    queue = claimd.Client("http://127.0.0.1:8888", project="demo").queue("mail")
    queue.post({"to": "you@example.org"}, ttl=3600)
    queue.work(lambda job: print(job.body))
"""
import http.client
import json
import logging
import os
import random
import signal
import socket
import threading
import time
import urllib.parse
import uuid
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple

LOG, NEVER, ANY = logging.getLogger("claimd"), float("inf"), range(600)
REPEATED = (0, 429, 502, 503, 504)  # statuses that ask for another attempt. 0: no response
LONGEST_PAUSE_S = 10.0  # between two attempts. The first pause is 0.1 s, and they double
PATIENCE_S, STOPPING_S = 60.0, 5.0  # how long a request is repeated, and how long after stop()
LONG_POLL_S, SLACK_S = 20.0, 10.0  # how long the server may wait, and may take besides
Response = Tuple[int, Any, Any, float]  # status, headers, document, time.monotonic() when sent
Act = Callable[["Job"], object]


class Failed(Exception):
    """claimd refused a request. If there was no response until the deadline, the status is 0."""
    def __init__(self, status: int, text: str):
        super().__init__(text)
        self.status = status


class Lost(Exception):
    """The job is not yours any more. Another worker has it or will have it: undo your work."""


class Client:
    """A server, seen from one project. Threads and forks share it, each with its connections."""
    def __init__(self, url: str = "", project: str = "", token: str = "", client_id: str = ""):
        url = url or os.environ.get("CLAIMD_URL") or "http://127.0.0.1:8888"
        self.url, self.stopped = urllib.parse.urlsplit(url), NEVER
        if self.url.scheme not in ("http", "https") or not self.url.netloc:
            raise ValueError("the URL is %r. It must begin with http:// or https://" % url)
        headers = {"Client-ID": client_id or str(uuid.uuid4()), "Content-Type": "application/json",
                   "X-Project-ID": project or os.environ.get("CLAIMD_PROJECT", ""),
                   "X-Auth-Token": token or os.environ.get("CLAIMD_TOKEN", "")}
        self.headers = {name: value.encode() for name, value in headers.items() if value}
        self._of_thread, self._polling = threading.local(), []  # type: Any, List[Any]

    def queue(self, name: str) -> "Queue":
        return Queue(self, name)

    def stop(self, *_: object) -> None:
        """Ends workers and their long polling. It takes no lock, so signal handlers may call it."""
        self.stopped = min(self.stopped, time.monotonic())
        for connection in list(self._polling):
            try:  # only the sending half, so that a claim that was just made still arrives
                connection.sock.shutdown(socket.SHUT_WR)
            except (OSError, AttributeError):
                pass  # it is not connected

    def close(self) -> None:
        """Closes the connections of this thread. The next request connects again."""
        for connection in vars(self._of_thread).values():
            connection.close()

    def _send(self, method: str, path: str, body: Any, headers: Any, poll: bool) -> Response:
        kind = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        made: Any = kind[self.url.scheme](self.url.netloc, timeout=SLACK_S + poll * LONG_POLL_S)
        connection = vars(self._of_thread).setdefault("%d %d" % (os.getpid(), poll), made)
        polling, sent = self._polling if poll else [], time.monotonic()
        polling.append(connection)
        try:
            connection.request(method, self.url.path.rstrip("/") + path, body, headers)
            if self.stopped < NEVER:
                self.stop()  # again, because there may have been no connection
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace")
            is_json = response.status < 400 or "json" in response.headers.get("Content-Type", "")
            said = json.loads(text or "null") if is_json else text[:200]  # of a proxy
            return response.status, response.headers, said, sent
        except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
            connection.close()  # the next request reconnects
            return 0, {}, repr(error), sent
        finally:
            polling.remove(connection)

    def request(self, method: str, path: str, document: Any = None, accept: Sequence[int] = (),
                seconds: float = PATIENCE_S, poll: bool = False) -> Response:
        """Sends a request, and repeats it for so many seconds as long as that may help."""
        body = None if document is None else json.dumps(document)
        headers: Any = {"Idempotency-Key": uuid.uuid4().hex, **self.headers}
        until, longest = time.monotonic() + seconds, 0.1
        while True:
            wait = min(LONG_POLL_S, max(1, until - time.monotonic())) if poll else 0
            headers["Prefer"] = "details, wait=%d" % wait
            status, found, said, sent = self._send(method, path, body, headers, poll)
            now, after = time.monotonic(), found.get("Retry-After", "")
            until = min(until, self.stopped + (0 if poll else STOPPING_S))
            pause = random.uniform(0, longest) + (float(after) if after.isdigit() else 0)
            if poll and status == 204 and now > sent + 1:
                pause, longest = 0, 0.1  # the server has waited
            is_repeated = status in REPEATED or after or poll and status == 204
            if not is_repeated or now + pause >= until:
                break
            if longest > 1 and status != 204:
                LOG.warning("%s %s: %d %s. Trying again", method, path, status, said or "")
            while time.monotonic() < min(now + pause, self.stopped if poll else NEVER):
                time.sleep(max(0, min(0.1, now + pause - time.monotonic())))
            longest = min(2 * longest, LONGEST_PAUSE_S)
        is_good = 200 <= status < 300 or status in accept or poll and self.stopped < NEVER
        if not is_good:
            raise Failed(status, "%s %s: %d %s" % (method, path, status, said))
        return status, found, said, sent


class Job:
    """A claimed message. `attempt` counts its deliveries from 1."""
    def __init__(self, claim: "Claim", message: Mapping[str, Any]):
        self.id, self.body, self.claim = str(message["id"]), message["body"], claim
        self.attempt, self.ended = int(message["details"]["delivery_count"]), False
        self._path = message["href"][message["href"].index("/v2/"):]  # a proxy may add a prefix

    @property
    def lost(self) -> bool:
        """True if the lease has ended."""
        return time.monotonic() >= self.claim.ends

    def _end(self, method: str, path: str, document: Any, refusals: Sequence[int]) -> Any:
        if self.lost:
            raise Lost("job %s: the lease has ended" % self.id)
        status, _, said, _ = self.claim.client.request(method, path, document, refusals)
        if status in refusals:
            self.claim.ends = 0
            raise Lost("job %s: %d %s" % (self.id, status, said))
        self.ended = True
        if all(job.ended for job in self.claim.jobs):
            self.claim.left.set()
        return said

    def delete(self) -> None:
        """Ends a job that is done."""
        self._end("DELETE", self._path, None, (400, 401, 403))

    def finish(self, post: Sequence[Mapping[str, Any]] = ()) -> Any:
        """Deletes the message and posts others in one step, as docs/api.md 25.1 shows them."""
        document = {"delete": [self.id], "post": list(post)}
        return self._end("POST", self.claim.finish_path, document, (404, 409)).get("posted", [])

    def retry(self, delay: float = 0, reason: str = "") -> None:
        """Gives the message back. It is ready again after so many seconds, in its old position."""
        reason = reason[:250].replace("\0", " ").encode("utf-8", "replace").decode()
        document = {"release": [{"id": self.id, "delay": int(delay), "reason": reason}]}
        self._end("POST", self.claim.finish_path, document, (404, 409))


class Claim:
    """Jobs with a lease. A thread renews it after each third of its time, until the jobs end."""
    number = 0  # the fencing token
    def __init__(self, client: Client, path: str, messages: Any, lease: int, sent: float):
        self.client, self.path, self.finish_path = client, path, "/claimd%s/finish" % path[3:]
        self.jobs, self.left = [Job(self, message) for message in messages], threading.Event()
        self.lease, self.ends = lease, sent + lease  # by our clock, not later than on the server
        if time.monotonic() > sent + lease / 3:
            self._renew()
        threading.Thread(target=self._keep, daemon=True).start()

    def _renew(self) -> bool:
        left = max(0, self.ends - time.monotonic())
        status, _, _, sent = self.client.request("PATCH", self.path, {"ttl": self.lease}, ANY, left)
        if status in (204, 404):  # with another one, the lease ends when our clock says so
            self.ends = sent + self.lease if status == 204 else 0
        return status == 204

    def _keep(self) -> None:
        while not self.left.wait(self.lease / 3) and self._renew():
            pass
        self.client.close()

    def release(self, *_: object) -> None:
        """Gives back the jobs that have not ended. Without a response, the lease ends anyway."""
        if not self.left.is_set():
            self.left.set()
            self.client.request("DELETE", self.path, None, ANY, STOPPING_S)

    def __enter__(self) -> "Claim":
        return self

    __exit__ = release


class Queue:
    def __init__(self, client: Client, name: str):
        self.client, self.path = client, "/v2/queues/" + urllib.parse.quote(name, "")

    def post(self, *bodies: Any, ttl: Optional[int] = None,
             delay: Optional[int] = None) -> List[str]:
        """Posts messages and returns their ids. If the request is repeated, they are there once."""
        terms = {name: value for name, value in (("ttl", ttl), ("delay", delay))
                 if value is not None}
        document = {"messages": [{"body": body, **terms} for body in bodies]}
        posted = self.client.request("POST", self.path + "/messages", document)[2]
        return [href.rpartition("/")[2] for href in posted["resources"]]

    def claim(self, lease: int = 60, limit: int = 1, wait: float = 20) -> Optional[Claim]:
        """Claims up to `limit` messages. None if none was ready for `wait` seconds."""
        path = "%s/claims?limit=%d" % (self.path, limit)
        status, headers, document, sent = self.client.request(
            "POST", path, {"ttl": lease}, (409,), wait or PATIENCE_S, wait > 0)
        if status != 201:
            return None
        path = self.path + "/claims/" + headers["Location"].rpartition("/")[2]
        sent = -NEVER if "Idempotent-Replay" in headers else sent  # the lease began earlier
        claim = Claim(self.client, path, document["messages"], lease, sent)
        claim.number = int(headers["Claim-Number"])
        return claim

    def work(self, handle: Act, undo: Act = lambda job: None, lease: int = 60, limit: int = 1,
             delay: Callable[[int], int] = lambda attempt: min(1 << min(attempt, 10), 900)) -> None:
        """Calls handle(job) for each message and deletes it. If handle raises an exception, the
        message is ready again after delay(attempt) seconds. If the job is lost, calls undo(job).
        Returns after client.stop(), which in the main thread SIGTERM and SIGINT call."""
        handlers = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                handlers[number] = signal.signal(number, self.client.stop)
        try:
            while self.client.stopped == NEVER:
                claim = self.claim(lease, limit, NEVER)
                if claim is not None:
                    with claim:
                        for job in claim.jobs:
                            if self.client.stopped == NEVER and not job.lost:
                                _process(job, handle, undo, delay)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _process(job: Job, handle: Act, undo: Act, delay: Callable[[int], int]) -> None:
    failed = _attempt(job, handle)
    if failed is None and not job.ended:
        failed = _attempt(job, Job.delete)
    elif failed is not None and not isinstance(failed, Lost) and not job.ended:
        reason = "%s: %s" % (type(failed).__name__, failed)
        _attempt(job, lambda job: job.retry(delay(job.attempt), reason))
    if isinstance(failed, Lost):
        _attempt(job, undo)


def _attempt(job: Job, act: Act) -> Optional[Exception]:
    """Returns the exception that was raised. A job may raise any, and none ends the worker."""
    try:
        act(job)
    except Exception as error:
        LOG.exception("job %s", job.id)
        return error
    return None
