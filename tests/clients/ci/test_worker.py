"""Tests of worker.py. Its claims last 60 seconds, but the tests move the clock and never sleep.

    claimd run --fail-on-leak -- pytest

The fixture `claimd` is that of src/clients/python.
"""

import pytest
from zaqarclient.queues import client as zaqar

from worker import Jam, Worker


class Killed(BaseException):
    """The process is gone in the middle of its work."""


class Printer:
    """Remembers what it has printed, and does what a test wants done meanwhile."""

    def __init__(self, meanwhile=lambda: None):
        self.meanwhile = meanwhile
        self.printed, self.recalled = [], []

    def print(self, job, page):
        self.meanwhile()
        self.printed.append((job["job"], page))

    def recall(self, job):
        self.recalled.append(job["job"])


class Jobs:
    """A queue, and workers on it."""

    def __init__(self, claimd):
        self.claimd = claimd
        self.queue = self.connect("producer")

    def connect(self, who):
        conf = {"client_uuid": self.claimd.client(who),
                "auth_opts": {"backend": "noauth",
                              "options": {"os_project_id": self.claimd.project}}}
        return zaqar.Client(self.claimd.url, version=2, conf=conf).queue("jobs")

    def post(self, *pages, ttl=3600):
        """Jobs 1, 2, ... of so many pages."""
        self.queue.post([{"body": {"job": n, "pages": count}, "ttl": ttl}
                         for n, count in enumerate(pages, 1)])

    def worker(self, meanwhile=lambda: None, who="worker"):
        """With a printer that, before it prints a page, does what happens meanwhile."""
        return Worker(self.connect(who), Printer(meanwhile))


@pytest.fixture
def jobs(claimd):
    return Jobs(claimd)


def fail(error):
    """An expression that raises."""
    raise error


def test_jobs_are_done_in_their_order(claimd, jobs):
    jobs.post(1, 2)
    worker = jobs.worker()
    assert worker.run_once() == 2
    assert worker.printer.printed == [(1, 0), (2, 0), (2, 1)]
    assert worker.run_once() == 0
    claimd.expect("jobs", messages=0)


def test_an_unclaimed_job_expires(claimd, jobs):
    jobs.post(1, ttl=60)
    assert claimd.advance(59) == []
    assert claimd.advance(1) == ["message_expired"]
    assert jobs.worker().run_once() == 0


def test_messages_of_a_dead_worker_are_redelivered(claimd, jobs):
    jobs.post(1, 1)
    with pytest.raises(Killed):
        jobs.worker(lambda: fail(Killed())).run_once()
    other = jobs.worker()
    assert claimd.advance(59) == []
    assert other.run_once() == 0
    assert claimd.advance(1) == ["claim_ended"]
    assert other.run_once() == 2


def test_a_late_worker_takes_back_what_it_did(claimd, jobs):
    jobs.post(1)
    others = []

    def too_long():
        claimd.advance(60)
        others.extend(jobs.connect("other").claim(ttl=60, grace=60))

    worker = jobs.worker(too_long)
    assert worker.run_once() == 0
    assert worker.printer.recalled == [1]
    claimd.expect("jobs", messages=1, claimed=1)
    refused, = claimd.history("refused")
    assert (refused["status"], refused["client"]) == (400, claimd.client("worker"))
    others[0].delete()


def test_a_long_job_is_renewed(claimd, jobs):
    jobs.post(4)
    other = jobs.worker(who="other")

    def a_page():
        claimd.advance(45)
        assert other.run_once() == 0

    worker = jobs.worker(a_page)
    assert worker.run_once() == 1
    assert worker.printer.recalled == []
    assert len(claimd.history("renewed")) == 3


def test_a_worker_that_slept_too_long_gives_up(claimd, jobs):
    jobs.post(2)
    sleeper = jobs.worker(lambda: claimd.advance(1800))
    assert sleeper.run_once() == 0
    assert sleeper.printer.printed == [(1, 0)]
    assert sleeper.printer.recalled == [1]
    assert jobs.worker().run_once() == 1


def test_a_job_is_done_once_if_the_response_to_its_delete_is_lost(claimd, jobs):
    jobs.post(1)
    claimd.faults(("messages:delete", "cut=after"))
    worker = jobs.worker()
    assert worker.run_once() == 1
    assert worker.printer.printed == [(1, 0)]
    assert worker.printer.recalled == []
    claimd.expect("jobs", messages=0)
    assert len(claimd.history("fault")) == 1


def test_messages_of_a_lost_claim_response_are_redelivered(claimd, jobs):
    jobs.post(1)
    claimd.faults(("claims:create", "cut=after"))
    worker = jobs.worker()
    assert worker.run_once() == 0
    claimd.expect("jobs", claimed=1)
    assert claimd.advance(60) == ["claim_ended"]
    assert worker.run_once() == 1


def test_a_job_that_failed_is_there_at_once_in_its_old_place(claimd, jobs):
    jobs.post(1, 1)
    assert jobs.worker(lambda: fail(Jam())).run_once() == 0
    claimd.expect("jobs", messages=2, claimed=0)
    other = jobs.worker()
    assert other.run_once() == 2
    assert other.printer.printed == [(1, 0), (2, 0)]


def test_a_job_that_failed_three_times_is_a_dead_letter(claimd, jobs):
    claimd.ask("PUT", "/v2/queues/jobs", {"_max_claim_count": 3, "_dead_letter_queue": "failed"})
    jobs.post(1)
    worker = jobs.worker(lambda: fail(Jam()))
    for _ in range(4):
        assert worker.run_once() == 0
    assert len(claimd.history("claimed")) == 3
    claimd.expect("failed", messages=1)
    letter, = jobs.queue.client.queue("failed").claim(ttl=60, grace=60)
    assert letter.body["job"] == 1
    letter.delete()


def test_a_worker_that_is_to_stop_finishes_the_job_in_hand(claimd, jobs):
    jobs.post(1, 1, 1)
    worker = jobs.worker(lambda: setattr(worker, "stopping", True))
    assert worker.run_once() == 1
    assert worker.printer.printed == [(1, 0)]
