#!/usr/bin/python3
"""The installation is complete: the unit starts the program, that starts the load generator,
and the documents' links lead on.

    install_test.py CMAKE BUILD-FOLDER
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CMAKE, BUILD = sys.argv[1:3]
del sys.argv[1:3]


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = cls.enterClassContext(tempfile.TemporaryDirectory())
        subprocess.run([CMAKE, "--install", BUILD], env=dict(os.environ, DESTDIR=cls.root),
                       check=True, capture_output=True, timeout=120)
        cls.files = [os.path.join(folder, name) for folder, _, names in os.walk(cls.root)
                     for name in names]

    def find(self, end):
        """The one installed file whose path ends so."""
        found, = [path for path in self.files if path.endswith(end)]
        return found

    def test_the_unit_stands_where_systemd_looks_and_needs_nothing_else(self):
        with open(self.find("/lib/systemd/system/claimd.service"), encoding="utf-8") as f:
            unit = f.read()
        program, config = re.findall(r"^ExecStart=(\S+) --config (\S+)$", unit, re.M)[0]
        shown = self.run_program(self.root + program, "--config", self.root + config,
                                 "--check-config")
        self.assertEqual(shown, "claimd: the configuration is good\n")
        # A file behind "-" need not be there.
        self.assertEqual(re.findall(r"^EnvironmentFile=(?!-)", unit, re.M), [])

    def run_program(self, *words):
        return subprocess.run(words, capture_output=True, text=True, timeout=60,
                              check=True).stdout

    def test_the_configuration_says_every_default_and_keeps_what_was_posted(self):
        claimd, config = self.find("/bin/claimd"), self.find("/etc/claimd/claimd.conf")
        values = self.run_program(claimd, "--config", config, "--print-config")
        changed = [line.split("  ;")[0] for line in values.split("\n") if "from the file" in line]
        self.assertEqual(changed, ["journal = /var/lib/claimd"])
        # Two weeks: a message survives the weekend of its workers.
        self.assertIn("\ndefault_message_ttl = 1209600  ; from the default with a journal\n", values)
        self.run_program(claimd, "--config", config, "--check-config")
        with open(config, encoding="utf-8") as f:
            lines = f.read().split("\n")
        self.assertIn("#default_message_ttl = 1209600", lines)
        for line in self.run_program(claimd, "--print-config").split("\n"):
            if " = " in line and not line.startswith(("journal =", "default_message_ttl =")):
                with self.subTest(line=line):
                    self.assertEqual(lines.count("#" + line), 1)

    def test_an_edited_configuration_is_not_written_over(self):
        config = self.find("/etc/claimd/claimd.conf")
        with open(config, encoding="utf-8") as f:
            before = f.read()
        self.addCleanup(lambda: open(config, "w", encoding="utf-8").write(before))
        with open(config, "w", encoding="utf-8") as f:
            f.write("max_wait = 7\n")
        subprocess.run([CMAKE, "--install", BUILD], env=dict(os.environ, DESTDIR=self.root),
                       check=True, capture_output=True, timeout=120)
        with open(config, encoding="utf-8") as f:
            self.assertEqual(f.read(), "max_wait = 7\n")

    def complete(self, *words):
        """The completions of bash for the last word."""
        script = self.find("/bash-completion/completions/claimd")
        line = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _claimd; ' \
               'printf "%s\\n" "${COMPREPLY[@]}"'
        return self.run_program("bash", "-c", line, "bash", script, "claimd", *words).split()

    def test_bash_knows_every_option_and_command_that_the_help_has(self):
        claimd = self.find("/bin/claimd")
        help_ = self.run_program(claimd, "--help", "all")
        options = re.findall(r"^  (--[a-z0-9-]+)", help_, re.M)
        self.assertGreater(len(options), 50)
        listed = "".join(re.findall(r"^Commands.*\n((?:  .*\n)+)", help_, re.M))
        commands = set(re.findall(r"^  ([a-z]+) ", listed, re.M))
        self.assertGreater(len(commands), 5)
        self.assertEqual(set(options + sorted(commands)), set(self.complete("")))
        for command in commands - {"bench"}:
            of_command = re.findall(r"^  (--[a-z-]+)", self.run_program(claimd, command, "--help"),
                                    re.M)
            with self.subTest(command=command):
                self.assertEqual(set(of_command) - set(self.complete(command, "-")), set())

    def test_bash_knows_the_words_that_an_option_takes(self):
        self.assertEqual(self.complete("--log-level", ""), ["error", "warn", "info", "debug"])
        self.assertEqual(self.complete("--max-wait", ""), [])
        self.assertEqual(self.complete("token", "r"), ["revoke"])
        self.assertEqual(self.complete("token", "new", "x", "--role", "op"), ["operator"])
        self.assertEqual(self.complete("--config", self.root + "/et"), [self.root + "/etc"])

    def test_zsh_gets_the_same(self):
        with open(self.find("/_claimd"), encoding="utf-8") as f:
            script = f.read()
        self.assertTrue(script.startswith("#compdef claimd\n"))
        for word in self.complete(""):
            with self.subTest(word=word):
                self.assertRegex(script, r"(?m)(['( ]%s[\[) ])" % re.escape(word))
        if shutil.which("zsh"):
            self.run_program("zsh", "-n", self.find("/_claimd"))

    def units(self):
        return sorted(path for path in self.files if "/systemd/system/" in path)

    def test_the_unit_lets_nothing_through_that_claimd_does_not_need(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze")
        unit = self.find("/claimd.service")
        shown = subprocess.run(["systemd-analyze", "security", "--offline=true",
                                "--threshold=15", "--no-pager", unit],
                               capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(shown.returncode, 0, shown.stdout + shown.stderr)

    def test_every_line_of_the_units_is_one_that_systemd_knows(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze")
        folder = self.scratch()
        copies = []
        for unit in self.units():
            with open(unit, encoding="utf-8") as f:
                text = f.read()
            copies.append(os.path.join(folder, os.path.basename(unit)))
            with open(copies[-1], "w", encoding="utf-8") as f:
                f.write(text.replace("ExecStart=", "ExecStart=" + self.root))
        shown = subprocess.run(["systemd-analyze", "verify", "--man=no", *copies],
                               capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual([line for line in shown.stderr.split("\n") if "claimd" in line], [])

    def test_the_sockets_have_the_names_that_claimd_knows(self):
        names = []
        for unit in self.units():
            with open(unit, encoding="utf-8") as f:
                text = f.read()
            if unit.endswith(".socket"):
                names += re.findall(r"^FileDescriptorName=(\w+)$", text, re.M)
                self.assertIn("\nService=claimd.service\n", text)
        self.assertEqual(sorted(names), ["api", "metrics", "tls"])

    def test_every_link_of_the_documents_leads_to_a_file_or_to_the_sources(self):
        pages = [path for path in self.files if path.endswith(".md")]
        self.assertGreater(len(pages), 8)
        for page in pages:
            with open(page, encoding="utf-8") as f:
                links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", f.read())
            for link in links:
                with self.subTest(page=os.path.basename(page), link=link):
                    self.assertTrue(os.path.exists(os.path.join(os.path.dirname(page), link)))

    def test_the_manual_is_there(self):
        for page in ("man1/claimd.1", "man1/claimd-token.1", "man1/claimd-bench.1",
                     "man5/claimd.conf.5"):
            self.find("/" + page)
        self.assertEqual([path for path in self.files if path.endswith(".in")], [])

    def scratch(self):
        return self.enterContext(tempfile.TemporaryDirectory())

    def bench(self, claimd, *arguments, path="/nowhere"):
        return subprocess.run([claimd, "bench", *arguments], capture_output=True, text=True,
                              timeout=60, env=dict(os.environ, PATH=path))

    def test_the_load_generator_beside_the_program_is_started_with_its_arguments(self):
        alone = subprocess.run([self.find("/bin/claimd-bench"), "--help"], capture_output=True,
                               text=True, timeout=60, check=True)
        self.assertTrue(alone.stdout.startswith("Usage: claimd bench [OPTION]..."), alone.stdout)
        link = os.path.join(self.scratch(), "claimd")
        os.symlink(self.find("/bin/claimd"), link)
        for claimd in (self.find("/bin/claimd"), link):
            with self.subTest(claimd=claimd):
                shown = self.bench(claimd, "--help")
                self.assertEqual((shown.returncode, shown.stdout, shown.stderr),
                                 (0, alone.stdout, ""))
                wrong = self.bench(claimd, "--threads", "2", "--batch", "0")
                self.assertEqual((wrong.returncode, wrong.stdout, wrong.stderr),
                                 (2, "", "claimd: bad value for: --batch\n"))

    def test_the_program_of_the_commands_is_started_beside_it_or_in_libexec(self):
        client = self.find("/claimd/claimd-client")
        self.assertIn("/libexec/", client)
        folder = os.path.realpath(self.scratch())
        alone = shutil.copy(self.find("/bin/claimd"), folder)
        missing = subprocess.run([alone, "post", "q"], capture_output=True, text=True, timeout=60,
                                 check=False)
        self.assertEqual((missing.returncode, missing.stdout), (69, ""))
        self.assertIn("claimd: claimd-client is missing. It is neither in %s/ nor in " % folder,
                      missing.stderr)
        self.assertIn("Install all of claimd", missing.stderr)
        shutil.copy(client, folder)
        for claimd in (self.find("/bin/claimd"), alone):
            help_ = self.run_program(claimd, "post", "--help")
            self.assertTrue(help_.startswith("Usage: claimd post QUEUE"), help_)

    def test_a_load_generator_elsewhere_is_found_in_the_path(self):
        claimd = shutil.copy(self.find("/bin/claimd"), self.scratch())
        shown = self.bench(claimd, "--help",
                           path="/nowhere:" + os.path.dirname(self.find("/bin/claimd-bench")))
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertIn("Usage: claimd bench", shown.stdout)

    def test_without_a_load_generator_it_says_what_is_missing(self):
        folder = self.scratch()
        claimd = shutil.copy(self.find("/bin/claimd"), folder)
        missing = self.bench(claimd, "--help")
        self.assertEqual((missing.returncode, missing.stdout, missing.stderr),
                         (2, "", "claimd: claimd-bench is missing. It is neither in %s/ nor in "
                          "PATH\n" % os.path.realpath(folder)))
        beside = os.path.join(os.path.realpath(folder), "claimd-bench")
        os.mkdir(beside)
        unfit = self.bench(claimd, "--help")
        self.assertEqual((unfit.returncode, unfit.stdout, unfit.stderr),
                         (2, "", "claimd: cannot run %s: Permission denied\n" % beside))

    def test_the_program_does_not_carry_the_load_generator(self):
        with open(self.find("/bin/claimd-bench"), "rb") as f:
            generator = f.read()
        with open(self.find("/bin/claimd"), "rb") as f:
            claimd = f.read()
        for said in (b"Drives a queue server, and measures", b"X-Project-ID: %s",
                     b"Number of keep-alive connections of all threads."):
            with self.subTest(text=said):
                self.assertGreaterEqual(generator.find(said), 0)
                self.assertEqual(claimd.find(said), -1)


if __name__ == "__main__":
    unittest.main()
