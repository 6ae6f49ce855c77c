"""The servers of a comparison: each started on a port of its own, pinned, and stopped."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
ZAQAR_CONF = """[DEFAULT]
unreliable = True
auth_strategy =
log_dir = {work}
[drivers]
transport = wsgi
message_store = redis
management_store = redis
[drivers:message_store:redis]
uri = redis://127.0.0.1:{port}
[drivers:management_store:redis]
uri = redis://127.0.0.1:{port}
"""


class Server:
    """Where a server listens, how it is spoken to, which processes it is, what it needs."""

    def __init__(self, protocol, address, pids, cores=1):
        self.cores = cores
        self.protocol = protocol
        self.address = address
        self.pids = pids


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("nothing listens on port %d" % port)


# Linux weighs sessions against each other, and niceness only within them: the command
# needs a session of its own (start_new_session) whose weight is raised.
FIRST = 'echo -20 >/proc/self/autogroup; exec nice -n -20 "$@"'


def pinned(command, cpus, first=None):
    """
    The command on these cores. first: "weight" before nearly everything else on the
    machine; "realtime" before all of it, but Linux takes such a process off its core for
    50 ms when it has run for 950 of 1000 ms.
    """
    before = {"weight": ["sh", "-c", FIRST, "sh"], "realtime": ["chrt", "-f", "10"]}
    return [*before.get(first, []), "taskset", "-c", cpus, *command]


@contextlib.contextmanager
def process(command, log, **options):
    """Runs a command and ends it with the block."""
    with open(log, "wb") as out:
        child = subprocess.Popen(command, stderr=out, start_new_session=True, **options)
        try:
            yield child
        finally:
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(15)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


class Servers:
    """Starts servers by name. `work` is a folder for logs and what they need."""

    def __init__(self, build, work, first=None):
        self.build = build
        self.work = work
        self.first = first

    def _process(self, name, command, cpus, **options):
        return process(pinned(command, cpus, self.first), self._log(name), **options)

    def _log(self, name):
        return os.path.join(self.work, name + ".log")

    @contextlib.contextmanager
    def _announced(self, name, command, cpus):
        """A server that prints its address, as claimd and the floors do."""
        with self._process(name, command, cpus, stdout=subprocess.PIPE,
                           text=True) as child:
            found = re.search(r"127\.0\.0\.1:\d+", child.stdout.readline())
            if not found:
                raise RuntimeError("%s did not start: see %s" % (name, self._log(name)))
            yield Server("zaqar", found.group(), [child.pid])

    def claimd(self, batch, cpus, workers=1, options=(), program=None):
        return self._announced("claimd", [program or os.path.join(self.build, "claimd"),
                                          "--listen", "127.0.0.1:0", "--log-level", "warn",
                                          "--workers", str(workers), *options], cpus)

    def floor(self, which, batch, cpus):
        return self._announced(which, [os.path.join(self.build, "tests", which),
                                       "127.0.0.1:0", str(batch), "100"], cpus)

    @contextlib.contextmanager
    def directory(self, where=None):
        """For what a server keeps on a disk: a new one, removed with the block."""
        path = tempfile.mkdtemp(prefix="claimd-bench-", dir=where or self.work)
        try:
            yield path
        finally:
            shutil.rmtree(path)

    @contextlib.contextmanager
    def claimd_journal(self, batch, cpus, where=None, options=()):
        """With a journal in a directory of its own, which is removed."""
        with self.directory(where) as path, \
                self.claimd(batch, cpus, options=("--journal", path, *options)) as server:
            yield server

    def claimd_tmpfs(self, batch, cpus):
        return self.claimd_journal(batch, cpus, "/dev/shm")

    @contextlib.contextmanager
    def beanstalkd_sync(self, batch, cpus):
        """Each put and delete is synced before it is answered."""
        with self.directory() as path, \
                self.beanstalkd(batch, cpus, ("-b", path, "-f0")) as server:
            yield server

    @contextlib.contextmanager
    def redis_sync(self, batch, cpus):
        with self.directory() as path, \
                self.redis(batch, cpus, ("--appendonly", "yes", "--appendfsync", "always",
                                         "--dir", path)) as server:
            yield server

    @contextlib.contextmanager
    def beanstalkd(self, batch, cpus, options=()):
        port = free_port()
        with self._process("beanstalkd", ["beanstalkd", "-l", "127.0.0.1", "-p", str(port),
                                          *options], cpus) as child:
            wait_for_port(port)
            yield Server("beanstalk", "127.0.0.1:%d" % port, [child.pid])

    @contextlib.contextmanager
    def redis(self, batch, cpus, options=()):
        port = free_port()
        command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                   *(options or ("--appendonly", "no", "--dir", self.work))]
        with self._process("redis", command, cpus, stdout=subprocess.DEVNULL) as child:
            wait_for_port(port)
            yield Server("redis", "127.0.0.1:%d" % port, [child.pid])

    @contextlib.contextmanager
    def zaqar(self, batch, cpus):
        """Two uwsgi workers over redis, with both cores to share: it needs them."""
        package = self.zaqar_package()
        port = free_port()
        with self.redis(batch, "0,1") as redis:
            conf = os.path.join(self.work, "zaqar.conf")
            with open(conf, "w") as out:
                out.write(ZAQAR_CONF.format(work=self.work,
                                            port=redis.address.split(":")[1]))
            command = ["uwsgi", "--plugin", "python3", "--http11-socket",
                       "127.0.0.1:%d" % port, "--master", "--die-on-term", "--processes",
                       "2", "--listen", "100", "--disable-logging", "--need-app",
                       "--pythonpath", os.path.dirname(package), "--wsgi-file",
                       os.path.join(package, "transport/wsgi/app.py"), "--pyargv",
                       "--config-file " + conf]
            with self._process("zaqar", command, "0,1", stdout=subprocess.DEVNULL) as child:
                wait_for_port(port)
                time.sleep(5)  # the workers are forked behind the open port
                pids = subprocess.run(["pgrep", "-P", str(child.pid)], text=True,
                                      stdout=subprocess.PIPE).stdout.split()
                yield Server("zaqar", "127.0.0.1:%d" % port,
                             [child.pid, *map(int, pids), *redis.pids], cores=2)

    def zaqar_package(self):
        """
        Debian's package and the two redis scripts that it leaves out: our own, or those in
        the folder that $ZAQAR_SCRIPTS names.
        """
        package = os.path.join(self.work, "python", "zaqar")
        shutil.rmtree(package, ignore_errors=True)
        shutil.copytree("/usr/lib/python3/dist-packages/zaqar", package)
        scripts = os.environ.get("ZAQAR_SCRIPTS", os.path.join(ROOT, "tests/bench/zaqar"))
        shutil.copytree(scripts, os.path.join(package, "storage/redis/scripts"))
        return package

    def start(self, name, batch, cpus):
        """A context that yields a Server."""
        if name.startswith("floor_"):
            return self.floor(name, batch, cpus)
        return getattr(self, name)(batch, cpus)
