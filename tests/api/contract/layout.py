#!/usr/bin/python3
"""Lays transcripts out with one step a line, so that a change of one is a line in a diff.

    layout.py [FILE...]            writes them so (all of transcripts/ by default)

Each other member of a file has a line as well. Only white space changes.
"""

import glob
import json
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))


def one_line(value):
    return json.dumps(value, ensure_ascii=False)


def member(name, value):
    """One of the file: the list of steps over many lines, anything else on one."""
    if name != "steps" or not value:
        return " %s: %s" % (one_line(name), one_line(value))
    return ' "steps": [\n%s\n ]' % ",\n".join("  " + one_line(step) for step in value)


def lay_out(text):
    document = json.loads(text)
    return "{\n%s\n}\n" % ",\n".join(member(*item) for item in document.items())


def main(paths):
    for path in paths or sorted(glob.glob(os.path.join(HERE, "transcripts", "*.json"))):
        with open(path, encoding="utf-8", newline="") as f:
            text = f.read()
        with open(path, "w", encoding="utf-8", newline="") as f:
            f.write(lay_out(text))


if __name__ == "__main__":
    main(sys.argv[1:])
