#!/usr/bin/python3
"""Records of TLS: any cut into records, packets and reads gives the same requests and responses.

    tls_records_test.py CLAIMD

claimd reads what a socket has, keeps what GnuTLS has not taken, and sends the head of a response
with its body. No byte may be left behind, also when no further byte makes an event.
"""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import (PATIENCE_S, Client, Server, Workshop, descriptors, eventually,  # noqa: E402
                     post, request, stand_still, trusting)

SHOP = Workshop()
unittest.addModuleCleanup(SHOP.close)
PAIR = SHOP.signed("server")
VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
PING = request("GET", "/v2/ping")
STATS = request("GET", "/v2/queues/q/stats")


class Secure(Server):
    def connect(self):
        return Client(*self.endpoint(), context=trusting(PAIR.certificate))


class Cutter(Client):
    """A client that chooses where its records and packets end."""

    def __init__(self, server, version=ssl.TLSVersion.TLSv1_3, receive_bytes=None, piece=1 << 20):
        self.piece = piece
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = trusting(PAIR.certificate, version)
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        self.raw = socket.socket()
        self.raw.settimeout(PATIENCE_S)
        self.raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receive_bytes is not None:
            self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.raw.connect(server.endpoint()[1])
        self.socket, self.pending = self.raw, b""
        self.transfer(self.tls.do_handshake)

    def transfer(self, step):
        while True:
            try:
                result = step()
                self.send_raw(self.outgoing.read())
                return result
            except ssl.SSLWantReadError:
                self.send_raw(self.outgoing.read())
                data = self.raw.recv(65536)
                if data:
                    self.incoming.write(data)
                else:
                    self.incoming.write_eof()

    def records(self, *texts):
        """Each text as a record of its own."""
        for text in texts:
            self.tls.write(text)
        return self.outgoing.read()

    def send_raw(self, data):
        for at in range(0, len(data), self.piece):
            self.raw.sendall(data[at:at + self.piece])

    def send(self, data):
        self.send_raw(self.records(data))

    def _more(self):
        try:
            data = self.transfer(lambda: self.tls.read(65536))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            data = b""
        self.pending += data
        return bool(data)

    def statuses(self, count):
        return [self.response().status for _ in range(count)]


class Records(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Secure(*PAIR.options(), "--workers", "1", listen="tls:127.0.0.1:0").__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)

    def cutters(self, **more):
        for version in VERSIONS:
            with Cutter(self.server, version, **more) as client:
                yield client

    def test_many_requests_in_one_record(self):
        for client in self.cutters():
            client.send(STATS * 100)  # more than the memory of a connection
            self.assertEqual(client.statuses(100), [200] * 100)
            client.send(PING)
            self.assertEqual(client.response().status, 204)

    def test_many_records_in_one_packet(self):
        for client in self.cutters():
            client.send_raw(client.records(*[post("q"), STATS, PING] * 30))
            self.assertEqual(client.statuses(90), [201, 200, 204] * 30)

    def test_a_request_in_many_records(self):
        for client in self.cutters():
            text = post("q")
            client.send_raw(client.records(*[text[i:i + 1] for i in range(len(text))]))
            self.assertEqual(client.response().status, 201)

    def test_handshake_and_requests_byte_by_byte(self):
        for client in self.cutters(piece=1):
            client.send(post("q"))
            client.send(STATS)
            self.assertEqual(client.statuses(2), [201, 200])

    def test_a_record_that_waits_for_its_end(self):
        for client in self.cutters():
            both = client.records(STATS, PING)
            for cut in (3, 5, 6, 100, len(both) - 1):
                client.send_raw(both[:cut])
                self.assertEqual(self.server.fetch("GET", "/v2/ping").status, 204)
                client.send_raw(both[cut:])
                self.assertEqual(client.statuses(2), [200, 204])
                both = client.records(STATS, PING)
            client.send_raw(both)
            self.assertEqual(client.statuses(2), [200, 204])

    def test_large_records_behind_each_other(self):
        body = b'{"messages":[{"ttl":300,"body":"%s"}]}' % (b"x" * 40000)
        for client in self.cutters():
            client.send(post("large", body) * 8)
            self.assertEqual(client.statuses(8), [201] * 8)

    def test_input_of_a_suspended_connection_is_read_later(self):
        claim = request("POST", "/v2/queues/later/claims", b"{}", headers=("Prefer: wait=60",))
        waiting = b'claimd_http_requests_parked{reason="message"} 1\n'
        for client in self.cutters():
            client.send_raw(client.records(claim, STATS, PING))
            for _ in range(3):  # others use the buffer meanwhile
                self.assertEqual(self.server.fetch("GET", "/v2/ping").status, 204)
            eventually(lambda: waiting in self.server.fetch("GET", "/metrics").body)
            self.assertEqual(self.server.fetch("POST", "/v2/queues/later/messages",
                                               b'{"messages":[{"body":1}]}').status, 201)
            self.assertEqual(client.statuses(3), [201, 200, 204])

    def test_a_slow_reader_gets_every_response(self):
        texts = [chr(ord("a") + i) * 1000 for i in range(20)]
        body = json.dumps({"messages": [{"ttl": 300, "body": text} for text in texts]}).encode()
        listing = request("GET", "/v2/queues/listed/messages?limit=20&echo=true")
        with Cutter(self.server) as writer:
            writer.send(post("listed", body))
            self.assertEqual(writer.response().status, 201)
        for client in self.cutters(receive_bytes=4096):
            client.raw.setblocking(False)
            left = client.records(*[listing, PING] * 400)  # responses of 8 MB
            try:
                while left:
                    left = left[client.raw.send(left):]
            except BlockingIOError:
                pass  # both sides of the connection are full
            client.raw.settimeout(PATIENCE_S)
            self.assertEqual(self.server.fetch("GET", "/v2/ping").status, 204)
            for _ in range(400):
                if left:
                    client.raw.setblocking(False)
                    try:
                        left = left[client.raw.send(left):]
                    except BlockingIOError:
                        pass
                    client.raw.settimeout(PATIENCE_S)
                response = client.response()
                messages = json.loads(response.body)["messages"]
                self.assertEqual([message["body"] for message in messages], texts)
                self.assertEqual(client.response().status, 204)
            self.assertEqual(left, b"")

    def test_clients_that_close_in_the_middle(self):
        before = descriptors(self.server)
        for client in self.cutters():
            client.send_raw(client.records(post("q"))[:-1])
        for client in self.cutters():
            client.send_raw(client.records(STATS, STATS, STATS[:-5]))
            client.reset()
        for client in self.cutters(receive_bytes=4096):
            client.send(request("GET", "/v2/queues/listed/messages?limit=20&echo=true") * 50)
        eventually(lambda: descriptors(self.server) <= before)
        self.assertEqual(self.server.fetch("GET", "/v2/ping").status, 204)

    def test_requests_before_the_end_of_input_are_served(self):
        for client in self.cutters():
            client.send_raw(client.records(post("q"), STATS))
            client.raw.shutdown(socket.SHUT_WR)
            self.assertEqual(client.statuses(2), [201, 200])
            self.assertEqual(client.rest(), b"")
        for client in self.cutters():
            with self.assertRaises(ssl.SSLWantReadError):
                client.tls.unwrap()
            client.send_raw(client.outgoing.read())
            while client.raw.recv(4096):
                pass  # until the server has closed, too

    def unread(self):
        """Bytes in the kernel that the server has not read."""
        with open("/proc/net/tcp", encoding="ascii") as table:
            rows = [line.split() for line in table][1:]
        return sum(int(row[4].split(":")[1], 16) for row in rows
                   if row[1].endswith(":%04X" % self.server.port) and row[3] == "01")

    def test_a_request_right_behind_a_key_update(self):
        command = ["openssl", "s_client", "-connect", "127.0.0.1:%d" % self.server.port, "-tls1_3"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, bufsize=0) as client:
            self.addCleanup(client.kill)
            client.stdin.write(PING)
            self.read_until(client, b"HTTP/1.1 204")
            stand_still(self.server)
            try:
                client.stdin.write(b"k\n")
                self.read_until(client, b"KEYUPDATE")
                client.stdin.write(PING)
                eventually(lambda: self.unread() > len(PING))
            finally:
                self.server.signal(signal.SIGCONT)
            self.read_until(client, b"HTTP/1.1 204")
            client.kill()

    def read_until(self, client, text):
        data = b""
        while text not in data:
            more = os.read(client.stdout.fileno(), 65536)
            self.assertTrue(more, data)
            data += more


if __name__ == "__main__":
    unittest.main()
