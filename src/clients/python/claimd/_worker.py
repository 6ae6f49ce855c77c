"""The loop of a worker: its signals, and jobs that fail or are lost."""
import contextlib
import inspect
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Optional

from ._server import LOG, NEVER, Lost

if TYPE_CHECKING:
    from . import Client, Job, Queue

Act = Callable[["Job"], object]
Delay = Callable[[int], float]
SECOND_INTERRUPT_S = 1.0  # an earlier SIGINT is the same one, sent twice by a terminal and npm


def retry_delay(attempt: int) -> float:
    """Seconds until the next attempt at a failed job: 2, 4, 8 and so on, up to 900."""
    return min(1 << min(attempt, 10), 900)


def work(queue: "Queue", handle: Act, undo: Act, lease: int, limit: int, delay: Delay) -> None:
    """What Queue.work() does."""
    for act in (handle, undo):
        _check_function(act)
    client = queue.client
    with _stopped_by_signals(client):
        while client.stopped == NEVER:
            claim = queue.claim(lease, limit, NEVER)
            if claim is not None:
                with claim:
                    for job in claim.jobs:
                        if client.stopped == NEVER and not job.lost:
                            _process(job, handle, undo, delay)


def _check_function(act: object) -> None:
    if not callable(act):
        raise TypeError("work() takes functions, and got %r" % (act,))
    if inspect.iscoroutinefunction(act) or inspect.isasyncgenfunction(act) or \
            inspect.isgeneratorfunction(act):
        raise TypeError("%r is an async function or a generator, which work() cannot run" % (act,))


@contextlib.contextmanager
def _stopped_by_signals(client: "Client") -> Iterator[None]:
    """In the main thread, SIGTERM and SIGINT stop the client. The second SIGINT goes through."""
    handlers: Dict[int, Any] = {}
    interrupted = NEVER
    owner = os.getpid()  # not of the processes that a job forks

    def handle_signal(number: int, _: object) -> None:
        nonlocal interrupted
        is_late = time.monotonic() > interrupted + SECOND_INTERRUPT_S
        if os.getpid() != owner or (number == signal.SIGINT and is_late):
            signal.signal(number, handlers[number])
            signal.raise_signal(number)
            return
        if number == signal.SIGINT:
            interrupted = min(interrupted, time.monotonic())
        client.stop()

    try:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                handlers[number] = signal.getsignal(number) or signal.SIG_DFL
                signal.signal(number, handle_signal)
        yield
    finally:
        for caught, handler in handlers.items():
            signal.signal(caught, handler)
        client.close()


def _process(job: "Job", handle: Act, undo: Act, delay: Delay) -> None:
    failed = _attempt(job, handle)
    if failed is None and not job.ended:
        failed = _attempt(job, lambda job: job.delete())
    is_lost = isinstance(failed, Lost) and job.lost  # not of another job
    if failed is not None and not is_lost and not job.ended:
        _retry(job, failed, delay)
    if is_lost:
        _attempt(job, undo)


def _retry(job: "Job", failed: Exception, delay: Delay) -> None:
    """A release without a pause would deliver the message again at once, so it has one always.
    If the server refuses each pause, the message stays claimed until its lease ends."""
    def as_asked(job: "Job") -> None:
        job.retry(delay(job.attempt), "%s: %s" % (type(failed).__name__, failed))

    refused = _attempt(job, as_asked)
    if refused is not None and not isinstance(refused, Lost):
        refused = _attempt(job, lambda job: job.retry(retry_delay(job.attempt)))
    if refused is not None:
        job.kept = True


def _attempt(job: "Job", act: Act) -> Optional[Exception]:
    """Returns the exception that was raised. A job may raise any, and none ends the worker."""
    try:
        result = act(job)
        if inspect.iscoroutine(result):
            result.close()  # without a warning that nothing has run it
        if inspect.isawaitable(result) or inspect.isasyncgen(result) or inspect.isgenerator(result):
            raise TypeError("the function returned %r, which work() cannot run" % (result,))
    except Exception as error:
        LOG.exception("job %s", job.id)
        return error
    return None
