#!/usr/bin/python3
"""rally-openstack as Debian ships it: its load on Zaqar, through API v1.1.

    rally_test.py CLAIMD
"""

import re
import unittest
import urllib.request

from client_case import ClientCase, need

need("python3-rally-openstack")
from rally import plugins  # noqa: E402

plugins.load()  # it registers the options that the modules below read
from rally_openstack.common.credential import OpenStackCredential  # noqa: E402
from rally_openstack.task.scenarios.zaqar import basic  # noqa: E402

TASK = "3381af92-2b9e-11e3-b191-71861300734c"


class Rally(ClientCase):
    def setUp(self):
        super().setUp()
        self.user = {"credential": OpenStackCredential(
            auth_url=self.identity, username="ann", password="x", project_name="demo",
            region_name="RegionOne", user_domain_name="Default", project_domain_name="Default")}

    def perform(self, scenario, **arguments):
        """Runs a scenario as a user of the project; the actions that it timed."""
        run = scenario({"task": {"uuid": TASK}, "owner_id": TASK, "user": self.user})
        run.run(**arguments)
        return [action["name"] for action in run.atomic_actions()]

    def count(self, metric):
        with urllib.request.urlopen(self.server.url + "/metrics", timeout=30) as response:
            value, = re.findall(r"^%s (\d+)$" % metric, response.read().decode(), re.MULTILINE)
        return int(value)

    def queues(self):
        return list(self.user["credential"].clients().zaqar().queues())

    def test_queues_are_made(self):
        for _ in range(3):
            # Without force_create, the library sends nothing.
            self.assertEqual(self.perform(basic.CreateQueue, force_create=True),
                             ["zaqar.create_queue"])
        self.assertEqual(len(self.queues()), 3)

    def test_messages_are_posted_and_listed(self):
        actions = self.perform(basic.ProducerConsumer, min_msg_count=60, max_msg_count=60)
        self.assertEqual(actions, [
            "zaqar.create_queue", "zaqar.post_between_60_and_60_messages",
            "zaqar.list_messages", "zaqar.delete_queue"])
        self.assertEqual(self.count("claimd_messages_posted_total"), 60)
        self.assertEqual(self.queues(), [])


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # the libraries leave connections to the collector
