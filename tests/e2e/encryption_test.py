#!/usr/bin/python3
"""Queues whose messages are encrypted: keys in a file, restarts, and what lies on the disk.

    encryption_test.py CLAIMD
"""

import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import post, run  # noqa: E402
from key_file import KeyFile  # noqa: E402

SECRET = "Sesame, open thyself: %d"
ENCRYPT = b'{"_enable_encrypt_messages":true}'


class Encryption(KeyFile, unittest.TestCase):
    OPTION, SHORT = "--encryption-keys", "a key must be 32 bytes"
    OLD, NEW = "0123456789abcdef" * 4, "fedcba9876543210" * 4

    def setUp(self):
        super().setUp()
        self.journal = os.path.join(self.folder, "journal")

    def start(self, *options, **more):
        return super().start("--journal", self.journal, *options, **more)

    def use(self, server):
        server.fetch("PUT", "/v2/queues/q", ENCRYPT)
        self.post(server, "q", 1)

    def post(self, server, queue, *numbers):
        messages = [{"body": SECRET % number, "ttl": 3600} for number in numbers]
        with server.connect() as client:
            client.send(post(queue, json.dumps({"messages": messages}).encode()))
            self.assertEqual(client.response().status, 201)

    def numbers(self, server, queue="q", method="GET", parameters="echo=true"):
        response = server.fetch(method, "/v2/queues/%s/messages?%s" % (queue, parameters))
        self.assertEqual(response.status, 200, response.body)
        return [int(message["body"].rsplit(" ", 1)[1])
                for message in json.loads(response.body)["messages"]]

    def on_disk(self):
        """How often the clear text stands in the journal."""
        found = 0
        for name in os.listdir(self.journal):
            with open(os.path.join(self.journal, name), "rb") as f:
                found += f.read().count(b"Sesame")
        return found

    def test_the_clear_text_is_nowhere_on_the_disk_and_comes_back(self):
        with self.start() as server:
            self.assertEqual(server.fetch("PUT", "/v2/queues/q", ENCRYPT).status, 201)
            self.post(server, "q", *range(10))
            server.process.kill()
            server.wait()
        self.assertEqual(self.on_disk(), 0)
        with self.start() as server:
            self.assertEqual(self.numbers(server), list(range(10)))
            self.post(server, "q", 10)
            self.assertEqual(self.on_disk(), 0)
            self.post(server, "clear", 11)
            self.assertEqual(self.on_disk(), 1)  # it can be found

    def test_keys_are_changed_while_it_runs_and_the_old_one_is_taken_out_later(self):
        with self.start() as server:
            self.use(server)
            self.write(self.NEW, self.OLD)
            server.reload()
            self.post(server, "q", 2)
            self.assertEqual(self.numbers(server), [1, 2])
            self.assertEqual(self.numbers(server, method="DELETE", parameters="pop=1"), [1])
            self.write(self.NEW)
            server.reload()
            self.assertEqual(self.numbers(server), [2])

    def test_a_key_that_is_missing_is_named_and_nothing_is_lost(self):
        with self.start() as server:
            server.fetch("PUT", "/v2/queues/q", ENCRYPT)
            self.post(server, "q", 1, 2)
            key_id = re.search(r"key=([0-9a-f]{16})", server.logged(" encryption_key "))[1]
        for keys in ("none", None):
            self.write(self.NEW)
            with self.start(keys=keys) as server:
                for method, target, body in (("GET", "/messages?echo=true", None),
                                             ("POST", "/claims", b"{}"),
                                             ("DELETE", "/messages?pop=2", None)):
                    response = server.fetch(method, "/v2/queues/q" + target, body)
                    self.assertEqual(response.status, 503)
                    self.assertIn(b"does not have its key", response.body)
                self.assertIn("key=%s project=p" % key_id,
                              server.logged(" encryption_key_missing "))
                text = server.fetch("GET", "/metrics").body.decode()
                self.assertIn('claimd_decryption_failures_total{reason="no_key"} 3', text)
                self.assertEqual(server.fetch("POST", "/v2/queues/q/messages",
                                              b'{"messages":[{"body":1}]}').status,
                                 503 if keys == "none" else 201)
        self.write(self.NEW, self.OLD)
        with self.start() as server:
            response = server.fetch("DELETE", "/v2/queues/q/messages?pop=3")
            self.assertEqual([message["body"] for message in json.loads(response.body)["messages"]],
                             [SECRET % 1, SECRET % 2, 1])

    def test_broken_keys_leave_those_that_are_there(self):
        with self.start() as server:
            self.use(server)
            self.refuses_broken_keys(server, ([self.NEW] * 2, "keys:2: the file has this key twice"))
            self.post(server, "q", 2)
            self.assertEqual(self.numbers(server), [1, 2])

    def test_the_commands_of_the_journal_need_no_key(self):
        with self.start() as server:
            self.use(server)
        copy = os.path.join(self.folder, "copy")
        self.assertEqual(run("verify", self.journal).returncode, 0)
        self.assertEqual(run("backup", self.journal, copy).returncode, 0)
        shown = run("log", copy)
        self.assertEqual(shown.returncode, 0)
        self.assertRegex(shown.stdout, r'"messages":\[\{"number":1,"bytes":\d+,"sealed":true\}\]')
        self.assertNotIn("Sesame", shown.stdout)


if __name__ == "__main__":
    unittest.main()
