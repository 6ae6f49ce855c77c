#!/usr/bin/python3
"""claimd run: clients find the server with nothing but the environment that it sets.

    run_test.py CLAIMD
"""

import os
import subprocess
import tempfile
import unittest

from client_case import CLAIMD, HERE, environment

CACHE = os.path.join(os.path.dirname(os.path.realpath(CLAIMD)), "go-cache")

OPENSTACKSDK = """
import openstack
queues = openstack.connect().message
queues.create_queue(name="jobs")
queues.post_message("jobs", [{"body": {"job": 1}, "ttl": 300}])
print("ok")
"""

# It reads no variables itself, but calls its options as they are called.
ZAQARCLIENT = """
import os
from zaqarclient.queues import client
options = {name.lower(): value for name, value in os.environ.items() if name.startswith("OS_")}
zaqar = client.Client(version=2, conf={
    "client_uuid": options["os_message_client_id"],
    "auth_opts": {"backend": "keystone", "options": options}})
zaqar.queue("jobs").post([{"body": {"job": 1}, "ttl": 300}])
print("ok")
"""

ZAQARCLIENT_WITHOUT_LOGIN = """
import os
from zaqarclient.queues import client
zaqar = client.Client(os.environ["CLAIMD_URL"], version=2, conf={"auth_opts": {
    "backend": "noauth", "options": {"os_project_id": os.environ["OS_PROJECT_NAME"]}}})
zaqar.queue("jobs").post([{"body": {"job": 1}, "ttl": 300}])
print("ok")
"""

OPENSTACK = """
openstack messaging queue create jobs >&2 &&
openstack messaging message post jobs '[{"body": {"job": 1}, "ttl": 300}]' >&2 && echo ok
"""


class Environment(unittest.TestCase):
    def assert_posts(self, *command):
        """It posts one message, which stays there, to the queue jobs of the project claimd."""
        done = subprocess.run((CLAIMD, "run", "--fail-on-leak", "--", *command), check=False,
                              capture_output=True, text=True, timeout=120,
                              env=environment(OS_CLOUD="another", OS_TOKEN="of another"))
        self.assertEqual((done.returncode, done.stdout), (1, "ok\n"), done.stderr)
        self.assertIn("in queue jobs (project claimd), never read", done.stderr)
        self.assertIn("1 leak:", done.stderr)

    def test_openstacksdk(self):
        self.assert_posts("/usr/bin/python3", "-c", OPENSTACKSDK)

    def test_python_zaqarclient(self):
        self.assert_posts("/usr/bin/python3", "-c", ZAQARCLIENT)
        self.assert_posts("/usr/bin/python3", "-c", ZAQARCLIENT_WITHOUT_LOGIN)

    def test_openstack_messaging(self):
        self.assert_posts("sh", "-c", OPENSTACK)

    def test_gophercloud(self):
        with tempfile.TemporaryDirectory() as scratch:
            program = os.path.join(scratch, "client")
            env = environment(GO111MODULE="off", GOPATH="/usr/share/gocode", GOFLAGS="",
                              GOCACHE=CACHE, CGO_ENABLED="0")
            built = subprocess.run(("go", "build", "-o", program,
                                    os.path.join(HERE, "gophercloud_env", "main.go")),
                                   env=env, cwd=scratch, capture_output=True, text=True,
                                   check=False)
            self.assertEqual(built.returncode, 0, built.stderr)
            self.assert_posts(program)


if __name__ == "__main__":
    unittest.main()
