#!/usr/bin/python3
"""The container file, by reading it: there may be nothing here that could build it.

    container_test.py CLAIMD CONTAINERFILE
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CLAIMD, CONTAINERFILE = sys.argv[1:3]
del sys.argv[1:3]


def instructions():
    """(word, rest) for each, lines with a backslash at their end joined."""
    with open(CONTAINERFILE, encoding="utf-8") as f:
        text = re.sub(r"(?m)^#.*\n", "", f.read())
    lines = re.sub(r"\\\n\s*", "", text).split("\n")
    return [tuple(line.split(None, 1)) for line in lines if line.strip()]


def debian():
    """The version of this machine's Debian, "" for testing and others."""
    with open("/etc/os-release", encoding="utf-8") as f:
        return "".join(re.findall(r'(?m)^VERSION_ID="(\d+)"$', f.read()))


def same_debian(test):
    """For a test of packages, which other versions of Debian name otherwise."""
    base = instructions()[0][1]
    return unittest.skipUnless("debian:%s-" % debian() in base, "the container is of " + base)(test)


class Container(unittest.TestCase):
    def setUp(self):
        steps = instructions()
        last = max(i for i, (word, _) in enumerate(steps) if word == "FROM")
        self.steps = steps[last:]

    def value(self, word):
        """What the one instruction of this name says."""
        found, = [rest for name, rest in self.steps if name == word]
        return found

    def environment(self):
        return dict(pair.split("=", 1) for pair in self.value("ENV").split())

    def claimd(self, *words, **more):
        environment = {**self.environment(), **more}
        return subprocess.run([CLAIMD, *words], env=environment, capture_output=True, text=True,
                              timeout=60, check=False)

    def test_it_does_not_start_without_tokens(self):
        self.assertFalse(os.path.exists(self.environment()["CLAIMD_TOKENS"]))
        refused = self.claimd("--check-config")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("/run/secrets/claimd-tokens: No such file", refused.stderr)

    def test_every_variable_is_an_option_and_all_is_well_with_tokens(self):
        with tempfile.TemporaryDirectory() as folder:
            tokens = os.path.join(folder, "tokens")
            made = self.claimd("token", "new", "a", "--role", "worker", "--tokens", tokens)
            self.assertEqual(made.returncode, 0, made.stderr)
            checked = self.claimd("--check-config", CLAIMD_TOKENS=tokens)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_the_way_out_that_it_describes_is_one(self):
        checked = self.claimd("--check-config", CLAIMD_AUTH="none", CLAIMD_INSECURE_LISTEN="true")
        self.assertEqual((checked.returncode, checked.stderr), (
            0, "claimd: warning: tokens (environment) has no effect: auth is not tokens\n"))
        with open(CONTAINERFILE, encoding="utf-8") as f:
            self.assertRegex(f.read(), r"CLAIMD_AUTH=none\n# -e CLAIMD_INSECURE_LISTEN=true")

    def test_it_runs_unprivileged_and_writes_to_its_volume_only(self):
        user = self.value("USER")
        self.assertRegex(user, r"^[1-9]\d+:[1-9]\d+$")
        self.assertEqual(self.value("VOLUME"), self.environment()["CLAIMD_JOURNAL"])
        self.assertIn("--uid %s --gid %s" % tuple(user.split(":")),
                      " ".join(rest for word, rest in self.steps if word == "RUN"))

    def test_its_health_is_asked_by_claimd_where_it_listens(self):
        options, command = self.value("HEALTHCHECK").split(" CMD ")
        program, *words = json.loads(command)
        self.assertEqual((program, json.loads(self.value("ENTRYPOINT"))), ("claimd", ["claimd"]))
        self.assertEqual(self.claimd(*words, CLAIMD_LISTEN="127.0.0.1:1").returncode, 1)
        self.assertEqual(self.value("EXPOSE"), self.environment()["CLAIMD_LISTEN"].split(":")[1])
        # claimd health waits for 5 s; it has to end before it is ended.
        self.assertGreater(int(re.search(r"--timeout=(\d+)s", options)[1]), 5)

    def installed(self):
        """The words of its commands, packages among them."""
        return set(" ".join(rest for word, rest in self.steps if word == "RUN").split())

    @same_debian
    def test_it_has_the_libraries_that_claimd_is_linked_with(self):
        if not shutil.which("dpkg-query"):
            self.skipTest("no Debian")
        told = subprocess.run(["readelf", "-d", CLAIMD], capture_output=True, text=True,
                              check=True).stdout
        for name in re.findall(r"NEEDED.*\[(.*)\]", told):
            if name.startswith(("libc.", "libm.", "ld-linux", "libasan", "libubsan", "libtsan",
                                "libgcc_s")):
                continue
            owner = subprocess.run(["dpkg-query", "-S", "*/" + name], capture_output=True,
                                   text=True, check=True).stdout
            packages = {line.split(":")[0] for line in owner.splitlines()}
            with self.subTest(library=name):
                self.assertTrue(packages & self.installed(), packages)

    def test_it_has_what_it_takes_to_ask_a_keystone(self):
        with open(CLAIMD, "rb") as f:
            names = set(re.findall(rb"libcurl[a-z-]*\.so\.\d+", f.read()))
        self.assertEqual(names, {b"libcurl-gnutls.so.4", b"libcurl.so.4"})
        self.assertTrue({"libcurl3-gnutls", "libcurl4"} & self.installed())
        self.assertIn("ca-certificates", self.installed())  # for an https one

    @same_debian
    def test_it_has_what_it_takes_to_ask_a_redis(self):
        with open(CLAIMD, "rb") as f:
            names = set(re.findall(rb"libhiredis\.so[.\d]*", f.read()))
        self.assertEqual(names, {b"libhiredis.so.0.14"})
        self.assertIn("libhiredis0.14", self.installed())
        told = self.claimd(CLAIMD_AUTH="none", CLAIMD_INSECURE_LISTEN="true",
                           CLAIMD_LISTEN="127.0.0.1:0", CLAIMD_JOURNAL="none",
                           CLAIMD_STORE="redis://127.0.0.1:1")
        self.assertEqual(told.returncode, 1)
        self.assertIn("claimd: store: ", told.stderr)


if __name__ == "__main__":
    unittest.main()
