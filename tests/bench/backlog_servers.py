"""The servers that backlog.py measures, and connections to them.

Each server runs in a folder of its own on free ports. start() runs it again after kill(). A session
is a connection that uses one queue, and has the same functions for each protocol.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from daemon import environment, eventually, free_port  # noqa: E402

CLIENT_ID = "3381af92-2b9e-11e3-b191-71861300734c"
TTL_S = 7 * 86400
BATCH = 10
PATIENCE_S = 1800


# ---------------------------------------------------------------------------- sessions
#
# post() returns when the server has confirmed all messages, take() deletes what it returns, and
# claim() returns the seconds of one claim.


class Refused(Exception):
    """The server responded with an error."""


class ZaqarSession:
    def __init__(self, port, queue):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.path = "/v2/queues/" + queue
        self.pending = b""

    def call(self, method, path, body=b""):
        """(status, body) of the response."""
        self.socket.sendall(("%s %s%s HTTP/1.1\r\nHost: localhost\r\nClient-ID: %s\r\n"
                             "X-Project-ID: p\r\nContent-Length: %d\r\n\r\n"
                             % (method, self.path, path, CLIENT_ID, len(body))).encode() + body)
        while b"\r\n\r\n" not in self.pending:
            self._receive()
        head, self.pending = self.pending.split(b"\r\n\r\n", 1)
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line[15:])
        while len(self.pending) < length:
            self._receive()
        text, self.pending = self.pending[:length], self.pending[length:]
        status = int(head[9:12])
        if status >= 300:
            raise Refused("%s %s%s: %d %s" % (method, self.path, path, status, text.decode()))
        return status, text

    def _receive(self):
        data = self.socket.recv(262144)
        if not data:
            raise ConnectionResetError("the server closed the connection")
        self.pending += data

    def post(self, bodies):
        messages = ",".join('{"ttl":%d,"body":"%s"}' % (TTL_S, body) for body in bodies)
        self.call("POST", "/messages", ('{"messages":[%s]}' % messages).encode())

    def _claim(self, count):
        status, text = self.call("POST", "/claims?limit=%d" % count, b'{"ttl":600,"grace":600}')
        return json.loads(text)["messages"] if status == 201 else []

    def _delete(self, messages):
        ids = ",".join(message["href"].split("/")[-1].split("?")[0] for message in messages)
        self.call("DELETE", "/messages?ids=" + ids)

    def take(self, count):
        messages = self._claim(count)
        if messages:
            self._delete(messages)
        return [message["body"] for message in messages]

    def claim(self):
        start = time.monotonic()
        messages = self._claim(1)
        seconds = time.monotonic() - start
        self._delete(messages)
        return seconds

    def waiting(self):
        return json.loads(self.call("GET", "/stats")[1])["messages"]["free"]

    def close(self):
        self.socket.close()


class BeanstalkSession:
    def __init__(self, port, queue):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        self.queue = queue
        self._send(["use " + queue, "watch " + queue, "ignore default"])
        self._expect("USING", "WATCHING", "WATCHING")

    def _send(self, commands):
        self.socket.sendall("".join(command + "\r\n" for command in commands).encode())

    def _expect(self, *words):
        for word in words:
            line = self.file.readline().decode()
            if not line:
                raise ConnectionResetError("the server closed the connection")
            if not line.startswith(word):
                raise Refused(line)

    def post(self, bodies):
        self._send("put 0 0 600 %d\r\n%s" % (len(body), body) for body in bodies)
        self._expect(*["INSERTED"] * len(bodies))

    def _reserve(self, count):
        """(id, body) of each."""
        self._send(["reserve-with-timeout 0"] * count)
        found = []
        for _ in range(count):
            words = self.file.readline().decode().split()
            if words[0] == "RESERVED":
                found.append((words[1], self.file.read(int(words[2]) + 2)[:-2].decode()))
            elif words[0] != "TIMED_OUT":
                raise Refused(" ".join(words))
        return found

    def _delete(self, jobs):
        self._send("delete " + number for number, _ in jobs)
        self._expect(*["DELETED"] * len(jobs))

    def take(self, count):
        jobs = self._reserve(count)
        self._delete(jobs)
        return [body for _, body in jobs]

    def claim(self):
        start = time.monotonic()
        jobs = self._reserve(1)
        seconds = time.monotonic() - start
        self._delete(jobs)
        return seconds

    def waiting(self):
        self._send(["stats-tube " + self.queue])
        head = self.file.readline().split()
        if head[0] != b"OK":
            raise Refused(head[0].decode())
        text = self.file.read(int(head[1]) + 2).decode()
        return int(text.split("current-jobs-ready:")[1].split()[0])

    def close(self):
        self.file.close()
        self.socket.close()


class RabbitSession:
    """take() reads what a consumer gets in advance, two batches at most."""

    def __init__(self, port, queue):
        import amqp  # of python3-amqp, which only this server needs
        self.amqp, self.queue, self.unconfirmed, self.received = amqp, queue, set(), None
        self.posted = 0
        self.connection = amqp.Connection("127.0.0.1:%d" % port, connect_timeout=60, heartbeat=0)
        try:
            self._open()
        except amqp.AMQPError as error:  # it is still starting
            raise Refused(str(error)) from error

    def _open(self):
        self.connection.connect()
        self.channel = self.connection.channel()
        self._declare()
        self.channel.events["basic_ack"].add(self._confirmed)
        self.channel.confirm_select()

    def _declare(self):
        return self.channel.queue_declare(self.queue, durable=True, auto_delete=False,
                                          arguments={"x-queue-mode": "lazy"})

    def _confirmed(self, tag, multiple):
        done = {one for one in self.unconfirmed if one <= tag} if multiple else {tag}
        self.unconfirmed -= done

    def post(self, bodies):
        for body in bodies:
            self.posted += 1
            self.unconfirmed.add(self.posted)
            self.channel.basic_publish(self.amqp.Message(body, delivery_mode=2),
                                       routing_key=self.queue)
        while self.unconfirmed:
            self.connection.drain_events(timeout=60)

    def take(self, count):
        if self.received is None:
            self.received = []
            self.channel.basic_qos(0, 2 * BATCH, False)
            self.channel.basic_consume(self.queue, callback=self.received.append)
        with contextlib.suppress(socket.timeout):
            while len(self.received) < count:
                self.connection.drain_events(timeout=1)
        found = self.received[:count]
        del self.received[:count]
        if found:
            self.channel.basic_ack(found[-1].delivery_tag, multiple=True)
        return [message.body for message in found]

    def claim(self):
        start = time.monotonic()
        message = self.channel.basic_get(self.queue)
        seconds = time.monotonic() - start
        self.channel.basic_ack(message.delivery_tag)
        return seconds

    def waiting(self):
        return self._declare().message_count

    def close(self):
        self.connection.close()


# ---------------------------------------------------------------------------- servers


class Server:
    """A server with a folder of its own, started by start() and again after kill()."""

    session_kind, program = ZaqarSession, None

    def __init__(self, folder):
        self.folder, self.port, self.process, self.pid = folder, free_port(), None, None
        self.log = open(os.path.join(folder, "log"), "ab")

    def session(self, queue):
        return self.session_kind(self.port, queue)

    def start(self, queue):
        """Returns the seconds to the first response about the queue, and its messages."""
        start = time.monotonic()
        self.process = subprocess.Popen(self.command(), env=self.variables(), stdout=self.log,
                                        stderr=self.log, start_new_session=True)
        self.pid = self.process.pid
        while True:
            try:
                session = self.session(queue)
                waiting = session.waiting()
                break
            except (OSError, Refused):
                if self.process.poll() is not None or time.monotonic() > start + PATIENCE_S:
                    raise
                time.sleep(0.005)
        seconds = time.monotonic() - start
        session.close()
        return seconds, waiting

    def variables(self):
        return environment()

    def kill(self):
        """With all processes that it has started in its session."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Its data are removed afterwards, so they need no orderly end."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        self.log.close()


class Claimd(Server):
    def __init__(self, folder, program, max_memory):
        super().__init__(folder)
        self.program, self.max_memory = program, max_memory

    def command(self):
        return [self.program, "--listen", "127.0.0.1:%d" % self.port, "--log-level", "error",
                "--journal", os.path.join(self.folder, "journal"), "--max-memory",
                self.max_memory]

    def start(self, queue):
        os.makedirs(os.path.join(self.folder, "journal"), exist_ok=True)
        return super().start(queue)


class Beanstalkd(Server):
    session_kind = BeanstalkSession

    def command(self):
        os.makedirs(os.path.join(self.folder, "log.d"), exist_ok=True)
        return ["beanstalkd", "-l", "127.0.0.1", "-p", str(self.port), "-z", "1000000",
                "-b", os.path.join(self.folder, "log.d")]


class RabbitMQ(Server):
    """A private node: its own name, ports, folder and port mapper. The pid is that of beam.smp."""

    session_kind = RabbitSession

    def __init__(self, folder):
        super().__init__(folder)
        self.mapper, self.distribution = free_port(), free_port()
        with open(os.path.join(folder, "plugins"), "w", encoding="ascii") as file:
            file.write("[].\n")

    def command(self):
        # The script of /usr/sbin changes to the user of the service.
        return ["/usr/lib/rabbitmq/bin/rabbitmq-server"]

    def variables(self):
        inside = {"RABBITMQ_" + name: os.path.join(self.folder, place) for name, place in (
            ("MNESIA_BASE", "mnesia"), ("LOG_BASE", "logs"), ("CONFIG_FILE", "config"),
            ("CONF_ENV_FILE", "none"), ("ENABLED_PLUGINS_FILE", "plugins"))}
        return environment(HOME=self.folder, ERL_EPMD_PORT=str(self.mapper),
                           RABBITMQ_NODENAME="backlog@localhost",
                           RABBITMQ_NODE_IP_ADDRESS="127.0.0.1",
                           RABBITMQ_NODE_PORT=str(self.port),
                           RABBITMQ_DIST_PORT=str(self.distribution), **inside)

    def start(self, queue):
        found = super().start(queue)
        self.pid = next(pid for pid in descendants(self.process.pid) if name_of(pid) == "beam.smp")
        return found

    def stop(self):
        super().stop()
        end_port_mapper(self.mapper)


def name_of(pid):
    with open("/proc/%d/comm" % pid, encoding="ascii") as file:
        return file.read().strip()


def descendants(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        for child in map(int, file.read().split()):
            yield child
            yield from descendants(child)


def end_port_mapper(port):
    """The node has started it as a daemon. It ends on request when no node is left."""
    def ended():
        done = subprocess.run(["epmd", "-port", str(port), "-kill"], capture_output=True,
                              text=True, check=False)
        return "Killed" in done.stdout + done.stderr or "Cannot connect" in done.stderr
    eventually(ended, "epmd ends")
