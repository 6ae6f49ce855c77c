#!/usr/bin/python3
"""The documentation in the program: manual pages, --help, --version.

    manual_test.py CLAIMD FOLDER-OF-PAGES CMAKE

Pages and help come out of the same tables; here they are held against each other, and against
what the program takes.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

from daemon import PATIENCE_S, environment  # noqa: E402

CLAIMD, PAGES, CMAKE = sys.argv[1:4]
del sys.argv[1:4]

ROOT = os.path.join(HERE, "..", "..")
NAMES = ("claimd.1", "claimd-token.1", "claimd-bench.1", "claimd.conf.5")
COLUMNS = 79
COMMIT_SCRIPT = os.path.join("scripts", "cmake", "commit.cmake")


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S,
                          env=environment(), **more)


def say(*words):
    """The output of claimd."""
    return run(CLAIMD, *words, check=True).stdout


def plain(text):
    """Without line breaks, and without marks around names."""
    return " ".join(text.replace("`", "").split())


def page(name):
    """As a terminal shows it, without bold and underlined letters."""
    shown = run("mandoc", "-T", "ascii", os.path.join(PAGES, name), check=True).stdout
    return re.sub(r".\x08", "", shown)


def sections(text):
    """{heading: text}"""
    pieces = re.split(r"^([A-Z][A-Z ]+)$", text, flags=re.M)[1:]
    return dict(zip(pieces[::2], pieces[1::2]))


def options():
    """{name: default}"""
    return dict(re.findall(r"^([a-z0-9_]+) *= *(.*?) *$", say("--print-config"), re.M))


def commands(heading=r"Commands.*"):
    """Of all groups of the help, or of one."""
    listed = "".join(re.findall(r"^%s\n((?:  .*\n)+)" % heading, say("--help"), re.M))
    return re.findall(r"^  (\w+) ", listed, re.M)


class Pages(unittest.TestCase):
    def test_no_program_that_reads_them_has_a_complaint(self):
        for name in NAMES:
            path = os.path.join(PAGES, name)
            for words in (("mandoc", "-T", "lint", "-W", "warning"),
                          ("groff", "-man", "-ww", "-T", "utf8", "-z")):
                done = run(*words, path)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""),
                                 (name, words))

    def test_they_have_the_sections_that_readers_look_for(self):
        expected = {"claimd.1": ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS",
                                 "ENVIRONMENT", "FILES", "SIGNALS", "EXIT STATUS", "EXAMPLES",
                                 "SEE ALSO"),
                    "claimd-token.1": ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "FILES",
                                       "EXIT STATUS", "EXAMPLES", "SEE ALSO"),
                    "claimd-bench.1": ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS",
                                       "EXIT STATUS", "SEE ALSO"),
                    "claimd.conf.5": ("NAME", "DESCRIPTION", "OPTIONS", "SEE ALSO")}
        for name in NAMES:
            found = sections(page(name))
            self.assertEqual([heading for heading in found if heading in expected[name]],
                             list(expected[name]))
            self.assertTrue(all(text.strip() for text in found.values()), found)
            self.assertNotIn("@", found["SYNOPSIS"] if "SYNOPSIS" in found else "")

    def test_every_option_is_there_with_its_default(self):
        line, file = sections(page("claimd.1")), sections(page("claimd.conf.5"))
        self.assertGreater(len(options()), 20)
        for name, default in options().items():
            spelled = "--" + name.replace("_", "-")
            for text, head in ((line, r"%s(?:\[=| )" % spelled), (file, r"%s = " % name)):
                entry = re.search(r"^ {5,7}%s\S+$((?:\n {8,}\S.*)+)" % head, text["OPTIONS"],
                                  re.M)
                self.assertIsNotNone(entry, head)
                self.assertRegex(plain(entry[1]), r"Default: %s[.,]" % re.escape(default))

    def test_both_defaults_of_the_ttl_are_there(self):
        both = "Default: 3600, with a journal or Redis 1209600,"
        self.assertIn(both, say("--help", "times"))
        for name in ("claimd.1", "claimd.conf.5"):
            self.assertEqual(plain(page(name)).count(both), 1, name)

    def test_every_command_is_there_as_its_help_has_it(self):
        found = sections(page("claimd.1"))
        self.assertGreaterEqual(set(commands()),
                                {"token", "health", "verify", "log", "backup", "run", "bench"})
        for name in commands():
            self.assertRegex(found["SYNOPSIS"], r"(?m)^ +claimd %s\b" % name)
            self.assertRegex(found["COMMANDS"], r"(?m)^ +claimd %s$" % name)
            for paragraph in say(name, "--help").split("\n\n")[1:]:
                place = "CONNECTION" if paragraph.startswith("Connection") else "COMMANDS"
                for words in re.split(r"\n  (?=\S)", paragraph):
                    if not words.strip().startswith(("--help", "Exit status", "Connection")):
                        self.assertIn(plain(words), plain(found[place]))
        token = sections(page("claimd-token.1"))
        for usage in re.findall(r"claimd token \w+", say("token", "--help")):
            self.assertIn(usage, plain(token["SYNOPSIS"]))
        for option in re.findall(r"^  (--(?!help).*)", say("bench", "--help"), re.M):
            self.assertRegex(sections(page("claimd-bench.1"))["OPTIONS"], r"(?m)^ +%s( |$)" % option)

    def test_signals_and_exit_statuses_are_those_of_the_help(self):
        found = sections(page("claimd.1"))
        output = say("--help", "all")
        for heading, section, least in (("Signals", "SIGNALS", 3),
                                        ("Exit status", "EXIT STATUS", 6)):
            entries = re.search(r"^%s\n((?:  .*\n)+)" % heading, output, re.M)[1]
            entries = re.findall(r"^  (\S.*)\n((?: {8}.*\n)+)", entries, re.M)
            self.assertGreaterEqual(len(entries), least)
            for name, what in entries:
                self.assertIn(plain(name + " " + what).rstrip("."), plain(found[section]))

    def test_they_name_no_option_that_is_not_there(self):
        known = {"--" + name.replace("_", "-") for name in options()}
        for words in (("--help", "all"), *((name, "--help") for name in commands())):
            known |= set(re.findall(r"--[a-z][a-z-]*", say(*words)))
        for name in NAMES:
            used = re.findall(r"(?<![\w-])--[a-z][a-z-]*", page(name))
            self.assertEqual(set(used) - known - {"--option"}, set(), name)


class Help(unittest.TestCase):
    def test_it_fits_a_terminal(self):
        for words in (("--help",), ("--help", "all")) + tuple(
                (name, "--help") for name in commands()):
            for line in say(*words).splitlines():
                self.assertLessEqual(len(line), COLUMNS, line)
                self.assertEqual(line.rstrip(), line)

    def test_the_short_form_fits_a_screen_and_names_the_groups(self):
        shown = say("--help")
        self.assertLessEqual(len(shown.splitlines()), 57)
        groups = re.search(r"^Groups: ((?:.*\n)+)", shown, re.M)[1].split()
        self.assertGreater(len(groups), 10)
        output = "".join(say("--help", group) for group in groups)
        spelled = {"--" + name.replace("_", "-") for name in options()}
        self.assertEqual(set(re.findall(r"^  (--[a-z0-9-]+)", output, re.M)), spelled)
        self.assertEqual(say("--help=journal"), say("--help", "journal"))
        for words in ("--help", "nonsense"), ("--help=nonsense",), ("--help=",):
            refused = run(CLAIMD, *words)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""))
            self.assertIn("server store journal", refused.stderr)

    def test_the_page_of_options_is_the_one_that_the_build_makes(self):
        texts = []
        for path in (os.path.join(ROOT, "docs", "options.md"),
                     os.path.join(PAGES, "..", "generated", "options")):
            with open(path, encoding="utf-8") as f:
                texts.append(f.read())
        self.assertEqual(*texts)

    def test_the_changelog_names_options_and_commands_that_exist(self):
        with open(os.path.join(ROOT, "docs", "changelog.md"), encoding="utf-8") as f:
            text = f.read()
        newest = "".join(text.split("\n## ")[1:3])  # unreleased, and the last release
        named = set(re.findall(r"`([a-z]+(?:_[a-z0-9]+)+)`|`([a-z0-9_]+) = ", newest))
        named = {one or other for one, other in named} - {"message_volume", "claim_ids"}
        with open(os.path.join(ROOT, "docs", "metrics.md"), encoding="utf-8") as f:
            metrics = set(re.findall(r"^\| `(claimd_\w+)`", f.read(), re.M))
        self.assertGreater(len(named), 10)
        self.assertEqual(named - set(options()) - metrics, set())
        named = set(re.findall(r"`claimd ([a-z]+)", text))
        self.assertGreater(len(named), 3)
        self.assertEqual(named - set(commands()), set())

    def test_an_option_of_a_command_is_one_that_it_takes(self):
        taken = 0
        for name in commands():
            for option in set(re.findall(r"^  (--\S+) ", say(name, "--help"), re.M)):
                refused = run(CLAIMD, name, option)
                self.assertEqual((refused.returncode, refused.stderr),
                                 (3 if name == "check" else 2, "claimd: %s needs a value. See claimd %s --help\n"
                                  % (option, name)))
                taken += 1
        self.assertGreaterEqual(taken, 8)


class Version(unittest.TestCase):
    def test_the_first_line_is_for_programs_and_the_rest_for_reports(self):
        lines = say("--version").splitlines()
        self.assertRegex(lines[0], r"^claimd \d+\.\d+\.\d+(-[0-9a-z.]+)?$")
        self.assertRegex(lines[1], r"^commit (unknown|[0-9a-f]{12,}(-dirty)?)$")
        self.assertEqual([line.split()[0] for line in lines[2:]],
                         ["libmicrohttpd", "jansson", "gnutls"])
        for line in lines[2:]:
            self.assertRegex(line, r" \d+\.\d+")

    def test_all_programs_print_version_and_commit_in_one_form(self):
        version = say("--version").split()[1]
        for name in ("claimd-bench", "claimd-client"):
            printed = run(os.path.join(os.path.dirname(CLAIMD), name), "--version", check=True).stdout
            self.assertRegex(printed, r"^%s %s\ncommit (unknown|[0-9a-f]{12,}(-dirty)?)\n\Z"
                             % (name, re.escape(version)))

    def test_a_prerelease_is_a_part_of_the_version_of_all_programs(self):
        version = say("--version").split()[1].partition("-")[0]
        with tempfile.TemporaryDirectory() as folder:
            run(CMAKE, "-S", ROOT, "-B", folder, "-DCLAIMD_TESTS=OFF", "-DCLAIMD_PRERELEASE=-rc.1",
                check=True)
            with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as f:
                commands_of = {command["file"]: command["command"] for command in json.load(f)}
        for path in ("src/main/main.c", "tests/bench/load/main.c", "src/client/main.c"):
            command, = [text for file, text in commands_of.items() if file.endswith("/" + path)]
            self.assertIn('CLAIMD_VERSION=\\"%s-rc.1\\"' % version, command)

    def commit_of(self, source, *more, script=os.path.join(ROOT, COMMIT_SCRIPT)):
        """The output of the script for a tree. It runs twice, and must not change its output."""
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "commit.c")
            times = set()
            for _ in range(2):
                run(CMAKE, "-DSOURCE=" + source, "-DOUT=" + out, *more, "-P",
                    script, check=True)
                times.add(os.stat(out).st_mtime_ns)
            self.assertEqual(len(times), 1)
            with open(out, encoding="ascii") as f:
                found, = re.findall(r'version_commit\[\] = "(.*)";', f.read())
            return found

    def test_a_tree_without_its_history_has_no_commit_unless_one_is_said(self):
        with tempfile.TemporaryDirectory() as tree:
            self.assertEqual(self.commit_of(tree), "unknown")
            self.assertEqual(self.commit_of(tree, "-DCOMMIT=12345"), "12345")
            with open(os.path.join(tree, ".git"), "w", encoding="ascii") as f:
                f.write("gitdir: /nowhere\n")
            self.assertEqual(self.commit_of(tree), "unknown")

    @unittest.skipUnless(shutil.which("git"), "git is not installed")
    def test_an_archive_of_git_has_the_commit_unless_there_is_a_history(self):
        def git(*words):
            return run("git", "-C", tree, "-c", "user.name=a", "-c", "user.email=a@example.org", *words,
                       check=True).stdout.strip()

        with tempfile.TemporaryDirectory() as tree, tempfile.TemporaryDirectory() as unpacked:
            os.makedirs(os.path.join(tree, os.path.dirname(COMMIT_SCRIPT)))
            for name in (COMMIT_SCRIPT, ".gitattributes"):
                shutil.copy(os.path.join(ROOT, name), os.path.join(tree, name))
            git("init", "-q")
            git("add", ".")
            git("commit", "-q", "-m", "A commit")
            git("archive", "-o", os.path.join(unpacked, "a.tar"), "HEAD")
            run("tar", "-C", unpacked, "-xf", os.path.join(unpacked, "a.tar"), check=True)
            script = os.path.join(unpacked, COMMIT_SCRIPT)
            archived = git("rev-parse", "HEAD")[:12]
            self.assertEqual(self.commit_of(unpacked, script=script), archived)
            self.assertEqual(self.commit_of(unpacked, "-DCOMMIT=unknown", script=script), archived)
            self.assertEqual(self.commit_of(unpacked, "-DCOMMIT=12345", script=script), "12345")
            git("commit", "-q", "--allow-empty", "-m", "Another commit")
            history = git("rev-parse", "HEAD")[:12]
            self.assertNotEqual(history, archived)
            self.assertEqual(self.commit_of(tree, script=script), history)


if __name__ == "__main__":
    unittest.main()
