"""Post jobs to claimd and process them. It needs Python 3.9 or later and no other package.

    queue = claimd.Client("http://127.0.0.1:8888", project="demo").queue("mail")
    queue.post({"to": "you@example.org"}, ttl=3600)
    queue.work(lambda job: print(job.body))
"""
import contextlib
import math
import threading
import time
import urllib.parse
from typing import Any, Callable, Iterator, List, Mapping, Optional, Sequence

from . import _worker
from ._server import NEVER, PATIENCE_S, STOPPING_S, Failed, Lost, Response, Server

__all__ = ["Claim", "Client", "Failed", "Job", "Lost", "Queue", "Response"]

ANY = range(600)  # all statuses
Act = Callable[["Job"], object]


def _check_whole(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("%s is %r. It must be a whole number" % (name, value))


def _check_number(name: str, value: object) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or math.isnan(value):
        raise TypeError("%s is %r. It must be a number" % (name, value))


@contextlib.contextmanager
def _understood(status: int, said: object) -> Iterator[None]:
    """Parts of a response that are missing, or are something else."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        text = "this is no response of claimd: %d %s" % (status, str(said)[:200])
        raise Failed(status, text) from error


class Client(Server):
    """A server, seen from one project. Threads and forks share it, each with its connections."""

    def queue(self, name: str) -> "Queue":
        return Queue(self, name)


class Job:
    """A claimed message. `attempt` counts its deliveries from 1."""

    def __init__(self, claim: "Claim", message: Mapping[str, Any]):
        self.id = str(message["id"])
        self.body = message["body"]
        self.claim = claim
        self.attempt = int(message["details"]["delivery_count"])
        self.ended = False
        self.kept = False  # claimed until its lease ends
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
        said = self._end("POST", self.claim.finish_path, document, (404, 409))
        return said.get("posted", []) if isinstance(said, dict) else []

    def retry(self, delay: float = 0, reason: str = "") -> None:
        """Gives the message back. It is ready again after so many seconds, in its old position."""
        _check_number("delay", delay)
        if math.isinf(delay):
            raise ValueError("delay is %r. It must be finite" % delay)
        if not isinstance(reason, str):
            raise TypeError("reason is %r. It must be a string" % (reason,))
        reason = reason[:250].replace("\0", " ").encode("utf-8", "replace").decode()
        document = {"release": [{"id": self.id, "delay": int(delay), "reason": reason}]}
        self._end("POST", self.claim.finish_path, document, (404, 409))


class Claim:
    """Jobs with a lease. A thread renews it after each third of its time, until the jobs end."""

    number = 0  # the fencing token

    def __init__(self, client: Client, path: str, messages: Any, lease: int, sent: float):
        self.client = client
        self.path = path
        self.finish_path = "/claimd%s/finish" % path[3:]
        self.lease = lease
        self.ends = sent + lease  # by our clock, not later than on the server
        self.jobs = [Job(self, message) for message in messages]
        self.left = threading.Event()
        if time.monotonic() > sent + lease / 3:
            self._renew()
        threading.Thread(target=self._keep, daemon=True).start()

    def _renew(self) -> bool:
        left = max(0, self.ends - time.monotonic())
        status, _, _, sent = self.client.request("PATCH", self.path, {"ttl": self.lease}, ANY, left)
        if status == 204:
            self.ends = sent + self.lease
        elif status == 404:  # with another one, the lease ends when our clock says so
            self.ends = 0
        return status == 204

    def _keep(self) -> None:
        while not self.left.wait(self.lease / 3):
            if not self._renew() and time.monotonic() >= self.ends:
                break
        self.client.close()

    def release(self, *_: object) -> None:
        """Gives back the jobs that have not ended. Without a response, the lease ends anyway."""
        if not self.left.is_set():
            self.left.set()
            if not any(job.kept for job in self.jobs):
                self.client.request("DELETE", self.path, None, ANY, STOPPING_S)
                return
            others = [{"id": job.id} for job in self.jobs if not job.ended and not job.kept]
            if others:
                document = {"release": others}
                self.client.request("POST", self.finish_path, document, ANY, STOPPING_S)

    def __enter__(self) -> "Claim":
        return self

    __exit__ = release


class Queue:
    def __init__(self, client: Client, name: str):
        if not isinstance(name, str) or name == "":
            raise TypeError("the queue name is %r. It must be a string, and not empty" % (name,))
        self.client = client
        self.path = "/v2/queues/" + urllib.parse.quote(name, "")

    def post(self, *bodies: Any, ttl: Optional[int] = None,
             delay: Optional[int] = None) -> List[str]:
        """Posts messages and returns their ids. If the request is repeated, they are there once."""
        terms = {"ttl": ttl, "delay": delay}
        given = {name: value for name, value in terms.items() if value is not None}
        document = {"messages": [{"body": body, **given} for body in bodies]}
        status, _, said, _ = self.client.request("POST", self.path + "/messages", document)
        with _understood(status, said):
            return [href.rpartition("/")[2] for href in said["resources"]]

    def claim(self, lease: int = 60, limit: int = 1, wait: float = 20) -> Optional[Claim]:
        """Claims up to `limit` messages. None if none was ready for about `wait` seconds."""
        _check_whole("lease", lease)
        _check_whole("limit", limit)
        _check_number("wait", wait)
        status, headers, said, sent = self.client.request(
            "POST", "%s/claims?limit=%d" % (self.path, limit), {"ttl": lease}, accept=(409,),
            seconds=wait or PATIENCE_S, poll=wait > 0)
        if status in (204, 409) or (status != 201 and self.client.stopped < NEVER):
            return None
        if "Idempotent-Replay" in headers:
            sent = -NEVER  # the lease began earlier
        with _understood(status, said):
            path = self.path + "/claims/" + headers["Location"].rpartition("/")[2]
            number = int(headers["Claim-Number"])
            claim = Claim(self.client, path, said["messages"], lease, sent)
        claim.number = number
        return claim

    def work(self, handle: Act, undo: Act = lambda job: None, lease: int = 60, limit: int = 1,
             delay: Callable[[int], float] = _worker.retry_delay) -> None:
        """Calls handle(job) for each message and deletes it. If handle raises an exception, the
        message is ready again after delay(attempt) seconds. If the job is lost, calls undo(job).
        Returns after client.stop(), which in the main thread SIGTERM and SIGINT call. A second
        SIGINT, at least one second later, has its usual effect."""
        _worker.work(self, handle, undo, lease, limit, delay)
