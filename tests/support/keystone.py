"""A stand-in for Keystone v3: it knows tokens, counts the requests, and misbehaves on request.

    with Keystone() as keystone:
        token = keystone.issue("p", ["member"])
        ... claimd --auth keystone --keystone-url keystone.url
            --keystone-token-file (a file with keystone.service) ...
        keystone.questions(token)

It speaks as much as a validation needs (GET /v3/auth/tokens), and, for clients that log in by
themselves, password logins (POST /v3/auth/tokens) with a catalog.
"""

import datetime
import http.server
import json
import secrets
import socket
import threading


def at(seconds):
    """That many seconds from now, as Keystone writes it."""
    when = datetime.datetime.utcnow() + datetime.timedelta(seconds=seconds)
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body together, or Nagle's algorithm delays the body

    def log_message(self, *_):
        """Nothing: tests call the methods for what they have to know."""

    def reply(self, code, document, headers=()):
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def error(self, code, title):
        self.reply(code, {"error": {"code": code, "message": title, "title": title}})

    def do_GET(self):
        keystone = self.server.keystone
        if self.path.split("?")[0] == "/v3/auth/tokens":
            keystone.validate(self)
        elif self.path.rstrip("/") == "/v3":
            self.reply(200, {"version": {"id": "v3.14", "status": "stable", "links": [
                {"rel": "self", "href": keystone.url + "/"}]}})
        else:
            self.error(404, "Not Found")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.keystone.login(self, json.loads(body))


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *args):
        self.sockets = set()
        super().__init__(*args)

    def get_request(self):
        sock, address = super().get_request()
        self.sockets.add(sock)
        return sock, address

    def shutdown_request(self, request):
        self.sockets.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request, client_address):
        """claimd may hang up when it has waited for long enough."""

    def cut(self):
        """Ends all connections."""
        for sock in list(self.sockets):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended by itself


class Keystone:
    def __init__(self):
        self.service = "service-" + secrets.token_hex(16)
        self.behave = None  # a function that responds in place of the real one
        self.catalog = []
        self._tokens = {}
        self._verified = []
        self._changed = threading.Condition()
        self._gates = None
        self._standing = 0
        self._server = None
        self.start()

    # ---- life

    def start(self, port=0, tls=None):
        """Listens, on the port it had before if it has been away; with a context for TLS."""
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.keystone = self
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self.url = "%s://127.0.0.1:%d/v3" % ("http" if tls is None else "https", self.port)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def stop(self):
        """Is gone: nothing listens, and connections get no more bytes."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            server.cut()
            self.open()
            self._thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # ---- tokens

    def issue(self, project, roles, seconds=3600, **more):
        """A token for a project (None: for none)."""
        token = "gAAAAA" + secrets.token_urlsafe(150)
        self._tokens[token] = self.document(project, roles, seconds, **more)
        return token

    @staticmethod
    def document(project, roles, seconds=3600, **more):
        document = {
            "methods": ["password"], "is_domain": False,
            "audit_ids": [secrets.token_urlsafe(16)],
            "issued_at": at(0), "expires_at": at(seconds),
            "user": {"domain": {"id": "default", "name": "Default"},
                     "id": secrets.token_hex(16), "name": "someone",
                     "password_expires_at": None},
            "roles": [{"id": secrets.token_hex(16), "name": name} for name in roles]}
        if project is not None:
            document["project"] = {"domain": {"id": "default", "name": "Default"},
                                   "id": project, "name": "name of " + project}
        document.update(more)
        return {"token": document}

    def revoke(self, token):
        del self._tokens[token]

    # ---- requests

    def questions(self, token=None):
        """Number of requests about this token, or about any."""
        with self._changed:
            return len(self._verified) if token is None else self._verified.count(token)

    def await_standing(self, count):
        """Waits until so many questions stand at the gate."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._standing >= count, 60):
                raise RuntimeError("only %d questions came" % self._standing)

    def shut(self):
        """From now on there are no responses."""
        with self._changed:
            self._gates = threading.Event()

    def open(self):
        """All are."""
        with self._changed:
            gate, self._gates = self._gates, None
        if gate is not None:
            gate.set()

    # ---- responses

    def _pass_gate(self, token):
        with self._changed:
            self._verified.append(token)
            gate = self._gates
            self._standing += gate is not None
            self._changed.notify_all()
        if gate is not None:
            gate.wait(60)
            with self._changed:
                self._standing -= 1

    def validate(self, handler):
        token = handler.headers.get("X-Subject-Token")
        self._pass_gate(token)
        if self.behave is not None:
            self.behave(handler)
        elif handler.headers.get("X-Auth-Token") != self.service:
            handler.error(401, "Unauthorized")
        elif token not in self._tokens:
            handler.error(404, "Not Found")
        else:
            handler.reply(200, self._tokens[token], [("X-Subject-Token", token)])

    def login(self, handler, wanted):
        """Any name and password, for the project of the request."""
        scope = wanted["auth"].get("scope", {}).get("project", {})
        project = scope.get("id") or scope.get("name")
        token = self.issue(project, ["member"], catalog=self.catalog)
        handler.reply(201, self._tokens[token], [("X-Subject-Token", token)])


def unused_port():
    """A port of the loopback on which nothing listens."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
