"""What the tests of client programs share: a claimd with the identity stub, of their own.

The program is the first argument of the test script. Nothing here knows the API: what is
said to the server is up to the client library under test.
"""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

from daemon import Daemon  # noqa: E402

CLAIMD = sys.argv.pop(1)
CLIENT_ID = "3381af92-2b9e-11e3-b191-71861300734c"


def environment(**more):
    """Ours, without what would tell a client of another cloud or of a proxy."""
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith("OS_") and not k.lower().endswith("_proxy")}
    clean.update(more)
    return clean


class ClientCase(unittest.TestCase):
    """Each test has a fresh server, with `options`."""

    options = ("--identity-stub",)

    @classmethod
    def setUpClass(cls):
        kept = environment()
        os.environ.clear()
        os.environ.update(kept)

    def setUp(self):
        server = Daemon(CLAIMD, *self.options)
        self.server = server.__enter__()
        self.addCleanup(server.__exit__, None, None, None)
        self.identity = self.server.url + "/identity"
