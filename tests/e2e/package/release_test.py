#!/usr/bin/python3
"""Installs each file of a release in bare Debians without network, works with it, upgrades and removes it.

    release_test.py FOLDER [MACHINE...] [Release.TEST...]

FOLDER has the files of scripts/release. A MACHINE is a suite and a processor, such as trixie-arm64. Without one:
Debian 12 and 13 for amd64, and for arm64 if this machine can run its programs (binfmt_misc with an emulator). Needs
root. The last lines are a table with sizes and seconds.
"""

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import zipfile

FOLDER = os.path.realpath(sys.argv[1])
NAMES = [word for word in sys.argv[2:] if "-" in word]
sys.argv[1:] = [word for word in sys.argv[2:] if "-" not in word]

from bare_debian import NODE_TEST, NUMBERS, PYTEST, machines  # noqa: E402

MACHINES = []
VERSION, = re.findall(r"(?m)^claimd-(.+)\.cdx\.json$", "\n".join(os.listdir(FOLDER)))
ROWS = []

# Serves, posts, works; `claimd` is a function or a program. $serve is what starts the server.
WORK = r"""
${serve-claimd} >/tmp/claimd.log 2>&1 &
server=$!
for _ in $(seq 300); do
    ! claimd health 127.0.0.1:8888 >/dev/null 2>&1 || break
    kill -0 "$server" || { cat /tmp/claimd.log; exit 1; }
    sleep 0.2
done
claimd post jobs '{"job": 1}' '{"job": 2}' --project demo
[ "$(claimd ${work-work jobs --project demo --exit-when-empty -- cat} | grep -o '"job"' | wc -l)" = 2 ]
claimd queues --project demo
kill "$server"
wait "$server"
rm /tmp/claimd.log
"""

# Without tokens the image does not start. It has no program that a worker could run.
IN_IMAGE = r"""
mount --bind /image /image && mount -o remount,bind,ro /image && mount -t proc proc /image/proc
mkdir /journal && chown 8888:8888 /journal && mount --bind /journal /image/var/lib/claimd
start="env -i %s /usr/sbin/chroot --userspec=8888:8888 /image"
claimd() { $start /usr/bin/claimd "$@"; }
! claimd
serve="${start/env -i/env -i CLAIMD_INSECURE_LISTEN=true} /usr/bin/claimd --auth none"
work="claim jobs --project demo --limit 2"
"""

def older_wheel(name):
    """The same wheel as version 0.0.1, for an upgrade: its name and bytes."""
    out, version = io.BytesIO(), name.split("-")[1]
    with zipfile.ZipFile(os.path.join(FOLDER, name)) as source, zipfile.ZipFile(out, "w") as target:
        for entry in source.infolist():
            data = source.read(entry)
            entry.filename = entry.filename.replace("claimd-%s." % version, "claimd-0.0.1.")
            if entry.filename.endswith("/METADATA"):
                data = data.replace(b"Version: %s\n" % version.encode(), b"Version: 0.0.1\n")
            if entry.filename.endswith("/RECORD"):
                data = data.replace(b"claimd-%s." % version.encode(), b"claimd-0.0.1.")
            target.writestr(entry, data)
    return name.replace("-%s-" % version, "-0.0.1-"), out.getvalue()


def older_node(name):
    """The same package of node as version 0.0.1."""
    out = io.BytesIO()
    with tarfile.open(os.path.join(FOLDER, name)) as source, tarfile.open(fileobj=out, mode="w:gz") as target:
        for entry in source.getmembers():
            data = source.extractfile(entry).read()
            if entry.name == "package/package.json":
                data = data.replace(VERSION.encode(), b"0.0.1")
                entry.size = len(data)
            target.addfile(entry, io.BytesIO(data))
    return name.replace(VERSION, "0.0.1"), out.getvalue()


class Release(unittest.TestCase):
    """One test for each kind of file. All machines are tested."""

    def on_each_machine(self, kind, test, tools=False):
        for machine in MACHINES:
            with self.subTest(machine=machine.name, kind=kind):
                machine.make(tools)
                start = time.monotonic()
                seconds = test(machine)
                name = machine.file(kind)
                ROWS.append((machine.name, name, os.path.getsize(os.path.join(FOLDER, name)) / 1e6,
                             time.monotonic() - start if seconds is None else seconds))

    def test_archive(self):
        def test(machine):
            before = machine.files()
            machine.run("cd /root; tar -xf /release/%s; PATH=$PWD/%s/bin:$PATH; claimd --version; %s"
                        % (machine.file("archive"), machine.file("archive")[:-7], WORK))
            self.serve_tls(machine)
            machine.run("rm -r /root/claimd-*")
            self.assertEqual(machine.files() - before, set())
        self.on_each_machine("archive", test)

    def serve_tls(self, machine):
        """With a certificate that this machine makes, because the root has no openssl."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                            "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
                            "-keyout", folder + "/key.pem", "-out", folder + "/chain.pem"],
                           check=True, capture_output=True)
            for name in ("key.pem", "chain.pem"):
                shutil.copy(os.path.join(folder, name), os.path.join(machine.root, "root", name))
        machine.run("cd /root; PATH=$(echo $PWD/claimd-*/bin):$PATH\n"
                    "claimd --listen tls:127.0.0.1:8443 --tls-certificate chain.pem --tls-key key.pem & server=$!\n"
                    "export CLAIMD_URL=https://127.0.0.1:8443\n"
                    "for _ in $(seq 300); do ! claimd queues --ca chain.pem || break; sleep 0.2; done\n"
                    "claimd post jobs 1 --project demo --ca chain.pem; kill $server; wait $server; rm *.pem")

    def test_debian_package(self):
        def test(machine):
            before = machine.files()
            deb = "/release/" + machine.file("deb")
            unit = r"set -- $(sed -n 's/^ExecStart=//p' /lib/systemd/system/claimd.service)"
            serve = "serve='setpriv --reuid=claimd --regid=claimd --init-groups env '\"$*\"\n"
            # The release before: the same with a lower version.
            machine.run("dpkg-deb -R %s /tmp/old; sed -i 's/^Version: .*/Version: 0.0.1-1/' /tmp/old/DEBIAN/control; "
                        "dpkg-deb -b /tmp/old /tmp/old.deb; apt-get install -y --no-install-recommends /tmp/old.deb"
                        % deb)
            machine.run("%s\n%s%s" % (unit, serve, WORK))
            machine.run("echo '# mine' >>/etc/claimd/claimd.conf; apt-get install -y --no-install-recommends %s; "
                        "dpkg-query -W claimd | grep -F %s; grep -x '# mine' /etc/claimd/claimd.conf"
                        % (deb, VERSION.replace("-rc", "~rc")))
            machine.run("%s\n%s%s" % (unit, serve, WORK))
            machine.run("apt-get remove -y claimd; [ -e /var/lib/claimd ]")
            machine.run("apt-get purge -y claimd; apt-get autoremove -y; [ ! -e /var/lib/claimd ]; rm -r /tmp/old*")
            # Of the libraries, one stays in Debian 13, because the C library recommends it.
            left = {name for name in machine.files() - before - machine.packaged()
                    if not re.match(r"etc/(passwd|group|g?shadow)", name)}
            self.assertEqual(left, set())
        self.on_each_machine("deb", test)

    def test_apt_repository(self):
        def test(machine):
            # Only the new list is fetched. Those of Debian are in the root, and the needed packages in its cache.
            machine.run("echo 'deb [trusted=yes] file:/release %s main' >/etc/apt/sources.list.d/claimd.list; "
                        "apt-get update -q -o Dir::Etc::sourcelist=sources.list.d/claimd.list "
                        "-o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0; "
                        "apt-get install -y --no-install-recommends claimd; claimd --version | grep -F %s"
                        % (machine.suite, VERSION))
        self.on_each_machine("deb", test)

    def test_apt_lists_are_there_by_hash(self):
        for suite in NUMBERS:
            folder = os.path.join(FOLDER, "dists", suite)
            with open(folder + "/Release", encoding="utf-8") as f:
                text = f.read()
            self.assertIn("\nAcquire-By-Hash: yes\n", "\n" + text)
            for kind, lines in re.findall(r"(?m)^(\w+):\n((?: .*\n)+)", text):
                for digest, name in re.findall(r" (\w+) +\d+ (\S+)\n", lines):
                    with open(os.path.join(folder, name), "rb") as one, open(os.path.join(
                            folder, os.path.dirname(name), "by-hash", kind, digest), "rb") as two:
                        self.assertEqual(one.read(), two.read())

    def put(self, machine, **files):
        """Writes files into /root/project."""
        project = os.path.join(machine.root, "root/project")
        os.makedirs(project, exist_ok=True)
        for name, data in files.items():
            with open(os.path.join(project, name), "wb") as f:
                f.write(data)

    def test_wheel(self):
        def test(machine):
            before = machine.files()
            name, old = older_wheel(machine.file("wheel"))
            self.put(machine, **{"test_jobs.py": PYTEST.encode(), name: old})
            start = time.monotonic()
            machine.run("cd /root/project; python3 -m venv --system-site-packages v; "
                        "v/bin/pip install --no-index --find-links /release claimd; v/bin/python -m pytest")
            seconds = time.monotonic() - start
            machine.run("cd /root/project; v/bin/claimd run --fail-on-leak -- v/bin/python -m pytest; "
                        "PATH=$PWD/v/bin:$PATH; %s" % WORK)
            machine.run("cd /root/project; v/bin/pip install --no-index --force-reinstall ./%s; v/bin/python -m pytest; "
                        "v/bin/pip install --no-index --find-links /release --upgrade claimd; v/bin/pip list | "
                        "grep -E 'claimd +%s'; v/bin/python -m pytest" % (name, machine.file("wheel").split("-")[1]))
            # pytest makes byte code of a package with a plugin. pip does not know it, and leaves it.
            found = machine.run("cd /root/project; v/bin/pip uninstall -q -y claimd; "
                                "find v -path '*claimd*' ! -type d ! -name '*-pytest-*.pyc'")
            self.assertEqual(found, "")
            machine.run("rm -r /root/project")
            self.assertEqual(machine.files() - before, set())
            return seconds
        self.on_each_machine("wheel", test, tools=True)

    def test_node_packages(self):
        def test(machine):
            before = machine.files()
            platform = "@claimd/linux-" + {"amd64": "x64", "arm64": "arm64"}[machine.arch]
            both = "claimd-%s.tgz" % VERSION, machine.file("node")
            old = dict(map(older_node, both))
            self.put(machine, **{"jobs.test.js": NODE_TEST.encode(), **old})
            start = time.monotonic()
            machine.run("cd /root/project; npm init -y; npm pkg set scripts.test='node --test'; "
                        "npm install --offline --save-dev /release/%s /release/%s; npm test" % both)
            seconds = time.monotonic() - start
            machine.run("cd /root/project; npx --offline claimd run --fail-on-leak -- npm test; "
                        "PATH=$PWD/node_modules/.bin:$PATH; %s" % WORK)
            machine.run("cd /root/project; npm install --offline ./%s ./%s; npm test; npm install --offline /release/%s "
                        "/release/%s; npm ls claimd | grep -F claimd@%s; npm test" % (*old, *both, VERSION))
            machine.run("cd /root/project; npm uninstall --offline claimd %s; "
                        "[ -z \"$(find node_modules -path '*claimd*' ! -type d)\" ]; rm -r /root/project" % platform)
            self.assertEqual(machine.files() - before, set())
            return seconds
        self.on_each_machine("node", test, tools=True)

    def test_image(self):
        """Does the work of a container: unpacks the layer, read-only, and starts the entry point as the user of the image."""
        def test(machine):
            with tarfile.open(os.path.join(FOLDER, machine.file("image"))) as archive:
                def blob(entry):
                    data = archive.extractfile("blobs/sha256/" + entry["digest"][7:]).read()
                    self.assertEqual("sha256:" + hashlib.sha256(data).hexdigest(), entry["digest"])
                    self.assertEqual(len(data), entry["size"])
                    return data
                top, = json.load(archive.extractfile("index.json"))["manifests"]
                chosen, = [entry for entry in json.loads(blob(top))["manifests"]
                           if entry["platform"]["architecture"] == machine.arch]
                manifest = json.loads(blob(chosen))
                config = json.loads(blob(manifest["config"]))
                layer, = manifest["layers"]
                layer = blob(layer)
            with tarfile.open(fileobj=io.BytesIO(layer)) as files:
                files.extractall(os.path.join(machine.root, "image"))
            config = config["config"]
            self.assertEqual((config["User"], config["Entrypoint"]), ("8888:8888", ["claimd"]))
            found = machine.run(IN_IMAGE % " ".join(config["Env"]) + WORK)
            self.assertIn("/run/secrets/claimd-tokens: No such file", found)
        self.on_each_machine("image", test)


if __name__ == "__main__":
    MACHINES = machines(NAMES, FOLDER)
    tests = unittest.main(exit=False, verbosity=2)
    for row in ROWS:
        print("| %-14s | %-50s | %5.1f MB | %6.1f s |" % row)
    sys.exit(not tests.result.wasSuccessful())
