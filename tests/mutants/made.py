#!/usr/bin/python3
"""Makes mutants by machine and counts those that the tests find.

    scripts/mutate made FILE|FOLDER... [--count N] [--seed S] [--jobs J]

A mutant is a copy of one C file below src with one change (rules.py). It is killed if a test
program fails, or does not end in time. The seed determines the mutants.

A private copy of the tree is built once in build/mutate. A mutant then costs one compilation, and
one link and one run for each test program, until a program fails. Programs come first that are
fast, or that killed many mutants before.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import rules

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "mutate"
TREE = BUILD / "tree"
OUT = BUILD / "out"

# Test programs for a folder of src, besides its own unit tests: parts of tests, and programs of
# tests/sim. A folder that is not here has its unit tests only.
STORE = ["store/", "model/", "sim/simulate"]
TESTS = {
    "ds": STORE, "store": STORE, "engine": STORE + ["unit/journal/"],
    "journal": ["store/", "model/replay", "sim/simulate"],
    "auth": ["api/"],
    "seal": ["api/"],
    "web": ["unit/auth/", "unit/notify/"],
    "json": ["unit/api/", "api/"],
    "metrics": ["api/metrics"],
    "scheduler": ["sim/simulate"],
    "testapi": ["api/"],
    "api": ["api/", "sim/simulate"],
}
# Programs that also run with all messages unloaded (CLAIMD_TEST_UNLOAD): UNLOADING behind their names.
UNLOADING = "_unloading"
# Long tests run in a shorter form.
ARGUMENTS = {"simulate": ["--seeds", "100"]}
OPERATIONS = {"model_model_test": 100000, "model_observer_test": 4000, "model_replay_test": 2000}

# A program with a mutant may take TIME_MIN_S and TIME_FACTOR times its usual time. Its address
# space has a limit, too, because a mutant may never stop to allocate.
TIME_MIN_S, TIME_FACTOR = 10, 5
LIMITS = ["prlimit", "--core=0", "--as=%d" % (16 << 30)]


class Mutant(NamedTuple):
    path: str     # below the root
    line: int
    kind: str
    before: str
    after: str
    object: pathlib.Path


def fail(message):
    sys.exit("mutate: " + message)


# ---------------------------------------------------------------------- the tree


def copy_tree():
    """Copies keep their times, so that a second build compiles only what changed."""
    shutil.rmtree(TREE, ignore_errors=True)
    TREE.mkdir(parents=True)
    for name in ("src", "include", "tests", "scripts", "docs"):
        shutil.copytree(ROOT / name, TREE / name, symlinks=True)
    for name in ("CMakeLists.txt", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, TREE / name)


def build(targets):
    """No warnings and no debug information: an object shows nothing but the code."""
    log = BUILD / "build.log"
    with open(log, "w", encoding="utf-8") as out:
        for command in (["cmake", "-S", TREE, "-B", OUT, "-G", "Ninja",
                         "-DCMAKE_BUILD_TYPE=Mutate", "-DCLAIMD_WERROR=OFF",
                         "-DCMAKE_C_FLAGS=-O2 -DNDEBUG -w"],
                        ["cmake", "--build", OUT, "--parallel", str(os.cpu_count()),
                         "--target", *targets]):
            if subprocess.run(command, stdout=out, stderr=out, check=False).returncode != 0:
                fail("the build failed. Read %s" % log)


def targets_for(folder):
    """The names of the test programs for a folder of src."""
    parts = ["unit/%s/" % folder] + TESTS.get(folder, [])
    names = [str(path.relative_to(ROOT / "tests"))[:-len(".c")]
             for path in (ROOT / "tests").rglob("*_test.c")]
    found = {re.sub(r"/(\d+_)?", "_", name) for name in names if name.startswith(tuple(parts))}
    found |= {part[len("sim/"):] for part in parts if part.startswith("sim/")}
    if folder == "engine":
        stems = re.search(r"set\(unloading ([a-z_ ]+)\)", (ROOT / "tests/CMakeLists.txt").read_text())[1]
        found |= {"store_%s_test%s" % (stem, UNLOADING) for stem in stems.split()}
        found.add("model_model_test" + UNLOADING)
    if not found:
        fail("TESTS in tests/mutants/made.py has no test programs for src/%s" % folder)
    return found


def symbols(path, *options):
    """The functions and data of an object or a program. Some linkers keep no external name in a program."""
    run = subprocess.run(["nm", "--defined-only", "--format=posix", *options, path],
                         capture_output=True, text=True, check=True)
    return {line.split()[0] for line in run.stdout.splitlines() if " " in line}


class Program:
    """A test program of the build, and how to link it with another object in front."""

    def __init__(self, name):
        self.name = name
        self.unloading = name.endswith(UNLOADING)
        name = name.removesuffix(UNLOADING)
        self.program = name
        self.folder = OUT / "tests" / ("sim" if name in ARGUMENTS else "")
        path = (self.folder / name).relative_to(OUT)
        command = subprocess.check_output(["ninja", "-C", OUT, "-t", "commands", "-s", path], text=True)
        self.link = shlex.split(command)[2:-2]  # of ": && COMMAND && :"
        self.symbols = symbols(self.folder / name)
        self.seconds = 0.0
        self.kills = 0

    def passes(self, program, limit_s):
        """Runs a copy of the program in a folder of its own."""
        environment = dict(os.environ)
        if self.program in OPERATIONS:
            environment["CLAIMD_TEST_OPS"] = str(OPERATIONS[self.program])
        if self.unloading:
            environment["CLAIMD_TEST_UNLOAD"] = "1"
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            environment["TMPDIR"] = folder
            with subprocess.Popen(LIMITS + [program] + ARGUMENTS.get(self.program, []), cwd=folder,
                                  env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  start_new_session=True) as process:
                try:
                    return process.wait(limit_s) == 0
                except subprocess.TimeoutExpired:
                    return False
                finally:
                    try:  # its children, too
                        os.killpg(process.pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass

    def measure(self):
        start = time.monotonic()
        if not self.passes(self.folder / self.program, 600):
            fail("%s fails without a mutant" % self.name)
        self.seconds = time.monotonic() - start

    def passes_with(self, mutant, folder):
        """An object in front of the libraries takes the place of the one in its library."""
        program = pathlib.Path(folder) / self.name
        counting = "claimd_sometimes.dir/__/" + mutant.path + ".o"  # of claimd/base/sometimes.h
        command = [word for word in self.link if not word.endswith(counting)]
        command[command.index("-o") + 1] = program
        command.insert(next(i for i, word in enumerate(command) if str(word).endswith(".a")), mutant.object)
        subprocess.run(command, cwd=OUT, check=True)
        passed = self.passes(program, TIME_MIN_S + TIME_FACTOR * self.seconds)
        program.unlink()
        return passed


# ---------------------------------------------------------------------- mutants


class Maker:
    """The mutants of one file, in an order that the seed determines."""

    def __init__(self, path, command, seed):
        self.path = path
        self.text = (TREE / path).read_text()
        self.random = random.Random("%d %s" % (seed, path))
        self.kinds = {}
        for change in rules.candidates(self.text):
            self.kinds.setdefault(change.kind, []).append(change)
        for changes in self.kinds.values():
            self.random.shuffle(changes)
        self.command = command
        self.rejected = self.same = 0
        self.folder = BUILD / "objects" / path
        self.folder.mkdir(parents=True)
        self.seen = {self.digest(self.compile(self.text, "original.o"))}

    def compile(self, text, name):
        """The object, or None. The source has its old name and lines: objects contain them."""
        source = self.folder / os.path.basename(self.path)
        target = self.folder / name
        source.write_text('#line 1 "%s"\n%s' % (self.path, text))
        command = shlex.split(self.command)
        command[command.index("-o") + 1] = target
        command[-1] = source
        command += ["-iquote", (TREE / self.path).parent]
        run = subprocess.run(command, cwd=OUT, stderr=subprocess.DEVNULL, check=False)
        return target if run.returncode == 0 else None

    @staticmethod
    def digest(path):
        return hashlib.sha256(path.read_bytes()).digest()

    def next(self):
        """The next mutant that compiles to code not seen before, or None."""
        while self.kinds:
            kind = self.random.choice(sorted(self.kinds))
            change = self.kinds[kind].pop()
            if not self.kinds[kind]:
                del self.kinds[kind]
            target = self.compile(rules.mutate(self.text, change), "%d.o" % len(self.seen))
            if target is None:
                self.rejected += 1
                continue
            digest = self.digest(target)
            if digest in self.seen:
                self.same += 1
                continue
            self.seen.add(digest)
            line, before, after = rules.describe(self.text, change)
            return Mutant(self.path, line, kind, before, after, target)
        return None


def make(makers, count):
    """Takes one mutant of each file in turn."""
    waiting = list(makers)
    while waiting and count > 0:
        for maker in waiting[:count]:
            mutant = maker.next()
            if mutant is None:
                waiting.remove(maker)
                continue
            count -= 1
            yield mutant


def is_killed(mutant, programs):
    """Runs the programs that contain the object, until one fails. Prints the result."""
    defined = symbols(mutant.object, "--extern-only")
    having = [program for program in programs if program.symbols & defined]
    by = None
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        for program in sorted(having, key=lambda p: p.seconds / (1 + p.kills)):
            if not program.passes_with(mutant, folder):
                program.kills += 1
                by = program.name
                break
    print("%s:%d: %s: %s" % (mutant.path, mutant.line, mutant.kind,
                             "killed by " + by if by else "survived" if having else "in no test program"),
          flush=True)
    return by is not None


# ---------------------------------------------------------------------- the command


def sources(names):
    """The C files below src that the arguments name, as paths below the root."""
    found = set()
    for name in names:
        path = pathlib.Path(name).resolve()
        if not path.exists():
            fail("%s does not exist" % name)
        files = path.rglob("*.c") if path.is_dir() else [path]
        for file in files:
            if not file.is_relative_to(ROOT / "src") or file.suffix != ".c":
                fail("%s is not a C file below src" % file)
            if file.name != "main.c":  # it belongs to a program, not to a library
                found.add(str(file.relative_to(ROOT)))
    if not found:
        fail("there is no C file below src in %s" % ", ".join(names))
    return sorted(found)


def report(makers, results):
    """Results are pairs of a mutant and whether it was killed."""
    print("\n%d did not compile, %d compiled to the same code as the original or another mutant"
          % (sum(m.rejected for m in makers), sum(m.same for m in makers)))
    for path in sorted({mutant.path for mutant, _ in results}):
        own = [killed for mutant, killed in results if mutant.path == path]
        print("%s: %d made, %d killed, %d survived" % (path, len(own), sum(own), len(own) - sum(own)))
    for mutant, killed in sorted(results):
        if not killed:
            print("\n%s:%d: survived (%s)\n- %s\n+ %s" % mutant[:5])
    killed = sum(killed for _, killed in results)
    print("\n%d made, %d killed (%.0f %%)" % (len(results), killed, 100 * killed / max(len(results), 1)))


def main():
    parser = argparse.ArgumentParser(prog="scripts/mutate made", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", metavar="FILE|FOLDER")
    parser.add_argument("--count", type=int, default=20, help="number of mutants (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(),
                        help="mutants tested at once (default: the number of processors)")
    args = parser.parse_args()
    paths = sources(args.paths)
    targets = {path: targets_for(path.split("/")[1]) for path in paths}
    wanted = sorted(set().union(*targets.values()))
    print("building %d test programs in %s" % (len(wanted), BUILD.relative_to(ROOT)), flush=True)
    copy_tree()
    build(sorted({name.removesuffix(UNLOADING) for name in wanted}))
    programs = {name: Program(name) for name in wanted}
    commands = {entry["file"]: entry["command"]
                for entry in json.loads((OUT / "compile_commands.json").read_text())
                if "CLAIMD_SOMETIMES" not in entry["command"]}
    shutil.rmtree(BUILD / "objects", ignore_errors=True)
    makers = [Maker(path, commands[str(TREE / path)], args.seed) for path in paths]
    random.Random(args.seed).shuffle(makers)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        try:
            list(pool.map(Program.measure, programs.values()))
            runs = []
            for mutant in make(makers, args.count):
                own = [programs[name] for name in targets[mutant.path]]
                runs.append((mutant, pool.submit(is_killed, mutant, own)))
            results = [(mutant, run.result()) for mutant, run in runs]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    report(makers, results)


if __name__ == "__main__":
    main()
