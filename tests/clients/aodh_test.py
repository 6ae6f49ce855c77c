#!/usr/bin/python3
"""The notifier of aodh as Debian ships it: puts alarms into queues.

    aodh_test.py CLAIMD
"""

import json
import tempfile
import unittest
import urllib.request
from urllib import parse

from client_case import CLIENT_ID, ClientCase, need

need("python3-aodh")
from aodh import service  # noqa: E402
from aodh.notifier.zaqar import ZaqarAlarmNotifier  # noqa: E402

ALARM = "8ec0a5ba-65ad-43e6-8af8-ac4e0e8c6b1e"
HOOK = "http://127.0.0.1:9/hook"


class Aodh(ClientCase):
    def setUp(self):
        keys = tempfile.NamedTemporaryFile("w", encoding="ascii", prefix="claimd-keys-")
        self.addCleanup(keys.close)
        keys.write("0123456789abcdef" * 2)
        keys.flush()
        self.options = ("--identity-stub", "--signing-keys", keys.name)
        super().setUp()
        with tempfile.NamedTemporaryFile("w", encoding="ascii", suffix=".conf") as conf:
            conf.write("[service_credentials]\nauth_type=password\nauth_url=%s/v3\n"
                       "username=aodh\npassword=x\nproject_name=service\n"
                       "user_domain_id=default\nproject_domain_id=default\n"
                       "region_name=RegionOne\ninterface=public\n" % self.identity)
            conf.flush()
            self.conf = service.prepare_service([], config_files=[conf.name])

    def fetch(self, method, path, project, document=None):
        request = urllib.request.Request(
            self.server.url + path, document and json.dumps(document).encode(),
            {"Client-ID": CLIENT_ID, "X-Project-ID": project,
             "Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.loads(response.read() or "null")

    def notify(self, **query):
        ZaqarAlarmNotifier(self.conf).notify(
            parse.urlsplit("zaqar://?" + parse.urlencode(query)), ALARM, "cpu", "low",
            "ok", "alarm", "too hot", {"value": 9})

    def the_alarm_in(self, queue, project):
        message, = self.fetch("GET", queue + "/messages", project)["messages"]
        self.assertEqual((message["body"]["alarm_id"], message["body"]["reason"]),
                         (ALARM, "too hot"))

    def test_an_alarm_gets_a_queue_and_a_subscriber(self):
        self.notify(topic="alarms", subscriber=HOOK, ttl=600)
        queue = "/v2/queues/%s-alarms" % ALARM
        self.the_alarm_in(queue, "service")
        hook, = self.fetch("GET", queue + "/subscriptions", "service")["subscriptions"]
        self.assertEqual((hook["subscriber"], hook["ttl"]), (HOOK, 600))

    def test_an_alarm_goes_into_a_queue_by_a_pre_signed_url(self):
        queue = "/v2/queues/jobs"
        grant = self.fetch("POST", queue + "/share", "demo",
                           {"paths": ["messages"], "methods": ["POST"]})
        self.notify(queue_name="jobs", project_id="demo", expires=grant["expires"],
                    paths=",".join(grant["paths"]), methods=",".join(grant["methods"]),
                    signature=grant["signature"])
        self.the_alarm_in(queue, "demo")


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # the libraries leave connections to the collector
