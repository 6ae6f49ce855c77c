"""Lines for a shell out of the documents, run against a server.

A walk is bash in a fenced block. Every comment that ends with "-> CODE" promises the status
of the curl behind it.
"""

import re
import subprocess

# Where the documents say the server is.
ADDRESS = "127.0.0.1:8888"

# Each curl says on standard error what it has asked, and the status; any failure ends the walk. Of
# several -w the last one counts: a line of the document may have its own.
WRAPPER = """
set -euo pipefail
said='%{stderr}asked %{method} %{url}\\nstatus %{http_code}\\n'
curl() { command curl --no-progress-meter "$@" -w "$said"; }
"""


def blocks(text, language):
    """The fenced blocks of one language, in their order."""
    return re.findall(r"^```%s\n(.*?)^```" % language, text, re.M | re.S)


def promises(walk):
    """The statuses that the comments of a walk promise."""
    return re.findall(r"^#.* -> (\d+)$", walk, re.M)


def statuses(run):
    """The statuses that curl has seen in a finished walk."""
    return re.findall(r"^status (\d+)$", run.stderr, re.M)


def requests(run):
    """The requests that curl has sent in a finished walk: (method, path and query)."""
    return re.findall(r"^asked (\S+) http://[^/]+(\S*)$", run.stderr, re.M)


def at(server, text):
    """A text of the documents with the address of this server in it."""
    assert ADDRESS in text, "the text does not say where the server is"
    return text.replace(ADDRESS, "%s:%d" % (server.host, server.port))


def run_bash(server, walk, **more):
    """Runs a walk to its end; the finished process."""
    return subprocess.run(["bash", "-c", WRAPPER + at(server, walk)], capture_output=True,
                          text=True, timeout=500, check=False, **more)
