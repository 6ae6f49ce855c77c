#!/usr/bin/python3
"""python3-zaqarclient as Debian ships it, with API v1, v1.1 and v2.

    zaqarclient_test.py CLAIMD
"""

import json
import tempfile
import threading
import unittest

from client_case import CLIENT_ID, ClientCase, need

need("python3-zaqarclient")
from zaqarclient.errors import ZaqarError  # noqa: E402
from zaqarclient.queues import client as zaqar  # noqa: E402
from zaqarclient.transport import errors  # noqa: E402

OTHER_ID = "8ec0a5ba-65ad-43e6-8af8-ac4e0e8c6b1e"


def no_auth(project="demo"):
    return {"auth_opts": {"backend": "noauth", "options": {"os_project_id": project}},
            "client_uuid": CLIENT_ID}


class EachVersion:
    """Operations of all versions of the API."""

    version = None

    def setUp(self):
        try:
            zaqar.Client("http://127.0.0.1:1", version=self.version, conf=no_auth())
        except ZaqarError:
            self.skipTest("this release of zaqarclient knows no version %s" % self.version)
        super().setUp()

    def connect(self, conf=None):
        return zaqar.Client(self.server.url, version=self.version, conf=conf or no_auth())

    def queues(self, client, **filters):
        """The listing of queues: v2 gives it together with their number."""
        listing = client.queues(**filters)
        return listing[0] if isinstance(listing, tuple) else listing

    @staticmethod
    def id_of(message):
        return message.id if hasattr(message, "id") else message._id

    def fill(self, count):
        """A queue with messages whose bodies are numbered, and another client's view of it."""
        self.connect().queue("jobs", force_create=True).post(
            [{"body": {"job": n}, "ttl": 300} for n in range(count)])
        conf = no_auth()
        conf["client_uuid"] = OTHER_ID
        return self.connect(conf).queue("jobs")

    def test_queues_are_made_listed_and_deleted(self):
        client = self.connect()
        for name in ("alpha", "beta", "gamma"):
            client.queue(name, force_create=True)
        names = [q.name for q in self.queues(client, limit=2).stream()]
        self.assertEqual(names, ["alpha", "beta", "gamma"])
        client.queue("beta").delete()
        left = self.queues(client, detailed=True)
        self.assertEqual([q.name for q in left], ["alpha", "gamma"])

    def test_messages_are_posted_listed_fetched_and_deleted(self):
        queue = self.fill(3)
        messages = list(queue.messages())
        self.assertEqual([m.body for m in messages], [{"job": 0}, {"job": 1}, {"job": 2}])
        self.assertEqual([m.ttl for m in messages], [300] * 3)
        ids = [self.id_of(m) for m in messages]
        self.assertEqual(queue.message(ids[1]).body, {"job": 1})
        self.assertEqual([m.body for m in queue.messages(ids[0], ids[2])],
                         [{"job": 0}, {"job": 2}])
        messages[0].delete()
        queue.delete_messages(*ids[1:])
        self.assertEqual(list(queue.messages()), [])

    def test_pages_of_messages_are_followed_to_the_end(self):
        queue = self.fill(25)
        bodies = [m.body["job"] for m in queue.messages(limit=10).stream()]
        self.assertEqual(bodies, list(range(25)))

    def test_a_client_sees_its_own_messages_with_echo_only(self):
        self.fill(2)
        queue = self.connect().queue("jobs")
        self.assertEqual(list(queue.messages()), [])
        self.assertEqual(len(list(queue.messages(echo=True))), 2)

    def test_a_claim_lives_from_claiming_to_release(self):
        queue = self.fill(3)
        claim = queue.claim(ttl=60, grace=60, limit=2)
        held = list(claim)
        self.assertEqual([m.body["job"] for m in held], [0, 1])
        self.assertEqual({m.claim_id for m in held}, {claim.id})
        claim.update(ttl=120, grace=60)
        again = queue.claim(id=claim.id)
        self.assertEqual((again.ttl, again.age), (120, 0))
        self.assertEqual(len(list(again)), 2)
        held[0].delete()
        claim.delete()
        self.assertEqual([m.body["job"] for m in queue.claim(ttl=60, grace=60)], [1, 2])
        self.assertEqual(list(queue.claim(ttl=60, grace=60)), [])

    def test_a_late_worker_gets_an_error(self):
        queue = self.fill(1)
        claim = queue.claim(ttl=60, grace=60)
        message, = claim
        claim.delete()
        queue.claim(ttl=60, grace=60)
        with self.assertRaisesRegex(errors.MalformedRequest, "does not hold"):
            message.delete()

    def test_it_polls_beside_workers_that_wait(self):
        """Each message is for one of them, and the library knows nothing of the waiting."""
        jobs, waited, polled = 40, [], []

        def wait_for_jobs():
            connection = self.server.connect()
            while True:
                connection.request("POST", "/v2/queues/jobs/claims?limit=1", '{"ttl": 60}',
                                   {"Client-ID": CLIENT_ID, "X-Project-ID": "demo",
                                    "Prefer": "wait=2"})
                response = connection.getresponse()
                text = response.read()
                if response.status == 204:
                    break
                waited.append(json.loads(text)["messages"][0]["body"]["job"])
            connection.close()

        queue = self.connect().queue("jobs", force_create=True)
        workers = [threading.Thread(target=wait_for_jobs) for _ in range(3)]
        for worker in workers:
            worker.start()
        for n in range(jobs):
            queue.post([{"body": {"job": n}, "ttl": 300}])
            if n % 4 == 3:
                polled += [m.body["job"] for m in queue.claim(ttl=60, grace=60, limit=5)]
        for worker in workers:
            worker.join()
        polled += [m.body["job"] for m in queue.claim(ttl=60, grace=60)]
        self.assertEqual(sorted(waited + polled), list(range(jobs)))
        self.assertTrue(waited)

    def test_statistics_count_free_and_claimed(self):
        queue = self.fill(3)
        queue.claim(ttl=60, grace=60, limit=1)
        counts = queue.stats["messages"]
        self.assertEqual((counts["free"], counts["claimed"], counts["total"]), (2, 1, 3))

    def test_errors_are_those_the_library_knows(self):
        with self.assertRaises(errors.MalformedRequest) as caught:
            self.fill(1).claim(ttl=1, grace=60)
        self.assertIn("Invalid API request", str(caught.exception))
        with self.assertRaises(errors.ResourceNotFound):
            self.fill(1).message("nosuch")

    def test_it_logs_in_at_the_identity_stub(self):
        logins = {"v2.0": {}, "v3": {"os_user_domain_id": "default",
                                     "os_project_domain_id": "default"}}
        for keystone, domains in logins.items():
            with self.subTest(keystone=keystone):
                options = {"os_username": "ann", "os_password": "x",
                           "os_project_name": "p-" + self.version_name,
                           "os_auth_url": self.identity, **domains}
                client = zaqar.Client(version=self.version,
                                      conf={"auth_opts": {"backend": "keystone",
                                                          "options": options}})
                client.queue("q", force_create=True)
                self.assertEqual([q.name for q in self.queues(client)], ["q"])
        self.assertEqual(list(self.queues(self.connect())), [])

    @property
    def version_name(self):
        return str(self.version)


class Version1(EachVersion, ClientCase):
    version = 1

    def test_a_queue_exists_or_not(self):
        queue = self.connect().queue("q")
        self.assertTrue(queue.exists())
        queue.delete()
        self.assertFalse(queue.exists())

    def test_metadata_is_replaced(self):
        queue = self.connect().queue("q")
        self.assertEqual(queue.metadata({"color": "red"}), {"color": "red"})
        self.assertEqual(queue.metadata({"size": 1}), {"size": 1})
        self.assertEqual(queue.metadata(force_reload=True), {"size": 1})

    def test_health(self):
        self.assertTrue(self.connect().health())


class Version11(EachVersion, ClientCase):
    version = 1.1

    def test_messages_are_popped(self):
        self.assertEqual([m.body["job"] for m in self.fill(3).pop(2)], [0, 1])

    def test_metadata_is_read(self):
        self.assertEqual(self.connect().queue("q", force_create=True).metadata(), {})


class Version2(EachVersion, ClientCase):
    version = 2
    options = ("--identity-stub", "--admin-mode", "--enable-checksum")

    def test_messages_are_popped(self):
        self.assertEqual([m.body["job"] for m in self.fill(3).pop(2)], [0, 1])

    def test_metadata_is_changed_member_by_member(self):
        queue = self.connect().queue("q", force_create=True)
        queue.metadata({"color": "red", "_default_message_ttl": 120})
        shown = queue.metadata(force_reload=True)
        self.assertEqual((shown["color"], shown["_default_message_ttl"]), ("red", 120))

    def test_a_queue_is_purged(self):
        queue = self.fill(3)
        queue.purge(resource_types=["messages"])
        self.assertEqual(queue.stats["messages"]["total"], 0)

    def test_a_subscription_is_made_listed_changed_and_deleted(self):
        client = self.connect()
        hook, mail = "https://ann:word@example.org/hook", "mailto:ann@example.org"
        one = client.subscription("jobs", subscriber=hook, ttl=600, options={"a": 1})
        two = client.subscription("jobs", subscriber=mail, ttl=600)
        self.assertEqual([q.name for q in self.queues(client)], ["jobs"])
        self.assertEqual(client.subscription("jobs", subscriber=hook, ttl=60).id, one.id)
        one.update({"ttl": 1200, "options": {"b": 2}})
        shown = client.subscription("jobs", id=one.id)
        self.assertEqual((shown.subscriber, shown.ttl, shown.age, shown.options, shown.confirmed),
                         (hook, 1200, 0, {"b": 2}, False))
        listed = list(client.subscriptions("jobs", limit=1).stream())
        self.assertEqual([s.id for s in listed], [one.id, two.id])
        one.delete()
        self.assertEqual([s.subscriber for s in client.subscriptions("jobs")], [mail])
        with self.assertRaises(errors.ResourceNotFound):
            client.subscription("jobs", id=one.id)
        with self.assertRaisesRegex(errors.MalformedRequest, "subscriber_types"):
            client.subscription("jobs", subscriber="ftp://example.org", ttl=60)

    def test_a_queue_is_purged_of_its_subscriptions(self):
        queue = self.fill(3)
        self.connect().subscription("jobs", subscriber="http://example.org", ttl=60)
        queue.purge(resource_types=["subscriptions"])
        self.assertEqual(list(self.connect().subscriptions("jobs")), [])
        self.assertEqual(queue.stats["messages"]["total"], 3)

    def test_queues_are_counted_and_filtered(self):
        client = self.connect()
        for name in ("red", "blue"):
            client.queue(name, force_create=True).metadata({"color": name})
        queues, count = client.queues(with_count=True)
        self.assertEqual((sorted(q.name for q in queues), count), (["blue", "red"], 2))
        self.assertEqual([q.name for q in self.queues(client, color="red")], ["red"])

    def test_delayed_messages_are_not_claimed(self):
        queue = self.connect().queue("q")
        queue.post([{"body": 1, "ttl": 900, "delay": 600}])
        self.assertEqual(list(queue.claim(ttl=60, grace=60)), [])
        self.assertEqual(len(list(queue.messages(echo=True, include_delayed=True))), 1)

    def test_a_checksum_comes_with_each_message(self):
        message, = self.fill(1).messages()
        self.assertRegex(message.checksum, "^MD5:[0-9a-f]{32}$")

    def test_ping_health_and_home(self):
        client = self.connect()
        self.assertTrue(client.ping())
        self.assertTrue(client.health()["storage_reachable"])
        self.assertIn("rel/claim", client.homedoc()["resources"])


class Grants(ClientCase):
    """Pre-signed URLs: who holds one needs no credentials, and gets nowhere else."""

    def setUp(self):
        with tempfile.NamedTemporaryFile("w", encoding="ascii", prefix="claimd-keys-") as keys:
            keys.write("0123456789abcdef" * 2)
            keys.flush()
            self.options = ("--signing-keys", keys.name)
            super().setUp()

    def test_a_client_works_with_what_another_has_signed(self):
        giver = zaqar.Client(self.server.url, version=2, conf=no_auth())
        giver.queue("jobs", force_create=True)
        grant = giver.queue("jobs").signed_url(paths=["messages", "claims"], ttl_seconds=600,
                                               methods=["GET", "POST", "DELETE"])
        holder = zaqar.Client(self.server.url, version=2, conf={
            "client_uuid": OTHER_ID,
            "auth_opts": {"backend": "signed-url",
                          "options": {**grant, "os_project_id": grant["project"]}}})
        # Making or showing the queue itself is not part of the grant.
        queue = holder.queue("jobs", auto_create=False)
        queue.post([{"body": "by grant", "ttl": 300}])
        claim = queue.claim(ttl=60, grace=60)
        message, = claim
        self.assertEqual(message.body, "by grant")
        message.delete()
        with self.assertRaises(errors.ResourceNotFound):
            list(holder.queue("others", auto_create=False).messages())


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # the libraries leave connections to the collector
