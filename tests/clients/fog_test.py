#!/usr/bin/python3
"""ruby-fog-rackspace as Debian ships it: its calls for Cloud Queues (fog/queues.rb).

    fog_test.py CLAIMD
"""

import os
import subprocess
import unittest

from client_case import HERE, ClientCase, environment, need

need("ruby-fog-rackspace")


class Fog(ClientCase):
    options = ("--identity-stub", "--profile", "rackspace", "--identity-region", "ORD")

    def test_queues_messages_and_claims(self):
        run = subprocess.run(["ruby", os.path.join(HERE, "fog", "queues.rb"), self.server.url],
                             env=environment(), capture_output=True, text=True, timeout=120,
                             check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertTrue(run.stdout.endswith("no queue any more: nil\n"), run.stdout)


if __name__ == "__main__":
    unittest.main()
