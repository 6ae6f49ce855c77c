#!/usr/bin/python3
"""docs/openapi.yaml describes this server.

    openapi_test.py CLAIMD

Paths and methods are compared both ways: every path of the file is asked what it allows, and
every path of the home document must be in the file. What is not built yet is named here.
Then every operation is used, well and badly, and each answer is held against the statuses,
headers and schemas of the file; what the file describes must have been seen.
"""

import json
import os
import re
import socket
import sys
import tempfile
import unittest

import yaml

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

from daemon import PATIENCE_S, Daemon  # noqa: E402
import openapi  # noqa: E402

CLAIMD = sys.argv.pop(1)
CLIENT = "3381af92-2b9e-11e3-b191-71861300734c"
HEADERS = {"Client-ID": CLIENT, "X-Project-ID": "p"}
METHODS = {"get", "put", "post", "patch", "delete", "head"}
LATER = ("/share", "/subscriptions")  # in the home document, not built yet

QUEUES, QUEUE = "/v2/queues", "/v2/queues/{queue}"
MESSAGES, MESSAGE = QUEUE + "/messages", QUEUE + "/messages/{id}"
CLAIMS, CLAIM = QUEUE + "/claims", QUEUE + "/claims/{id}"
SEVERAL = "/claimd/claims"
PATCH_TYPE = {"Content-Type": "application/openstack-messaging-v2.0-json-patch"}
FORM_TYPE = {"Content-Type": "application/x-www-form-urlencoded"}

# What every operation has in common: the front end's refusals (seen once for all, below), and
# the 503 of too many connections.
FRONT = {"408", "413", "414", "431", "503"}


def document():
    path = os.path.join(HERE, "..", "..", "docs", "openapi.yaml")
    with open(path, encoding="utf-8") as f:
        return openapi.Document(yaml.safe_load(f))


def plain(path):
    """A template with every variable called {}."""
    return re.sub(r"\{[^?].*?\}", "{}", re.sub(r"\{\?.*\}", "", path))


class Case(unittest.TestCase):
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.described = document()
        cls.server = Daemon(CLAIMD, "--admin-mode=true", "--log-level=error", *cls.options)
        cls.connection = cls.server.connect()

    @classmethod
    def tearDownClass(cls):
        cls.connection.close()
        cls.server.__exit__(None, None, None)

    def ask(self, method, path, body=None, headers=None):
        self.connection.request(method, path, body, HEADERS if headers is None else headers)
        answer = self.connection.getresponse()
        return answer, answer.read()

    def expect(self, status, method, path, body=None, query="", headers=None, **values):
        """
        Asks, and holds the answer against the file; what the answer says. A header that is
        None is not sent.
        """
        sent = {**HEADERS, **(headers or {})}
        sent = {name: value for name, value in sent.items() if value is not None}
        if not isinstance(body, (bytes, str, type(None))):
            body = json.dumps(body)
        values = {"queue": "q", "id": "x", **values}
        answer, text = self.ask(method, path.format(**values) + query, body, sent)
        said = json.loads(text) if text else None
        with self.subTest(operation=(method, path), query=query, body=body, headers=headers):
            self.assertEqual(answer.status, status, text)
            self.assertEqual(self.described.wrong_answer(method.lower(), path, answer.status,
                                                         answer.headers, said), [])
        self.seen(method, path, status)
        return said

    def seen(self, method, path, status):
        pass


class Paths(Case):
    def test_each_path_has_the_methods_the_server_allows(self):
        for path, item in self.described.tree["paths"].items():
            with self.subTest(path=path):
                answer, _ = self.ask("OPTIONS", path.format(queue="q", id="x"))
                self.assertEqual(answer.status, 200)
                allowed = {word.strip().lower() for word in answer.headers["Allow"].split(",")}
                self.assertEqual(METHODS & set(item), allowed - {"options"})
                answer, text = self.ask("POST" if "post" not in item else "PUT",
                                        path.format(queue="q", id="x"))
                self.assertEqual(answer.status, 405)
                schema = self.described.tree["components"]["schemas"]["Error"]
                self.assertEqual(self.described.wrong(schema, json.loads(text)), [])

    def test_each_resource_of_the_home_document_is_described(self):
        answer, text = self.ask("GET", "/v2/")
        self.assertEqual(answer.status, 200)
        described = {plain(path) for path in self.described.tree["paths"]}
        for relation in json.loads(text)["resources"].values():
            path = plain(relation["href-template"])
            if not any(part in path for part in LATER):
                self.assertIn(path, described)

    def test_every_operation_has_a_name_of_its_own_a_tag_and_the_token(self):
        operations = self.described.operations()
        names = [operation["operationId"] for operation in operations.values()]
        self.assertEqual(len(set(names)), len(operations))
        tags = {tag["name"] for tag in self.described.tree["tags"]}
        for operation in operations.values():
            self.assertTrue(operation["summary"] and set(operation["tags"]) <= tags)
        self.assertEqual(self.described.tree["security"], [{}, {"token": []}])
        self.assertEqual(self.described.tree["components"]["securitySchemes"]["token"]["name"],
                         "X-Auth-Token")

    def test_the_checker_finds_what_is_wrong(self):
        good = {"title": "t", "description": "d"}
        check = self.described.wrong_answer
        headers = {"Content-Type": "application/json", "Retry-After": "1"}
        self.assertEqual(check("get", "/v2/ping", 503, headers, good), [])
        for status, kept, said in ((502, headers, good), (503, {}, good), (503, headers, None),
                                   (503, headers, {"description": "d"}), (204, headers, good),
                                   (503, headers, {"title": 1}), (503, headers, []),
                                   (503, headers, {"title": "t", "more": 1})):
            self.assertNotEqual(check("get", "/v2/ping", status, kept, said), [], (status, said))


class Answers(Case):
    """Every operation, in the order of a life, and everything that is refused by it."""

    options = ("--identity-stub",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.have = set()

    def seen(self, method, path, status):
        self.have.add((method.lower(), path, str(status)))

    def test_answers_to_good_and_bad_requests_are_as_described(self):
        self.service()
        self.queues()
        self.messages()
        self.claims()
        self.common()
        described = {(method, path, status)
                     for (method, path), operation in self.described.operations().items()
                     for status in operation["responses"] if status not in FRONT}
        self.assertEqual(described - self.have, set(), "described, but not shown here")

    def service(self):
        self.expect(300, "GET", "/")
        self.expect(200, "GET", "/v2/")
        self.expect(204, "GET", "/v2/ping")
        self.expect(204, "HEAD", "/v2/ping")
        self.expect(200, "GET", "/v2/health")

    def queues(self):
        self.expect(201, "PUT", QUEUE, {"color": "red"})
        self.expect(204, "PUT", QUEUE)
        self.expect(200, "GET", QUEUE)
        self.expect(200, "GET", QUEUE, queue="unknown")
        for body in ("{", "[]", '{"a": NaN}', {"_default_message_ttl": 1}, b"\xff"):
            self.expect(400, "PUT", QUEUE, body)
        self.expect(200, "PATCH", QUEUE, [{"op": "add", "path": "/metadata/size", "value": 1}],
                    headers=PATCH_TYPE)
        self.expect(400, "PATCH", QUEUE, [{"op": "move"}], headers=PATCH_TYPE)
        self.expect(404, "PATCH", QUEUE, [], headers=PATCH_TYPE, queue="unknown")
        self.expect(409, "PATCH", QUEUE, [{"op": "remove", "path": "/metadata/none"}],
                    headers=PATCH_TYPE)
        self.expect(415, "PATCH", QUEUE, [], headers={"Content-Type": "application/json"})
        for query in ("", "?limit=1&detailed=true&with_count=true", "?name=q", "?color=red",
                      "?marker=a"):
            self.expect(200, "GET", QUEUES, query=query)
        for query in ("?limit=0", "?limit=21", "?limit=x", "?detailed=maybe", "?with_count=2"):
            self.expect(400, "GET", QUEUES, query=query)

    def post(self, *bodies):
        """Their ids."""
        posted = self.expect(201, "POST", MESSAGES,
                             {"messages": [{"body": body, "ttl": 300} for body in bodies]})
        return [href.rsplit("/", 1)[1] for href in posted["resources"]]

    def messages(self):
        ids = self.post({"job": 1}, "two", None, [4], 5)
        for body in (None, "{", {}, {"messages": []}, [1], {"messages": [{"ttl": 60}]},
                     {"messages": [{"body": 1, "ttl": 1}]}, {"messages": [{"body": 1, "delay": -1}]},
                     '{"messages": [{"body": "%s"}]}' % ("x" * 300000)):
            self.expect(400, "POST", MESSAGES, body)
        for query in ("", "?echo=true", "?echo=true&limit=1&include_claimed=true"
                      "&include_delayed=true", "?ids=" + ",".join(ids)):
            self.expect(200, "GET", MESSAGES, query=query)
        for query in ("?limit=0", "?limit=x", "?echo=2", "?ids=" + ",".join(["x"] * 21)):
            self.expect(400, "GET", MESSAGES, query=query)
        self.expect(404, "GET", MESSAGES, query="?ids=x")
        self.expect(200, "GET", MESSAGE, id=ids[0])
        self.expect(404, "GET", MESSAGE)
        self.expect(200, "GET", QUEUE + "/stats")
        self.expect(200, "GET", QUEUE + "/stats", queue="unknown")
        self.expect(204, "DELETE", MESSAGE, id=ids[0])
        self.expect(400, "DELETE", MESSAGE, id=ids[1], query="?claim_id=x")
        self.expect(204, "DELETE", MESSAGES, query="?ids=" + ids[1])
        self.expect(200, "DELETE", MESSAGES, query="?pop=2")
        for query in ("", "?pop=0", "?pop=x", "?pop=1&ids=x"):
            self.expect(400, "DELETE", MESSAGES, query=query)
        self.expect(204, "POST", QUEUE + "/purge")
        self.expect(204, "POST", QUEUE + "/purge", {"resource_types": ["messages"]})
        for body in ("{", {}, {"resource_types": ["all"]}):
            self.expect(400, "POST", QUEUE + "/purge", body)

    def claims(self):
        self.expect(204, "POST", CLAIMS)
        ids = self.post(1, 2, 3)
        held = self.expect(201, "POST", CLAIMS, {"ttl": 60, "grace": 60}, query="?limit=2")
        claim = held["messages"][0]["href"].split("claim_id=")[1]
        for body, query in (("{", ""), ([], ""), ({"ttl": 1}, ""), ({"grace": "x"}, ""),
                            ({}, "?limit=0"), ({}, "?limit=x")):
            self.expect(400, "POST", CLAIMS, body, query=query)
        self.expect(200, "GET", CLAIM, id=claim)
        self.expect(200, "GET", MESSAGES, query="?echo=true&include_claimed=true")
        self.expect(200, "GET", QUEUE + "/stats")
        self.expect(404, "GET", CLAIM)
        self.expect(204, "PATCH", CLAIM, {"ttl": 120, "grace": 60}, id=claim)
        self.expect(404, "PATCH", CLAIM, {"ttl": 120})
        for body in (None, "{", [], {"ttl": 1}, {"grace": -1}):
            self.expect(400, "PATCH", CLAIM, body, id=claim)
        self.expect(403, "DELETE", MESSAGE, id=ids[0])
        self.expect(204, "DELETE", MESSAGE, id=ids[0], query="?claim_id=" + claim)
        self.expect(204, "DELETE", CLAIM, id=claim)
        self.several()

    def several(self):
        """Claims of several queues, and the headers of waiting."""
        wait = {"Prefer": "wait=1"}
        self.expect(201, "POST", SEVERAL, {"ttl": 60, "grace": 60},
                    query="?queue=empty&queue=q&limit=1", headers=wait)
        self.expect(204, "POST", SEVERAL, query="?queue=empty", headers=wait)
        self.expect(204, "POST", CLAIMS, queue="empty", headers=wait)
        for body, query in ((None, ""), (None, "?queue=a%20b"), (None, "?queue=q&limit=0"),
                            ("{", "?queue=q"), ({"ttl": 1}, "?queue=q"),
                            (None, "?" + "&".join("queue=q%d" % n for n in range(33)))):
            self.expect(400, "POST", SEVERAL, body, query=query)

    def common(self):
        """What is refused before an operation is looked at: of each operation."""
        for method, path in self.described.operations():
            with self.subTest(operation=(method, path)):
                self.refusals(method.upper(), path)
        self.expect(204, "DELETE", QUEUE)

    def refusals(self, method, path):
        self.expect(406, method, path, headers={"Accept": "text/html"})
        self.expect(400, method, path, "a=b", headers=FORM_TYPE)
        if path == "/":
            return
        for headers in ({"Client-ID": None}, {"Client-ID": "short"}, {"X-Project-ID": None},
                        {"X-Project-ID": ""}, {"X-Project-ID": "x" * 257}):
            self.expect(400, method, path, headers=headers)
        if "{queue}" in path:
            self.expect(400, method, path, queue="a%20b")
        self.expect(401, method, path, headers={"X-Auth-Token": "nonsense"})
        self.expect(403, method, path, headers={"X-Auth-Token": self.token()})
        self.expect(404, method, path, headers={"URL-Signature": "0" * 64})

    def token(self):
        """Of another project."""
        login = {"auth": {"tenantName": "another",
                          "passwordCredentials": {"username": "ann", "password": "x"}}}
        answer, text = self.ask("POST", "/identity/v2.0/tokens", json.dumps(login),
                                {"Content-Type": "application/json"})
        self.assertEqual(answer.status, 200, text)
        return json.loads(text)["access"]["token"]["id"]


class Others(Case):
    """What needs a server that is set up otherwise."""

    options = ("--admin-mode=false", "--max-memory=1M")

    def test_health_is_hidden_without_admin_mode(self):
        self.expect(404, "GET", "/v2/health")

    def test_a_post_over_the_budget_says_when_to_come_again(self):
        body = {"messages": [{"body": "x" * 200000}]}
        for _ in range(20):
            answer, _ = self.ask("POST", "/v2/queues/full/messages", json.dumps(body))
            if answer.status != 201:
                break
        self.expect(503, "POST", MESSAGES, body, queue="full")

    def test_a_list_of_users_makes_a_token_necessary(self):
        with tempfile.NamedTemporaryFile("w", suffix=".users") as users:
            users.write("ann:secret\n")
            users.flush()
            with Daemon(CLAIMD, "--identity-stub", "--identity-users", users.name,
                        "--log-level=error") as server:
                connection = server.connect()
                connection.request("GET", "/v2/queues", headers=HEADERS)
                answer = connection.getresponse()
                said = json.loads(answer.read())
                connection.close()
        self.assertEqual(self.described.wrong_answer("get", QUEUES, answer.status,
                                                     answer.headers, said), [])
        self.assertEqual(answer.status, 401)


class Front(unittest.TestCase):
    """What the front end refuses by itself is described for every operation."""

    def test_refusals_of_the_front_end(self):
        described = document().operations()
        with Daemon(CLAIMD, "--request-seconds=1", "--idle-seconds=1",
                    "--log-level=error") as server:
            for status, method, head in (
                    ("414", "get", b"GET /v2/queues?%s HTTP/1.1\r\nHost: x\r\n\r\n" % (b"a" * 9000)),
                    ("431", "get", b"GET /v2/queues HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n"
                     % (b"a" * 9000)),
                    ("413", "post", b"POST /v2/queues HTTP/1.1\r\nHost: x\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffffff\r\n"),
                    ("408", "get", b"GET /v2/queues HTTP/1.1\r\n")):
                with self.subTest(status=status):
                    self.assertEqual(self.status(server, head), status)
                    for (other, path), operation in described.items():
                        if other in ("get", "head") and status == "413":
                            continue
                        self.assertIn(status, operation["responses"], (other, path))

    @staticmethod
    def status(server, head):
        with socket.create_connection((server.host, server.port), PATIENCE_S) as client:
            client.sendall(head)
            return client.makefile("rb").readline().split()[1].decode()


if __name__ == "__main__":
    unittest.main()
