#!/usr/bin/python3
"""Options that change while it runs: SIGHUP, on the real program.

    reload_test.py CLAIMD
"""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import Server, post, request  # noqa: E402


class Reloading(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="claimd-reload-"))
        self.path = os.path.join(folder, "claimd.conf")
        self.write("")

    def write(self, *lines):
        with open(self.path, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)

    def start(self, *options):
        return Server("--config", self.path, *options)

    def reload(self, server, *lines, event="reloaded"):
        """With the file as it is to be then; what is logged of it."""
        self.write(*lines)
        return server.reload(event)

    def post(self, server, queue="q"):
        with server.connect() as client:
            client.send(post(queue))
            return client.response()

    def test_nothing_has_changed(self):
        with self.start() as server:
            self.assertIn("tokens=0 options_changed=0 options_kept=0", self.reload(server))

    def test_limits_of_projects_come_and_go(self):
        with self.start() as server:
            for _ in range(3):
                self.assertEqual(self.post(server).status, 201)
            self.assertIn("options_changed=1 options_kept=0",
                          self.reload(server, "project_max_messages = 3"))
            refused = self.post(server)
            self.assertEqual((refused.status, refused.headers["retry-after"]), (429, "5"))
            self.reload(server, "project_max_queues = 1")
            self.assertEqual(self.post(server).status, 201)
            self.assertEqual(self.post(server, "another").status, 429)
            self.reload(server)
            self.assertEqual(self.post(server, "another").status, 201)

    def test_requests_a_second_count_from_the_next_request_on(self):
        with self.start() as server, server.connect() as client:
            def statuses(count):
                client.send(request("GET", "/v2/queues") * count)
                return [client.response().status for _ in range(count)]

            self.assertEqual(set(statuses(20)), {200})
            self.reload(server, "project_requests_per_second = 1")
            self.assertIn(429, statuses(20))
            self.reload(server)
            self.assertEqual(set(statuses(20)), {200})

    def test_the_log_says_more_and_less(self):
        def fetch(number):
            self.assertEqual(server.fetch("GET", "/v2/queues?limit=%d" % number).status, 200)

        with self.start() as server:
            self.reload(server, "access_log = on")
            fetch(1)
            server.logged(' query="limit=1" ')
            # That it has reloaded is no warning; that an option waits for a restart is.
            self.reload(server, "access_log = on", "log_level = warn", "shards = 4",
                        event="restart_needed")
            fetch(2)
            server.signal()
            self.assertEqual(server.wait(), 0)
        self.assertFalse(any("limit=2" in line for line in server.log))
        self.assertFalse(any(" stopped " in line for line in server.log))

    def test_of_the_sample_only_few_have_a_line(self):
        with self.start("--access-log") as server, server.connect() as client:
            self.reload(server, "access_log_sample = 1000")
            client.send(request("GET", "/v2/queues") * 20)
            for _ in range(20):
                self.assertEqual(client.response().status, 200)
            server.signal()
            self.assertEqual(server.wait(), 0)
        self.assertLessEqual(sum(" request " in line for line in server.log), 1)

    def test_how_long_a_drain_lasts(self):
        with self.start("--log-level", "info") as server:
            self.reload(server, "drain_seconds = 3")
            server.signal()
            server.logged(" draining at_most_ms=3000")

    def test_options_that_need_a_restart_are_named_and_stay(self):
        with self.start() as server:
            line = self.reload(server, "enable_v1 = no", "project_max_queues = 1",
                               "max_memory = 1G")
            self.assertIn("options_changed=1 options_kept=2", line)
            server.logged(" warn restart_needed option=enable_v1")
            server.logged(" warn restart_needed option=max_memory")
            self.assertEqual(server.fetch("GET", "/v1/queues").status, 204)
            self.assertEqual(self.post(server).status, 201)
            self.assertEqual(self.post(server, "another").status, 429)

    def test_a_broken_file_changes_nothing(self):
        with self.start() as server:
            line = self.reload(server, "project_max_queues = 1", "log_level = loud",
                               event="reload_failed")
            self.assertIn('%s:2: log_level must be one of error|warn|info|debug (received ' % self.path, line)
            line = self.reload(server, "worker = 1", "log_level = loud", event="reload_failed")
            self.assertIn("%s:1: worker is not an option" % self.path, line)
            self.assertIn(" further_errors=1", line)
            for queue in ("one", "another"):
                self.assertEqual(self.post(server, queue).status, 201)
            os.unlink(self.path)
            self.signal_fails(server, "No such file")
            os.mkfifo(self.path)
            self.signal_fails(server, "is a pipe. --config takes a regular file")
            os.unlink(self.path)
            os.mkdir(self.path)
            self.signal_fails(server, "is a directory. --config takes a regular file")
            os.rmdir(self.path)
            self.assertEqual(self.post(server, "third").status, 201)
            self.assertIn("options_changed=1", self.reload(server, "project_max_queues = 1"))

    def test_a_broken_list_of_tokens_keeps_the_options_too(self):
        tokens = self.path + ".tokens"
        with open(tokens, "w", encoding="ascii") as file:
            os.chmod(tokens, 0o600)
        self.write("tokens = " + tokens)
        with self.start("--auth", "tokens") as server:
            self.reload(server, "tokens = %s.not" % tokens, "access_log = on",
                        event="reload_failed")
            self.assertEqual(server.fetch("GET", "/v2/queues").status, 401)
            # The old path is in force, and is good.
            self.assertIn("options_changed=0", self.reload(server, "tokens = " + tokens))
        self.assertFalse(any(" request " in line for line in server.log))

    def signal_fails(self, server, why):
        self.assertIn(why, server.reload("reload_failed"))


if __name__ == "__main__":
    unittest.main()
