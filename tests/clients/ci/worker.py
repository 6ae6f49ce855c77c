"""A small worker on python-zaqarclient: takes jobs from a queue and prints them, page by page.

The caller passes the printer: printer.print(job, page) takes its time, and raises Jam when it
cannot; printer.recall(job) takes back what was printed of a job that belongs to another worker now.
"""

from zaqarclient.transport import errors
import requests

TTL = GRACE = 60    # seconds: as short as a server in production allows
AT_ONCE = 5         # jobs a claim
ATTEMPTS = 3


class Jam(Exception):
    """The printer cannot print this job now."""


class Late(Exception):
    """The claim is over: its messages go to another worker."""


def insist(send):
    """Sends the request again if the response is lost. All requests here may be done twice."""
    for _ in range(ATTEMPTS - 1):
        try:
            return send()
        except requests.ConnectionError:
            pass
    return send()


class Worker:
    def __init__(self, queue, printer):
        self.queue = queue
        self.printer = printer
        self.stopping = False

    def run_once(self):
        """Claims some jobs and does what it can; how many are done."""
        claim = insist(lambda: self.queue.claim(ttl=TTL, grace=GRACE, limit=AT_ONCE))
        jobs, done = list(claim), 0
        try:
            while done < len(jobs) and not self.stopping:
                self.handle(claim, jobs[done])
                done += 1
        except Late:
            return done
        except Jam:
            pass
        if done < len(jobs):
            self.release(claim)
        return done

    def handle(self, claim, message):
        job = message.body
        try:
            for page in range(job["pages"]):
                if page > 0:
                    self.renew(claim)
                self.printer.print(job, page)
            self.finish(message)
        except (errors.ResourceNotFound, errors.MalformedRequest, errors.ForbiddenError):
            self.printer.recall(job)
            raise Late from None

    def renew(self, claim):
        insist(lambda: claim.update(ttl=TTL, grace=GRACE))

    def finish(self, message):
        insist(message.delete)

    def release(self, claim):
        insist(claim.delete)
