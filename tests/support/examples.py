"""Examples of the documents, taken out of their fenced blocks and run against a server.

In an example in bash, a comment that ends with "-> CODE" gives the expected status of the curl
after it.
"""

import re
import subprocess

# The address of the server in the documents.
ADDRESS = "127.0.0.1:8888"

# Each curl writes its request and the status to standard error. Any failure ends the example. Of
# several -w the last one counts, and a line of the document may have its own.
WRAPPER = """
set -euo pipefail
said='%{stderr}sent %{method} %{url}\\nstatus %{http_code}\\n'
curl() { command curl --no-progress-meter "$@" -w "$said"; }
"""


def blocks(text, language):
    """The fenced blocks of one language, in their order."""
    return re.findall(r"^```%s\n(.*?)^```" % language, text, re.M | re.S)


def expected_statuses(lines):
    """The statuses in the comments of an example."""
    return re.findall(r"^#.* -> (\d+)$", lines, re.M)


def seen_statuses(run):
    """The statuses that curl has seen in a finished run."""
    return re.findall(r"^status (\d+)$", run.stderr, re.M)


def seen_requests(run):
    """The requests that curl has sent in a finished run: (method, path and query)."""
    return re.findall(r"^sent (\S+) http://[^/]+(\S*)$", run.stderr, re.M)


def at(server, text):
    """A text of the documents, with the address of this server."""
    assert ADDRESS in text, "the text does not have the address of the server"
    return text.replace(ADDRESS, "%s:%d" % (server.host, server.port))


def run_bash(server, lines, **more):
    """Runs an example in bash to its end. Returns the finished process."""
    return subprocess.run(["bash", "-c", WRAPPER + at(server, lines)], capture_output=True,
                          text=True, timeout=500, check=False, **more)
