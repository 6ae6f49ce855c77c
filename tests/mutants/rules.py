"""The rules by which made.py makes mutants of a C file: small changes that a test should notice.

candidates() lists every change that the rules allow in a text. The rules rely on the layout that
scripts/format enforces: a function begins and ends with a brace in the first column, and a binary
operator has blanks around it.
"""

import re
from typing import NamedTuple

SWAPS = {
    "relational": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    "arithmetic": {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "+=": "-=", "-=": "+=",
                   "&": "|", "|": "&", "&=": "|=", "|=": "&=", "<<": ">>", ">>": "<<"},
    "logical": {"&&": "||", "||": "&&"},
}

# Comments, strings, characters and preprocessor lines.
NO_CODE = re.compile(r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
                         | ^[ \t]*\#(?:\\\n | /\*.*?\*/ | [^\n])*""", re.S | re.M | re.X)
ASSERTION = re.compile(r"\b(?:ENSURE\w*|static_assert|_Static_assert|assert|lock_assert_held)\(")
DECLARED_ARRAY = re.compile(r"^[ \t]+(?:\w+ )+\**\w+(?:\[[^\]\n]*\])+", re.M)
FUNCTION = re.compile(r"^\{$.*?^\}$", re.M | re.S)

OPERATOR = re.compile(r"(?<=\s)[-+*/%<>=!&|]{1,2}(?=\s)")
NUMBER = re.compile(r"(?<![\w.{])(\d+)([uUlL]*)(?![\w.])")
IF = re.compile(r"\bif \(")
NOT = re.compile(r"(?<![\w)])!(?=[\w(])")
RETURN = re.compile(r"(?<=\breturn )(ST_\w+|true|false|st|status)(?=;)")
CHOICE = re.compile(r"(?<=\? )(ST_\w+)(\s+:\s+)(ST_\w+)")
CALL = re.compile(r"(?:[;{}):]|\belse)\s*\n[ \t]+((?:\(void\))?([a-z_]\w*)\()")

# Without these calls memory leaks, secrets stay in memory, or threads race. Only sanitizers see that.
UNSEEN_CALL = re.compile(r"(?:free|decref|unpin|_fini|_destroy|bzero|va_end|lock_init)$")
KEYWORD = {"if", "for", "while", "switch", "return", "sizeof"}


class Change(NamedTuple):
    kind: str
    start: int  # offsets in the text
    end: int
    new: str    # the text instead


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def closing(text, opening):
    """The offset behind the parenthesis that closes the one at `opening`."""
    depth = 0
    for at in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return len(text)


def code_of(text):
    """The text with blanks in place of all that is outside functions or must not change."""
    text = NO_CODE.sub(blank, text)
    text = DECLARED_ARRAY.sub(blank, text)
    for match in list(ASSERTION.finditer(text)):
        end = closing(text, match.end() - 1)
        text = text[:match.start()] + re.sub(r"[^\n]", " ", text[match.start():end]) + text[end:]
    code = re.sub(r"[^\n]", " ", text)
    for match in FUNCTION.finditer(text):
        code = code[:match.start()] + match.group() + code[match.end():]
    return code


def other_status(name, all_names):
    """Success becomes a failure, and a failure success."""
    if name != "ST_OK":
        return "ST_OK"
    return next((other for other in all_names if other != "ST_OK"), "ST_NO_MEMORY")


def operators(_, code):
    for match in OPERATOR.finditer(code):
        for kind, swaps in SWAPS.items():
            if match.group() in swaps:
                yield Change(kind, *match.span(), swaps[match.group()])


def constants(_, code):
    for match in NUMBER.finditer(code):
        digits, suffix = match.groups()
        new = "0" if digits == "1" else str(int(digits) + 1)
        yield Change("constant", *match.span(), new + suffix)


def conditions(text, code):
    for match in IF.finditer(code):
        start, end = match.end(), closing(code, match.end() - 1) - 1
        yield Change("condition", start, end, "!(" + text[start:end] + ")")
    for match in NOT.finditer(code):
        yield Change("condition", *match.span(), "")


def returns(_, code):
    names = sorted(set(re.findall(r"\bST_\w+", code)))
    for match in RETURN.finditer(code):
        old = match.group()
        new = {"true": "false", "false": "true"}.get(old) or other_status(old, names)
        yield Change("return", *match.span(), new)
    for match in CHOICE.finditer(code):
        yield Change("return", *match.span(), match[3] + match[2] + match[1])


def calls(_, code):
    at = 0
    while match := CALL.search(code, at):
        at = match.start(1)
        end = closing(code, match.end() - 1)
        if code[end:end + 2] == ";\n" and match[2] not in KEYWORD and not UNSEEN_CALL.search(match[2]):
            yield Change("call", at, end, "\n" * code.count("\n", at, end))


def candidates(text):
    """Every change that the rules allow, in a fixed order."""
    code = code_of(text)
    return [change for rule in (operators, constants, conditions, returns, calls)
            for change in rule(text, code)]


def mutate(text, change):
    return text[:change.start] + change.new + text[change.end:]


def describe(text, change):
    """The line of the change, and its first line before and after."""
    line = text.count("\n", 0, change.start)
    after = mutate(text, change).split("\n")[line]
    return line + 1, text.split("\n")[line], after
