#!/usr/bin/python3
"""Pre-signed URLs: keys in a file, and those who hold what they have signed.

    share_test.py CLAIMD
"""

import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import Server, request, run  # noqa: E402

OLD, NEW = "0123456789abcdef" * 2, "fedcba9876543210" * 2
SHARE = b'{"paths":["messages"],"methods":["GET","POST"],"expires":"2099-01-01"}'


class Sharing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="claimd-share-")
        self.addCleanup(folder.cleanup)
        self.keys = os.path.join(folder.name, "keys")
        self.tokens = os.path.join(folder.name, "tokens")
        self.write(OLD)

    def write(self, *keys):
        with open(self.keys, "w", encoding="ascii") as f:
            os.chmod(self.keys, 0o600)
            f.writelines(key + "\n" for key in keys)

    def start(self, *options):
        return Server("--signing-keys", self.keys, *options)

    def share(self, server, headers=()):
        """The headers of those who hold a grant."""
        with server.connect() as client:
            client.send(request("POST", "/v2/queues/q/share", SHARE, headers=headers))
            response = client.response()
        self.assertEqual(response.status, 200, response.body)
        grant = json.loads(response.body)
        return ["URL-Signature: " + grant["signature"], "URL-Expires: " + grant["expires"],
                "URL-Methods: " + ",".join(grant["methods"]),
                "URL-Paths: " + ",".join(grant["paths"])]

    def status(self, server, headers, method="GET", target="/v2/queues/q/messages", body=None):
        with server.connect() as client:
            client.send(request(method, target, body, headers=headers))
            return client.response().status

    def test_keys_change_while_it_runs(self):
        with self.start() as server:
            old = self.share(server)
            self.write(NEW, OLD)
            server.reload()
            new = self.share(server)
            self.assertNotEqual(new, old)
            self.assertEqual((self.status(server, old), self.status(server, new)), (200, 200))
            self.write(NEW)
            server.reload()
            self.assertEqual((self.status(server, old), self.status(server, new)), (404, 200))

    def test_broken_keys_leave_those_that_are_there(self):
        with self.start() as server:
            held = self.share(server)
            for broken, why in ((["short"], "keys:1: a key must be 32 to 256 characters"),
                                ([], "keys: the file has no key")):
                self.write(*broken)
                self.assertIn(why, server.reload("reload_failed"))
            self.write(NEW)
            os.chmod(self.keys, 0o644)
            self.assertIn("may be read or written by other users", server.reload("reload_failed"))
            os.unlink(self.keys)
            self.assertIn("No such file", server.reload("reload_failed"))
            self.assertEqual(self.status(server, held), 200)

    def test_it_does_not_start_with_keys_that_it_cannot_use(self):
        self.write("short")
        ended = run("--signing-keys", self.keys, "--listen", "127.0.0.1:0")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("signing_keys: %s:1: a key must be" % self.keys, ended.stderr)

    def test_a_key_is_never_in_the_log(self):
        with self.start("--log-level", "debug", "--access-log") as server:
            self.status(server, self.share(server))
            self.write(NEW + NEW[:3] + "\x7f")
            server.reload("reload_failed")
        self.assertFalse(any(OLD in line or NEW in line for line in server.log))


if __name__ == "__main__":
    unittest.main()
