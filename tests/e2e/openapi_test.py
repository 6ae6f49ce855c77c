#!/usr/bin/python3
"""docs/openapi.yaml describes this server.

    openapi_test.py CLAIMD

Paths and methods are compared both ways: every path of the file is asked what it allows, and
every path of the home document must be in the file. What is not built yet is named here.
"""

import json
import os
import re
import sys
import unittest

import yaml

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

from daemon import Daemon  # noqa: E402

CLAIMD = sys.argv.pop(1)
HEADERS = {"Client-ID": "3381af92-2b9e-11e3-b191-71861300734c", "X-Project-ID": "p"}
METHODS = {"get", "put", "post", "patch", "delete", "head"}
LATER = ("/share", "/subscriptions")  # in the home document, not built yet


def plain(path):
    """A template with every variable called {}."""
    return re.sub(r"\{[^?].*?\}", "{}", re.sub(r"\{\?.*\}", "", path))


class OpenApi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(HERE, "..", "..", "docs", "openapi.yaml"), encoding="utf-8") as f:
            cls.paths = yaml.safe_load(f)["paths"]
        cls.server = Daemon(CLAIMD, "--admin-mode=true", "--log-level=warn")
        cls.connection = cls.server.connect()

    @classmethod
    def tearDownClass(cls):
        cls.connection.close()
        cls.server.__exit__(None, None, None)

    def ask(self, method, path):
        self.connection.request(method, path, headers=HEADERS)
        answer = self.connection.getresponse()
        return answer, answer.read()

    def test_each_path_has_the_methods_the_server_allows(self):
        for path, item in self.paths.items():
            with self.subTest(path=path):
                answer, _ = self.ask("OPTIONS", path.format(queue="q", id="x"))
                self.assertEqual(answer.status, 200)
                allowed = {word.strip().lower() for word in answer.headers["Allow"].split(",")}
                self.assertEqual(METHODS & set(item), allowed - {"options"})

    def test_each_resource_of_the_home_document_is_described(self):
        answer, text = self.ask("GET", "/v2/")
        self.assertEqual(answer.status, 200)
        described = {plain(path) for path in self.paths}
        for relation in json.loads(text)["resources"].values():
            path = plain(relation["href-template"])
            if not any(part in path for part in LATER):
                self.assertIn(path, described)


if __name__ == "__main__":
    unittest.main()
