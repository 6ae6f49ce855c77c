#!/usr/bin/python3
"""Runs the recipes of docs/install.md, docs/containers.md and docs/ci.md as printed, in a Debian without network.

    recipes_test.py FOLDER

FOLDER has the files of scripts/release. They take the place of the published ones: pip finds the wheel there, npm uses
a registry on the loopback, and the addresses of the pages are those of local files. Needs root.
"""

import os
import re
import shutil
import sys
import textwrap
import unittest

import yaml

FOLDER = os.path.realpath(sys.argv[1])
del sys.argv[1:]

from bare_debian import NODE_TEST, PYTEST, TOP, machines  # noqa: E402

PACKAGE = """{"name": "project", "version": "1.0.0", "private": true, "scripts": {"test": "node --test"}}"""
# The published packages of node. npm fetches the document of a package, then for its archive.
REGISTRY = r'''
import http.server, json, os, re, tarfile, urllib.parse
class Registry(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name = urllib.parse.unquote(self.path[1:])
        body = open("/release/" + name, "rb").read() if name.endswith(".tgz") else self.describe(name)
        self.send_response(200 if body else 404)
        self.end_headers()
        self.wfile.write(body or b"{}")
    def describe(self, name):
        for file in os.listdir("/release"):
            if file.endswith(".tgz"):
                with tarfile.open("/release/" + file) as archive:
                    package = json.load(archive.extractfile("package/package.json"))
                if package["name"] == name:
                    package["dist"] = {"tarball": "http://127.0.0.1:4873/" + file}
                    return json.dumps({"name": name, "dist-tags": {"latest": package["version"]},
                                       "versions": {package["version"]: package}}).encode()
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", 4873), Registry).serve_forever()
'''

# Replaces the index of pip, except for Debian's pytest, and the registry of npm. Then enters the project.
OUTSIDE = """
export PIP_NO_INDEX=1 PIP_FIND_LINKS=/release PYTHONPATH=/usr/lib/python3/dist-packages
export npm_config_registry=http://127.0.0.1:4873 npm_config_audit=false npm_config_update_notifier=false
python3 /root/registry.py & registry=$!
cd /root/project
"""


def page(name):
    with open(os.path.join(TOP, "docs", name), encoding="utf-8") as f:
        return f.read()


def section(name, heading):
    return re.search(r"(?ms)^##+ %s\n(.*?)(?=^## |\Z)" % re.escape(heading), page(name))[1]


def blocks(text, kind):
    return re.findall(r"(?ms)^```%s\n(.*?)^```" % kind, text)


class Recipes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.machine, = machines(["trixie-amd64"], FOLDER)
        cls.machine.make(tools=True)

    def setUp(self):
        project = os.path.join(self.machine.root, "root/project")
        shutil.rmtree(project, ignore_errors=True)
        os.makedirs(project)
        for name, text in (("test_jobs.py", PYTEST), ("package.json", PACKAGE), ("jobs.test.js", NODE_TEST),
                           ("../registry.py", REGISTRY)):
            with open(os.path.join(project, name), "w", encoding="utf-8") as f:
                f.write(text)

    def run_as_printed(self, script, before="", after=""):
        return self.machine.run("%s%s\n%s\n%s\nkill $registry" % (OUTSIDE, before, script, after))

    def in_release(self, script, after=""):
        """In a folder with the files of the release."""
        return self.run_as_printed(script, "mkdir /root/files && cd /root/files && ln -s /release/* .\n",
                                   after + "\nrm -r /root/files")

    def test_check_the_files(self):
        script, = blocks(section("install.md", "Check the files"), "sh")
        sums, signature = script.strip().split("\n")
        self.assertRegex(signature, "^ssh-keygen -Y verify ")  # only a signed release has a signature
        self.assertIn("-image.tar: OK", self.in_release(sums))

    def test_debian(self):
        install, repository = blocks(section("install.md", "Debian"), "sh")
        self.in_release("yes | (%s)" % install.strip(), "claimd --version && apt-get purge -y claimd")
        repository = repository.replace("https://files.example.org/claimd/apt", "file:/release").replace(
            "signed-by=/etc/apt/keyrings/claimd.asc", "trusted=yes")
        lines = [line for line in repository.split("\n") if not line.startswith("curl")]
        self.in_release("yes | (%s)" % "\n".join(lines).replace(
            "apt update", "apt update -o Dir::Etc::sourcelist=sources.list.d/claimd.list "
            "-o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0"), "claimd --version && apt-get purge -y claimd")

    def test_archive(self):
        script, = blocks(section("install.md", "Archive"), "sh")
        self.in_release("(%s) & server=$!; until claimd-*/bin/claimd health; do sleep 0.2; done" % script.strip(),
                        "kill $server; rm -r claimd-*-amd64")

    def test_python(self):
        script, = blocks(section("install.md", "Python"), "sh")
        self.in_release(script, ".venv/bin/claimd --version; .venv/bin/pip uninstall -y claimd")

    def test_node(self):
        script, = blocks(section("install.md", "node"), "sh")
        self.in_release(script, "npx claimd --version; npm uninstall claimd @claimd/linux-x64")

    def steps(self, job):
        """The commands of a job of GitHub, with those of the action that it uses."""
        for step in job:
            if "run" in step:
                yield step["run"]
            elif step["uses"].startswith("./.github/actions/"):
                with open(os.path.join(TOP, step["uses"], "action.yml"), encoding="utf-8") as f:
                    action = yaml.safe_load(f)
                inputs = {**step["with"], "files": "file:///release",
                          "sha256": "$(sha256sum /release/SHA256SUMS | cut -c1-64)"}
                self.assertEqual(set(inputs), set(action["inputs"]))
                for own in action["runs"]["steps"]:
                    for name, value in own["env"].items():
                        value = re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: str(inputs[m[1]]), value)
                        yield 'export %s="%s"' % (name, value)
                    yield ("export RUNNER_TEMP=/tmp GITHUB_PATH=/tmp/path\n(%s)\nPATH=$PATH:$(cat /tmp/path)"
                           % own["run"])

    def test_github(self):
        workflow, = [yaml.safe_load(text) for text in blocks(page("ci.md"), "yaml") if "jobs:" in text]
        for name, job in workflow["jobs"].items():
            with self.subTest(job=name):
                self.run_as_printed("\n".join(self.steps(job["steps"])))

    def test_action(self):
        steps, = [yaml.safe_load(textwrap.dedent(text)) for text in blocks(page("ci.md"), "yaml")
                  if "actions/setup" in text]
        # A project in Go has its tests: these post a job, and leave it, so claimd reports a leak.
        go = "go() { :; }; export -f go\nclaimd() { command claimd \"${@/go/true}\"; }\n"
        self.run_as_printed(go + "\n".join(self.steps(steps)), after="command -v claimd; claimd --version")

    def test_gitlab(self):
        job, = [yaml.safe_load(text)["test"] for text in blocks(page("ci.md"), "yaml") if ".gitlab-ci.yml" in text]
        # The image of Python is a virtual environment for this purpose: pip may install there.
        self.run_as_printed("\n".join(job["script"]), "python3 -m venv v && . v/bin/activate\n")


if __name__ == "__main__":
    unittest.main()
