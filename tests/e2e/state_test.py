#!/usr/bin/python3
"""--seed, /claimd/state, claimd dump and claimd load, with real daemons and journals.

    state_test.py CLAIMD
"""

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import CLAIMD, PATIENCE_S, Server, environment, post, request, run  # noqa: E402

GOOD, FAILED, USAGE = 0, 1, 2
MOVING = ("age", "now_ms", "now")


def without_moments(value):
    """A line without what changes as time goes on."""
    if isinstance(value, dict):
        return {k: without_moments(v) for k, v in value.items() if k not in MOVING}
    return [without_moments(v) for v in value] if isinstance(value, list) else value


def jsonl(*lines):
    return "".join(json.dumps(line) + "\n" for line in lines)


def lines_of(text):
    return [without_moments(json.loads(line)) for line in text.splitlines()]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="claimd-state-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name, text=None, mode=0o600):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, mode)
        return path

    def url(self, server):
        return "http://%s:%d" % (server.host, server.port)

    def dump(self, *words, status=GOOD):
        done = run("dump", *words)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == GOOD else done.stderr

    def load(self, text, *words, status=GOOD):
        done = subprocess.run([CLAIMD, "load", *words], input=text, capture_output=True,
                              text=True, env=environment(), timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == GOOD else done.stderr

    def fill(self, server):
        """Two queues, of which one has a claim; the href of a claimed message."""
        for i in range(30):
            server.fetch("POST", "/v2/queues/q/messages",
                         body=b'{"messages":[{"body":{"n":%d},"ttl":3000}]}' % i)
        server.fetch("POST", "/v2/queues/other/messages",
                     body=b'{"messages":[{"body":1,"ttl":3000}]}')
        response = server.fetch("POST", "/v2/queues/q/claims?limit=3",
                                body=b'{"ttl":3000,"grace":60}')
        return json.loads(response.body)["messages"][1]["href"]


class Seeds(Case):
    def test_a_server_begins_with_what_the_file_has(self):
        seed = self.path("seed", jsonl(*({"project": "p", "queue": "q", "message": {"body": n}}
                                         for n in range(3))))
        with Server("--ci", "--seed", seed) as server:
            page = json.loads(server.fetch("GET", "/v2/queues/q/messages?echo=true").body)
            self.assertEqual([m["body"] for m in page["messages"]], [0, 1, 2])

    def test_lines_that_name_no_project_are_for_that_of_claimd_run(self):
        seed = self.path("seed", jsonl({"queue": "q"}, {"project": "p", "queue": "r"}))
        with Server("--ci", "--seed", seed) as server:
            for project, queue in (("claimd", "q"), ("p", "r")):
                state = lines_of(server.fetch("GET", "/claimd/state?project=" + project).body)
                self.assertEqual(state, [{"claimd": "dump", "version": 1},
                                         {"queue": queue, "metadata": {}},
                                         {"end": 2}])

    def test_it_replaces_what_a_journal_had_of_its_projects_only(self):
        journal = self.path("journal")
        with Server("--ci", "--journal", journal) as server:
            for project in ("p", "other"):
                body = jsonl({"queue": "old", "message": {"body": project}}).encode()
                self.assertEqual(server.fetch("PUT", "/claimd/state?project=" + project,
                                              body=body).status, 204)
        seed = self.path("seed", jsonl({"project": "p", "queue": "new"}))
        with Server("--ci", "--journal", journal, "--seed", seed) as server:
            for project, queue in (("p", "new"), ("other", "old")):
                state = lines_of(server.fetch("GET", "/claimd/state?project=" + project).body)
                self.assertEqual({line["queue"] for line in state[1:-1]}, {queue})

    def test_a_dump_is_a_seed(self):
        with Server("--ci") as server:
            href = self.fill(server)
            dump = self.dump("--url", self.url(server))
        with Server("--ci", "--seed", self.path("seed", dump)) as server:
            self.assertEqual(lines_of(self.dump("--url", self.url(server))), lines_of(dump))
            self.assertEqual(server.fetch("DELETE", href).status, 204)

    def test_a_wrong_one_keeps_the_server_from_starting(self):
        rows = (('{"queue":"r"}\n{"queue":"q","message":{"body":1,"claim":{"id":""}}}',
                 "line 2: message.claim.id: it is required"),
                ('{"queue":"q"', "line 1"),
                ('{"claimd":"dump","version":1}\n{"queue":"q"}\n', "truncated after record 2"),
                ('{"claimd":"dump","version":2}', "version: it is 2"))
        for text, why in rows:
            done = run("--ci", "--listen", "127.0.0.1:0", "--seed", self.path("seed", text))
            self.assertEqual((done.returncode, done.stdout), (USAGE, ""), done.stderr)
            self.assertIn(why, done.stderr)

    def test_it_is_of_no_use_without_ci(self):
        self.assertIn("seed has no effect without ci",
                      run("--seed", self.path("seed", "{}")).stderr)

    def test_a_journal_keeps_a_state_that_was_put(self):
        journal = self.path("journal")
        with Server("--ci", "--journal", journal) as server:
            href = self.fill(server)
            state = server.fetch("GET", "/claimd/state").body
            self.assertEqual(server.fetch("PUT", "/claimd/state", body=state).status, 204)
        with Server("--ci", "--journal", journal) as server:
            again = server.fetch("GET", "/claimd/state").body
            self.assertEqual(lines_of(again), lines_of(state))
            self.assertEqual(server.fetch("DELETE", href).status, 204)

    def test_a_state_may_be_larger_than_a_post(self):
        body = jsonl(*10 * [{"project": "p", "queue": "q",
                             "message": {"body": "x" * 200000}}]).encode()
        with Server("--ci") as server:
            self.assertEqual(server.fetch("PUT", "/claimd/state", body=body).status, 204)
            self.assertGreater(len(server.fetch("GET", "/claimd/state").body), 2000000)

    def test_one_of_a_hundred_megabytes_is_refused(self):
        with Server("--ci") as server, server.connect() as client:
            client.send(request("PUT", "/claimd/state", headers=["Content-Length: 104857600"]))
            self.assertEqual(client.response().status, 413)


class Together(Case):
    """Requests of several clients at once."""

    @staticmethod
    def state(name, body, queues=40):
        return jsonl(*({"queue": name % i, "message": {"body": body}}
                       for i in range(queues) for _ in range(3))).encode()

    @staticmethod
    def bodies(server):
        found = {}
        for line in lines_of(server.fetch("GET", "/claimd/state?project=p").body):
            if "message" in line:
                found.setdefault(line["queue"], []).append(line["message"]["body"])
        return list(found.values())

    def test_one_state_stands_in_the_end(self):
        with Server("--ci") as server:
            for names in (("a%d", "b%d"), ("q%d", "q%d")):
                states = [self.state(name, n) for n, name in enumerate(names)]
                for _ in range(10):
                    with concurrent.futures.ThreadPoolExecutor() as pool:
                        responses = list(pool.map(lambda text: server.fetch(
                            "PUT", "/claimd/state?project=p", body=text), 2 * states))
                    self.assertEqual([response.status for response in responses], 4 * [204])
                    found = self.bodies(server)
                    self.assertIn(found, [40 * [3 * [n]] for n in (0, 1)])

    def test_posts_meanwhile_refuse_nothing(self):
        with Server("--ci") as server:
            for n in range(20):
                with concurrent.futures.ThreadPoolExecutor() as pool:
                    put = pool.submit(server.fetch, "PUT", "/claimd/state?project=p",
                                      body=self.state("q%d", n))
                    for i in range(39, -1, -1):
                        response = server.fetch("POST", "/v2/queues/q%d/messages" % i,
                                                body=b'{"messages":[{"body":"posted","ttl":300}]}')
                        self.assertEqual(response.status, 201)
                    self.assertEqual(put.result().status, 204)
                for bodies in self.bodies(server):
                    self.assertEqual(bodies[:3], 3 * [n])
                    self.assertIn(bodies[3:], ([], ["posted"]))


class Dumps(Case):
    def test_a_dump_goes_from_one_store_to_another(self):
        with Server() as server:
            href = self.fill(server)
            dump = self.dump("--url", self.url(server))
        self.assertEqual(json.loads(dump.splitlines()[-1]), {"end": 34})
        journal = self.path("journal")
        with Server("--journal", journal) as server:
            output = self.load(dump, "--url", self.url(server))
            self.assertEqual(output, "loaded: queues and topics 2, messages 31, "
                                   "subscriptions 0\n")
            self.assertEqual(lines_of(self.dump("--url", self.url(server))), lines_of(dump))
            self.assertIn("another process uses",
                          self.dump("--journal", journal, status=FAILED))
        self.assertEqual(lines_of(self.dump("--journal", journal)), lines_of(dump))
        self.assertEqual(len(lines_of(self.dump("--journal", journal, "--project", "none"))), 2)
        with Server("--journal", journal) as server:
            self.assertEqual(server.fetch("DELETE", href).status, 204)

    def test_existing_queues_are_replaced_only_on_request(self):
        with Server() as server:
            url = self.url(server)
            self.fill(server)
            dump = self.dump("--url", url)
            self.assertIn("it already exists",
                          self.load(dump, "--url", url, status=FAILED))
            with server.connect() as client:
                client.send(post("q"))
                self.assertEqual(client.response().status, 201)
            self.load(dump, "--url", url, "--existing", "replace")
            self.assertEqual(lines_of(self.dump("--url", url)), lines_of(dump))

    def test_a_server_with_tokens_requires_that_of_an_operator(self):
        tokens = self.path("tokens", "")
        made = {}
        for name, role in (("me", "operator"), ("worker", "worker")):
            done = run("token", "new", name, "--role", role, "--tokens", tokens)
            self.assertEqual(done.returncode, GOOD, done.stderr)
            made[name] = self.path(name, done.stdout)
        with Server("--auth", "tokens", "--tokens", tokens) as server:
            url = self.url(server)
            dump = self.dump("--url", url, "--token-file", made["me"])
            self.assertEqual(lines_of(dump), [{"claimd": "dump", "version": 1}, {"end": 1}])
            self.load(dump, "--url", url, "--token-file", made["me"])
            self.assertIn("with status 401. ", self.dump("--url", url, status=FAILED))
            self.assertIn("with status 403. ", self.dump("--url", url, "--token-file", made["worker"],
                                              status=FAILED))

    def test_a_journal_whose_clock_is_ahead_is_dumped_at_its_time(self):
        journal = self.path("journal")
        with Server("--ci", "--journal", journal) as server:
            response = server.fetch("PUT", "/claimd/clock", body=b'{"ahead_seconds":1000000}')
            self.assertEqual(response.status, 200)
            self.fill(server)
        dumped = self.dump("--journal", journal)
        message = next(json.loads(line)["message"] for line in dumped.splitlines()
                       if "message" in line)
        self.assertTrue(0 <= message["age"] < PATIENCE_S, message)
        with Server() as server:
            self.load(dumped, "--url", self.url(server))

    def test_standard_output_may_not_be_closed(self):
        with Server() as server:
            done = subprocess.run(("/bin/sh", "-c", '"$0" dump --url "$1" >&-', CLAIMD,
                                   self.url(server)), stderr=subprocess.PIPE, text=True,
                                  env=environment(), timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (FAILED, "claimd: standard output is closed\n"))

    def test_words_that_make_no_sense(self):
        self.dump("--journal", "x", "--url", "y", status=USAGE)
        self.load("", "--existing", "maybe", status=USAGE)
        self.assertIn("no/such", self.dump("--journal", "/no/such", status=FAILED))
        self.assertIn("http://127.0.0.1:1", self.dump("--url", "http://127.0.0.1:1",
                                                      status=FAILED))


if __name__ == "__main__":
    unittest.main()
