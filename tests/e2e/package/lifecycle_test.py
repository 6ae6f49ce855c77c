#!/usr/bin/python3
"""The work of an administrator with the Debian package, in a Debian that has nothing else: installs
it, starts what the unit starts, makes a token, changes the configuration, reloads, upgrades,
has a Keystone say who gets in, removes and purges. There is no systemd at work in it: the test does
what the unit says.

    lifecycle_test.py ROOT PACKAGE

ROOT is a folder with a fresh Debian; it is not fresh any more afterwards. Needs root.
"""

import ctypes
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
import unittest

ROOT, PACKAGE = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
del sys.argv[1:3]

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../support"))

from keystone import Keystone  # noqa: E402

PATIENCE_S = 30
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
CLIENT = ["-H", "Client-ID: 3381af92-2b9e-11e3-b191-71861300734c", "-H", "X-Project-ID: demo",
          "-H", "Content-Type: application/json"]
API = "http://127.0.0.1:8888"


def unshare(what):
    """Namespaces of our own, so that nothing of the machine is touched, and no port is in use."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(what) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def raise_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0x1 | 0x40)  # up, running
        fcntl.ioctl(any_socket, 0x8914, request)


def run(*words, status=0, **more):
    """Runs it on the machine; what it has printed."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, check=False, timeout=600, **more)
    if done.returncode != status:
        raise AssertionError("%s: status %d\n%s" % (words, done.returncode, done.stdout))
    return done.stdout


def inside(*words, **more):
    """Runs it in the root."""
    environment = {"PATH": PATH, "LC_ALL": "C.UTF-8",
                   "DEBIAN_FRONTEND": "noninteractive"}
    for name in ("http_proxy", "https_proxy"):
        if name in os.environ:
            environment[name] = os.environ[name]
    return run("chroot", ROOT, *words, env=environment, **more)


def at(path):
    return ROOT + path


def rights(path):
    """"0640 root:claimd" """
    found = os.stat(at(path))
    return "%04o %s:%s" % (stat.S_IMODE(found.st_mode), named("passwd", found.st_uid),
                           named("group", found.st_gid))


def named(database, number):
    for line in read("/etc/" + database).splitlines():
        name, _, this, *_ = line.split(":")
        if int(this) == number:
            return name
    return str(number)


def read(path):
    with open(at(path), encoding="utf-8") as f:
        return f.read()


def write(path, text):
    with open(at(path), "w", encoding="utf-8") as f:
        f.write(text)


def curl(target, *options, token=None, expect):
    """A request as the README has them; the document of its response."""
    key = ["-H", "X-Auth-Token: " + token] if token else []
    response = run("curl", "-sS", "-w", "\n%{http_code}", API + target, *CLIENT, *key, *options)
    body, status = response.rsplit("\n", 1)
    if int(status) != expect:
        raise AssertionError("%s: %s\n%s" % (target, status, body))
    return json.loads(body) if body else None


class Service:
    """The unit, without systemd."""

    def __init__(self):
        unit = read("/lib/systemd/system/claimd.service")
        self.settings = dict(re.findall(r"^(\w+)=(.*)$", unit, re.M))
        self.process = None

    def notified(self, word):
        """Waits until it says so."""
        while True:
            message = self.ear.recv(4096).decode()
            if word in message.split("\n"):
                return message

    def start(self):
        path = at("/run/notify")
        if os.path.exists(path):
            os.unlink(path)
        self.ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.ear.settimeout(PATIENCE_S)
        self.ear.bind(path)
        os.chmod(path, 0o666)
        who = "%s:%s" % (self.settings["User"], self.settings["Group"])
        with open(at("/var/log/claimd-test"), "ab") as log:
            self.process = subprocess.Popen(
                ["chroot", "--userspec=" + who, ROOT, *self.settings["ExecStart"].split()],
                env={"PATH": PATH, "NOTIFY_SOCKET": "/run/notify"}, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log)
        try:
            self.notified("READY=1")
        except TimeoutError as error:
            raise AssertionError(read("/var/log/claimd-test")) from error

    def reload(self):
        line = self.settings["ExecReload"].replace("$MAINPID", str(self.process.pid))
        program, option, argument = line.split(" ", 2)
        inside(program, option, argument.strip("'"))
        self.notified("RELOADING=1")
        return self.notified("READY=1")

    def stop(self):
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE_S)
        self.process = None
        self.ear.close()
        if status != 0:
            raise AssertionError("status %d\n%s" % (status, read("/var/log/claimd-test")))


def newer(package, folder):
    """The same package with a higher version and another default in its configuration."""
    tree, out = os.path.join(folder, "newer"), os.path.join(folder, "newer.deb")
    run("dpkg-deb", "--raw-extract", package, tree)
    control = os.path.join(tree, "DEBIAN/control")
    with open(control, encoding="utf-8") as f:
        text = f.read()
    with open(control, "w", encoding="utf-8") as f:
        f.write(re.sub(r"(?m)^Version: (.*)$", r"Version: \1+newer1", text))
    with open(os.path.join(tree, "etc/claimd/claimd.conf"), "a", encoding="utf-8") as f:
        f.write("\n# new in this version\n")
    run("dpkg-deb", "--root-owner-group", "--build", tree, out)
    return out


class Lifecycle(unittest.TestCase):
    def step(self, what):
        now = time.monotonic()
        if self.begun is not None:
            print("ok %5.1f s  %s" % (now - self.since, self.begun), flush=True)
        self.begun, self.since = what, now

    def setUp(self):
        self.begun = self.service = None
        unshare(CLONE_NEWNS)
        run("mount", "--make-rprivate", "/")
        run("mount", "-t", "proc", "proc", at("/proc"))
        self.addCleanup(run, "umount", at("/proc"))

    def tearDown(self):
        if self.service is not None and self.service.process is not None:
            self.service.process.kill()
            self.service.process.wait()

    def install(self, package, *options):
        shutil.copy(package, at("/tmp/claimd.deb"))
        inside("apt-get", "-q", "install", "-y", "--no-install-recommends", *options,
               "/tmp/claimd.deb")

    def test_install_serve_upgrade_remove_purge(self):
        self.step("apt-get update")
        inside("apt-get", "-q", "update")
        self.step("apt-get install")
        self.install(PACKAGE, "systemd")  # as on a server, where it looks for the unit
        self.check_installed()
        self.step("what a Keystone takes")
        self.check_recommended()
        self.step("what a store on Redis takes")
        self.check_suggested()
        unshare(CLONE_NEWNET)
        raise_loopback()
        self.step("started as the unit does")
        self.service = Service()
        self.service.start()
        self.step("a message from producer to worker, without a token")
        self.check_open()
        self.step("tokens")
        token = self.check_tokens()
        self.step("upgraded")
        self.check_upgraded(token)
        self.step("Keystone")
        self.check_keystone()
        self.step("removed")
        self.check_removed()
        self.step("purged")
        self.check_purged()
        self.step(None)

    def check_installed(self):
        self.assertEqual(rights("/etc/claimd"), "0750 root:claimd")
        self.assertEqual(rights("/etc/claimd/claimd.conf"), "0644 root:root")
        self.assertEqual(rights("/var/lib/claimd"), "0750 claimd:claimd")
        self.assertFalse(os.path.exists(at("/etc/claimd/tokens")))
        self.assertEqual(inside("dpkg", "--verify", "claimd"), "")
        self.assertEqual(inside("systemctl", "is-enabled", "claimd.service"), "enabled\n")
        for name in ("claimd", "claimd-tls", "claimd-metrics"):
            self.assertEqual(inside("systemctl", "is-enabled", name + ".socket", status=1),
                             "disabled\n")
        user = [line for line in read("/etc/passwd").splitlines() if line.startswith("claimd:")]
        self.assertRegex(user[0], r":/var/lib/claimd:/usr/sbin/nologin$")
        inside("claimd", "--config", "/etc/claimd/claimd.conf", "--check-config")
        self.assertRegex(inside("claimd", "--version"), r"(?m)^commit ([0-9a-f]{12}(-dirty)?|unknown)$")
        for path in ("man1/claimd.1.gz", "man1/claimd-token.1.gz", "man5/claimd.conf.5.gz",
                     "../bash-completion/completions/claimd", "../zsh/vendor-completions/_claimd"):
            self.assertTrue(os.path.exists(at("/usr/share/man/" + path)), path)

        # The program of the commands finds its libraries, and a command its program.
        self.assertIn("does not respond", inside("claimd", "queues", "--url", "http://127.0.0.1:1", status=69))
        self.assertIn("claimd-work@.service", inside("systemctl", "list-unit-files", "claimd-work@.service"))

    def check_recommended(self):
        """The certificates of the system, for a Keystone behind https."""
        write("/etc/claimd/keystone-token", "service\n")
        inside("chown", "root:claimd", "/etc/claimd/keystone-token")
        inside("chmod", "0640", "/etc/claimd/keystone-token")
        for packages in inside("dpkg-query", "-W", "-f", "${Recommends}", "claimd").split(", "):
            inside("apt-get", "-q", "install", "-y", "--no-install-recommends",
                   packages.split(" | ")[0])

    def check_suggested(self):
        """hiredis likewise, with a store on Redis."""
        redis = ("--store", "redis://127.0.0.1:1", "--journal", "none", "--listen", "127.0.0.1:0")
        inside("claimd", *redis, "--check-config")  # it loads nothing, and connects to nothing
        output = inside("claimd", *redis, status=1)
        suggested = inside("dpkg-query", "-W", "-f", "${Suggests}", "claimd").split(", ")
        hiredis = next(name for name in suggested if name.startswith("libhiredis"))
        self.assertIn("(Debian: %s)" % hiredis, output)
        inside("apt-get", "-q", "install", "-y", "--no-install-recommends", hiredis)
        self.assertIn("Connection refused", inside("claimd", *redis, status=1))

    def post(self, job, token=None):
        body = json.dumps({"messages": [{"body": {"job": job}, "ttl": 3600}]})
        curl("/v2/queues/jobs/messages", "-d", body, token=token, expect=201)

    def claim(self, token=None):
        """The bodies of a claim of one message."""
        response = curl("/v2/queues/jobs/claims?limit=1", "-d", '{"ttl": 600, "grace": 60}',
                        token=token, expect=201)
        return [message["body"]["job"] for message in response["messages"]]

    def check_open(self):
        inside("claimd", "health")
        self.post(1)
        inside("claimd", "post", "jobs", '{"job": 2}', "--project", "demo")
        self.assertEqual(self.claim(), [1])
        self.assertTrue(os.listdir(at("/var/lib/claimd")))

    def configure(self, **settings):
        """As with an editor: the comment goes, the value comes."""
        text = read("/etc/claimd/claimd.conf")
        for name, value in settings.items():
            text, count = re.subn(r"(?m)^#?%s = .*$" % name, "%s = %s" % (name, value), text)
            self.assertEqual(count, 1, name)
        write("/etc/claimd/claimd.conf", text)

    def check_tokens(self):
        token = inside("claimd", "token", "new", "billing", "--role", "worker").strip()
        other = inside("claimd", "token", "new", "shop", "--role", "producer").strip()
        self.assertEqual(rights("/etc/claimd/tokens"), "0640 root:claimd")
        self.service.stop()
        self.configure(auth="tokens", max_wait="7")
        self.service.start()
        curl("/v2/queues/jobs/stats", expect=401)
        curl("/v2/queues/jobs/stats", token=token, expect=200)
        self.post(3, token=other)
        inside("claimd", "token", "revoke", "shop")
        self.assertEqual(rights("/etc/claimd/tokens"), "0640 root:claimd")
        curl("/v2/queues/jobs/stats", token=other, expect=200)  # not yet
        self.service.reload()
        curl("/v2/queues/jobs/stats", token=other, expect=401)
        inside("claimd", "health")
        return token

    def check_upgraded(self, token):
        package = newer(PACKAGE, at("/tmp"))
        before = read("/etc/claimd/claimd.conf")
        self.service.stop()
        self.install(package, "-o", "Dpkg::Options::=--force-confdef",
                     "-o", "Dpkg::Options::=--force-confold")
        self.assertIn("+newer1", inside("dpkg-query", "-W", "claimd"))
        self.assertEqual(read("/etc/claimd/claimd.conf"), before)
        self.assertTrue(read("/etc/claimd/claimd.conf.dpkg-dist").endswith("in this version\n"))
        self.assertEqual(rights("/etc/claimd/tokens"), "0640 root:claimd")
        self.service.start()
        stats = curl("/v2/queues/jobs/stats", token=token, expect=200)["messages"]
        self.assertEqual((stats["total"], stats["claimed"]), (3, 1))
        self.assertEqual(self.claim(token), [2])

    def check_keystone(self):
        """By a name that has to be looked up."""
        with Keystone() as keystone:
            write("/etc/claimd/keystone-token", keystone.service + "\n")
            write("/etc/hosts", "127.0.0.1 localhost keystone.test\n")
            self.service.stop()
            self.configure(auth="keystone",
                           keystone_url="http://keystone.test:%d/v3" % keystone.port)
            self.service.start()
            worker = keystone.issue("demo", ["member"])
            self.assertEqual(self.claim(worker), [3])
            self.post(4, token=worker)
            curl("/v2/queues/jobs/stats", token=worker[:-1], expect=401)
            curl("/v2/queues/jobs/stats", token=keystone.issue("other", ["admin"]), expect=403)
        curl("/v2/queues/jobs/stats", token="unheard-of", expect=503)
        curl("/v2/queues/jobs/stats", token=worker, expect=200)  # believed for a minute
        os.unlink(at("/etc/claimd/keystone-token"))

    def check_removed(self):
        self.service.stop()
        inside("apt-get", "-q", "remove", "-y", "claimd")
        self.assertFalse(os.path.exists(at("/usr/bin/claimd")))
        self.assertFalse(os.path.exists(at("/lib/systemd/system/claimd.service")))
        self.assertIn("auth = keystone\n", read("/etc/claimd/claimd.conf"))
        self.assertEqual(rights("/etc/claimd/tokens"), "0640 root:claimd")
        self.assertTrue(os.listdir(at("/var/lib/claimd")))

    def check_purged(self):
        inside("apt-get", "-q", "purge", "-y", "claimd")
        for path in ("/etc/claimd", "/var/lib/claimd", "/usr/share/doc/claimd",
                     "/etc/systemd/system/multi-user.target.wants/claimd.service"):
            self.assertFalse(os.path.lexists(at(path)), path)
        left = inside("find", "/etc", "/usr", "/var/lib", "-name", "*claimd*", "-not", "-path",
                      "/var/lib/dpkg/*", "-not", "-path", "/var/lib/apt/*")
        self.assertEqual(left, "")
        self.assertIn("\nclaimd:", read("/etc/passwd"))  # users stay


if __name__ == "__main__":
    unittest.main()
