"""The promises about a file of keys, whichever option names it (encryption_test.py, share_test.py)."""

import os
import tempfile

from harness import Server, run


class KeyFile:
    """Tests for a TestCase. It has OPTION, the keys OLD and NEW, and SHORT, the error of a short key."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="claimd-keys-"))
        self.keys = os.path.join(self.folder, "keys")
        self.write(self.OLD)

    def write(self, *keys):
        with open(self.keys, "w", encoding="ascii") as f:
            os.chmod(self.keys, 0o600)
            f.writelines(key + "\n" for key in keys)

    def start(self, *options, keys=None):
        return Server(self.OPTION, keys or self.keys, *options)

    def refuses_broken_keys(self, server, *more):
        """None of these files replaces the keys of a running server. `more`: keys, and the error."""
        for broken, why in ((["short"], "keys:1: " + self.SHORT), ([], "keys: the file has no key"), *more):
            self.write(*broken)
            self.assertIn(why, server.reload("reload_failed"))
        self.write(self.NEW)
        os.chmod(self.keys, 0o644)
        self.assertIn("may be read or written by other users", server.reload("reload_failed"))
        os.unlink(self.keys)
        self.assertIn("No such file", server.reload("reload_failed"))

    def test_it_does_not_start_with_keys_that_it_cannot_use(self):
        self.write(self.OLD, "short")
        ended = run(self.OPTION, self.keys, "--listen", "127.0.0.1:0")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("%s: %s:2: %s" % (self.OPTION[2:].replace("-", "_"), self.keys, self.SHORT), ended.stderr)

    def test_a_key_is_never_in_the_log(self):
        with self.start("--log-level", "debug", "--access-log") as server:
            self.use(server)
            self.write(self.NEW + self.NEW[:3] + "\x7f")
            server.reload("reload_failed")
        self.assertFalse(any(self.OLD in line or self.NEW in line for line in server.log))
