#!/usr/bin/python3
"""Makes copies of sources with the deliberate bugs of table.py built in but inactive.

    mutate.py files SRC        the files below SRC that have bugs, one a line
    mutate.py tests            the tests that have to find them, one a line
    mutate.py stale SRC        the bugs whose text is not in the source any more
    mutate.py make SRC OUT     writes the copies, OUT/mutant.h and OUT/mutant.c

So the sources themselves do not mention bugs. In a program that is linked with the copies, the
environment variable MUTANT names the active bug. The program can also set mutant_awake
(OUT/mutant.h). A bug that is stale is left out.
"""

import os
import sys

from table import MUTANTS, SIMULATION

HEADER = """/* Made by mutate.py: the deliberate bugs, and the active one. */
#ifndef MUTANT_H
#define MUTANT_H

#include <stdbool.h>

/* X(name, what it breaks, whether the simulation has to find it) */
#define MUTANT_LIST(X) \\
%s

enum mutant {
    MUTANT_NONE,
#define MUTANT_ENUM(name, text, by_simulation) MUTANT_##name,
    MUTANT_LIST(MUTANT_ENUM)
#undef MUTANT_ENUM
    MUTANT_COUNT
};

extern enum mutant mutant_awake;

#define MUTANT(name) (mutant_awake == MUTANT_##name)

#endif
"""

GLUE = """/* Made by mutate.py: activates the bug that the environment names. */
#include "mutant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum mutant mutant_awake = MUTANT_NONE;

static const char *const names[MUTANT_COUNT] = {
    "",
#define MUTANT_NAME(name, text, by_simulation) #name,
    MUTANT_LIST(MUTANT_NAME)
#undef MUTANT_NAME
};

static void __attribute__((constructor))
wake(void)
{
    const char *wanted = getenv("MUTANT");

    if (wanted == NULL)
        return;
    for (int i = 0; i < MUTANT_COUNT; i++) {
        if (strcmp(names[i], wanted) != 0)
            continue;
        mutant_awake = (enum mutant)i;
        return;
    }
    (void)fprintf(stderr, "there is no mutant %s\\n", wanted);
    abort();
}
"""


def files(source):
    """The files that have bugs, without those that are gone."""
    paths = {path for _, _, _, changes in MUTANTS for path, _, _ in changes}
    return sorted(path for path in paths if os.path.exists(os.path.join(source, path)))


def tests():
    """The tests that have to find bugs, without their cases."""
    return sorted({killer.split(": ")[0] for _, _, killer, _ in MUTANTS
                   if killer is not SIMULATION})


def build_in(source):
    """The texts of the files with their bugs, the bugs that fit, and a reason for each other one."""
    texts = {}
    fitting = []
    stale = {}
    for path in files(source):
        with open(os.path.join(source, path), encoding="utf-8") as original:
            texts[path] = original.read()
    for row in MUTANTS:
        changed = dict(texts)
        for path, before, after in row[3]:
            count = changed.get(path, "").count(before)
            if count != 1:
                stale[row[0]] = ("src/%s has this text %d times instead of once:\n%s"
                                 % (path, count, before))
                break
            changed[path] = changed[path].replace(before, after)
        else:
            texts = changed
            fitting.append(row)
    return texts, fitting, stale


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


def make(source, out):
    texts, fitting, _ = build_in(source)
    for path, text in texts.items():
        write(os.path.join(out, path), '#include "mutant.h"\n#line 1 "%s"\n%s' % (path, text))
    rows = " \\\n".join('    X(%s, "%s", %s)'
                        % (name, text, "true" if killer is SIMULATION else "false")
                        for name, text, killer, _ in fitting)
    write(os.path.join(out, "mutant.h"), HEADER % rows)
    write(os.path.join(out, "mutant.c"), GLUE)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "files":
        print("\n".join(files(sys.argv[2])))
    elif sys.argv[1:] == ["tests"]:
        print("\n".join(tests()))
    elif len(sys.argv) == 3 and sys.argv[1] == "stale":
        for name in build_in(sys.argv[2])[2]:
            print(name)
    elif len(sys.argv) == 4 and sys.argv[1] == "make":
        make(*sys.argv[2:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
