#!/usr/bin/python3
"""Pre-signed URLs: keys in a file, and those who hold what they have signed.

    share_test.py CLAIMD
"""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import request  # noqa: E402
from key_file import KeyFile  # noqa: E402

SHARE = b'{"paths":["messages"],"methods":["GET","POST"],"expires":"2099-01-01"}'


class Sharing(KeyFile, unittest.TestCase):
    OPTION, SHORT = "--signing-keys", "a key must be 32 to 256 characters"
    OLD, NEW = "0123456789abcdef" * 2, "fedcba9876543210" * 2

    def use(self, server):
        self.status(server, self.share(server))

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
            self.write(self.NEW, self.OLD)
            server.reload()
            new = self.share(server)
            self.assertNotEqual(new, old)
            self.assertEqual((self.status(server, old), self.status(server, new)), (200, 200))
            self.write(self.NEW)
            server.reload()
            self.assertEqual((self.status(server, old), self.status(server, new)), (404, 200))

    def test_broken_keys_leave_those_that_are_there(self):
        with self.start() as server:
            held = self.share(server)
            self.refuses_broken_keys(server)
            self.assertEqual(self.status(server, held), 200)


if __name__ == "__main__":
    unittest.main()
