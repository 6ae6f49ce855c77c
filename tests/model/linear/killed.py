"""A server that is killed while a program of this folder records what it says."""

import signal
import subprocess

from daemon import Daemon

REFUSED = "cannot be put in order"


class Killed:
    """A server that is killed and comes back where it was."""

    def __init__(self, claimd, *options):
        self.claimd, self.options = claimd, options
        self.server = Daemon(claimd, *options)
        self.host, self.port = self.server.host, self.server.port

    def kill(self):
        self.server.signal(signal.SIGKILL)
        self.server.wait()

    def start(self):
        self.server = Daemon(self.claimd, *self.options,
                             listen="%s:%d" % (self.host, self.port))

    def restart(self):
        self.kill()
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.server.__exit__(kind, error, trace)


def check(command, restart):
    """Exit status and output of LINEAR; whenever it requests that, restart() is called."""
    output = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        for line in process.stdout:
            if line != "kill\n":
                output.append(line)
                continue
            restart()
            process.stdin.write("up\n")
            process.stdin.flush()
    return process.returncode, "".join(output)
