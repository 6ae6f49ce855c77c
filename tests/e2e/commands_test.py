#!/usr/bin/python3
"""The commands for a running server: messages by hand, and a server that is away or misbehaves.

    commands_test.py CLAIMD
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import CLAIMD, PATIENCE_S, Server, environment, Workshop, request  # noqa: E402
from commands import Commands, response  # noqa: E402
from fake_server import FakeServer  # noqa: E402


class CommandCase(unittest.TestCase):
    OPTIONS = ()

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(*cls.OPTIONS))
        cls.commands = Commands(cls.server.url)

    def setUp(self):
        self.queue = "q" + uuid.uuid4().hex[:12]

    def good(self, *words, **more):
        run = self.commands.run(*words, **more)
        self.assertEqual((run.returncode, run.stderr), (0, ""), words)
        return run.stdout

    def fails(self, status, text, *words, commands=None, **more):
        run = (commands or self.commands).run(*words, **more)
        self.assertEqual(run.returncode, status, run.stderr)
        self.assertIn(text, run.stderr)
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        return run

    def claimed(self, *words):
        return json.loads(self.good("claim", self.queue, "--json", *words))

    def bodies(self):
        return [message["body"] for message in self.claimed("--limit", "20")["messages"]]


class Post(CommandCase):
    def test_an_argument_that_is_json_is_posted_as_json_and_any_other_as_a_string(self):
        printed = self.good("post", self.queue, '{"a": [1, 2.50]}', "12", "null", "hello", "{broken", "",
                            '"quoted"')
        self.assertEqual(len(printed.split()), 7)
        self.assertEqual(self.bodies(),
                         [{"a": [1, 2.5]}, 12, None, "hello", "{broken", "", "quoted"])

    def test_each_line_of_the_input_is_a_message_and_empty_ones_are_not(self):
        for words in ((), ("-",)):
            self.good("post", self.queue, *words, stdin='one\n\n{"two": 2}\r\nthree')
            self.assertEqual(self.bodies(), ["one", {"two": 2}, "three"])
        self.good("post", self.queue, stdin="")
        self.fails(1, "is ready", "claim", self.queue)

    def test_a_dash_behind_dashes_is_a_body(self):
        self.good("post", self.queue, "--", "-")
        self.good("post", self.queue, "--", "--ttl", "-h")
        self.assertEqual(self.bodies(), ["-", "--ttl", "-h"])

    def test_with_string_every_body_is_a_string(self):
        self.good("post", self.queue, "--string", "1", "null", '{"a": 1}')
        self.assertEqual(self.bodies(), ["1", "null", '{"a": 1}'])

    def test_many_lines_need_several_requests(self):
        lines = ["line %d %s" % (i, "x" * 3000) for i in range(250)]
        printed = self.good("post", self.queue, stdin="\n".join(lines))
        self.assertEqual(len(set(printed.split())), 250)
        found = []
        while len(found) < 250:
            found += self.bodies()
        self.assertEqual(found, lines)

    def test_a_pause_of_the_input_posts_the_lines_before_it(self):
        process = subprocess.Popen([CLAIMD, "post", self.queue], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True,
                                   env=dict(os.environ, **self.commands.variables))
        process.stdin.write("first\n")
        process.stdin.flush()
        self.assertEqual([m["body"] for m in self.claimed("--wait", "20")["messages"]], ["first"])
        self.assertTrue(select.select([process.stdout], [], [], PATIENCE_S)[0])
        self.assertRegex(process.stdout.readline(), "^[0-9a-f]{24}$")
        process.stdin.write("second\n")
        process.stdin.close()
        self.assertEqual(process.wait(20), 0)
        process.stdout.close()
        self.assertEqual(self.bodies(), ["second"])

    def test_lifetime_and_delay(self):
        self.good("post", self.queue, "later", "--ttl", "2m", "--delay", "1m")
        self.fails(1, "is ready", "claim", self.queue)
        self.good("post", self.queue, "now", "--ttl=2h")
        self.assertEqual(self.claimed()["messages"][0]["ttl"], 7200)
        self.fails(1, "Invalid API request: messages[0].ttl is 1.", "post", self.queue, "x", "--ttl", "1")
        self.fails(2, "--ttl is soon. It must be a time", "post", self.queue, "x", "--ttl", "soon")

    def test_a_body_that_is_not_utf8_is_refused(self):
        self.fails(2, "body 2 is not UTF-8", "post", self.queue, "good", b"\xff\xfe")
        self.fails(1, "is ready", "claim", self.queue)

    def test_a_line_without_an_end_is_not_read_forever(self):
        with open("/dev/zero", "rb") as zero:
            self.fails(2, "body 1 is larger than 64 MiB", "post", self.queue, stdin=zero)

    def test_a_refusal_after_posted_messages_says_how_many(self):
        run = self.fails(1, "100 messages before it are posted", "post", self.queue,
                         stdin="x\n" * 100 + "y" * 300000)
        self.assertEqual(len(run.stdout.split()), 100)

    def test_a_key_posts_once_however_often_the_command_runs(self):
        commands = Commands(self.server.url, CLAIMD_CLIENT_ID=str(uuid.uuid4()))
        key = "key-" + self.queue
        runs = [commands.run("post", self.queue, "--key", key, stdin="x\n" * 150) for _ in range(2)]
        self.assertEqual([run.returncode for run in runs], [0, 0], runs[1].stderr)
        self.assertEqual(runs[0].stdout, runs[1].stdout)
        self.assertEqual(self.server.stats(self.queue)[2], 150)
        self.fails(1, "status 422", "post", self.queue, "--key", key, "other", commands=commands)
        self.fails(2, "--key is longer than 128", "post", self.queue, "--key", "k" * 129, "x")

    def test_a_unique_message_is_posted_once_until_it_is_gone(self):
        post = ("post", self.queue, "--unique", "report-2026-11")
        message, = self.good(*post, "x").split()
        run = self.commands.run(*post, "y")
        self.assertEqual((run.returncode, run.stdout, run.stderr), (
            0, message + "\n", "claimd: a message with this key exists. Nothing was posted\n"))
        self.assertEqual(json.loads(self.good(*post, "z", "--json")), {
            "resources": ["/v2/queues/%s/messages/%s" % (self.queue, message)], "existing": True})
        shown = self.good("why", self.queue, message)
        self.assertRegex(shown, r"\nkey +report-2026-11\n")
        self.assertNotIn("key until", shown)
        self.assertIn("report-2026-11", self.good("peek", self.queue, "--details"))
        claimed = ("post", self.queue, "--unique", "another-key", "--until-claimed", "w")
        message, = self.good(*claimed).split()
        self.assertRegex(self.good("why", self.queue, message), r"\nkey +another-key\nkey until +claimed\n")
        self.assertEqual(self.bodies(), ["x", "w"])  # a claim
        self.assertNotIn(message, self.good(*claimed, "--json"))
        self.assertTrue(json.loads(self.good(*post, "v", "--json"))["existing"])

    def test_a_unique_post_has_one_body_and_one_kind_of_key(self):
        for words, text in ((("x", "--unique", "k" * 7), "--unique has 7 characters. It must have 8 to 128"),
                            (("x", "--unique", "k" * 129), "--unique has 129 characters"),
                            (("x", "--unique", "report;2026"), "other characters than visible ASCII, or a semicolon"),
                            (("x", "--unique", "two words"), "other characters than visible ASCII"),
                            (("x", "--unique", "12345678", "--key", "12345678"),
                             "--unique and --key exclude each other"),
                            (("x", "--until-claimed"), "--until-claimed needs --unique"),
                            (("x", "y", "--unique", "12345678"), "--unique needs exactly one BODY"),
                            (("-", "--unique", "12345678"), "--unique needs exactly one BODY"),
                            (("--unique", "12345678"), "--unique needs exactly one BODY")):
            self.fails(2, text, "post", self.queue, *words, stdin="x\n")

    def test_json_output_is_the_document_of_each_request(self):
        document = json.loads(self.good("post", self.queue, "x", "--json"))
        self.assertEqual(len(document["resources"]), 1)


class ClaimAndDelete(CommandCase):
    def test_a_claim_shows_its_id_its_number_and_the_messages(self):
        message, = self.good("post", self.queue, '{"job": 1}').split()
        lines = self.good("claim", self.queue).split("\n")
        self.assertRegex(lines[0], r"^claim [0-9a-f]{24} number \d+$")
        self.assertEqual(lines[1], "")
        self.assertRegex(lines[2], r"^message +age +body$")
        self.assertRegex(lines[3], r'^%s +\ds +\{"job":1\}$' % message)

    def test_a_deletion_is_checked_against_the_claim(self):
        ids = self.good("post", self.queue, *map(str, range(45))).split()
        claim = self.claimed("--limit", "20")
        self.fails(1, "Unable to delete", "delete", self.queue, ids[0])
        self.fails(1, "Unable to delete", "delete", self.queue, ids[0], "--claim", "c" + 23 * "0")
        self.good("delete", self.queue, *ids[:20], "--claim", claim["claim"])
        self.fails(1, "Unable to delete", "delete", self.queue, *ids[20:], "--claim", claim["claim"])
        second = self.claimed("--limit", "20")
        self.assertEqual([m["id"] for m in second["messages"]], ids[20:40])
        self.good("delete", self.queue, ids[44])  # no claim holds it
        self.good("delete", self.queue, ids[44])  # it does not exist
        self.assertEqual([m["id"] for m in self.claimed("--limit", "20")["messages"]], ids[40:44])

    def test_a_claim_waits_for_a_message(self):
        start = time.monotonic()
        self.fails(1, "no message of %s is ready" % self.queue, "claim", self.queue, "--wait", "2")
        self.assertGreater(time.monotonic() - start, 1.9)
        process = subprocess.Popen([CLAIMD, "claim", self.queue, "--wait", "1m", "--json"],
                                   stdout=subprocess.PIPE, text=True,
                                   env=dict(os.environ, **self.commands.variables))
        self.good("post", self.queue, "x")
        self.assertEqual(json.loads(process.communicate(timeout=30)[0])["messages"][0]["body"], "x")

    def test_lease_and_grace(self):
        self.good("post", self.queue, "x", "--ttl", "60")
        message, = self.claimed("--ttl", "10m", "--grace", "100")["messages"]
        self.assertEqual(message["ttl"] - message["age"], 700)
        self.fails(1, "Invalid API request", "claim", self.queue, "--ttl", "1")


class Views(CommandCase):
    def create(self, name, **metadata):
        response = self.server.fetch("PUT", "/v2/queues/" + name, json.dumps(metadata).encode())
        self.assertIn(response.status, (201, 204))

    def test_queues_are_sorted_by_the_age_of_the_oldest_ready_message(self):
        with Server() as server:
            commands = Commands(server.url)
            for queue in ("old", "new"):
                commands.run("post", queue, "x", "y")
                time.sleep(1.1)
            commands.run("claim", "new")
            commands.run("post", "third", "x", "--project", "other")
            lines = commands.run("queues").stdout.split("\n")
            self.assertRegex(lines[0], r"^queue +ready +delayed +claimed +oldest ")
            self.assertRegex(lines[1], r"^old \(no worker\) +2 +0 +0 +[1-9]s +- ")
            self.assertRegex(lines[2], r"^new +1 +0 +1 +[1-9]s +\ds ")
            self.assertEqual(lines[3:], [""])
            every = Commands(server.url, project=None)
            self.assertRegex(every.run("queues", "--sort", "name").stdout,
                             r"^project +queue.*\nother +third.*\np +new.*\np +old")
            self.assertRegex(every.run("queues", "--q", "hir").stdout, r"^project.*\nother +third.*\n$")
            self.assertEqual(len(commands.run("queues", "--limit", "1").stdout.split("\n")), 3)
            document = json.loads(commands.run("queues", "--json").stdout)
            self.assertEqual([queue["name"] for queue in document["queues"]], ["old", "new"])
            self.fails(1, "Invalid parameter", "queues", "--sort", "luck", commands=commands)

    def test_many_queues_are_read_page_by_page(self):
        with Server() as server:
            with server.connect() as client:
                for i in range(1500):
                    client.send(request("PUT", "/v2/queues/q%04d" % i))
                    client.response()
            names = [line.split()[0] for line in
                     Commands(server.url).run("queues", "--sort", "name").stdout.split("\n")[1:-1]]
            self.assertEqual(names, ["q%04d" % i for i in range(1500)])

    def test_a_page_that_leads_to_itself_is_the_last_one(self):
        def speak(other):
            if len(fake.requests) > 5:
                other.close() # the command would go on forever
            other.sendall(response('{"queues": [], "links": [{"rel": "next", "href": "/claimd/next"}]}'))
        with FakeServer(speak) as fake:
            Commands(fake.url).run("queues")
            self.assertEqual([one.split()[1] for one in fake.requests][1:], [b"/claimd/next"])

    def test_watch_repeats_the_table_until_a_signal(self):
        process = subprocess.Popen([CLAIMD, "queues", "--watch"], stdout=subprocess.PIPE, text=True,
                                   env=dict(os.environ, **self.commands.variables))
        heads = 0
        while heads < 2:
            heads += process.stdout.readline().startswith("queue ")
        process.terminate()
        process.communicate(timeout=20)

    def test_on_a_narrow_terminal_the_last_columns_are_left_out(self):
        self.good("post", self.queue, "x")
        for columns, last in ((200, "again/s"), (60, None), (20, None)):
            with self.commands.terminal("queues", "--q", self.queue, columns=columns) as terminal:
                status, screen = terminal.end()
            self.assertEqual(status, 0)
            self.assertLessEqual(max(map(len, screen.split("\n"))), columns)
            self.assertIn("ready", screen)
            self.assertIn(self.queue[:5], screen)
            if last:
                self.assertIn(last, screen)

    def test_claims_show_the_worker_and_the_time_left(self):
        mine = str(uuid.uuid4())
        self.good("post", self.queue, "x", "y")
        run = Commands(self.server.url, CLAIMD_CLIENT_ID=mine).run("claim", self.queue, "--json")
        claim = json.loads(run.stdout)
        head, line, end = self.good("claims", self.queue).split("\n")
        self.assertRegex(head, r"^claim +worker +number +messages +age +ends in$")
        self.assertRegex(line, r"^%s +\S+ \d+ \(127\.0\.0\.1\) +%d +1 +\ds +4m5\ds$" % (claim["claim"], claim["number"]))
        document = json.loads(self.good("claims", self.queue, "--json"))
        self.assertEqual(document["claims"][0]["client"], mine)
        host = socket.gethostname()
        self.assertEqual(document["claims"][0]["worker"].split(" ")[0], host[:33])
        self.fails(1, "Not found", "claims", self.queue + "x")

    def test_peek_shows_messages_in_every_state_and_changes_nothing(self):
        ids = self.good("post", self.queue, *map(str, range(45))).split()
        late, = self.good("post", self.queue, "late", "--delay", "1m").split()
        self.good("claim", self.queue, "--limit", "2")
        lines = self.good("peek", self.queue, "--limit", "1000").split("\n")
        self.assertRegex(lines[0], r"^message +state +age +deliveries +body$")
        self.assertEqual([line.split()[0] for line in lines[1:-1]], ids + [late])
        self.assertRegex(lines[1], r"^%s +claimed +\ds +1 +0$" % ids[0])
        self.assertRegex(lines[3], r"^%s +ready +\ds +0 +2$" % ids[2])
        self.assertRegex(lines[46], r'^%s +delayed +\ds +0 +"late"$' % late)
        self.assertEqual(len(self.good("peek", self.queue).split("\n")), 22)
        for state, expected in (("ready", ids[2:]), ("claimed", ids[:2]), ("delayed", [late]),
                                ("all", ids + [late])):
            found = json.loads(self.good("peek", self.queue, "--state", state, "--json", "--limit", "99"))
            self.assertEqual([m["id"] for m in found["messages"]], expected)
        self.assertEqual(len(json.loads(self.good("peek", self.queue, "--state", "ready", "--limit", "3",
                                                  "--json"))["messages"]), 3)
        self.fails(2, "--state is dead. It must be", "peek", self.queue, "--state", "dead")

    def test_a_queue_that_does_not_exist_is_an_error(self):
        text = "queue nothing-here does not exist"
        for words in (("peek", "nothing-here"), ("why", "nothing-here", 24 * "a"), ("claims", "nothing-here"),
                      ("delete", "nothing-here", 24 * "a"), ("purge", "nothing-here", "--yes"),
                      ("delete", "nothing-here", 24 * "a", "--claim", 24 * "c"),
                      ("release", "nothing-here", 24 * "c"), ("pause", "nothing-here"),
                      ("resume", "nothing-here"), ("redrive", "nothing-here", "--yes"),
                      ("set", "nothing-here"), ("set", "nothing-here", "a=1")):
            self.fails(1, text, *words)
        self.assertEqual(self.good("queues", "--q", "nothing-here").count("\n"), 1)
        self.good("post", self.queue, "x")
        self.good("purge", self.queue, "--yes")
        self.good("purge", self.queue, "--yes")
        self.assertEqual(self.good("peek", self.queue).count("\n"), 1)
        self.good("delete", self.queue, 24 * "a")

    def test_warnings_of_the_server_are_printed_and_escaped(self):
        with FakeServer(response('{"queues":[]}', headers=(
                "Claimd-Warning: careful \x1b[1m\r\nClaimd-Warning: twice\r\n"))) as fake:
            run = Commands(fake.url).run("queues")
            self.assertEqual((run.returncode, run.stderr),
                             (0, "claimd: warning: careful \\u001b[1m\nclaimd: warning: twice\n"))

    def failed(self, queue, post=(), **metadata):
        """A dead letter: its id."""
        self.create(queue, _max_claim_count=1, _dead_letter_queue=queue + "-dead", **metadata)
        message, = self.good("post", queue, '{"job": 1}', *post).split()
        claim = json.loads(self.good("claim", queue, "--json"))["claim"]
        self.good("release", queue, claim, "--reason", "no\x1b[1m database")
        self.fails(1, "is ready", "claim", queue)  # now it is moved
        return message

    def test_release_gives_a_reason_and_redrive_brings_the_message_back(self):
        message, dead = self.failed(self.queue), self.queue + "-dead"
        shown = self.good("peek", dead, "--details")
        self.assertIn("no\\u001b[1m database", shown)
        self.assertIn(self.queue, shown.split("\n")[1])
        self.assertEqual(self.good("redrive", dead, "--dry-run").split("\n\n"),
                         ["target         messages\n%s         1" % self.queue,
                          "1 message would move, 0 remain\n"])
        self.fails(2, "there is no terminal to ask on. Use --yes", "redrive", dead)
        self.assertIn("1 message moved, 0 remain", self.good("redrive", dead, "--yes"))
        self.assertEqual(self.good("redrive", dead, "--yes"), "0 messages moved, 0 remain\n")
        self.assertEqual(json.loads(self.good("peek", self.queue, "--json"))["messages"][0]["id"], message)
        self.fails(1, "Not found", "redrive", self.queue + "x", "--yes")

    def dead_letters(self, count):
        """A queue with dead letters, and their ids."""
        queue, dead, ids, claims = self.queue, self.queue + "-dead", [], []
        self.create(queue, _max_claim_count=1, _dead_letter_queue=dead)
        self.good("post", queue, stdin="x\n" * count)
        while len(ids) < count:
            response = self.server.fetch("POST", "/v2/queues/%s/claims?limit=20" % queue, b"{}")
            ids += [message["id"] for message in json.loads(response.body)["messages"]]
            claims.append(response.headers["location"])
        for claim in claims:
            self.server.fetch("DELETE", claim)
        while self.server.stats(dead)[2] < count:
            self.server.fetch("POST", "/v2/queues/%s/claims" % queue, b"{}")
        return dead, ids

    def test_why_explains_a_message(self):
        message, = self.good("post", self.queue, "x").split()
        self.assertRegex(self.good("why", self.queue, message),
                         r"^state +ready\ndeliveries +0\nposted +20\d\d-\S+\nexpires +20\d\d-\S+\nnext +\S.*\n")
        claim = json.loads(self.good("claim", self.queue, "--json"))
        self.assertRegex(self.good("why", self.queue, message),
                         r"^state +claimed\nclaim +%s\nworker +\S+ \d+ \(127\.0\.0\.1\)\nnumber +%d\n"
                         r"lease ends +20\S+\n" % (claim["claim"], claim["number"]))
        self.good("release", self.queue, claim["claim"], "--reason", "no\x1b[1m database", "--delay", "1m")
        self.assertRegex(self.good("why", self.queue, message),
                         r"^state +delayed\n(.*\n)*last reason +no\\u001b\[1m database\n")
        self.assertEqual(json.loads(self.good("why", self.queue, message, "--json"))["id"], message)
        self.fails(1, "Not found", "why", self.queue, "b" + 23 * "0")
        dead_letter = self.failed(self.queue + "-2")
        self.assertRegex(self.good("why", self.queue + "-2-dead", dead_letter),
                         r"origin +%s-2\ndead since +20\S+\ncause +attempts\nattempts +1\n"
                         r"last worker +\S+ \d+ \(127\.0\.0\.1\)\n" % self.queue)

    def test_redrive_to_a_queue_some_ids_and_a_limit(self):
        dead, ids = self.dead_letters(10)
        target = self.queue + "-to"
        moved = json.loads(self.good("redrive", dead, "--yes", "--to", target, "--ids",
                                     ids[3] + "," + ids[5], "--json"))
        self.assertEqual((moved["moved"], moved["by_target"]), (2, {target: 2}))
        self.assertIn("3 messages moved, 5 remain",
                      self.good("redrive", dead, "--yes", "--to", target, "--limit", "3"))
        self.fails(1, "Resource conflict", "redrive", dead, "--to", dead, "--yes")

    def test_dead_letters_without_an_origin_need_a_target(self):
        document = '{"moved": 0, "remaining": 10, "without_origin": 10, "by_target": {}}'
        with FakeServer(response(document)) as fake:
            run = Commands(fake.url).run("redrive", "dead", "--yes")
        self.assertEqual(run.stdout, "0 messages moved, 10 remain, 10 of them without an origin: "
                                     "name a target with --to\n")

    def test_a_redrive_says_how_many_stay_because_of_their_key(self):
        message, dead = self.failed(self.queue, post=("--unique", "report-2026-11")), self.queue + "-dead"
        self.good("post", self.queue, "new", "--unique", "report-2026-11")
        self.assertEqual(self.good("redrive", dead, "--yes"),
                         "0 messages moved, 1 remains, 1 of them because the target has a message with its key\n")
        self.assertEqual(json.loads(self.good("redrive", dead, "--yes", "--json"))["key_held"], 1)
        self.assertEqual(json.loads(self.good("peek", dead, "--json"))["messages"][0]["id"], message)

    def test_redrive_repeats_until_nothing_is_left_and_shows_a_bar(self):
        dead, _ = self.dead_letters(2500)
        with self.commands.terminal("redrive", dead, columns=60) as terminal:
            terminal.sees("Move up to 2500 messages of %s to the queues that they came from? [y/N] " % dead)
            terminal.type("y\n")
            status, screen = terminal.end()
        self.assertEqual(status, 0, screen)
        self.assertRegex(screen, r"\[#+\.+\] \d+ of 2500")
        self.assertIn("2500 messages moved, 0 remain", screen)

    def test_a_server_that_goes_away_leaves_an_error_and_the_number_of_moved_messages(self):
        def speak(other):
            if len(fake.requests) <= 2:
                other.sendall(response('{"moved":1000,"remaining":5000,"without_origin":0,'
                                       '"by_target":{"jobs":1000}}'))

        with FakeServer(speak) as fake, Commands(fake.url).terminal("redrive", "dead", "--yes") as terminal:
            status, screen = terminal.end()
        self.assertEqual(status, 69)
        self.assertRegex(screen, r"1000 of 6000\r\x1b\[Kclaimd: http://.* does not respond: .*\n")
        self.assertTrue(screen.endswith("jobs        1000\n\n1000 messages moved, 5000 remain\n"), screen)

    def test_a_no_changes_nothing(self):
        self.good("post", self.queue, "x")
        self.assertEqual(self.good("purge", self.queue, "--dry-run"),
                         "1 message of %s would be deleted\n" % self.queue)
        for typed in ("n\n", "\n", "yesterday" + "x" * 100 + "\n", "\x04"):
            with self.commands.terminal("purge", self.queue, columns=20) as terminal:
                terminal.sees("Delete 1 message of %s, also if a worker holds it? [y/N] "
                              % self.queue)
                terminal.type(typed)
                status, screen = terminal.end()
            self.assertEqual(status, 1)
            self.assertIn("nothing was changed", screen)
        self.assertEqual(self.bodies(), ["x"])

    def test_purge_deletes_all_messages(self):
        self.good("post", self.queue, "x", "y")
        self.fails(2, "there is no terminal to ask on", "purge", self.queue)
        self.good("claim", self.queue)
        self.assertEqual(self.good("purge", self.queue, "--dry-run"),
                         "2 messages of %s would be deleted\n" % self.queue)
        self.assertEqual(json.loads(self.good("purge", self.queue, "--yes", "--json")), {"deleted": 2})
        self.assertEqual(self.good("peek", self.queue).count("\n"), 1)

    def test_pause_and_resume_a_queue(self):
        def state(*words):
            line = "%s: claims %s, posts %s" % (self.queue, *expected)
            if "paused" in expected:
                line += ", last pause [^ ]+Z by [^ ]+ [0-9]+ [(]127.0.0.1[)]"
            self.assertRegex(self.good(*words), "^%s\n$" % line)

        self.fails(1, "Not found", "pause", self.queue)
        self.good("post", self.queue, "x")
        expected = "paused", "open"
        state("pause", self.queue)
        self.fails(1, "claims of %s are paused" % self.queue, "claim", self.queue)
        self.assertIn("\n%s (paused) " % self.queue, self.good("queues"))
        state("pause", self.queue, "--show")
        expected = "paused", "paused"
        state("pause", self.queue, "--posts")
        self.fails(1, "are paused", "post", self.queue, "y")
        self.assertIn("\n%s (all paused) " % self.queue, self.good("queues"))
        expected = "open", "open"
        state("resume", self.queue)
        expected = "open", "paused"
        state("pause", self.queue, "--posts")
        self.assertIn("\n%s (posts paused) " % self.queue, self.good("queues"))
        self.assertEqual(self.bodies(), ["x"])
        self.assertEqual(json.loads(self.good("resume", self.queue, "--json")),
                         {"claims": False, "posts": False, "last_pause": None})
        expected = "open", "open"
        state("pause", self.queue, "--show", "--posts")
        expected = "paused", "paused"
        state("pause", self.queue, "--claims", "--posts")

    def test_release_of_a_claim_and_of_some_of_its_messages(self):
        ids = self.good("post", self.queue, "a", "b", "c").split()
        claim = self.claimed("--limit", "3")["claim"]
        self.good("release", self.queue, claim, ids[1])
        self.good("release", self.queue, claim, ids[2], "--delay", "1m")
        states = [m["details"]["state"] for m in
                  json.loads(self.good("peek", self.queue, "--json"))["messages"]]
        self.assertEqual(states, ["claimed", "ready", "delayed"])
        self.fails(1, "the claim does not hold", "release", self.queue, claim, ids[1])
        self.good("release", self.queue, claim)
        self.good("release", self.queue, claim)  # it has ended, as in the API
        self.fails(1, "Not found", "release", self.queue, claim, "--reason", "x")
        self.assertEqual(self.bodies(), ["a", "b"])
        self.fails(1, "reason", "release", self.queue, "x", ids[0], "--reason", "y" * 2000)


class Settings(CommandCase):
    """claimd create and set."""

    DEFAULTS = {"_max_messages_post_size": 262144, "_default_message_ttl": 3600, "_default_message_delay": 0,
                "_dead_letter_queue": None, "_dead_letter_queue_messages_ttl": None, "_max_claim_count": None,
                "_enable_encrypt_messages": False}

    def shown(self):
        return json.loads(self.server.fetch("GET", "/v2/queues/" + self.queue).body)

    def own(self):
        """The settings without the defaults."""
        return {name: value for name, value in self.shown().items()
                if name not in self.DEFAULTS or value != self.DEFAULTS[name]}

    def test_create_sets_json_and_texts_and_prints_them_with_the_defaults(self):
        line = self.good("create", self.queue, "_max_claim_count=5", "_dead_letter_queue=dead", "team=blue",
                         'list=[1, "a b"]', 'text="7"', "equal=a=b", "half=0.50")
        self.assertTrue(line.startswith(
            self.queue + ': _max_claim_count=5 _dead_letter_queue="dead" team="blue" list=[1,"a b"] '
            'text="7" equal="a=b" half=0.5 '), line)
        self.assertIn(" _default_message_ttl=3600 ", line)
        self.assertNotIn("null", line)
        self.assertEqual(line.count("\n"), 1)
        self.assertEqual(self.own(), {"_max_claim_count": 5, "_dead_letter_queue": "dead", "team": "blue",
                                      "list": [1, "a b"], "text": "7", "equal": "a=b", "half": 0.5})

    def test_create_without_settings(self):
        self.assertEqual(json.loads(self.good("create", self.queue, "--json")), self.shown())
        self.assertEqual(self.shown().keys() - self.DEFAULTS.keys(), set())
        self.good("peek", self.queue)  # it exists

    def test_create_of_a_queue_with_other_settings_fails_and_changes_nothing(self):
        words = "_max_claim_count=5", "_dead_letter_queue=dead", "list=[1, 2.0]", "_retry_policy={}"
        line = self.good("create", self.queue, *words)
        before = self.shown()
        for again in (words, words[:1], (), ("_default_message_ttl=3600",), ("_enable_encrypt_messages=null",),
                      ("_default_message_delay=0", "list=[1,2.0]"), ("_dead_letter_queue_messages_ttl=null",)):
            self.assertEqual(self.good("create", self.queue, *again), line, again)
        for again, kept in ((("_max_claim_count=3",), "_max_claim_count=5"),
                            (("_max_claim_count=5", "team=blue"), "team="),
                            (("list=[1,2]", "_default_message_ttl=60"), "list=[1,2.0] _default_message_ttl=3600"),
                            (('_dead_letter_queue=""',), '_dead_letter_queue="dead"'),
                            (("team=0",), "team="), (("_enable_encrypt_messages=true",), None)):
            text = "queue %s exists with other settings (%s). claimd set changes them\n" % (self.queue, kept)
            self.fails(1, text if kept else "_enable_encrypt_messages must be false", "create", self.queue, *again)
        self.assertEqual(self.shown(), before)

    def test_create_of_a_queue_that_a_post_created(self):
        self.good("post", self.queue, "x")
        self.fails(1, "exists with other settings (_max_claim_count=null _dead_letter_queue=null)", "create",
                   self.queue, "_max_claim_count=5", "_dead_letter_queue=dead")

    def test_set_replaces_the_named_members_only(self):
        self.good("create", self.queue, "_max_claim_count=5", "_dead_letter_queue=dead", "team=blue", "a=1")
        line = self.good("set", self.queue, "_max_claim_count=7", "a=", "b~/c=[1]", "d=\u00e9")
        self.assertTrue(line.startswith(self.queue + ": "), line)
        self.assertIn(" b~/c=[1] d=\"\u00e9\" ", line)
        expected = {"_max_claim_count": 7, "_dead_letter_queue": "dead", "team": "blue", "b~/c": [1],
                    "d": "\u00e9"}
        self.assertEqual(self.own(), expected)
        self.assertEqual(self.good("set", self.queue), line)
        self.assertEqual(json.loads(self.good("set", self.queue, "--json")), self.shown())
        self.good("set", self.queue, "_max_claim_count=", "_dead_letter_queue=", "b~/c=", "d=", 'team=""')
        self.assertEqual(self.own(), {"team": ""})
        self.fails(1, "the member nothing does not exist", "set", self.queue, "team=red", "nothing=")
        self.fails(1, "_max_claim_count is 0. It must be", "set", self.queue, "team=red", "_max_claim_count=0")
        self.assertEqual(self.own(), {"team": ""})

    def test_arguments(self):
        for words, text in ((("team",), "team is not MEMBER=VALUE"), (("=1",), "=1 is not MEMBER=VALUE"),
                            (("a=1", "b=2", "a=3"), "a is given twice"),
                            ((b"a=\xff",), "a=\\xff is not UTF-8"), ((b"\xff=1",), "is not UTF-8")):
            for command in ("create", "set"):
                self.fails(2, text, command, self.queue, *words)
        self.fails(2, "a= has no value. An empty text is '\"\"'. See", "create", self.queue, "a=")
        self.fails(2, "a name in a value has a NUL", "create", self.queue, 'a={"\\u0000":1}')
        self.fails(2, "create needs a queue", "create")
        self.fails(1, "Invalid queue identification", "create", "a b")
        self.fails(1, "_default_message_ttl is 5. It must be", "create", self.queue, "_default_message_ttl=5")
        self.fails(1, "Not found", "set", self.queue)

    def test_a_setting_without_its_underscore_is_refused(self):
        names = [name for name in self.shown() if name.startswith("_")]
        self.assertGreaterEqual(len(names), 7)
        for name in names + ["_persistence", "_retry_policy"]:
            for command in ("create", "set"):
                self.fails(2, "claimd: %s has no effect. The setting is %s. See" % (name[1:], name), command,
                           self.queue, name[1:] + "=1")

    def test_a_setting_without_effect_is_a_warning(self):
        for words in (("create", self.queue, "_max_claims=5"), ("set", self.queue, "_max_claims=6")):
            run = self.commands.run(*words)
            self.assertEqual((run.returncode, run.stderr), (0, (
                'claimd: warning: the member "_max_claims" has no effect here. Did you mean '
                '"_max_claim_count"?\n')))

    def test_nothing_that_a_terminal_obeys_is_printed(self):
        self.assertIn(' a\\u001b="\\u202e" ', self.good("create", self.queue, "b=1", "a\x1b=\u202e"))
        run = self.fails(1, "(a\\u001b=\"\\u202e\")", "create", self.queue, "a\x1b=2")
        self.assertNotIn("\x1b", run.stderr)


class Misspelled(CommandCase):
    """A queue that does not exist, beside one with a name like it."""

    def test_commands_name_the_queue_that_was_meant(self):
        self.good("post", self.queue, "x")
        wrong, meant = self.queue + "s", r' \(did you mean "%s"\?\)$' % self.queue
        for words in (("peek",), ("claims",), ("why", "a"), ("pause",), ("resume",),
                      ("purge", "--yes"), ("redrive", "--yes"), ("delete", "a"), ("release", "a"),
                      ("set", "a=1"), ("claim",)):
            run = self.fails(1, wrong, words[0], wrong, *words[1:])
            self.assertRegex(run.stderr, meant)
        run = self.commands.run("check", wrong)
        self.assertIn('there is no such queue (did you mean "%s"?) |' % self.queue, run.stdout)
        # Neither without a name like it, nor for a message of a queue that exists.
        for words in (("peek", "another"), ("claim", "another"), ("why", self.queue, "a")):
            self.assertNotIn("did you mean", self.fails(1, words[1], *words).stderr)
        self.claimed()
        self.assertNotIn("did you mean", self.fails(1, "no message", "claim", self.queue).stderr)

    def test_without_the_right_to_list_queues_there_is_no_hint(self):
        with tempfile.TemporaryDirectory() as folder:
            tokens, token = os.path.join(folder, "tokens"), os.path.join(folder, "token")
            with open(token, "w", encoding="ascii") as file:
                subprocess.run([CLAIMD, "token", "new", "w", "--role", "worker", "--projects", "p",
                                "--tokens", tokens], stdout=file, check=True)
            with Server("--auth", "tokens", "--tokens", tokens) as server:
                run = Commands(server.url).run("claim", "jobs", "--token-file", token, "--project", "p")
                self.assertEqual((run.returncode, run.stderr),
                                 (1, "claimd: no message of jobs is ready\n"))


class Check(CommandCase):
    """Nagios: one line, and 0, 1, 2 or 3."""

    def check(self, status, text, *words, commands=None):
        run = (commands or self.commands).run("check", *words)
        self.assertEqual((run.returncode, run.stderr), (status, ""))
        self.assertRegex(run.stdout, text)
        self.assertEqual(run.stdout.count("\n"), 1)

    def test_thresholds_decide_the_status(self):
        self.good("post", self.queue, "x", "y")
        q = self.queue
        self.check(0, r"^CLAIMD OK - 1 queue, 2 ready, oldest \ds, 0 dead letters \| ready=2;; "
                      r"oldest=\ds;300;3600 dead=0;1;\n$", q)
        self.check(1, "^CLAIMD WARNING - %s: ready messages 2 \\(limit 2\\) \\|" % q, q,
                   "--warn", "ready=2")
        self.check(0, "OK", q, "--warn", "ready=3")
        self.check(2, "^CLAIMD CRITICAL - %s: ready messages 2 \\(limit 1\\), %s: oldest ready message "
                      "\\ds \\(limit 0s\\) \\|" % (q, q), q, "--crit", "ready=1,oldest=0")
        self.check(3, "^CLAIMD UNKNOWN - other: there is no such queue", q, "other")
        self.check(2, "^CLAIMD CRITICAL", q, "other", "--crit", "ready=1")
        document = json.loads(self.good("check", q, "--json"))
        self.assertEqual((document["status"], document["ready"]), ("OK", 2))

    def test_ready_messages_of_paused_and_dead_letter_queues_are_no_problem(self):
        q, dead, limits = self.queue, self.queue + "-dead", ("--warn", "ready=1,oldest=0")
        self.good("post", q, "x")
        self.check(1, "WARNING", q, *limits)
        self.good("pause", q, "--posts")  # workers have to go on
        self.check(1, "WARNING", q, *limits)
        self.good("pause", q)
        self.check(0, "^CLAIMD OK - 1 queue, 1 ready, oldest 0s, 0 dead letters, 1 queue paused "
                      r"\| ready=0;1; oldest=0s;0;3600 dead=0;;\n$", q, *limits)
        self.good("resume", q)
        self.good("set", q, "_max_claim_count=1", "_dead_letter_queue=" + dead)
        self.good("release", q, self.claimed()["claim"])
        self.fails(1, "no message", "claim", q)
        self.check(0, r"^CLAIMD OK - 1 queue, 1 ready, oldest 0s, 1 dead letter \|", dead, *limits)
        self.check(1, "^CLAIMD WARNING - %s: dead letters 1 \\(limit 1\\) " % dead, dead)

    def test_all_queues_of_all_projects(self):
        with Server() as server:
            commands = Commands(server.url, project=None)
            self.check(0, "^CLAIMD OK - 0 queues, 0 ready, oldest 0s", commands=commands)
            for i in range(5):
                commands.run("post", "q%d" % i, "x", "--project", "a|\x1b%d" % i)
            self.check(1, r"^CLAIMD WARNING - [^|]*, and 2 more \| ready=1;1; oldest", "--warn", "ready=1",
                       commands=commands)
            self.check(1, r"^CLAIMD WARNING - a/\\u001b3/q3: ready messages 1 ", "q3", "--warn", "ready=1",
                       commands=commands)

    def test_the_space_of_the_journal(self):
        with tempfile.TemporaryDirectory() as folder, \
                Server("--journal", folder, "--journal-max-bytes", str(64 << 20)) as server:
            commands = Commands(server.url)
            self.check(0, r"journal \d+% full \|.* journal=\d+%;80;95\n$", commands=commands)
            self.check(2, r"CRITICAL - journal full \d+% \(limit 0%\)", "--crit", "journal=0",
                       commands=commands)

    def test_a_server_that_is_away_or_refuses(self):
        self.check(2, "^CLAIMD CRITICAL - http://127.0.0.1:1 does not respond", "--url",
                   "http://127.0.0.1:1")
        with FakeServer(response('{"title": "Unauthorized\\n"}', "401 Unauthorized")) as fake:
            self.check(3, r"^CLAIMD UNKNOWN - Unauthorized\\n \(status 401\)\n$", commands=Commands(fake.url))
        for words in (("--warn", "x=1"), ("--warn", "ready"), ("--crit", "oldest=x"), ("--nonsense",),
                      ("--url", "x")):
            self.assertEqual(self.commands.run("check", *words).returncode, 3, words)


class Arguments(CommandCase):
    def test_wrong_arguments_are_named_with_the_help(self):
        for words, text in (((), "post needs a queue"),
                            (("q", "--nonsense"), "--nonsense is not an option of post"),
                            (("q", "--tll", "1"), "--tll is not an option of post (did you mean --ttl?). See"),
                            (("q", "x", "--ttl"), "--ttl needs a value"),
                            (("q", "x", "--ttl", "60", "--ttl=60"), "--ttl is given twice"),
                            (("q", "x", "--json=1"), "--json takes no value"),
                            (("q", "x", "--timeout", "0"), "--timeout: 0 is no time"),
                            (("q", "x", "--url", "ftp://x"), "--url: ftp://x is no URL"),
                            (("q", "x", "--url", "http://"), "has no host"),
                            (("q", "x", "--url", "http://a b"), "is no URL"),
                            (("q", "x", "--token-file", "/nowhere"), "/nowhere cannot be read"),
                            (("q", "x", "--project", "a\nb"), "--project has the end of a line")):
            self.fails(2, text, "post", *words)
        self.fails(2, "x is one argument too many. See claimd claim --help", "claim", "q", "x")

    def test_a_misspelled_command_or_option_is_like_the_right_one(self):
        for words, text in ((("pots", "q"), "claimd: pots is not a command. Did you mean post?\n"),
                            (("--max-memroy=1G",), "(did you mean the option max_memory?). See"),
                            (("nonsense",), "nonsense is not an option")):
            self.fails(2, text, *words)

    def test_a_command_without_a_project_uses_that_of_the_server(self):
        for options in ((), ("--project", "default")):
            commands = Commands(self.server.url, project=None)
            run = commands.run("post", self.queue, "x", *options)
            self.assertEqual(run.returncode, 0, run.stderr)
        run = commands.run("peek", self.queue, "--json", "--project", "default")
        self.assertEqual(run.stdout.count('"body"'), 2, run.stdout)

    def test_a_version_in_the_url_is_refused_and_named(self):
        for path, text in (("/v2", "has the version v2 of the API. Leave it out: write %s\n" % self.server.url),
                           ("/v2/", "has the version v2 of the API. Leave it out: write %s\n" % self.server.url),
                           ("/mq/v1.1", "has the version v1.1 of the API. Leave it out: write %s/mq\n"
                            % self.server.url),
                           ("/v2/acme", "has the version v2"),
                           ("?a=1", "has a query. Write only %s\n" % self.server.url),
                           ("/#top", "has a fragment")):
            url = self.server.url + path
            self.fails(2, "claimd: --url: %s %s" % (url, text), "post", self.queue, "x", "--url", url)
            self.fails(2, "claimd: CLAIMD_URL: %s %s" % (url, text), "post", self.queue, "x",
                       commands=Commands(url))
            for command in ("dump", "load"):
                run = subprocess.run([CLAIMD, command, "--url", url], capture_output=True, text=True,
                                     timeout=60, stdin=subprocess.DEVNULL, check=False)
                self.assertEqual((run.returncode, run.stdout), (2, ""), run.stderr)
                self.assertIn("--url: %s %s" % (url, text.strip()), run.stderr)
        for url, text in (("http://127.0.0.1:99999", 'has the port "99999". It must be 1 to 65535'),
                          ("http://127.0.0.1:", 'has the port ""'),
                          ("http://user:secret@127.0.0.1", "the URL has a user or a password"),
                          ("127.0.0.1:8888", "is no URL of a server. It must be http://HOST:PORT"),
                          ("http://:8888", "has no host"), ("http://a/b/../c", "has an empty part")):
            self.assertNotIn("secret", self.fails(2, text, "post", "q", "x", "--url", url).stderr)
        work = self.commands.run("work", self.queue, "--url", self.server.url + "/v2", "--exit-when-empty",
                                 "--", "cat")
        self.assertEqual(work.returncode, 2, work.stderr)
        self.assertEqual(self.server.stats(self.queue)[2], 0)

    def test_the_path_of_a_proxy_is_a_part_of_each_path(self):
        """Also if the server knows the path, and so has it in the links to next pages."""
        for prefix in ("", "/mq"):
            with FakeServer(response(json.dumps(
                    {"claims": [], "links": [{"rel": "next", "href": prefix + "/claimd/next"}]}))) as fake:
                run = Commands(fake.url + "/mq//").run("claims", "q")
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertEqual([request.split()[1] for request in fake.requests],
                                 [b"/mq/claimd/queues/q/claims?limit=1000", b"/mq/claimd/next"])

    def test_names_are_encoded_so_that_they_stay_names(self):
        self.fails(1, "Invalid queue identification", "post", "a b", "x")
        self.fails(1, "Invalid queue identification", "post", "q?limit=1", "x")
        self.fails(1, "Invalid queue identification", "claim", "é")
        self.fails(1, "status 404", "post", "../x", "y")

    def test_the_variables_of_commands_are_no_options_of_the_server(self):
        run = subprocess.run([CLAIMD, "--check-config"], capture_output=True, text=True, timeout=60,
                             env=dict(os.environ, CLAIMD_URL="x", CLAIMD_PROJECT="x",
                                      CLAIMD_TOKEN_FILE="x", CLAIMD_CLIENT_ID="x"), check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))


class Output(CommandCase):
    def test_a_full_disk_is_an_error(self):
        for words in (("post", self.queue, "x"), ("claim", self.queue, "--help")):
            with open("/dev/full", "w", encoding="ascii") as full:
                self.fails(1, "the output cannot be written: No space left on device", *words,
                           stdout=full)
        with open("/dev/full", "w", encoding="ascii") as full:
            self.fails(3, "the output cannot be written", "check", self.queue, stdout=full)

    def test_an_output_that_is_closed_is_an_error_and_no_socket_takes_its_place(self):
        self.good("post", self.queue, *["x" * 1000] * 50)
        run = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", CLAIMD, "peek", self.queue, "--limit", "50"],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S,
                             env=environment(**self.commands.variables), check=False)
        self.assertEqual((run.returncode, run.stderr),
                         (1, "claimd: the output cannot be written: Bad file descriptor\n"))
        for words, end in ((["post", self.queue], "0<&-"), (["--print-config"], ">&-")):
            run = subprocess.run(["sh", "-c", 'exec "$@" ' + end, "sh", CLAIMD, *words], stderr=subprocess.PIPE,
                                 text=True, timeout=PATIENCE_S, check=False,
                                 env=environment(**self.commands.variables))
            self.assertNotEqual(run.returncode, 0, words)

    def test_the_end_of_the_reader_ends_a_command_silently(self):
        self.good("post", self.queue, *["x" * 1000] * 50)
        for words in (("peek", self.queue, "--limit", "50"), ("queues", "--watch")):
            process = subprocess.Popen([CLAIMD, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, env=environment(**self.commands.variables))
            process.stdout.close()
            self.assertEqual(process.wait(PATIENCE_S), -signal.SIGPIPE)
            self.assertEqual(process.stderr.read(), b"")
            process.stderr.close()

    def test_nothing_that_a_terminal_obeys_is_printed(self):
        evil = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202ez\0"
        self.good("post", self.queue, json.dumps(evil), json.dumps(evil, ensure_ascii=False).replace(
            "\0", ""), json.dumps({evil: [evil]}))
        for words in ((), ("--json",)):
            printed = self.good("claim", self.queue, *words)
            self.assertTrue(all(ch == "\n" or (ch.isprintable() and ch != "\u202e")
                                for ch in printed), printed)
        document = json.dumps({"title": evil, "description": evil})
        with FakeServer(response(document, "400 Bad")) as fake:
            run = Commands(fake.url).run("claim", "q")
            self.assertEqual(run.returncode, 1)
            self.assertTrue(all(ch == "\n" or ch.isprintable() for ch in run.stderr), run.stderr)
            self.assertIn("\\u001b]0;owned", run.stderr)

    def test_json_keeps_the_document(self):
        evil = "\x1b\x7f\x9b\u202e \n\\ é 漢"
        self.good("post", self.queue, json.dumps(evil))
        self.good("post", self.queue, '{"a":\t[1.50e2,\r\n 1e-7]}')
        self.assertEqual(self.bodies(), [evil, {"a": [150, 1e-7]}])

    def test_a_terminal_of_20_columns(self):
        self.good("post", self.queue, json.dumps("漢" * 50))
        with self.commands.terminal("claim", self.queue, columns=20) as terminal:
            status, screen = terminal.end()
        self.assertEqual(status, 0, screen)
        table = screen.split("\n\n", 1)[1]
        self.assertIn('body: "漢漢漢漢漢漢…', table)
        self.assertLessEqual(max(len(line) for line in table.split("\n")), 20)

    def test_a_pipe_gets_everything(self):
        self.good("post", self.queue, "x" * 1000)
        self.assertIn('"%s"' % ("x" * 1000), self.good("claim", self.queue))


class Away(CommandCase):
    """A server that is away or misbehaves: exit status 69."""

    def away(self, text, speak, *words):
        with FakeServer(speak) as fake:
            self.fails(69, text, "claim", "q", *words, commands=Commands(fake.url))

    def test_no_server(self):
        self.fails(69, "http://127.0.0.1:1 does not respond: ", "claim", "q", "--url",
                   "http://127.0.0.1:1")
        self.fails(69, "unix:/nowhere/socket does not respond", "claim", "q", "--url",
                   "unix:/nowhere/socket")
        self.fails(69, "does not respond", "claim", "q", "--url", "http://x.invalid:80")

    def test_a_server_that_hangs(self):
        start = time.monotonic()
        self.away("does not respond within 1 s", lambda other: time.sleep(60), "--timeout", "1")
        self.away("does not respond within 1 s",
                  lambda other: [(other.sendall(b"A: b\r\n" if i else b"HTTP/1.1 200 OK\r\n"),
                                  time.sleep(0.2)) for i in range(100)],
                  "--timeout", "1")
        self.assertLess(time.monotonic() - start, 15)

    def test_garbage(self):
        for said in (b"", b"\0\1\2\3", b"HTTP/1.1", b"SSH-2.0-x\r\n", b"\x15\x03\x01\0\2\2\x46"):
            self.away("does not respond: ", lambda other, said=said: other.sendall(said))
        for body in ("<html>", "[1,", '{"a":"\ud800"}'.encode("utf-8", "surrogatepass"), b"\xff", b"\0"):
            self.away("is no JSON document. Is it a claimd?",
                      lambda other, body=body: other.sendall(response(body)))
        self.away("does not respond", lambda other: other.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"))

    def test_a_response_that_does_not_end(self):
        def speak(other):
            other.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                other.sendall(b"x" * 65536)

        self.away("is larger than 64 MiB", speak)

    EACH = (("queues",), ("claims", "q"), ("peek", "q"), ("why", "q", "x"), ("post", "q", "x"),
            ("claim", "q"), ("delete", "q", "x"), ("delete", "q", "x", "--claim", "y"), ("release", "q", "x"),
            ("release", "q", "x", "y"), ("purge", "q", "--yes"), ("redrive", "q", "--yes"),
            ("pause", "q"), ("resume", "q"), ("create", "q", "a=1"), ("set", "q", "a=1"))

    def test_another_service_is_no_success_of_any_command(self):
        for body in ("", "{}", "[]", "[" * 2000 + "]" * 2000, '{"status": "up"}'):
            with FakeServer(response(body)) as fake:
                for words in self.EACH:
                    self.fails(69, "Is it a claimd?", *words, commands=Commands(fake.url))
                run = Commands(fake.url).run("check")
                self.assertEqual((run.returncode, run.stderr), (2, ""))
                self.assertIn("CLAIMD CRITICAL - ", run.stdout)
        with FakeServer(response("", "204 No Content")) as fake:
            for words in self.EACH[:5]:
                self.fails(69, "Is it a claimd?", *words, commands=Commands(fake.url))

    def test_documents_of_another_form_are_no_crash(self):
        wrong = {"id": 1, "moved": "x", "remaining": -1, "by_target": [1], "resources": [1, {}], "results": 1,
                 "links": 1}
        for messages in (1, {"a": 1}, [1, None, {"id": 1, "age": "x", "details": 1}]):
            body = json.dumps({"messages": messages, "queues": messages, "claims": messages, **wrong})
            with FakeServer(response(body)) as fake:
                for words in self.EACH:
                    for more in ((), ("--json",)):
                        run = Commands(fake.url).run(*words, *more)
                        self.assertIn(run.returncode, (0, 69), (words, run.stderr))

    def test_sigterm_ends_each_command_while_the_server_hangs(self):
        requested = threading.Semaphore(0)

        def hang(_):
            requested.release()
            over.wait(PATIENCE_S)

        over = threading.Event()
        with FakeServer(hang) as fake:
            self.addCleanup(over.set)
            for words in (*self.EACH, ("check",)):
                process = subprocess.Popen([CLAIMD, *words], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                           env=environment(**Commands(fake.url).variables))
                self.assertTrue(requested.acquire(timeout=PATIENCE_S))
                process.terminate()
                self.assertEqual(process.wait(PATIENCE_S), -signal.SIGTERM)
                self.assertEqual(process.stderr.read(), b"")
                process.stderr.close()

    def test_a_refusal_without_a_document(self):
        with FakeServer(response("<h1>no</h1>", "502 Bad Gateway")) as fake:
            self.fails(1, "responds with status 502. Is it a claimd?", "claim", "q",
                       commands=Commands(fake.url))
        with FakeServer(response("", "302 Found", "Location: http://x/\r\n")) as fake:
            self.fails(1, "responds with status 302", "claim", "q", commands=Commands(fake.url))

    def test_a_proxy_of_the_environment_is_not_used(self):
        commands = Commands(self.server.url, http_proxy="http://127.0.0.1:1")
        self.fails(1, "is ready", "claim", self.queue, commands=commands)


class Connections(unittest.TestCase):
    def test_a_unix_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            path = "unix:" + os.path.join(folder, "socket")
            with Server(listen=path):
                run = Commands(path).run("post", "q", "x")
                self.assertEqual(run.returncode, 0, run.stderr)

    def test_tls_with_a_certificate_of_the_client(self):
        with Workshop() as shop:
            server, ca = shop.signed("server"), shop.signed("ca", ca=True)
            client = shop.signed("client", by=ca, names="DNS:worker1.example",
                                 usage="clientAuth")
            with open(shop.path("certificates"), "w", encoding="ascii") as f:
                f.write("worker1 producer p dns:worker1.example\n")
            with Server("--auth", "certificates", "--certificates", f.name, *server.options(),
                        "--tls-client-ca", ca.certificate, listen="tls:127.0.0.1:0") as daemon:
                commands = Commands("https://127.0.0.1:%d" % daemon.port)
                run = commands.run("post", "q", "x")
                self.assertEqual(run.returncode, 69)
                self.assertIn("certificate", run.stderr)
                good = ("--ca", server.certificate, "--certificate", client.certificate,
                        "--certificate-key", client.key)
                run = commands.run("post", "q", "x", *good)
                self.assertEqual(run.returncode, 0, run.stderr)
                run = commands.run("post", "q", "x", "--ca", "/nowhere", *good[2:])
                self.assertEqual(run.returncode, 69, run.stderr)

    def test_tokens(self):
        with tempfile.TemporaryDirectory() as folder:
            tokens, mine = os.path.join(folder, "tokens"), os.path.join(folder, "mine")
            for role in ("worker", "reader"):
                token = subprocess.run([CLAIMD, "token", "new", role, "--role", role, "--projects", "p",
                                        "--tokens", tokens], capture_output=True, text=True,
                                       check=True).stdout
                with open(mine + role, "w", encoding="ascii") as f:
                    f.write("\n " + token + "\n")
            with Server("--auth", "tokens", "--tokens", tokens) as server:
                commands = Commands(server.url)
                self.assertEqual(commands.run("claim", "q").returncode, 1)
                self.assertIn("Unauthorized", commands.run("claim", "q").stderr)
                run = commands.run("claim", "q", "--token-file", mine + "worker")
                self.assertIn("no message of q is ready", run.stderr)
                run = commands.run("claim", "q", "--token-file", mine + "reader")
                self.assertEqual(run.returncode, 1)
                self.assertIn("Not authorized", run.stderr)
                run = Commands(server.url, CLAIMD_TOKEN_FILE=mine + "worker").run("claim", "q")
                self.assertIn("no message of q is ready", run.stderr)
            for text, why in (("", "has no token"), ("a b", "must have one token"),
                              ("x" * 5000, "larger than"), ("a\r\nX: y", "must have one token")):
                with open(mine, "w", encoding="ascii") as f:
                    f.write(text)
                run = Commands("http://127.0.0.1:1").run("claim", "q", "--token-file", mine)
                self.assertEqual(run.returncode, 2)
                self.assertIn(why, run.stderr)

    def test_client_id(self):
        with FakeServer(response("{}")) as fake:
            mine = str(uuid.uuid4())
            Commands(fake.url, CLAIMD_CLIENT_ID=mine).run("claim", "q")
            Commands(fake.url).run("claim", "q")
            Commands(fake.url).run("claim", "q")
        ids = [line for request in fake.requests for line in request.decode().split("\r\n")
               if line.startswith("Client-ID: ")]
        self.assertEqual(ids[0], "Client-ID: " + mine)
        self.assertEqual(len(set(ids)), 3)


if __name__ == "__main__":
    unittest.main()
