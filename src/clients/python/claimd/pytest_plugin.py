"""The fixture `claimd` of pytest: a server with a movable clock, and a project for each test.

    def test_messages_of_a_dead_worker_are_redelivered(claimd):
        queue = claimd.queue("jobs")
        queue.post({"job": 1})
        queue.claim(lease=60)
        assert claimd.advance(60) == ["claim_ended"]
        queue.claim(lease=60).jobs[0].delete()

The server is that of CLAIMD_URL. With pytest-xdist, worker N uses that of CLAIMD_URL_N (`claimd run
--instances 4 -- pytest -n 4`). Without this variable, each process of pytest starts a server, which
ends with the process.
"""
import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import uuid
from typing import Any, Dict, Iterator, List, Tuple

import pytest  # before 6.2, FixtureRequest and MonkeyPatch are missing: name them late

from . import Client, Queue

NUMBER = os.environ.get("PYTEST_XDIST_WORKER", "gw")[2:]  # of this process, from 0
URL = "CLAIMD_URL_%d" % (int(NUMBER) + 1) if NUMBER else "CLAIMD_URL"
LEAKS = {"claim": "claim {claim} of {messages} messages in queue {queue}, by client {client}",
         "unread": "message {id} in queue {queue}, never read",
         "dead_letter": "dead letter {id} in queue {queue} from {from}"}


class Claimd:
    """The server, and a project of one test's own."""

    since = 0  # where the test begins in the history
    check_leaks = True  # a test that leaves messages or claims behind on purpose sets it to False

    def __init__(self, url: str, project: str):
        self.url, self.project = url.rstrip("/"), project
        self.clients: List[Client] = []

    @staticmethod
    def client(name: str) -> str:
        """The Client-ID of a producer or a worker."""
        return str(uuid.uuid5(uuid.NAMESPACE_URL, name))

    def queue(self, name: str, client: str = "worker") -> Queue:
        """A queue of this project, for a client of this name."""
        self.clients.append(Client(self.url, self.project, client_id=self.client(client)))
        return self.clients[-1].queue(name)

    def ask(self, method: str, path: str, document: Any = None) -> Any:
        """The document of the response. An error fails the test with its description."""
        __tracebackhide__ = True
        request = urllib.request.Request(
            self.url + path, method=method,
            data=None if document is None else json.dumps(document).encode(),
            headers={"X-Project-ID": self.project, "Client-ID": self.client("the test"),
                     "Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            response = opener.open(request, timeout=60)
        except urllib.error.HTTPError as refusal:
            response = refusal
        except OSError as error:
            pytest.fail("%s %s%s: %s" % (method, self.url, path, error))
        with response:
            text = response.read().decode()
        if response.status >= 300:
            pytest.fail("%s %s: %d %s" % (method, path, response.status, text))
        return json.loads(text) if text else None

    def advance(self, seconds: float) -> List[str]:
        """Moves the clock. Returns the names of the events of this test.

        Leases and messages of this test may expire by it. Those of other tests are leaks then.
        """
        moved = self.ask("POST", "/claimd/clock/advance", {"seconds": seconds, "may_expire": True})
        return [e["event"] for e in moved["events"] if e.get("project") == self.project]

    def expect(self, queue: str, **counts: int) -> None:
        """Fails unless a queue has messages=, claimed=, free=, within wait= seconds."""
        __tracebackhide__ = True
        self.ask("GET", "/claimd/expect?" + urllib.parse.urlencode({"queue": queue, **counts}))

    def history(self, *events: str) -> List[Dict[str, Any]]:
        """The history of this test, in order: all, or these events."""
        only = {"event": ",".join(events)} if events else {}
        query = urllib.parse.urlencode({"limit": 1000, "since": self.since, **only})
        found: List[Dict[str, Any]] = self.ask("GET", "/claimd/history?" + query)["history"]
        return found

    def faults(self, *rules: Tuple[str, str]) -> None:
        """Replaces the rules. Each is an action, and a fault for its next request."""
        self.ask("PUT", "/claimd/faults", {"faults": [
            {"match": {"action": action, "project": self.project}, "fault": fault, "times": 1}
            for action, fault in rules]})

    def leaks(self) -> List[str]:
        """Claims that have not ended, messages that were never read, unseen dead letters."""
        return [LEAKS[leak["kind"]].format(**leak)
                for leak in self.ask("GET", "/claimd/leaks")["leaks"]]


@pytest.fixture(scope="session")
def claimd_url() -> Iterator[str]:
    """The URL of the server of this process, also in CLAIMD_URL for processes that it starts."""
    with pytest.MonkeyPatch.context() as patch:
        if os.environ.get(URL):
            patch.setenv("CLAIMD_URL", os.environ[URL])
            yield os.environ[URL]
            return
        program = shutil.which("claimd", path=sysconfig.get_path("scripts")) or \
            shutil.which("claimd")
        if program is None:
            pytest.fail("there is no program claimd beside this Python or on PATH", pytrace=False)
        # It ends with the pipe to its standard input, so also if this process is killed.
        command = [program, "run", "--", "sh", "-c", 'echo "$CLAIMD_URL"; exec cat >/dev/null']
        with tempfile.TemporaryFile("w+") as errors, subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                start_new_session=True) as process:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            if not url:
                status = process.wait()
                errors.seek(0)
                pytest.fail("claimd did not start: status %d\n%s" % (status, errors.read()), False)
            patch.setenv("CLAIMD_URL", url)
            yield url


@pytest.fixture
def claimd(request: "pytest.FixtureRequest", claimd_url: str) -> Iterator[Claimd]:
    """A project for this test, no fault rules, and a clock that only the test moves."""
    server = Claimd(claimd_url, ascii(request.node.nodeid)[1:-1][-256:].strip())
    server.ask("POST", "/claimd/reset?leaks=forget")  # its own project: it may be the second try
    server.ask("DELETE", "/claimd/faults")
    server.ask("PUT", "/claimd/clock", {"state": "frozen"})
    server.since = server.ask("GET", "/claimd/history?limit=1")["last"]
    yield server
    for client in server.clients:
        client.close()
    for entry in server.history():  # pytest shows it if the test has failed
        print(json.dumps(entry))
    passed = hasattr(request.node, "claimd_passed")
    if passed and not server.check_leaks:
        server.ask("POST", "/claimd/reset?leaks=forget")
    leaks = server.leaks() if passed and server.check_leaks else []
    if leaks:
        pytest.fail("leaked: " + "\nleaked: ".join(leaks), pytrace=False)


def pytest_runtest_makereport(item: pytest.Item, call: "pytest.CallInfo[None]") -> None:
    if call.when == "call" and call.excinfo is None:
        setattr(item, "claimd_passed", True)
