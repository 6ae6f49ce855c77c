#!/usr/bin/python3
"""Makes copies of sources with the deliberate bugs of table.py built in but asleep.

    mutate.py files            the files below src that have any, one a line
    mutate.py tests            the tests that have to find them, one a line
    mutate.py make SRC OUT     writes the copies, OUT/mutant.h and OUT/mutant.c

So the sources themselves say nothing of bugs. In a program that is linked with the copies,
a bug is awake whose name stands in the environment variable MUTANT, or that the program
itself puts into mutant_awake (OUT/mutant.h).
"""

import os
import sys

from table import MUTANTS, SIMULATION

HEADER = """/* Made by mutate.py: the deliberate bugs, and which of them is awake. */
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

GLUE = """/* Made by mutate.py: wakes the bug that the environment names. */
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


def fail(message):
    sys.exit("mutate.py: " + message)


def files():
    """The files that have bugs."""
    return sorted({path for _, _, _, changes in MUTANTS for path, _, _ in changes})


def tests():
    """The tests that have to find bugs, without their cases."""
    return sorted({killer.split(": ")[0] for _, _, killer, _ in MUTANTS
                   if killer is not SIMULATION})


def mutate(path, text):
    """The text of a file with all the bugs that belong into it."""
    for name, _, _, changes in MUTANTS:
        for where, before, after in changes:
            if where != path:
                continue
            if text.count(before) != 1:
                fail("src/%s has the text that the bug %s replaces %d times. It must have it once. "
                     "Change the row in tests/mutants/table.py to fit the source:\n%s"
                     % (path, name, text.count(before), before))
            text = text.replace(before, after)
    return '#include "mutant.h"\n#line 1 "%s"\n' % path + text


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


def make(source, out):
    for path in files():
        with open(os.path.join(source, path), encoding="utf-8") as original:
            write(os.path.join(out, path), mutate(path, original.read()))
    rows = " \\\n".join('    X(%s, "%s", %s)'
                        % (name, text, "true" if killer is SIMULATION else "false")
                        for name, text, killer, _ in MUTANTS)
    write(os.path.join(out, "mutant.h"), HEADER % rows)
    write(os.path.join(out, "mutant.c"), GLUE)


def main():
    if sys.argv[1:] == ["files"]:
        print("\n".join(files()))
    elif sys.argv[1:] == ["tests"]:
        print("\n".join(tests()))
    elif len(sys.argv) == 4 and sys.argv[1] == "make":
        make(*sys.argv[2:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
