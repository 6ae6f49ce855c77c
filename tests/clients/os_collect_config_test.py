#!/usr/bin/python3
"""os-collect-config as Debian ships it: takes its metadata from a queue.

    os_collect_config_test.py CLAIMD
"""

import json
import os
import subprocess
import tempfile
import unittest
import urllib.request

from client_case import CLIENT_ID, ClientCase, environment, need

need("python3-os-collect-config")

PROJECT = "demo"


class OsCollectConfig(ClientCase):
    def setUp(self):
        super().setUp()
        self.scratch = self.enterContext(tempfile.TemporaryDirectory())

    def fetch(self, method, path, document=None):
        request = urllib.request.Request(
            self.server.url + path, None if document is None else json.dumps(document).encode(),
            {"Client-ID": CLIENT_ID, "X-Project-ID": PROJECT,
             "Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.loads(response.read() or "null")

    def collect(self):
        """One run of the program; what it printed."""
        place = os.path.join(self.scratch, "os-collect-config.conf")
        with open(place, "w", encoding="utf-8") as f:
            f.write("[DEFAULT]\ncollectors=zaqar\n"
                    "cachedir=%s\nbackup_cachedir=%s\n"
                    "[zaqar]\nauth_url=%s/v3\nuser_id=ann\npassword=x\nproject_id=%s\n"
                    "queue_id=config\nregion_name=RegionOne\n"
                    "[keystone]\ncache_dir=%s\n"
                    % (self.scratch, os.path.join(self.scratch, "backup"), self.identity,
                       PROJECT, os.path.join(self.scratch, "keystone")))
        run = subprocess.run(["os-collect-config", "--config-file", place, "--print",
                              "--one-time"], env=environment(), cwd=self.scratch,
                             capture_output=True, text=True, timeout=120, check=False)
        return run

    def test_metadata_is_taken_from_a_queue(self):
        self.fetch("POST", "/v2/queues/config/messages",
                   {"messages": [{"body": {"servers": ["a", "b"]}, "ttl": 300}]})
        run = self.collect()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(json.loads(run.stdout)["zaqar"], {"servers": ["a", "b"]}, run.stderr)
        stats = self.fetch("GET", "/v2/queues/config/stats")["messages"]
        self.assertEqual(stats["total"], 0)  # it pops

    def test_an_empty_queue_is_no_metadata(self):
        run = self.collect()
        self.assertNotIn("servers", run.stdout)
        self.assertIn("zaqar", run.stderr)


if __name__ == "__main__":
    unittest.main()
