#!/usr/bin/python3
"""The requests of the SDKs for Rackspace Cloud Queues, one by one, with --profile rackspace.

    rackspace_wire_test.py CLAIMD

php-opencloud, pyrax and jclouds are in no package; each flow here was written down from
reading its source: paths, parameters in their order and spelling, headers, documents, and
the way it takes ids out of the responses. Wherever an SDK follows a link, so does the test.
"""

import json
import re
import unittest
import urllib.parse

from client_case import CLIENT_ID, ClientCase

WORKER_ID = "8ec0a5ba-65ad-43e6-8af8-ac4e0e8c6b1e"
LOGIN = {"auth": {"RAX-KSKEY:apiKeyCredentials": {"username": "ann", "apiKey": "k"}}}


class Response:
    def __init__(self, response):
        text = response.read()
        self.status = response.status
        self.headers = response.headers
        self.json = json.loads(text) if text else None


class RackspaceCase(ClientCase):
    """Logs in and finds the endpoint in the catalog, as all of these SDKs do."""

    options = ("--identity-stub", "--profile", "rackspace", "--identity-region", "ORD")
    client_id = CLIENT_ID

    def setUp(self):
        super().setUp()
        self.connection = self.server.connect()
        self.addCleanup(self.connection.close)
        access = self.send("POST", self.identity + "/v2.0/tokens", LOGIN,
                           {"Content-Type": "application/json"}).json["access"]
        self.token = access["token"]["id"]
        self.assertRegex(access["token"]["expires"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        service, = [s for s in access["serviceCatalog"]
                    if (s["type"], s["name"]) == ("rax:queues", "cloudQueues")]
        endpoint, = [e for e in service["endpoints"] if e["region"] == "ORD"]
        self.endpoint = endpoint["publicURL"]
        self.assertEqual(self.endpoint, self.server.url + "/v1/ann")

    def send(self, method, url, document=None, headers=()):
        """One request; a url that is only a path is one of this server."""
        parts = urllib.parse.urlsplit(url)
        target = parts.path + ("?" + parts.query if parts.query else "")
        body = None if document is None else json.dumps(document)
        self.connection.request(method, target, body, dict(headers))
        return Response(self.connection.getresponse())

    def headers(self, client_id):
        """The headers of every request of this SDK. There is never a project."""
        raise NotImplementedError

    def call(self, method, tail, document=None, client_id=None):
        url = tail if tail.startswith("/v1/") else self.endpoint + tail
        return self.send(method, url, document, self.headers(client_id or self.client_id))

    def expect(self, status, method, tail, document=None, client_id=None):
        response = self.call(method, tail, document, client_id)
        self.assertEqual(response.status, status, response.json)
        if response.json is not None:
            self.assertIn("application/json", response.headers["Content-Type"])
        return response

    def fill(self, count):
        """The queue "work" with numbered messages, ten a request; their ids."""
        self.expect(201, "PUT", "/queues/work", {})
        ids = []
        for first in range(0, count, 10):
            response = self.expect(201, "POST", "/queues/work/messages",
                                   [{"ttl": 600, "body": "m%d" % n}
                                    for n in range(first, min(first + 10, count))])
            self.assertIs(response.json["partial"], False)
            ids += [href.rsplit("/", 1)[1] for href in response.json["resources"]]
        return ids


class PhpOpencloud(RackspaceCase):
    """php-opencloud: lib/OpenCloud/Queues."""

    claimed = re.compile(r".+/([\w\d]+)\?claim_id=.+$")

    def headers(self, client_id):
        return {"User-Agent": "OpenCloud/1.16.1 cURL/7.88.1 PHP/7.4", "X-Auth-Token": self.token,
                "Accept": "application/json", "Content-Type": "application/json",
                "Client-ID": client_id}

    def test_a_client_id_is_whatever_text_the_client_has_chosen(self):
        self.expect(201, "PUT", "/queues/work", {})
        self.expect(201, "POST", "/queues/work/messages", [{"ttl": 600, "body": 1}], "QClient1")
        self.expect(204, "GET", "/queues/work/messages", client_id="QClient1")
        self.expect(200, "GET", "/queues/work/messages", client_id="Q")
        self.expect(200, "GET", "/queues/work/messages", client_id=64 * "a worker ")
        self.expect(400, "GET", "/queues/work/messages", client_id=1025 * "w")

    def test_a_claim_with_the_sdks_defaults(self):
        self.fill(12)
        response = self.expect(201, "POST", "/queues/work/claims?limit=10",
                               {"grace": 43200, "ttl": 43200}, WORKER_ID)
        ids = [self.claimed.match(m["href"]).group(1) for m in response.json]
        claim_id = response.json[0]["href"].split("claim_id=")[1]
        claim = "/queues/work/claims/" + claim_id
        self.assertEqual(response.headers["Location"], "/v1/ann" + claim)
        shown = self.expect(200, "GET", claim).json
        self.assertEqual((shown["ttl"], len(shown["messages"])), (43200, 10))
        self.assertEqual(shown["href"].split("/")[-1], claim_id)
        self.expect(204, "PATCH", claim, {"grace": 1000, "ttl": 500})
        # update(['ttl' => 600]) of a claim that was fetched: the SDK knows no grace of it.
        self.expect(204, "PATCH", claim, {"grace": 0, "ttl": 600})
        self.assertEqual(self.expect(200, "GET", claim).json["ttl"], 600)
        # Without the claim's id the SDK sends the name alone: the message is not free.
        self.expect(403, "DELETE", "/queues/work/messages/%s?claim_id=" % ids[0])
        self.expect(204, "DELETE", "/queues/work/messages/%s?claim_id=%s" % (ids[0], claim_id))
        self.expect(204, "DELETE", response.json[1]["href"])
        self.expect(204, "DELETE", claim)
        self.expect(404, "GET", claim)
        self.expect(204, "DELETE", "/queues/work/messages/%s?claim_id=" % ids[2])
        left = self.expect(200, "GET", "/queues/work/stats").json["messages"]
        self.assertEqual((left["free"], left["claimed"]), (9, 0))

    def test_a_hundred_messages_can_be_claimed_at_once(self):
        self.fill(120)
        first = self.expect(201, "POST", "/queues/work/claims?limit=100",
                            {"grace": 60, "ttl": 60}).json
        rest = self.expect(201, "POST", "/queues/work/claims?limit=100",
                           {"grace": 60, "ttl": 60}).json
        self.assertEqual((len(first), len(rest)), (100, 20))
        self.expect(204, "POST", "/queues/work/claims?limit=100", {"grace": 60, "ttl": 60})


class Pyrax(RackspaceCase):
    """pyrax: pyrax/queueing.py."""

    # Its pattern for the marker in a link: digits only.
    marker = re.compile(r".+\bmarker=(\d+).*")

    def headers(self, client_id):
        return {"User-Agent": "pyrax/1.10.0", "X-Auth-Token": self.token,
                "Accept": "application/json", "Content-Type": "application/json",
                "Client-ID": client_id}

    def test_messages_are_paged_by_a_marker_of_digits(self):
        self.fill(23)
        bodies, marker = [], None
        while True:
            tail = "/queues/work/messages?include_claimed=false&echo=true"
            tail += "" if marker is None else "&marker=" + marker
            response = self.call("GET", tail + "&limit=10")
            if response.status == 204:
                break
            bodies += [message["body"] for message in response.json["messages"]]
            links = [link["href"] for link in response.json["links"] if link["rel"] == "next"]
            marker = self.marker.match(links[0]).group(1)
        self.assertEqual(bodies, ["m%d" % n for n in range(23)])

    def test_a_claim_is_queried_right_after_claiming(self):
        self.expect(404, "HEAD", "/queues/work")
        ids = self.fill(2)
        self.assertEqual(self.call("POST", "/queues/work/claims?limit=5",
                                   {"ttl": 60, "grace": 60}).status, 201)
        self.expect(204, "POST", "/queues/work/claims", {"ttl": 60, "grace": 60})
        shown = self.expect(200, "GET", "/queues/work/messages?include_claimed=true&echo=true"
                            "&limit=10").json["messages"]
        self.assertEqual(len(shown), 2)
        self.expect(204, "DELETE", "/queues/work/messages?ids=" + ",".join(ids))

    def test_a_claim_from_claiming_to_release(self):
        self.fill(2)
        response = self.expect(201, "POST", "/queues/work/claims", {"ttl": 60, "grace": 60})
        claim_id = response.json[0]["href"].split("claim_id=")[-1]
        claim = self.expect(200, "GET", "/queues/work/claims/" + claim_id).json
        self.assertEqual(urllib.parse.urlparse(claim["href"]).path.rsplit("/", 1)[-1], claim_id)
        message = urllib.parse.urlparse(claim["messages"][0]["href"])
        self.assertEqual(message.query.split("claim_id=")[-1], claim_id)
        self.expect(204, "PATCH", "/queues/work/claims/" + claim_id, {"ttl": 300})
        # Renewing the grace alone is what its update_claim(grace=...) sends; v1 needs a ttl.
        self.expect(400, "PATCH", "/queues/work/claims/" + claim_id, {"grace": 300})
        self.expect(204, "DELETE", "/queues/work/messages/%s?claim_id=%s"
                    % (message.path.rsplit("/", 1)[-1], claim_id))
        self.expect(204, "DELETE", "/queues/work/claims/" + claim_id)

    def test_the_home_document_without_a_slash_is_not_found(self):
        home = self.endpoint.rsplit("/", 1)[0]
        usual = self.headers(CLIENT_ID)
        self.assertEqual(self.send("GET", home, None, usual).status, 404)
        self.assertIn("rel/claim", self.send("GET", home + "/", None, usual)
                      .json["resources"])


class Jclouds(RackspaceCase):
    """jclouds: openstack-marconi."""

    def headers(self, client_id):
        """Claims are sent as a text of no particular type."""
        return {"User-Agent": "jclouds/1.9.1 java/1.8", "X-Auth-Token": self.token,
                "Accept": "application/json", "Content-Type": "application/unknown",
                "Client-ID": client_id}

    @staticmethod
    def id_of(href):
        return href.split("?")[0].rsplit("/", 1)[1]

    def test_a_stream_is_followed_by_marker_and_limit(self):
        self.fill(12)
        bodies, query = [], "limit=5&echo=true"
        while True:
            response = self.call("GET", "/queues/work/messages?" + query)
            if response.status == 204:
                break
            bodies += [message["body"] for message in response.json["messages"]]
            self.assertEqual([link["rel"] for link in response.json["links"]], ["next"])
            following = urllib.parse.parse_qs(
                urllib.parse.urlsplit(response.json["links"][0]["href"]).query)
            query = urllib.parse.urlencode(
                [("marker", following["marker"][0]), ("limit", following["limit"][0]),
                 ("echo", following["echo"][0])])
        self.assertEqual(bodies, ["m%d" % n for n in range(12)])

    def test_a_claim_from_claiming_to_release(self):
        ids = self.fill(3)
        claimed = self.expect(201, "POST", "/queues/work/claims?limit=2",
                              {"ttl": 300, "grace": 100}, WORKER_ID).json
        self.assertEqual([self.id_of(m["href"]) for m in claimed], ids[:2])
        claim_id = urllib.parse.parse_qs(
            urllib.parse.urlsplit(claimed[0]["href"]).query)["claim_id"][0]
        claim = self.expect(200, "GET", "/queues/work/claims/" + claim_id).json
        self.assertEqual(self.id_of(claim["href"]), claim_id)
        self.expect(204, "DELETE", "/queues/work/messages/%s?claim_id=%s" % (ids[0], claim_id))
        self.expect(204, "DELETE", "/queues/work/claims/" + claim_id)
        self.expect(204, "DELETE", "/queues/work/messages?ids=%s,%s" % (ids[1], ids[2]))


if __name__ == "__main__":
    unittest.main()
