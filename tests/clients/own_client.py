"""The promises of both clients of claimd: Python and node run the same tests by a driver in their language.

A driver (driver/) reads orders, one JSON object a line, and calls its client.
"""

import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse

from client_case import CLAIMD, CLIENT_ID, HERE, environment, needs
from certificates import Workshop
from daemon import PATIENCE_S, Daemon, eventually
import examples
from fake_server import FakeServer

SOURCES = os.path.realpath(os.path.join(HERE, "..", "..", "src", "clients"))
SHORT = ("--ci", "--ci-short")
DEAD_LETTERING = {"_max_claim_count": 2, "_dead_letter_queue": "dead"}


class Failure(Exception):
    """The client has raised an exception: its name, status and text."""

    def __init__(self, error, status, text):
        super().__init__("%s: %s" % (error, text))
        self.error, self.status, self.text = error, status, text


class EndlessResponse(FakeServer):
    """A server whose response comes a byte at a time, without end, also if the client half-closes."""

    def __init__(self):
        self.over = threading.Event()
        super().__init__()

    def speak(self, other):
        other.sendall(b"HTTP/1.1 200 OK\r\nX-Header: ")
        while not self.over.wait(0.2):
            other.sendall(b"x")

    def __exit__(self, *error):
        self.over.set()
        super().__exit__(*error)


class FirstRenewalFails(FakeServer):
    """A server of one claim, behind a proxy that has an error of its own at the first renewal."""

    CLAIM = b"""{"messages": [{"id": "1", "body": 1, "href": "/v2/queues/jobs/messages/1?claim_id=1",
                               "details": {"delivery_count": 1}}]}"""
    RESPONSES = (b"HTTP/1.1 201 Created\r\nLocation: /v2/queues/jobs/claims/1\r\nClaim-Number: 1\r\n"
                 b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(CLAIM), CLAIM),
                 b"HTTP/1.1 500 Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                 b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")

    def __init__(self):
        self.renewed = threading.Event()
        super().__init__()

    def speak(self, other):
        number = len(self.requests)
        other.sendall(self.RESPONSES[min(number, 3) - 1])
        if number > 2:
            self.renewed.set()


class Driver:
    def __init__(self, command, **variables):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True,
                                        env=without_options(**variables))
        self.errors = []
        self.reader = threading.Thread(target=lambda: self.errors.extend(self.process.stderr))
        self.reader.start()

    def order(self, order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def says(self):
        watchdog = threading.Timer(PATIENCE_S, self.process.kill)
        watchdog.start()
        line = self.process.stdout.readline()
        watchdog.cancel()
        if not line:
            raise RuntimeError("the driver ended: " + self.end())
        return json.loads(line)

    def result(self):
        said = self.says()
        if "error" in said:
            raise Failure(**said)
        return said["result"]

    def fetch(self, word, **order):
        self.order({"do": word, **order})
        return self.result()

    def end(self):
        """Ends it. Its messages on standard error."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.stdin.close()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return "".join(self.errors)


def without_options(**variables):
    clean = {k: v for k, v in environment().items() if not k.startswith("CLAIMD_")}
    return {**clean, **variables}


class Server(Daemon):
    """A server with the test API, and requests to it as another client."""

    def __init__(self, *options, **more):
        super().__init__(CLAIMD, *options, stderr=subprocess.DEVNULL, **more)

    def fetch(self, method, path, document=None, **headers):
        connection = self.connect()
        connection.request(method, path, None if document is None else json.dumps(document),
                           {"Client-ID": CLIENT_ID, "X-Project-ID": "demo", "Content-Type": "application/json", **headers})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        if response.status >= 300:
            raise RuntimeError("%s %s: %d %s" % (method, path, response.status, text))
        is_json = text and "json" in response.headers["Content-Type"]
        return json.loads(text) if is_json else text

    def post(self, *bodies, queue="jobs"):
        self.fetch("POST", "/v2/queues/%s/messages" % queue,
                   {"messages": [{"body": body, "ttl": 3600} for body in bodies]})

    def counts(self, queue="jobs"):
        """How many messages are ready, and how many are claimed."""
        counts = self.fetch("GET", "/v2/queues/%s/stats" % queue)["messages"]
        return counts["free"], counts["claimed"]

    def history(self, *events):
        path = "/claimd/history?limit=1000&event=" + ",".join(events)
        return self.fetch("GET", path)["history"]

    def fault(self, action, fault, times=1):
        self.fetch("PUT", "/claimd/faults", {"faults": [
            {"match": {"action": action}, "fault": fault, "times": times}]})

    def advance(self, seconds):
        self.fetch("POST", "/claimd/clock/advance", {"seconds": seconds})

    def claim_id(self):
        return self.history("claimed")[-1]["claim"]

    def end_claim(self):
        """Another client releases the last claim."""
        self.fetch("DELETE", "/v2/queues/jobs/claims/" + self.claim_id())

    def waiters(self):
        metrics = self.fetch("GET", "/metrics")
        return int(metrics.partition('claimd_http_connections{phase="parked"} ')[2].split("\n")[0])


class Case(unittest.TestCase):
    command = ()  # of the driver

    def serve(self, *options, **more):
        server = Server(*options, **more)
        self.addCleanup(self.stop, server)
        return server

    def stop(self, server):
        if not server.process.stdout.closed:  # a test may have stopped it
            self.assertEqual(server.stop(), 0)

    def drive(self, url, project="demo", token="", variables=(), **more):
        driver = Driver([*self.command, *more.get("words", ())], **dict(variables))
        self.addCleanup(driver.end)
        driver.fetch("connect", url=url, project=project, token=token)
        return driver

    def begin(self, *options):
        """A server with short leases, and a driver."""
        server = self.serve(*SHORT, *options)
        return server, self.drive(server.url)

    def assert_fails(self, name, status, driver, *words, **order):
        with self.assertRaises(Failure) as failure:
            driver.fetch(*words, **order)
        self.assertEqual((failure.exception.error, failure.exception.status), (name, status))
        return failure.exception.text


class Requests:
    """Post, claim, delete, finish, retry and release."""

    def test_jobs_are_posted_claimed_and_deleted(self):
        server, driver = self.begin()
        ids = driver.fetch("post", queue="jobs", bodies=[{"job": 1}, "zwei ☃", [3], None], ttl=300)
        jobs = driver.fetch("claim", queue="jobs", limit=5)
        self.assertEqual(jobs, [{"id": ident, "body": body, "attempt": 1} for ident, body in
                                zip(ids, [{"job": 1}, "zwei ☃", [3], None])])
        for n in range(4):
            driver.fetch("delete", job=n)
        self.assertEqual(server.counts(), (0, 0))
        self.assertEqual(server.history("claim_ended", "released", "deleted"), [])

    def test_terms_of_a_post_are_sent_if_they_are_given(self):
        server, driver = self.begin()
        server.fetch("PUT", "/v2/queues/jobs", {"_default_message_delay": 30})
        driver.fetch("post", queue="jobs", bodies=[1])
        driver.fetch("post", queue="jobs", bodies=[2], delay=0, ttl=777)
        job, = driver.fetch("claim", queue="jobs", wait=0)
        self.assertEqual(job["body"], 2)
        message = server.fetch("GET", "/v2/queues/jobs/messages/" + job["id"])
        self.assertEqual(message["ttl"], 777)

    def test_an_empty_queue_has_no_claim(self):
        _, driver = self.begin()
        self.assertIsNone(driver.fetch("claim", queue="jobs", wait=0))
        begun = time.monotonic()
        self.assertIsNone(driver.fetch("claim", queue="jobs", wait=1))
        self.assertGreaterEqual(time.monotonic() - begun, 1)

    def test_a_server_that_does_not_wait_gets_requests_until_the_time_is_over(self):
        server, driver = self.begin("--max-wait", "0")
        driver.order({"do": "claim", "queue": "jobs", "wait": 20})
        server.post(1)
        self.assertEqual(driver.result()[0]["body"], 1)
        self.assertIsNone(driver.fetch("claim", queue="jobs", wait=1))

    def test_a_finish_deletes_a_job_and_posts_the_next_in_one_step(self):
        server, driver = self.begin()
        driver.fetch("post", queue="jobs", bodies=[1])
        driver.fetch("claim", queue="jobs")
        posted, = driver.fetch("finish", post=[{"queue": "next", "messages": [{"body": 2}]}])
        self.assertEqual((posted["queue"], len(posted["resources"])), ("next", 1))
        self.assertEqual((server.counts(), server.counts("next")), ((0, 0), (1, 0)))

    def test_a_failed_job_is_delayed_with_its_reason(self):
        server, driver = self.begin()
        ident, = driver.fetch("post", queue="jobs", bodies=[1])
        driver.fetch("claim", queue="jobs")
        driver.fetch("retry", delay=30, reason="no route")
        message = server.fetch("GET", "/v2/queues/jobs/messages/" + ident, Prefer="details")
        self.assertEqual((message["details"]["state"], message["details"]["last_reason"]),
                         ("delayed", "no route"))
        server.advance(30)
        job, = driver.fetch("claim", queue="jobs")
        self.assertEqual((job["id"], job["attempt"]), (ident, 2))

    def test_a_released_claim_requeues_the_jobs_that_have_not_ended(self):
        server, driver = self.begin()
        driver.fetch("post", queue="jobs", bodies=[1, 2, 3])
        driver.fetch("claim", queue="jobs", limit=3)
        driver.fetch("delete", job=1)
        driver.fetch("release")
        self.assertEqual(server.counts(), (2, 0))
        self.assertEqual([job["body"] for job in driver.fetch("claim", queue="jobs", limit=3)], [1, 3])

    def test_a_claim_has_its_fencing_token(self):
        server, driver = self.begin()
        server.post(1, 2)
        driver.fetch("claim", queue="jobs")
        driver.fetch("claim", queue="jobs")
        first, second = driver.fetch("number", claim=0), driver.fetch("number", claim=1)
        self.assertEqual(int(second), int(first) + 1)
        self.assertGreater(int(first), 2 ** 52)

    def test_a_claim_is_renewed_after_a_third_of_its_lease(self):
        server, driver = self.begin()
        driver.fetch("post", queue="jobs", bodies=[1])
        driver.fetch("claim", queue="jobs", lease=3)
        eventually(lambda: len(server.history("renewed")) == 2)
        self.assertFalse(driver.fetch("lost"))
        driver.fetch("delete")
        self.assertEqual(server.history("claim_ended"), [])

    def test_a_claim_that_took_long_is_renewed_at_once(self):
        server, driver = self.begin()
        driver.order({"do": "claim", "queue": "jobs", "lease": 3})
        eventually(lambda: server.waiters() == 1)
        time.sleep(1.5)
        server.post(1)
        driver.result()
        self.assertEqual(len(server.history("renewed")), 1)
        self.assertFalse(driver.fetch("lost"))

    def test_a_late_deletion_is_lost(self):
        server, driver = self.begin()
        driver.fetch("post", queue="jobs", bodies=[1])
        for word, more in (("delete", {}), ("finish", {}), ("retry", {"delay": 1, "reason": ""})):
            driver.fetch("claim", queue="jobs")
            server.advance(61)
            self.assertFalse(driver.fetch("lost"))
            self.assert_fails("Lost", None, driver, word, **more)
            self.assertTrue(driver.fetch("lost"))
            self.assertEqual(server.counts(), (1, 0))

    def test_a_renewal_learns_that_the_lease_has_ended(self):
        server, driver = self.begin()
        driver.fetch("post", queue="jobs", bodies=[1])
        driver.fetch("claim", queue="jobs", lease=12)
        server.end_claim()
        eventually(lambda: driver.fetch("lost"))
        self.assertEqual(server.history("refused")[-1]["action"], "claims:update")
        refused = len(server.history("refused"))
        self.assert_fails("Lost", None, driver, "delete")
        self.assertEqual(len(server.history("refused")), refused)  # it sent no request

    def test_refused_requests_have_status_and_description(self):
        _, driver = self.begin()
        text = self.assert_fails("Failed", 400, driver, "post", queue="jobs", bodies=[1], ttl=0)
        self.assertIn("messages[0].ttl", text)
        self.assertIn("queue name", self.assert_fails("Failed", 400, driver, "claim", queue="a b"))

    def test_terms_of_a_wrong_type_are_refused_at_once(self):
        server, driver = self.begin()
        server.post(1)
        for name in (None, 5, ""):
            self.assertIn("queue name", self.assert_fails("TypeError", None, driver, "claim", queue=name))
        for term, value in (("lease", None), ("lease", 1.5), ("limit", "2&x=1"), ("wait", "1"), ("wait", None)):
            text = self.assert_fails("TypeError", None, driver, "claim", queue="jobs", **{term: value})
            self.assertIn(term, text)
        driver.fetch("claim", queue="jobs")
        for delay, reason in (("x", ""), (None, ""), (1, 5), (1, [])):
            text = self.assert_fails("TypeError", None, driver, "retry", delay=delay, reason=reason)
            self.assertRegex(text, "^(delay|reason) is ")
        driver.fetch("delete")
        self.assertEqual(len(server.history("claimed")), 1)

    def test_an_address_without_a_scheme_or_a_host_is_refused(self):
        for url in ("127.0.0.1:8888", "ftp://127.0.0.1", "http:///v2"):
            driver = Driver(self.command)
            self.addCleanup(driver.end)
            with self.assertRaisesRegex(Failure, "must begin with http:// or https://"):
                driver.fetch("connect", url=url)

    def test_only_scheme_host_port_and_path_make_an_address(self):
        server = self.serve(*SHORT)
        self.drive(server.url.replace("http:", "HTTP:")).fetch("post", queue="jobs", bodies=[1])
        for url in ("http://user:pw@127.0.0.1", "http://127.0.0.1?a=b", "http://127.0.0.1#a",
                    "http://127.0.0.1:80 ", "http://127.0.0.1:80a", "http://127.0.0.1:65536", "http://:80"):
            driver = Driver(self.command)
            self.addCleanup(driver.end)
            with self.subTest(url=url), self.assertRaisesRegex(Failure, "(only|not valid|https://)$") as failure:
                driver.fetch("connect", url=url)
            self.assertIn(url, failure.exception.text)

    def test_a_header_that_cannot_be_sent_is_an_error_at_once(self):
        server = self.serve(*SHORT)
        driver = self.drive(server.url, project="demo\nX-Header: 1")
        with self.assertRaisesRegex(Failure, "^(Value|Type)Error: Invalid"):
            driver.fetch("post", queue="jobs", bodies=[1])

    def test_the_environment_names_server_project_and_token(self):
        server = self.serve(*SHORT)
        driver = Driver(self.command, CLAIMD_URL=server.url + "/", CLAIMD_PROJECT="dé mo ☃",
                        CLAIMD_TOKEN="it is ignored")
        self.addCleanup(driver.end)
        driver.fetch("connect", project="")
        driver.fetch("post", queue="jobs", bodies=["ä"])
        driver.fetch("claim", queue="jobs")
        driver.fetch("delete")
        path = "/claimd/history?event=posted,finished&project=" + urllib.parse.quote("dé mo ☃")
        self.assertEqual(len(server.fetch("GET", path)["history"]), 2)


class Faults:
    """Lost, broken and refused responses."""

    def test_a_lost_response_to_a_post_posts_once(self):
        for fault in ("cut=after", "half", "cut=before"):
            server, driver = self.begin()
            server.fault("messages:create", fault)
            ids = driver.fetch("post", queue="jobs", bodies=[1, 2])
            self.assertEqual((len(ids), server.counts()), (2, (2, 0)), fault)
            self.assertEqual(len(server.history("fault")), 1)

    def test_a_lost_response_to_a_claim_gives_the_same_claim(self):
        for fault in ("cut=after", "half"):
            server, driver = self.begin()
            driver.fetch("post", queue="jobs", bodies=[1])
            server.fault("claims:create", fault)
            job, = driver.fetch("claim", queue="jobs")
            self.assertEqual((job["attempt"], len(server.history("claimed"))), (1, 1), fault)
            self.assertEqual(len(server.history("renewed")), 1)  # when did its lease begin?
            driver.fetch("delete")

    def test_a_lost_response_to_an_end_is_no_lost_job(self):
        post = [{"queue": "next", "messages": [{"body": 2}]}]
        for word, more in (("delete", {}), ("finish", {"post": post}),
                           ("retry", {"delay": 0, "reason": "x"})):
            server, driver = self.begin()
            driver.fetch("post", queue="jobs", bodies=[1])
            driver.fetch("claim", queue="jobs")
            server.fault("messages:delete" if word == "delete" else "claims:update", "cut=after")
            driver.fetch(word, **more)
            self.assertEqual(len(server.history("fault")), 1)
            self.assertEqual(server.counts("next"), (int(word == "finish"), 0))
            self.assertEqual(server.counts(), (int(word == "retry"), 0))

    def test_a_busy_server_is_left_alone_as_long_as_it_says(self):
        for status in (503, 429):
            server, driver = self.begin()
            server.fault("messages:create", "status=%d; retry_after=1" % status)
            begun = time.monotonic()
            driver.fetch("post", queue="jobs", bodies=[1])
            self.assertGreaterEqual(time.monotonic() - begun, 1)
            self.assertEqual(server.counts(), (1, 0))

    def test_a_server_that_stays_busy_or_silent_fails_at_the_deadline(self):
        server, driver = self.begin()
        server.fault("messages:get_all", "status=503; retry_after=1", times=0)
        self.assert_fails("Failed", 503, driver, "request", method="GET", seconds=0.5,
                          path="/v2/queues/jobs/messages")
        server.stop()
        text = self.assert_fails("Failed", 0, driver, "request", method="GET", path="/", seconds=0.5)
        self.assertIn("refused", text.lower() + "refused" * ("ECONNREFUSED" in text))

    def test_a_claim_that_ends_before_its_response_is_lost_later(self):
        server, driver = self.begin()
        driver.fetch("post", queue="jobs", bodies=[1])
        server.fault("claims:create", "end_claim")
        driver.fetch("claim", queue="jobs")
        self.assert_fails("Lost", None, driver, "delete")

    def test_a_response_without_end_fails_at_the_deadline(self):
        with EndlessResponse() as server:
            driver = self.drive(server.url)
            begun = time.monotonic()
            self.assert_fails("Failed", 0, driver, "request", method="GET", path="/", seconds=1)
            self.assertLess(time.monotonic() - begun, 20)  # 10 s

    def test_responses_of_another_server_are_refused(self):
        head = "HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n%s\r\n%s"
        terms = "Location: /v2/queues/jobs/claims/1\r\nClaim-Number: 1\r\n"
        for status, headers, document in (
                ("200 OK", "", '{"a": 1}'), ("200 OK", "", "[1]"), ("201 Created", "", '{"messages": []}'),
                ("201 Created", terms, "{}"), ("201 Created", terms, '{"messages": [{"id": "1"}]}'),
                ("201 Created", terms, '{"messages": 1}'), ("201 Created", terms, "null")):
            text = head % (status, len(document), headers, document)
            with self.subTest(status=status, document=document), FakeServer(text.encode()) as server:
                driver = self.drive(server.url)
                for word, more in (("post", {"bodies": [1]}), ("claim", {}), ("work", {})):
                    said = self.assert_fails("Failed", int(status[:3]), driver, word, queue="jobs", **more)
                    self.assertIn("no response of claimd", said)
        with FakeServer((head % ("200 OK", 99999, "", "[" * 99999)).encode()) as server:
            driver = self.drive(server.url)
            self.assert_fails("Failed", 200, driver, "request", method="GET", path="/", seconds=0.3)

    def test_a_redirect_is_an_error_that_names_its_target(self):
        text = "HTTP/1.1 301 Moved\r\nLocation: https://127.0.0.1:1/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        with FakeServer(text.encode()) as proxy:
            driver = self.drive(proxy.url)
            text = self.assert_fails("Failed", 301, driver, "post", queue="jobs", bodies=[1])
            self.assertIn("https://127.0.0.1:1/", text)

    def test_the_page_of_a_proxy_is_shown(self):
        page = "HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: 4\r\nConnection: close\r\n\r\n<p>\xe4"
        for status, code in (("404 Not Found", 404), ("502 Bad Gateway", 502), ("200 OK", 200)):
            with FakeServer((page % status).encode("latin-1")) as proxy:
                driver = self.drive(proxy.url)
                text = self.assert_fails("Failed", code, driver, "request", method="GET", path="/",
                                         seconds=0.3)
                self.assertIn("<p>", text)

    def test_a_claim_is_renewed_again_after_a_renewal_that_failed(self):
        with FirstRenewalFails() as server:
            driver = self.drive(server.url)
            driver.fetch("claim", queue="jobs", lease=2)
            self.assertTrue(server.renewed.wait(PATIENCE_S))
            self.assertFalse(driver.fetch("lost"))


class Work:
    """The loop of a worker."""

    refused_functions = ()
    refused_results = ()

    def work(self, driver, **more):
        driver.order({"do": "work", "queue": "jobs", **more})

    def begins(self, driver, body, attempt=1):
        self.assertEqual(driver.says(), {"begun": body, "attempt": attempt})

    def does(self, driver, body, attempt=1):
        self.begins(driver, body, attempt)
        driver.order("done")
        self.assertEqual(driver.says(), {"done": body})

    def assert_stops(self, driver, number=signal.SIGTERM):
        begun = time.monotonic()
        driver.process.send_signal(number)
        self.assertEqual(driver.result(), "stopped")
        self.assertLess(time.monotonic() - begun, 15)  # long polling takes 20 s

    def test_it_does_what_is_posted_and_stops_while_it_waits(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server, driver = self.begin()
            server.post({"job": 1}, {"job": 2})
            self.work(driver)
            self.does(driver, {"job": 1})
            self.does(driver, {"job": 2})
            eventually(lambda: server.waiters() == 1)
            server.post({"job": 3})
            self.does(driver, {"job": 3})
            eventually(lambda: server.waiters() == 1)
            self.assert_stops(driver, number)
            self.assertEqual(server.counts(), (0, 0))
            self.assertEqual(driver.end(), "")

    def test_a_worker_that_must_stop_ends_its_job_and_releases_the_rest(self):
        server, driver = self.begin()
        server.post(1, 2, 3)
        self.work(driver, limit=5)
        self.begins(driver, 1)
        driver.process.send_signal(signal.SIGTERM)
        driver.order("is it lost")  # node reads signals and lines in any order
        self.assertFalse(driver.says())
        driver.order("done")
        self.assertEqual(driver.says(), {"done": 1})
        self.assertEqual(driver.result(), "stopped")
        self.assertEqual(server.counts(), (2, 0))

    def test_a_worker_stops_while_the_server_is_down(self):
        server, driver = self.begin()
        self.work(driver)
        eventually(lambda: server.waiters() == 1)
        server.stop()
        self.assert_stops(driver)

    def test_a_worker_stops_while_a_response_does_not_end(self):
        with EndlessResponse() as server:
            driver = self.drive(server.url)
            self.work(driver)
            self.assertTrue(server.requested.acquire(timeout=PATIENCE_S))
            self.assert_stops(driver)  # after 5 s

    def test_a_job_that_fails_is_tried_again_and_does_not_hold_up_the_others(self):
        server, driver = self.begin()
        server.post(1, 2)
        self.work(driver, limit=5, pause=30)
        self.begins(driver, 1)
        driver.order("fail")
        self.does(driver, 2)
        eventually(lambda: server.waiters() == 1)
        message, = server.fetch("GET", "/v2/queues/jobs/messages?echo=true&include_delayed=true",
                                Prefer="details")["messages"]
        self.assertRegex(message["details"]["last_reason"], "^(Value|Type)Error: the job cannot be done")
        server.advance(30)
        self.does(driver, 1, attempt=2)
        self.assert_stops(driver)
        self.assertIn("the job cannot be done", driver.end())

    def test_a_poison_message_goes_to_the_dead_letter_queue(self):
        server, driver = self.begin()
        server.fetch("PUT", "/v2/queues/jobs", DEAD_LETTERING)
        server.post("poison", 2)
        self.work(driver)
        for attempt in (1, 2):
            self.begins(driver, "poison", attempt)
            driver.order("fail")
        self.does(driver, 2)
        self.assert_stops(driver)
        self.assertEqual((server.counts(), server.counts("dead")), ((0, 0), (1, 0)))

    def test_a_late_job_is_undone_and_the_worker_goes_on(self):
        server, driver = self.begin()
        server.post(1, 2)
        self.work(driver, limit=5)
        self.begins(driver, 1)
        server.end_claim()
        taken = server.fetch("POST", "/v2/queues/jobs/claims?limit=1", {"ttl": 600})["messages"]
        driver.order("done")
        self.assertEqual(driver.says(), {"done": 1})
        self.assertEqual(driver.says(), {"undone": 1})
        self.does(driver, 2, attempt=2)
        server.fetch("DELETE", taken[0]["href"])
        self.assert_stops(driver)
        self.assertEqual(server.counts(), (0, 0))

    def test_a_handler_can_see_that_the_lease_has_ended(self):
        server, driver = self.begin()
        server.post(1)
        self.work(driver, lease=3)
        self.begins(driver, 1)
        server.end_claim()
        server.fetch("POST", "/v2/queues/jobs/claims?limit=1", {"ttl": 600})

        def is_lost():
            driver.order("is it lost")
            return driver.says()

        eventually(is_lost)
        driver.order({"post": []})  # job.finish() raises Lost
        self.assertEqual(driver.says(), {"undone": 1})
        self.assert_stops(driver)

    def test_a_message_that_another_client_deletes_ends_no_worker(self):
        for word in ("done", "fail", {"post": []}):
            server, driver = self.begin()
            server.post(1, 2)
            self.work(driver)
            self.begins(driver, 1)
            server.fetch("DELETE", "/v2/queues/jobs/messages?ids=" +
                         server.history("claimed")[-1]["ids"][0])
            driver.order(word)
            said = driver.says()
            if "begun" not in said:
                self.assertIn(said, ({"done": 1}, {"undone": 1}))
                said = driver.says()
            self.assertEqual(said, {"begun": 2, "attempt": 1})
            driver.order("done")
            self.assertEqual(driver.says(), {"done": 2})
            self.assert_stops(driver)
            self.assertEqual(server.counts(), (0, 0))

    def fails_and_begins_again_after_the_default_pause(self, driver, server, order):
        self.begins(driver, 1)
        driver.order(order)
        eventually(lambda: server.waiters() == 1)
        self.assertEqual((server.counts(), len(server.history("claimed"))), ((1, 0), 1))  # delayed
        server.advance(2)
        self.does(driver, 1, attempt=2)
        self.assert_stops(driver)

    def test_a_retry_that_is_refused_has_the_default_pause(self):
        for pause in (10 ** 7, None, "soon"):
            with self.subTest(pause=pause):
                server, driver = self.begin()
                server.post(1)
                self.work(driver, pause=pause)
                self.fails_and_begins_again_after_the_default_pause(driver, server, "fail")
                self.assertIn("delay", driver.end())

    def test_a_server_that_refuses_each_pause_keeps_the_message_until_the_lease_ends(self):
        server, driver = self.begin("--max-release-delay", "1")
        server.post(1)
        self.work(driver, pause=60, lease=60)
        self.begins(driver, 1)
        driver.order("fail")
        eventually(lambda: server.waiters() == 1)
        self.assertEqual((server.counts(), len(server.history("claimed"))), ((0, 1), 1))
        server.advance(60)
        self.does(driver, 1, attempt=2)
        self.assert_stops(driver)

    def test_a_message_whose_pauses_are_refused_costs_the_others_of_its_claim_nothing(self):
        server, driver = self.begin("--max-release-delay", "1")
        server.post(1, 2, 3)
        self.work(driver, pause=60, lease=3, limit=3)
        self.begins(driver, 1)
        driver.order("fail")
        self.begins(driver, 2)
        eventually(lambda: len(server.history("renewed")) >= 3)  # longer than the lease
        driver.process.send_signal(signal.SIGTERM)
        driver.order("is it lost")  # it handles the signal before it responds
        self.assertFalse(driver.says())
        driver.order("done")
        self.assertEqual(driver.says(), {"done": 2})
        self.assertEqual(driver.result(), "stopped")
        self.assertEqual(server.counts(), (1, 1))  # 3 is released, and 1 is claimed until the lease ends

    def test_a_stop_ends_a_pause_for_retry_after(self):
        server, driver = self.begin()
        server.post(1)
        self.work(driver)
        self.begins(driver, 1)
        server.fault("messages:delete", "status=503; retry_after=40", times=0)
        driver.order("done")
        self.assertEqual(driver.says(), {"done": 1})
        eventually(lambda: len(server.history("fault")) == 1)
        self.assert_stops(driver)

    def test_a_lost_job_of_another_claim_is_a_failure_of_this_one(self):
        server, driver = self.begin()
        server.post(1)
        self.work(driver, pause=2)
        self.fails_and_begins_again_after_the_default_pause(driver, server, "raise Lost")

    def test_an_error_without_a_text_ends_no_worker(self):
        server, driver = self.begin()
        server.post(1)
        self.work(driver)
        self.fails_and_begins_again_after_the_default_pause(driver, server, "fail badly")

    def test_a_function_that_cannot_be_run_is_refused(self):
        _, driver = self.begin()
        for kind in self.refused_functions:
            text = self.assert_fails("TypeError", None, driver, "work_with", kind=kind)
            self.assertIn("work()", text)
        driver.process.send_signal(signal.SIGTERM)  # no handler is left
        self.assertEqual(driver.process.wait(PATIENCE_S), -signal.SIGTERM)

    def test_a_function_that_returns_what_cannot_be_run_has_failed(self):
        for kind in self.refused_results:
            server, driver = self.begin()
            server.post(1)
            self.work(driver, pause=2)
            self.fails_and_begins_again_after_the_default_pause(driver, server, "return a " + kind)
            self.assertIn("which work() cannot run", driver.end())

    def test_a_second_interrupt_ends_the_process(self):
        server, driver = self.begin()
        server.post(1)
        self.work(driver)
        self.begins(driver, 1)
        for _ in range(2):  # npm sends it twice
            driver.process.send_signal(signal.SIGINT)
            driver.order("is it lost")
            self.assertFalse(driver.says())
        time.sleep(1.2)
        driver.process.send_signal(signal.SIGINT)
        self.assertEqual(driver.process.wait(PATIENCE_S), -signal.SIGINT)

    def test_a_job_may_finish_itself(self):
        server, driver = self.begin()
        server.post(1)
        self.work(driver)
        self.begins(driver, 1)
        driver.order({"post": [{"queue": "next", "messages": [{"body": 2}]}]})
        self.assertEqual(driver.says(), {"done": 1})
        self.assert_stops(driver)
        self.assertEqual((server.counts(), server.counts("next")), ((0, 0), (1, 0)))

    def test_lost_and_busy_responses_cost_no_job(self):
        server, driver = self.begin()
        self.work(driver)
        eventually(lambda: server.waiters() == 1)
        for n, (action, fault) in enumerate((
                ("claims:create", "cut=after"), ("claims:create", "half"),
                ("claims:create", "status=503; retry_after=0"), ("messages:delete", "cut=after"),
                ("messages:delete", "status=503; retry_after=0"), ("messages:delete", "cut=before"))):
            server.fault(action, fault)
            server.post(n)
            self.does(driver, n)
        self.assert_stops(driver)
        self.assertEqual((server.counts(), server.history("claim_ended")), ((0, 0), []))
        self.assertEqual([entry["messages"] for entry in server.history("finished")], [1] * 6)

    def test_a_server_that_restarts_finds_the_worker_there(self):
        with tempfile.TemporaryDirectory() as journal:
            server, driver = self.begin("--journal", journal)
            address = "%s:%d" % (server.host, server.port)
            server.post(1)
            self.work(driver)
            self.begins(driver, 1)
            server.process.kill()
            server.wait()
            driver.order("done")  # while there is no server
            self.assertEqual(driver.says(), {"done": 1})
            server = self.serve(*SHORT, "--journal", journal, listen=address)
            eventually(lambda: server.counts() == (0, 0))
            server.post(2)
            self.does(driver, 2)
            self.assert_stops(driver)
            self.assertEqual(server.history("claim_ended"), [])
            self.stop(server)  # before its journal is gone

    def test_without_a_good_token_it_ends(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tokens")
            token = subprocess.run(
                [CLAIMD, "token", "new", "w", "--role", "worker", "--projects", "demo", "--tokens",
                 path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout.strip()
            admin = subprocess.run(
                [CLAIMD, "token", "new", "a", "--role", "admin", "--projects", "*", "--tokens",
                 path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout.strip()
            server = self.serve("--auth", "tokens", "--tokens", path)
            server.fetch("POST", "/v2/queues/jobs/messages", {"messages": [{"body": 1}, {"body": 2}]},
                         **{"X-Auth-Token": admin})
            driver = self.drive(server.url, project="", token=token)
            self.work(driver)
            self.does(driver, 1)
            self.begins(driver, 2)
            subprocess.run([CLAIMD, "token", "revoke", "w", "--tokens", path], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            server.signal(signal.SIGHUP)
            eventually(lambda: self.is_refused(server, token))
            driver.order("done")
            self.assertEqual(driver.says(), {"done": 2})
            self.assertEqual(driver.says(), {"undone": 2})
            with self.assertRaises(Failure) as failure:
                driver.result()
            self.assertEqual((failure.exception.error, failure.exception.status), ("Failed", 401))

    @staticmethod
    def is_refused(server, token):
        try:
            server.fetch("GET", "/v2/queues", **{"X-Auth-Token": token})
        except RuntimeError as error:
            return ": 401 " in str(error)
        return False


class TlsServer(Server):
    def __init__(self, pair, *options):
        self.pair = pair
        super().__init__(*options, *pair.options(), listen="tls:127.0.0.1:0")

    def connect(self, timeout=PATIENCE_S):
        context = ssl.create_default_context(cafile=self.pair.certificate)
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=context)


class WorkerPage:
    """The worker that docs/worker.md prints."""

    def test_the_worker_of_the_page_works_and_stops(self):
        with open(os.path.join(HERE, "..", "..", "docs", "worker.md"), encoding="utf-8") as f:
            blocks = examples.blocks(f.read(), self.language)
        server = self.serve(*SHORT)
        mail, *posts = [examples.at(server, block) for block in blocks if examples.ADDRESS in block
                        and not block.startswith('"""')]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mail." + self.language)
            with open(path, "w", encoding="utf-8") as f:
                f.write(mail)
            worker = Driver([*self.command[:-1], path], **self.variables)
            self.addCleanup(worker.end)
            for post in posts:
                subprocess.run([*self.command[:-1], "-c", post], check=True, env=without_options())
            server.post({"to": "me"}, queue="mail")
            for _ in (*posts, mail):
                self.assertRegex(worker.process.stdout.readline(), r"^done \{ ?'?to'?: 'me' ?\}$")
            eventually(lambda: server.waiters() == 1)
            worker.process.send_signal(signal.SIGTERM)
            self.assertEqual(worker.process.wait(PATIENCE_S), 0)
            self.assertEqual(worker.end(), "")


class Tls:
    authorities = ""  # the variable that names a file of authorities

    def test_it_works_over_tls(self):
        shop = Workshop()
        self.addCleanup(shop.folder.cleanup)
        server = TlsServer(shop.signed("server"), *SHORT)
        self.addCleanup(self.stop, server)
        url = server.url.replace("http:", "https:")
        stranger = self.drive(url)
        self.assert_fails("Failed", 0, stranger, "request", method="GET", path="/", seconds=0.5)
        driver = self.drive(url, variables={self.authorities: server.pair.certificate}.items())
        driver.fetch("post", queue="jobs", bodies=[1])
        self.work(driver)
        self.does(driver, 1)
        eventually(lambda: server.waiters() == 1)
        self.assert_stops(driver)
        self.assertEqual(server.counts(), (0, 0))


class Zaqar:
    """python-zaqarclient on the same queue."""

    @needs("python3-zaqarclient")
    def test_it_shares_a_queue_with_zaqarclient(self):
        from zaqarclient.queues import client as zaqar
        from zaqarclient.transport import errors
        server, driver = self.begin()
        queue = zaqar.Client(server.url, version=2, conf={
            "client_uuid": CLIENT_ID,
            "auth_opts": {"backend": "noauth", "options": {"os_project_id": "demo"}}}).queue("jobs")
        queue.post([{"body": {"job": 1}, "ttl": 300}, {"body": {"job": 2}, "ttl": 300}])
        job, = driver.fetch("claim", queue="jobs")
        self.assertEqual((job["body"], job["attempt"]), ({"job": 1}, 1))
        driver.fetch("delete")
        driver.fetch("post", queue="jobs", bodies=[{"job": 3}], ttl=300)
        held = list(queue.claim(ttl=60, grace=60))
        self.assertEqual([message.body for message in held], [{"job": 2}, {"job": 3}])
        self.assertIsNone(driver.fetch("claim", queue="jobs", wait=0))
        held[0].delete()
        server.advance(60)
        self.assertEqual(driver.fetch("claim", queue="jobs")[0]["attempt"], 2)
        self.assertRaises(errors.MalformedRequest, held[1].delete)
        driver.fetch("delete")
        self.assertEqual(server.counts(), (0, 0))


class Fixture:
    """A suite with the fixture. `suite` has one test of each name, and `run` runs it."""

    passing = frozenset(("redelivered", "faults", "left_on_purpose"))
    failing = {"claim_left": r"leaked: claim \w+ of 1 messages in queue jobs, by client",
               "message_left": r"leaked: message \w+ in queue jobs, never read",
               "dead_letter_left": r"leaked: dead letter \w+ in queue dead from jobs"}

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def write(self, **files):
        for name, text in files.items():
            with open(os.path.join(self.folder, name.replace("_dot_", ".")), "w", encoding="utf-8") as f:
                f.write(text)

    def variables(self, **more):
        path = os.path.dirname(os.path.realpath(CLAIMD)) + os.pathsep + os.environ["PATH"]
        return without_options(**{"PATH": path, **more})

    def run_in_folder(self, *command, **variables):
        done = subprocess.run(command, cwd=self.folder, env=self.variables(**variables),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=5 * PATIENCE_S, check=False)
        return done.returncode, done.stdout

    def processes(self):
        """Those that have been started in the folder."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink("/proc/%s/cwd" % pid) == os.path.realpath(self.folder):
                    found.append(int(pid))
            except OSError:
                pass  # it has ended, or belongs to another user
        return found

    def test_a_suite_starts_a_server_by_itself_and_leaks_fail_it(self):
        status, said = self.run_suite()
        self.assertEqual(status, 1, said)
        self.assertEqual(self.results(said), (len(self.passing) + self.ends_in_failure,
                                              len(self.failing)), said)
        for line in self.failing.values():
            self.assertRegex(said, line)
        eventually(lambda: self.processes() == [])

    def test_a_suite_without_leaks_passes(self):
        status, said = self.run_suite(self.passing)
        self.assertEqual((status, *self.results(said)), (0, len(self.passing), 0), said)

    def test_a_suite_uses_the_server_of_claimd_run(self):
        run = (os.path.realpath(CLAIMD), "run", "--fail-on-leak", "--log", "log", "--access-log", "--")
        status, said = self.run_suite(self.passing, under=run)
        self.assertEqual((status, *self.results(said)), (0, len(self.passing), 0), said)
        self.assertNotIn("leaked", said)  # left_on_purpose said so
        with open(os.path.join(self.folder, "log"), encoding="utf-8") as f:
            self.assertIn("path=/claimd/reset", f.read())

    def test_the_run_reports_what_a_later_test_lets_expire(self):
        run = (os.path.realpath(CLAIMD), "run", "--fail-on-leak", "--")
        status, said = self.run_suite(["claim_left", "dead_letter_left"], under=run)
        self.assertEqual((status, self.results(said)[1]), (1, 2), said)
        self.assertRegex(said, self.failing["claim_left"])
        self.assertRegex(said, r"claimd: leaked: claim .*claim_left\), neither finished nor released, .*"
                               r", expired at ")
        self.assertRegex(said, "(?m)^claimd: 2 leaks: 1 claim, 0 messages never read, 1 dead letter$")

    def test_the_url_of_the_server_may_end_with_a_slash(self):
        with Server("--ci") as server:
            status, said = self.run_suite(self.passing, CLAIMD_URL=server.url + "/")
        self.assertEqual((status, *self.results(said)), (0, len(self.passing), 0), said)

    def test_a_server_that_does_not_start_says_why(self):
        status, said = self.run_suite(self.passing, CLAIMD_WORKRS="2")
        self.assertEqual(status, 1, said)
        self.assertIn("CLAIMD_WORKRS is not an option", said)
        status, said = self.run_suite(self.passing, PATH=self.folder)
        self.assertEqual(status, 1, said)
        self.assertRegex(said, self.missing)

    def test_a_server_that_is_gone_is_named(self):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            url = "http://127.0.0.1:%d" % closed.getsockname()[1]
        status, said = self.run_suite(self.passing, CLAIMD_URL=url)
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"POST %s/claimd/reset\S*: .*(?i:refused)" % url)

    def test_names_of_queues_and_events_are_quoted(self):
        for call, refusal in (('expect("a&claimed=9")', "at least one of"), ('history("claimed&limit=1")', "event")):
            self.write_test(call)
            status, said = self.run_suite()
            self.assertEqual(status, 1, said)
            self.assertRegex(said, ": 400 .*" + refusal)

    def test_no_process_is_left_if_the_tests_are_killed(self):
        process = subprocess.Popen(self.hanging(), cwd=self.folder, env=self.variables(),
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        pid = int(re.search(r"pid (\d+)", next(line for line in process.stdout if "pid " in line))[1])
        self.assertGreaterEqual(len(self.processes()), 4)  # claimd run, a server, sh or cat
        os.kill(pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        eventually(lambda: self.processes() == [])


class OwnClient(Requests, Faults, Work, WorkerPage, Tls, Zaqar):
    """All tests of a client. python_client_test.py and node_client_test.py add its language."""
