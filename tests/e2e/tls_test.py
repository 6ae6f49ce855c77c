#!/usr/bin/python3
"""TLS: what is served over it, who is turned away, and certificates that change.

    tls_test.py CLAIMD

http_test.py with --tls tests the behavior that is the same with and without TLS.
"""

import contextlib
import json
import os
import resource
import signal
import socket
import ssl
import sys
import threading
import unittest
import warnings

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import (RESTLESS, Client, Refusals, Server, Workshop, becomes_idle,  # noqa: E402
                     descriptors, eventually, post, processor_s, request, run, stand_still,
                     trusting)

from certificates import RSA, openssl  # noqa: E402

SHOP = Workshop()
unittest.addModuleCleanup(SHOP.close)
PAIR = SHOP.signed("server")
TRUST = trusting(PAIR.certificate)
VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


class Secure(Server):
    """A server whose first listener speaks TLS."""

    def __init__(self, *options, pair=PAIR, listen="tls:127.0.0.1:0", **more):
        super().__init__(*pair.options(), *options, listen=listen, **more)
        self.context = trusting(pair.certificate)

    def connect(self, context=None):
        return Client(*self.endpoint(), context=context or self.context)

    def raw(self):
        return Client(*self.endpoint())


def hello(context=TRUST):
    """The first words of a handshake."""
    outgoing = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def shown(server):
    """The certificate that a new connection is shown."""
    return ssl.get_server_certificate(("127.0.0.1", server.port))


def text(path):
    with open(path, encoding="ascii") as file:
        return file.read()


class Served(unittest.TestCase):
    def test_every_verb_in_either_version(self):
        for pair in (PAIR, SHOP.signed("rsa", algorithm=RSA)):
            with Secure(pair=pair) as server:
                self.assertRegex(server.ready, r"^claimd listening on https://127.0.0.1:\d+\n$")
                for version in VERSIONS:
                    context = trusting(pair.certificate, version)
                    with server.connect(context) as client:
                        self.assertEqual(client.socket.selected_alpn_protocol(), "http/1.1")
                        self.walk(client)

    def walk(self, client):
        def fetch(method, path, body=None, headers=()):
            client.send(request(method, "/v2/queues" + path, body, headers))
            return client.response(head_only=method == "HEAD")

        self.assertEqual(fetch("PUT", "/q").status, 201)
        self.assertEqual(fetch("POST", "/q/messages", b'{"messages":[{"body":7}]}').status, 201)
        patch = ("Content-Type: application/openstack-messaging-v2.0-json-patch",)
        self.assertEqual(fetch("PATCH", "/q", b'[{"op":"add","path":"/metadata/a","value":1}]',
                               patch).status, 200)
        claim = fetch("POST", "/q/claims", b"{}")
        self.assertEqual(json.loads(claim.body)["messages"][0]["body"], 7)
        path = claim.headers["location"][len("/v2/queues"):]
        self.assertEqual(fetch("GET", path).status, 200)
        client.send(request("HEAD", "/v2/ping"))
        self.assertEqual(client.response(head_only=True).status, 204)
        self.assertEqual(fetch("OPTIONS", "").status, 200)
        self.assertEqual(fetch("DELETE", "/q").status, 204)

    def test_a_waiter_that_disconnects_claims_nothing(self):
        with Secure("--access-log") as server:
            for end in ("close", "reset", "unwrap"):
                with server.connect() as worker:
                    worker.send(request("POST", "/v2/queues/%s/claims" % end, b"{}",
                                        headers=("Prefer: wait=30",)))
                    self.assertEqual(server.fetch("GET", "/v2/ping").status, 204)
                    if end == "unwrap":
                        worker.socket.settimeout(0)
                        with contextlib.suppress(OSError):
                            worker.socket.unwrap()
                    getattr(worker, "reset" if end == "reset" else "close")()
                server.logged("path=/v2/queues/%s/claims" % end)
                self.assertEqual(server.fetch("POST", "/v2/queues/%s/messages" % end,
                                              b'{"messages":[{"body":1}]}').status, 201)
                claimed = server.fetch("POST", "/v2/queues/%s/claims" % end, b"{}")
                self.assertEqual(claimed.status, 201)

    def test_large_bodies_and_responses_to_slow_readers(self):
        body = b'{"messages":[{"body":"%s"}]}' % (b"x" * 262000)
        with Secure("--max-messages-post-size", "1M") as server, server.connect() as client:
            for _ in range(4):
                client.send(request("POST", "/v2/queues/q/messages", body))
                self.assertEqual(client.response().status, 201)
            slow = [server.connect() for _ in range(8)]
            for reader in slow:
                reader.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 131072)
                reader.send(request("GET", "/v2/queues/q/messages?limit=10&echo=true"))
            self.assertEqual(server.fetch("GET", "/v2/ping").status, 204)
            for reader in slow:
                response = reader.response()
                self.assertGreater(len(response.body), 1000000)
                self.assertEqual(len(json.loads(response.body)["messages"]), 4)
                reader.close()

    def test_the_identity_stub_names_itself_as_it_is_reached(self):
        with Secure("--identity-stub", listen="tls:127.0.0.1:0, 127.0.0.1:0") as server:
            plain = server.process.stdout.readline().rsplit(":", 1)[1]
            response = server.fetch("GET", "/identity/v3")
            self.assertIn(b'"https://localhost/identity/v3', response.body)
            with Client(socket.AF_INET, ("127.0.0.1", int(plain))) as client:
                client.send(request("GET", "/identity/v3"))
                self.assertIn(b'"http://localhost/identity/v3', client.response().body)

    def test_a_unix_socket_may_have_it_too(self):
        with Secure(listen="tls:unix:" + SHOP.path("socket")) as server:
            self.assertEqual(server.fetch("GET", "/v2/ping").status, 204)


class Refused(unittest.TestCase, Refusals):
    @classmethod
    def setUpClass(cls):
        cls.server = Secure("--access-log", "--max-header-size", "2K")

    @classmethod
    def tearDownClass(cls):
        with cls.server:
            pass

    def test_heads_get_responses(self):
        line = b"POST /v2/queues/q/messages HTTP/1.1\r\nHost: localhost\r\n"
        self.assert_refused(line + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400)
        self.assert_refused(line + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
                            400)
        self.assert_refused(line + b"A: " + b"x" * 2000 + b"\r\n\r\n", 431)
        self.assert_refused(b"GET /" + b"x" * 2500 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414)
        self.assert_refused(request("POST", "/v2/queues/q/messages", b"x" * 3000000), 400)

    def test_requests_with_a_broken_head_or_body_are_not_processed(self):
        line = b"POST /v2/queues/q/messages HTTP/1.1\r\nHost: localhost\r\n"
        for length in (b"+3", b"x", b"", b"3, 3"):
            self.assert_refused(line + b"Content-Length: " + length + b"\r\n\r\nabc", 400)
        self.assert_refused(line + b"Content-Length: 99999999999999999999999\r\n\r\nabc",
                            (400, 413))
        chunked = line + b"Transfer-Encoding: chunked\r\n\r\n"
        self.assert_refused(chunked + b"3\nabc\r\n0\r\n\r\n", 400)
        self.assert_refused(chunked + (b"ffff\r\n" + b"x" * 65535 + b"\r\n") * 40, 400)
        self.assert_refused(chunked + b"xyz\r\n", 400)

    def test_a_request_that_does_not_get_whole_ends(self):
        with Secure("--request-seconds", "1") as server, server.connect() as client:
            client.send(post("q")[:-1])
            self.assertEqual(client.last_response().status, 408)
            self.assertEqual(server.fetch("GET", "/v2/ping").status, 204)

    def test_old_versions(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are deprecated: that is the point
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        with self.assertRaises(ssl.SSLError):
            self.server.connect(context)
        # SSL 3.0: version, 32 random bytes, no session, a suite, no compression
        offer = b"\x03\x00" + bytes(range(32)) + b"\x00\x00\x02\x00\x2f\x01\x00"
        offer = b"\x01" + len(offer).to_bytes(3, "big") + offer
        with self.server.raw() as client:
            client.send(b"\x16\x03\x00" + len(offer).to_bytes(2, "big") + offer)
            self.assertRegex(client.rest(), rb"^(\x15...\x02..)*$")  # alerts, at most
        self.assertEqual(self.server.fetch("GET", "/v2/ping").status, 204)

    def test_weak_ciphers(self):
        for cipher in ("AES128-SHA", "AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA"):
            context = trusting(PAIR.certificate, ssl.TLSVersion.TLSv1_2)
            context.set_ciphers(cipher + ":@SECLEVEL=0")
            with self.assertRaises(ssl.SSLError, msg=cipher):
                self.server.connect(context)

    def test_plain_http_and_noise(self):
        with Secure("--idle-seconds", "1") as server:
            for data in (post("q"), b"GET / HTTP/1.0\r\n\r\n", bytes(1000),
                         b"\x16\x03\x01\xff\xff" + b"x" * 70000,
                         b"\x16\x03\x01\x00\x05hello"):
                with server.raw() as client:
                    with contextlib.suppress(ConnectionError):
                        client.send(data)
                    self.assertNotIn(b"HTTP", client.rest())
            self.assertEqual(server.fetch("GET", "/v2/ping").status, 204)

    def test_tls_where_there_is_none(self):
        with Server() as server:
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                Client(*server.endpoint(), context=TRUST)
            with server.connect() as client:
                client.send(hello())
                response = client.rest()
                self.assertTrue(response == b"" or b" 400 " in response, response)
            self.assertEqual(server.fetch("GET", "/v2/ping").status, 204)

    def test_garbage_behind_a_handshake(self):
        with self.server.connect() as client:
            client.send(post("q"))
            self.assertEqual(client.response().status, 201)
            raw = socket.socket(fileno=os.dup(client.socket.fileno()))
            with raw:
                raw.sendall(b"\x17\x03\x03\x00\x20" + b"z" * 32)
            self.assertEqual(client.rest(), b"")
        self.assertEqual(self.server.fetch("GET", "/v2/ping").status, 204)


class Crowd(unittest.TestCase):
    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def test_too_many_connections_are_closed(self):
        with Secure("--max-connections", "2") as server:
            with server.connect() as first, server.raw():
                first.send(post("q"))
                self.assertEqual(first.response().status, 201)
                with self.assertRaises((ssl.SSLError, ConnectionError)):
                    server.connect()
                server.logged("refusing_connections")

            def served():
                with contextlib.suppress(OSError):
                    return server.fetch("GET", "/v2/ping").status == 204
                return False
            eventually(served)

    def test_half_handshakes_cost_nothing_and_end(self):
        with Secure("--idle-seconds", "20") as server:
            before = descriptors(server)
            words = hello()
            with server.connect() as client:
                crowd = []
                for i in range(1000):
                    other = server.raw()
                    other.send(words[:(0, 3, 100, len(words))[i % 4]])
                    crowd.append(other)
                    if i % 100 == 0:
                        client.send(post("q"))
                        self.assertEqual(client.response().status, 201)
                eventually(lambda: descriptors(server) > before + 1000)
                self.assertTrue(RESTLESS or becomes_idle(server))
                used = processor_s(server)
                client.send(post("q"))
                self.assertEqual(client.response().status, 201)
                self.assertLess(processor_s(server) - used, 0.5)
                for other in crowd:
                    self.assertNotIn(b"HTTP", other.rest())
                    other.close()
            eventually(lambda: descriptors(server) <= before)

    def test_a_disconnected_client_gets_no_handshake(self):
        words = hello()

        def cost(server, leave):
            """The processor time for 300 who say hello at once, and then leave() or stay."""
            before, used = descriptors(server), processor_s(server)
            stand_still(server)
            crowd = [server.raw() for _ in range(300)]
            for other in crowd:
                other.send(words)
                leave(other)
            server.signal(signal.SIGCONT)
            server.fetch("GET", "/v2/ping")  # a client behind them all
            for other in crowd:
                if other.socket.fileno() >= 0:
                    other.socket.recv(1)
                    other.close()
            eventually(lambda: descriptors(server) <= before)
            return processor_s(server) - used

        with Secure() as server:
            served = cost(server, lambda other: None)
            self.assertLess(3 * cost(server, lambda other: other.reset()), served)
            self.assertLess(3 * cost(server, lambda other: other.close()), served)
            self.assertEqual(server.fetch("GET", "/v2/ping").status, 204)

    def test_many_handshakes_at_once(self):
        with Secure() as server:
            with server.connect() as client:
                crowd = [server.raw() for _ in range(300)]
                words = hello()
                for other in crowd:
                    other.send(words)
                client.send(post("q"))
                self.assertEqual(client.response().status, 201)
                for other in crowd:
                    self.assertEqual(other.socket.recv(1), b"\x16")
                    other.close()
            self.assertEqual(server.fetch("GET", "/v2/ping").status, 204)


class Drain(unittest.TestCase):
    def test_handshakes_do_not_keep_it_and_requests_are_finished(self):
        with Secure("--drain-seconds", "3600") as server, server.connect() as client, \
                server.raw() as half, server.raw() as silent, server.connect() as idle:
            half.send(hello())
            self.assertEqual(half.socket.recv(1), b"\x16")
            idle.send(request("GET", "/v2/ping"))
            self.assertEqual(idle.response().status, 204)
            client.send(post("q")[:-1])
            self.assertEqual(server.fetch("GET", "/v2/ping").status, 204)
            server.signal()
            server.logged("draining")
            self.assertEqual(idle.socket.recv(10), b"")  # an end in the words of TLS
            self.assertNotIn(b"HTTP", half.rest())
            self.assertEqual(silent.rest(), b"")
            client.send(post("q")[-1:])
            response = client.response()
            self.assertEqual((response.status, response.headers["connection"]), (201, "close"))
            self.assertEqual(server.wait(), 0)

    def test_one_that_waits_gets_a_response(self):
        with Secure("--drain-seconds", "3600") as server, server.connect() as client:
            client.send(request("POST", "/v2/queues/q/claims", b"{}",
                                headers=("Prefer: wait=30",)))
            self.assertEqual(server.fetch("GET", "/v2/ping").status, 204)
            server.signal()
            self.assertEqual(client.last_response().status, 204)
            self.assertEqual(server.wait(), 0)


class Certificates(unittest.TestCase):
    def complains(self, words, certificate, key):
        for check in ((), ("--check-config",)):
            ended = run("--listen", "tls:127.0.0.1:0", "--tls-certificate", certificate,
                        "--tls-key", key, *check)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertIn(words, ended.stderr)

    def test_unusable_certificates_are_refused_at_start(self):
        other = SHOP.signed("other")
        ca = SHOP.signed("some-ca", ca=True)
        below = SHOP.signed("below", by=ca)
        self.complains("does not belong to the first certificate", PAIR.certificate, other.key)
        self.complains("No such file", SHOP.path("none"), PAIR.key)
        self.complains("No such file", PAIR.certificate, SHOP.path("none"))
        self.complains("tls_certificate and tls_key", "none", "none")
        self.complains("tls_certificate and tls_key", PAIR.certificate, "none")
        self.complains("certificate cannot be read", PAIR.key, PAIR.key)
        self.complains("key cannot be read", PAIR.certificate,
                       SHOP.file("no.key", text(PAIR.certificate)))
        self.complains("out of order",
                       SHOP.file("mixed", text(PAIR.certificate) + text(ca.certificate)),
                       PAIR.key)
        self.complains("does not belong to the first certificate of the chain",
                       SHOP.file("reversed", text(below.certificate) + text(ca.certificate)),
                       ca.key)
        self.complains("chmod o-rwx", PAIR.certificate,
                       SHOP.file("open.key", text(PAIR.key), mode=0o644))
        openssl("pkey", "-in", PAIR.key, "-aes128", "-passout", "pass:x", "-out",
                SHOP.path("encrypted.key"))
        os.chmod(SHOP.path("encrypted.key"), 0o600)
        self.complains("encrypted", PAIR.certificate, SHOP.path("encrypted.key"))

    def test_a_chain_is_shown_whole(self):
        root = SHOP.signed("root", ca=True)
        middle = SHOP.signed("middle", by=root, ca=True)
        leaf = SHOP.signed("leaf", by=middle)
        leaf.certificate = SHOP.file("chain.crt",
                                     text(leaf.certificate) + text(middle.certificate))
        with Secure(pair=leaf) as server, server.connect(trusting(root.certificate)) as client:
            client.send(request("GET", "/v2/ping"))
            self.assertEqual(client.response().status, 204)

    def test_one_that_has_expired_is_only_warned_of(self):
        with Secure(pair=SHOP.signed("late", days=-1)) as server:
            self.assertIn(" warn ", server.logged("certificate_not_valid"))
            with self.assertRaises(ssl.SSLCertVerificationError):
                server.connect()

    def test_another_pair_is_taken_and_connections_stay(self):
        pair = SHOP.signed("changing")
        new = SHOP.signed("changed")
        old = text(pair.certificate)
        with Secure(pair=pair) as server, server.connect() as client, server.raw() as half:
            half.send(hello(server.context))  # it has the old one to its end
            self.assertEqual(half.socket.recv(1), b"\x16")
            client.send(post("q"))
            self.assertEqual(client.response().status, 201)
            pair.overwrite(new)
            self.assertEqual(shown(server), old)
            server.signal(signal.SIGHUP)
            server.logged("reloaded")
            self.assertEqual(shown(server), text(new.certificate))
            client.send(post("q"))
            self.assertEqual(client.response().status, 201)

    def test_a_pair_that_does_not_fit_leaves_the_old_one(self):
        pair = SHOP.signed("staying")
        old = text(pair.certificate)
        tokens = SHOP.file("tokens", "")
        with Secure("--auth", "tokens", "--tokens", tokens, pair=pair) as server:
            os.replace(SHOP.key("strange"), pair.key)
            digest = "%064x" % 1
            SHOP.file("tokens", "a admin * never sha256:%s\n" % digest)
            server.signal(signal.SIGHUP)
            line = server.logged("reload_failed")
            self.assertIn("does not belong to the first certificate", line)
            self.assertEqual(shown(server), old)
            pair.overwrite(SHOP.signed("fitting"))
            SHOP.file("tokens", "nonsense\n")
            server.signal(signal.SIGHUP)
            server.logged("NAME ROLE PROJECTS")
            self.assertEqual(shown(server), old)  # all or nothing
            SHOP.file("tokens", "a admin * never sha256:%s\n" % digest)
            server.signal(signal.SIGHUP)
            server.logged("reloaded tokens=1")
            self.assertEqual(shown(server), text(pair.certificate))

    def test_reloading_under_load_drops_no_connection(self):
        pairs = [SHOP.signed("turn%d" % i) for i in range(2)]
        pair = SHOP.signed("turning")
        both = SHOP.file("both.crt", "".join(text(p.certificate) for p in [pair] + pairs))
        context = trusting(both)
        with Secure(pair=pair) as server:
            stop, failures, count = threading.Event(), [], [0]

            def connect():
                try:
                    while not stop.is_set():
                        with server.connect(context) as client:
                            for _ in range(3):
                                client.send(post("q"))
                                assert client.response().status == 201
                            count[0] += 1
                except (OSError, EOFError, AssertionError) as error:
                    failures.append(error)

            threads = [threading.Thread(target=connect) for _ in range(6)]
            for thread in threads:
                thread.start()
            for turn in range(20):
                pair.overwrite(pairs[turn % 2])
                server.signal(signal.SIGHUP)
                eventually(lambda n=turn: failures or sum(
                    "reloaded" in line for line in server.log) > n)
                before = count[0]
                eventually(lambda n=before: failures or count[0] > n + 5)
            stop.set()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])


if __name__ == "__main__":
    unittest.main()
