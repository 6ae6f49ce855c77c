#!/usr/bin/python3
"""claimd top on terminals of several sizes, with a server that comes and goes.

    top_test.py CLAIMD
"""

import json
import os
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import Server, eventually, stand_still  # noqa: E402
from commands import Commands, response  # noqa: E402
from fake_server import FakeServer  # noqa: E402


class Top(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Server())
        self.commands = Commands(self.server.url)
        self.run_command("post", "urgent", "first", '{"job": "second"}')
        time.sleep(1.1)
        self.run_command("post", "later", "a", "b", "c")

    def run_command(self, *words):
        run = self.commands.run(*words)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def top(self, *words, columns=100, rows=20):
        terminal = self.enterContext(self.commands.terminal("top", *words, columns=columns, rows=rows))
        terminal.sees("urgent")
        return terminal

    def quit(self, terminal):
        terminal.type("q")
        status, screen = terminal.end()
        self.assertEqual(status, 0, screen)
        return screen

    def test_the_most_urgent_queue_is_first_and_the_screen_follows(self):
        top = self.top()
        top.shows(r"^claimd top  http://127.0.0.1:\d+  project p\n2 queues  sort: oldest_ready\n"
                  r"queue +oldest +ready +ready, 2 min +claimed .*\nurgent \(no worker\) +\ds +2 +█ +0 .*\n"
                  r"later \(no worker\) +\ds +3 +█ +0 ")
        self.run_command("post", "third", "x")
        top.shows(r"^3 queues")
        top.shows(r"^third \(no worker\) +\ds +1 ")
        top.type("s")
        top.shows(r"^3 queues  sort: ready\n.*\nlater .*\nurgent .*\nthird ")
        top.type("sss")
        top.shows(r"sort: oldest_ready\n.*\nurgent ")
        self.assertIn("\x1b[?1049l", self.quit(top))  # the screen of before is back

    def test_enter_shows_claims_and_messages_of_a_queue(self):
        claim = json.loads(self.run_command("claim", "urgent", "--json"))["claim"]
        top = self.top(columns=160)
        top.type("\n")
        top.shows(r"^urgent  http.*\n\n(.*\n)*claim +worker +messages +age +ends in\n%s .* +1 +\ds +4m5\ds\n"
                  r"\nmessage +state .*\n[0-9a-f]{24} +claimed .*\n[0-9a-f]{24} +ready +\ds +0 +\{\"job\":\"second\"\}"
                  % claim)
        top.type("\n")
        top.shows(r"^state +claimed\nclaim +%s\nworker " % claim)
        top.type("\x1b")
        top.shows("^message +state ")
        top.type("\x1b")
        top.shows("^2 queues")
        top.type("j\n")
        top.shows(r'^later  http(.*\n)*.* "c"')
        self.quit(top)

    def test_a_filter_keeps_queues_with_a_text_in_their_names(self):
        top = self.top()
        top.type("/latx\x7fe\n")
        top.shows(r"filter: late\n.*\nlater .*\n\n")
        top.type("/\x7f\x7f\x7f\x7f\n")
        top.shows(r"^urgent .*\nlater ")
        top.type("/nothing\x1b")
        top.shows(r"oldest_ready\n.*\nurgent .*\nlater ")
        self.quit(top)
        with self.commands.terminal("top", "--q", "lat", "--sort", "name") as top:
            top.shows(r"sort: name  filter: lat\n.*\nlater .*\n\n")

    def test_purge_needs_a_confirmation(self):
        top = self.top()
        top.type("p")
        top.shows(r"^Delete all 2 messages of urgent\? \[y/N\]")
        top.type("nj")
        top.shows("^q quit")
        top.type("p")
        top.shows(r"^Delete all 3 messages of later\? \[y/N\]")
        top.type("y")
        top.shows("^later is purged")
        self.quit(top)
        self.assertEqual(self.server.stats("later"), (0, 0, 0))
        self.assertEqual(self.server.stats("urgent")[2], 2)

    def test_redrive_of_the_dead_letters_of_a_queue(self):
        response = self.server.fetch("PATCH", "/v2/queues/urgent", json.dumps(
            [{"op": "add", "path": "/metadata/_max_claim_count", "value": 1},
             {"op": "add", "path": "/metadata/_dead_letter_queue", "value": "dead"}]).encode(),
            headers=["Content-Type: application/openstack-messaging-v2.0-json-patch"])
        self.assertEqual(response.status, 200, response)
        claim = json.loads(self.run_command("claim", "urgent", "--limit", "2", "--json"))["claim"]
        self.run_command("release", "urgent", claim)
        self.commands.run("claim", "urgent")
        self.assertEqual(self.server.stats("dead")[2], 2)
        top = self.top("--q", "urgent")
        top.type("r")
        top.shows(r"^Move the dead letters \(0 here\) of dead back\? \[y/N\]")
        top.type("y")
        top.shows("^2 dead letters of dead moved")
        self.quit(top)
        self.assertEqual(self.server.stats("urgent")[2], 2)

    def test_small_terminals_and_a_change_of_size(self):
        for columns, rows in ((20, 10), (20, 5), (10, 5), (5, 2), (1, 1), (300, 60)):
            with self.commands.terminal("top", columns=columns, rows=rows) as top:
                top.sees("\x1b[?1049h")
                for key in ("\n", "\n", "\x1b"):
                    top.type(key)
                    time.sleep(0.3)
                top.type("q")
                status, screen = top.end()
                self.assertEqual(status, 0, screen)
        top = self.top(columns=20, rows=10)
        top.shows(r"^queue +oldest\nurgent ")
        top.resize(120, 30)
        top.process.send_signal(28)  # SIGWINCH
        top.shows(r"^queue .* again/s\nurgent ")
        top.resize(30, 5)
        top.process.send_signal(28)
        top.shows(r"^queue .*\nurgent ")
        self.quit(top)

    def test_a_server_that_hangs_or_ends_is_shown_and_q_still_quits(self):
        top = self.top()
        stand_still(self.server)
        top.shows("does not respond within 2 s(.*\\n)*urgent ")
        self.server.signal(18)  # SIGCONT
        top.shows("^2 queues")
        self.server.stop()
        top.shows("does not respond: (.*\\n)*urgent ")
        start = time.monotonic()
        self.quit(top)
        self.assertLess(time.monotonic() - start, 5)

    def test_a_signal_ends_it_with_the_terminal_as_before(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            top = self.top()
            top.process.send_signal(number)
            status, screen = top.end()
            self.assertEqual(status, -number)
            self.assertIn("\x1b[?1049l", screen)

    def test_the_end_of_the_terminal_ends_it(self):
        top = self.top()
        os.close(top.master)
        top.master = os.open("/dev/null", os.O_RDONLY)
        eventually(lambda: top.process.poll() is not None)

    def test_without_a_terminal_or_a_server_it_says_so(self):
        run = self.commands.run("top")
        self.assertEqual(run.returncode, 2)
        self.assertIn("top needs a terminal. Use claimd queues for other output", run.stderr)
        with Commands("http://127.0.0.1:1").terminal("top") as top:
            status, screen = top.end()
            self.assertEqual(status, 69)
            self.assertIn("does not respond", screen)
        self.commands.variables["TERM"] = "no-such-terminal"
        with self.commands.terminal("top") as top:
            status, screen = top.end()
            self.assertEqual(status, 1)
            self.assertIn("the type of the terminal is unknown. Set TERM", screen)

    def test_one_request_in_a_second_shows_a_screenful(self):
        page = json.dumps({"queues": [{"project": "p", "name": "\x1b[31mq%d" % i, "ready": i}
                                      for i in range(10)], "links": [], "total": 10})
        with FakeServer(response(page)) as fake, \
                Commands(fake.url).terminal("top", rows=14) as top:
            top.shows(r"\\u001b\[31mq9")
            time.sleep(4)
            top.type("q")
            self.assertEqual(top.end()[0], 0)
            paths = [request.split(b" ")[1] for request in fake.requests]
        lists = [path for path in paths if path.startswith(b"/claimd/queues?")]
        self.assertLessEqual(len(lists), 8)
        self.assertIn(b"/claimd/queues?limit=10&sort=oldest_ready", lists)
        # The history of each queue is requested once.
        others = set(paths) - set(lists)
        self.assertEqual(len(paths) - len(lists), len(others))
        self.assertTrue(all(path.endswith(b"/history") for path in others), others)


if __name__ == "__main__":
    unittest.main()
