"""Shared by the tests of client programs: a claimd of their own, with the identity stub.

The program is the first argument of the test script. Nothing here knows the API: what is
said to the server is up to the client library under test.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

from daemon import Daemon  # noqa: E402

CLAIMD = sys.argv.pop(1)
CLIENT_ID = "3381af92-2b9e-11e3-b191-71861300734c"


def environment(**more):
    """The environment, without variables for another cloud or a proxy."""
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith("OS_") and not k.lower().endswith("_proxy")}
    clean.update(more)
    return clean


def has_ruby(library):
    return shutil.which("ruby") is not None and subprocess.run(
        ["ruby", "-e", "require '%s'" % library], capture_output=True).returncode == 0


def has_python(module):
    return importlib.util.find_spec(module) is not None


# By Debian's package. Some suites lack some of them.
HAVE = {
    "golang-github-gophercloud-gophercloud-dev":
        shutil.which("go") is not None
        and os.path.isdir("/usr/share/gocode/src/github.com/gophercloud/gophercloud"),
    "python3-aodh": has_python("aodh"),
    "python3-openstackclient": shutil.which("openstack") is not None,
    "python3-openstacksdk": has_python("openstack"),
    "python3-os-collect-config": shutil.which("os-collect-config") is not None,
    "python3-rally-openstack": has_python("rally_openstack"),
    "python3-zaqarclient": has_python("zaqarclient"),
    "ruby-fog-rackspace": has_ruby("fog/rackspace"),
}


def reason(package):
    return package + " is not installed (scripts/packages install clients openstack)"


def need(package):
    """Ends the whole test program as skipped, for ctest, if there is no such package."""
    if not HAVE[package]:
        print("skipped:", reason(package))
        sys.exit(77)


def needs(*packages):
    """Skips a test without these packages."""
    missing = [package for package in packages if not HAVE[package]]
    return unittest.skipIf(missing, ", ".join(map(reason, missing)))


class ClientCase(unittest.TestCase):
    """Each test has a fresh server, with `options`."""

    options = ("--identity-stub",)

    @classmethod
    def setUpClass(cls):
        kept = environment()
        os.environ.clear()
        os.environ.update(kept)

    def setUp(self):
        server = Daemon(CLAIMD, *self.options)
        self.server = server.__enter__()
        self.addCleanup(server.__exit__, None, None, None)
        self.identity = self.server.url + "/identity"
