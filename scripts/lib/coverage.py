"""Prints the coverage of each folder of src, and the files with the most branches not reached.

    llvm-cov export ... -summary-only | coverage.py ROOT
"""

import json
import os
import sys

FILES = 15


def percent(part, whole):
    return "%.1f" % (100 * part / whole) if whole else "-"


def table(first, rows):
    print("| %s | lines | reached, %% | branches | reached, %% |\n|---|---|---|---|---|" % first)
    for name, summary in rows:
        cells = ["%d | %s" % (summary[kind]["count"],
                              percent(summary[kind]["covered"], summary[kind]["count"]))
                 for kind in ("lines", "branches")]
        print("| %s | %s |" % (name, " | ".join(cells)))


def main():
    root = os.path.join(sys.argv[1], "src")
    files = {os.path.relpath(file["filename"], root): file["summary"]
             for file in json.load(sys.stdin)["data"][0]["files"]}
    files = {path: summary for path, summary in files.items() if not path.startswith("..")}
    folders = {}
    for path, summary in files.items():
        folder = folders.setdefault(path.split("/")[0], {})
        for kind in ("lines", "branches"):
            total = folder.setdefault(kind, {"count": 0, "covered": 0})
            for key in total:
                total[key] += summary[kind][key]
    table("folder", sorted(folders.items()))
    print()
    table("file", sorted(files.items(), key=lambda f: -f[1]["branches"]["notcovered"])[:FILES])


if __name__ == "__main__":
    main()
