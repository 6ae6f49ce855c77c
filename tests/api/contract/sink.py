"""Where web hooks go that a transcript expects: a server that keeps the requests."""

import http.server
import threading
import time

PATIENCE_S = 60  # an expected notification comes within this
BRIEF_S = 0.5    # another one would have come by then


class Sink:
    """{{sink}} of a transcript; a context manager."""

    def __init__(self, host="127.0.0.1"):
        sink = self
        self.received, self.responses = [], {}
        self.changed = threading.Condition()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = sink.receive(self.path, self.headers, body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((host, 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # a server that ends takes no response
        self.url = "http://%s:%d" % (host, self.server.server_port)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def script(self, responses):
        """The status of the next responses, {path: [status...]}; after those it is 200."""
        with self.changed:
            self.responses.update({path: list(statuses) for path, statuses in responses.items()})

    def receive(self, path, headers, body):
        """Keeps a hook; the status to respond with."""
        with self.changed:
            self.received.append((path, {name.lower(): value for name, value in headers.items()},
                                  body.decode("utf-8", "surrogateescape")))
            self.changed.notify_all()
            script = self.responses.get(path)
            return script.pop(0) if script else 200

    def take(self, path, within_s):
        """Headers and text of the oldest hook that came to the path; None if none comes."""
        end = time.monotonic() + within_s
        with self.changed:
            while True:
                for hook in self.received:
                    if hook[0] == path:
                        self.received.remove(hook)
                        return hook[1:]
                if not self.changed.wait(max(0, end - time.monotonic())):
                    return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
