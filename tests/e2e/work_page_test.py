#!/usr/bin/python3
"""docs/work.md: its examples do as the page says, as they are printed.

    work_page_test.py CLAIMD
"""

import json
import os
import socket
import sqlite3
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)

from harness import CLAIMD, PATIENCE_S, environment, eventually  # noqa: E402
from runner import WorkCase  # noqa: E402
import walk  # noqa: E402


def page():
    with open(os.path.join(HERE, "..", "..", "docs", "work.md"), encoding="utf-8") as f:
        return f.read()


class Page(WorkCase):
    def save(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(self.path(name), 0o755)

    def bash(self, text):
        """Runs a block of the page in the folder of the test; what it printed."""
        variables = environment(CLAIMD_URL=self.server.url, CLAIMD_PROJECT="demo")
        variables["PATH"] = os.path.dirname(os.path.abspath(CLAIMD)) + ":" + variables["PATH"]
        text = text.replace(walk.ADDRESS, "%s:%d" % (self.server.host, self.server.port))
        run = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=self.folder, env=variables,
                             capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout, run.stderr

    def in_demo(self, path):
        return self.ask("GET", path, None, 200, ("X-Project-ID: demo", "Prefer: details"))

    def test_the_shell_script(self):
        create, work, *_ = walk.blocks(page(), "bash")
        script, = walk.blocks(page(), "sh")
        self.save("thumbnail", script)
        self.bash(create)
        out, err = self.bash(work)
        self.assertEqual(out, "thumbnail of cat.jpg, attempt 1\n")
        self.assertIn("not the name of a picture: ../secret\n", err)
        letters = json.loads(self.bash(
            "claimd claim thumbnails-dead --json --limit 5")[0])["messages"]
        self.assertEqual([letter["body"] for letter in letters], ["../secret"])

    def balances(self):
        with sqlite3.connect(self.path("balances.db")) as database:
            return database.execute("SELECT account, balance FROM balance ORDER BY 1").fetchall()

    def test_the_python_script(self):
        _, _, balances, _ = walk.blocks(page(), "bash")
        script, _ = walk.blocks(page(), "python")
        self.save("balance.py", script)
        self.bash(balances)
        self.assertEqual(self.balances(), [("a", 5), ("b", 7)])
        # A late worker has a smaller token.
        late = subprocess.run([sys.executable, self.path("balance.py")], cwd=self.folder,
                              input='{"account": "a", "balance": 1}', env=environment(CLAIMD_CLAIM_NUMBER="1"),
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual((late.returncode, late.stderr), (1, "another worker has a newer claim\n"))
        self.assertEqual(self.balances(), [("a", 5), ("b", 7)])

    @staticmethod
    def listens(port):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            return False
        return True

    def test_the_service(self):
        *_, hooks = walk.blocks(page(), "bash")
        _, script = walk.blocks(page(), "python")
        self.save("service.py", script)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with subprocess.Popen([sys.executable, self.path("service.py"), str(port)], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as service:
            self.addCleanup(service.kill)
            eventually(lambda: self.listens(port))
            self.bash(hooks.replace("8080", str(port)))
            said = [service.stdout.readline() for _ in range(3)]
            service.kill()
        self.assertEqual(said, ["done first\n", "later busy\n", "done busy\n"])


if __name__ == "__main__":
    unittest.main()
