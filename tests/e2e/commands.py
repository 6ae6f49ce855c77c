"""Shared by the tests of the commands: runs of a command, terminals, and responses of a server."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
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
        """`stdin`: a text, or a file."""
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("text", True)
        more["input" if isinstance(stdin, (str, bytes)) else "stdin"] = stdin
        return subprocess.run([CLAIMD, *words], stderr=subprocess.PIPE,
                              timeout=PATIENCE_S, check=False,
                              env=environment(**self.variables), **more)

    def terminal(self, *words, columns=80, rows=24):
        return Terminal([CLAIMD, *words], environment(**{"TERM": "xterm", **self.variables}), columns, rows)


class Terminal:
    """A command on a terminal of its own; a context manager."""

    def __init__(self, command, env, columns, rows):
        self.screen = self.all = b""
        self.master, slave = pty.openpty()
        self.resize(columns, rows)
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env,
                                        start_new_session=True, close_fds=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)

    def resize(self, columns, rows):
        self.size = columns, rows
        self.resized = len(self.all)
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
        self.all += data
        return bool(data)

    def sees(self, text):
        """Waits until the text was written."""
        deadline = time.monotonic() + PATIENCE_S
        while text.encode() not in self.screen:
            if not self._more(0.1) or time.monotonic() > deadline:
                raise AssertionError("%r is not in %r" % (text, self.screen[-3000:]))

    def shown(self):
        """The screen as lines, if it was drawn anew after the last change of its size."""
        screen = Screen(*self.size)
        screen.write(self.all[self.resized:].decode(errors="replace"))
        return str(screen)

    def shows(self, text):
        """Waits until the screen matches the expression."""
        deadline = time.monotonic() + PATIENCE_S
        while not re.search(text, self.shown(), re.M):
            if not self._more(0.1) or time.monotonic() > deadline:
                raise AssertionError("%r is not on the screen:\n%s" % (text, self.shown()))

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


class Screen:
    """The screen of a terminal of the type xterm after these bytes: as much of it as curses uses."""

    ESCAPE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b[()][A-Z0-9]|\x1b[=>78M]")

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.cells = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.last = " "
        self.bottom = rows - 1

    def put(self, char):
        if self.row < self.rows and self.column < self.columns:
            self.cells[self.row][self.column] = self.last = char
        self.column += 1

    def erase(self, row, begin, end):
        self.cells[row][begin:end] = [" "] * (end - begin)

    def control(self, numbers, letter):
        first = max(1, numbers[0]) if numbers else 1
        self.row = min(self.row, self.rows - 1)  # bytes for a larger screen may still come
        if letter == "H":
            self.row, self.column = first - 1, (numbers[1] if len(numbers) > 1 else 1) - 1
        elif letter in "dG":
            setattr(self, "row" if letter == "d" else "column", first - 1)
        elif letter in "AB":
            self.row += first if letter == "B" else -first
        elif letter == "C":
            self.column += first
        elif letter == "J":
            self.erase(self.row, self.column, self.columns)
            for row in range(0 if numbers and numbers[0] == 2 else self.row + 1, self.rows):
                self.erase(row, 0, self.columns)
        elif letter == "K":
            begin, end = (0, self.column + 1) if numbers == [1] else (self.column, self.columns)
            self.erase(self.row, begin, end)
        elif letter == "X":
            self.erase(self.row, self.column, min(self.columns, self.column + first))
        elif letter in "P@":
            line = self.cells[self.row]
            if letter == "P":
                del line[self.column:self.column + first]
            else:
                line[self.column:self.column] = [" "] * first
            self.cells[self.row] = (line + [" "] * self.columns)[:self.columns]
        elif letter in "ML":
            blank = [[" "] * self.columns for _ in range(first)]
            if letter == "M":
                del self.cells[self.row:self.row + first]
                self.cells[self.bottom - first + 1:self.bottom - first + 1] = blank
            else:
                del self.cells[self.bottom - first + 1:self.bottom + 1]
                self.cells[self.row:self.row] = blank
        elif letter == "r":
            self.bottom = (numbers[1] if len(numbers) > 1 else self.rows) - 1
        elif letter == "b":
            for _ in range(first):
                self.put(self.last)

    def write(self, text):
        at = 0
        while at < len(text):
            escape = self.ESCAPE.match(text, at)
            if escape:
                if escape[2] and not escape[1].startswith("?"):
                    self.control([int(n or 0) for n in escape[1].split(";")] if escape[1] else [], escape[2])
                at = escape.end()
                continue
            if text[at] == "\r":
                self.column = 0
            elif text[at] == "\n":
                self.row = min(self.row + 1, self.rows - 1)
            elif text[at] == "\b":
                self.column -= 1
            elif text[at] >= " ":
                self.put(text[at])
            at += 1

    def __str__(self):
        return "\n".join("".join(row).rstrip() for row in self.cells)


def response(body, status="200 OK", headers=""):
    if isinstance(body, str):
        body = body.encode()
    return ("HTTP/1.1 %s\r\nContent-Length: %d\r\n%sConnection: close\r\n\r\n"
            % (status, len(body), headers)).encode() + body
