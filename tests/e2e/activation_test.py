#!/usr/bin/python3
"""Socket activation: listening sockets that another process made, and keeps across restarts.

    activation_test.py CLAIMD

The test is the supervisor: it holds the sockets, and hands them to a claimd as systemd
does (LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES; the first is descriptor 3).
"""

import contextlib
import fcntl
import os
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import (CLAIMD, PATIENCE_S, Client, Server, Workshop, environment,  # noqa: E402
                     eventually, post, request, trusting)

FAR = 50  # where the sockets are kept until the shell puts them in their places


def listening(family=socket.AF_INET, address=("127.0.0.1", 0), kind=socket.SOCK_STREAM):
    made = socket.socket(family, kind)
    made.bind(address)
    if kind == socket.SOCK_STREAM:
        made.listen(1000)
    return made


def command(sockets, pid="$$"):
    """A shell that becomes claimd with these sockets; what it is started with otherwise."""
    far = [fcntl.fcntl(one, fcntl.F_DUPFD, FAR) for one in sockets]
    moves = " ".join("%d<&%d %d<&-" % (3 + i, fd, fd) for i, fd in enumerate(far))
    script = 'export LISTEN_PID=%s; exec "$0" "$@" %s' % (pid, moves)
    return ["/bin/bash", "-c", script, CLAIMD], far


def variables(count, names):
    more = {"LISTEN_FDS": str(count)}
    if names is not None:
        more["LISTEN_FDNAMES"] = names
    return environment(**more)


@contextlib.contextmanager
def activated(sockets, *options, names=None):
    words, far = command(sockets)
    try:
        server = Server(*words[1:], *options, program=words[0], listen=None, pass_fds=far,
                        env=variables(len(sockets), names))
    finally:
        for fd in far:
            os.close(fd)
    with server:
        yield server


def refused(sockets, *options, names=None, count=None):
    """The error of claimd when it refuses the sockets."""
    words, far = command(sockets)
    try:
        ended = subprocess.run([*words, *options], capture_output=True, text=True,
                               timeout=PATIENCE_S, check=False, pass_fds=far,
                               env=variables(len(sockets) if count is None else count, names))
    finally:
        for fd in far:
            os.close(fd)
    return ended


def fetch(one, data):
    with Client(one.family, one.getsockname()) as client:
        client.send(data)
        return client.response()


class Taken(unittest.TestCase):
    def test_it_listens_there_and_nowhere_else(self):
        for names in (None, "api", "claimd.socket", "unknown", ""):
            with listening() as one, activated([one], "--listen", "127.0.0.1:1",
                                               names=names) as server:
                self.assertEqual(server.port, one.getsockname()[1])
                self.assertEqual(fetch(one, post("q")).status, 201)

    def test_the_name_says_what_for(self):
        with listening() as api, listening() as metrics, \
                activated([metrics, api], names="metrics:api"):
            self.assertEqual(fetch(api, post("q")).status, 201)
            self.assertEqual(fetch(metrics, post("q")).status, 404)
            self.assertEqual(fetch(metrics, request("GET", "/readyz")).status, 200)

    def test_one_for_tls_needs_a_certificate(self):
        with Workshop() as shop, listening() as one:
            pair = shop.signed("server")
            with activated([one], *pair.options(), names="tls"), \
                    Client(one.family, one.getsockname(), trusting(pair.certificate)) as client:
                client.send(post("q"))
                self.assertEqual(client.response().status, 201)
            ended = refused([one], names="tls")
            self.assertEqual(ended.returncode, 2)
            self.assertIn("tls_certificate and tls_key", ended.stderr)

    def test_a_passed_socket_file_is_not_removed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "socket")
            with listening(socket.AF_UNIX, path) as one:
                with activated([one]) as server:
                    self.assertEqual(server.path, path)
                    self.assertEqual(fetch(one, post("q")).status, 201)
                self.assertTrue(os.path.exists(path))

    def test_descriptors_for_another_process_are_left_alone(self):
        words, far = command([], pid="1")
        self.assertEqual(far, [])
        with Server(*words[1:], program=words[0], env=variables(1, None)) as server:
            self.assertEqual(server.fetch("GET", "/v2/ping").status, 204)

    def test_none_at_all_is_no_socket_activation(self):
        for count in ("0", "00"):
            words, _ = command([])
            with Server(*words[1:], program=words[0], env=variables(count, None)) as server:
                self.assertEqual(server.fetch("GET", "/v2/ping").status, 204)

    def test_they_are_neither_blocking_nor_handed_on(self):
        with listening() as one, activated([one]) as server:
            with open("/proc/%d/fdinfo/3" % server.process.pid, encoding="ascii") as info:
                flags = next(int(line.split()[1], 8) for line in info
                             if line.startswith("flags:"))
            self.assertTrue(flags & os.O_NONBLOCK)
            self.assertTrue(flags & os.O_CLOEXEC)


class Refused(unittest.TestCase):
    def complains(self, words, sockets, *options, **more):
        for check in ((), ("--check-config",)):
            ended = refused(sockets, *options, *check, **more)
            self.assertEqual(ended.returncode, 2, ended)
            self.assertIn(words, ended.stderr)

    def test_only_listening_stream_sockets_are_accepted(self):
        with socket.socket() as quiet, open("/dev/null", "rb") as file, \
                listening(kind=socket.SOCK_DGRAM) as datagrams:
            self.complains("descriptor 3 does not listen", [quiet])
            self.complains("descriptor 3 is no socket", [file])
            self.complains("descriptor 3 is not a stream socket", [datagrams])
            self.complains("descriptor 3 is not open", [], count=1)

    def test_names_that_mean_nothing(self):
        with listening() as one, listening() as two:
            self.complains("descriptor 3 is called claimd-x.socket", [one],
                           names="claimd-x.socket")
            self.complains("descriptor 4 is called API", [one, two], names="api:API")

    def test_numbers_that_make_no_sense(self):
        for count in ("9", "-1", "x", "99999999999999999999", ""):
            self.complains('LISTEN_FDS is "%s". It must be 0 to 8' % count, [], count=count)

    def test_one_of_them_is_not_written_to_when_it_is_ready(self):
        with listening() as one:
            self.complains("ready_fd is 3, which is a descriptor of LISTEN_FDS", [one], "--ready-fd", "3")

    def test_passed_sockets_need_auth_or_insecure_listen(self):
        with listening(address=("0.0.0.0", 0)) as one:
            self.complains("every client that reaches", [one])
            self.complains("every client that reaches", [one], names="metrics")
            with activated([one], "--insecure-listen"):
                pass


class Caller(threading.Thread):
    """Posts again and again, on a new connection each time, until it has to stop."""

    def __init__(self, one, stop):
        super().__init__()
        self.one, self.stop = one, stop
        self.responses, self.failure = 0, None

    def run(self):
        try:
            while not self.stop.is_set():
                status = fetch(self.one, post("q", close=True)).status
                if status != 201:
                    raise AssertionError("responded %d" % status)
                self.responses += 1
        except (OSError, EOFError, AssertionError) as error:
            self.failure = error


class Restart(unittest.TestCase):
    def test_connections_made_before_the_start_are_served(self):
        with listening() as one:
            with activated([one]):
                pass
            with Client(one.family, one.getsockname()) as client:
                client.send(post("q"))
                with activated([one]):
                    self.assertEqual(client.response().status, 201)

    def test_no_connection_is_lost_however_often_it_is_restarted(self):
        for make in (listening, None):
            with tempfile.TemporaryDirectory() as folder:
                one = make() if make else listening(socket.AF_UNIX,
                                                    os.path.join(folder, "socket"))
                stop = threading.Event()
                callers = [Caller(one, stop) for _ in range(8)]
                try:
                    for caller in callers:
                        caller.start()
                    for _ in range(5):
                        before = [caller.responses for caller in callers]
                        with activated([one]):
                            eventually(lambda was=before: all(
                                caller.responses >= count + 5 or caller.failure is not None
                                for caller, count in zip(callers, was)))
                    stop.set()
                    with activated([one]):  # for those who still wait
                        for caller in callers:
                            caller.join()
                finally:
                    stop.set()
                    one.close()
                self.assertEqual([caller.failure for caller in callers], [None] * 8)


if __name__ == "__main__":
    unittest.main()
