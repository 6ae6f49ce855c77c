#!/usr/bin/python3
"""Activates each deliberate bug and checks that its test fails.

    kill.py PROGRAMS ROOT [NAME...]

PROGRAMS is the folder of the programs that are linked with the bugs (mutate.py), and ROOT is the
source tree. NAME... selects bugs. Without a bug, each test must pass. With a bug, the test that the
table names must fail, and no other test of its program. The simulation must find its own bugs.

Prints what found each bug, and the stale rows. The exit status is 0 if every bug was found and no
row is stale.
"""

import os
import re
import subprocess
import sys

from mutate import build_in
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


def run_tests(programs, sources, rows):
    """Returns how many bugs were found."""
    rows = [(name, text, *killer.split(": ")) for name, text, killer, _ in rows]
    found = 0
    print("| mutant | what it does | found by |\n|---|---|---|")
    for test_name in sorted({row[2] for row in rows}):
        test = Test(programs, sources, test_name)
        own = [row for row in rows if row[2] == test_name]
        if not os.path.exists(test.command[0]):
            print("%s does not exist: %s" % (test_name, ", ".join(row[0] for row in own)))
            continue
        cases = {row[3] for row in own}
        failed, output = test.failures(None, cases)
        if failed:
            print("%s fails without a bug: %s\n%s" % (test_name, sorted(failed), output))
            continue
        for name, text, _, case in own:
            failed, output = test.failures(name, cases)
            if failed == {case}:
                found += 1
                print("| `%s` | %s | `%s`, %s |" % (name, text, test_name, case), flush=True)
                continue
            print("| `%s` | %s | **not by %s of %s, but: %s** |\n%s"
                  % (name, text, case, test_name, sorted(failed) or "nothing", output))
    return found


def run_simulation(programs, rows):
    """Returns how many bugs were found."""
    found = 0
    with subprocess.Popen([os.path.join(programs, "simulation")] + [row[0] for row in rows],
                          stdout=subprocess.PIPE, text=True) as run:
        for line in run.stdout:
            print(line, end="", flush=True)
            found += line.startswith("| ") and "**not" not in line
    return found - 1  # the head of the table


def main(programs, root, *names):
    _, fitting, stale = build_in(os.path.join(root, "src"))
    unknown = set(names) - {row[0] for row in MUTANTS}
    if unknown:
        sys.exit("no such deliberate bug: " + ", ".join(sorted(unknown)))
    fitting = [row for row in fitting if not names or row[0] in names]
    stale = {name: reason for name, reason in stale.items() if not names or name in names}
    by_simulation = [row for row in fitting if row[2] is SIMULATION]
    by_tests = [row for row in fitting if row[2] is not SIMULATION]
    found = run_simulation(programs, by_simulation) if by_simulation else 0
    if by_tests:
        found += run_tests(programs, os.path.join(root, "tests"), by_tests)
    for name, reason in stale.items():
        print("stale: %s: %s" % (name, reason))
    print("%d bugs, %d found, %d not found, %d stale"
          % (len(fitting) + len(stale), found, len(fitting) - found, len(stale)))
    return 0 if found == len(fitting) and not stale else 1


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
