#!/usr/bin/python3
"""Wakes each deliberate bug that a test has to find, and sees that test fail by name.

    kill.py PROGRAMS TESTS [NAME...]

PROGRAMS is the folder of the programs that are linked with the bugs (mutate.py), TESTS that
of the sources of the tests, NAME... are only these bugs. With no bug awake each test must
pass; with one awake the test that the table names must fail, and no other of its program.
Prints a table of who was found by what. Exit status 0 if all were.
"""

import os
import re
import subprocess
import sys

from table import MUTANTS, SIMULATION

PATIENCE_S = 600
FAILED_CASE = re.compile(r"^[^ ]+:[0-9]+:[FE]:[^:]+:(\w+):", re.MULTILINE)  # of Check
FAILED_METHOD = re.compile(r"^(?:FAIL|ERROR): \w+ \((?:__main__\.)?([\w.]+)\)", re.MULTILINE)


class Test:
    """A program of Check cases, or a script of methods that starts a claimd."""

    def __init__(self, programs, sources, name):
        script = os.path.join(sources, name + ".py")
        self.name = name
        self.is_script = os.path.exists(script)
        if self.is_script:
            self.command = ["/usr/bin/python3", "-B", script,
                            os.path.join(programs, "claimd")]
        else:
            self.command = [os.path.join(programs, name.replace("/", "_"))]

    def failures(self, mutant, cases):
        """The names of what fails (of a script only these cases are tried)."""
        environment = {k: v for k, v in os.environ.items() if k != "MUTANT"}
        environment["CK_FORK"] = "yes"  # a case that crashes fails, and the others go on
        if mutant is not None:
            environment["MUTANT"] = mutant
        command = self.command + (sorted(cases) if self.is_script else [])
        try:
            run = subprocess.run(command, env=environment, capture_output=True, text=True,
                                 timeout=PATIENCE_S, check=False)
        except subprocess.TimeoutExpired:
            return {"no end in %d s" % PATIENCE_S}, ""
        output = run.stdout + run.stderr
        failed = set((FAILED_METHOD if self.is_script else FAILED_CASE).findall(output))
        if (run.returncode != 0) != bool(failed):
            failed.add("exit status %d" % run.returncode)
        return failed, output


def rows(names):
    """Name, text, test and case of the bugs that tests have to find."""
    for name, text, killer, _ in MUTANTS:
        if killer is not SIMULATION and (not names or name in names):
            yield (name, text, *killer.split(": "))


def main(programs, sources, *names):
    wanted = list(rows(names))
    good = True
    print("| mutant | what it does | found by |\n|---|---|---|")
    for test_name in sorted({row[2] for row in wanted}):
        test = Test(programs, sources, test_name)
        own = [row for row in wanted if row[2] == test_name]
        cases = {row[3] for row in own}
        failed, output = test.failures(None, cases)
        if failed:
            print("%s fails with no bug awake: %s\n%s" % (test_name, sorted(failed), output))
            good = False
            continue
        for name, text, _, case in own:
            failed, output = test.failures(name, cases)
            if failed == {case}:
                print("| `%s` | %s | `%s`, %s |" % (name, text, test_name, case), flush=True)
                continue
            print("| `%s` | %s | **not by %s of %s, but: %s** |\n%s"
                  % (name, text, case, test_name, sorted(failed) or "nothing", output))
            good = False
    return 0 if good else 1


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
