#!/usr/bin/python3
"""GET /metrics for those who read it: Prometheus, its tools, its rules, and a dashboard.

    metrics_test.py CLAIMD

Everything is held against programs of others: promtool and Prometheus from Debian's
prometheus, the parser of python3-prometheus-client.
"""

import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import (CLAIMD, HERE, SANITIZED, Server, eventually, processor_s,  # noqa: E402
                     request)
from prometheus import Prometheus, families, promtool, samples  # noqa: E402
from redis_nodes import Node  # noqa: E402
from waiting import has_response, messages, prefer  # noqa: E402

import yaml  # noqa: E402

DOCS = os.path.join(HERE, "..", "..", "docs")
RULES = os.path.realpath(os.path.join(DOCS, "prometheus", "claimd.rules.yml"))
ALERTS = os.path.join(HERE, "alerts.yml")
DASHBOARD = os.path.join(DOCS, "prometheus", "claimd-dashboard.json")
RUNBOOKS = "file:///usr/share/doc/claimd/docs/"  # in the package
OPEN = "Accept: application/openmetrics-text"
SHORT = ("--min-message-ttl", "1", "--min-claim-ttl", "1", "--min-claim-grace", "0")
LONG = 40  # seconds of a wait that something else than the time shall end


def metrics(server, *headers):
    """The text of /metrics, as OpenMetrics."""
    response = server.fetch("GET", "/metrics", headers=(OPEN, *headers))
    if response.status != 200:
        raise AssertionError(response)
    return response.body.decode("utf-8")


def value(server, name, **labels):
    return samples(metrics(server)).get((name, *sorted(labels.items())))


def journalled(folder, *options):
    return Server("--journal", os.path.join(folder, "journal"), *options)


def key_file(folder):
    """A file with a key for encryption."""
    path = os.path.join(folder, "keys")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
        f.write("0123456789abcdef" * 4 + "\n")
    return path


def all_there_is():
    """The texts, in both formats, of a server in which each family has samples."""
    with tempfile.TemporaryDirectory() as folder, \
            journalled(folder, "--backlog-memory", "1M", "--encryption-keys",
                       key_file(folder)) as server:
        server.fetch("PUT", "/v2/queues/q")
        server.fetch("POST", "/claimd/queues/q/pause")
        # A request is counted when all of its response is out of the server's hands.
        eventually(lambda: 'route="/v2/queues/{queue}"' in metrics(server))
        return metrics(server), server.fetch("GET", "/metrics").body.decode()


class Format(unittest.TestCase):
    def test_promtool_and_the_strict_parser_like_both_formats(self):
        is_open, text = all_there_is()
        self.assertEqual(promtool("check", "metrics", stdin=text), (0, ""))
        names = set(families(text, is_open=False))
        self.assertEqual(set(families(is_open)) - names, {"claimd_build"})
        self.assertEqual(names - set(families(is_open)), {"claimd_build_info"})
        # It can say no.
        self.assertNotEqual(promtool("check", "metrics", stdin="a{} 1\na{} 2 3 4\n")[0], 0)

    def test_names_with_special_characters_are_escaped(self):
        projects = ['a"b', "back\\slash", "end\\", "Gr\u00fc\u00df", "sp ace", "{}=,#", "\U0001f40e"]
        escaped = {"%FF": "\\xff", "%5Cxff": "\\x5cxff", "%00": "\\x00", "%0A": "\n",
                   "%0D": "\\x0d", "%C3%28": "\\xc3("}
        with Server() as server:
            for name in projects:
                with server.connect() as client:
                    head = request("PUT", "/v2/queues/q", close=True)
                    client.send(head.replace(b"X-Project-ID: p",
                                             b"X-Project-ID: " + name.encode()))
                    self.assertEqual(client.response().status, 201, name)
            for number, name in enumerate(escaped):
                version = ("v2", "v1.1", "v1")[number % 3]
                self.assertEqual(server.fetch("PUT", "/%s/%s/queues/q" % (version, name)).status,
                                 201)
            with Prometheus([("claimd", "127.0.0.1:%d" % server.port, None)]) as prometheus:
                prometheus.scrape()
                shown = {dict(labels)["project"]
                         for labels in prometheus.query('claimd_queue_claims{queue="q"}')}
                self.assertEqual(prometheus.log_problems(), [])
            self.assertEqual(shown, set(projects) | set(escaped.values()))
            text = server.fetch("GET", "/metrics").body.decode()
            self.assertEqual(promtool("check", "metrics", stdin=text), (0, ""))
            parsed = {dict(name[1:]).get("project") for name in samples(text, is_open=False)}
            self.assertLessEqual(set(projects) | set(escaped.values()), parsed)

    def test_families_of_the_journal_are_there_with_it_only(self):
        with tempfile.TemporaryDirectory() as folder:
            with journalled(folder, "--backlog-memory", "0") as server:
                with_it = set(families(metrics(server)))
        with Server() as server:
            without = set(families(metrics(server)))
        self.assertEqual(without - with_it, set())
        self.assertEqual({name.rsplit("_", 1)[0][:14] for name in with_it - without},
                         {"claimd_journal"})

    def test_the_table_in_the_documents_is_true(self):
        """docs/metrics.md: | `name` | kind | labels | help | more |"""
        with open(os.path.join(DOCS, "metrics.md"), encoding="utf-8") as file:
            rows = re.findall(r"^\| `([a-z_]+)` \| (\w+) \| ([^|]*) \| ([^|]*) \|", file.read(),
                              re.M)
        self.assertGreater(len(rows), 40)
        _, text = all_there_is()
        real = []
        for name, help_text in re.findall(r"^# HELP (\S+) (.*)$", text, re.M):
            kind, = re.findall(r"^# TYPE %s (\w+)$" % name, text, re.M)
            labels = set(re.findall(r'[{,](\w+)="',
                                    " ".join(re.findall(r"^%s(?:_bucket)?(\{.*\}) " % name, text,
                                                        re.M)))) - {"le"}
            real.append((name, kind, " ".join("`%s`" % label for label in sorted(labels)),
                         help_text))
        self.maxDiff = None
        self.assertEqual([(name, kind, labels.strip(), text.strip())
                          for name, kind, labels, text in rows], real)

    def test_there_are_as_many_series_as_is_said(self):
        with open(os.path.join(DOCS, "metrics.md"), encoding="utf-8") as file:
            text = file.read()
        said = dict(re.findall(r"^\| (journal|queues|what is always there)\b.*\| (\d+) \|$", text, re.M))
        unloaded, = re.findall(r"^\| `backlog_memory` \| 2 `metrics_queues` \+ (\d+) ", text, re.M)
        with tempfile.TemporaryDirectory() as folder, \
                journalled(folder, "--backlog-memory", "0") as server:
            for i in range(100):
                server.fetch("PUT", "/v2/queues/q%d" % i)
            there = [name for name, *_ in samples(metrics(server))]
        with tempfile.TemporaryDirectory() as folder, journalled(folder) as server:
            more = [name for name, *_ in samples(metrics(server)) if name not in there]
        self.assertEqual(len(more), int(unloaded))  # without queues
        queues = sum(name.startswith("claimd_queue_") for name in there)
        journal = sum(name.startswith("claimd_journal_") for name in there)
        requests = sum(name.startswith(("claimd_http_requests_total", "claimd_http_request_d"))
                       for name in there)
        self.assertEqual({"queues": queues, "journal": journal,
                          "what is always there": len(there) - queues - journal - requests},
                         {name: int(count) for name, count in said.items()})


class Shown(unittest.TestCase):

    def test_failures_are_counted_too(self):
        with tempfile.TemporaryDirectory() as folder:
            tokens = os.path.join(folder, "tokens")
            token = subprocess.run([CLAIMD, "token", "new", "a", "--role", "operator", "--tokens",
                                    tokens], stdout=subprocess.PIPE, text=True,
                                   check=True).stdout.strip()

            def value(name, **labels):
                text = metrics(server, "X-Auth-Token: " + token)
                return samples(text)[(name, *sorted(labels.items()))]
            with Server("--auth", "tokens", "--tokens", tokens) as server:
                self.assertEqual(value("claimd_last_reload_successful"), 1)
                began = value("claimd_last_reload_success_timestamp_seconds")
                with open(tokens, "a", encoding="ascii") as file:
                    file.write("nonsense\n")
                server.signal(signal.SIGHUP)
                server.logged("reload_failed")
                self.assertEqual(value("claimd_reloads_total", result="failure"), 1)
                self.assertEqual(value("claimd_reloads_total", result="success"), 0)
                self.assertEqual(value("claimd_last_reload_successful"), 0)
                self.assertEqual(value("claimd_last_reload_success_timestamp_seconds"), began)
                with open(tokens, encoding="ascii") as file:
                    good = file.read().replace("nonsense\n", "")
                with open(tokens, "w", encoding="ascii") as file:
                    file.write(good)
                server.signal(signal.SIGHUP)
                server.logged("reloaded")
                self.assertEqual(value("claimd_reloads_total", result="success"), 1)
                self.assertEqual(value("claimd_last_reload_successful"), 1)
                self.assertGreater(value("claimd_last_reload_success_timestamp_seconds"), began)
                self.assertEqual(value("claimd_ready"), 1)
                server.signal(signal.SIGUSR1)
                server.logged("maintenance posts=refused")
                self.assertEqual(value("claimd_ready"), 0)


class Story(unittest.TestCase):
    """A server that requires tokens and has a journal, seen by a Prometheus."""

    BIG, SIZE = 60, 200000  # messages of a response that the kernel does not take at once

    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        tokens = os.path.join(folder, "tokens")
        for name, role in (("boss", "admin"), ("watch", "operator")):
            printed = subprocess.run([CLAIMD, "token", "new", name, "--role", role, "--tokens",
                                      tokens], stdout=subprocess.PIPE, text=True, check=True).stdout
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write(printed)
            setattr(self, name, "X-Auth-Token: " + printed.strip())
        self.server = Server("--auth", "tokens", "--tokens", tokens, *SHORT, "--journal",
                             os.path.join(folder, "journal"), "--backlog-memory", "1G",
                             "--max-messages-per-claim-or-pop", "100",
                             "--encryption-keys", key_file(folder))
        self.addCleanup(self.server.__exit__, None, None, None)
        target = "127.0.0.1:%d" % self.server.port
        self.prometheus = Prometheus([("claimd", target, os.path.join(folder, "watch")),
                                      ("stranger", target, None)], [RULES])
        self.addCleanup(self.prometheus.__exit__)
        self.codes = collections.Counter()  # responses by method and status
        self.counts = collections.Counter()

    def raw(self, method, path, document=None, headers=()):
        body = None if document is None else json.dumps(document).encode()
        return request(method, path, body, headers=(self.boss, *headers))

    def fetch(self, method, path, document=None, status=200):
        with self.server.connect() as client:
            client.send(self.raw(method, path, document))
            response = client.response()
        self.assertEqual(response.status, status, response)
        self.codes[method, str(status)] += 1
        return response

    def post(self, queue, count, **more):
        self.fetch("POST", "/v2/queues/%s/messages" % queue,
                   {"messages": [{"body": i, "ttl": 300, **more} for i in range(count)]}, 201)
        self.counts["messages_posted"] += count

    def claim(self, queue, count, ttl=60):
        response = self.fetch("POST", "/v2/queues/%s/claims?limit=%d" % (queue, count),
                              {"ttl": ttl, "grace": 60}, 201)
        self.assertEqual(len(messages(response)), count)
        self.counts["messages_claimed"] += count
        self.counts["claims_made"] += 1
        return response.headers["location"], [message["href"] for message in messages(response)]

    def release(self, claim, count):
        self.fetch("DELETE", claim, status=204)
        self.counts["given_back", "released"] += count

    def given_back(self, reason):
        return self.server_says("claimd_messages_given_back_total", reason=reason)

    def server_says(self, name, **labels):
        text = metrics(self.server, self.boss)
        self.codes["GET", "200"] += 1
        return samples(text)[(name, *sorted(labels.items()))]

    def work(self):
        """Something of everything; the first wait of each message is counted as `waits`."""
        self.post("jobs", 10)
        claim, hrefs = self.claim("jobs", 4)
        self.counts["waits"] += 4
        for href in hrefs[:2]:
            self.fetch("DELETE", href, status=204)
        self.counts["messages_deleted"] += 2
        self.fetch("PATCH", claim, {"ttl": 90, "grace": 60}, 204)
        self.counts["claims_renewed"] += 1
        self.release(claim, 2)
        _, hrefs = self.claim("jobs", 3, ttl=1)  # two of these for the second time
        self.counts["waits"] += 1
        eventually(lambda: self.given_back("expired") == 3)
        self.counts["given_back", "expired"] += 3
        self.fetch("DELETE", hrefs[0], status=400)
        self.counts["late_deletions_refused"] += 1
        self.fetch("DELETE", "/v2/queues/jobs/messages?pop=2")  # for the third time
        self.counts["messages_popped"] += 2
        self.post("short", 1, ttl=1)
        eventually(lambda: self.server_says("claimd_messages_expired_total") == 1)
        self.counts["messages_expired"] += 1
        self.post("late", 3, delay=299)
        self.fetch("PUT", "/v2/queues/once", {"_max_claim_count": 1, "_dead_letter_queue": "dead"},
                   201)
        self.post("once", 1)
        claim, _ = self.claim("once", 1)
        self.counts["waits"] += 1
        self.release(claim, 1)
        self.fetch("POST", "/v2/queues/once/claims", {"ttl": 60, "grace": 60}, 204)
        self.counts["dead_letters_moved"] += 1
        self.fetch("PUT", "/v2/queues/gone", {}, 201)
        self.post("gone", 5)
        self.fetch("DELETE", "/v2/queues/gone", status=204)
        self.counts["messages_dropped"] += 5
        self.counts["queues_deleted"] += 1
        self.counts["queues_made"] += 6
        self.fetch("GET", "/nonsense", status=404)

    def hang_up(self):
        """One waits for what another holds, gets some of it, and hangs up."""
        for _ in range(self.BIG):
            self.post("big", 1, body="x" * self.SIZE)
        self.counts["queues_made"] += 1
        claim, _ = self.claim("big", self.BIG)
        self.counts["waits"] += self.BIG
        self.assertEqual(self.prometheus.value('claimd_http_requests_parked{reason="message"}'), 0)
        with self.server.connect() as client:
            client.send(self.raw("POST", "/v2/queues/big/claims?limit=100",
                                 {"ttl": 60, "grace": 60}, prefer("wait=%d" % LONG)))
            eventually(lambda: self.server_says("claimd_http_requests_parked",
                                                reason="message") == 1)
            self.assertFalse(has_response(client))
            self.prometheus.scrape()
            self.assertEqual(
                self.prometheus.value('claimd_http_requests_parked{reason="message"}'), 1)
            self.assertEqual(self.prometheus.value('claimd_http_connections{phase="parked"}'), 1)
            self.release(claim, self.BIG)
            self.assertIn(b"201", client.socket.recv(4096))
            self.counts["messages_claimed"] += self.BIG
            self.counts["claims_made"] += 1
            client.reset()
        eventually(lambda: self.given_back("client_gone") == self.BIG)
        self.counts["given_back", "client_gone"] += self.BIG

    def assert_counts(self):
        says = self.prometheus.value
        for name, count in self.counts.items():
            if isinstance(name, tuple):
                name = 'messages_%s_total{reason="%s"}' % name
            elif name == "waits":
                name = "message_wait_seconds_count"
            else:
                name += "_total"
            with self.subTest(name=name):
                self.assertEqual(says("claimd_" + name), count)
        for name in ("message_work_seconds", "message_attempts"):
            self.assertEqual(says("claimd_%s_count" % name), self.counts["messages_deleted"])
        self.assertEqual(says('claimd_message_attempts_bucket{le="1.0"}'), 2)

    def assert_requests(self):
        """Those that others sent meanwhile are the scrapes, of /metrics."""
        def mine():
            found = self.prometheus.query(
                'sum by (method, code) (claimd_http_requests_total{route!~"none|/metrics"})')
            return {(dict(labels)["method"], dict(labels)["code"]): int(count)
                    for labels, count in found.items()}
        self.codes["GET", "404"] -= 1  # it has no route
        self.codes["GET", "200"] = 0   # of /metrics, all of them
        # The response that was cut off had begun.
        expected = +self.codes + collections.Counter({("POST", "201"): 1})
        eventually(lambda: sum(mine().values()) >= sum(expected.values()))
        self.assertEqual(mine(), dict(expected))
        says = self.prometheus.value
        self.assertEqual(says('claimd_http_requests_total{route="none",method="other",'
                              'code="404"}'), 1)
        self.assertEqual(says('claimd_http_requests_total{route="/v2/queues/{queue}/claims",'
                              'method="POST",code="204"}'), 1)
        self.assertGreater(says('claimd_http_requests_total{route="/metrics",code="401"}'), 0)
        eventually(lambda: says("sum(claimd_http_request_duration_seconds_count) == "
                                "sum(claimd_http_requests_total)") is not None)

    def assert_queues(self):
        shown = self.prometheus.query('claimd_queue_messages{project="p"} > 0')
        shown = {(dict(labels)["queue"], dict(labels)["state"]): int(count)
                 for labels, count in shown.items()}
        self.assertEqual(shown, {("jobs", "claimable"): 6, ("late", "delayed"): 3,
                                 ("dead", "claimable"): 1, ("big", "claimable"): self.BIG})
        self.assertEqual(self.prometheus.query('claimd_queue_messages{queue=""} > 0'), {})
        says = self.prometheus.value
        self.assertEqual(says('claimd_queue_dead_letters{queue="dead"}'), 1)
        self.assertEqual(says("sum(claimd_queue_claims)"), 0)
        self.assertEqual(says('claimd_queue_messages_expired_unread_total{queue="short"}'), 1)
        self.assertEqual(says("sum(claimd_queue_messages_expired_total)"), 1)
        self.assertEqual(says("claimd_queues"), 6)
        self.assertGreater(says('claimd_queue_bytes{queue="big"}'), self.BIG * self.SIZE)
        self.assertGreater(says('claimd_queue_oldest_ready_age_seconds{queue="jobs"}'), 1)
        self.assertEqual(says('claimd_queue_oldest_ready_age_seconds{queue="late"}'), 0)

    def assert_process(self):
        says = self.prometheus.value
        self.assertEqual(says('up{job="stranger"}'), 0)
        self.assertEqual(says("claimd_ready"), 1)
        self.assertGreater(says("claimd_journal_commits_total"), 10)
        self.assertEqual(says("claimd_journal_commits_total"),
                         says("claimd_journal_sync_seconds_count"))
        self.assertGreater(says("claimd_journal_bytes"), self.BIG * self.SIZE)
        self.assertGreater(says("claimd_memory_used_bytes"), self.BIG * self.SIZE)
        self.assertGreater(says('process_resident_memory_bytes{job="claimd"}'),
                           self.BIG * self.SIZE)
        self.assertLess(abs(says('process_start_time_seconds{job="claimd"}') - time.time()), 3600)
        # Those of the two who scrape; the story's own are closed.
        self.assertLessEqual(says("sum(claimd_http_connections)"), 3)

    def assert_alerts(self):
        """The rules are those of the documents: some of them have something to say."""
        rules = [rule["name"] for group in self.prometheus.get("rules")["groups"]
                 for rule in group["rules"]]
        self.assertGreater(len(rules), 15)
        firing = {alert["labels"]["alertname"]
                  for alert in self.prometheus.get("alerts")["alerts"]
                  if alert["state"] == "firing"}
        self.assertLessEqual(firing, {"ClaimdDeadLetters", "ClaimdMessagesExpiredUnread"})

    def assert_dashboard(self):
        """Each query of the dashboard is valid, and finds something."""
        for expression in dashboard_expressions():
            with self.subTest(expression=expression):
                found = self.prometheus.query(expression)
                rare = r"\[1m\]|> 0$|^histogram_quantile"  # needs time, or what did not happen
                self.assertTrue(found or re.search(rare, expression))

    def test_prometheus_sees_what_was_done(self):
        self.prometheus.scrape()
        self.assertEqual(self.prometheus.value('up{job="claimd"}'), 1)
        self.work()
        self.hang_up()
        text = metrics(self.server, self.boss)  # the strict parser has a say, too
        self.assertGreater(len(families(text)), 40)
        self.prometheus.scrape()
        self.prometheus.scrape("stranger")
        self.assert_counts()
        self.assert_requests()
        self.assert_queues()
        self.assert_process()
        self.assert_alerts()
        self.assert_dashboard()
        self.assertEqual(self.prometheus.log_problems(), [])


def rules():
    with open(RULES, encoding="utf-8") as file:
        return [rule for group in yaml.safe_load(file)["groups"] for rule in group["rules"]]


def no_worker_story(case, servers):
    """ClaimdNoWorker, without its 5 minutes, of servers with one store."""
    expression, = (rule["expr"] for rule in rules() if rule["alert"] == "ClaimdNoWorker")
    expression = expression.replace("[2m]", "[4s]")
    first, last = servers[0], servers[-1]
    targets = ["127.0.0.1:%d" % server.port for server in servers]

    def fetch(method, path, document=None, status=200, server=first):
        body = None if document is None else json.dumps(document).encode()
        response = server.fetch(method, path, body)
        case.assertEqual(response.status, status, response)
        return response

    def claim(queue, status=201):
        return fetch("POST", "/v2/queues/%s/claims?limit=1" % queue, {"ttl": 60, "grace": 60},
                     status, last).headers.get("location")
    with Prometheus([("claimd", ",".join(targets), None)]) as prometheus:
        def fires_for(*queues):
            """Each claimd shows the same queues."""
            def now():
                prometheus.scrape()
                found = [dict(labels) for labels in prometheus.query(expression)]
                return {(found["instance"], found["queue"]) for found in found}
            eventually(lambda: now() == {(target, q) for target in targets for q in queues})
        fetch("POST", "/v2/queues/q/messages", {"messages": [{"body": i} for i in range(3)]}, 201)
        fires_for("q")
        held = claim("q")
        fires_for()
        fetch("DELETE", held, status=204)
        fires_for("q")  # 4 seconds after the delivery
        fetch("DELETE", "/v2/queues/q/messages?pop=1")
        fires_for()
        fires_for("q")
        fetch("POST", "/claimd/queues/q/pause", {"posts": True})
        fires_for("q")
        fetch("POST", "/claimd/queues/q/pause")
        fires_for()
        with last.connect() as worker:
            worker.send(request("POST", "/v2/queues/q/claims?limit=1", b'{"ttl":60,"grace":60}',
                                headers=prefer("wait=%d" % LONG)))
            eventually(lambda: prometheus.value(
                'claimd_queue_waiters{queue="q",instance="%s"}' % targets[-1]) == 1)
            case.assertEqual(prometheus.value('sum(claimd_queue_waiters)'), 1)
            fetch("POST", "/claimd/queues/q/pause", {"claims": False, "posts": False})
            case.assertEqual(worker.response().status, 201)
        fires_for()
        fetch("PUT", "/v2/queues/once", {"_max_claim_count": 1, "_dead_letter_queue": "dead"}, 201)
        fetch("POST", "/v2/queues/once/messages", {"messages": [{"body": 1}]}, 201)
        fires_for("once")
        fetch("DELETE", claim("once"), status=204)
        claim("once", 204)
        eventually(lambda: prometheus.value('max(claimd_queue_messages_ready{queue="dead"})') == 1)
        fires_for()
        case.assertEqual(prometheus.log_problems(), [])


class NoWorker(unittest.TestCase):
    def test_it_sees_each_kind_of_worker_in_memory(self):
        with Server() as server:
            no_worker_story(self, [server])

    def test_it_sees_each_kind_of_worker_with_a_journal(self):
        with tempfile.TemporaryDirectory() as folder, journalled(folder) as server:
            no_worker_story(self, [server])


def dashboard():
    with open(DASHBOARD, encoding="utf-8") as file:
        return json.load(file)


def dashboard_expressions():
    """Its questions to Prometheus, with all of everything chosen."""
    document = dashboard()
    found = [target["expr"] for panel in document["panels"] for target in panel.get("targets", ())]
    found += [annotation["expr"] for annotation in document["annotations"]["list"]]
    chosen = {"$__rate_interval": "1m", "$instance": ".*", "$project": ".*", "$queue": ".*"}
    for name, text in chosen.items():
        found = [expression.replace(name, text) for expression in found]
    return found


class Documents(unittest.TestCase):
    def families(self):
        """Names of all samples there can be."""
        text, _ = all_there_is()
        with Node(socket=True) as node, Server("--store", node.url()) as server:
            known = [families(text), families(metrics(server))]
        return {sample.name for some in known for family in some.values()
                for sample in family.samples}

    @staticmethod
    def promtool_test(rule, row):
        """The input of promtool, from a row of alerts.yml."""
        labels = row.get("labels", {"job": "claimd", "instance": "a:1"})
        fires = [{"exp_labels": {**labels, **rule["labels"]},
                  "exp_annotations": {**rule["annotations"], "description": row["fires"]}}
                 ] if "fires" in row else []
        series = [dict(zip(("series", "values"), text.split(" ", 1))) for text in row["series"]]
        return {"interval": "1m", "input_series": series,
                "alert_rule_test": [{"alertname": rule["alert"], "eval_time": row["at"],
                                     "exp_alerts": fires}]}

    @unittest.skipIf(SANITIZED, "it does not start claimd")
    def test_rules_are_right_and_each_was_seen_firing_and_quiet(self):
        status, said = promtool("check", "rules", RULES)
        self.assertEqual(status, 0, said)
        known = rules()
        with open(ALERTS, encoding="utf-8") as file:
            rows = yaml.safe_load(file)
        self.assertEqual(list(rows), [rule["alert"] for rule in known])
        for rule in known:
            fires = [row.get("fires") for row in rows[rule["alert"]]]
            self.assertEqual({text is not None for text in fires}, {True, False}, rule["alert"])
            if "{{ if ne . \"1\" }}s{{ end }}" in rule["annotations"]["description"]:
                self.assertEqual({bool(re.search(r"(?<!:)\b1 [a-z]", text)) for text in fires if text},
                                 {True, False}, "one, and several: %s" % rule["alert"])
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as tests:
            json.dump({"rule_files": [RULES], "evaluation_interval": "1m",
                       "tests": [self.promtool_test(rule, row) for rule in known
                                 for row in rows[rule["alert"]]]}, tests)  # JSON is YAML
            tests.flush()
            status, said = promtool("test", "rules", tests.name)
        self.assertEqual(status, 0, said)
        for rule in known:
            with self.subTest(alert=rule["alert"]):
                self.assertIn(rule["labels"]["severity"], ("warning", "critical"))
                self.assertEqual(set(rule["annotations"]),
                                 {"summary", "description", "runbook_url"})
                # Numbers have a format: else 1 becomes 1.0000000001, and a million 1e+06.
                self.assertNotIn("$value", re.sub(
                    r'printf "%\.0f" \$value|\$value \| humanize(Duration|1024) }}', "",
                    rule["annotations"]["description"]))

    def test_alerts_about_ready_messages_leave_out_queues_without_a_duty_for_workers(self):
        for rule in rules():
            if re.search(r"_oldest_ready_age|_messages_ready", rule["expr"]) and \
                    rule["alert"] != "ClaimdQueuePausedLong":
                for part in ("claimd_queue_dead_letters", "claimd_queue_paused{what=\"claims\"}",
                             "claimd_queue_subscriptions"):
                    self.assertRegex(rule["expr"], r"unless[^\n]*" + re.escape(part), rule["alert"])

    def test_the_documented_command_names_another_address_of_the_runbooks(self):
        with open(os.path.join(DOCS, "metrics.md"), encoding="utf-8") as file:
            command, = re.findall(r"^sed .*claimd\.rules\.yml.*$", file.read(), re.M)
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(RULES, folder)
            subprocess.run(command.replace("/etc/prometheus", folder), shell=True, check=True)
            with open(os.path.join(folder, "claimd.rules.yml"), encoding="utf-8") as file:
                text = file.read()
        urls = re.findall(r"runbook_url: (\S+)", text)
        self.assertEqual([url.replace("https://wiki.example.org/claimd/", RUNBOOKS)
                          for url in urls],
                         [rule["annotations"]["runbook_url"] for rule in rules()])

    def test_each_alert_has_its_runbook_and_each_runbook_its_alert(self):
        with open(os.path.join(DOCS, "operations.md"), encoding="utf-8") as file:
            pieces = re.split(r"^#+ +(.*?) *$", file.read(), flags=re.MULTILINE)
        parts = dict(zip(pieces[1::2], pieces[2::2]))
        named = set()
        for rule in rules():
            heading = "alert-" + rule["alert"]
            self.assertEqual(rule["annotations"]["runbook_url"],
                             RUNBOOKS + "operations.md#" + heading.lower())
            self.assertTrue(parts[heading].strip(), heading)
            named.add(heading)
        self.assertEqual({heading for heading in parts if heading.startswith("alert-")}, named)

    def test_the_table_of_alerts_has_each_rule_with_its_severity_and_time(self):
        with open(os.path.join(DOCS, "metrics.md"), encoding="utf-8") as file:
            rows = re.findall(r"^\| \[(\w+)\]\((\S+)\) \| (\w+) \| .+? \| (\w*) \|$", file.read(),
                              re.MULTILINE)
        self.assertEqual(rows, [(rule["alert"], rule["annotations"]["runbook_url"]
                                 .removeprefix(RUNBOOKS), rule["labels"]["severity"],
                                 rule.get("for", "")) for rule in rules()])

    def test_rules_and_dashboard_name_families_that_exist(self):
        real = self.families()
        expressions = [rule["expr"] for rule in rules()]
        expressions += dashboard_expressions()
        self.assertGreater(len(expressions), 60)
        for expression in expressions:
            for name in re.findall(r"\b(?:claimd|process)_[a-z_]+", expression):
                self.assertIn(name, real, expression)


class Attack(unittest.TestCase):
    """/metrics as often as four clients can fetch it, beside very many queues."""

    QUEUES = 5000 if SANITIZED else 100000

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--workers", "1")
        with cls.server.connect() as client:
            for first in range(0, cls.QUEUES, 200):
                client.send(b"".join(request("PUT", "/v2/queues/q%d" % i)
                                     for i in range(first, first + 200)))
                for _ in range(200):
                    client.response()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)

    def cost_s(self, data, times=10):
        """Processor time of the server for a request: the least of some rounds, since others use the machine."""
        with self.server.connect() as client:
            def round_s():
                before = processor_s(self.server)
                for _ in range(times):
                    client.send(data)
                    self.assertEqual(client.response().status, 200)
                return (processor_s(self.server) - before) / times
            return min(round_s() for _ in range(6))

    def test_its_cost_does_not_depend_on_the_number_of_queues(self):
        with Server("--workers", "1") as self.server:
            for i in range(200):
                self.server.fetch("PUT", "/v2/queues/q%d" % i)
            few = self.cost_s(request("GET", "/metrics"))
        del self.server  # from now on that of the class
        many = self.cost_s(request("GET", "/metrics"))
        self.assertEqual(value(self.server, "claimd_queues"), self.QUEUES)
        # There are 25 times as many queues at least. It takes no longer, but for noise.
        self.assertLess(many, 5 * few)

    def test_others_are_served_meanwhile(self):
        counts = collections.Counter()
        enough = threading.Event()

        def fetched():
            return sum(counts["metrics%d" % i] for i in range(4))

        def again(name, data, status):
            with self.server.connect() as client:
                while not enough.is_set():
                    client.send(data)
                    if client.response().status != status:
                        counts["wrong"] += 1
                    counts[name] += 1
        threads = [threading.Thread(target=again, args=("metrics%d" % i,
                                                        request("GET", "/metrics"), 200))
                   for i in range(4)]
        threads.append(threading.Thread(target=again, args=(
            "posts", request("POST", "/v2/queues/q7/messages", b'{"messages":[{"body":1}]}'), 201)))
        for thread in threads:
            thread.start()
        try:
            eventually(lambda: fetched() > 100)
        finally:
            enough.set()
            for thread in threads:
                thread.join()
        self.assertEqual(counts["wrong"], 0)
        # One of five clients that send in turn has a fifth of the turns; half of that is enough.
        self.assertGreater(counts["posts"], (fetched() + counts["posts"]) / 10, counts)


if __name__ == "__main__":
    unittest.main()
