#!/usr/bin/python3
"""`claimd work --keep`: a command that stays, its lines, its end, and what becomes of the messages.

    work_keep_test.py CLAIMD

The promise: a kept worker is judged by its lines. A message without a valid response line is never deleted.
"""

import json
import os
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import children, eventually  # noqa: E402
from runner import QUEUE, WorkCase, is_over  # noqa: E402

# The body of a message is what the worker does with it. The worker notes each start and each message.
WORKER = """
import json, os, signal, subprocess, sys, time

noted = open(sys.argv[1], "a", buffering=1, encoding="utf-8")
jobs = []


def note(*words):
    print(*words, file=noted)


def say(text, end="\\n"):
    print(text, end=end, flush=True)


def respond(job, result="delete", **more):
    say(json.dumps({"id": job["id"], "result": result, **more}))


note("start", os.getpid())
for line in sys.stdin:
    job = json.loads(line)
    jobs.append(job)
    note("message", job["id"])
    exec(job["body"])
note("eof")
"""

GOOD = "respond(job)"


class KeepCase(WorkCase):
    def worker(self):
        path = self.path("worker.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(WORKER)
        return sys.executable, path, self.path("noted")

    def keep(self, *options, command=None, **more):
        return self.work("--keep", *options, "q", "--", *(command or self.worker()), **more)

    def until_empty(self, *options, **more):
        """Runs until the queue is empty. The runner, which has ended with status 0."""
        runner = self.keep("--exit-when-empty", *options, **more)
        self.assertEqual(runner.wait(), 0, runner.err.lines)
        return runner

    def noted(self, kind):
        """The second words of the notes of this kind."""
        try:
            with open(self.path("noted"), encoding="utf-8") as f:
                lines = [line.split() for line in f]
        except FileNotFoundError:
            return []
        return [line[-1] for line in lines if line[0] == kind]

    def await_note(self, kind, count=1):
        eventually(lambda: len(self.noted(kind)) >= count)
        return self.noted(kind)


class Input(KeepCase):
    def test_one_process_gets_a_line_for_each_message(self):
        ids = self.post(*[GOOD] * 24, "note('json', json.dumps(job).replace(' ', ''))\n" + GOOD)
        before = int(time.time())
        self.until_empty("--timeout", "50")
        self.assertEqual(self.server.stats("q"), (0, 0, 0))
        self.assertEqual(len(self.noted("start")), 1)
        self.assertEqual(self.noted("message"), ids)
        line = json.loads(self.noted("json")[0])
        self.assertEqual(set(line), {"id", "queue", "body", "delivery_count", "claim_number", "deadline",
                                     "details"})
        self.assertEqual((line["id"], line["queue"], line["delivery_count"]), (ids[-1], "q", 1))
        self.assertGreater(int(line["claim_number"]), 0)
        self.assertGreaterEqual(line["deadline"], before + 50)
        self.assertEqual(line["details"]["delivery_count"], 1)

    def test_the_environment_has_the_queue_and_no_message(self):
        self.post("note('names', ','.join(sorted(n for n in os.environ if n.startswith('CLAIMD_'))))\n"
                  "note('files', ','.join(sorted(os.listdir('/proc/self/fd'))))\n" + GOOD)
        self.until_empty(CLAIMD_MESSAGE_ID="mine", CLAIMD_QUEUE="mine")
        names = self.noted("names")[0].split(",")
        self.assertIn("CLAIMD_QUEUE", names)
        self.assertNotIn("CLAIMD_MESSAGE_ID", names)
        # 3 is the file of the notes, and 4 is the directory itself.
        self.assertEqual(self.noted("files"), ["0,1,2,3,4"])

    def test_several_queues_are_in_the_lines(self):
        act = "note('queue', job['queue'] + os.environ.get('CLAIMD_QUEUE', '-'))\n" + GOOD
        self.post(act, queue="a")
        self.post(act, queue="b")
        runner = self.work("--keep", "--exit-when-empty", "a", "b", "--", *self.worker())
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.noted("queue"), ["a-", "b-"])

    def test_a_body_with_line_breaks_is_one_line(self):
        body = b'{"messages": [{"ttl": 300, "body":\n{\r\n"text":\n"a\\nb"\n}\n}]}'
        self.assertEqual(self.server.fetch("POST", QUEUE + "/messages", body).status, 201)
        runner = self.until_empty(command=(sys.executable, "-c", (
            "import json, sys\n"
            "for line in sys.stdin:\n"
            "    job = json.loads(line)\n"
            "    print(job['body'], file=sys.stderr)\n"
            "    print(json.dumps({'id': job['id'], 'result': 'delete'}), flush=True)")))
        self.assertEqual(runner.err.lines, ["{'text': 'a\\nb'}"])

    def test_large_messages_fit_through_the_pipe(self):
        """Each is larger than a pipe, and all together are larger than the lines that wait."""
        for _ in range(8):
            self.post("#" + "x" * 100000 + "\n" + GOOD)
        self.until_empty("--batch", "8")
        self.assertEqual(self.server.stats("q"), (0, 0, 0))
        self.assertEqual(len(self.noted("message")), 8)

    def test_options_that_do_not_fit_are_refused(self):
        for words, text in ((("--keep", "--raw", "q", "--", "true"), "reads lines of JSON"),
                            (("--keep", "--http", "http://127.0.0.1:1/", "q"), "--keep is for a command"),
                            (("--batch", "5", "q", "--", "true"), "--batch is for --keep"),
                            (("--keep", "--batch", "101", "q", "--", "true"), "101")):
            runner = self.work(*words)
            self.assertEqual(runner.wait(), 2)
            runner.err.containing(text)


class Responses(KeepCase):
    def test_responses_in_any_order(self):
        self.post(*["pass"] * 4, "[respond(one) for one in reversed(jobs)]")
        self.until_empty("--batch", "5")
        self.assertEqual(self.server.stats("q"), (0, 0, 0))
        self.assertEqual(len(self.noted("start")), 1)

    def test_a_batch_is_not_larger_than_the_option(self):
        """The fourth message is sent after the first response."""
        self.post(*["pass"] * 2, "time.sleep(0.3)\nnote('at', len(jobs))\n[respond(one) for one in jobs]", GOOD)
        self.until_empty("--batch", "3")
        self.assertEqual(self.noted("at"), ["3"])
        self.assertEqual(self.server.stats("q"), (0, 0, 0))

    def test_release_and_dead_letter(self):
        self.queue(max_claim_count=5, dead_letter_queue="dead")
        later, plain, bad = self.post("respond(job, 'release', delay=1000, reason='n\\u00e4chstes \"Mal\"')",
                                      "respond(job, 'release')",
                                      "respond(job, 'dead_letter', reason='no such user', delay=None)")
        runner = self.until_empty("--backoff", "100")
        details = self.details(later)
        self.assertEqual((details["state"], details["delivery_count"], details["last_reason"]),
                         ("delayed", 1, 'nächstes "Mal"'))
        self.assertEqual(self.details(plain)["state"], "delayed")
        self.assertEqual(self.details(bad, "dead")["last_reason"], "no such user")
        self.assertIn("The next attempt is in 1000 s", runner.err.containing(later))

    def test_an_invalid_line_fails_its_message_and_says_why(self):
        """If the id is known, the process stays."""
        self.queue(max_claim_count=9, dead_letter_queue="dead")
        ways = {"respond(job, 'done')": "the result must be delete, release or dead_letter",
                "say(json.dumps({'id': job['id']}))": "it has no result",
                "respond(job, delay=-1)": "the delay must be",
                "respond(job, delay='1')": "the delay must be",
                "respond(job, reason=1)": "the reason must be a string"}
        ids = self.post(*ways)
        self.until_empty("--backoff", "100")
        self.assertEqual(len(self.noted("start")), 1)
        for message, why in zip(ids, ways.values()):
            details = self.details(message)
            self.assertIn("invalid response: " + why, details["last_reason"])
            self.assertIn('{"id": "' + message, details["last_reason"])
            self.assertEqual((details["state"], details["delivery_count"]), ("delayed", 1))

    def test_a_line_without_a_known_id_fails_all_messages_of_the_process(self):
        ways = {"say('hello')": "the line is no JSON object: hello",
                "say('')": "the line is no JSON object",
                "say('[]')": "the line is no JSON object: []",
                "say('{\"result\": \"delete\"}')": "it has no id",
                "respond({'id': '1234'})": "the process has no message with this id",
                "say('x' * 70000)": "the line is longer than 65536 bytes: xxx",
                "say('x' * 70000, end='')": "the line is longer than 65536 bytes: xxx"}
        ids = []
        for way in ways:  # the first one of each process is good, so that the next process starts at once
            ids.append(self.post(GOOD, way + "\ntime.sleep(1000)")[1])
        self.until_empty("--backoff", "100")
        self.assertEqual(len(self.noted("start")), len(ways))
        for message, why in zip(ids, ways.values()):
            details = self.details(message)
            self.assertIn("invalid response: " + why, details["last_reason"])
            self.assertEqual((details["state"], details["delivery_count"]), ("delayed", 1))
        self.assertEqual(self.server.stats("q"), (0, len(ways), len(ways)))

    def test_a_second_response_is_ignored(self):
        first, _ = self.post("respond(job)\nrespond(job)\nrespond(job, 'release')", GOOD)
        runner = self.until_empty()
        self.assertEqual(self.server.stats("q"), (0, 0, 0))
        self.assertEqual(len(self.noted("start")), 1)
        runner.err.containing("responded for " + first + " again, which is ignored", 2)

    def test_a_line_that_is_not_ended_is_no_response(self):
        good, bad = self.post(GOOD, "say(json.dumps({'id': job['id'], 'result': 'delete'}), end='')\nos._exit(0)")
        self.until_empty("--backoff", "100")
        self.assertEqual([message["id"] for message in self.messages()], [bad])
        self.assertEqual(self.details(bad)["last_reason"], "exit status 0 without a response")
        self.assertNotEqual(good, bad)


class Ends(KeepCase):
    """The ends of a process."""

    def test_only_the_messages_that_it_still_has_fail(self):
        ids = self.post(GOOD, "pass", GOOD, "pass", "print('lost', file=sys.stderr)\nos._exit(3)")
        runner = self.until_empty("--batch", "5", "--backoff", "100")
        left = {message["id"]: message["details"] for message in self.messages()}
        self.assertEqual(set(left), {ids[1], ids[3], ids[4]})
        for details in left.values():
            self.assertEqual(details["last_reason"], "exit status 3: lost")
            self.assertEqual((details["delivery_count"], details["state"]), (1, "delayed"))
        runner.err.containing("exit status 3", 3)

    def test_a_signal_is_a_reason(self):
        _, bad = self.post(GOOD, "os.kill(os.getpid(), signal.SIGSEGV)")
        self.until_empty("--backoff", "100")
        self.assertEqual(self.details(bad)["last_reason"], "killed by SIGSEGV")

    def test_a_worker_may_end_after_some_messages(self):
        """Lines that it has not read go to the next process, and are no attempt."""
        self.post(*range(12))
        job = self.script("""n=0
while read -r line; do
    id=${line#*'"id":"'}
    count=${line#*'"delivery_count":'}
    echo "count ${count%%,*}" >>"$1"
    echo "{\\"id\\": \\"${id%%\\"*}\\", \\"result\\": \\"delete\\"}"
    n=$((n + 1))
    [ $n -lt 3 ] || exit 0
done
""")
        runner = self.until_empty("--batch", "7", command=(job, self.path("noted")))
        self.assertEqual(self.server.stats("q"), (0, 0, 0))
        self.assertEqual((self.noted("count"), runner.err.lines), (["1"] * 12, []))

    def test_a_broken_command_ends_the_runner_and_harms_no_message(self):
        says = "the command is broken: 5 processes in a row ended without a valid response. The last one: "
        ways = {("/nowhere/at/all",): "the command is broken: cannot start: No such file",
                ("sh", "-c", "exit 127"): "the command is broken: exit status 127",
                ("false",): says + "exit status 1",
                ("sh", "-c", "read -r line; exit 3"): says + "exit status 3",
                ("sh", "-c", "read -r line; echo hello; sleep 1000"): says + "invalid response: the line is no JSON"}
        runners = []
        for n, way in enumerate(ways):
            queue = "q%d" % n
            self.fetch("PUT", "/v2/queues/" + queue, {"_max_claim_count": 1, "_dead_letter_queue": "dead"}, 201)
            message, = self.post(1, queue=queue)
            runners.append((self.work("--keep", "--backoff", "0", queue, "--", *way), queue, message))
        for (runner, queue, message), text in zip(runners, ways.values()):
            self.assertEqual(runner.wait(), 69, runner.err.lines)
            runner.err.containing(text)
            details = self.details(message, queue)
            self.assertEqual((details["state"], details["delivery_count"]), ("ready", 0))

    def test_a_command_that_has_responded_once_is_not_broken(self):
        self.post(GOOD, *["os._exit(1)"] * 5)
        self.until_empty("--backoff", "100")
        self.assertEqual(self.server.stats("q"), (0, 5, 5))

    def test_timeout_counts_for_each_message_from_its_line(self):
        late, other = self.post("time.sleep(1000)", GOOD)
        good, = self.post(GOOD)
        runner = self.keep("--batch", "2", "--timeout", "1", "--backoff", "100", "--max-jobs", "3")
        runner.wait()
        details = self.details(late)
        self.assertEqual((details["last_reason"], details["delivery_count"]), ("timed out after 1 s", 1))
        self.assertNotIn(good, [message["id"] for message in self.messages()])
        self.assertNotEqual(other, late)

    def test_all_processes_end_with_the_timeout(self):
        self.post("child = subprocess.Popen(['setsid', 'sleep', '1000'])\nnote('child', child.pid)\n"
                  "signal.signal(signal.SIGTERM, signal.SIG_DFL)\ntime.sleep(1000)")
        self.until_empty("--timeout", "1", "--backoff", "100")
        self.assertTrue(is_over(int(self.noted("child")[0])))
        self.assertEqual(self.server.stats("q"), (0, 1, 1))

    def test_a_lost_lease_ends_the_process_and_a_new_one_gets_the_others(self):
        message, = self.post("if job['delivery_count'] > 1: respond(job)\n"
                             "else: note('claim', 1); time.sleep(1000)")
        runner = self.keep("--lease", "3", "--backoff", "0")
        pid = int(self.await_note("start")[0])
        self.await_note("claim")
        claim = self.messages()[0]["href"].rpartition("claim_id=")[2]
        claim = claim or self.details(message)["claim_id"]
        self.fetch("DELETE", QUEUE + "/claims/" + claim, status=204)
        runner.err.containing("ended, because the lease is lost")
        self.assert_counts(0, 0, 0)
        self.assertTrue(is_over(pid))
        self.assertEqual(len(self.noted("start")), 2)

    def test_a_message_may_take_longer_than_its_lease(self):
        self.post("time.sleep(3.5)\n" + GOOD, GOOD)
        runner = self.until_empty("--lease", "3", "--batch", "2")
        self.assertEqual(self.server.stats("q"), (0, 0, 0))
        self.assertEqual((len(self.noted("message")), runner.err.lines), (2, []))

    def test_an_idle_process_outlives_its_last_lease(self):
        runner = self.keep("--lease", "3")
        self.post(GOOD)
        self.assert_counts(0, 0, 0)
        time.sleep(3.2)
        self.post(GOOD)
        self.assert_counts(0, 0, 0)
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        self.assertEqual((len(self.noted("start")), len(self.noted("eof"))), (1, 1))

    def test_a_killed_guard_fails_its_messages(self):
        self.queue(max_claim_count=5, dead_letter_queue="dead")
        self.post(GOOD, "if job['delivery_count'] > 1: respond(job)\nelse: note('wait', 1); time.sleep(1000)")
        runner = self.keep("--backoff", "0")
        self.await_note("wait")
        spawner, = children(runner.process.pid)
        guard, = children(spawner)
        os.kill(guard, signal.SIGKILL)
        self.assert_counts(0, 0, 0)
        runner.err.containing("killed by SIGKILL")
        self.assertTrue(is_over(int(self.noted("start")[0])))

    def test_the_process_ends_with_the_runner(self):
        """Killed, or stopped until the lease is about to end."""
        for number in (signal.SIGKILL, signal.SIGSTOP):
            self.post("subprocess.Popen(['setsid', 'sleep', '1000'])\nnote('wait', 1)\ntime.sleep(1000)")
            before = len(self.noted("wait"))
            runner = self.keep("--lease", "3")
            self.await_note("wait", before + 1)
            pid = int(self.noted("start")[-1])
            runner.signal(number)
            eventually(lambda: is_over(pid))
            runner.signal(signal.SIGKILL)
            runner.wait()
            self.fetch("DELETE", QUEUE, status=204)


class Blocking(KeepCase):
    """A command that does not keep to the rules does not stop `claimd work`."""

    def test_standard_output_that_is_closed(self):
        _, bad = self.post(GOOD, "os.close(1)\ntime.sleep(1000)")
        self.until_empty("--backoff", "100")
        self.assertIn("closed its standard input or output", self.details(bad)["last_reason"])

    def test_standard_input_that_is_closed(self):
        self.post(GOOD, "os.close(0)\nrespond(job)\ntime.sleep(1000)", GOOD)
        runner = self.keep("--max-jobs", "3")
        self.assert_counts(0, 0, 0)
        runner.wait()
        self.assertEqual(len(self.noted("start")), 2)

    def test_a_command_that_never_reads_or_responds(self):
        """The messages time out, and the runner ends when it should."""
        ids = self.post(*["x" * 30000] * 5)
        runner = self.keep("--batch", "5", "--timeout", "1", "--backoff", "100", "--max-jobs", "5",
                           command=("sleep", "1000"))
        eventually(lambda: any("last_reason" in message["details"] for message in self.messages()))
        self.assertEqual(self.details(ids[0])["last_reason"], "timed out after 1 s")
        runner.signal()
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.server.stats("q")[0], 0)

    def test_much_standard_error(self):
        self.post("print('x' * 3000000, file=sys.stderr)\n" + GOOD)
        runner = self.until_empty()
        self.assertEqual(len("".join(runner.err.lines)), 3000000)
        self.assertEqual(self.server.stats("q"), (0, 0, 0))


class Stopping(KeepCase):
    def busy(self, *options):
        os.mkfifo(self.path("go"))
        self.post("note('wait', 1)\nopen(%r).read()\nrespond(job)" % self.path("go"), *[GOOD] * 3)
        runner = self.keep(*options)
        self.await_note("wait")
        return runner

    def go(self):
        with open(self.path("go"), "w", encoding="utf-8"):
            pass

    def test_sigterm_lets_the_messages_of_the_process_end(self):
        runner = self.busy("--batch", "2")
        self.assert_counts(2, 2, 4)
        runner.signal()
        self.go()
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.server.stats("q"), (0, 2, 2))
        self.assertEqual((len(self.noted("message")), len(self.noted("eof"))), (2, 1))

    def test_messages_are_released_after_the_grace(self):
        runner = self.busy("--grace", "1")
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.server.stats("q"), (0, 4, 4))
        self.assertTrue(all("last_reason" not in message["details"] for message in self.messages()))

    def test_a_second_sigterm_releases_now(self):
        runner = self.busy("--grace", "1000")
        runner.signal()
        time.sleep(0.2)  # an earlier second one counts as the first
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(self.server.stats("q"), (0, 4, 4))

    def test_a_process_that_ignores_the_end_of_its_input_is_ended(self):
        self.post("respond(job)\ntime.sleep(1000)")
        self.until_empty("--grace", "1")
        self.assertEqual(self.server.stats("q"), (0, 0, 0))
        self.assertTrue(is_over(int(self.noted("start")[0])))

    def test_an_idle_process_gets_the_end_of_its_input(self):
        self.post(GOOD)
        runner = self.keep("--grace", "1000")
        self.assert_counts(0, 0, 0)
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        self.assertEqual(len(self.noted("eof")), 1)


# Notes a message before its response is written, and dies or breaks the rules at random.
RANDOM_WORKER = """
import json, os, random, signal, sys

noted = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for line in sys.stdin:
    job = json.loads(line)
    way = random.randrange(600)
    if way == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if way == 1:
        sys.exit(0)
    if way == 2:
        print("garbage", flush=True)
        continue
    response = {"id": job["id"], "result": "delete"}
    if way == 3:
        response["result"] = "deleted"
    if way > 3:
        os.write(noted, (job["id"] + "\\n").encode())
    print(json.dumps(response), flush=True)
"""


class Promise(KeepCase):
    def test_a_message_is_deleted_only_after_a_valid_response_line(self):
        """10,000 messages. Workers die and break the rules, and the runner is killed."""
        count, path = 10000, self.path("worker.py")
        self.crash()
        self.start("--max-messages-per-page", "1000")
        posted = []
        for _ in range(count // 1000):
            posted += self.post(*range(1000))
        with open(path, "w", encoding="utf-8") as f:
            f.write(RANDOM_WORKER)
        options = ("--parallel", "2", "--batch", "20", "--backoff", "0", "--lease", "3")
        command = (sys.executable, path, self.path("noted"))
        for left in (7000, 4000):
            runner = self.keep(*options, command=command)
            eventually(lambda: self.server.stats("q")[2] < left)
            runner.signal(signal.SIGKILL)
            runner.wait()
            self.check(posted, runner)
        runner = self.keep(*options, command=command)
        self.assert_counts(0, 0, 0)
        runner.signal()
        self.assertEqual(runner.wait(), 0)
        self.check(posted, runner)

    def check(self, posted, runner):
        """Each message that was deleted was noted before."""
        there, marker = set(), "?limit=20&echo=true&include_claimed=true&include_delayed=true"
        while marker:
            page = self.fetch("GET", QUEUE + "/messages" + marker)
            there |= {message["id"] for message in page["messages"]}
            link = page["links"][0]["href"] if page["messages"] else ""
            marker = "?" + link.partition("?")[2] if link else ""
        with open(self.path("noted"), encoding="utf-8") as f:
            noted = {line.strip() for line in f}
        for message in set(posted) - there - noted:
            response = self.server.fetch("GET", QUEUE + "/messages/" + message)
            self.fail((message, response, [line for line in runner.err.lines if message in line]))


if __name__ == "__main__":
    unittest.main()
