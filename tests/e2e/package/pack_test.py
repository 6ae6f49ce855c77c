#!/usr/bin/python3
"""The files of a release, from the programs of this build: their form, and that they install and run here.

    pack_test.py CMAKE BUILD

scripts/release makes them from programs of its own. tests/e2e/package/release_test.py installs those in bare Debians.
"""

import base64
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
import unittest
import zipfile

CMAKE, BUILD = sys.argv[1:3]
del sys.argv[1:3]
HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.realpath(os.path.join(HERE, "../../.."))
PACKAGING = os.path.join(TOP, "scripts/packaging")
VERSION, EPOCH = "1.2.3-rc.4", 1700000000
ARCH = subprocess.check_output(["dpkg", "--print-architecture"], text=True).strip()
WHEEL = r".*_%s\.whl" % {"amd64": "x86_64", "arm64": "aarch64"}[ARCH]

# Takes the place of docker: binds the volumes that are folders or files, and starts the program in the image's root.
DOCKER = r"""
image=$1 build=$2
mount --bind /proc "$image/proc"
/usr/bin/python3 -c 'import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 0x41))'
claimd() { "$build/claimd" "$@"; }
docker() {
    if [ "$1" = kill ]; then
        kill -HUP "$server"
        return
    fi
    while [ $# -gt 0 ]; do
        if [[ "$1 ${2-}" = "--volume /"* ]]; then
            place=${2#*:}
            place=$image${place%:ro}
            install -d "$(dirname "$place")"
            if [ -d "${2%%:*}" ]; then install -d "$place"; else touch "$place"; fi
            mount --bind -o ro "${2%%:*}" "$place"
        fi
        shift
    done
    # The programs of this build look for libraries in the places of the system only.
    env -i $SETTINGS LD_LIBRARY_PATH=/usr/libexec/claimd /usr/sbin/chroot --userspec=8888:8888 "$image" /usr/bin/claimd &
    server=$!
}
"""
# Within 5 s of a reload.
REVOKE = r"""
for _ in $(seq 100); do ! claimd health 127.0.0.1:8888 || break; kill -0 "$server"; sleep 0.1; done
claimd queues --token-file me.token
claimd token revoke me --tokens secrets/claimd-tokens
%s
for _ in $(seq 50); do claimd queues --token-file me.token || break; sleep 0.1; done
! claimd queues --token-file me.token && echo revoked
"""


def run(*words, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=300, **more)
    if done.returncode != 0:
        raise AssertionError("%s: status %d\n%s" % (words, done.returncode, done.stdout))
    return done.stdout


def environment(path):
    """Without variables of another server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLAIMD_", "OS_"))}
    return {**kept, "PATH": path + ":/usr/bin:/bin"}


class Pack(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="claimd-pack-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        run(CMAKE, "--install", BUILD, "--strip", env={**os.environ, "DESTDIR": cls.folder + "/installed"})
        prefix, = [parent for parent, _, _ in os.walk(cls.folder + "/installed")
                   if os.path.exists(parent + "/bin/claimd")]
        run(sys.executable, "-B", PACKAGING + "/bundle", ARCH, prefix, cls.folder + "/bundles/" + ARCH)
        cls.out = cls.pack("first")

    @classmethod
    def pack(cls, name):
        out = os.path.join(cls.folder, name)
        os.makedirs(out)
        run(sys.executable, "-B", PACKAGING + "/pack", VERSION, str(EPOCH), cls.folder + "/bundles", out, cwd=TOP)
        return out

    def file(self, pattern):
        found, = [name for name in os.listdir(self.out) if re.fullmatch(pattern, name)]
        return os.path.join(self.out, found)

    def unpack(self, path):
        """A fresh folder with the files of an archive."""
        folder = tempfile.mkdtemp(dir=self.folder)
        run("tar", "-C", folder, "-xf", path)
        return folder

    def test_the_same_input_makes_the_same_files(self):
        again = self.pack("second")
        for name in os.listdir(self.out):
            with open(os.path.join(self.out, name), "rb") as one, open(os.path.join(again, name), "rb") as two:
                self.assertEqual(one.read(), two.read(), name)

    def test_archive_runs_from_any_folder(self):
        folder = self.unpack(self.file(r"claimd-.*-linux-%s\.tar\.gz" % ARCH))
        program, = [os.path.join(folder, name, "bin/claimd") for name in os.listdir(folder)]
        os.symlink(program, folder + "/linked")
        self.assertIn("\n1\n", run(
            folder + "/linked", "run", "--", "sh", "-c",
            "'%s' post jobs 1 --project demo && '%s' work jobs --project demo --exit-when-empty -- sh -c 'cat; echo'"
            % (program, folder + "/linked"), env=environment(folder)))
        self.assertRegex(run(program, "--version"), r"^claimd \d+\.\d+\.\d+")

    def packages(self, *places):
        with open(os.path.join(self.folder, "bundles", ARCH, "packages.json"), encoding="utf-8") as f:
            return [entry for entry in json.load(f) if entry["in"] in places]

    def licenses(self):
        """{kind of file: {name: text}} of all licenses in the files for this processor."""
        _, layer = self.image()
        found = {"image": layer}
        for kind, name in (("archive", r"claimd-.*-linux-%s\.tar\.gz" % ARCH),
                           ("node", r"claimd-linux-%s-.*\.tgz" % {"amd64": "x64", "arm64": "arm64"}[ARCH])):
            found[kind] = tarfile.open(self.file(name))
        found = {kind: {entry.name: archive.extractfile(entry).read() for entry in archive.getmembers()
                        if "/licenses/" in entry.name and entry.isfile()} for kind, archive in found.items()}
        with zipfile.ZipFile(self.file(WHEEL)) as wheel:
            found["wheel"] = {name: wheel.read(name) for name in wheel.namelist() if "/licenses/" in name}
        return {kind: {name.split("/licenses/")[1]: text.decode(errors="replace") for name, text in files.items()}
                for kind, files in found.items()}

    def test_files_have_the_license_of_each_package_and_those_that_it_refers_to(self):
        packages = {entry["name"] for entry in self.packages("all")}
        self.assertTrue({"libgnutls30", "libjansson4"} & packages or {"libgnutls30t64"} & packages, packages)
        for kind, files in self.licenses().items():
            with self.subTest(kind=kind):
                own = {entry["name"] for entry in self.packages("image")} if kind == "image" else set()
                common = {name for text in files.values()
                          for name in re.findall(r"/usr/share/common-licenses/([\w.+-]*\w)", text)}
                self.assertIn("LGPL-2.1", common)
                # A wheel also has the license of claimd there.
                self.assertEqual(set(files) - {"LICENSE"}, packages | own | common | {"uPlot"})

    def test_bill_of_materials_names_each_package(self):
        with open(self.file(r".*\.cdx\.json"), encoding="utf-8") as f:
            bill = json.load(f)
        with open(TOP + "/src/ui/vendor/uplot/uPlot.iife.min.js", encoding="utf-8") as f:
            uplot = re.match(r"/\*!.*\(v(.*)\)", f.readline())[1]
        packages = {(entry["name"], entry["version"]) for entry in self.packages("all", "image")}
        self.assertEqual({(c["name"], c["version"]) for c in bill["components"]}, packages | {("uplot", uplot)})
        for component in bill["components"]:  # a "+" would be read as a blank
            self.assertRegex(component["purl"], r"^pkg:npm/uplot@[\d.]+$" if component["name"] == "uplot" else
                             r"^pkg:deb/debian/[\w.+-]+@[\w.~:%-]+\?[\w.~:%&=-]+$")
        self.assertEqual((bill["bomFormat"], bill["metadata"]["component"]["version"]), ("CycloneDX", VERSION))

    def test_test_of_a_release_that_fails_has_a_status(self):
        done = subprocess.run([sys.executable, "-B", HERE + "/release_test.py", self.out, "trixie-amd64", "Release.missing"],
                              capture_output=True, text=True, check=False, timeout=60)
        self.assertIn("FAILED (errors=1)", done.stderr)
        self.assertEqual(done.returncode, 1)

    # ------------------------------------------------------------------ Python

    def test_page_names_the_c_library_that_is_needed(self):
        with open("/etc/os-release", encoding="utf-8") as f:
            if 'VERSION_ID="12"' not in f.read():
                self.skipTest("releases are built on Debian 12")
        libc = re.search(r"-manylinux_(\d+)_(\d+)_", self.file(r".*\.whl"))
        with open(TOP + "/docs/install.md", encoding="utf-8") as f:
            text = f.read()
        self.assertIn(libc[0], text)
        self.assertIn("glibc %s.%s or later" % libc.groups(), text)

    def test_record_of_wheel_is_right(self):
        with zipfile.ZipFile(self.file(WHEEL)) as wheel:
            record, = [name for name in wheel.namelist() if name.endswith("/RECORD")]
            lines = wheel.read(record).decode().splitlines()
            self.assertEqual([line.split(",")[0] for line in lines], wheel.namelist())
            for line in lines[:-1]:
                name, digest, size = line.split(",")
                data = wheel.read(name)
                self.assertEqual(digest, "sha256=" + base64.urlsafe_b64encode(
                    hashlib.sha256(data).digest()).rstrip(b"=").decode())
                self.assertEqual(int(size), len(data))

    def test_wheel_installs_and_its_plugin_moves_the_clock(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        try:
            run("/usr/bin/python3", "-m", "venv", "--system-site-packages", folder + "/v")
        except AssertionError as error:
            self.skipTest("no venv: %s" % error)
        run(folder + "/v/bin/pip", "install", "--no-index", "--find-links", self.out, "--pre", "claimd")
        with open(folder + "/test_jobs.py", "w", encoding="utf-8") as f:
            f.write('def test_clock(claimd):\n    jobs = claimd.queue("jobs")\n    jobs.post(1)\n'
                    '    assert jobs.claim(lease=60, wait=0)\n    claimd.advance(60)\n'
                    '    jobs.claim(lease=60, wait=0).jobs[0].delete()\n')
        self.assertIn("1 passed", run(folder + "/v/bin/python", "-m", "pytest", "-q", cwd=folder,
                                      env=environment(folder + "/v/bin")))
        run(folder + "/v/bin/pip", "uninstall", "-y", "claimd")
        self.assertEqual([name for parent, _, names in os.walk(folder + "/v") for name in names if "claimd" in name], [])

    # ------------------------------------------------------------------ node

    def test_node_packages_run_side_by_side(self):
        if not shutil.which("node"):
            self.skipTest("no node")
        node = {"amd64": "x64", "arm64": "arm64"}[ARCH]
        folder = tempfile.mkdtemp(dir=self.folder)
        modules = folder + "/node_modules"
        os.makedirs(modules + "/@claimd")
        os.rename(self.unpack(self.file(r"claimd-%s\.tgz" % re.escape(VERSION))) + "/package", modules + "/claimd")
        os.rename(self.unpack(self.file(r"claimd-linux-%s-.*\.tgz" % node)) + "/package",
                  modules + "/@claimd/linux-" + node)
        with open(modules + "/claimd/package.json", encoding="utf-8") as f:
            package = json.load(f)
        for conditions in package["exports"].values():  # the first one that fits is taken
            if isinstance(conditions, dict):
                self.assertEqual(list(conditions), ["types", "default"])
        with open(modules + "/claimd/README.md", encoding="utf-8") as f:
            self.assertNotIn("](../", f.read())
        self.assertEqual(package["optionalDependencies"], {
            "@claimd/linux-x64": VERSION, "@claimd/linux-arm64": VERSION})
        for name in [package["main"], package["types"], package["bin"]["claimd"],
                     *(path for entry in package["exports"].values() if isinstance(entry, dict)
                       for path in entry.values())]:
            self.assertTrue(os.path.isfile(os.path.join(modules, "claimd", name)), name)
        out = run("node", modules + "/claimd/bin.js", "run", "--", "node", "-e",
                  'const {Client} = require("claimd");'
                  'new Client("", {project: "demo"}).queue("jobs").post([{job: 1}]).then(ids => console.log(ids.length, "posted"));',
                  cwd=folder, env=environment(os.path.dirname(shutil.which("node"))))
        self.assertIn("1 posted", out)

    # ------------------------------------------------------------------ image

    def image(self):
        """Configuration and files of the image for this processor."""
        with tarfile.open(self.file(r".*-image\.tar")) as archive:
            def blob(entry):
                data = archive.extractfile("blobs/sha256/" + entry["digest"].partition(":")[2]).read()
                self.assertEqual(("sha256:" + hashlib.sha256(data).hexdigest(), len(data)),
                                 (entry["digest"], entry["size"]))
                return data
            top, = json.load(archive.extractfile("index.json"))["manifests"]
            manifest, = [json.loads(blob(entry)) for entry in json.loads(blob(top))["manifests"]
                         if entry["platform"]["architecture"] == ARCH]
            layer, = manifest["layers"]
            old = json.load(archive.extractfile("manifest.json"))
            for name in [old[0]["Config"], *old[0]["Layers"]]:
                self.assertIn(name, archive.getnames())
            return json.loads(blob(manifest["config"]))["config"], tarfile.open(fileobj=io.BytesIO(blob(layer)))

    def unpack_image(self):
        config, files = self.image()
        root = tempfile.mkdtemp(dir=self.folder)
        os.chmod(self.folder, 0o755)
        os.chmod(root, 0o755)
        files.extractall(root)
        return config, root

    def claimd(self, config, *words, **more):
        settings = dict(pair.split("=", 1) for pair in config["Env"])
        return subprocess.run([os.path.join(BUILD, "claimd"), *words], env={**settings, **more}, capture_output=True,
                              text=True, timeout=60, check=False)

    def test_image_does_not_start_without_tokens(self):
        config, _ = self.image()
        refused = self.claimd(config, "--check-config")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("/run/secrets/claimd-tokens: No such file", refused.stderr)

    def test_image_starts_with_tokens_and_every_variable_is_an_option(self):
        config, _ = self.image()
        tokens = os.path.join(self.folder, "tokens")
        made = self.claimd(config, "token", "new", "a", "--role", "worker", "--tokens", tokens)
        self.assertEqual(made.returncode, 0, made.stderr)
        checked = self.claimd(config, "--check-config", CLAIMD_TOKENS=tokens)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_image_starts_without_tokens_as_the_page_says(self):
        config, _ = self.image()
        checked = self.claimd(config, "--check-config", CLAIMD_AUTH="none", CLAIMD_INSECURE_LISTEN="true")
        self.assertEqual((checked.returncode, checked.stderr), (
            0, "claimd: warning: tokens (environment) has no effect: auth is not tokens\n"))
        with open(TOP + "/docs/containers.md", encoding="utf-8") as f:
            self.assertRegex(f.read(), r"--env\s+CLAIMD_AUTH=none\s+--env\s+CLAIMD_INSECURE_LISTEN=true")

    def test_image_runs_unprivileged_and_writes_to_its_volume_only(self):
        config, files = self.image()
        self.assertEqual(config["User"], "8888:8888")
        journal = dict(pair.split("=", 1) for pair in config["Env"])["CLAIMD_JOURNAL"]
        self.assertEqual(list(config["Volumes"]), [journal])
        owned = {entry.name: oct(entry.mode) for entry in files.getmembers() if entry.uid != 0}
        self.assertEqual(owned, {journal.lstrip("/"): "0o750"})
        self.assertEqual([e.name for e in files.getmembers() if not e.issym() and e.mode & 0o022], [])

    def test_image_checks_its_health_where_it_listens(self):
        config, _ = self.image()
        kind, program, *words = config["Healthcheck"]["Test"]
        self.assertEqual((kind, [program]), ("CMD", config["Entrypoint"]))
        self.assertEqual(self.claimd(config, *words, CLAIMD_LISTEN="127.0.0.1:1").returncode, 1)
        listen = dict(pair.split("=", 1) for pair in config["Env"])["CLAIMD_LISTEN"]
        self.assertEqual(list(config["ExposedPorts"]), [listen.split(":")[1] + "/tcp"])
        # claimd health waits for 5 s. It has to end before it is ended.
        self.assertGreater(config["Healthcheck"]["Timeout"], 5e9)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, for chroot")
    def test_image_has_all_that_its_programs_need(self):
        _, root = self.unpack_image()
        # The programs of this build look for libraries in the places of the system only.
        inside = ["unshare", "--mount", "sh", "-c", 'mount --bind /proc "$0/proc" && exec /usr/sbin/chroot '
                  '--userspec=8888:8888 "$0" /usr/bin/claimd "$@"', root]
        settings = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": "/usr/libexec/claimd"}
        self.assertRegex(run(*inside, "--version", env=settings), r"^claimd \d")
        self.assertIn("Usage: claimd post", run(*inside, "post", "--help", env=settings))
        # Libraries that claimd loads: for a store on Redis at start, for subscribers with the first notification.
        output = subprocess.run([*inside, "--listen", "127.0.0.1:0", "--store", "redis://127.0.0.1:1"],
                                env=settings, capture_output=True, text=True, check=False, timeout=60).stderr
        self.assertRegex(output, r"claimd: store: .*127\.0\.0\.1:1")
        self.assertNotIn("hiredis", output)
        self.assertTrue(os.path.isfile(root + "/usr/libexec/claimd/libcurl-gnutls.so.4"))
        self.assertTrue(os.path.getsize(root + "/etc/ssl/certs/ca-certificates.crt") > 100000)
        self.assertTrue(os.path.isfile(root + "/usr/share/zoneinfo/Europe/Berlin"))
        self.assertTrue(os.path.isfile(root + "/usr/share/zoneinfo/tzdata.zi"))

    @unittest.skipUnless(os.geteuid() == 0, "needs root, for chroot")
    def test_image_started_as_the_page_says_refuses_a_revoked_token(self):
        config, root = self.unpack_image()
        with open(TOP + "/docs/containers.md", encoding="utf-8") as f:
            text = f.read()
        recipe = re.search(r"(?ms)^## Start a server$.*?^```sh\n(.*?)^```", text)[1]
        reload = re.search("docker kill --signal HUP claimd", text)[0]
        out = run("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "-euc",
                  DOCKER + recipe + REVOKE % reload, "-", root, BUILD, cwd=tempfile.mkdtemp(dir=self.folder),
                  env={"PATH": os.environ["PATH"], "SETTINGS": " ".join(config["Env"])})
        self.assertRegex(out, r"Unauthorized.*\nrevoked\n$")


if __name__ == "__main__":
    unittest.main()
