#!/usr/bin/python3
"""Runs the examples of docs/clients.md as they are printed.

    guide_test.py CLAIMD
"""

import os
import subprocess
import sys
import tempfile
import unittest

from client_case import CLAIMD, HERE, ClientCase, environment, needs
from daemon import Daemon
import examples

# Where gophercloud_test.py keeps what is built of Go's own library.
GO_CACHE = os.path.join(os.path.dirname(os.path.realpath(CLAIMD)), "go-cache")


def section(title):
    """The text of docs/clients.md below a heading."""
    path = os.path.join(HERE, "..", "..", "docs", "clients.md")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    head, found, rest = text.partition("\n## %s\n" % title)
    assert found, "there is no section %s" % title
    return rest.partition("\n## ")[0]


class Guide(ClientCase):
    def setUp(self):
        super().setUp()
        self.scratch = self.enterContext(tempfile.TemporaryDirectory())

    def run_python(self, code, server=None):
        code = examples.at(server or self.server, code)
        run = subprocess.run([sys.executable, "-W", "ignore", "-c", code],
                             env=environment(), cwd=self.scratch, capture_output=True,
                             text=True, timeout=120, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def test_the_claims_guide(self):
        lines = "".join(examples.blocks(section("The claims guide, with curl"), "bash"))
        run = examples.run_bash(self.server, lines, cwd=self.scratch, env=environment())
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(examples.seen_statuses(run), examples.expected_statuses(lines), run.stdout)
        self.assertIn('"free":2', run.stdout.replace(" ", ""))

    @needs("python3-openstackclient", "python3-zaqarclient")
    def test_the_walk_with_openstack_messaging(self):
        lines, = examples.blocks(section("`openstack messaging`"), "bash")
        run = examples.run_bash(self.server, lines, cwd=self.scratch, env=environment())
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("{'job': 3}", run.stdout)
        self.assertIn("'claimed': 2, 'free': 1, 'total': 3", run.stdout)
        self.assertIn('"TTL": 3600,', run.stdout)
        self.assertIn('"Subscriber": "https://example.org/hook"', run.stdout)
        self.assertIn("'post_headers': {'X-Shop': 'north'}", run.stdout)
        self.assertIn('"owner": "me"', run.stdout.replace("'", '"'))

    @needs("python3-zaqarclient")
    def test_the_snippets_of_zaqarclient_each_with_the_server_it_is_for(self):
        without_login, with_login = examples.blocks(section("python-zaqarclient"), "python")
        with Daemon(CLAIMD) as plain:
            self.assertEqual(self.run_python(without_login, plain), "{'job': 0}\n{'job': 1}\n")
        self.assertEqual(self.run_python(with_login), "1 ['jobs']\n")

    @needs("python3-zaqarclient")
    def test_finish_beside_an_sdk(self):
        finish, = examples.blocks(section("Failing jobs"), "python")
        sdk = examples.blocks(section("python-zaqarclient"), "python")[0]
        last = """
claim = queue.claim(ttl=60, grace=60, limit=1)
message, = claim
print(finish("jobs", claim.id, release=[{"id": message.id, "delay": 30, "reason": "busy"}]))
"""
        with Daemon(CLAIMD) as plain:
            said = self.run_python(finish + sdk + last, plain)
        self.assertIn("'result': 'released'", said)

    @needs("python3-openstacksdk")
    def test_the_snippet_of_openstacksdk(self):
        code, = examples.blocks(section("openstacksdk"), "python")
        self.run_python(code)

    @needs("golang-github-gophercloud-gophercloud-dev")
    def test_the_program_with_gophercloud(self):
        code, = examples.blocks(section("gophercloud"), "go")
        with open(os.path.join(self.scratch, "main.go"), "w", encoding="utf-8") as f:
            f.write(examples.at(self.server, code))
        env = environment(GO111MODULE="off", GOPATH="/usr/share/gocode", GOFLAGS="",
                          GOCACHE=GO_CACHE, CGO_ENABLED="0")
        run = subprocess.run(["go", "run", "main.go"], env=env, cwd=self.scratch,
                             capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual((run.returncode, run.stdout), (0, "1\n"), run.stderr)

    @needs("ruby-fog-rackspace")
    def test_the_snippet_of_fog(self):
        code, = examples.blocks(section("fog"), "ruby")
        with Daemon(CLAIMD, "--identity-stub", "--profile", "rackspace",
                    "--identity-region", "ORD") as server:
            run = subprocess.run(["ruby", "-e", "require 'fog/rackspace'\n" +
                                  examples.at(server, code)], env=environment(), cwd=self.scratch,
                                 capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_no_other_example_claims_to_have_been_run(self):
        for title in ("php-opencloud", "pyrax", "jclouds"):
            self.assertIn("Not run here", section(title))


if __name__ == "__main__":
    unittest.main()
