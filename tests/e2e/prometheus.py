"""Runs Prometheus and promtool of Debian, and parses /metrics, for the tests of metrics.

    families(text)          {name: family} of the text format, strictly parsed
    samples(text)           {(name, labels as sorted pairs...): value}
    promtool("check", ...)  exit status and output
    Prometheus(targets)     a server that scrapes every second; a context manager

If a package that scripts/packages lists is missing, the tests fail instead of being skipped.
"""

import http.client
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import threading
import urllib.parse

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain

from harness import PATIENCE_S, eventually

LISTENING = re.compile(r'msg="Listening on" (?:component=\w+ )?address=(\S+)')


def families(text, is_open=True):
    """{name of the family: family} of an exposition; a sample that comes twice is an error."""
    found, seen = {}, set()
    for family in (openmetrics if is_open else plain)(text):
        if family.name in found:
            raise AssertionError("a family comes twice: " + family.name)
        found[family.name] = family
        for sample in family.samples:
            name = (sample.name, *sorted(sample.labels.items()))
            if name in seen:
                raise AssertionError("a series comes twice: %r" % (name,))
            seen.add(name)
    return found


def samples(text, is_open=True):
    """{(name, labels as sorted pairs...): value}"""
    return {(sample.name, *sorted(sample.labels.items())): sample.value
            for family in families(text, is_open).values() for sample in family.samples}


def promtool(*words, stdin=None):
    run = subprocess.run(["promtool", *words], input=stdin, stdout=subprocess.PIPE, text=True,
                         stderr=subprocess.STDOUT, timeout=5 * PATIENCE_S, check=False)
    return run.returncode, run.stdout


class Prometheus:
    """Scrapes each (job, hosts and ports with commas, file with a token or None) every second."""

    def __init__(self, targets, rules=()):
        self.folder = tempfile.mkdtemp(prefix="claimd-prometheus-")
        self.log = []
        try:
            config = os.path.join(self.folder, "prometheus.yml")
            with open(config, "w", encoding="ascii") as file:
                json.dump(self._config(targets, rules), file)  # JSON is YAML
            self.process = subprocess.Popen(
                ["prometheus", "--config.file=" + config, "--web.listen-address=127.0.0.1:0",
                 "--storage.tsdb.path=" + os.path.join(self.folder, "data")],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        except BaseException:
            shutil.rmtree(self.folder)
            raise
        self.reader = threading.Thread(target=self._read_log)
        self.reader.start()
        try:
            eventually(lambda: self.process.poll() is not None or self._is_ready())
            if not self._is_ready():
                raise RuntimeError("Prometheus did not start: %r" % self.log)
        except BaseException:
            self.__exit__()
            raise

    @staticmethod
    def _config(targets, rules):
        jobs = []
        for job, target, token in targets:
            jobs.append({"job_name": job, "static_configs": [{"targets": target.split(",")}]})
            if token is not None:
                jobs[-1]["authorization"] = {"credentials_file": token}
        return {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": list(rules), "scrape_configs": jobs}

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line.rstrip("\n"))

    def _is_ready(self):
        return any("Server is ready to receive" in line for line in list(self.log))

    def _address(self):
        return next((match.group(1) for match in map(LISTENING.search, list(self.log)) if match),
                    None)

    def get(self, path, **query):
        connection = http.client.HTTPConnection(self._address(), timeout=PATIENCE_S)
        try:
            connection.request("GET", "/api/v1/%s?%s" % (path, urllib.parse.urlencode(query)))
            response = json.load(connection.getresponse())
        finally:
            connection.close()
        if response["status"] != "success":
            raise AssertionError("%s %r: %r" % (path, query, response))
        return response["data"]

    def query(self, expression):
        """{labels as sorted pairs: value} at this moment."""
        return {tuple(sorted(series["metric"].items())): float(series["value"][1])
                for series in self.get("query", query=expression)["result"]}

    def value(self, expression):
        """The one value of an expression, None if it has none."""
        values = list(self.query(expression).values())
        if len(values) > 1:
            raise AssertionError("%s has %d values" % (expression, len(values)))
        return values[0] if values else None

    def scrape(self, job="claimd"):
        """Returns when a scrape that begins after this call is stored."""
        now = time.time()
        eventually(lambda: (self.value('min(timestamp(up{job="%s"}))' % job) or 0) > now)

    def log_problems(self):
        """The warnings and errors in its log."""
        return [line for line in self.log if "level=warn" in line or "level=error" in line]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            self.reader.join()
            self.process.stderr.close()
            shutil.rmtree(self.folder)
