"""What scripts/check/style finds in the C sources beside words. A fault is "PATH:LINE: what is wrong".

- Names that only their own file or only tests use. Their prototypes tell readers otherwise. A function that
  only tests use beside its own file is fine if a unit or fuzz test does. If nothing else uses it, the
  comment at its declaration must say "tests".
- Lines of comments over WIDTH columns.
- Declarations torn by a trailing comment: the type alone on a line.
- Names of structures that two files define.
- Files that do not say what they are for: a .c file of src or tests without a header of its name, and
  without a comment at its beginning. A header of tests and a Python file of tests without one.
"""

import ast
import collections
import os
import re

WIDTH = 90  # ColumnLimit of .clang-format
PRODUCT = ("src/", "include/")
UNITS = ("tests/unit/", "tests/fuzz/")

# A text or a character, and a comment. So a comment cannot begin in a text.
PART = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|(/\*.*?\*/)', re.S)
NAME = re.compile(r"[A-Za-z_]\w*")
# Definitions in column 0: a function behind its type, as clang-format writes it, and an object.
FUNCTION = re.compile(r"^(?!static\b|typedef\b|extern\b)[\w* ]+\n(\w+)\(", re.M)
OBJECT = re.compile(r"^(?!static\b|typedef\b|extern\b|return\b)(?:const |struct |enum |_Atomic )*\w+[ *]+(?:const )?"
                    r"(\w+)(?:\[[^\]]*\])* =", re.M)
STRUCT = re.compile(r"^(?:static |typedef |extern )?(?:const )?struct (\w+) \{", re.M)
TORN = re.compile(r"^ +(?!else\b|return\b)(?:\w+ )*\w+(?: \*?const)?(?: \*+)?\n +(\**\w+)(?:\[[^\n;]*\])*"
                  r"(?:, \**\w+(?:\[[^\n;]*\])*)*; */\*", re.M)


def code_of(text):
    """The text without comments and texts, in the same lines."""
    return PART.sub(lambda match: "\n" * match[0].count("\n") if match[1] else '""', text)


def place(path, text, offset):
    return "%s:%d: " % (path, text.count("\n", 0, offset) + 1)


def width_faults(path, text):
    faults = []
    for match in PART.finditer(text):
        if not match[1]:
            continue
        begin = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.end())
        line = text.count("\n", 0, begin) + 1
        for number, row in enumerate(text[begin:end if end >= 0 else len(text)].split("\n"), line):
            if len(row) > WIDTH and len(row.split()) > 2:
                faults.append("%s:%d: a comment of %d columns, at most %d" % (path, number, len(row), WIDTH))
    return sorted(set(faults))


def torn_faults(path, text):
    return [place(path, text, match.start()) + "put the comment above the declaration: " + match[1]
            for match in TORN.finditer(text)]


def double_faults(texts):
    """texts: path -> code."""
    where = collections.defaultdict(dict)
    for path, code in texts.items():
        for match in STRUCT.finditer(code):
            where[match[1]].setdefault(path, place(path, code, match.start()))
    return ["%sstruct %s is also in %s" % (found[path], name, ", ".join(sorted(set(found) - {path})))
            for name, found in sorted(where.items()) if len(found) > 1
            for path in [max(found)]]


def opening_faults(whole):
    """whole: path -> text. Files of src and tests that neither a header nor a comment explains."""
    public = {os.path.basename(path) for path in whole if path.startswith("include/")}
    faults = []
    for path, text in whole.items():
        name, ending = os.path.splitext(path)
        if path.startswith("include/") or path.startswith("src/") and ending != ".c" or opens_with_comment(ending, text):
            continue
        if ending == ".c" and {name + ".h", name + "_private.h"} & whole.keys() or \
                path.startswith("src/") and os.path.basename(name) + ".h" in public:
            continue
        faults.append(path + ":1: say in a comment " + (
            "what this file does, which header declares it, and what to read next" if path.startswith("src/") else
            "which promise this file tests or what it helps with, and what to read next"))
    return faults


def opens_with_comment(ending, text):
    if ending == ".py":
        return ast.get_docstring(ast.parse(text)) is not None
    return text.lstrip().startswith("/*")


def says_tests(name, headers):
    """Does the paragraph of a header that declares the name mention tests?"""
    return any(re.search(r"\b%s\b" % name, part) and re.search(r"\btests?\b", part)
               for text in headers for part in re.split(r"\n\s*\n", text))


def export_faults(texts, whole):
    """texts: path -> code; whole: path -> text. Names that macros declare are passed over."""
    users = collections.defaultdict(collections.Counter)
    for path, code in texts.items():
        for name in NAME.findall(code):
            users[name][path] += 1
    headers = [text for path, text in whole.items() if path.endswith(".h") and is_product(path)]
    faults = []
    for path, code in texts.items():
        if not path.endswith(".c") or not is_product(path):
            continue
        for match in [*FUNCTION.finditer(code), *OBJECT.finditer(code)]:
            name, found = match[1], users[match[1]]
            declared = sum(count for other, count in found.items() if other.endswith(".h") and is_product(other))
            others = [other for other in found if other != path]
            if name == "main" or declared != 1 or any(is_product(other) and other.endswith(".c") for other in others):
                continue
            tests = [other for other in others if not is_product(other)]
            if not tests:
                faults.append(place(path, code, match.start(1)) + "only this file uses it: " + name)
            elif found[path] == 1 and not says_tests(name, headers):
                faults.append(place(path, code, match.start(1)) +
                              'only tests use it, so its declaration must say "tests": ' + name)
            elif found[path] > 1 and not any(other.startswith(UNITS) for other in tests) and \
                    not says_tests(name, headers):
                faults.append(place(path, code, match.start(1)) + "only this file and tests use it: " + name)
    return faults


def is_product(path):
    """Whether the file is no test: the load generator is a program, too."""
    return path.startswith(PRODUCT) or path.startswith("tests/bench/load/")


def faults_of(whole, scripts):
    """whole: path -> text of each C file of src, include and tests. scripts: the same of Python files of tests."""
    texts = {path: code_of(text) for path, text in whole.items()}
    faults = [fault for path, text in whole.items()
              for fault in width_faults(path, text) + torn_faults(path, text)]
    return faults + double_faults({path: code for path, code in texts.items() if path.startswith(PRODUCT)}) + \
        export_faults(texts, whole) + opening_faults({**whole, **scripts})


def self_test():
    """(what, does it work?) of each check."""
    def exports(header, source, **more):
        whole = {"include/a.h": header, "src/a.c": source, **{path.replace("__", "/"): text for path, text in more.items()}}
        return export_faults({path: code_of(text) for path, text in whole.items()}, whole)

    header, source = "void used(void);\n", "void\nused(void)\n{\n}\n"
    unit = {"tests__unit__a.c": "used();\n"}
    wide = "/* " + "word " * 18 + "*/\n"
    return [
        ("a name of its own file", len(exports(header, source + "used();\n")) == 1),
        ("a name in a comment", len(exports(header, source, src__b="", src__c="/* used() */")) == 1),
        ("an object of its own file", len(exports("extern const int used;\n", "const int used = 1;\n")) == 1),
        ("a name of two files", not exports(header, source, **{"src__b.c": "used();\n"})),
        ("a name of an inline function", not exports(header + "static inline void f(void) { used(); }\n", source)),
        ("a static name", not exports("", "static void\nused(void)\n{\n}\n")),
        ("a name of tests", len(exports(header, source, **unit)) == 1),
        ("a name that is for tests", not exports("/* For tests. */\n" + header, source, **unit)),
        ("a name for its file and a unit test", not exports(header, source + "used();\n", **unit)),
        ("a name for its file and other tests",
         len(exports(header, source + "used();\n", **{"tests__api__a.c": "used();\n"})) == 1),
        ("a wide comment", len(width_faults("a.c", wide)) == 1),
        ("a wide line of a comment", width_faults("a.c", "/*\n * " + wide)[0].startswith("a.c:2:")),
        ("a wide address", not width_faults("a.c", "/*\n * https://" + "a" * 90 + "\n */\n")),
        ("a wide text", not width_faults("a.c", '"/* ' + "a " * 60 + '*/"\n')),
        ("a torn declaration", len(torn_faults("a.h", "    struct bytes\n        reason; /* why */\n")) == 1),
        ("a torn pointer", len(torn_faults("a.h", "    const char\n        *a[2], *b; /* why */\n")) == 1),
        ("a declaration", not torn_faults("a.h", "    struct bytes reason; /* why */\n    int a;\n    int b; /* c */\n")),
        ("a double structure", len(double_faults({"src/a.h": "struct a {\n", "src/b.c": "struct a {\n"})) == 1),
        ("a file that nothing explains",
         len(opening_faults({"src/a/b.c": "int b;\n/* b */\n", "src/b.h": "", "include/claimd/a/b_private.h": ""})) == 1),
        ("a file with a comment", not opening_faults({"src/a/b.c": "/* Counts. */\nint b;\n"})),
        ("a file with a header", not opening_faults({"src/a/b.c": "", "src/a/b.h": ""})),
        ("a file with a private header", not opening_faults({"src/a/b.c": "", "src/a/b_private.h": ""})),
        ("a file with a public header", not opening_faults({"src/a/b.c": "", "include/claimd/a/b.h": ""})),
        ("a test that nothing explains",
         len(opening_faults({"tests/unit/b_test.c": "int b;\n", "tests/b.h": "", "include/claimd/b_test.h": ""})) == 2),
        ("a test with a comment", not opening_faults({"tests/unit/b_test.c": "/* Counts. */\nint b;\n"})),
        ("a helper with a header", not opening_faults({"tests/b.c": "int b;\n", "tests/b.h": "/* Counts. */\n"})),
        ("a Python test that nothing explains", len(opening_faults({"tests/b.py": "# Counts.\nb = 1\n"})) == 1),
        ("a Python test with a docstring", not opening_faults({"tests/b.py": '#!/usr/bin/python3\n"""Counts."""\n'})),
    ]
