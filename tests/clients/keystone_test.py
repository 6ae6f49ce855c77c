#!/usr/bin/python3
"""Clients that log in at a Keystone, and a claimd that verifies their tokens there.

    keystone_test.py CLAIMD

openstacksdk and zaqarclient as Debian ships them; the Keystone is a stand-in.
"""

import os
import tempfile
import unittest

from client_case import CLAIMD, environment, need
from daemon import Daemon
from keystone import Keystone

need("python3-openstacksdk")
need("python3-zaqarclient")
import openstack  # noqa: E402
from openstack import exceptions  # noqa: E402
from zaqarclient.queues import client as zaqar  # noqa: E402

REGION = "RegionOne"


class KeystoneClients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kept = environment()
        os.environ.clear()
        os.environ.update(kept)

    def setUp(self):
        self.keystone = Keystone()
        self.addCleanup(self.keystone.stop)
        service = tempfile.NamedTemporaryFile("w", prefix="claimd-keystone-")
        self.addCleanup(service.close)
        service.write(self.keystone.service + "\n")
        service.flush()
        server = Daemon(CLAIMD, "--auth", "keystone", "--keystone-url", self.keystone.url,
                        "--keystone-token-file", service.name)
        self.server = server.__enter__()
        self.addCleanup(server.__exit__, None, None, None)
        self.keystone.catalog = [{
            "type": "messaging", "name": "zaqar", "id": "m", "endpoints": [
                {"id": "e", "interface": "public", "region": REGION, "region_id": REGION,
                 "url": self.server.url}]}]

    def test_openstacksdk_works_in_the_project_of_its_token(self):
        with openstack.connect(
                auth_url=self.keystone.url, username="ann", password="x",
                project_id="demo", user_domain_id="default", region_name=REGION,
                load_envvars=False, load_yaml_config=False) as cloud:
            queues = cloud.message
            queues.create_queue(name="jobs")
            queues.post_message("jobs", [{"body": {"job": n}, "ttl": 300} for n in range(3)])
            self.assertEqual([m.body["job"] for m in queues.messages("jobs")], [0, 1, 2])
            with self.assertRaises(exceptions.HttpException) as caught:
                queues.delete_queue("jobs", ignore_missing=False)
            self.assertEqual(caught.exception.status_code, 403)  # a member may not
        self.assertEqual(self.keystone.questions(), 1)

    def test_zaqarclient_logs_in_and_claims(self):
        options = {"os_username": "ann", "os_password": "x", "os_project_id": "demo",
                   "os_auth_url": self.keystone.url, "os_user_domain_id": "default"}
        client = zaqar.Client(self.server.url, version=2, conf={
            "auth_opts": {"backend": "keystone", "options": options}})
        queue = client.queue("jobs")
        queue.post([{"body": {"job": n}, "ttl": 300} for n in range(2)])
        claim = queue.claim(ttl=60, grace=60)
        self.assertEqual([message.body["job"] for message in claim], [0, 1])
        self.assertGreater(self.keystone.questions(), 0)  # it logs in again and again


if __name__ == "__main__":
    unittest.main()
