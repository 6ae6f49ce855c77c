#!/usr/bin/python3
"""Replay transcripts of the API against a server and report what differs.

    replay.py --endpoint http://127.0.0.1:8888 transcripts/claims.v2.json...

A transcript runs with random projects, so runs never disturb each other. Steps that wait
for a lifetime really wait (up to two minutes a file); contract_test.py moves a manual clock
instead. The format of the transcripts is in README.md. Exit status 0 when all matched.
"""

import argparse
import contextlib
import http.client
import json
import os
import re
import sys
import time
import urllib.parse
import uuid

import patterns
from patterns import Mismatch, expand, expand_text, show
from sink import BRIEF_S, PATIENCE_S, Sink

DEFAULT_HEADERS = {"Accept": "application/json", "Client-ID": "{{client}}",
                   "X-Project-ID": "{{project}}"}


class Client:
    """One kept-alive connection, opened again when the server has closed it."""

    def __init__(self, host, port, prefix="", timeout=60):
        self.connection = http.client.HTTPConnection(host, port, timeout=timeout)
        self.prefix = prefix

    def send(self, method, path, headers, body):
        """Returns status, headers (lower-case names) and text of the response."""
        kept = self.connection.sock is not None
        try:
            return self.exchange(method, path, headers, body)
        except ConnectionError:
            self.connection.close()
            if not kept:
                raise
        # A server may close an idle connection at any time; a fresh one must work.
        return self.exchange(method, path, headers, body)

    def exchange(self, method, path, headers, body):
        self.connection.request(method, self.prefix + path, body=body, headers=headers)
        response = self.connection.getresponse()
        text = response.read().decode("utf-8", "surrogateescape")
        return response.status, {k.lower(): v for k, v in response.getheaders()}, text

    def close(self):
        self.connection.close()


# ------------------------------------------------------------------- one step


def build_request(request, defaults, variables):
    """The method, path, headers and body of the request in a step."""
    headers = dict(defaults)
    headers.update(request.get("headers", {}))
    body = None
    if "body" in request:
        body = json.dumps(expand(request["body"], variables)).encode()
    elif "body_text" in request:
        body = expand_text(request["body_text"], variables).encode()
    elif "body_hex" in request:
        body = bytes.fromhex(request["body_hex"])
    if body is not None and "content-type" not in map(str.lower, headers):
        headers["Content-Type"] = "application/json"
    headers = {k: expand_text(v, variables) for k, v in headers.items() if v is not None}
    return request["method"], expand_text(request["path"], variables), headers, body


def capture(rules, headers, text, variables):
    """Binds variables from a header or from a place in the document."""
    for name, rule in rules.items():
        try:
            if "header" in rule:
                value = headers[rule["header"].lower()]
            else:
                value = pointed_at(json.loads(text), rule["pointer"])
            if "regex" in rule:
                value = re.search(rule["regex"], str(value)).group(1)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError):
            raise Mismatch("cannot capture %r by %s" % (name, rule)) from None
        variables[name] = value


def pointed_at(document, pointer):
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        document = document[int(part) if isinstance(document, list) else part]
    return document


def check(want, status, headers, text, variables):
    """Raises Mismatch unless the response is the wanted one."""
    if want["status"] != status:
        raise Mismatch("status: expected %d, got %d" % (want["status"], status))
    patterns.match_headers(expand(want.get("headers", {}), variables), headers)
    if want.get("body_any"):
        return
    if "body" not in want:
        if text:
            raise Mismatch("body: expected none, got %s" % show(text))
        return
    try:
        got = json.loads(text)
    except ValueError:
        raise Mismatch("body: not JSON: %s" % show(text or "(empty)")) from None
    pattern = expand(want["body"], variables)
    if status >= 400 and isinstance(pattern, dict) and "title" in pattern:
        check_error(pattern, got)
    else:
        patterns.match(pattern, got)


def check_delivery(want, sink, wait, variables):
    """Raises Mismatch unless the hook that comes, if one may, is the wanted one."""
    path = expand_text(want["path"], variables)
    if want.get("none"):
        wait(want.get("within_s", 0))
        hook = sink.take(path, BRIEF_S)
        if hook:
            raise Mismatch("a hook came to %s, where none may: %s" % (path, show(hook[1])))
        return
    hook = sink.take(path, PATIENCE_S)
    if hook is None:
        raise Mismatch("no hook came to %s" % path)
    headers, text = hook
    capture(want.get("capture", {}), headers, text, variables)
    patterns.match_headers(expand(want.get("headers", {}), variables), headers)
    try:
        patterns.match(expand(want["body"], variables), json.loads(text))
    except ValueError:
        raise Mismatch("body: not JSON: %s" % show(text or "(empty)")) from None


def check_error(pattern, got):
    """Of an error document the title counts; the description must only be there."""
    if not isinstance(got, dict):
        raise Mismatch("body: expected an error document, got %s" % show(got))
    patterns.match(pattern["title"], got.get("title"), "body.title")
    if "description" in pattern and not (
            isinstance(got.get("description"), str) and got["description"]):
        raise Mismatch("body: the error needs a description, got %s" % show(got))


def curl_line(method, path, headers, body):
    """The request in a form to try again by hand."""
    words = ["curl -i -X %s" % method] + ["-H '%s: %s'" % h for h in headers.items()]
    if body is not None:
        text = show(body.decode("utf-8", "replace"))
        words.append("--data-binary '%s'" % text.replace("'", "'\\''"))
    return " ".join(words + ["\"$CLAIMD%s\"" % path])


# ------------------------------------------------------------- one transcript


def new_variables():
    return {"project": "p" + uuid.uuid4().hex[:15], "project2": "p" + uuid.uuid4().hex[:15],
            "client": str(uuid.uuid4()), "client2": str(uuid.uuid4())}


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def run_transcript(document, client, wait, now=time.time):
    """Replays one transcript; returns how many steps matched and a text for each that did not.

    client: where to send; wait(seconds): how to let time pass; now(): the server's time, in
    seconds since 1970.
    """
    variables = {**new_variables(), "now": now}
    defaults = {**DEFAULT_HEADERS, **document.get("headers", {})}
    matched, failures = 0, []
    with contextlib.ExitStack() as stack:
        sink = None
        if any("delivery" in step for step in document["steps"]):
            sink = stack.enter_context(Sink())
            variables["sink"] = sink.url
        for number, step in enumerate(document["steps"], 1):
            if "wait_s" in step:
                wait(step["wait_s"])
            try:
                if "request" in step:
                    run_step(step, defaults, client, sink, variables)
                else:
                    want = step.get("deviation", step)["delivery"]
                    check_delivery(want, sink, wait, variables)
                matched += 1
            except Mismatch as mismatch:
                failures.append("step %d: %s\n    %s" % (number, step["name"], mismatch))
    return matched, failures


def run_step(step, defaults, client, sink, variables):
    deviation = step.get("deviation", {})
    want = deviation.get("response", step.get("response"))
    rules = deviation.get("capture", step.get("capture", {}))
    if "sink" in step:
        sink.script(step["sink"])
    request = build_request(step["request"], defaults, variables)
    try:
        status, headers, text = client.send(*request)
    except (OSError, http.client.HTTPException) as error:
        client.close()
        raise Mismatch("no response: %r\n    %s" % (error, curl_line(*request))) from None
    try:
        if status < 400:
            capture(rules, headers, text, variables)
        check(want, status, headers, text, variables)
    except Mismatch as mismatch:
        raise Mismatch("%s\n    the response was %d %s\n    %s"
                       % (mismatch, status, show(text), curl_line(*request))) from None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("transcripts", nargs="+")
    parser.add_argument("--endpoint", default="http://127.0.0.1:8888")
    options = parser.parse_args()
    url = urllib.parse.urlsplit(options.endpoint)
    total = failed = 0
    for path in options.transcripts:
        client = Client(url.hostname, url.port or 80, url.path.rstrip("/"))
        matched, failures = run_transcript(load(path), client, time.sleep)
        client.close()
        total += matched
        failed += len(failures)
        for failure in failures:
            print("FAIL %s %s" % (os.path.basename(path), failure))
    print("%d steps matched, %d did not" % (total, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
