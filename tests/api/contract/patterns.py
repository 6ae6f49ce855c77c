"""Templates and patterns of the transcripts: what to send, what to accept.

In a request, `{{name}}` stands for a variable, `{{repeat:x:100}}` for a hundred x, `{{utc:3}}` for
the date in three seconds, and `{{sign:PATHS|METHODS|PROJECT|EXPIRES}}` for the signature of a grant,
whose parts are variables or stand for themselves. An expected response may also have wildcards:

    {{*}}           anything                    {{*int}} {{*int:0..5}}   an integer
    {{*str}}        text that is not empty      {{*num}} {{*num:0..5}}   a number
    {{*id}}         an id                       {{*bool}}                a boolean
    {{*opaque}}     a piece of a URL            {{*time}}                a time stamp
    {{*hex64}}      64 hexadecimal digits
    {{*re:EXPR}}    whatever the regular expression matches
    {{more}}        as a member of an object: other members are allowed
    {{unordered}}   as the only member: the array it holds, in any order
"""

import datetime
import hashlib
import hmac
import json
import re

TOKEN = re.compile(r"\{\{(.+?)\}\}(?!\})")
MORE = "{{more}}"
UNORDERED = "{{unordered}}"

# Wildcards inside a longer text, as regular expressions.
TEXT = {
    "*": r"[\s\S]*",
    "*id": r"[A-Za-z0-9_-]+",
    "*opaque": r"[^&?/\s]+",
    "*str": r"[\s\S]+",
    "*int": r"-?[0-9]+",
    "*time": r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z?",
    "*hex64": r"[0-9a-f]{64}",
}

# The key of a server that signs.
KEY = "0123456789abcdef0123456789abcdef"


class Mismatch(Exception):
    """A response that is not what the transcript says."""


def show(value):
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) < 1500 else "%s... (%d characters)" % (text[:1500], len(text))


# ---------------------------------------------------------------- filling in


def utc(variables, seconds):
    """The date in so many seconds, by the server's clock."""
    return datetime.datetime.fromtimestamp(variables["now"]() + seconds,
                                           datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")


def sign(variables, parts):
    text = "\\n".join(variables.get(part, part) for part in parts.split("|"))
    return hmac.new(KEY.encode(), text.encode(), hashlib.sha256).hexdigest()


def expand_text(text, variables):
    """The text with its variables and generators replaced; wildcards stay."""
    def replacement(match):
        name = match.group(1)
        if name.startswith("*"):
            return match.group(0)
        if name.startswith("repeat:"):
            _, chunk, count = name.split(":")
            return chunk * int(count)
        if name.startswith("utc:"):
            return utc(variables, int(name[4:]))
        if name.startswith("sign:"):
            return sign(variables, name[5:])
        if name in variables:
            return str(variables[name])
        raise Mismatch("variable %r is not bound" % name)
    return TOKEN.sub(replacement, text)


def expand(value, variables):
    """expand_text() through a whole document; a lone variable keeps its type."""
    if isinstance(value, str):
        whole = TOKEN.fullmatch(value)
        if whole and whole.group(1) in variables:
            return variables[whole.group(1)]
        return expand_text(value, variables)
    if isinstance(value, list):
        return [expand(item, variables) for item in value]
    if isinstance(value, dict):
        return {key if key in (MORE, UNORDERED) else expand_text(key, variables):
                expand(item, variables) for key, item in value.items()}
    return value


# ------------------------------------------------------------------ matching


def match(pattern, got, where="body"):
    """Raises Mismatch unless the document `got` is what the expanded pattern says."""
    if isinstance(pattern, str):
        match_leaf(pattern, got, where)
    elif isinstance(pattern, dict) and set(pattern) == {UNORDERED}:
        match_unordered(pattern[UNORDERED], got, where)
    elif isinstance(pattern, dict):
        match_object(pattern, got, where)
    elif isinstance(pattern, list):
        match_array(pattern, got, where)
    elif type(pattern) is not type(got) and not (is_number(pattern) and is_number(got)):
        raise Mismatch("%s: expected %s, got %s" % (where, show(pattern), show(got)))
    elif pattern != got:
        raise Mismatch("%s: expected %s, got %s" % (where, show(pattern), show(got)))


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def match_leaf(pattern, got, where):
    whole = TOKEN.fullmatch(pattern)
    name = whole.group(1) if whole else ""
    if name == "*":
        return
    if name.startswith(("*int", "*num")):
        match_number(name, got, where)
    elif name == "*bool":
        if not isinstance(got, bool):
            raise Mismatch("%s: expected a boolean, got %s" % (where, show(got)))
    elif name.startswith("*re:"):
        match_text(pattern, got if isinstance(got, str) else json.dumps(got), where)
    elif where.endswith("href") and isinstance(got, str):
        match_text(normal_href(pattern), normal_href(got), where)
    else:
        match_text(pattern, got, where)


def match_number(name, got, where):
    kind, _, bounds = name.partition(":")
    low, high = bounds.split("..") if bounds else ("-inf", "inf")
    if not is_number(got) or (kind == "*int" and not isinstance(got, int)) \
            or not float(low) <= got <= float(high):
        raise Mismatch("%s: expected {{%s}}, got %s" % (where, name, show(got)))


def match_text(pattern, got, where):
    if not isinstance(got, str):
        raise Mismatch("%s: expected text %r, got %s" % (where, pattern, show(got)))
    expression, end = "", 0
    for token in TOKEN.finditer(pattern):
        name, _, argument = token.group(1).partition(":")
        expression += re.escape(pattern[end:token.start()])
        expression += "(?:%s)" % (argument if name == "*re" else TEXT[name])
        end = token.end()
    expression += re.escape(pattern[end:])
    if not re.fullmatch(expression, got):
        raise Mismatch("%s: expected %s\n    got %s" % (where, show(pattern), show(got)))


def match_object(pattern, got, where):
    if not isinstance(got, dict):
        raise Mismatch("%s: expected an object, got %s" % (where, show(got)))
    missing = sorted(set(pattern) - set(got) - {MORE})
    extra = [] if MORE in pattern else sorted(set(got) - set(pattern))
    if missing or extra:
        raise Mismatch("%s: members missing: %s, not expected: %s\n    got %s"
                       % (where, missing, extra, show(got)))
    for key, value in pattern.items():
        if key != MORE:
            match(value, got[key], "%s.%s" % (where, key))


def match_array(pattern, got, where):
    if not isinstance(got, list) or len(got) != len(pattern):
        raise Mismatch("%s: expected %d items, got %s" % (where, len(pattern), show(got)))
    for i, (expected, item) in enumerate(zip(pattern, got)):
        match(expected, item, "%s[%d]" % (where, i))


def match_unordered(patterns, got, where):
    if not isinstance(got, list) or len(got) != len(patterns):
        raise Mismatch("%s: expected %d items, got %s" % (where, len(patterns), show(got)))
    left = list(got)
    for pattern in patterns:
        for i, item in enumerate(left):
            try:
                match(pattern, item, where)
            except Mismatch:
                continue
            del left[i]
            break
        else:
            raise Mismatch("%s: nothing like %s among %s" % (where, show(pattern), show(left)))


def normal_href(text):
    """The link with its query parameters in one order, for comparison.

    The original puts include_delayed=true into links on its own account; claimd repeats
    the request. The transcripts were recorded from the original, so it does not count.
    """
    path, mark, query = text.partition("?")
    return path + mark + "&".join(sorted(
        part for part in query.split("&") if part != "include_delayed=true"))


def match_headers(expected, got):
    """Compares the headers named in `expected`; null means: must not be there."""
    for name, want in expected.items():
        have = got.get(name.lower())
        if want is None and have is None:
            continue
        if want is None or have is None:
            raise Mismatch("header %s: expected %r, got %r" % (name, want, have))
        match_text(normal_header(name, want), normal_header(name, have), "header " + name)


def normal_header(name, value):
    name = name.lower()
    if name == "content-type":
        return value.split(";")[0].strip()
    if name in ("location", "content-location"):
        return normal_href(value)
    if name == "allow":
        return ", ".join(sorted(word.strip() for word in value.split(",")))
    return value
