#!/usr/bin/python3
"""Writes the seeds of the target `requests`: each transcript of the contract as one input.

    seeds_from_transcripts.py           from tests/api/contract/transcripts to tests/fuzz/corpus

Ids that a transcript captures are named by the order in which they are seen ("@m0" is the
first message, see known_ids.h). Run it again when transcripts were added.
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
CONTRACT = HERE.parent / "api" / "contract"
sys.path.insert(0, str(CONTRACT))

import patterns  # noqa: E402

MAX = 3000  # bytes of a request; the longest ones only slow the fuzzer down
VARIABLES = {"project": "480924", "project2": "p2",
             "client": "3381af92-2b9e-11e3-b191-71861300734c",
             "client2": "7f0a3d52-1c0f-4d5b-9d3e-1f7f5d0c2a11",
             "now": lambda: 1769860800}  # when requests_fuzz.c begins


def head(request, variables):
    headers = dict(request.get("headers", {}))
    if "body" in request and "content-type" not in map(str.lower, headers):
        headers["Content-Type"] = "application/json"
    for name, value in headers.items():
        if value is None:
            yield name
        else:
            yield "%s: %s" % (name, patterns.expand_text(value, variables))


def body(request, variables):
    if "body" in request:
        return json.dumps(patterns.expand(request["body"], variables)).encode()
    if "body_text" in request:
        return patterns.expand_text(request["body_text"], variables).encode()
    return bytes.fromhex(request.get("body_hex", ""))


def capture(step, variables, seen):
    """Binds what the step captures, and counts the ids that its response shows."""
    for name, rule in step.get("capture", {}).items():
        if "claims/" in rule.get("regex", ""):
            variables[name] = "@c%d" % seen["claims"]
        elif rule.get("pointer", "").startswith("/resources/"):
            number = int(rule["pointer"].rsplit("/", 1)[1])
            variables[name] = "@m%d" % (seen["messages"] + number)
        elif rule.get("pointer") == "/subscription_id":
            variables[name] = "@s%d" % seen["subscriptions"]
            seen["subscriptions"] += 1
        elif rule.get("pointer") == "/links/0/href":
            variables[name] = "%s?marker=@n0" % step["request"]["path"].split("?")[0] \
                if "subscriptions" in step["request"]["path"] \
                else "/v2/queues/q/messages?marker=@n0"
        else:
            variables[name] = "@m0"
    if step["response"]["status"] != 201:
        return
    path = step["request"]["path"].split("?")[0]
    if path.endswith("/messages"):
        document = step["request"].get("body")
        messages = document.get("messages", []) if isinstance(document, dict) else document
        seen["messages"] += len(messages or [])
    elif path.endswith("/claims"):
        seen["claims"] += 1


def section(step, variables):
    request = step["request"]
    lines = []
    if "wait_s" in step:
        lines.append("wait %d" % (step["wait_s"] * 1000))
    lines.append("%s %s" % (request["method"],
                            patterns.expand_text(request["path"], variables)))
    lines.extend(head(request, variables))
    text = "\n".join(lines).encode()
    content = body(request, variables)
    return text + b"\n\n" + content if content else text


def convert(transcript):
    variables, seen, sections = dict(VARIABLES), {"messages": 0, "claims": 0, "subscriptions": 0}, []
    for step in transcript["steps"]:
        try:
            made = section(step, variables)
        except patterns.Mismatch:  # about something that cannot be named in advance
            continue
        if len(made) <= MAX:
            sections.append(made)
        capture(step, variables, seen)
    return b"\n%%\n".join(sections)


def main():
    folder = HERE / "corpus" / "requests"
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((CONTRACT / "transcripts").glob("*.json")):
        with open(path, encoding="utf-8") as file:
            seed = convert(json.load(file))
        (folder / path.stem).write_bytes(seed)


main()
