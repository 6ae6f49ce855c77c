#!/usr/bin/python3
"""/openapi.json describes this server, however it is set up.

    openapi_test.py CLAIMD

The document is taken from the server. Every path gets every method: those that are
described with input that fits the schemas and with input that does not, all others for their
refusal. Each response is held against the statuses, headers and schemas; what the document
describes must have been seen.
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

from daemon import PATIENCE_S, Daemon, environment  # noqa: E402
import openapi  # noqa: E402

CLAIMD = sys.argv.pop(1)
HEADERS = {"Client-ID": openapi.CLIENT, "X-Project-ID": "p"}
METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
ROLES = ("reader", "producer", "worker", "operator", "admin")

PATCH_TYPE = {"Content-Type": "application/openstack-messaging-v2.0-json-patch"}
FORM_TYPE = {"Content-Type": "application/x-www-form-urlencoded"}

# Responses that every operation has: the front end's refusals (seen once for all, below), and
# the 503 of too many connections.
FRONT = {"408", "413", "414", "431", "503"}


def plain(path):
    """A template without a query, and with every variable called {}."""
    return re.sub(r"\{.*?\}", "{}", re.sub(r"\{\?.*\}", "", path))


def filled(path, **values):
    return path.format(**{"queue": "q", "topic": "q", "id": "x", **values})


class Case(unittest.TestCase):
    options = ()
    # Longer than the longest delay. No schema can say that a delay is shorter than the TTL.
    message_ttl = 86400

    @classmethod
    def setUpClass(cls):
        cls.server = Daemon(CLAIMD, "--log-level=error",
                            "--default-message-ttl=%d" % cls.message_ttl,
                            "--signing-keys=" + cls.key_file("k" * 32),
                            "--encryption-keys=" + cls.key_file("0f" * 32), *cls.options)
        cls.connection = cls.server.connect()
        cls.connection.request("GET", "/openapi.json")
        cls.described = openapi.Document(json.loads(cls.connection.getresponse().read()))
        cls.have = set()

    @classmethod
    def key_file(cls, key):
        """A file with this key, that others cannot read."""
        keys = tempfile.NamedTemporaryFile("w", encoding="ascii", prefix="claimd-keys-")
        cls.addClassCleanup(keys.close)
        keys.write(key + "\n")
        keys.flush()
        return keys.name

    @classmethod
    def tearDownClass(cls):
        cls.connection.close()
        cls.server.__exit__(None, None, None)

    credentials = {}

    def parked(self):
        """The number of requests that wait for a message."""
        metrics = self.fetch("GET", "/metrics")[1]
        return int(re.search(rb'claimd_http_requests_parked{reason="message"} (\d+)', metrics)[1])

    def fetch(self, method, path, body=None, headers=None):
        sent = {**HEADERS, **self.credentials, **(headers or {})}
        sent = {name: value for name, value in sent.items() if value is not None}
        if not isinstance(body, (bytes, str, type(None))):
            body = json.dumps(body)
        self.connection.request(method, path, body, sent)
        response = self.connection.getresponse()
        return response, response.read()

    def expect(self, status, method, path, body=None, query="", headers=None, **values):
        """
        Sends a request, and compares the response against the document; what the response says. A header that
        is None is not sent; status None: any that is described but 400.
        """
        response, text = self.fetch(method, filled(path, **values) + query, body, headers)
        said = self.read(response, text)
        name = self.described.operations()[method.lower(), path]["operationId"]
        sparse = response.status == 404 and name.startswith("queueExists")
        with self.subTest(operation=(method, path), query=query, body=body, headers=headers):
            if status is not None:
                self.assertEqual(response.status, status, text)
            self.assertTrue(status is not None or response.status != 400, text)
            self.assertEqual(self.described.wrong_response(method.lower(), path, response.status,
                                                           response.headers, said, sparse), [])
        self.have.add((method.lower(), path, str(response.status)))
        return said

    @staticmethod
    def read(response, text):
        """A body: a document, or a text; None if there is none."""
        media = response.headers["Content-Type"] or "json"
        if not text:
            return "" if media.startswith("text/plain") else None
        is_document = "json" in media and "jsonl" not in media
        return json.loads(text) if is_document else text.decode()

    def make(self):
        """A queue for those versions that do not make one by themselves, and a topic."""
        for path in ("/v2/queues/q", "/v2/topics/q"):
            self.assertIn(self.fetch("PUT", path)[0].status, (201, 204, 429))

    def unseen(self):
        """Responses that are described, and have not been seen yet."""
        return {(method, path, status)
                for (method, path), operation in self.described.operations().items()
                for status in operation["responses"] if status not in FRONT} - self.have


# ---------------------------------------------------------------------- every path, every method


class Walk:
    """Responses in every configuration."""

    def test_each_path_has_the_methods_that_are_described_and_no_others(self):
        for path, item in self.described.tree["paths"].items():
            allowed = sorted(method.upper() for method in item)
            with self.subTest(path=path):
                response, text = self.fetch("OPTIONS", filled(path))
                self.assertEqual((response.status, text), (200, b""))
                self.assertEqual(response.headers["Allow"], ", ".join(allowed))
                for method in METHODS + ("BREW", "TRACE"):
                    if method not in allowed:
                        self.refused_method(method, path, allowed)

    def refused_method(self, method, path, allowed):
        response, text = self.fetch(method, filled(path))
        self.assertEqual(response.status, 405, (method, path))
        self.assertEqual(response.headers["Allow"], ", ".join(allowed + ["OPTIONS"]))
        self.assertIsNotNone(response.headers["X-Request-ID"])
        if method != "HEAD":
            self.assertEqual(json.loads(text), {"title": "405 Method Not Allowed"})

    def test_undescribed_operations_do_not_exist(self):
        paths = set(self.described.tree["paths"])
        for path in sorted(paths):
            for other in (path.rstrip("/") + "/nonsense/x", "/v3" + path, path + "%2F"):
                response, text = self.fetch("GET", filled(other))
                self.assertEqual((response.status, json.loads(text)["title"]),
                                 (404, "404 Not Found"), other)
        for path in ("/v1/queues", "/v1.1/queues", "/v2/queues", "/v2/health", "/identity"):
            response, _ = self.fetch("OPTIONS", path)
            self.assertEqual(response.status, 200 if path in paths else 404, path)

    def test_each_resource_of_a_home_document_is_described(self):
        paths = {plain(path) for path in self.described.tree["paths"]}
        for home in ("/v1/", "/v1.1/", "/v2/"):
            if home not in paths:
                continue
            response, text = self.fetch("GET", home)
            self.assertEqual(response.status, 200)
            for relation in json.loads(text)["resources"].values():
                path = plain(relation["href-template"])
                self.assertIn(path, paths)

    # ------------------------------------------------------------------ input

    def with_input(self):
        """Operations whose input is described in full; the stub's is not."""
        for (method, path), operation in self.described.operations().items():
            if operation["tags"] != ["identity"]:
                yield method, path, operation

    def test_bodies_are_taken_as_the_schemas_say(self):
        self.make()
        tried = 0
        for method, path, operation in self.with_input():
            for media, content in operation.get("requestBody", {}).get("content", {}).items():
                if media == "text/plain":  # any text is good
                    self.expect(201, method.upper(), path, "any text", headers={"Content-Type": media})
                    continue

                def send(status, body):
                    self.expect(status, method.upper(), path, body, self.needed(operation),
                                headers={"Content-Type": media})
                for body in self.described.good(content["schema"]):
                    send(None, json.dumps(body))
                for body in self.described.bad(content["schema"]):
                    send(400, json.dumps(body))
                    tried += 1
                for body in ("{", b"\xff", "[1,]", "nonsense"):
                    send(400, body)
                send(400 if operation["requestBody"]["required"] else None, None)
        self.assertGreater(tried, 50)

    def needed(self, operation):
        """The parameters without which nothing goes."""
        return "".join("?%s=q" % name for name, parameter
                       in self.described.parameters(operation, "query").items()
                       if parameter.get("required"))

    def queries(self, parameter, values):
        """Queries that give a parameter these values."""
        for value in values:
            items = value if isinstance(value, list) else [value]
            items = [json.dumps(item) if isinstance(item, bool) else str(item)
                     for item in items]
            if parameter.get("explode"):
                yield urllib.parse.urlencode([(parameter["name"], item) for item in items])
            else:
                yield urllib.parse.urlencode({parameter["name"]: ",".join(items)})

    def test_parameters_are_taken_as_the_schemas_say(self):
        self.make()
        tried = 0
        for method, path, operation in self.with_input():
            described = self.described.parameters(operation, "query")
            for name, parameter in described.items():
                def send(status, query):
                    more = "&ids=x" if name == "claim_ids" else \
                        "&queue=q" if "queue" in described and name != "queue" else ""
                    if path == "/claimd/expect" and name not in ("messages", "claimed"):
                        more += "&claimed=0"  # there must be one count
                    self.expect(status, method.upper(), path, self.least_body(operation),
                                query="?" + query + more)
                for query in self.queries(parameter, self.described.good(parameter["schema"])):
                    send(None, query)
                for query in self.queries(parameter, self.bad_texts(parameter["schema"])):
                    send(400, query)
                    tried += 1
                if parameter.get("required"):
                    self.expect(400, method.upper(), path)
        self.assertGreater(tried, 10)

    def least_body(self, operation):
        if not operation.get("requestBody", {}).get("required"):
            return None
        *_, content = operation["requestBody"]["content"].values()  # JSON, if a text is good, too
        return self.described.example(content["schema"])

    def bad_texts(self, schema):
        """Of the values that do not fit, those that are not texts that do."""
        schema = self.described.resolved(schema)
        kind = schema["type"]
        if kind == "array":
            if "maxItems" in schema:
                yield ["q%d" % n for n in range(schema["maxItems"] + 1)]
            if "pattern" in self.described.resolved(schema["items"]):
                yield ["a b"]
        elif kind != "string":
            for value in self.described.bad(schema):
                if not isinstance(value, (bool, list)):
                    yield value

    # ------------------------------------------------------------------ headers

    def test_common_errors_are_returned_by_each_operation(self):
        for (method, path), operation in self.described.operations().items():
            self.refusals(method.upper(), path, operation)

    def refusals(self, method, path, operation):
        query = self.needed(operation)
        if "403" in operation["responses"] and operation.get("security") is None and \
                "x-roles" not in operation:
            self.expect(403, method, path, headers={"Origin": "http://elsewhere.example"},
                        query=query)
        if "406" in operation["responses"]:  # else it is not JSON
            self.expect(406, method, path, headers={"Accept": "text/csv"}, query=query)
        if "text/plain" not in operation.get("requestBody", {}).get("content", ()):  # else it is no JSON
            self.expect(400, method, path, "a=b", headers=FORM_TYPE, query=query)
        self.expect(404, method, path, headers={"URL-Signature": "0" * 64}, query=query)
        for name, header in self.described.parameters(operation, "header").items():
            if name not in HEADERS:
                continue
            if header["required"]:
                self.expect(400, method, path, headers={name: None}, query=query)
            for value in self.bad_headers(header["schema"]):
                self.expect(400, method, path, headers={name: value}, query=query)
        if "{queue}" in path or "{topic}" in path:
            self.expect(400, method, path, queue="a%20b", topic="a%20b")

    def bad_headers(self, schema):
        schema = self.described.resolved(schema)
        if schema.get("format") == "uuid":
            yield from ("short", "3381af92")
        if "maxLength" in schema:
            yield "x" * (schema["maxLength"] + 1)
        if schema.get("minLength", 0) > 1:
            yield "x" * (schema["minLength"] - 1)


class Defaults(Walk, Case):
    pass


class TestApi(Walk, Case):
    """The test API, too."""

    options = ("--ci",)

    def expect(self, status, method, path, *rest, **more):
        """A rule that was taken must not apply to the next request."""
        said = super().expect(status, method, path, *rest, **more)
        if (method, path) == ("PUT", "/claimd/faults"):
            self.assertEqual(self.fetch("DELETE", path)[0].status, 204)
        return said

    def test_its_routes_are_described(self):
        self.assertIn("/claimd/clock/advance", self.described.tree["paths"])


class Limits(Walk, Case):
    """Other limits, and less to serve."""

    options = ("--max-queues-per-page=3", "--max-messages-per-page=4",
               "--max-subscriptions-per-page=5", "--default-subscription-ttl=70",
               "--max-messages-per-claim-or-pop=50", "--min-message-ttl=10",
               "--max-message-ttl=7000", "--max-message-delay=30", "--min-claim-ttl=2",
               "--max-claim-ttl=500", "--min-claim-grace=3", "--max-claim-grace=600",
               "--client-id-uuid-safe=off", "--min-length-client-id=5", "--max-wait=7",
               "--max-length-client-id=40", "--max-messages-post-size=5000",
               "--enable-v1=false", "--enable-v1-1=false", "--admin-mode",
               "--enable-checksum")
    message_ttl = 3600

    def test_a_page_has_the_default_length(self):
        for name in "abcdefgh":
            self.fetch("PUT", "/v2/queues/" + name)
        for n in range(60):
            self.fetch("POST", "/v2/queues/a/messages", {"messages": [{"body": n}]})
        for path, listed, query in (("/v2/queues", "queues", ""),
                                    ("/v2/queues/{queue}/messages", "messages", "?echo=true")):
            operation = self.described.operations()["get", path]
            limit = self.described.parameters(operation, "query")["limit"]["schema"]
            said = self.expect(200, "GET", path, queue="a", query=query)
            self.assertEqual(len(said[listed]), limit["default"])
        operation = self.described.operations()["post", "/v2/queues/{queue}/claims"]
        limit = self.described.parameters(operation, "query")["limit"]["schema"]
        said = self.expect(201, "POST", "/v2/queues/{queue}/claims", queue="a")
        self.assertEqual(len(said["messages"]), limit["default"])

    def test_the_parts_that_are_switched_off_are_not_described(self):
        text = json.dumps(self.described.tree)
        self.assertNotIn("/v1", text)
        self.assertNotIn("V1", text)
        self.assertIn("/v2/health", self.described.tree["paths"])


class Tokens(Walk, Case):
    """No request without one is allowed, and each may do what the document says."""

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        path = os.path.join(folder, "tokens")
        cls.tokens = {role: cls.new(path, role, role) for role in ROLES}
        cls.elsewhere = cls.new(path, "elsewhere", "admin", "--projects", "other")
        policy = os.path.join(folder, "policy")
        with open(policy, "w", encoding="utf-8") as f:
            f.write('{"queues:purge": "role:worker", "messages:pop": "!", "ping:get": "@"}')
        cls.options = ("--auth=tokens", "--tokens=" + path, "--policy=" + policy,
                       "--admin-mode")
        cls.credentials = {"X-Auth-Token": cls.tokens["admin"]}
        super().setUpClass()

    @staticmethod
    def new(path, name, role, *words):
        return subprocess.run([CLAIMD, "token", "new", name, "--role", role, "--tokens", path,
                               *words], capture_output=True, text=True, timeout=PATIENCE_S,
                              check=True, env=environment()).stdout.strip()

    def fetch(self, method, path, body=None, headers=None):
        """By the admin, unless the policy says that it is no admin's."""
        if method == "POST" and path.endswith("/purge") and "/queues/" in path and \
                "X-Auth-Token" not in (headers or {}):
            headers = {**(headers or {}), "X-Auth-Token": self.tokens["worker"]}
        return super().fetch(method, path, body, headers)

    def expect(self, status, method, path, body=None, query="", headers=None, **values):
        # No role may pop: the refusal does not even say what is wrong.
        if query.startswith("?pop="):
            status = 403
        return super().expect(status, method, path, body, query, headers, **values)

    def test_schemes(self):
        schemes = self.described.tree["components"]["securitySchemes"]
        self.assertEqual([list(one) for one in self.described.tree["security"]],
                         [["token"], ["bearer"]])
        self.assertEqual(schemes["token"]["name"], "X-Auth-Token")
        self.assertEqual(self.fetch("GET", "/v2/queues", headers={
            "X-Auth-Token": None,
            "Authorization": schemes["bearer"]["scheme"] + " " + self.tokens["admin"]})[0].status,
            200)

    def test_a_missing_token_is_401_wherever_one_is_needed(self):
        for (method, path), operation in self.described.operations().items():
            for token in (None, "", "nonsense"):
                headers = {"X-Auth-Token": token}
                if operation.get("security") == []:
                    self.assertNotIn("401", operation["responses"])
                    self.assertNotIn("x-roles", operation)
                    response, _ = self.fetch(method.upper(), filled(path), headers=headers)
                    self.assertLess(response.status, 401)
                else:
                    self.expect(401, method.upper(), path, headers=headers)

    def test_each_role_may_do_what_is_described_and_nothing_else(self):
        cells = 0
        for (method, path), operation in self.described.operations().items():
            if operation.get("security") == []:
                continue
            for action, may in operation["x-roles"].items():
                if path.endswith("/finish") and action != "claims:update":
                    continue  # of a part of the body: api/access_test
                query = "?pop=1" if action == "messages:pop" else self.needed(operation)
                for role in ROLES:
                    headers = {"X-Auth-Token": self.tokens[role]}
                    response, text = self.fetch(method.upper(), filled(path) + query,
                                                headers=headers)
                    self.assertEqual(response.status == 403, role not in may,
                                     (method, path, role, text))
                    cells += 1
                self.expect(403, method.upper(), path, query=query,
                            headers={"X-Auth-Token": self.elsewhere})
        self.assertGreater(cells, 200)
        purge = self.described.operations()["post", "/v2/queues/{queue}/purge"]
        self.assertEqual(purge["x-roles"], {"queues:purge": ["worker"]})


# ---------------------------------------------------------------------- a life


class Story(Case):
    """Every operation, in the order of a life: all that is described is seen."""

    options = ("--admin-mode", "--max-schedules=1")

    def test_responses_to_good_and_bad_requests_are_as_described(self):
        self.service()
        for version, base in (("2", "/v2"), ("1.1", "/v1.1"), ("1", "/v1")):
            self.name(version, base)
            self.queues()
            self.messages()
            self.claims()
            if version == "2":
                self.subscriptions()
            self.expect(204, "DELETE", self.queue)
        self.topics()
        self.name("2", "/v2")
        self.several()
        self.ends()
        self.schedules()
        self.views()
        self.keys()
        self.common()
        self.dumps()
        # Two posts with the same key run at the same time only by chance.
        self.assertEqual({one for one in self.unseen() if one not in {(*key, "409") for key in POST}},
                         set())

    # ------------------------------------------------------------------ schedules

    def schedules(self):
        path = "/claimd/queues/{queue}/schedules"
        hourly = {"cron": "@hourly", "message": {"body": 1}}
        self.expect(201, "PUT", path + "/{id}", hourly, id="nightly")
        self.expect(200, "PUT", path + "/{id}", {"every": 60, "message": {"body": 1}}, id="nightly")
        self.expect(409, "PUT", path + "/{id}", hourly, id="another")
        self.expect(200, "GET", path + "/{id}", id="nightly", query="?next=3")
        self.expect(200, "PATCH", path + "/{id}", {"paused": True}, id="nightly")
        self.expect(200, "GET", path)
        self.expect(200, "GET", "/claimd/schedules")
        self.expect(204, "DELETE", path + "/{id}", id="nightly")

    # ------------------------------------------------------------------ the end of a job

    def ends(self):
        """Finish and redrive."""
        finish, redrive = FINISH[1], REDRIVE[1]
        self.expect(201, "PUT", self.queue, {"_max_claim_count": 5, "_dead_letter_queue": "dead"},
                    queue="jobs")
        self.expect(201, "POST", self.several_messages, {"messages": [{"body": n} for n in range(4)]},
                    queue="jobs")
        held = self.expect(201, "POST", self.several_claims, queue="jobs")["messages"]
        ids = [message["href"].rpartition("/")[2].partition("?")[0] for message in held]
        claim = held[0]["href"].partition("claim_id=")[2]
        self.expect(409, "POST", finish, {"delete": ["x"]}, queue="jobs", id=claim)
        _, said = self.keyed(200, "POST", finish, {
            "delete": [ids[0], "x"], "release": [{"id": ids[1], "delay": 60, "reason": "busy"}],
            "dead_letter": [{"id": ids[2], "reason": "bad"}], "renew": {"ttl": 60}, "atomic": False,
            "post": [{"queue": "next", "messages": [{"body": 1}]}]}, {"renew": {}}, queue="jobs", id=claim)
        self.assertEqual([one["result"] for one in said["results"]],
                         ["deleted", "not_held", "released", "dead_lettered"])
        self.expect(200, "POST", redrive, {"dry_run": True}, queue="dead")
        self.assertEqual(self.expect(200, "POST", redrive, queue="dead")["moved"], 1)
        self.expect(409, "POST", redrive, {"to": "dead"}, queue="dead")
        self.expect(404, "POST", redrive, queue="none")
        self.expect(200, "POST", "/claimd/queues/{queue}/pause", {"posts": False}, queue="jobs")
        self.expect(200, "GET", "/claimd/queues/{queue}/pause", queue="jobs")

    # ------------------------------------------------------------------ keys

    def keys(self):
        """Requests with a key, once more, with another body, and while the first one runs."""
        self.expect(201, "PUT", "/v1/queues/{queue}", queue="keyed")
        for base in ("/v1/queues/{queue}", "/v1.1/queues/{queue}", "/v2/queues/{queue}", "/v2/topics/{topic}"):
            post = [{"body": n, "ttl": 300} for n in range(9)]
            post, other = (post, post[1:]) if base.startswith("/v1/") else \
                ({"messages": post}, {"messages": post[1:]})
            self.keyed(201, "POST", base + "/messages", post, other)
            if not base.startswith("/v1/"):
                self.keyed(200, "DELETE", base + "/messages", None, {}, "?pop=1")
                self.running_pop(base + "/messages", base.rpartition("/")[0] + "/waited/messages?pop=1")
            if "topic" not in base:
                self.keyed_claim(base + "/claims", base)
        self.keyed_claim("/claimd/claims", "/v2/queues/{queue}", "?queue=keyed")
        self.keyed(201, "POST", "/claimd/queues/{queue}/raw", '{"job": 1}', '{"job": 2}')
        self.keyed_claim("/claimd/queues/{queue}/raw/claims", "/v2/queues/{queue}")
        self.expect(204, "POST", "/claimd/queues/{queue}/raw/claims", queue="empty")

    def keyed(self, status, method, path, body, other, query="", **values):
        """The header with the key, and the document."""
        headers = {"Idempotency-Key": method + path}
        values = values or {"queue": "keyed", "topic": "keyed"}
        said, again = (self.expect(status, method, path, body, query, headers, **values) for _ in "12")
        # The age of a message grows meanwhile.
        self.assertEqual(*(re.sub('"age": [0-9]+', "", json.dumps(each)) for each in (said, again)))
        self.expect(422, method, path, other, query, headers, **values)
        return headers, said

    def keyed_claim(self, path, base, query=""):
        terms = {"ttl": 60, "grace": 60}
        headers, _ = self.keyed(201, "POST", path, terms, {"ttl": 61, "grace": 60}, query)
        claim = self.expect(200, "GET", "/claimd/queues/{queue}/claims", queue="keyed")["claims"][-1]["id"]
        self.expect(204, "DELETE", base + "/claims/{id}", id=claim, queue="keyed")
        self.expect(409, "POST", path, terms, query, headers, queue="keyed")

    def running_pop(self, path, target):
        """A pop that waits for a message has a key, and so has the next one."""
        headers = {**HEADERS, "Idempotency-Key": "key-of-a-pop"}
        other = self.server.connect()
        self.addCleanup(other.close)
        before = self.parked()
        other.request("DELETE", target, headers={**headers, "Prefer": "wait=60"})
        while self.parked() == before:
            pass
        self.expect(409, "DELETE", path, query="?pop=1", headers=headers, queue="waited", topic="waited")

    def dumps(self):
        self.expect(200, "GET", "/claimd/dump")
        self.expect(400, "GET", "/claimd/dump", query="?marker=x")
        self.expect(200, "POST", "/claimd/load", {"project": "p", "queue": "fresh"})
        self.expect(409, "POST", "/claimd/load", {"project": "p", "queue": "fresh"})
        self.expect(400, "POST", "/claimd/load", {"project": "p"})

    def views(self):
        """After several(), which claims a message."""
        self.expect(200, "GET", "/claimd/queues")
        self.expect(200, "GET", "/claimd/permissions")
        self.expect(200, "GET", "/claimd/alerts")
        self.expect(400, "GET", "/claimd/queues", query="?sort=x")
        self.expect(200, "GET", "/claimd/queues/{queue}/claims")
        self.expect(404, "GET", "/claimd/queues/{queue}/claims", queue="none")
        self.expect(404, "GET", "/claimd/queues/{queue}/history", queue="none")
        self.expect(404, "GET", "/claimd/queues/{queue}/messages", queue="none")
        self.expect(200, "GET", "/claimd/queues/{queue}/messages", query="?state=claimed")
        self.expect(200, "GET", "/claimd/queues/{queue}/messages", query="?group=reason")
        self.expect(404, "GET", "/claimd/queues/{queue}/messages/{id}", queue="none")
        self.expect(200, "GET", "/claimd/queues/{queue}/messages/{id}", id=self.post(1)[0])
        for _ in range(100):  # the first sample is there within 5 s
            if self.fetch("GET", "/claimd/queues/q/history")[0].status == 200:
                break
            time.sleep(0.1)
        self.expect(200, "GET", "/claimd/queues/{queue}/history")

    def name(self, version, base, kind="queues"):
        self.version, self.base, self.kind = version, base, kind
        self.queue = "%s/%s/{%s}" % (base, kind, kind[:-1])
        self.several_messages, self.message = \
            self.queue + "/messages", self.queue + "/messages/{id}"
        self.several_claims, self.claim = self.queue + "/claims", self.queue + "/claims/{id}"

    def service(self):
        self.expect(300, "GET", "/")
        self.expect(200, "GET", "/", headers={"Accept": "text/html"})
        for method in ("GET", "HEAD"):
            for path in ("/openapi.json", "/metrics", "/livez", "/readyz"):
                self.expect(200, method, path)
            for path in ("/v2/ping", "/v1.1/ping", "/v1/health"):
                self.expect(204, method, path)
        for base in ("/v2", "/v1.1"):
            self.expect(200, "GET", base + "/health")
        for base in ("/v2", "/v1.1", "/v1"):
            self.expect(200, "GET", base + "/")

    # ------------------------------------------------------------------ queues

    def queues(self):
        old = self.version == "1"
        self.expect(204 if old else 200, "GET", self.base + "/queues")
        self.expect(201, "PUT", self.queue, {"color": "red"})
        self.expect(204, "PUT", self.queue)
        for query in ("", "?limit=1&detailed=true&with_count=true", "?name=q", "?color=red",
                      "?marker=a"):
            self.expect(200 if not old or "color" not in query else None, "GET",
                        self.base + "/queues", query=query)
        self.expect(200, "GET", self.queue + "/stats")
        if old:
            self.old_queues()
            return
        self.expect(200, "GET", self.queue)
        self.expect(200, "GET", self.queue, queue="unknown")
        self.expect(200, "GET", self.queue + "/stats", queue="unknown")
        if self.version == "2":
            self.changes()

    def old_queues(self):
        for method in ("GET", "HEAD"):
            self.expect(204, method, self.queue)
            self.expect(404, method, self.queue, queue="unknown")
        self.expect(404, "GET", self.queue + "/stats", queue="unknown")
        self.expect(204, "PUT", self.queue + "/metadata", {"size": 1})
        self.expect(200, "GET", self.queue + "/metadata")
        self.expect(404, "PUT", self.queue + "/metadata", {}, queue="unknown")
        self.expect(404, "GET", self.queue + "/metadata", queue="unknown")

    def changes(self):
        self.expect(200, "PATCH", self.queue,
                    [{"op": "add", "path": "/metadata/size", "value": 1}], headers=PATCH_TYPE)
        self.expect(404, "PATCH", self.queue, [], headers=PATCH_TYPE, queue="unknown",
                    topic="unknown")
        self.expect(409, "PATCH", self.queue, [{"op": "remove", "path": "/metadata/none"}],
                    headers=PATCH_TYPE)
        self.expect(415, "PATCH", self.queue, [], headers={"Content-Type": "application/json"})

    # ------------------------------------------------------------------ messages

    def post(self, *bodies):
        """Their ids."""
        items = [{"body": body, "ttl": 300} for body in bodies]
        posted = self.expect(201, "POST", self.several_messages,
                             items if self.version == "1" else {"messages": items})
        return [href.rsplit("/", 1)[1] for href in posted["resources"]]

    def messages(self):
        old = self.version == "1"
        if old:
            self.expect(204, "GET", self.several_messages, query="?echo=true")
            self.expect(404, "POST", self.several_messages, [{"ttl": 60, "body": 1}],
                        queue="unknown")
        ids = self.post({"job": 1}, "two", None, [4], 5)
        for query in ("?echo=true", "?echo=true&limit=1&include_claimed=true"
                      "&include_delayed=true", "?ids=" + ",".join(ids)):
            self.expect(200, "GET", self.several_messages, query=query)
        if not old:
            self.expect(200, "GET", self.several_messages)  # one's own are hidden
            self.expect(400, "POST", self.several_messages,
                        '{"messages": [{"body": "%s"}]}' % ("x" * 300000))
        self.expect(204 if old else 404, "GET", self.several_messages, query="?ids=x")
        self.expect(200, "GET", self.message, id=ids[0])
        self.expect(404, "GET", self.message)
        self.expect(200, "GET", self.queue + "/stats")
        self.expect(204, "DELETE", self.message, id=ids[0])
        self.expect(400, "DELETE", self.message, id=ids[1], query="?claim_id=x")
        if self.version == "2":
            self.expect(400, "DELETE", self.several_messages,
                        query="?ids=%s&claim_ids=x" % ids[1])
        self.expect(204, "DELETE", self.several_messages, query="?ids=" + ids[1])
        self.expect(400, "DELETE", self.several_messages)
        if not old:
            self.expect(200, "DELETE", self.several_messages, query="?pop=2")
            self.expect(400, "DELETE", self.several_messages, query="?pop=1&ids=x")
        if self.version == "2":
            self.expect(204, "POST", self.queue + "/purge")
            if self.kind == "queues":
                self.expect(200, "POST", self.queue + "/share", {})

    # ------------------------------------------------------------------ claims

    def claims(self):
        terms = {"ttl": 60, "grace": 60}
        for _ in range(2):  # until nothing is left
            said = self.expect(None, "POST", self.several_claims, terms)
        self.assertIsNone(said)
        ids = self.post(1, 2, 3)
        held = self.expect(201, "POST", self.several_claims, terms, query="?limit=2")
        held = held if self.version == "1" else held["messages"]
        claim = held[0]["href"].split("claim_id=")[1]
        self.expect(200, "GET", self.claim, id=claim)
        self.expect(200, "GET", self.several_messages, query="?echo=true&include_claimed=true")
        self.expect(200, "GET", self.queue + "/stats")
        self.expect(404, "GET", self.claim)
        self.expect(204, "PATCH", self.claim, {"ttl": 120, "grace": 60}, id=claim)
        self.expect(404, "PATCH", self.claim, {"ttl": 120})
        self.expect(403, "DELETE", self.message, id=ids[0])
        self.expect(204, "DELETE", self.message, id=ids[0], query="?claim_id=" + claim)
        self.expect(204, "DELETE", self.claim, id=claim)
        self.expect(204, "POST", self.several_claims, terms, queue="empty",
                    headers={"Prefer": "wait=1"})

    # ------------------------------------------------------------------ subscriptions

    def subscriptions(self):
        several = self.queue + "/subscriptions"
        one, hook = several + "/{id}", {"subscriber": "http://example.org/hook"}
        ids = [self.expect(201, "POST", several, body)["subscription_id"] for body in
               (hook, {"subscriber": "mailto:ann@example.org", "ttl": 60, "options": {"a": []}})]
        confirm = {"confirmed": True}
        self.expect(204, "PUT", one + "/confirm", confirm, id=ids[0])
        self.expect(404, "PUT", one + "/confirm", confirm)
        self.expect(409, "POST", several, hook)
        self.expect(204, "PATCH", one, {"ttl": 90}, id=ids[1])
        self.expect(409, "PATCH", one, hook, id=ids[1])
        self.expect(404, "PATCH", one, hook)
        self.post(1)
        for base in (several, several.replace("/v2/", "/claimd/")):
            for query in ("", "?limit=1", "?marker=x"):
                self.expect(200, "GET", base, query=query)
            self.expect(200, "GET", base + "/{id}", id=ids[0])
            self.expect(404, "GET", base + "/{id}")
        self.expect(204, "DELETE", one, id=ids[0])

    # ------------------------------------------------------------------ topics

    def topics(self):
        """The operations that a topic shares with a queue, and its own listing."""
        self.name("2", "/v2", "topics")
        self.expect(200, "GET", "/v2/topics")
        self.expect(201, "PUT", self.queue, {"color": "red"})
        self.expect(204, "PUT", self.queue)
        for query in ("", "?limit=1&detailed=true", "?name=q", "?color=red", "?marker=a"):
            self.expect(200, "GET", "/v2/topics", query=query)
        self.expect(200, "GET", self.queue)
        self.changes()
        self.messages()
        self.subscriptions()
        self.expect(204, "DELETE", self.queue)

    def several(self):
        """Claims of several queues, and the headers of waiting."""
        path, wait = "/claimd/claims", {"Prefer": "wait=1"}
        self.make()
        self.post(1, 2, 3)
        self.expect(201, "POST", path, {"ttl": 60, "grace": 60},
                    query="?queue=empty&queue=q&limit=1", headers=wait)
        self.expect(204, "POST", path, query="?queue=empty", headers=wait)

    def common(self):
        """The refusals that come before an operation, for each operation."""
        for (method, path), operation in self.described.operations().items():
            Walk.refusals(self, method.upper(), path, operation)

    needed, bad_headers = Walk.needed, Walk.bad_headers


class Stub(Walk, Case):
    """The identity stub: its own paths, and the tokens that it gives."""

    options = ("--identity-stub", "--admin-mode")

    V3 = "/identity/v3/auth/"

    def log_in(self, project):
        user = {"name": "ann", "password": "x", "domain": {"id": "default"}}
        login = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}},
                          "scope": {"project": {"name": project}}}}
        response, text = self.fetch("POST", self.V3 + "tokens", login)
        said = json.loads(text)
        self.assertEqual(self.described.wrong_response("post", self.V3 + "tokens", response.status,
                                                       response.headers, said), [])
        self.assertEqual(response.status, 201)
        return response.headers["X-Subject-Token"]

    def test_its_own_paths(self):
        token = self.log_in("p")
        subject = {"X-Subject-Token": token}
        own = {"X-Auth-Token": token}
        self.expect(300, "GET", "/identity")
        for path in ("/identity/v3", "/identity/v2.0"):
            self.expect(200, "GET", path)
        for method, status in (("GET", 200), ("HEAD", 200), ("DELETE", 204)):
            self.expect(status, method, self.V3 + "tokens", headers=subject)
            self.expect(401, method, self.V3 + "tokens", headers={"X-Subject-Token": "x"})
        for path in (self.V3 + "projects", self.V3 + "catalog", "/identity/v2.0/tenants"):
            self.expect(200, "GET", path, headers=own)
            self.expect(401, "GET", path)
        old = {"auth": {"tenantName": "p",
                        "passwordCredentials": {"username": "ann", "password": "x"}}}
        self.expect(200, "POST", "/identity/v2.0/tokens", old)
        broken = {"auth": {"token": {"id": "x"}}}
        self.expect(401, "POST", "/identity/v2.0/tokens", broken)
        self.expect(400, "POST", "/identity/v2.0/tokens", {"auth": {}})
        broken = {"auth": {"identity": {"token": {"id": "x"}}}}
        self.expect(401, "POST", self.V3 + "tokens", broken)

    def test_tokens_that_are_wrong_or_for_another_project(self):
        another = self.log_in("another")
        for (method, path), operation in self.described.operations().items():
            if operation.get("security") is None:
                self.expect(401, method.upper(), path, headers={"X-Auth-Token": "x"})
                self.expect(403, method.upper(), path, headers={"X-Auth-Token": another})

    def test_a_list_of_users_makes_a_token_necessary(self):
        self.assertEqual(self.described.tree["security"], [{}, {"token": []}])
        with tempfile.NamedTemporaryFile("w", suffix=".users") as users:
            users.write("ann:secret\n")
            users.flush()
            with Daemon(CLAIMD, "--identity-stub", "--identity-users", users.name,
                        "--log-level=error") as server:
                connection = server.connect()
                connection.request("GET", "/openapi.json")
                described = openapi.Document(json.loads(connection.getresponse().read()))
                responses = {}
                for path in ("/v2/queues", "/metrics"):
                    connection.request("GET", path, headers=HEADERS)
                    response = connection.getresponse()
                    responses[path] = response, json.loads(response.read())
                connection.close()
        self.assertEqual(described.tree["security"], [{"token": []}])
        for path, (response, said) in responses.items():
            self.assertEqual(described.wrong_response("get", path, response.status,
                                                      response.headers, said), [])
            self.assertEqual(response.status, 401)


class Others(Case):
    """Responses that need a server with other options."""

    options = ("--max-memory=1M", "--message-delete-with-claim-id")

    def test_messages_are_deleted_by_their_holder(self):
        path = "/v2/queues/{queue}/messages"
        said = self.expect(201, "POST", path, {"messages": [{"body": 1}]})
        id = said["resources"][0].rsplit("/", 1)[1]
        self.expect(400, "DELETE", path, query="?ids=" + id)
        self.expect(403, "DELETE", path, query="?ids=%s&claim_ids=x" % id)

    def test_a_post_over_the_budget_says_when_to_come_again(self):
        body = {"messages": [{"body": "x" * 200000}]}
        for _ in range(20):
            response, _ = self.fetch("POST", "/v2/queues/full/messages", json.dumps(body))
            if response.status != 201:
                break
        self.expect(503, "POST", "/v2/queues/{queue}/messages", body, queue="full")


# ---------------------------------------------------------------------- limits of projects

MAKE_QUEUES = {("put", "/v1/queues/{queue}"), ("put", "/v1.1/queues/{queue}"),
               ("put", "/v2/queues/{queue}"),
               ("post", "/v2/queues/{queue}/subscriptions"),
               ("put", "/v2/topics/{topic}"), ("post", "/v2/topics/{topic}/subscriptions")}
POST = {("post", base + "/queues/{queue}/messages") for base in ("/v1", "/v1.1", "/v2")} | \
    {("post", "/v2/topics/{topic}/messages"), ("post", "/claimd/queues/{queue}/raw")}
FINISH = ("post", "/claimd/queues/{queue}/claims/{id}/finish")
REDRIVE = ("post", "/claimd/queues/{queue}/redrive")
WAIT = {("post", base + "/queues/{queue}/claims") for base in ("/v1", "/v1.1", "/v2")} | \
    {("post", "/claimd/claims"), ("post", "/claimd/queues/{queue}/raw/claims")} | \
    {("delete", base + "/queues/{queue}/messages") for base in ("/v1.1", "/v2")} | \
    {("delete", "/v2/topics/{topic}/messages")}
OF_A_PROJECT = ("/v1/", "/v1.1/", "/v2/", "/claimd/")
OF_ALL = ("/claimd/dump", "/claimd/load")


class Limited:
    """One limit of each project: 429 is described where it can be, and is there."""

    rationed, title = None, None  # operations, None: all of a project; how the 429 begins

    def prepare(self):
        """Uses up what the project may have."""
        self.make()

    def setUp(self):
        self.prepare()

    def limited(self):
        return {key for key in self.described.operations()
                if self.rationed is None and key[1].startswith(OF_A_PROJECT) and
                key[1] not in OF_ALL or
                key in (self.rationed or ())}

    def test_it_is_described_where_it_can_happen_and_nowhere_else(self):
        self.assertEqual({key for key, operation in self.described.operations().items()
                          if "429" in operation["responses"]}, self.limited())
        self.assertTrue((self.rationed or set()) <= self.limited())

    def test_it_happens_as_it_is_described(self):
        for method, path in sorted(self.limited()):
            with self.subTest(operation=(method, path)):
                self.refused(method, path)
        self.assertEqual({key for key in self.have if key[2] == "429"},
                         {(method, path, "429") for method, path in self.limited()})

    def refused(self, method, path):
        operation = self.described.operations()[method, path]
        given = {"body": Walk.least_body(self, operation), **self.input(operation)}
        said = self.expect(429, method.upper(), path, **given)
        self.assertTrue(said is None or said["title"].startswith(self.title), said)

    def input(self, operation):
        return {"query": Walk.needed(self, operation)}

    def finish(self, queue):
        """A finish that posts to a queue."""
        held = json.loads(self.fetch("POST", "/v2/queues/q/claims?limit=1")[1])["messages"]
        return {"body": {"post": [{"queue": queue, "messages": [{"body": 1}]}]},
                "id": held[0]["href"].partition("claim_id=")[2]}


class LimitedQueues(Limited, Case):
    options = ("--project-max-queues=2",)
    rationed = MAKE_QUEUES | POST - {("post", "/v1/queues/{queue}/messages")} | {FINISH, REDRIVE}
    title = "Too many queues"

    def prepare(self):
        """Two topics, a queue, and a dead letter in another one."""
        for topic in "qr":
            self.fetch("PUT", "/v2/topics/" + topic)
        self.fetch("PUT", "/v2/queues/q", {"_max_claim_count": 5, "_dead_letter_queue": "dead"})
        self.fetch("POST", "/v2/queues/q/messages", {"messages": [{"body": 1}, {"body": 2}]})
        held = json.loads(self.fetch("POST", "/v2/queues/q/claims?limit=1")[1])["messages"]
        message, _, claim = held[0]["href"].rpartition("/")[2].partition("?claim_id=")
        self.fetch("POST", filled(FINISH[1], id=claim), {"dead_letter": [message]})

    def input(self, operation):
        if operation["operationId"] == "finishMessages":
            return self.finish("another")
        if operation["operationId"] == "redriveMessages":
            return {"body": {"to": "another"}, "queue": "dead"}
        return {"queue": "another", "topic": "another"}


class LimitedMessages(Limited, Case):
    options = ("--project-max-messages=1",)
    rationed, title = POST | {FINISH}, "Too many messages"
    body = 1

    def prepare(self):
        self.make()
        for kind in ("queues", "topics"):
            self.fetch("POST", "/v2/%s/q/messages" % kind, {"messages": [{"body": self.body}]})

    def input(self, operation):
        if operation["operationId"] == "finishMessages":
            return self.finish("q")
        return super().input(operation)


class LimitedBytes(LimitedMessages):
    options = ("--project-max-bytes=1K",)
    title = "Too many bytes"
    body = "x" * 1022  # and two quotes


class LimitedRequests(Limited, Case):
    options = ("--project-requests-per-second=1", "--admin-mode")
    title = "Too many requests"

    def prepare(self):
        """The requests themselves do that."""

    def expect(self, status, method, path, body=None, query="", headers=None, **values):
        """Again, until there was less than a second between two of them."""
        while self.fetch("HEAD", "/v2/ping")[0].status != 429 or \
                self.fetch(method, filled(path) + query, body)[0].status != 429:
            pass
        return super().expect(status, method, path, body, query, headers, **values)


class LimitedConnections(Limited, Case):
    options = ("--project-max-connections=1", "--admin-mode")
    title = "Too many connections"

    def prepare(self):
        """By another connection than that of the test, which is closed when it is refused."""
        self.connection.close()
        held = self.server.connect()
        self.addCleanup(held.close)
        status = 429
        while status == 429:  # the server sees that the other has gone
            held.request("GET", "/v2/queues", headers=HEADERS)
            response = held.getresponse()
            response.read()
            status = response.status
        self.assertEqual(status, 200)


class LimitedWaiters(Limited, Case):
    options = ("--project-max-waiters=1",)
    rationed, title = WAIT, "Too many waiting requests"

    def prepare(self):
        """After the server has seen that the waiter of the test before is gone."""
        while self.parked():
            pass
        waits = self.server.connect()
        self.addCleanup(waits.close)
        waits.request("POST", "/v2/queues/q/claims", headers={**HEADERS, "Prefer": "wait=60"})
        while not self.parked():
            pass

    def input(self, operation):
        pops = operation["operationId"].startswith("deleteMessages")
        return {"query": "?pop=1" if pops else Walk.needed(self, operation),
                "headers": {"Prefer": "wait=60"}}


class WithoutWaiters(Case):
    options = ("--project-max-waiters=1", "--max-wait=0")

    def test_a_request_over_the_waiter_limit_returns_at_once(self):
        self.assertNotIn("429", json.dumps(self.described.tree))
        self.assertNotIn("Enough", json.dumps(self.described.tree))


class Front(unittest.TestCase):
    """The refusals of the front end are described for every operation."""

    def test_refusals_of_the_front_end(self):
        with Daemon(CLAIMD, "--request-seconds=1", "--idle-seconds=1",
                    "--log-level=error") as server:
            connection = server.connect()
            connection.request("GET", "/openapi.json")
            described = openapi.Document(json.loads(connection.getresponse().read()))
            connection.close()
            for status, method, head in (
                    ("414", "get", b"GET /v2/queues?%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % (b"a" * 20000)),
                    ("431", "get", b"GET /v2/queues HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n"
                     % (b"a" * 20000)),
                    ("413", "post", b"POST /v2/queues HTTP/1.1\r\nHost: localhost\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffffff\r\n"),
                    ("408", "get", b"GET /v2/queues HTTP/1.1\r\n")):
                with self.subTest(status=status):
                    self.assertEqual(self.status(server, head), status)
                    for (other, path), operation in described.operations().items():
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
