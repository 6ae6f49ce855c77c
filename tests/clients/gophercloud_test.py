#!/usr/bin/python3
"""gophercloud as Debian ships it: builds and runs gophercloud/main.go, without network.

    gophercloud_test.py CLAIMD
"""

import os
import subprocess
import tempfile
import unittest

from client_case import CLAIMD, HERE, ClientCase, environment, need

need("golang-github-gophercloud-gophercloud-dev")

# Beside the program under test: building what Go brings along takes a while, but once.
CACHE = os.path.join(os.path.dirname(os.path.realpath(CLAIMD)), "go-cache")


class Gophercloud(ClientCase):
    def test_queues_messages_and_claims(self):
        with tempfile.TemporaryDirectory() as scratch:
            program = os.path.join(scratch, "client")
            env = environment(GO111MODULE="off", GOPATH="/usr/share/gocode", GOFLAGS="",
                              GOCACHE=CACHE, CGO_ENABLED="0")
            built = subprocess.run(
                ["go", "build", "-o", program, os.path.join(HERE, "gophercloud", "main.go")],
                env=env, cwd=scratch, capture_output=True, text=True, check=False)
            self.assertEqual(built.returncode, 0, built.stderr)
            for version in ("v3", "v2.0"):
                with self.subTest(keystone=version):
                    url = "%s/%s/" % (self.identity, version)
                    run = subprocess.run([program, url, "p-" + version], env=env,
                                         capture_output=True, text=True, timeout=60,
                                         check=False)
                    self.assertEqual(run.stdout, "ok\n", run.stderr)


if __name__ == "__main__":
    unittest.main()
