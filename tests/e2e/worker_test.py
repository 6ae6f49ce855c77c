#!/usr/bin/python3
"""docs/worker.md: the worker there does what the page says, as it is printed.

    worker_test.py CLAIMD
"""

import http.client
import importlib.util
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)

from harness import CLAIMD, PATIENCE_S, Server, environment, eventually  # noqa: E402
import examples  # noqa: E402
from receiver import Receiver  # noqa: E402

PROJECT = "demo"
QUEUE = "/v2/queues/mail"
SHORT = ("--min-claim-ttl", "1", "--access-log")


def page():
    path = os.path.join(HERE, "..", "..", "docs", "worker.md")
    with open(path, encoding="utf-8") as f:
        return f.read()


def printed(language="python", at=0):
    blocks = examples.blocks(page(), language)
    if language == "python":  # others are of the client: tests/clients/python_client_test.py
        blocks = [block for block in blocks if block.startswith('"""')]
    return blocks[at]


# The page says that the job is the reader's. This one ends when the test says so: at once, or
# when the thread that renews has given up.
HELD_JOB = """
import json, sys, threading
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop(1))
import worker

def work(body):
    print("begun", json.dumps(body), flush=True)
    how = sys.stdin.readline()
    if how == "and fail\\n":
        raise ValueError("the job cannot be done")
    if how == "when the claim is lost\\n":
        for thread in threading.enumerate():
            if thread is not threading.current_thread():
                thread.join()
    print("done", json.dumps(body), flush=True)

worker.work = work
worker.main()
"""


class Worker:
    """The page's program as a process; its lines are read as they come."""

    def __init__(self, program, ttl):
        self.process = subprocess.Popen([sys.executable, *program, "mail", str(ttl)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=environment())

    def says(self):
        """The next line: what it did, and with which body."""
        watchdog = threading.Timer(PATIENCE_S, self.process.kill)
        watchdog.start()
        line = self.process.stdout.readline()
        watchdog.cancel()
        if not line:
            raise RuntimeError("the worker ended: " + self.process.stderr.read())
        what, _, body = line.partition(" ")
        return what, json.loads(body)

    def go_on(self, when="now"):
        """Lets the held job end."""
        self.process.stdin.write(when + "\n")
        self.process.stdin.flush()

    def stop(self):
        """Tells it to stop, and lets the job end; status and whatever it has still said."""
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate("\n", timeout=PATIENCE_S)
        return self.process.returncode, out, err


class Case(unittest.TestCase):
    def setUp(self):
        scratch = self.enterContext(tempfile.TemporaryDirectory())
        self.path = os.path.join(scratch, "worker.py")

    def save(self, code):
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(code)

    def worker(self, server, ttl=60, held=True):
        # Without a pause, so that the test need not wait for the next attempt.
        program = printed().replace("LONGEST_RETRY = 2, 900", "LONGEST_RETRY = 0, 900")
        self.save(examples.at(server, program))
        job = ["-c", HELD_JOB, os.path.dirname(self.path)] if held else [self.path]
        worker = Worker(job, ttl)
        self.addCleanup(self.end, worker.process)
        return worker

    @staticmethod
    def end(process):
        process.kill()
        process.communicate()


class OnItsWay(Case):
    """A real server, and a worker that is a process of its own."""

    def fetch(self, server, method, path, document=None, project=PROJECT):
        connection = server.connect_http()
        connection.request(method, path, None if document is None else json.dumps(document),
                           {"X-Project-ID": project} if project else {})
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, json.loads(text) if text else None

    def post(self, server, *bodies):
        status, _ = self.fetch(server, "POST", QUEUE + "/messages",
                               {"messages": [{"body": body, "ttl": 3600} for body in bodies]})
        self.assertEqual(status, 201)

    def counts(self, server):
        messages = self.fetch(server, "GET", QUEUE + "/stats")[1]["messages"]
        return messages["free"], messages["claimed"]

    def parked(self, server):
        """How many requests wait for a message."""
        connection = server.connect_http()
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return int(re.search(r'^claimd_http_connections\{phase="parked"\} (\d+)', text, re.M)[1])

    def claim_of_the_worker(self, server):
        """The claim that holds the oldest message."""
        page = self.fetch(server, "GET", QUEUE + "/messages?echo=true&include_claimed=true")[1]
        claim = re.search(r"claim_id=(\w+)", page["messages"][0]["href"])[1]
        return QUEUE + "/claims/" + claim

    def assert_stops(self, worker):
        status, _, errors = worker.stop()
        self.assertEqual((status, errors), (0, ""))

    def test_it_does_what_is_posted_and_waits_when_there_is_nothing(self):
        with Listening("--max-wait", "1") as server:
            worker = self.worker(server, held=False)
            server.logged("status=204")  # an empty queue that does not exist yet
            self.post(server, {"job": 1}, {"job": 2})
            self.post(server, {"job": 3})
            self.assertEqual([worker.says() for _ in range(3)],
                             [("done", {"job": n}) for n in (1, 2, 3)])
            eventually(lambda: self.counts(server) == (0, 0))
            self.assert_stops(worker)

    def test_it_does_what_the_page_posts(self):
        with Listening() as server:
            worker = self.worker(server, held=False)
            self.run_commands(server, printed("bash"))
            self.assertEqual([worker.says() for _ in range(2)],
                             [("done", {"seconds": 1}), ("done", {"seconds": 2})])
            self.assert_stops(worker)

    def test_the_claim_of_the_page_that_would_wait_takes_what_is_there(self):
        with Listening() as server:
            self.post(server, {"job": 1})
            lines = printed("sh", 4)
            claimed = examples.run_bash(server, lines, env=environment())
            self.assertEqual(examples.seen_statuses(claimed), examples.expected_statuses(lines),
                             claimed.stdout)
            self.assertEqual(self.counts(server), (0, 1))

    def test_a_worker_of_three_lines_deletes_the_message_that_it_prints(self):
        with Listening() as server, tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(["bash", "-c", examples.at(server, printed("sh"))], cwd=folder,
                                 capture_output=True, text=True, timeout=60, check=True)
            self.assertIn("any text", run.stdout)
            _, listed = self.fetch(server, "GET", "/v2/default/queues/texts/messages?include_claimed=true",
                                   project=None)
            self.assertEqual(listed["messages"], [])

    def test_a_worker_that_waits_for_messages_stops_at_once(self):
        with Listening() as server:
            worker = self.worker(server)
            eventually(lambda: self.parked(server) == 1)
            begun = time.monotonic()
            self.assert_stops(worker)
            self.assertIn("status=204", server.logged("method=POST"))
            self.assertLess(time.monotonic() - begun, 15)  # it would have waited 20 s

    def run_commands(self, server, lines, status=0, error=""):
        """The output of commands of the page."""
        path = os.path.dirname(os.path.abspath(CLAIMD)) + ":" + os.environ["PATH"]
        run = subprocess.run(["bash", "-ec", lines], env=environment(CLAIMD_URL=server.url, PATH=path),
                             capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual((run.returncode, run.stderr), (status, error))
        return run.stdout

    def test_a_job_that_raises_is_tried_again_and_does_not_hold_up_the_others(self):
        with Listening() as server:
            self.post(server, {"job": 1}, {"job": 2}, {"job": 3})
            worker = self.worker(server)
            self.assertEqual(worker.says(), ("begun", {"job": 1}))
            worker.go_on("and fail")
            self.assertEqual(worker.says(), ("failed", {"job": 1}))
            for n in (2, 3):
                self.assertEqual(worker.says(), ("begun", {"job": n}))
                worker.go_on()
                self.assertEqual(worker.says(), ("done", {"job": n}))
            self.assertEqual(worker.says(), ("begun", {"job": 1}))  # it was given back
            worker.go_on()
            self.assertEqual(worker.says(), ("done", {"job": 1}))
            eventually(lambda: self.counts(server) == (0, 0))
            status, _, errors = worker.stop()
            self.assertEqual(status, 0)
            self.assertIn("ValueError: the job cannot be done", errors)

    def test_a_poison_message_goes_to_the_dead_letter_queue(self):
        with Listening() as server:
            self.run_commands(server, printed("bash").partition("# Two jobs")[0])
            self.post(server, "poison", {"job": 2})
            worker = self.worker(server, held=False)
            said = [worker.says() for _ in range(6)]
            self.assertEqual(said, [("failed", "poison"), ("done", {"job": 2})] +
                             [("failed", "poison")] * 4)
            dead = "/v2/queues/mail-dead/stats"
            eventually(lambda: self.fetch(server, "GET", dead)[1]["messages"]["free"] == 1)
            self.assertEqual(self.counts(server), (0, 0))
            message, = self.fetch(server, "GET", "/v2/queues/mail-dead/messages?echo=true")[1]["messages"]
            self.assertEqual(message["ttl"], 1209600)
            listed = self.run_commands(server, printed("sh", 3).partition("\n")[0])
            self.assertIn('"poison"', listed)
            self.assertRegex(listed, r"AttributeError: .* mail ")
            self.post(server, {"job": 3})
            self.assertEqual(worker.says(), ("done", {"job": 3}))
            self.assertEqual(worker.stop()[0], 0)

    def test_settings_of_a_queue_that_exists_are_set_by_the_command_of_the_page(self):
        create = printed("bash").partition("# Two jobs")[0]
        change, show = printed("bash", 1), printed("sh", 2)
        with Listening() as server:
            self.post(server, {"job": 1})
            self.run_commands(server, create, 1, (
                "claimd: queue mail exists with other settings (_max_claim_count=null _dead_letter_queue=null "
                "_dead_letter_queue_messages_ttl=null). claimd set changes them\n"))
            self.assertNotIn("_max_claim_count", self.run_commands(server, show))
            for lines in (change, show):
                self.assertIn('_max_claim_count=5 _dead_letter_queue="mail-dead" ',
                              self.run_commands(server, lines))

    def test_a_dead_letter_goes_back_by_the_command_of_the_page(self):
        create = printed("bash").partition("# Two jobs")[0]
        with Listening() as server:
            self.run_commands(server, create)
            self.post(server, {"job": 1})
            claimed = self.fetch(server, "POST", QUEUE + "/claims", {"ttl": 60})[1]["messages"][0]
            claim = claimed["href"].partition("claim_id=")[2]
            self.fetch(server, "POST", "/claimd/queues/mail/claims/%s/finish" % claim,
                       {"dead_letter": [claimed["id"]]})
            self.assertIn("1 message moved, 0 remain", self.run_commands(server, printed("sh", 3)))
            self.assertEqual(self.counts(server), (1, 0))

    def test_the_page_shows_the_jobs_that_wait_for_another_attempt(self):
        with Listening() as server:
            self.post(server, {"job": 1})
            claimed = self.fetch(server, "POST", QUEUE + "/claims", {"ttl": 60})[1]["messages"][0]
            claim = claimed["href"].partition("claim_id=")[2]
            self.fetch(server, "POST", "/claimd/queues/mail/claims/%s/finish" % claim,
                       {"release": [{"id": claimed["id"], "delay": 60, "reason": "no route"}]})
            self.assertRegex(self.run_commands(server, printed("sh", 1)), " delayed .* no route ")

    # Claims of 12 s are renewed after 4: a test may be late by 8 s, and only then.

    def test_it_renews_its_claim_while_it_works(self):
        with Listening() as server:
            self.post(server, {"job": 1})
            worker = self.worker(server, ttl=12)
            self.assertEqual(worker.says(), ("begun", {"job": 1}))
            self.assertIn("status=204", server.logged("method=PATCH"))
            worker.go_on()
            self.assertEqual(worker.says(), ("done", {"job": 1}))
            eventually(lambda: self.counts(server) == (0, 0))
            self.post(server, {"job": 2})
            self.assertEqual(worker.says(), ("begun", {"job": 2}))  # and nothing undone
            self.assert_stops(worker)

    def test_a_response_that_is_too_late_is_undone(self):
        with Listening() as server:
            self.post(server, {"job": 1}, {"job": 2})
            worker = self.worker(server)
            self.assertEqual(worker.says(), ("begun", {"job": 1}))
            self.assertEqual(self.fetch(server, "DELETE", self.claim_of_the_worker(server))[0], 204)
            taken = self.fetch(server, "POST", QUEUE + "/claims", {"ttl": 600})[1]["messages"]
            worker.go_on()
            self.assertEqual(worker.says(), ("done", {"job": 1}))
            self.assertEqual(worker.says(), ("undone", {"job": 1}))
            server.logged("status=400")
            self.assertEqual(self.counts(server), (0, 2))  # still those of the other one
            for message in taken:
                self.assertEqual(self.fetch(server, "DELETE", message["href"])[0], 204)
            self.assert_stops(worker)

    def test_a_claim_that_is_lost_while_working_is_noticed_by_the_renewal(self):
        with Listening() as server:
            self.post(server, {"job": 1}, {"job": 2})
            worker = self.worker(server, ttl=12)
            self.assertEqual(worker.says(), ("begun", {"job": 1}))
            self.assertEqual(self.fetch(server, "DELETE", self.claim_of_the_worker(server))[0], 204)
            self.assertIn("status=404", server.logged("method=PATCH"))
            worker.go_on("when the claim is lost")
            self.assertEqual(worker.says(), ("done", {"job": 1}))
            self.assertEqual(worker.says(), ("undone", {"job": 1}))
            # No other worker wanted it: it comes again, and the second message only after it.
            self.assertEqual(worker.says(), ("begun", {"job": 1}))
            worker.go_on()
            self.assertEqual(worker.says(), ("done", {"job": 1}))
            self.assertEqual(worker.says(), ("begun", {"job": 2}))
            self.assert_stops(worker)

    def test_a_server_that_restarts_empty_finds_the_worker_there(self):
        with Listening() as server:
            address = "%s:%d" % (server.host, server.port)
            self.post(server, {"job": 1})
            worker = self.worker(server, ttl=12)
            self.assertEqual(worker.says(), ("begun", {"job": 1}))
        with Listening(listen=address) as server:
            self.assertIn("status=404", server.logged("method=PATCH"))
            worker.go_on("when the claim is lost")
            self.assertEqual(worker.says(), ("done", {"job": 1}))
            self.assertEqual(worker.says(), ("undone", {"job": 1}))
            self.post(server, {"job": 2})
            self.assertEqual(worker.says(), ("begun", {"job": 2}))
            self.assert_stops(worker)

    def test_a_worker_that_has_to_stop_releases_what_it_has_not_begun(self):
        with Listening() as server:
            self.post(server, {"job": 1}, {"job": 2}, {"job": 3})
            worker = self.worker(server)
            self.assertEqual(worker.says(), ("begun", {"job": 1}))
            self.assertEqual(self.counts(server), (0, 3))
            self.assertEqual(worker.stop(), (0, 'done {"job": 1}\n', ""))
            self.assertEqual(self.counts(server), (2, 0))

    def test_a_worker_reports_a_refused_request(self):
        with Listening() as server:
            worker = self.worker(server, ttl=0)
            _, errors = worker.process.communicate(timeout=PATIENCE_S)
            self.assertEqual(worker.process.returncode, 1)
            self.assertIn("400", errors)


class Listening(Server):
    """A server with an access log, for short claims; HTTP by the library will do here."""

    def __init__(self, *options, **more):
        super().__init__(*SHORT, *options, **more)

    def connect_http(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE_S)


class Waiter:
    """Stands in for `stopping`: writes down how long it should have waited, and does not."""

    def __init__(self, stop_after):
        self.waits, self.stop_after = [], stop_after

    def wait(self, seconds):
        self.waits.append(seconds)

    def is_set(self):
        return len(self.waits) >= self.stop_after


class Scripted(Receiver):
    """A server that gives the responses it was given, one after the other, and then cuts the connection."""

    def __init__(self, *responses):
        self.requested, self.responses = 0, list(responses)
        super().__init__(self.receive)

    def receive(self, *_):
        self.requested += 1
        return self.responses.pop(0) if self.responses else (None, {})


class Pauses(Case):
    """How long it would wait, without waiting."""

    def load(self, server, stop_after):
        self.save(examples.at(server, printed()))
        spec = importlib.util.spec_from_file_location("worker", self.path)
        module = importlib.util.module_from_spec(spec)
        sys.dont_write_bytecode = True
        spec.loader.exec_module(module)
        module.stopping = Waiter(stop_after)
        return module

    def waits(self, *responses):
        server = Scripted(*responses)
        self.addCleanup(server.close)
        worker = self.load(server, len(responses))
        try:
            worker.run("mail", 60)
        except worker.Unreachable:
            pass
        self.assertEqual(server.requested, len(responses))  # one pause behind each
        return worker, worker.stopping.waits

    def test_pauses_of_an_empty_queue_grow_to_a_limit_and_are_random(self):
        worker, waits = self.waits(*[(204, {})] * 40)
        ceiling = worker.SHORTEST_PAUSE
        for wait in waits:
            self.assertTrue(0 <= wait <= ceiling, waits)
            ceiling = min(2 * ceiling, worker.LONGEST_PAUSE)
        self.assertGreater(len(set(waits)), 30)
        self.assertGreater(max(waits), 1)

    def test_a_busy_server_is_left_alone_as_long_as_it_says(self):
        _, waits = self.waits((503, {"Retry-After": "7"}), (503, {}), (204, {}), (204, {}))
        self.assertTrue(7 <= waits[0] <= 7.1 and 1 <= waits[1] <= 1.2, waits)
        self.assertTrue(waits[2] <= 0.1, waits)  # it claims, and the queue is empty

    def test_a_project_that_has_as_much_as_it_may_waits(self):
        _, waits = self.waits((429, {"Retry-After": "5"}), (204, {}), (204, {}))
        self.assertTrue(5 <= waits[0] <= 5.1, waits)

    def test_without_a_good_token_it_ends(self):
        server = Scripted((401, {}))
        self.addCleanup(server.close)
        with self.assertRaises(SystemExit) as end:
            self.load(server, 1).run("mail", 60)
        self.assertRegex(str(end.exception), "^401 ")

    def test_connections_that_are_cut_are_made_again(self):
        _, waits = self.waits((None, {}), (None, {}), (204, {}), (204, {}))
        self.assertEqual(len(waits), 4)


class Fence(unittest.TestCase):
    """The statements of the page for a database."""

    def test_a_write_under_an_older_claim_changes_no_row(self):
        alter, update = examples.blocks(page(), "sql")
        table = sqlite3.connect(":memory:")
        self.addCleanup(table.close)
        table.execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY, result TEXT)")
        table.execute("INSERT INTO jobs VALUES (7, NULL)")
        table.execute(alter)
        older, newer = 7302444236537857, 7302444236537858
        self.assertIn("Claim-Number: %d" % older, page())
        self.assertIn("Claim-Number: %d" % newer, page())
        for n, result, changed in ((older, "begun", 1), (newer, "done", 1), (newer, "done", 1),
                                   (older, "late", 0)):
            with self.subTest(n=n, result=result):
                wrote = table.execute(update, {"id": 7, "n": n, "result": result})
                self.assertEqual(wrote.rowcount, changed)
        self.assertEqual(table.execute("SELECT * FROM jobs").fetchall(), [(7, "done", newer)])


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # the page leaves its connection to the collector
