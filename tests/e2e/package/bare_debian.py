"""Bare Debians in which the files of a release are installed. Needs root, and mmdebstrap for a new one."""

import os
import re
import shutil
import subprocess

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../..")
NUMBERS = {"bookworm": 12, "trixie": 13}

# apt fetches these packages while there is a network. Tests install them without.
TOOLS = "python3-venv python3-pytest python3-zaqarclient nodejs npm curl"

# A test that moves the clock, as a new user has it in a project of Python and in one of node.
PYTEST = """
def test_a_dead_worker_loses_its_job(claimd):
    jobs = claimd.queue("jobs")
    jobs.post({"job": 1})
    assert jobs.claim(lease=60, wait=0)
    claimd.advance(60)
    jobs.claim(lease=60, wait=0).jobs[0].delete()
"""
NODE_TEST = """
const test = require("node:test");
const assert = require("node:assert");
const { claimd } = require("claimd/test");

test("a dead worker loses its job", async (t) => {
  const server = await claimd(t);
  const jobs = server.queue("jobs");
  await jobs.post([{ job: 1 }]);
  assert(await jobs.claim({ lease: 60, wait: 0 }));
  await server.advance(60);
  await (await jobs.claim({ lease: 60, wait: 0 })).jobs[0].delete();
});
"""

# In namespaces of its own: all processes end with it, and there is no network but the loopback.
IN_ROOT = r"""
root=$1
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mkdir -p "$root/release"
mount --bind "$2" "$root/release"
mount -o remount,bind,ro "$root/release"
if [ "$3" = offline ]; then
    /usr/bin/python3 -c 'import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 0x41))'
else
    cp /etc/resolv.conf "$root/etc/"
fi
exec chroot "$root" env -i HOME=/root LANG=C.UTF-8 TERM=xterm DEBIAN_FRONTEND=noninteractive \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -euc "$4"
"""

class Machine:
    """A bare Debian."""

    def __init__(self, name, release):
        """A name such as trixie-arm64, and the folder with the files of the release."""
        self.name, self.release = name, release
        self.suite, self.arch = name.split("-")
        self.number = NUMBERS[self.suite]
        self.roots = os.path.join(TOP, "build/roots")
        self.archive = os.path.join(self.roots, name + ".bare.tar")
        self.archive_with_tools = os.path.join(self.roots, name + ".tools.tar")
        self.root = os.path.join(self.roots, name)

    def file(self, kind):
        """The file of this kind for this machine."""
        names = {"deb": r"claimd_.*\+deb%du1_%s\.deb" % (self.number, self.arch),
                 "archive": r"claimd-.*-linux-%s\.tar\.gz" % self.arch, "image": r"claimd-.*-image\.tar",
                 "wheel": r"claimd-.*_%s\.whl" % {"amd64": "x86_64", "arm64": "aarch64"}[self.arch],
                 "node": r"claimd-linux-%s-.*\.tgz" % {"amd64": "x64", "arm64": "arm64"}[self.arch]}
        found, = [name for name in os.listdir(self.release) if re.fullmatch(names[kind], name)]
        return found

    def run(self, script, network="offline"):
        """Runs it in the root. Returns what it printed."""
        done = subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child"] + (["--net"] if network == "offline" else [])
            + ["bash", "-euc", IN_ROOT, "-", self.root, self.release, network, script],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, check=False,
            errors="replace")
        if done.returncode != 0:
            raise AssertionError("%s: status %d\n%s\n%s" % (self.name, done.returncode, script, done.stdout[-6000:]))
        return done.stdout

    def make(self, tools=False):
        """A fresh root, with the tools or without. Its archive has, in the cache of apt, what the tests install."""
        if not os.path.exists(self.archive):
            os.makedirs(self.roots, exist_ok=True)
            mirror = subprocess.check_output([TOP + "/scripts/packages", "mirror"], text=True).strip()
            option = subprocess.check_output(["apt-config", "dump", "--format", "%f \"%v\";\n",
                                              "Acquire::Check-Valid-Until"], text=True).strip()
            subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "--arch=" + self.arch,
                            "--include=ca-certificates", "--aptopt=" + option, self.suite, self.archive + ".new.tar",
                            mirror], check=True)
            self.unpack(self.archive + ".new.tar")
            self.run("apt-get update -q && apt-get install -q -y --download-only --no-install-recommends "
                     "%s ./release/%s" % (TOOLS, self.file("deb")), network="online")
            self.pack(self.archive)
            os.unlink(self.archive + ".new.tar")
        if tools and not os.path.exists(self.archive_with_tools):
            self.unpack(self.archive)
            self.run("apt-get install -y --no-install-recommends " + TOOLS)
            self.pack(self.archive_with_tools)
        self.unpack(self.archive_with_tools if tools else self.archive)

    def pack(self, archive):
        subprocess.run(["tar", "-C", self.root, "--one-file-system", "--exclude=./release", "-cf", archive, "."],
                       check=True)

    def unpack(self, archive):
        shutil.rmtree(self.root, ignore_errors=True)
        os.makedirs(self.root, exist_ok=True)
        subprocess.run(["tar", "-C", self.root, "-xpf", archive], check=True)

    def files(self):
        """All files but those that apt and dpkg keep for themselves, and the data of claimd."""
        found = subprocess.check_output(
            ["find", self.root, "-xdev", "-printf", "%P\n"], text=True, errors="replace").split("\n")
        kept = re.compile(r"var/(lib/(dpkg|apt|claimd|systemd)|cache|log)|run/|release|tmp|etc/(ld.so.cache|.*-$)|root/\.npm"
                          r"|.*__pycache__")
        return {name for name in found if not kept.match(name)}


    def packaged(self):
        """The files of all packages that are installed."""
        info = os.path.join(self.root, "var/lib/dpkg/info")
        found = set()
        for name in os.listdir(info):
            if name.endswith(".list"):
                with open(os.path.join(info, name), encoding="utf-8") as f:
                    found |= {line[1:] for line in f.read().split("\n")}
        return found


def can_run(arch):
    """Whether programs for a processor run here, perhaps in an emulator."""
    folder = "/proc/sys/fs/binfmt_misc"
    if arch == subprocess.check_output(["dpkg", "--print-architecture"], text=True).strip():
        return True
    return arch == "arm64" and os.path.isdir(folder) and any("aarch64" in name for name in os.listdir(folder))


def machines(names, release):
    """Those with these names. Without one, all that can run here."""
    return [Machine(name, release) for name in names or [
        "%s-%s" % (suite, arch) for arch in ("amd64", "arm64") if can_run(arch) for suite in NUMBERS]]
