"""Runs the Python client by commands, one JSON object a line. driver.js has the same words."""

import json
import sys

import claimd


def say(document):
    print(json.dumps(document), flush=True)


def listen():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)


class Unprintable(Exception):
    def __str__(self):
        raise ValueError("it has no text")


async def never_run():
    pass


class Driver:
    def __init__(self):
        self.client = None
        self.claims = []

    def connect(self, url="", project="demo", token=""):
        self.client = claimd.Client(url, project, token)

    def post(self, queue, bodies, **terms):
        return self.client.queue(queue).post(*bodies, **terms)

    def claim(self, queue, **terms):
        claim = self.client.queue(queue).claim(**terms)
        if claim is None:
            return None
        self.claims.append(claim)
        return [{"id": job.id, "body": job.body, "attempt": job.attempt} for job in claim.jobs]

    def job(self, claim, job):
        return self.claims[claim].jobs[job]

    def delete(self, claim=-1, job=0):
        self.job(claim, job).delete()

    def finish(self, post=(), claim=-1, job=0):
        return self.job(claim, job).finish(post=post)

    def retry(self, delay, reason, claim=-1, job=0):
        self.job(claim, job).retry(delay, reason)

    def lost(self, claim=-1, job=0):
        return self.job(claim, job).lost

    def number(self, claim=-1):
        return str(self.claims[claim].number)

    def release(self, claim=-1):
        self.claims[claim].release()

    def request(self, method, path, document=None, seconds=60):
        return self.client.request(method, path, document, seconds=seconds)[0]

    def work_with(self, kind):
        async def run(job):
            say({"begun": job.body})

        def generate(job):
            yield say({"begun": job.body})

        handle = {"async": run, "generator": generate, "nothing": None}[kind]
        self.client.queue("jobs").work(handle)

    def work(self, queue, pause=0, **terms):
        def handle(job):
            say({"begun": job.body, "attempt": job.attempt})
            order = listen()
            while order == "is it lost":
                say(job.lost)
                order = listen()
            if order == "fail":
                raise ValueError("the job cannot be done\0\udcff")
            if order == "raise Lost":
                raise claimd.Lost("another job")
            if order == "fail badly":
                raise Unprintable
            if order == "return a generator":
                return (n for n in ())
            if order == "return a coroutine":
                return never_run()
            if order != "done":
                job.finish(**order)
            return say({"done": job.body})

        def undo(job):
            say({"undone": job.body})
            raise ValueError("undo fails, too")

        self.client.queue(queue).work(handle, undo, delay=lambda attempt: pause, **terms)
        return "stopped"


def main():
    driver = Driver()
    while True:
        order = listen()
        try:
            result = getattr(driver, order.pop("do"))(**order)
            say({"result": result})
        except (claimd.Failed, claimd.Lost, TypeError, ValueError) as error:
            say({"error": type(error).__name__, "status": getattr(error, "status", None),
                 "text": str(error)})


main()
