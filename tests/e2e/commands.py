"""What tests of the commands share: runs of a command, terminals, and servers that misbehave."""

import fcntl
import os
import pty
import select
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import CLAIMD, PATIENCE_S, environment  # noqa: E402


class Commands:
    """Runs commands against a server. With `project` None they name none."""

    def __init__(self, url, project="p", **variables):
        self.variables = {"CLAIMD_URL": url, **variables}
        if project is not None:
            self.variables["CLAIMD_PROJECT"] = project

    def run(self, *words, stdin="", **more):
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("text", True)
        return subprocess.run([CLAIMD, *words], input=stdin, stderr=subprocess.PIPE,
                              timeout=PATIENCE_S, check=False,
                              env=environment(**self.variables), **more)

    def terminal(self, *words, columns=80, rows=24, typed=(), until=None):
        return Terminal([CLAIMD, *words], environment(TERM="xterm", **self.variables), columns, rows)


class Terminal:
    """A command on a terminal of its own; a context manager."""

    def __init__(self, command, env, columns, rows):
        self.screen = b""
        self.master, slave = pty.openpty()
        self.resize(columns, rows)
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env,
                                        start_new_session=True, close_fds=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)

    def resize(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode())

    def _more(self, timeout):
        if not select.select([self.master], [], [], timeout)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the other side is closed
            return False
        self.screen += data
        return bool(data)

    def sees(self, text):
        """Waits until the text was written."""
        deadline = time.monotonic() + PATIENCE_S
        while text.encode() not in self.screen:
            if not self._more(0.1) or time.monotonic() > deadline:
                raise AssertionError("%r is not in %r" % (text, self.screen[-3000:]))

    def forget(self):
        """Drops what was written until now, so that sees() waits for something new."""
        while select.select([self.master], [], [], 0)[0] and self._more(0):
            pass
        self.screen = b""

    def end(self):
        """Exit status and all that was written, when the command has ended."""
        deadline = time.monotonic() + PATIENCE_S
        while self._more(0.1):
            if time.monotonic() > deadline:
                raise AssertionError("it does not end: %r" % self.screen[-3000:])
            if self.process.poll() is not None and not select.select([self.master], [], [], 0.1)[0]:
                break
        return self.process.wait(PATIENCE_S), self.screen.decode().replace("\r\n", "\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)


class Fake:
    """A server that speaks as speak(socket) does, for each connection; a context manager."""

    def __init__(self, speak):
        self.speak = speak
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.requests = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                other = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.talk, args=(other,), daemon=True).start()

    def talk(self, other):
        with other:
            try:
                self.requests.append(other.recv(65536))
                self.speak(other)
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def response(body, status="200 OK", headers=""):
    if isinstance(body, str):
        body = body.encode()
    return ("HTTP/1.1 %s\r\nContent-Length: %d\r\n%sConnection: close\r\n\r\n"
            % (status, len(body), headers)).encode() + body
