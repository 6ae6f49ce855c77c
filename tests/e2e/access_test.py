#!/usr/bin/python3
"""Access with tokens, from `claimd token new` to their revocation, on the real program.

    access_test.py CLAIMD
"""

import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import CLAIMD, Server, environment, post, request  # noqa: E402

TOKEN = re.compile(r"^claimd_[0-9a-f]{64}\n$")


class AccessCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="claimd-access-")
        self.path = os.path.join(self.folder, "tokens")
        self.addCleanup(subprocess.run, ["rm", "-rf", self.folder], check=True)

    def token(self, *words, status=0):
        """Runs `claimd token`. Returns its output, or after a failure its error message."""
        run = subprocess.run([CLAIMD, "token", *words, "--tokens", self.path],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             check=False)
        self.assertEqual(run.returncode, status, run.stderr)
        return run.stdout if status == 0 else run.stderr

    def new(self, name, role, *words):
        printed = self.token("new", name, "--role", role, *words)
        self.assertRegex(printed, TOKEN)
        return printed.strip()

    def start(self, *options):
        return Server("--auth", "tokens", "--tokens", self.path, *options)

    def fetch(self, server, token, method="GET", target="/v2/queues", body=None, headers=()):
        headers = [*headers, "X-Auth-Token: " + token] if token is not None else headers
        with server.connect() as client:
            client.send(request(method, target, body, headers=headers, close=True))
            return client.response()


class Tokens(AccessCase):
    def test_a_token_is_printed_once_and_never_kept(self):
        token = self.new("worker-1", "worker", "--projects", "p,q", "--expires", "90d")
        with open(self.path, encoding="ascii") as file:
            text = file.read()
        self.assertNotIn(token, text)
        self.assertNotIn(token[7:], text)
        listed = self.token("list")
        self.assertRegex(listed, r"^worker-1 +worker +20\d\d-\d\d-\d\dT\S+Z +p,q\n$")
        self.assertNotIn("sha256", listed)
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)

    def test_the_service_may_read_a_list_that_root_makes_in_its_folder(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give files away")
        folder = os.path.dirname(self.path)
        for mode, expected in ((0o750, (0o640, 12345)), (0o755, (0o600, os.getegid()))):
            os.chown(folder, 0, 12345)
            os.chmod(folder, mode)
            self.token("new", "a", "--role", "worker")
            self.token("new", "b", "--role", "worker")
            found = os.stat(self.path)
            self.assertEqual((stat.S_IMODE(found.st_mode), found.st_gid), expected)
            self.assertEqual(found.st_uid, 0)
            os.unlink(self.path)

    def test_the_list_keeps_its_mode_its_comments_and_its_order(self):
        self.new("a", "reader")
        with open(self.path, "a", encoding="ascii") as file:
            file.write("\n# the second\n")
        os.chmod(self.path, 0o640)
        self.new("b", "admin")
        self.new("c", "admin")
        self.token("revoke", "b")
        with open(self.path, encoding="ascii") as file:
            lines = file.read().split("\n")
        self.assertEqual([line[:12] for line in lines],
                         ["a reader * n", "", "# the second", "c admin * ne", ""])
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o640)
        self.assertEqual(os.listdir(self.folder), ["tokens"])

    def test_invalid_lines_are_refused_and_change_nothing(self):
        self.new("a", "reader")
        with open(self.path, "rb") as file:
            before = file.read()
        for words, status, why in (
                (("new", "a", "--role", "admin"), 1, "already has a token a. Revoke it"),
                (("new", "b"), 2, "needs --role"),
                (("new",), 2, "needs a name"),
                (("new", "b", "--role", "boss"), 2, "operator, admin. See claimd token --help"),
                (("new", "b c", "--role", "admin"), 2,
                 'the name is "b c". It must not contain spaces'),
                (("new", "ä", "--role", "admin"), 2, "a name must be"),
                (("new", "b", "--role", "admin", "--projects", "p,,q"), 2, "projects must be"),
                (("new", "b", "--role", "admin", "--expires", "0d"), 2, "--expires is"),
                (("new", "b", "--role", "admin", "--expires", "soon"), 2, "--expires is"),
                (("new", "b", "--role", "admin", "--expires", "2020-01-01T00:00:00Z"), 2,
                 "or a time in the future such as"),
                (("revoke", "b"), 1, "has no token b"),
                (("revoke",), 2, "needs a name"),
                (("list", "a"), 2, "takes no name"),
                (("burn", "a"), 2, 'token has no action "burn"'),
                ((), 2, "needs new, list or revoke")):
            with self.subTest(words=words):
                self.assertIn(why, self.token(*words, status=status))
        with open(self.path, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_an_invalid_list_is_not_changed(self):
        self.new("a", "reader")
        with open(self.path, "a", encoding="ascii") as file:
            file.write("nonsense\n")
        self.assertIn(":2: a line must be", self.token("new", "b", "--role", "admin", status=1))
        self.assertIn(":2: a line must be", self.token("revoke", "a", status=1))
        self.token("list", status=1)

    def test_a_missing_list_is_reported(self):
        self.assertIn("No such file", self.token("list", status=1))
        self.assertIn("No such file", self.token("revoke", "a", status=1))
        self.assertFalse(os.path.exists(self.path))

    def test_a_symbolic_link_to_the_list_stays_a_link(self):
        self.new("a", "reader")
        real, folder = self.path, os.path.join(self.folder, "etc")
        os.mkdir(folder)
        self.path = os.path.join(folder, "tokens")
        os.symlink("../tokens", self.path)
        self.new("b", "worker")
        self.token("revoke", "a")
        self.assertEqual(os.readlink(self.path), "../tokens")
        self.assertEqual(os.listdir(folder), ["tokens"])
        with open(real, encoding="ascii") as file:
            self.assertEqual([line[:8] for line in file], ["b worker"])

    def test_only_a_regular_file_is_replaced(self):
        os.mkfifo(self.path, 0o600)
        self.assertIn("not supported", self.token("new", "a", "--role", "reader", status=1))
        self.assertIn("not supported", self.token("revoke", "a", status=1))
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path).st_mode))

    def test_a_token_that_could_not_be_printed_is_reported(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            run = subprocess.run([CLAIMD, "token", "new", "a", "--role", "reader",
                                  "--tokens", self.path], stdout=full,
                                 stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("could not be printed", run.stderr)
        self.token("revoke", "a")

    def test_concurrent_changes_of_the_list_lose_no_token(self):
        threads = [threading.Thread(target=self.new, args=("t%d" % i, "worker"))
                   for i in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(self.token("list").splitlines()), 20)


class Access(AccessCase):
    def test_requests_without_a_valid_token_are_refused(self):
        token = self.new("all", "admin")
        with self.start("--access-log") as server:
            for wrong in (None, "", "x", token[:-1], token + "0", token.upper(),
                          "claimd_" + 64 * "0", 8000 * "a"):
                with self.subTest(token=wrong):
                    response = self.fetch(server, wrong)
                    self.assertIn(response.status, (401, 431))
                    if response.status == 401:
                        self.assertEqual(response.headers["www-authenticate"], "Bearer")
            self.assertEqual(self.fetch(server, token).status, 200)
            response = self.fetch(server, None, headers=["Authorization: Bearer " + token])
            self.assertEqual(response.status, 200)
            server.signal()
            self.assertEqual(server.wait(), 0)
            log = "\n".join(server.log)
        self.assertNotIn(token, log)
        self.assertNotIn(token[7:20], log)

    def test_roles_and_projects(self):
        producer = self.new("producer", "producer", "--projects", "p")
        worker = self.new("worker", "worker", "--projects", "p")
        with self.start() as server:
            body = b'{"messages":[{"body":1}]}'
            self.assertEqual(self.fetch(server, producer, "POST", "/v2/queues/q/messages",
                                        body).status, 201)
            self.assertEqual(self.fetch(server, producer, "POST", "/v2/queues/q/claims",
                                        b"{}").status, 403)
            self.assertEqual(self.fetch(server, worker, "POST", "/v2/queues/q/claims",
                                        b"{}").status, 201)
            self.assertEqual(self.fetch(server, worker, "DELETE", "/v2/queues/q").status, 403)
            self.assertEqual(self.fetch(server, worker, target="/v2/r/queues").status, 403)

    def test_reloading_takes_effect_for_the_next_request(self):
        one = self.new("one", "admin")
        with self.start() as server, server.connect() as client:
            def status(token):
                client.send(request("GET", "/v2/queues", headers=["X-Auth-Token: " + token]))
                return client.response().status

            self.assertEqual(status(one), 200)
            two = self.new("two", "admin")
            self.token("revoke", "one")
            self.assertEqual((status(one), status(two)), (200, 401))
            server.signal(signal.SIGHUP)
            server.logged("reloaded tokens=1")
            self.assertEqual((status(one), status(two)), (401, 200))

    def test_reloading_an_invalid_list_changes_nothing(self):
        one = self.new("one", "admin")
        with self.start() as server:
            with open(self.path, "a", encoding="ascii") as file:
                file.write("nonsense\n")
            server.signal(signal.SIGHUP)
            server.logged("reload_failed error=\"tokens: %s:2: a line must be" % self.path)
            self.assertEqual(self.fetch(server, one).status, 200)
            os.unlink(self.path)
            server.signal(signal.SIGHUP)
            server.logged("No such file or directory: `claimd token new` makes one")
            self.assertEqual(self.fetch(server, one).status, 200)

    def test_a_world_readable_list_is_refused(self):
        self.new("one", "admin")
        os.chmod(self.path, 0o644)
        self.assert_refused(["--auth", "tokens", "--tokens", self.path], "chmod o-rwx")

    # A mount as Kubernetes makes it: a tmpfs with links to files of mode 0644.
    MOUNT = """mount -t tmpfs -o size=64k none "$1" && mkdir "$1/..v1" && ln -s ..v1 "$1/..data" &&
        : > "$1/..v1/tokens" && chmod 0644 "$1/..v1/tokens" && ln -s ..data/tokens "$1/tokens" &&
        mount -o "remount,$2" "$1" && exec "$3" --check-config --auth tokens --tokens "$1/tokens" """

    def mounted(self, rights):
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run(["unshare", "-rm", "sh", "-c", self.MOUNT, "sh", folder, rights,
                                   CLAIMD], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, check=False, timeout=60, env=environment())

    def test_a_secret_of_a_container_may_be_world_readable(self):
        """The mode in a read-only tmpfs cannot change, and only the container sees the mount."""
        if subprocess.run(["unshare", "-rm", "true"], check=False).returncode != 0:
            self.skipTest("the system has no user namespaces")
        run = self.mounted("ro")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        run = self.mounted("rw")
        self.assertEqual(run.returncode, 2)
        self.assertIn("may be read or written by other users (mode 0644). Run chmod o-rwx",
                      run.stderr)

    def assert_refused(self, options, why):
        run = subprocess.run([CLAIMD, "--listen", "127.0.0.1:0", *options],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             check=False, timeout=60)
        self.assertEqual(run.returncode, 2)
        self.assertIn(why, run.stderr)

    def test_invalid_files_refuse_the_start(self):
        policy = os.path.join(self.folder, "policy")
        tokens = ["--auth", "tokens", "--tokens", self.path]
        self.assert_refused(tokens, "No such file")
        self.new("one", "admin")
        self.assert_refused([*tokens, "--policy", policy], "No such file")
        for text, why in (('{"queues:burn": "@"}', "the action queues:burn does not exist"),
                          ('{"queues:get": "boss"}', "not boss"),
                          ("{", "line 1"), ("", "must be an object")):
            with open(policy, "w", encoding="ascii") as file:
                file.write(text)
            self.assert_refused([*tokens, "--policy", policy], why)

    def test_a_policy_changes_what_roles_may_do(self):
        reader = self.new("reader", "reader", "--projects", "p")
        policy = os.path.join(self.folder, "policy")
        with open(policy, "w", encoding="ascii") as file:
            file.write('{"queues:get_all": "!", "messages:create": "role:reader"}')
        with self.start("--policy", policy) as server:
            self.assertEqual(self.fetch(server, reader).status, 403)
            with server.connect() as client:
                client.send(post("q", headers=["X-Auth-Token: " + reader]))
                self.assertEqual(client.response().status, 201)
            with open(policy, "w", encoding="ascii") as file:
                file.write("{}")
            server.signal(signal.SIGHUP)
            server.logged("reloaded")
            self.assertEqual(self.fetch(server, reader).status, 200)

    def test_an_open_address_needs_auth_or_insecure_listen(self):
        run = subprocess.run([CLAIMD, "--listen", "0.0.0.0:0"], stderr=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True, check=False, timeout=60)
        self.assertEqual(run.returncode, 2)
        self.assertIn("insecure_listen", run.stderr)
        self.assertIn("auth", run.stderr)


if __name__ == "__main__":
    unittest.main()
