#!/usr/bin/python3
"""Subscribers of a real server: web hooks in the clear and over TLS, and what they do not receive.

    notifications_test.py CLAIMD
"""

import base64
import hashlib
import hmac
import json
import os
import queue
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))

from certificates import Workshop  # noqa: E402
from harness import Server, eventually, request, run  # noqa: E402
from prometheus import samples  # noqa: E402
from receiver import Receiver  # noqa: E402

KEY = "0123456789abcdef" * 2
PATIENCE_S = 60
LOOPBACK = ("--notify-allow", "127.0.0.0/8")


class Hooks(Receiver):
    """A receiver; `status` is its response, and `got` what came: path, headers, body."""

    def __init__(self, pair=None):
        self.got, self.status = queue.Queue(), 200
        super().__init__(self.receive, pair)

    def receive(self, *hook):
        self.got.put(hook)
        return self.status, {}

    def next(self):
        return self.got.get(timeout=PATIENCE_S)


class Notifications(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="claimd-notify-"))

    def fetch(self, server, method, path, document=None):
        body = None if document is None else json.dumps(document).encode()
        with server.connect() as client:
            client.send(request(method, path, body))
            return client.response()

    def subscribe(self, server, url, **options):
        response = self.fetch(server, "POST", "/v2/queues/q/subscriptions",
                              {"subscriber": url, "options": options})
        self.assertEqual(response.status, 201, response.body)
        return "/v2/queues/q/subscriptions/" + json.loads(response.body)["subscription_id"]

    def post(self, server, *bodies):
        response = self.fetch(server, "POST", "/v2/queues/q/messages",
                              {"messages": [{"body": body} for body in bodies]})
        self.assertEqual(response.status, 201, response.body)

    def bodies(self, hooks, count):
        return [json.loads(hooks.next()[2])["body"] for _ in range(count)]

    def figure(self, server, name, **labels):
        text = self.fetch(server, "GET", "/metrics").body.decode()
        return samples(text, is_open=False)[(name, *sorted(labels.items()))]

    def test_outcomes_are_counted(self):
        with Hooks() as hooks, Server(*LOOPBACK) as server:
            self.subscribe(server, hooks.url + "/a")
            self.assertEqual(self.figure(server, "claimd_subscriptions"), 1)
            self.post(server, 1, 2, 3)
            eventually(lambda: self.figure(
                server, "claimd_notifications_delivered_total") == 3)
            hooks.status = 404
            self.post(server, 4, 5)
            eventually(lambda: self.figure(
                server, "claimd_notifications_given_up_total") == 2)
            self.assertEqual([self.figure(server, "claimd_notification_tries_total", result=result)
                              for result in ("delivered", "refused", "given_up", "failed")],
                             [3, 2, 0, 0])
            self.assertEqual(self.figure(server, "claimd_subscription_backlog_bytes"), 0)

    def test_a_dead_letter_queue_notifies_of_each_arrival(self):
        """At the end of the last claim, without another claim."""
        with Hooks() as hooks, Server("--ci", "--ci-short", *LOOPBACK) as server:
            self.assertEqual(self.fetch(server, "PUT", "/v2/queues/jobs", {
                "_max_claim_count": 1, "_dead_letter_queue": "q"}).status, 201)
            self.subscribe(server, hooks.url + "/a")
            self.assertEqual(self.fetch(server, "POST", "/v2/queues/jobs/messages", {
                "messages": [{"body": "poison"}]}).status, 201)
            self.assertEqual(self.fetch(server, "POST", "/v2/queues/jobs/claims",
                                        {"ttl": 1}).status, 201)
            self.assertEqual(self.bodies(hooks, 1), ["poison"])

    def test_loopback_gets_nothing_unless_it_is_allowed(self):
        with Hooks() as hooks, Server("--log-level", "debug") as server:
            self.subscribe(server, hooks.url.replace("//", "//user:SECRET@") + "/SECRET",
                           _retry_policy={"retries_with_no_delay": 0})
            self.post(server, 1)
            line = server.logged(" notification_failed ")
            self.assertIn("notify_allow", line)
            self.assertIn("to=%s " % hooks.url, line)
            self.assertTrue(hooks.got.empty())
            self.assertFalse(any("SECRET" in line for line in server.log))
            self.assertGreater(self.figure(server, "claimd_notifications_kept_out_total"), 0)

    def test_an_untrusted_certificate_is_refused(self):
        with Workshop() as workshop:
            pair = workshop.signed("hooks")
            with Hooks(pair) as hooks:
                with Server(*LOOPBACK, "--log-level", "debug") as server:
                    self.subscribe(server, hooks.url + "/a",
                                   _retry_policy={"retries_with_no_delay": 0})
                    self.post(server, 1)
                    server.logged(" notification_failed ")
                    self.assertTrue(hooks.got.empty())
                with Server(*LOOPBACK, "--notify-ca", pair.certificate) as server:
                    self.subscribe(server, hooks.url + "/a")
                    self.post(server, 1)
                    self.assertEqual(self.bodies(hooks, 1), [1])

    def test_a_receiver_knows_the_secret_of_its_project(self):
        """By the line of docs/api.md 20.6, without a project."""
        keys = os.path.join(self.folder, "keys")
        with open(keys, "w", encoding="ascii") as f:
            os.chmod(keys, 0o600)
            f.write(KEY + "\n")
        secret = subprocess.run("printf claimd-webhook:p | openssl dgst -sha256 -hmac " + KEY +
                                " -binary | base64", shell=True, check=True,
                                capture_output=True).stdout
        with Hooks() as hooks, Server(*LOOPBACK, "--webhook-keys", keys) as server:
            self.subscribe(server, hooks.url + "/a")
            self.post(server, 1)
            _, headers, body = hooks.next()
            text = "%s.%s." % (headers["webhook-id"], headers["webhook-timestamp"])
            digest = hmac.new(base64.b64decode(secret), text.encode() + body, hashlib.sha256)
            self.assertEqual(headers["webhook-signature"],
                             "v1," + base64.b64encode(digest.digest()).decode())

    def test_configurations_that_cannot_be_meant_are_refused(self):
        for options, why in ((("--notify-allow", "localhost"), "localhost"),
                             (("--public-url", "ftp://h"), "public_url"),
                             (("--external-confirmation-url", "h"), "external_confirmation_url"),
                             (("--require-confirmation",), "signing_keys"),
                             (("--smtp-server", "h:25"), "smtp_server"),
                             (("--smtp-server", "smtp://h"), "smtp_from"),
                             (("--smtp-user", "u"), "smtp_password_file")):
            ended = run(*options, "--check-config")
            self.assertEqual(ended.returncode, 2, options)
            self.assertIn(why, ended.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
