"""A server that speaks as a test says, for tests of clients."""

import socket
import threading


class FakeServer:
    """Speaks as speak(socket) does on each connection, or sends these bytes. A context manager."""

    def __init__(self, speak=None):
        if isinstance(speak, bytes):
            self.speak = lambda other: other.sendall(speak)
        elif speak is not None:
            self.speak = speak
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.requests, self.requested = [], threading.Semaphore(0)  # the first bytes of each connection
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
                self.requested.release()
                self.speak(other)
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
