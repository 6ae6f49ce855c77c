#!/usr/bin/python3
"""docs/migrating.md: its lines do what it promises, and its tables name what they do.

    migrating_test.py CLAIMD
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

from daemon import PATIENCE_S, Daemon, environment, free_port  # noqa: E402
import examples  # noqa: E402

CLAIMD = sys.argv.pop(1)
WHO = {"Client-ID": "3381af92-2b9e-11e3-b191-71861300734c", "X-Project-ID": "demo"}
BEANSTALKD = shutil.which("beanstalkd")
# The pattern for each letter in a path of the tables.
LETTERS = {"Q": "[^/]+", "M": "[0-9a-f]{24}", "C": "[0-9a-f]{24}", "P": "[^/]+"}

# The first line of the program that moves messages.
MOVE = '"""Moves the ready messages of a queue'


def page():
    path = os.path.join(HERE, "..", "..", "docs", "migrating.md")
    with open(path, encoding="utf-8") as f:
        return f.read()


def section(title):
    """The text below a heading; what comes before the first one has no title."""
    head, found, rest = ("\n## " + page()).partition("\n## %s\n" % title if title else "\n## ")
    assert found, "there is no section %s" % title
    return rest.partition("\n## ")[0]


def table_requests(text):
    """The requests that the tables name: {as they are written there: (method, path, query)}."""
    rows = "\n".join(re.findall(r"^\|.*$", text, re.M))
    return {whole: (method, path, urllib.parse.parse_qs(query, keep_blank_values=True))
            for whole, method, path, query in
            re.findall(r"`((GET|PUT|POST|PATCH|DELETE) (/[^`? ]*)(?:\?([^` ]*))?)`", rows)}


def is_one_of(wanted, sent):
    """True if one of the requests that were sent is what a table has in mind."""
    method, path, query = wanted
    pattern = "/".join(LETTERS.get(part, re.escape(part)) for part in path.split("/"))
    for sent_method, target in sent:
        sent_path, _, sent_query = target.partition("?")
        names = urllib.parse.parse_qs(sent_query)
        if sent_method == method and re.fullmatch(pattern, sent_path) and \
                all(len(names.get(name, ())) >= len(values) for name, values in query.items()):
            return True
    return False


class Case(unittest.TestCase):
    def setUp(self):
        self.scratch = self.enterContext(tempfile.TemporaryDirectory())

    def start(self, *options):
        server = Daemon(CLAIMD, *options)
        server.__enter__()
        self.addCleanup(server.__exit__, None, None, None)
        return server

    def program(self, heading):
        """The program of the page whose first line begins so, in a file."""
        code, = [text for text in examples.blocks(page(), "python") if text.startswith(heading)]
        return code

    def end_of_program(self, code, server, *arguments):
        """The finished process."""
        return subprocess.run([sys.executable, "-c", examples.at(server, code), *arguments],
                              env=environment(), capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)

    def run_program(self, code, server, *arguments):
        run = self.end_of_program(code, server, *arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def fetch(self, server, method, path, document=None):
        connection = server.connect()
        connection.request(method, path, None if document is None else json.dumps(document), WHO)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        self.assertLess(response.status, 300, text)
        return json.loads(text) if text else None

    def bodies(self, server, queue):
        """(body, ttl) of whatever can be popped."""
        popped = self.fetch(server, "DELETE", "/v2/queues/%s/messages?pop=20" % queue)
        return [(message["body"], message["ttl"]) for message in popped["messages"]]


class Walks(Case):
    def assert_examples(self, title, *options):
        """The lines of a section do what they promise, and all that its tables name."""
        text = section(title)
        start = "".join(examples.blocks(section("").partition("\n## ")[0], "bash"))
        lines, = examples.blocks(text, "bash")
        for option in options:
            self.assertIn(option, re.findall(r"scripts/run ([^`\n]*)", text)[0])
        server = self.start(*options)
        run = examples.run_bash(server, start + lines, cwd=self.scratch, env=environment())
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(examples.seen_statuses(run), examples.expected_statuses(lines), run.stdout)
        wanted, sent = table_requests(text), examples.seen_requests(run)
        self.assertGreater(len(wanted), 10)
        for written, request in wanted.items():
            self.assertTrue(is_one_of(request, sent), written)
        return run.stdout

    def test_from_zaqar(self):
        said = self.assert_examples("From Zaqar", "--admin-mode")
        self.assertIn('"team":"red"', said.replace(" ", ""))

    def test_from_cloud_queues(self):
        said = self.assert_examples("From Cloud Queues", "--profile", "rackspace")
        self.assertIn('"total":1', said.replace(" ", ""))

    def test_from_beanstalkd(self):
        said = self.assert_examples("From beanstalkd")
        self.assertIn("Preference-Applied: wait=20", said)

    def test_from_sqs(self):
        said = self.assert_examples("From SQS")
        self.assertIn('"free":2', said.replace(" ", ""))
        self.assertIn("Preference-Applied: wait=1", said)

    def test_an_unsent_request_is_noticed(self):
        sent = [("GET", "/v2/queues/a/messages/%s?claim_id=1" % ("ab" * 12)),
                ("POST", "/claimd/claims?queue=a&limit=1")]
        for text, is_there in (("| `GET /v2/queues/Q/messages/M` |", True),
                               ("| `GET /v2/queues/Q/messages/M?claim_id=C` |", True),
                               ("| `GET /v2/queues/Q/messages/M?ids=M` |", False),
                               ("| `DELETE /v2/queues/Q/messages/M` |", False),
                               ("| `GET /v2/queues/Q/messages` |", False),
                               ("| `POST /claimd/claims?queue=Q` |", True),
                               ("| `POST /claimd/claims?queue=Q&queue=Q` |", False)):
            with self.subTest(text=text):
                request, = table_requests(text).values()
                self.assertIs(is_one_of(request, sent), is_there)


class Limits(unittest.TestCase):
    def test_the_profile_sets_exactly_the_documented_options(self):
        shown = [dict(re.findall(r"^([a-z0-9_]+) *= *(.*?) *(?:;.*)?$", subprocess.run(
            [CLAIMD, *profile, "--print-config"], capture_output=True, text=True,
            timeout=PATIENCE_S, check=True, env=environment()).stdout, re.M))
                 for profile in ((), ("--profile", "rackspace"))]
        changed = {name for name in shown[0] if shown[0][name] != shown[1][name]}
        rows = re.findall(r"^\|.*?\| .*?`([a-z_]+)` \| (.+?) \|$", section("From Cloud Queues"),
                          re.M)
        self.assertEqual(changed - {"profile"},
                         {name for name, _ in rows} | {"min_length_client_id",
                                                       "max_length_client_id"})
        for name, said in rows:
            if said.isdecimal():
                self.assertEqual(shown[1][name], said)
        self.assertIn("any text of %s to %s characters" % (shown[1]["min_length_client_id"],
                                                           shown[1]["max_length_client_id"]),
                      dict(rows)["client_id_uuid_safe"])

    def test_every_option_that_is_named_exists(self):
        options = set(re.findall(r"^([a-z0-9_]+) *=", subprocess.run(
            [CLAIMD, "--print-config"], capture_output=True, text=True, timeout=PATIENCE_S,
            check=True, env=environment()).stdout, re.M))
        named = set(re.findall(r"`((?:max|min|default|enable|client|message|admin)_[a-z0-9_]+)`",
                               page()))
        self.assertGreater(len(named), 20)
        # The one of Zaqar's that is called otherwise here, and the header of a pop's response.
        self.assertEqual(named - options, {"enable_deprecated_api_versions"})


class Moves(Case):
    def test_messages_go_from_server_to_server_in_their_order(self):
        old, new = self.start(), self.start()
        code = self.program(MOVE)
        bodies = [{"job": n, "text": "žluť\u2028 \"%d\"" % n} for n in range(23)]
        self.fetch(old, "POST", "/v2/queues/jobs/messages",
                   {"messages": [{"body": body, "ttl": 5000} for body in bodies]})
        moved = self.run_program(code, new, old.url + "/v2", "jobs")
        self.assertEqual(moved, "moved 23\n")
        self.assertEqual(self.bodies(old, "jobs"), [])
        there = self.bodies(new, "jobs") + self.bodies(new, "jobs")
        self.assertEqual([body for body, _ in there], bodies)
        for _, ttl in there:
            self.assertLessEqual(ttl, 5000)
            self.assertGreater(ttl, 5000 - PATIENCE_S)

    def test_messages_go_from_an_old_version_with_its_project_in_the_path(self):
        old, new = self.start(), self.start()
        self.fetch(old, "POST", "/v2/queues/jobs/messages", {"messages": [{"body": None}]})
        self.run_program(self.program(MOVE), new, old.url + "/v1/demo", "jobs", "q")
        self.assertEqual([body for body, _ in self.bodies(new, "q")], [None])
        self.assertEqual(self.bodies(old, "jobs"), [])

    def test_messages_go_to_another_queue_of_the_same_server(self):
        server = self.start()
        self.fetch(server, "POST", "/v2/queues/old/messages", {"messages": [{"body": 7}]})
        moved = self.run_program(self.program(MOVE), server, server.url + "/v2", "old", "jobs")
        self.assertEqual(moved, "moved 1\n")
        self.assertEqual([body for body, _ in self.bodies(server, "jobs")], [7])

    def assert_move_refused(self, server, expected, *arguments):
        run = self.end_of_program(self.program(MOVE), server, *arguments)
        self.assertEqual((run.returncode, run.stdout), (1, ""), run.stderr)
        self.assertRegex(run.stderr, expected)
        self.assertNotIn("Traceback", run.stderr)

    def test_move_refuses_to_move_a_queue_into_itself(self):
        server = self.start()
        self.fetch(server, "POST", "/v2/queues/jobs/messages", {"messages": [{"body": 7}]})
        for old in (server.url + "/v2", server.url + "/v1/demo",
                    "http://localhost:%d/v2" % server.port):
            for queues in (("jobs",), ("jobs", "jobs")):
                with self.subTest(old=old, queues=queues):
                    self.assert_move_refused(server, "^jobs is on this server already", old,
                                             *queues)
        self.assertEqual([body for body, _ in self.bodies(server, "jobs")], [7])

    def test_move_prints_its_usage_for_wrong_arguments(self):
        server = self.start()
        for arguments in ((), ("jobs",), ("mail-dead", "mail"), ("127.0.0.1:8888/v2", "jobs"),
                          ("http://127.0.0.1:port/v2", "jobs"), ("http:///v2", "jobs"),
                          (server.url + "/v2", "a", "b", "c")):
            with self.subTest(arguments=arguments):
                self.assert_move_refused(server, r"(?m)^usage: python3 move\.py ", *arguments)

    def test_move_names_a_request_that_failed(self):
        server = self.start()
        self.assert_move_refused(server, "^POST .*/queues/jobs/.*refused",
                                 "http://127.0.0.1:%d/v2" % free_port(), "jobs")
        self.assert_move_refused(server, "^POST .*/queues/jobs/.* 404", server.url, "jobs", "q")

    def test_move_says_that_it_found_nothing(self):
        old, new = self.start(), self.start()
        said = self.run_program(self.program(MOVE), new, old.url + "/v2", "jobz")
        self.assertRegex(said, r"\Amoved 0\njobz has no ready message or does not exist\. GET %s"
                         % re.escape(old.url + "/v2/queues"))


@unittest.skipUnless(BEANSTALKD, "beanstalkd is not installed (scripts/packages install bench)")
class Beanstalkd(Case):
    def setUp(self):
        super().setUp()
        self.address = ("127.0.0.1", free_port())
        self.process = subprocess.Popen([BEANSTALKD, "-l", self.address[0], "-p",
                                         str(self.address[1])], env=environment())
        self.addCleanup(self.end)

    def end(self):
        self.process.kill()
        self.process.wait()

    def play(self, lines):
        """Sends what stands in front of each row of responses, and compares those."""
        with connect_at_last(self.address) as old, old.makefile("rwb") as stream:
            for line in lines.splitlines():
                if line.startswith("< "):
                    stream.flush()
                    self.assertEqual(stream.readline().decode(), line[2:] + "\r\n")
                else:
                    stream.write(line.encode() + b"\r\n")
            stream.flush()

    def test_the_lines_of_the_page(self):
        lines, = examples.blocks(section("From beanstalkd"), "beanstalkd")
        self.assertGreater(lines.count("\n< "), 15)
        self.play(lines)

    def test_jobs_are_moved_in_the_order_in_which_they_are_reserved(self):
        new = self.start()
        self.play('use mail\n< USING mail\n'
                  'put 9 0 60 7\n[1, 2 ]\n< INSERTED 1\n'
                  'put 1 0 60 4\nurge\n< INSERTED 2\n'
                  'put 9 99 60 2\n77\n< INSERTED 3\n')
        code = self.program('"""Moves the ready jobs')
        moved = self.run_program(code, new, "%s:%d" % self.address, "mail", "letters")
        self.assertEqual(moved, "moved 2\n")
        self.assertEqual(self.bodies(new, "letters"), [("dXJnZQ==", 1209600), ([1, 2], 1209600)])
        self.assertEqual(self.run_program(code, new, "%s:%d" % self.address, "mail", "letters"),
                         "moved 0\n")


def connect_at_last(address):
    """A connection to a server that may still be starting."""
    for _ in range(PATIENCE_S * 20):
        try:
            return socket.create_connection(address, timeout=PATIENCE_S)
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise RuntimeError("nothing listens at %s:%d" % address)


if __name__ == "__main__":
    unittest.main()
