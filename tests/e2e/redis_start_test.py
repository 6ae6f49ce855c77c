#!/usr/bin/python3
"""A store on Redis, at start: what is refused and with what advice, and what is taken.

    redis_start_test.py CLAIMD

Needs redis-server.
"""

import os
import signal
import socket
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import Server  # noqa: E402
from on_redis import (SECRET, SECRET_IN_URL, SLOW_TO_LOAD, Api, RedisCase, fill,  # noqa: E402
                      is_loading)
from redis_nodes import Cluster, eventually, free_port  # noqa: E402


class Somewhere(RedisCase):
    """Nothing is there, or it is not Redis."""

    def test_no_server_listens(self):
        address = "127.0.0.1:%d" % free_port()
        self.refused("redis://" + address, "store: ", "refused", address)
        path = os.path.join(self.folder, "nobody")
        self.refused("redis+unix://" + path, "store: ", "No such file", path)

    def test_one_of_the_hosts_is_enough(self):
        node = self.node()
        url = "redis://127.0.0.1:%d,127.0.0.1:%d" % (free_port(), node.port)
        self.assert_well(self.serve(url))

    def test_the_log_names_the_server(self):
        node = self.node()
        line = self.serve(node.url()).server.logged("store kind=redis")
        self.assertIn('server="%s"' % node.server(), line)

    def test_a_name_that_does_not_resolve(self):
        self.refused("redis://nobody.invalid", "store: ", "nobody.invalid")

    def against(self, speak):
        """The refusal where speak(socket) responses."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def serve():
                while True:
                    try:
                        with listener.accept()[0] as other:
                            other.settimeout(10)
                            other.recv(1000)
                            speak(other)
                    except OSError:
                        return

            thread = threading.Thread(target=serve)
            thread.start()
            line = self.refused("redis://127.0.0.1:%d?patience_ms=100&confirm_ms=100"
                                % listener.getsockname()[1], "store: ")
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
        return line

    def test_another_server_listens(self):
        self.against(lambda other: other.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
        self.against(lambda other: None)
        self.against(lambda other: other.sendall(b"*2\r\n*-1\r\n:5\r\n"))
        self.against(lambda other: other.sendall(b"*0\r\n"))
        self.against(lambda other: other.sendall(b"$3\r\nabc\r\n"))
        self.against(lambda other: other.sendall(
            b"*1\r\n*3\r\n:0\r\n:99999\r\n*2\r\n$1\r\na\r\n:1\r\n"))
        self.against(lambda other: other.sendall(b"-ERR whatever\r\n"))

    def test_a_silent_server(self):
        line = self.against(lambda other: other.recv(1000))
        self.assertIn("not respond", line)


class Words(RedisCase):
    """The URL or an option is invalid: an error without a connection to any process."""

    def assert_nonsense(self, url, *parts, options=()):
        line = self.refused(url, *parts, options=options, secret=SECRET_IN_URL)
        ended = self.tried("--check-config", "--store", url, *options)
        self.assertEqual((ended.returncode, ended.stderr.strip()), (2, line))

    def test_urls(self):
        """unit/redis/url_test has all that can be wrong."""
        login = "u:%s@" % SECRET_IN_URL
        for url, *parts in (
                ("rediss://%sh:1" % login, "TLS", "stunnel"), ("redis", "redis://"),
                ("redis://%sh:x" % login, "HOST"), ("redis://%s@h" % SECRET_IN_URL, ":password"),
                ("redis://%sh?replicas=17" % login, "replicas")):
            with self.subTest(url=url):
                self.assert_nonsense(url, "store", *parts)

    def test_a_url_may_be_long(self):
        """Some hosts with long names; the others are found through them."""
        hosts = ",".join("redis-%d.eu-central-1.example.net:6379" % i for i in range(3))
        for url in ("redis://" + hosts, "redis://u:%s@h" % ("%C3%BC" * 20)):
            ended = self.tried("--check-config", "--store", url)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_an_url_that_is_changed_while_it_serves(self):
        """Logged, but not what it was or is."""
        node = self.node()
        path = self.file("claimd.conf", "store = %s\nlisten = 127.0.0.1:0\n" % node.url())
        with Server("--config", path, listen=None) as server:
            self.file("claimd.conf", "store = redis://u:%s@h\nlisten = 127.0.0.1:0\n"
                      % SECRET_IN_URL)
            server.signal(signal.SIGHUP)
            self.assertIn("store", server.logged("restart_needed"))
            self.assertNotIn(SECRET_IN_URL, "".join(server.log))
            self.assert_well(Api(server))

    def test_options_that_contradict_each_other(self):
        url = "redis://u:%s@h" % SECRET_IN_URL
        for options, *parts in (
                (("--journal", self.folder), "journal", "Redis"),
                (("--ci",), "ci", "memory"),
                (("--project-max-messages", "5"), "project_max_messages", "Redis"),
                (("--project-max-queues", "5"), "project_max_queues", "Redis"),
                (("--project-max-bytes", "5K"), "project_max_bytes", "Redis"),
                (("--store-threads", "0"), "store-threads")):
            with self.subTest(options=options):
                self.assert_nonsense(url, *parts, options=options)
        self.assert_nonsense("memory", "store_password_file", options=(
            "--store-password-file", self.file("password", "x")))

    def test_checks_without_redis_name_the_option(self):
        address = "127.0.0.1:%d" % free_port()
        for url in ("redis://" + address, "redis://:x@%s?replicas=2" % address, "redis://h",
                    "redis://u:%s@[::1]:7000,h,h:1?unsafe=1" % SECRET_IN_URL,
                    "redis+unix:///nobody?restarts=held&confirm_ms=5&patience_ms=0"):
            ended = self.tried("--check-config", "--store", url)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            self.assertIn("is good", ended.stdout)
        ended = self.tried("--print-config", "--store", "redis://" + address)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertIn("\nstore = redis://%s " % address, ended.stdout)
        path = self.file("claimd.conf", ended.stdout)
        ended = self.tried("--config", path, "--check-config")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        for option in ("--help", "--version"):
            ended = self.tried(option, "--store", "redis://" + address)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))


class Login(RedisCase):
    def setUp(self):
        super().setUp()
        self.redis = self.node(requirepass=SECRET)
        self.address = self.redis.address()

    def say(self, *words):
        with self.redis.connect() as speaker:
            speaker.say("AUTH", SECRET)
            return speaker.say(*words)

    def test_the_right_password(self):
        self.assert_well(self.serve("redis://:%s@%s" % (SECRET_IN_URL, self.address)))
        self.assert_well(self.serve("redis://default:%s@%s" % (SECRET_IN_URL, self.address)))
        path = self.file("password", SECRET + "\n")
        self.assert_well(self.serve("redis://" + self.address, "--store-password-file", path))
        # That in the file counts: so the URL may name a user.
        self.assert_well(self.serve("redis://default:x@" + self.address,
                                    "--store-password-file", path))

    def test_a_wrong_password_and_none(self):
        wrong = SECRET_IN_URL + "x"
        self.refused("redis://:%s@%s" % (wrong, self.address), "password", self.address,
                     secret=wrong)
        self.refused("redis://nobody:%s@%s" % (wrong, self.address), "password", self.address,
                     secret=wrong)
        self.refused("redis://" + self.address, "uthentication", self.address)
        path = self.file("password", "wrong wrong")
        self.refused("redis://" + self.address, "password", self.address, secret="wrong wrong",
                     options=("--store-password-file", path))

    def test_a_password_file_that_is_none(self):
        for path, part in ((self.file("open", SECRET, 0o644), "chmod o-rwx"),
                           (os.path.join(self.folder, "nobody"), "No such file"),
                           (self.folder, "directory")):
            self.refused("redis://" + self.address, "store_password_file", path, part,
                         options=("--store-password-file", path), secret=SECRET)

    def test_a_user_with_a_name(self):
        self.say("ACL", "SETUSER", "a:b@ä", "on", ">" + SECRET, "~claimd:*", "&claimd:*",
                 "+@all")
        self.say("ACL", "SETUSER", "default", "off")
        self.assert_well(self.serve("redis://a%%3Ab%%40%%c3%%a4:%s@%s"
                                    % (SECRET_IN_URL, self.address)))
        path = self.file("password", SECRET)
        self.assert_well(self.serve("redis://a%3Ab%40%C3%A4:@" + self.address,
                                    "--store-password-file", path))
        self.refused("redis://a%%3Ab%%40:%s@%s" % (SECRET_IN_URL, self.address), "password",
                     secret=SECRET_IN_URL)

    def test_a_user_with_too_few_rights(self):
        """Rights without those that docs/security.md requires."""
        self.say("ACL", "SETUSER", "app", "on", ">" + SECRET, "~claimd:*", "&claimd:*",
                 "+@all", "-@dangerous", "-@admin", "+info", "+cluster|slots",
                 "+cluster|shards", "+cluster|info")
        api = self.serve("redis://app:%s@%s" % (SECRET_IN_URL, self.address))
        api.server.logged("appendfsync")  # which it may not look at
        self.assert_well(api)
        self.say("ACL", "SETUSER", "deaf", "on", ">" + SECRET, "~*", "+@all", "-info")
        self.refused("redis://deaf:%s@%s" % (SECRET_IN_URL, self.address), "info",
                     secret=SECRET)

    def test_a_user_without_rights_to_channels(self):
        """As it is with a new user without rules about channels."""
        self.say("ACL", "SETUSER", "app", "on", ">" + SECRET, "resetchannels", "~claimd:*",
                 "+@all")
        url = "redis://app:%s@%s" % (SECRET_IN_URL, self.address)
        try:
            api = self.serve(url)
        except RuntimeError:
            self.refused(url, "channel", secret=SECRET)
            return
        waiting = threading.Thread(target=api.response, args=(
            "POST", "q/claims", {}, ("Prefer: wait=2",)))
        waiting.start()
        api.await_waiter()
        response = api.try_post("q", "once")
        waiting.join()
        self.assertEqual((response.status, api.bodies("q")), (201, ["once"]))

    def test_the_password_is_changed_while_it_serves(self):
        api = self.serve("redis://:%s@%s?patience_ms=200" % (SECRET_IN_URL, self.address))
        self.assert_well(api)
        with self.redis.connect() as speaker:
            speaker.say("AUTH", SECRET)
            speaker.say("CONFIG", "SET", "requirepass", "other")
            speaker.say("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            self.assert_unavailable(api.try_post("q", 1))
            self.assertEqual(api.health(), 503)
            self.assert_alive(api)
            speaker.say("CONFIG", "SET", "requirepass", SECRET)
        self.becomes_well(api)
        self.assertNotIn(SECRET, "".join(api.server.log))
        self.assertNotIn(SECRET_IN_URL, "".join(api.server.log))


class Alone(RedisCase):
    """One Redis, which is no cluster."""

    def test_it_warns_of_settings_that_lose_changes(self):
        for config, *warnings in (
                ({}, "without replicas"), ({"appendonly": "no"}, "append-only"),
                ({"appendfsync": "everysec"}, "appendfsync", "restarts=held")):
            api = self.serve(self.node(**config).url())
            self.assert_well(api)
            for warning in warnings:
                api.server.logged(warning)

    def test_replicas_are_required_and_it_is_no_cluster(self):
        """No change would ever be confirmed."""
        self.refused(self.node().url(replicas=1), "replicas")

    def test_a_replica(self):
        primary = self.node()
        replica = self.node(replicaof="%s %d" % (primary.host, primary.port))
        eventually(lambda: replica.info("replication")["master_link_status"] == "up",
                   "it is in step")
        self.refused(replica.url(), "replica", "primary", replica.address())
        # A primary with a replica is a Redis that others can take over from by hand.
        self.assert_well(self.serve(primary.url(replicas=1)))
        self.refused(primary.url(replicas=2), "replicas")

    def test_one_that_throws_keys_away(self):
        node = self.node(maxmemory="100mb", maxmemory_policy="allkeys-lru")
        for policy in ("allkeys-lru", "volatile-ttl", "allkeys-random"):
            node.say("CONFIG", "SET", "maxmemory-policy", policy)
            self.refused(node.url(), "noeviction", node.address())
            self.refused(node.url(unsafe=1), "noeviction", node.address())
        node.say("CONFIG", "SET", "maxmemory-policy", "noeviction")
        self.assert_well(self.serve(node.url()))

    def test_one_that_is_still_loading(self):
        node = self.node(**SLOW_TO_LOAD)
        fill(node)
        node.restart(wait=False)
        eventually(lambda: is_loading(node), "it loads")
        self.refused(node.url(), "loading")
        eventually(lambda: not is_loading(node), "it has loaded")
        self.assert_well(self.serve(node.url()))

    def test_names_and_addresses_of_hosts(self):
        node = self.node(bind="127.0.0.1 -::1")
        for host in ("localhost", "127.1", "[::1]" if socket.has_ipv6 else "127.0.0.1"):
            self.assert_well(self.serve("redis://%s:%d" % (host, node.port)))

    def test_a_cluster_that_is_not_made_yet(self):
        self.refused(self.node(cluster_enabled="yes").url(), "slots")

    def test_a_unix_socket(self):
        node = self.node(socket=True)
        api = self.serve(node.url())
        self.assert_well(api)
        self.assertIn(node.socket + ": ", api.server.logged("without replicas"))


class Shards(RedisCase):
    """A cluster of three primaries, each with a replica."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(primaries=3, replicas_each=1)
        cls.addClassCleanup(cls.cluster.stop)

    def set(self, node, name, value):
        """Until the test ends."""
        before = node.say("CONFIG", "GET", name)[1]
        node.say("CONFIG", "SET", name, value)
        self.addCleanup(node.say, "CONFIG", "SET", name, before)

    def assert_objection(self, *parts, **parameters):
        """It is refused, and with unsafe=1 endpoint of only."""
        self.refused(self.cluster.url(**parameters), "unsafe=1", *parts)
        api = self.serve(self.cluster.url(**parameters, unsafe=1))
        for part in parts:
            api.server.logged(part)
        return api

    def test_the_store_is_named(self):
        self.assert_well(self.serve(self.cluster.url()))
        self.assert_well(self.serve(self.cluster.url(replicas=1)))
        for node in self.cluster.nodes:  # any will do, a replica too
            self.assert_well(self.serve(node.url(replicas=1)))

    def test_nodes_that_are_named_by_name_or_without_a_host(self):
        first = self.cluster.nodes[0]
        for node in self.cluster.nodes:
            self.set(node, "cluster-announce-hostname", "localhost")
        for kind, endpoint in (("hostname", "localhost"), ("unknown-endpoint", None)):
            for node in self.cluster.nodes:
                self.set(node, "cluster-preferred-endpoint-type", kind)
            eventually(lambda endpoint=endpoint: all(part[2][0] == endpoint for part in
                                                     first.say("CLUSTER", "SLOTS")), "all know it")
            if endpoint is None:  # then all have the host of the URL, or none
                self.assertEqual({node.host for node in self.cluster.nodes}, {first.host})
            api = self.serve(first.url())
            for i in range(20):
                self.assert_well(api, "queue-%d" % i)

    def test_more_replicas_are_required_than_there_are(self):
        api = self.assert_objection("1 replica", "says 2", replicas=2)
        self.assert_unavailable(api.try_post("q", 1))  # it is never confirmed

    def test_fewer_replicas_are_required_than_there_are(self):
        self.assert_objection("1 replica", "says 0", replicas=0)

    def test_a_node_without_append_only_file(self):
        for node in (self.cluster.primaries()[1],
                     self.cluster.replicas_of(self.cluster.primaries()[2])[0]):
            with self.subTest(node=node):
                self.set(node, "appendonly", "no")
                self.assert_objection("append-only", "appendonly yes", node.address())
                node.say("CONFIG", "SET", "appendonly", "yes")
                eventually(lambda node=node: node.info("persistence")[
                    "aof_rewrite_in_progress"] == "0", "it is written")

    def test_a_node_that_does_not_sync_at_once(self):
        for node in (self.cluster.primaries()[2],
                     self.cluster.replicas_of(self.cluster.primaries()[0])[0]):
            with self.subTest(node=node):
                self.set(node, "appendfsync", "everysec")
                self.assert_objection("appendfsync", "restarts=held", node.address())
                self.assert_well(self.serve(self.cluster.url(restarts="held")))
                node.say("CONFIG", "SET", "appendfsync", "always")

    def test_a_node_that_throws_keys_away(self):
        for node in (self.cluster.primaries()[0],
                     self.cluster.replicas_of(self.cluster.primaries()[1])[0]):
            with self.subTest(node=node):
                self.set(node, "maxmemory", "100mb")
                self.set(node, "maxmemory-policy", "allkeys-lfu")
                self.refused(self.cluster.url(), "noeviction", node.address())
                node.say("CONFIG", "SET", "maxmemory-policy", "noeviction")

    def test_replicas_that_take_over_although_they_were_away(self):
        for node in (self.cluster.primaries()[0],
                     self.cluster.replicas_of(self.cluster.primaries()[1])[0]):
            with self.subTest(node=node):
                self.set(node, "cluster-replica-validity-factor", "0")
                self.assert_objection("validity-factor", node.address())
                node.say("CONFIG", "SET", "cluster-replica-validity-factor", "10")


class TwoReplicas(RedisCase):
    """One primary with two replicas."""

    def test_the_url_must_require_both(self):
        with Cluster(primaries=1, replicas_each=2) as cluster:
            self.refused(cluster.url(replicas=1), "2 replicas", "says 1", "unsafe=1")
            self.refused(cluster.url(), "2 replicas")
            api = self.serve(cluster.url(replicas=2))
            self.assert_well(api)
            self.end(api.server)


if __name__ == "__main__":
    unittest.main()
