#!/usr/bin/python3
"""docs/commands.md, docs/work.md and the commands of README.md do as the pages say, as they are printed.

    command_pages_test.py CLAIMD
"""

import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)

from harness import CLAIMD, PATIENCE_S, environment, eventually, free_port  # noqa: E402
from runner import WorkCase  # noqa: E402
import examples  # noqa: E402


def page(*names):
    with open(os.path.join(HERE, "..", "..", *names), encoding="utf-8") as f:
        return f.read()


def work_page():
    return page("docs", "work.md")


class PageCase(WorkCase):
    def save(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(self.path(name), 0o755)

    def bash(self, text):
        """Runs a block of the page in the folder of the test; what it printed."""
        variables = environment(CLAIMD_URL=self.server.url, CLAIMD_PROJECT="demo")
        variables["PATH"] = os.path.dirname(os.path.abspath(CLAIMD)) + ":" + variables["PATH"]
        text = text.replace(examples.ADDRESS, "%s:%d" % (self.server.host, self.server.port))
        run = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=self.folder, env=variables,
                             capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout, run.stderr

    def counts(self, queue):
        found = json.loads(self.bash("claimd queues --json")[0])["queues"]
        return {one["name"]: (one["ready"], one["delayed"], one["claimed"]) for one in found}[queue]


class Commands(PageCase):
    def metadata(self, queue, **metadata):
        self.fetch("PUT", "/v2/demo/queues/" + queue, {"_" + name: value for name, value in metadata.items()},
                   201)

    def test_the_page(self):
        """One shell runs all examples, after a dead letter was made."""
        self.metadata("jobs", max_claim_count=5, dead_letter_queue="jobs-dead")
        self.bash("claimd post jobs dead; claimd work jobs --max-jobs 1 -- sh -c 'exit 65'")
        blocks = examples.blocks(page("docs", "commands.md"), "bash")
        self.assertEqual(len(blocks), 11)
        out, err = self.bash("".join(blocks))
        self.assertEqual(err, "")
        # 13 posted to jobs, two claimed, one deleted, one delayed, and the dead letter is back.
        self.assertEqual(self.counts("jobs"), (10, 1, 2))
        self.assertEqual(self.counts("jobs-dead"), (0, 0, 0))
        self.assertEqual(self.counts("reports"), (1, 0, 0))
        self.assertEqual(len(re.findall("^[0-9a-f]{24}$", out, re.M)), 15)
        for text in ("1 message would move, 0 remain", "1 message moved, 0 remain",
                     "0 messages of jobs-dead would be deleted", "CLAIMD OK", "no database",
                     'mail: _max_claim_count=5 _dead_letter_queue="mail-dead" team="blue" ',
                     'mail: _max_claim_count=5 _dead_letter_queue="mail-dead" _default_message_ttl=86400 ',
                     "jobs: claims paused, posts open", "jobs (paused)", "jobs: claims open, posts open",
                     "reports/nightly: next at ", "reports/pulse: paused", 'body          "ping"'):
            self.assertIn(text, out)

    def documented(self, command):
        """The members of the documents that the page shows for a command; one set for each."""
        row, = re.findall(r"^\| `%s`[^|]*\|(.*{.*)\|$" % command, page("docs", "commands.md"), re.M)
        return [set(re.findall(r'"(\w+)":', one)) for one in re.findall("`({.*?})`", row)]

    def test_json_documents(self):
        self.metadata("q", max_claim_count=5, dead_letter_queue="dead")
        self.bash("claimd post q a b c; claimd work q --max-jobs 1 -- sh -c 'exit 65'")

        def members(text):
            return set(json.loads(self.bash("claimd %s --json" % text)[0]))

        self.assertEqual([members("claim q")], self.documented("claim"))
        self.assertEqual([members("redrive dead --yes"), members("redrive dead --dry-run")],
                         self.documented("redrive"))
        self.assertEqual([members("purge q --yes"), members("purge q --dry-run")], self.documented("purge"))
        self.assertEqual([members("pause q")], self.documented("pause`, `resume"))
        self.assertEqual([members("resume q")], self.documented("pause`, `resume"))
        self.assertEqual([members("check q")], self.documented("check"))
        self.bash("claimd schedule set q s --every 1d x")
        self.assertEqual([members("schedule list"), members("schedule next q s")],
                         self.documented("schedule list`, `next"))
        self.assertEqual([members("queues"), members("claims q"), members("peek q")],
                         self.documented("queues"))

    def test_the_readme(self):
        post, work = re.findall(r"^    (curl .*?|build/run/.*?) +# ", page("README.md"), re.M)
        work = re.sub("^build/run/(claimd work )", r"\1--project default --exit-when-empty ", work)
        out, err = self.bash("%s -s >posted\n%s" % (post, work))
        self.assertEqual((out, err), ("any text", ""))


class Work(PageCase):
    def test_the_shell_script(self):
        create, work, *_ = examples.blocks(work_page(), "bash")
        script, _ = examples.blocks(work_page(), "sh")
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
        _, _, balances, *_ = examples.blocks(work_page(), "bash")
        script, *_ = examples.blocks(work_page(), "python")
        self.save("balance.py", script)
        self.bash(balances)
        self.assertEqual(self.balances(), [("a", 5), ("b", 7)])
        # A late worker has a smaller token.
        late = subprocess.run([sys.executable, self.path("balance.py")], cwd=self.folder,
                              input='{"account": "a", "balance": 1}', env=environment(CLAIMD_CLAIM_NUMBER="1"),
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual((late.returncode, late.stderr), (1, "another worker has a newer claim\n"))
        self.assertEqual(self.balances(), [("a", 5), ("b", 7)])

    def test_kept_workers(self):
        *_, letters, _ = examples.blocks(work_page(), "bash")
        _, kept, _ = examples.blocks(work_page(), "python")
        _, shell = examples.blocks(work_page(), "sh")
        node, = examples.blocks(work_page(), "js")
        self.assertLessEqual(max(text.count("\n") for text in (kept, shell, node)), 15)
        self.save("keep.py", kept)
        _, err = self.bash(letters)
        self.assertIn("mail to a\nmail to c\n", err)
        found = json.loads(self.bash("claimd peek letters-dead --json")[0])["messages"]
        self.assertEqual([(one["body"], one["details"]["last_reason"]) for one in found], [({"from": "b"}, "no 'to'")])
        self.save("keep", shell)
        self.bash("claimd post files 1 2; claimd work files --keep --exit-when-empty -- ./keep")
        with open(self.path("archive.jsonl"), encoding="utf-8") as f:
            self.assertEqual([json.loads(line)["body"] for line in f], [1, 2])
        if shutil.which("node"):
            self.save("keep.js", node)
            self.bash("""claimd post slow '{"ms": 300}' '{"ms": 1}' '{}'
                      claimd work slow --keep --batch 3 --exit-when-empty -- node keep.js""")
        for queue in ("letters", "files") + (("slow",) if shutil.which("node") else ()):
            self.assertEqual(self.counts(queue), (0, 0, 0))

    @staticmethod
    def listens(port):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            return False
        return True

    def test_the_service(self):
        *_, hooks = examples.blocks(work_page(), "bash")
        *_, script = examples.blocks(work_page(), "python")
        self.save("service.py", script)
        port = free_port()
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
