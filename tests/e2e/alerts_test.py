#!/usr/bin/python3
"""GET /claimd/alerts fires what Prometheus fires with the rules that claimd ships.

    alerts_test.py CLAIMD ALERT_PLAYER [CLASS...]

The series of alerts.yml, on which metrics_test.py runs promtool, go through the rules of claimd as well. An
hour of staged incidents is then recorded from /metrics, and promtool says what fires in it.
"""

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

PLAYER = os.path.realpath(sys.argv.pop(2))

from harness import CLAIMD, CLIENT_ID, HERE, PATIENCE_S, Server  # noqa: E402
from prometheus import promtool, samples  # noqa: E402

import yaml  # noqa: E402

RULES = os.path.realpath(os.path.join(HERE, "..", "..", "docs", "prometheus", "claimd.rules.yml"))
ALERTS = os.path.join(HERE, "alerts.yml")
UNSEEN = {"ClaimdDown", "ClaimdRestarts"}  # a server cannot see that it is down
OF_QUEUES = {"project", "queue"}


def shipped_rules():
    with open(RULES, encoding="utf-8") as file:
        return [rule for group in yaml.safe_load(file)["groups"] for rule in group["rules"]]


def minutes_of(text):
    return int(text[:-1]) * {"m": 1, "h": 60}[text[-1]] if text else 0


def expand(text):
    """The values of a series, as promtool expands them; None: there is no sample."""
    values = []
    for word in text.split():
        match = re.fullmatch(r"(-?[\d.]+|_)(?:([+-][\d.]+))?(?:x(\d+))?", word)
        start, step, times = match.groups()
        for i in range(int(times or 0) + 1 if start != "_" else int(times or 1)):
            values.append(None if start == "_" else float(start) + i * float(step or 0))
    return values


def play(series, minutes):
    """The names of the alerts of claimd that fire then; series: {name with labels: values}."""
    lines = []
    for minute in range(minutes + 1):
        lines.append("minute")
        for name, values in series.items():
            if minute < len(values) and values[minute] is not None:
                lines.append("%s %.17g" % (name, values[minute]))
    run = subprocess.run([PLAYER], input="\n".join(lines) + "\n", stdout=subprocess.PIPE, text=True,
                         timeout=PATIENCE_S, check=True)
    return {line.split()[0] for line in run.stdout.splitlines()}


class Rules(unittest.TestCase):
    def test_names_severities_times_and_summaries_are_those_of_the_rules(self):
        text = subprocess.run([PLAYER, "rules"], stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S,
                              check=True).stdout
        self.assertEqual(text.splitlines(),
                         ["%s %s %d %s" % (rule["alert"], rule["labels"]["severity"],
                                           minutes_of(rule.get("for")), rule["annotations"]["summary"])
                          for rule in shipped_rules() if rule["alert"] not in UNSEEN])

    def test_each_case_of_promtool_is_one_of_claimd(self):
        with open(ALERTS, encoding="utf-8") as file:
            rows = yaml.safe_load(file)
        for name in rows.keys() - UNSEEN:
            for row in rows[name]:
                series = {key: expand(values) for key, values in
                          (one.split(" ", 1) for one in row["series"])}
                others = {key for key in series if 'instance="b:1"' in key}
                if others and any("claimd_redis_primaries" in key for key in series):
                    continue  # a server on Redis knows only its own waiters
                series = {key: values for key, values in series.items() if key not in others}
                with self.subTest(alert=name, row=row):
                    self.assertIs(name in play(series, minutes_of(row["at"])), "fires" in row)


class Incidents(unittest.TestCase):
    MINUTES = 75

    def setUp(self):
        self.server = Server("--ci", "--ci-short")
        self.addCleanup(self.server.__exit__, None, None, None)
        self.series = {}
        self.call("PUT", "/claimd/clock", {"state": "frozen"})

    def call(self, method, path, body=None):
        response = self.server.fetch(method, path, body=None if body is None else json.dumps(body).encode())
        self.assertLess(response.status, 300, response)
        return json.loads(response.body) if response.body else None

    def post(self, queue, count, **more):
        for first in range(0, count, 500):
            self.call("POST", "/v2/queues/%s/messages" % queue,
                      {"messages": [{"body": i, "ttl": 86400, **more} for i in range(first, min(count, first + 500))]})

    def claim(self, queue, ttl=60):
        return self.call("POST", "/v2/queues/%s/claims?limit=20" % queue, {"ttl": ttl, "grace": 60})

    def record(self, minute):
        """Keeps the samples of /metrics, as Prometheus would."""
        text = self.server.fetch("GET", "/metrics").body.decode()
        for (name, *labels), value in samples(text, is_open=False).items():
            labels = [("instance", "a:1"), ("job", "claimd"), *labels]
            key = "%s{%s}" % (name, ",".join("%s=%s" % (label, json.dumps(text)) for label, text in labels))
            values = self.series.setdefault(key, [])
            values += ["_"] * (minute - len(values)) + [value]

    def step(self, minute):
        """A minute of queues that are well, and of some that are not."""
        self.post("fine", 3)
        self.call("DELETE", "/v2/queues/fine/messages?pop=20")
        if minute == 0:
            self.call("PUT", "/v2/queues/poison", {"_max_claim_count": 1, "_dead_letter_queue": "poison-dead"})
            self.call("PUT", "/v2/queues/paused", {})
            self.post("hangs", 1)
            self.post("forgotten", 5)
            self.post("paused", 5)
            self.call("POST", "/claimd/queues/paused/pause", {"claims": True})
            self.claim("hangs", ttl=43200)
        if minute == 5:
            self.post("short", 2, ttl=120)
        self.post("growing", 25)
        if minute in (62, 63):
            self.post("poison", 1)
        if minute > 60:
            self.claim("poison")
        if minute > 64:
            self.claim("slow")
            self.post("slow", 2)

    def firing(self):
        """{alert: queues}"""
        found = {}
        for alert in self.call("GET", "/claimd/alerts")["alerts"]:
            if alert["state"] == "firing":
                found.setdefault(alert["name"], set()).add(alert["queue"])
        return found

    def assert_prometheus_agrees(self, minute):
        """ALERTS of Prometheus has the same alerts as claimd."""
        with_queue = self.call("GET", "/claimd/alerts")["alerts"]
        expected = []
        for alert in with_queue:
            labels = {"alertname": alert["name"], "alertstate": alert["state"], "severity": alert["severity"],
                      "instance": "a:1", "job": "claimd"}
            if alert["queue"] is not None:
                labels.update(project=alert["project"], queue=alert["queue"])
            expected.append({"labels": "ALERTS{%s}" % ",".join(
                "%s=%s" % (name, json.dumps(text)) for name, text in labels.items()), "value": 1})
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as rules, \
                tempfile.NamedTemporaryFile("w", suffix=".yml") as tests:
            json.dump({"groups": [{"name": "claimd", "rules": [
                {key: rule[key] for key in ("alert", "expr", "for", "labels") if key in rule}
                for rule in shipped_rules() if rule["alert"] not in UNSEEN]}]}, rules)
            rules.flush()
            json.dump({"rule_files": [rules.name], "evaluation_interval": "1m", "tests": [
                {"interval": "1m", "input_series": [
                    {"series": key, "values": " ".join(v if v == "_" else "%.17g" % v for v in values)}
                    for key, values in self.series.items()],
                 "promql_expr_test": [{"expr": "ALERTS", "eval_time": "%dm" % minute,
                                       "exp_samples": expected}]}]}, tests)
            tests.flush()
            status, said = promtool("test", "rules", tests.name)
        self.assertEqual(status, 0, "minute %d: %s" % (minute, said))

    def test_an_hour_of_incidents(self):
        for minute in range(self.MINUTES):
            self.record(minute)
            if minute in (10, 45, 61, 66, 73):
                self.assert_prometheus_agrees(minute)
            self.step(minute)
            self.call("POST", "/claimd/clock/advance", {"seconds": 60})
        found = self.firing()
        self.assertEqual(found["ClaimdOldestClaimTooOld"], {"hangs"})
        self.assertEqual(found["ClaimdNoWorker"], {"forgotten", "growing"})
        self.assertEqual(found["ClaimdOldestMessageTooOld"], {"forgotten", "growing"})
        self.assertIn("poison", found["ClaimdDeadLetters"])
        self.assertEqual(found["ClaimdBacklogGrowing"], {"growing"})


class Callers(unittest.TestCase):
    """The alerts that a caller may see."""

    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.file = os.path.join(folder, "tokens")
        self.admin, self.reader = self.token("boss", "admin"), self.token("eye", "reader", "--projects", "one")
        self.server = Server("--ci", "--ci-short", "--metrics-queues=2", "--auth=tokens", "--tokens", self.file)
        self.addCleanup(self.server.__exit__, None, None, None)

    def token(self, *words):
        return subprocess.run([CLAIMD, "token", "new", words[0], "--role", *words[1:], "--tokens", self.file],
                              stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    def call(self, method, path, token, project=None, body=None):
        connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        headers = {"Client-ID": CLIENT_ID, "X-Auth-Token": token}
        if project:
            headers["X-Project-ID"] = project
        connection.request(method, path, json.dumps(body).encode() if body else None, headers)
        response = connection.getresponse()
        text = response.read()
        self.assertLess(response.status, 300, text)
        return json.loads(text) if text else None

    def see(self, token, project=None):
        found = self.call("GET", "/claimd/alerts", token, project)
        self.assertEqual({alert["name"] for alert in found["alerts"]}, {"ClaimdMessagesExpiredUnread"})
        return [(alert["project"], alert["value"]) for alert in found["alerts"]]

    def test_a_project_sees_only_its_queues(self):
        self.call("PUT", "/claimd/clock", self.admin, "one", {"state": "frozen"})
        for project in ("one", "two", "zoo"):  # /metrics shows the first two
            self.call("POST", "/v2/queues/q/messages", self.admin, project,
                      {"messages": [{"body": 1, "ttl": 60}]})
        self.call("POST", "/claimd/clock/advance", self.admin, "one", {"seconds": 120})
        self.assertEqual(self.see(self.admin), [("one", 1), ("two", 1), (None, 1)])
        self.assertEqual(self.see(self.admin, "two"), [("two", 1), (None, 1)])
        self.assertEqual(self.see(self.reader, "one"), [("one", 1)])


if __name__ == "__main__":
    unittest.main()
