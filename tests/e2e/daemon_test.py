#!/usr/bin/python3
"""The program around the server: options, readiness, addresses, signals.

    daemon_test.py CLAIMD
"""

import grp
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import (CLAIMD, RESTLESS, Server, becomes_idle, children,  # noqa: E402
                     environment, post, request, run)

GOOD = request("GET", "/v2/queues")


def limit_in(path):
    """The number in a file; none for "max", or if there is no such file."""
    try:
        with open(path, encoding="ascii") as f:
            text = f.read().strip()
    except OSError:
        return []
    return [int(text)] if text.isdigit() else []


def memory():
    """Of the machine, or of a control group that this process is in, if that has less."""
    with open("/proc/meminfo", encoding="ascii") as f:
        found = [1024 * int(re.search(r"^MemTotal: +(\d+) kB$", f.read(), re.M)[1])]
    with open("/proc/self/cgroup", encoding="ascii") as f:
        lines = [line.rstrip("\n").split(":", 2) for line in f]
    for _, controllers, path in lines:
        root, name = ("/sys/fs/cgroup", "memory.max") if controllers == "" else \
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        if controllers == "" or "memory" in controllers.split(","):
            parts = path.strip("/").split("/")
            for end in range(len(parts) + 1):
                found += limit_in("/".join([root, *parts[:end], name]))
    return min(found)


def begin_post(client):
    """Sends most of a request, sees that the server is at it, and returns the rest."""
    data = post("q", headers=["Expect: 100-continue"])
    head = data.index(b"\r\n\r\n") + 4
    client.send(data[:head])
    assert client.interim() == 100
    client.send(data[head:-5])
    return data[-5:]


class Options(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, text):
        path = os.path.join(self.folder.name, "claimd.ini")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def assert_usage_error(self, ended, *parts):
        self.assertEqual(ended.returncode, 2, ended)
        self.assertEqual(ended.stdout, "")
        for part in parts:
            self.assertIn(part, ended.stderr)

    def test_help_and_version_go_to_standard_output(self):
        for words, part in ((("--help",), "--listen ADDRESS"),
                            (("--help", "all"), "--max-claim-ttl SECONDS"),
                            (("--version",), "claimd 0.")):
            ended = run(*words)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            self.assertIn(part, ended.stdout)

    def test_wrong_options_are_usage_errors(self):
        self.assert_usage_error(run("--max-clam-ttl", "5"), "--max-clam-ttl")
        self.assert_usage_error(run("--max-claim-ttl", "soon"), "--max-claim-ttl")
        self.assert_usage_error(run("--max-claim-ttl"), "--max-claim-ttl", "value")
        self.assert_usage_error(run("extra"), "extra")
        self.assert_usage_error(run(env=environment(CLAIMD_MAX_CLAM_TTL="5")),
                                "CLAIMD_MAX_CLAM_TTL")
        self.assert_usage_error(run(env=environment(CLAIMD_WORKERS="many")),
                                "CLAIMD_WORKERS")
        self.assert_usage_error(run("--config", "/nowhere/claimd.ini"),
                                "/nowhere/claimd.ini")

    def test_a_wrong_value_is_shown_with_its_place_and_with_what_is_allowed(self):
        path = self.file("\nlog_level = loud\n")
        ended = run("--workers", "129", "--config", path, env=environment(CLAIMD_SHARDS="x"))
        self.assert_usage_error(
            ended, 'claimd: command line: --workers must be 0 to 128 (received "129")\n',
            'claimd: environment: CLAIMD_SHARDS must be a whole number, 1 to 1024 '
            '(received "x")\n',
            'claimd: %s:2: log_level must be one of error|warn|info|debug (received "loud")\n'
            % path)

    def test_without_max_memory_the_budget_is_half_of_what_there_is(self):
        with Server() as server:
            output = re.search(r" max_memory=(\d+)", server.logged(" started "))
        self.assertEqual(int(output[1]), memory() // 2)
        with Server("--max-memory", "3M") as server:
            self.assertIn(" max_memory=%d" % (3 << 20), server.logged(" started "))

    def test_all_errors_are_reported_at_once(self):
        path = self.file("workrs = 3\nlisten = nonsense\n")
        env = environment(CLAIMD_CONFIG=path, CLAIMD_LOG_LEVEL="loud")
        for check in ((), ("--check-config",)):
            ended = run("--max-claim-ttl", "100", "--workers=many", "--identity-stub",
                        "--identity-users", "/nowhere/users", *check, env=env)
            self.assert_usage_error(ended)
            self.assertEqual([line.replace("command line: ", "").replace("environment: ", "")
                              .split(" ")[1:3] for line in ended.stderr.splitlines()],
                             [[path + ":1:", "workrs"], [path + ":2:", "listen"],
                              ["CLAIMD_LOG_LEVEL", "must"], ["--workers", "must"],
                              ["default_claim_ttl", "(300,"],
                              ["identity_users:", "/nowhere/users:"]], ended.stderr)

    def test_a_list_of_users_that_is_none_is_a_usage_error(self):
        rows = ((self.file("# users\nann:secret\nbob\n\n:x\ncy:1:p\n"), [":3: a line", ":5: a line"]),
                ("/nowhere/users", [": No such file"]), (self.folder.name, [": Is a dir"]))
        for path, parts in rows:
            for check in ((), ("--check-config",)):
                with self.subTest(path=path, check=check):
                    ended = run("--identity-stub", "--identity-users", path, *check)
                    self.assert_usage_error(ended)
                    self.assertEqual(len(ended.stderr.splitlines()), len(parts))
                    for line, part in zip(ended.stderr.splitlines(), parts):
                        self.assertIn("identity_users: " + path + part, line)

    def test_each_file_that_is_named_is_checked(self):
        """Also where it is needed only later, or with another change."""
        empty = self.file("")
        os.chmod(empty, 0o600)
        for option in ("tls-client-ca", "certificates", "policy", "notify-ca",
                       "keystone-ca", "keystone-token-file", "identity-users", "signing-keys",
                       "encryption-keys", "webhook-keys", "seed"):
            with self.subTest(option=option):
                ended = run("--" + option, "/nowhere/file", "--check-config", "--ci")
                self.assert_usage_error(ended, option.replace("-", "_") + ": /nowhere/file: No such")
        for pair in (("/nowhere/cert", empty), (empty, "/nowhere/key"), (empty, empty)):
            with self.subTest(pair=pair):
                ended = run("--tls-certificate", pair[0], "--tls-key", pair[1], "--check-config")
                self.assert_usage_error(ended, "tls_certificate" if pair[1] == empty else "tls_key")
        self.assert_usage_error(run("--tls-key", empty, "--check-config"),
                                "tls_key has no effect without tls_certificate")
        self.assert_usage_error(run("--notify-ca", empty, "--check-config"),
                                "notify_ca: %s has no certificate" % empty)
        self.assert_usage_error(run("--journal", empty, "--check-config"),
                                "journal: %s is not a directory" % empty)
        self.assert_usage_error(run("--journal", "/nowhere/deep/er", "--check-config"),
                                "journal: /nowhere/deep/er cannot be made in /nowhere/deep: "
                                "No such file or directory. Create /nowhere/deep\n")
        ended = run("--journal", self.folder.name + "/new", "--check-config")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_an_option_without_effect_is_warned_of(self):
        rows = ((("--tls-certificate", "/cert"), "tls_certificate", "no address in listen has tls:"),
                (("--socket-mode", "600"), "socket_mode", "listen has no Unix socket"),
                (("--journal-max-bytes", "1G"), "journal_max_bytes", "journal is none"),
                (("--identity-region", "There"), "identity_region", "identity_stub is false"),
                (("--access-log-sample", "5"), "access_log_sample", "access_log is false"),
                (("--keystone-cache-tokens", "77"), None, None),
                (("--socket-mode", "0660", "--journal-max-bytes", "0"), None, None))
        for options, name, why in rows:
            with self.subTest(options=options), Server(*options) as server:
                server.logged(" auth kind=none")
                if name is not None:
                    line = server.logged(" warn option_without_effect option=%s " % name)
                    self.assertIn('set_by="command line" reason="%s' % why, line)
                else:
                    server.signal()
                    server.logged(" stopped ")
                    self.assertNotIn("option_without_effect", "\n".join(server.log))
        path = self.file("\nsocket_mode = 600\n")
        ended = run("--config", path, "--check-config")
        self.assertEqual((ended.returncode, ended.stdout),
                         (0, "claimd: the configuration is good\n"))
        self.assertEqual(ended.stderr, "claimd: warning: socket_mode (%s:2) has no effect: "
                                       "listen has no Unix socket\n" % path)

    def test_the_start_logs_listeners_store_and_authentication(self):
        def shown(*options):
            listen = "127.0.0.1:0, metrics:127.0.0.1:0, unix:%s/socket" % self.folder.name
            with Server("--log-format", "json", *options, listen=listen) as server:
                server.logged('"auth"')
                events = [json.loads(line) for line in server.log]
            self.assertEqual([e["kind"] for e in events if e["event"] == "listening"],
                             ["http", "metrics", "unix"])
            return {e["event"]: e for e in events}

        events = shown()
        self.assertEqual(events["store"]["kind"], "memory")
        self.assertEqual(events["no_journal"]["level"], "warn")
        self.assertIn("a restart loses all messages", events["no_journal"]["warning"])
        self.assertEqual(events["auth"]["kind"], "none")
        self.assertNotIn("journal", events)
        self.assertEqual(events["message_ttl"]["meaning"], "messages without a ttl live 1 hour")
        self.assertEqual(events["message_ttl"]["from"], "default")
        path = os.path.join(self.folder.name, "journal")
        tokens = self.file("")
        os.chmod(tokens, 0o600)
        events = shown("--journal", path, "--auth", "tokens", "--tokens", tokens)
        self.assertEqual(events["journal"]["directory"], path)
        self.assertEqual(events["auth"]["kind"], "tokens")
        self.assertNotIn("no_journal", events)
        self.assertEqual(events["message_ttl"]["seconds"], 1209600)
        self.assertEqual(events["message_ttl"]["meaning"], "messages without a ttl live 14 days")
        self.assertEqual(events["message_ttl"]["from"], "default with a journal")
        events = shown("--ci", "--default-message-ttl", "5400")
        self.assertEqual(events["message_ttl"]["meaning"], "messages without a ttl live 90 minutes")
        self.assertEqual(events["message_ttl"]["from"], "command line")
        self.assertEqual(events["listening"]["test_api"], "yes")
        self.assertEqual(events["no_journal"]["level"], "info")

    def test_tests_are_served_anywhere_if_that_is_meant(self):
        ended = run("--ci", "--listen", "0.0.0.0:0")
        self.assert_usage_error(ended, "ci lets every client move the clock", "ci_anywhere")
        with Server("--ci", "--ci-anywhere", listen="0.0.0.0:0") as server:
            server.logged(' warn ci warning="for tests only')
        with Server("--ci") as server:
            server.logged(' info ci warning="for tests only')

    def test_a_list_of_users_may_be_a_pipe(self):
        reader, writer = os.pipe()
        os.write(writer, b"ann:secret\n")
        os.close(writer)
        with Server("--identity-stub", "--identity-users", "/dev/fd/%d" % reader,
                    pass_fds=[reader]) as server:
            os.close(reader)
            self.assertEqual(server.fetch("GET", "/v2/queues").status, 401)
            login = b"""{"auth": {"passwordCredentials":
                                  {"username": "ann", "password": "secret"}}}"""
            self.assertEqual(server.fetch("POST", "/identity/v2.0/tokens", login).status, 200)

    def test_the_stub_says_what_it_is(self):
        with Server("--identity-stub", "--log-level", "warn") as server:
            server.logged("warn identity_stub warning=\"for development only")
        with Server() as server:
            server.logged("info started")
            server.signal()
            server.logged("info stopped")
            self.assertNotIn("identity_stub", "\n".join(server.log))

    def test_checking_does_not_serve(self):
        ended = run("--check-config")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_variables_that_kubernetes_makes_for_a_service_are_not_options(self):
        env = environment(CLAIMD_SERVICE_HOST="10.0.0.1", CLAIMD_PORT="tcp://10.0.0.1:80",
                          CLAIMD_PORT_80_TCP_ADDR="10.0.0.1")
        self.assertEqual(run("--check-config", env=env).returncode, 0)

    def test_lower_bounds_and_limits_reach_the_api(self):
        with Server("--min-claim-ttl", "1", "--default-message-ttl", "77",
                    "--access-log", "--log-format", "json") as server:
            with server.connect() as client:
                client.send(post("q") + post("q") +
                            request("POST", "/v2/queues/q/claims", b'{"ttl":1}') +
                            request("GET", "/v2/queues/q/messages?echo=true"))
                statuses = [client.response().status for _ in range(3)]
                shown = json.loads(client.response().body)
            self.assertEqual(statuses, [201, 201, 201])
            self.assertEqual(shown["messages"], [])
            line = json.loads(server.logged('"path": "/v2/queues/q/claims"'))
            self.assertEqual((line["method"], line["status"]), ("POST", 201))


class Streams(unittest.TestCase):
    def test_no_file_takes_the_place_of_a_closed_stream(self):
        """Otherwise lines of the log would be written into a file of the journal."""
        reading, writing = os.pipe()
        with tempfile.TemporaryDirectory() as folder:
            with subprocess.Popen(["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh", CLAIMD, "--listen",
                                   "127.0.0.1:0", "--journal", os.path.join(folder, "journal"),
                                   "--ready-fd", str(writing)], pass_fds=(writing,),
                                  env=environment()) as process:
                os.close(writing)
                with os.fdopen(reading) as ready:
                    self.assertIn("listening", ready.readline())
                files = [os.readlink("/proc/%d/fd/%d" % (process.pid, fd)) for fd in range(3)]
                process.terminate()
                self.assertEqual(process.wait(60), 0)
            self.assertEqual(files, 3 * ["/dev/null"])


class Addresses(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "socket")

    def test_the_ready_line_also_goes_to_the_named_descriptor(self):
        reader, writer = os.pipe()
        with Server("--ready-fd", str(writer), pass_fds=[writer]) as server:
            os.close(writer)
            with open(reader, encoding="utf-8") as pipe:
                self.assertEqual(pipe.read(), server.ready)  # and it is closed then

    def test_a_taken_port_says_so(self):
        with Server() as server:
            ended = run("--listen", "127.0.0.1:%d" % server.port)
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertIn("address already in use", ended.stderr)

    def test_an_address_that_cannot_be_had_says_so(self):
        unknown = "x" * 64 + ".invalid:80"  # no part of a name is that long
        for address in ("unix:/nowhere/socket", "192.0.2.1:0", unknown):
            with self.subTest(address=address):
                options = ("--insecure-listen", "--listen", address)
                self.assertEqual(run(*options, "--check-config").returncode, 0)
                ended = run(*options)
                self.assertEqual((ended.returncode, ended.stdout), (1, ""))
                self.assertRegex(ended.stderr, r"^claimd: cannot listen on %s: .+\n$"
                                 % re.escape(address))
        self.assertIn("cannot be looked up", ended.stderr)

    def test_a_port_below_1024_needs_a_right(self):
        if os.getuid() != 0 or limit_in("/proc/sys/net/ipv4/ip_unprivileged_port_start") < [81]:
            self.skipTest("only root can start it without the right, and here all may listen")
        ended = run("--listen", "127.0.0.1:80", user=65534, group=65534, extra_groups=[])
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertIn("cannot listen on 127.0.0.1:80: Permission denied. A port below 1024 needs "
                      "CAP_NET_BIND_SERVICE, or a socket from claimd.socket", ended.stderr)

    @unittest.skipUnless(socket.has_ipv6 and os.path.exists("/proc/net/if_inet6"), "no IPv6")
    def test_ipv6(self):
        with Server(listen="[::1]:0") as server:
            self.assertRegex(server.ready, r"^claimd listening on http://\[::1\]:\d+\n$")
            self.assertEqual(server.fetch("GET", "/v2/queues").status, 200)

    def test_a_unix_socket(self):
        with Server("--access-log", listen="unix:" + self.path) as server:
            self.assertEqual(server.ready, "claimd listening on unix:%s\n" % self.path)
            self.assertEqual(server.fetch("GET", "/v2/queues").status, 200)
            self.assertIn("client=unix", server.logged("path=/v2/queues"))
        self.assertFalse(os.path.exists(self.path))

    def test_a_stale_unix_socket_is_replaced(self):
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(self.path)
        with Server(listen="unix:" + self.path) as server:
            self.assertEqual(server.fetch("GET", "/v2/queues").status, 200)

    def test_a_live_unix_socket_is_left_alone(self):
        with Server(listen="unix:" + self.path) as server:
            ended = run("--listen", "unix:" + self.path)
            self.assertEqual(ended.returncode, 1)
            self.assertIn("address already in use", ended.stderr)
            self.assertEqual(server.fetch("GET", "/v2/queues").status, 200)

    def test_a_unix_socket_that_is_gone_does_not_hold_up_the_end(self):
        with Server(listen="unix:" + self.path) as server:
            os.unlink(self.path)
            self.assertEqual(server.stop(), 0)

    def mode_and_group(self, *options, umask=0o022):
        with Server(*options, listen="unix:" + self.path, umask=umask) as server:
            self.assertEqual(server.fetch("GET", "/v2/queues").status, 200)
            status = os.stat(self.path)
        return "%04o" % stat.S_IMODE(status.st_mode), status.st_gid

    def test_a_unix_socket_has_its_configured_mode_and_group(self):
        """The umask has no effect, in either direction."""
        own = os.getgid()
        for umask in (0, 0o022, 0o777):
            self.assertEqual(self.mode_and_group(umask=umask), ("0660", own))
            self.assertEqual(self.mode_and_group("--socket-mode", "606", umask=umask),
                             ("0606", own))
        for group in {own, *os.getgroups(), *([4711] if os.getuid() == 0 else [])}:
            options = "--socket-mode=0640", "--socket-group", str(group)
            self.assertEqual(self.mode_and_group(*options), ("0640", group))
        name = grp.getgrgid(own).gr_name
        self.assertEqual(self.mode_and_group("--socket-group", name), ("0660", own))

    def test_a_group_that_is_none_is_a_usage_error(self):
        for check in ((), ("--check-config",)):
            ended = run("--socket-group", "no-such-group", *check)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""))
            self.assertEqual(ended.stderr, "claimd: socket_group: there is no group "
                             "no-such-group (command line)\n")

    def test_a_file_that_is_no_socket_is_left_alone(self):
        with open(self.path, "w", encoding="utf-8") as f:
            f.write("precious")
        self.assertEqual(run("--listen", "unix:" + self.path).returncode, 1)
        with open(self.path, encoding="utf-8") as f:
            self.assertEqual(f.read(), "precious")


class Ending(unittest.TestCase):
    def test_idle_connections_do_not_hold_up_the_end(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with Server("--drain-seconds", "3600") as server:
                clients = [server.connect() for _ in range(20)]
                for client in clients[:10]:
                    client.send(GOOD)
                    self.assertEqual(client.response().status, 200)
                server.signal(number)
                self.assertEqual(server.wait(), 0)
                for client in clients:
                    client.rest()  # closed: or this would wait for ever
                    client.close()

    def test_a_request_in_flight_is_finished(self):
        with Server("--drain-seconds", "3600") as server, server.connect() as client:
            rest = begin_post(client)
            other = server.connect()
            other.send(GOOD)
            other.response()
            server.signal()
            server.logged("draining")
            self.assertTrue(other.closed())
            other.close()
            with self.assertRaises(OSError):
                server.connect()
            client.send(rest)
            response = client.response()
            self.assertEqual(response.status, 201)
            self.assertEqual(response.headers["connection"], "close")
            self.assertTrue(client.closed())
            self.assertEqual(server.wait(), 0)

    def test_a_drain_has_an_end(self):
        with Server("--drain-seconds", "1") as server, server.connect() as client:
            begin_post(client)
            server.signal()
            self.assertEqual(server.wait(), 0)
            self.assertIn("requests_cut_off=1", server.logged("stopped"))
            self.assertTrue(client.closed())

    def test_a_signal_a_while_after_the_first_ends_it_at_once(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = Server("--drain-seconds", "3600")
            with server.connect() as client:
                begin_post(client)
                server.signal()
                server.logged("draining")
                time.sleep(1.1)
                server.signal(number)
                self.assertEqual(server.wait(), 128 + number)

    def test_two_signals_at_a_time_do_not_cut_the_drain(self):
        """Both are waiting when the process goes on, so they come together to it."""
        with Server("--drain-seconds", "3600") as server, server.connect() as client:
            rest = begin_post(client)
            for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
                server.signal(number)
            server.logged("draining")
            client.send(rest)
            self.assertEqual(client.response().status, 201)
            self.assertEqual(server.wait(), 0)
            self.assertIn("requests_cut_off=0", server.logged("stopped"))
            server.logged("signal_ignored signal=SIG")

    def test_timeout_does_not_cut_the_drain(self):
        """timeout(1) passes a signal on twice: to its child, then to its group."""
        with Server("3600", CLAIMD, "--drain-seconds", "3600", program="timeout") as server, \
                server.connect() as client:
            rest = begin_post(client)
            server.signal()
            server.logged("draining")
            client.send(rest)
            self.assertEqual(client.response().status, 201)
            self.assertEqual(server.wait(), 0)

    def test_a_reload_that_changes_nothing_ends_nothing(self):
        with Server() as server:
            for _ in range(2):
                server.signal(signal.SIGHUP)
            server.logged(" reloaded ")
            self.assertEqual(server.fetch("GET", "/v2/queues").status, 200)
            server.signal()
            server.signal(signal.SIGHUP)
            self.assertEqual(server.wait(), 0)

    def test_signals_under_load_end_it_cleanly(self):
        for _ in range(10):
            with Server() as server:
                clients = [server.connect() for _ in range(50)]
                for client in clients:
                    client.send(GOOD * 20)
                server.signal()
                self.assertEqual(server.wait(), 0)
                for client in clients:
                    client.rest()
                    client.close()

    def test_it_works_as_the_first_process_of_a_container(self):
        """The kernel keeps signals from a PID 1 that has no handler for them."""
        if subprocess.run(["unshare", "--pid", "--fork", "true"], check=False,
                          capture_output=True).returncode != 0:
            self.skipTest("not allowed to make a PID namespace")
        with Server("--pid", "--fork", CLAIMD, program="unshare") as server:
            self.assertEqual(server.fetch("GET", "/v2/queues").status, 200)
            inner, = children(server.process.pid)
            os.kill(inner, signal.SIGTERM)
            self.assertEqual(server.wait(), 0)

    @unittest.skipIf(RESTLESS, "ThreadSanitizer's own thread wakes up")
    def test_an_idle_server_never_wakes_up(self):
        with Server("--workers", "4") as server:
            clients = [server.connect() for _ in range(8)]
            for client in clients:
                client.send(post("q") + request("POST", "/v2/queues/q/claims", b"{}"))
                self.assertEqual(client.response().status, 201)
                self.assertEqual(client.response().status, 201)
            self.assertTrue(becomes_idle(server))
            for client in clients:
                client.close()

    def test_broken_pipes_do_not_end_it(self):
        with Server() as server:
            server.signal(signal.SIGPIPE)
            self.assertEqual(server.fetch("GET", "/v2/queues").status, 200)


if __name__ == "__main__":
    unittest.main()
