#!/usr/bin/python3
"""The message proxy of python3-openstacksdk as Debian ships it.

    openstacksdk_test.py CLAIMD
"""

import unittest

from client_case import CLIENT_ID, ClientCase, need

need("python3-openstacksdk")
import openstack  # noqa: E402
from openstack import exceptions  # noqa: E402
from openstack.message.v2.claim import Claim  # noqa: E402


class OpenstackSdk(ClientCase):
    def setUp(self):
        super().setUp()
        self.cloud = openstack.connect(
            auth_url=self.identity, username="ann", password="x", project_name="demo",
            user_domain_id="default", project_domain_id="default",
            region_name="RegionOne", load_envvars=False, load_yaml_config=False)
        self.addCleanup(self.cloud.close)
        self.queues = self.cloud.message

    def post(self, count):
        self.queues.create_queue(name="jobs")
        return self.queues.post_message(
            "jobs", [{"body": {"job": n}, "ttl": 300} for n in range(count)])

    # create_claim() and get_claim() of 0.101 and 4.20 stumble over an attribute `location` of
    # their own, whatever the server says. The resource of 4.4 never learns its id. An href has it.
    def claim(self, **more):
        claim = Claim.new(queue_name="jobs", ttl=60, grace=60, **more).create(self.queues)
        return claim, claim.messages[0]["href"].split("claim_id=")[1]

    def show(self, claim_id):
        return Claim.new(queue_name="jobs", id=claim_id).fetch(self.queues)

    def test_it_finds_the_service_and_version_2_by_discovery(self):
        self.assertEqual(self.queues.get_endpoint().rstrip("/"), self.server.url + "/v2")
        self.assertEqual(self.cloud.current_project_id, "demo")

    def test_queues_are_made_shown_listed_and_deleted(self):
        for name in ("alpha", "beta"):
            self.queues.create_queue(name=name, description="of " + name)
        self.assertEqual([q.name for q in self.queues.queues()], ["alpha", "beta"])
        self.assertEqual(self.queues.get_queue("alpha").description, "of alpha")
        self.queues.delete_queue("alpha", ignore_missing=False)
        self.assertEqual([q.name for q in self.queues.queues()], ["beta"])

    def test_messages_are_posted_listed_fetched_and_deleted(self):
        hrefs = self.post(3)
        ids = [href.rsplit("/", 1)[1] for href in hrefs]
        self.assertEqual([m.body["job"] for m in self.queues.messages("jobs")], [0, 1, 2])
        self.assertEqual(self.queues.get_message("jobs", ids[1]).body, {"job": 1})
        self.queues.delete_message("jobs", ids[0], ignore_missing=False)
        self.assertEqual([m.id for m in self.queues.messages("jobs")], ids[1:])

    def test_pages_of_messages_are_followed_to_the_end(self):
        self.post(12)
        jobs = [m.body["job"] for m in self.queues.messages("jobs", limit=5)]
        self.assertEqual(jobs, list(range(12)))

    def test_a_claim_lives_from_claiming_to_release(self):
        self.post(2)
        claim, claim_id = self.claim(client_id=CLIENT_ID)
        self.assertEqual([m["body"]["job"] for m in claim.messages], [0, 1])
        shown = self.show(claim_id)
        self.assertEqual((shown.ttl, len(shown.messages)), (60, 2))
        self.queues.update_claim("jobs", claim_id, ttl=300, grace=60)
        self.assertEqual(self.show(claim_id).ttl, 300)
        done = claim.messages[0]["id"]
        self.queues.delete_message("jobs", done, claim=claim_id, ignore_missing=False)
        self.queues.delete_claim("jobs", claim_id, ignore_missing=False)
        left, _ = self.claim()
        self.assertEqual([m["body"]["job"] for m in left.messages], [1])

    def test_a_limit_which_stands_in_the_body_counts(self):
        self.post(3)
        self.assertEqual(len(self.claim(limit=2)[0].messages), 2)

    def test_a_limit_above_the_maximum_claims_the_maximum(self):
        self.post(21)
        self.assertEqual(len(self.claim(limit=100)[0].messages), 20)

    def test_subscriptions_are_made_shown_listed_and_deleted(self):
        hooks = ["https://example.org/%d" % n for n in range(5)]
        made = [self.queues.create_subscription("jobs", subscriber=hook, ttl=600,
                                                options={"a": 1}) for hook in hooks]
        shown = self.queues.get_subscription("jobs", made[1].subscription_id)
        self.assertEqual((shown.subscriber, shown.ttl, shown.options, shown.source),
                         (hooks[1], 600, {"a": 1}, "jobs"))
        self.assertEqual([s.subscriber for s in self.queues.subscriptions("jobs", limit=2)],
                         hooks)
        self.queues.delete_subscription("jobs", made[0].subscription_id, ignore_missing=False)
        self.assertEqual([s.subscriber for s in self.queues.subscriptions("jobs")], hooks[1:])

    def test_errors_are_those_the_library_knows(self):
        self.post(1)
        with self.assertRaises(exceptions.NotFoundException):
            self.queues.get_message("jobs", "nosuch")
        with self.assertRaises(exceptions.BadRequestException) as caught:
            Claim.new(queue_name="jobs", ttl=1, grace=60).create(self.queues)
        self.assertRegex(caught.exception.request_id, "^req-[0-9a-f-]{36}$")


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # the libraries leave connections to the collector
