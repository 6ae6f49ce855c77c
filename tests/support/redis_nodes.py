"""redis-servers for tests in Python: one alone, or a Redis Cluster. No package is needed.
REDIS_SERVER names another program, such as valkey-server.

    with Node() as node:
        node.say("SET", "key", "value")

    with Cluster(primaries=3, replicas_each=1) as cluster:
        cluster.primary_of("{p/queue}:q").kill()
        ...claimd --store cluster.url(replicas=1)...

The servers end with the thread that starts them, whatever becomes of it: start them in one
that lives as long as the test does.
"""

import binascii
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from daemon import eventually

PROGRAM = os.environ.get("REDIS_SERVER") or "redis-server"
PATIENCE_S = 30  # nothing here waits longer than this
RESPONSE_S = 5     # for a response of a node
SLOTS = 16384
SEEDS = 6        # nodes that a URL names; they know the others
BUS = 10000      # the port of a node's bus is so much higher
LEAST_PORT, MOST_PORT = 11000, 21999  # that one and the bus' are below those for clients


class RedisError(Exception):
    """The reply of a node instead: "MOVED 3999 127.0.0.1:6381"."""


class Speaker:
    """A connection to a node. Responses are str (bytes, if not UTF-8), int, None or lists."""

    def __init__(self, family, address, timeout=RESPONSE_S):
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        try:
            self.socket.connect(address)
        except OSError:
            self.socket.close()
            raise
        self.responses = self.socket.makefile("rb")

    def send(self, *words):
        data = [b"*%d\r\n" % len(words)]
        for word in words:
            word = word if isinstance(word, bytes) else str(word).encode()
            data.append(b"$%d\r\n%s\r\n" % (len(word), word))
        self.socket.sendall(b"".join(data))

    def _read(self):
        line = self.responses.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError("the node has closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return RedisError(rest.decode())
        if kind == b":":
            return int(rest)
        length = int(rest)
        if length < 0:
            return None
        if kind == b"*":
            return [self._read() for _ in range(length)]
        data = self.responses.read(length + 2)[:-2]
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data

    def receive(self):
        """The next response; an error is raised."""
        response = self._read()
        if isinstance(response, RedisError):
            raise response
        return response

    def say(self, *words):
        self.send(*words)
        return self.receive()

    def close(self):
        self.responses.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def is_free(host, port):
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((host, port))
        except OSError:
            return False
    return True


def free_port(host="127.0.0.1"):
    """One that is free, and so is that of the bus."""
    for _ in range(1000):
        port = random.randint(LEAST_PORT, MOST_PORT)
        if is_free(host, port) and is_free(host, port + BUS):
            return port
    raise RuntimeError("no port is free")


def slot_of(key):
    """The hash slot of a key, or of its {tag}."""
    key = key if isinstance(key, bytes) else key.encode()
    begin = key.find(b"{")
    end = key.find(b"}", begin + 1)
    if begin >= 0 and end > begin + 1:
        key = key[begin + 1:end]
    return binascii.crc_hqx(key, 0) % SLOTS


class Node:
    """A redis-server with a folder of its own; it listens when this returns.

    Options of redis.conf are given as cluster_enabled="yes". With socket=True it listens on a
    Unix socket only. `prefix`: words in front of its command, to start it somewhere else.
    """

    def __init__(self, host="127.0.0.1", port=None, socket=False, prefix=(), **config):
        self.host, self.port, self.prefix = host, 0 if socket else port, tuple(prefix)
        self.folder = tempfile.mkdtemp(prefix="claimd-redis-")
        self.socket = os.path.join(self.folder, "socket") if socket else None
        self.config = dict({"save": "", "appendonly": "no", "repl_diskless_sync_delay": 0},
                           **config)
        self.process, self.id, self.stalled = None, None, False
        try:
            self._start_somewhere()
        except BaseException:
            self.stop()
            raise

    def _start_somewhere(self):
        for attempt in range(5):
            if self.port is None or attempt > 0:
                self.port = 0 if self.socket else free_port(self.host)
            try:
                return self.start()
            except RuntimeError:
                if attempt == 4 or self.socket:
                    raise

    def _command(self):
        words = [PROGRAM, "--port", str(self.port), "--dir", self.folder,
                 "--logfile", os.path.join(self.folder, "log"), "--daemonize", "no"]
        if self.socket:
            words += ["--unixsocket", self.socket]
        else:
            words += ["--bind", self.host]
        for name, value in self.config.items():
            words += ["--" + name.replace("_", "-"), str(value)]
        return [*self.prefix, "setpriv", "--pdeathsig", "KILL", *words]

    def start(self, wait=True):
        """Starts it, with the data it has; with `wait`, it listens when this returns."""
        with open(os.path.join(self.folder, "output"), "ab") as output:
            self.process = subprocess.Popen(self._command(), stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=output, cwd=self.folder,
                                            start_new_session=True)  # Ctrl-C is not for it
        self.stalled = False
        if wait:
            eventually(self._has_begun, "%r listens" % self)

    def _has_begun(self):
        if self.process.poll() is not None:
            raise RuntimeError("redis-server has ended with status %d: %s"
                               % (self.process.returncode, self.log()[-2000:]))
        try:
            self.say("PING")
        except RedisError:  # it loads its data: the caller handles that
            pass
        except (OSError, EOFError):
            return False
        return True

    def connect(self, timeout=RESPONSE_S):
        if self.socket:
            return Speaker(socket.AF_UNIX, self.socket, timeout)
        return Speaker(socket.AF_INET, (self.host, self.port), timeout)

    def say(self, *words, timeout=RESPONSE_S):
        """The response to one command; RedisError, OSError or EOFError if there is none."""
        with self.connect(timeout) as speaker:
            return speaker.say(*words)

    def info(self, section):
        """The reply to INFO, as a dictionary."""
        return dict(line.split(":", 1) for line in self.say("INFO", section).splitlines()
                    if ":" in line)

    def server(self):
        """Name and version: "Redis 7.0.15", or "Valkey 9.1.2", which claims to be Redis 7.2.4."""
        info = self.info("server")
        if "valkey_version" in info:
            return "Valkey " + info["valkey_version"]
        return "Redis " + info["redis_version"]

    def address(self):
        return "%s:%d" % (self.host, self.port)

    def url(self, **parameters):
        """For --store: url(replicas=0)."""
        url = "redis+unix://" + self.socket if self.socket else "redis://" + self.address()
        return url + question(parameters)

    def is_up(self):
        """Whether it runs and is not stalled."""
        return self.process is not None and self.process.poll() is None and not self.stalled

    def kill(self):
        """SIGKILL, with all that it has not written."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stall(self):
        """SIGSTOP: it is there and says nothing."""
        self.stalled = True
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)
        self.stalled = False

    def restart(self, wait=True):
        self.kill()
        self.start(wait)

    def log(self):
        text = ""
        for name in ("output", "log"):
            path = os.path.join(self.folder, name)
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as f:
                    text += f.read()
        return text

    def stop(self):
        """Ends it and removes its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __repr__(self):
        return self.socket or self.address()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def question(parameters):
    return "?" + "&".join("%s=%s" % one for one in parameters.items()) if parameters else ""


class Entry:
    """A node as another one describes it: a line of CLUSTER NODES."""

    def __init__(self, line):
        words = line.split()
        self.id, self.flags = words[0], set(words[2].split(","))
        self.port = int(words[1].split("@")[0].rsplit(":", 1)[1])
        self.host = words[1].split("@")[0].rsplit(":", 1)[0]
        self.primary = None if words[3] == "-" else words[3]
        self.linked = words[7] == "connected"
        self.ranges = []
        for word in words[8:]:
            if not word.startswith("["):  # a slot that is being moved
                first, _, last = word.partition("-")
                self.ranges.append((int(first), int(last or first)))

    def has(self, slot):
        return any(first <= slot <= last for first, last in self.ranges)

    def failed(self):
        return bool(self.flags & {"fail", "fail?", "noaddr", "handshake"})


class Cluster:
    """A Redis Cluster on this machine, whole when this returns; `config` is for each node.

    Shards are contiguous parts of the slots, in the order of the nodes; `nodes` has all
    primaries as they were in the beginning, then all replicas. With `places` each node has a
    dictionary of more arguments of its own.
    """

    def __init__(self, primaries=3, replicas_each=1, places=None, **config):
        self.replicas_each = replicas_each
        count = primaries * (1 + replicas_each)
        settings = {"cluster_enabled": "yes", "appendonly": "yes", "appendfsync": "always",
                    "cluster_node_timeout": 1500, "cluster_replica_validity_factor": 10,
                    "cluster_require_full_coverage": "no",
                    "cluster_allow_replica_migration": "no", "loglevel": "notice"}
        settings.update(config)
        self.nodes = []
        try:
            for i in range(count):
                self.nodes.append(Node(**dict(settings, **(places[i] if places else {}))))
            self._join(primaries)
        except BaseException:
            self.stop()
            raise

    def _join(self, primaries):
        for i, node in enumerate(self.nodes):
            node.id = node.say("CLUSTER", "MYID")
            node.say("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            if i < primaries:
                node.say("CLUSTER", "ADDSLOTSRANGE", SLOTS * i // primaries,
                         SLOTS * (i + 1) // primaries - 1)
        first = self.nodes[0]
        for node in self.nodes[1:]:
            first.say("CLUSTER", "MEET", node.host, node.port)
        eventually(lambda: all(len(self.view(node)) == len(self.nodes) and
                               not any(entry.failed() for entry in self.view(node))
                               for node in self.nodes), "the nodes know each other")
        for i, node in enumerate(self.nodes[primaries:]):
            node.say("CLUSTER", "REPLICATE", self.nodes[i % primaries].id)
        self.wait_whole()

    # ------------------------------------------------------------------ views of the nodes

    def view(self, node=None):
        """The cluster as a node (any that is up) describes it."""
        for one in [node] if node else self.up():
            try:
                return [Entry(line) for line in one.say("CLUSTER", "NODES").splitlines()]
            except (OSError, EOFError):
                if node:
                    raise
        raise RuntimeError("no node responds")

    def up(self):
        return [node for node in self.nodes if node.is_up()]

    def node(self, id):
        return next(node for node in self.nodes if node.id == id)

    def owner(self, slot, view=None):
        """The node that has a slot; None: no node that is there."""
        for entry in view or self.view():
            if "master" in entry.flags and not entry.failed() and entry.has(slot):
                return self.node(entry.id)
        return None

    def primary_of(self, key):
        """The node that serves a key, a bare slot too; it waits until there is one."""
        slot = key if isinstance(key, int) else slot_of(key)
        return eventually(lambda: self.owner(slot), "a node has slot %d" % slot)

    def replicas_of(self, primary):
        """The replicas of a primary, as it says itself or, if it is down, as others do."""
        return [self.node(entry.id)
                for entry in self.view(primary if primary.is_up() else None)
                if entry.primary == primary.id]

    def primaries(self):
        return [self.node(entry.id) for entry in self.view()
                if "master" in entry.flags and not entry.failed() and entry.ranges]

    # ------------------------------------------------------------------ waiting

    def trouble(self):
        """Why it is not whole; None: it is. All nodes are up, agree, and are in step."""
        opinions = set()
        for node in self.nodes:
            if not node.is_up():
                return "%r is down" % node
            try:
                state = node.say("CLUSTER", "INFO")
                view = self.view(node)
                link = node.info("replication")
            except (OSError, EOFError, RedisError) as error:
                return "%r: %s" % (node, error)
            if "cluster_state:ok" not in state:
                return "%r is not content" % node
            for entry in view:
                if entry.failed() or not entry.linked:
                    return "%r thinks that %s fails" % (node, entry.port)
            opinions.add(tuple(sorted((entry.id, entry.primary or "", tuple(entry.ranges))
                                      for entry in view)))
            if link["role"] == "slave" and (link["master_link_status"] != "up" or
                                            link["master_sync_in_progress"] != "0"):
                return "%r is not in step" % node
            if link["role"] == "master":
                online = sum(",state=online," in value for value in link.values())
                if online < self.replicas_each and any(
                        entry.id == node.id and entry.ranges for entry in view):
                    return "%r has %d replicas" % (node, online)
        if len(opinions) != 1:
            return "the nodes do not agree"
        return None

    def wait_whole(self, patience=PATIENCE_S):
        reason = [""]

        def whole():
            reason[0] = self.trouble()
            return reason[0] is None
        try:
            eventually(whole, "the cluster is whole", patience)
        except AssertionError as error:
            raise AssertionError("%s: %s" % (error, reason[0])) from None

    def wait_in_step(self, primary, patience=PATIENCE_S):
        """Waits until the replicas of a primary have all that it has."""
        def in_step():
            has = int(primary.info("replication")["master_repl_offset"])
            return all(int(one.info("replication")["slave_repl_offset"]) >= has
                       for one in self.replicas_of(primary))
        eventually(in_step, "the replicas of %r are in step" % primary, patience)

    def wait_new_primary(self, old, patience=PATIENCE_S):
        """Waits until another node has the slots that `old` had, and returns it."""
        slot = next((entry.ranges[0][0] for entry in self.view()
                     if entry.id == old.id and entry.ranges), None)
        if slot is None:
            raise ValueError("%r has no slots" % old)

        def other():
            owner = self.owner(slot)
            return owner if owner is not old else None
        return eventually(other, "%r is replaced" % old, patience)

    # ------------------------------------------------------------------ moving slots

    def move_slot(self, slot, target, pause=0.0, between=None):
        """Moves a slot and its keys, one key after the other; how many keys it had.

        Between two keys it waits for `pause` seconds, or calls `between(key)`. Only the first keys
        have a pause, because an Idempotency-Key is a key, too.
        """
        source, moved = self.primary_of(slot), 0
        target.say("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.say("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        while True:
            keys = source.say("CLUSTER", "GETKEYSINSLOT", slot, 1)
            if not keys:
                break
            source.say("MIGRATE", target.host, target.port, "", 0, 5000, "KEYS", keys[0],
                       timeout=PATIENCE_S)
            moved += 1
            if between:
                between(keys[0])
            time.sleep(pause if moved < 20 else 0)
        for node in [target, source] + [one for one in self.primaries()
                                        if one not in (target, source)]:
            node.say("CLUSTER", "SETSLOT", slot, "NODE", target.id)
        return moved

    def can_migrate(self):
        """Whether its nodes migrate a slot as a whole: Valkey 9.0 and later."""
        return any("MIGRATESLOTS" in line for line in self.nodes[0].say("CLUSTER", "HELP"))

    def begin_migration(self, slot, target):
        """Has a slot be migrated as a whole; its source."""
        source = self.primary_of(slot)
        source.say("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target.id)
        return source

    def migrate_slot(self, slot, target):
        """Migrates a slot as a whole, and returns when the source has given it away."""
        source = self.begin_migration(slot, target)

        def ended():
            newest = source.say("CLUSTER", "GETSLOTMIGRATIONS")[0]
            job = dict(zip(newest[::2], newest[1::2]))
            return job if job["state"] in ("success", "failed", "cancelled") else None
        job = eventually(ended, "slot %d is migrated" % slot)
        if job["state"] != "success":
            raise RedisError("slot %d: %s: %s" % (slot, job["state"], job["message"]))

    # ------------------------------------------------------------------ life

    def url(self, **parameters):
        """For --store: url(replicas=1)."""
        return ("redis://" + ",".join(node.address() for node in self.nodes[:SEEDS])
                + question(parameters))

    def stop(self):
        for node in self.nodes:
            node.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
