"""Reverse proxies in front of a claimd, with the configurations that docs/operations.md prints.

    with Server(*options()) as server, Nginx(server) as proxy, proxy.connect() as client:
        client.send(request("GET", "/v2/queues"))

A configuration stays as printed, but for ports, paths of certificates, and the port in the name of the site.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile

from harness import CLIENT_ID, HERE, Client, children, eventually, free_port, request, trusting
from page import NAME
import examples

PAGE = os.path.join(HERE, "..", "..", "docs", "operations.md")
MODULES = "/usr/lib/apache2/modules/mod_%s.so"


def page():
    with open(PAGE, encoding="utf-8") as file:
        return file.read()


def printed(language):
    """The configuration in this language."""
    return next(block for block in examples.blocks(page(), language)
                if "queues.example.net" in block or examples.ADDRESS in block)


def options(folder):
    """The options of claimd that the page prints, as a file in this folder."""
    path = os.path.join(folder, "claimd.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(printed("ini"))
    return "--config", path


class Front(Client):
    """A connection to the proxy, from this address of the machine. Requests name the site."""

    def __init__(self, proxy, source="127.0.0.1"):
        super().__init__(socket.AF_INET, ("127.0.0.1", proxy.port), trusting(proxy.pair.certificate), NAME,
                         source)

    def send(self, data):
        super().send(data.replace(b"Host: localhost", b"Host: " + NAME.encode()))


class Proxy:
    """A running proxy."""

    program = None      # its name
    language = None     # of its block in the page
    notices = True      # that a client has left while its request waits

    def __init__(self, server, pair, edit=lambda text: text):
        """edit: changes the text of the configuration."""
        self.server, self.pair = server, pair
        self.folder = tempfile.mkdtemp(prefix="claimd-proxy-")
        self.output = os.path.join(self.folder, "output")
        text = edit(examples.at(server, printed(self.language)))
        text = text.replace("/etc/ssl/queues.crt", pair.certificate).replace("/etc/ssl/queues.key", pair.key)
        for _ in range(3):  # another program may take the port
            self.port = free_port()
            with open(self.output, "w", encoding="utf-8") as output:
                self.process = subprocess.Popen(self.command(text), stdin=subprocess.DEVNULL, stdout=output,
                                                stderr=output, env={**os.environ, "HOME": self.folder})
            eventually(lambda: self.process.poll() is not None or self.listens())
            if self.process.poll() is None:
                return
        raise RuntimeError("%s ends: %s" % (self.program, self.said()))

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
            return True
        except OSError:
            return False

    def command(self, text):
        raise NotImplementedError

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def said(self):
        with open(self.output, encoding="utf-8", errors="replace") as file:
            return file.read()

    @property
    def url(self):
        return "https://%s:%d" % (NAME, self.port)

    def connect(self, source="127.0.0.1"):
        return Front(self, source)

    def fetch(self, *args, source="127.0.0.1", **more):
        with self.connect(source) as client:
            client.send(request(*args, **more))
            return client.response(head_only=args[0] == "HEAD")

    def curl(self, path, *words, headers=(), **more):
        """A curl that speaks HTTP/2."""
        command = ["curl", "--silent", "--http2", "--cacert", self.pair.certificate,
                   "--resolve", "%s:%d:127.0.0.1" % (NAME, self.port), *words, self.url + path]
        for line in ("Client-ID: " + CLIENT_ID, "X-Project-ID: p", *headers):
            command += ["--header", line]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **more)

    def reload(self, signal_=signal.SIGHUP):
        """Reads the configuration again. Returns when the new one serves."""
        before = set(children(self.process.pid))
        self.process.send_signal(signal_)
        eventually(lambda: set(children(self.process.pid)) - before)

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Nginx(Proxy):
    program, language = "nginx", "nginx"

    def command(self, text):
        own = "".join("%s_temp_path %s;\n" % (name, os.path.join(self.folder, name)) for name in
                      ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        text = text.replace("listen 443", "listen 127.0.0.1:%d" % self.port)
        return ["nginx", "-e", "stderr", "-c", self.write("nginx.conf", """
            daemon off;
            %s
            worker_processes 1;
            pid %s/pid;
            events {}
            http {
            access_log off;
            %s
            %s
            }""" % ("user root;" if os.geteuid() == 0 else "", self.folder, own, text))]


class HAProxy(Proxy):
    program, language = "haproxy", "haproxy"

    def command(self, text):
        parts = []
        for path in self.pair:
            with open(path, encoding="ascii") as file:
                parts.append(file.read())
        text = text.replace("bind :443", "bind 127.0.0.1:%d" % self.port).replace(
            "/etc/haproxy/queues.pem", self.write("queues.pem", "".join(parts)))
        return ["haproxy", "-W", "-db", "-S", os.path.join(self.folder, "master"), "-f", self.write("haproxy.cfg", "global\n    maxconn 200\n\n" + text)]


    def reload(self, _=None):
        """Over its socket, because it may lose a signal that comes soon after its start."""
        before = set(children(self.process.pid))
        with socket.socket(socket.AF_UNIX) as master:
            eventually(lambda: master.connect_ex(os.path.join(self.folder, "master")) == 0)
            master.sendall(b"reload\n")
            eventually(lambda: set(children(self.process.pid)) - before)


class Apache(Proxy):
    program, language = "apache2", "apache"
    notices = False

    def reload(self, signal_=signal.SIGUSR1):
        super().reload(signal_)

    def command(self, text):
        enabled = re.search(r"`a2enmod (.*?)`", page())[1].split()
        modules = "".join("LoadModule %s_module %s\n" % (name, MODULES % name) for name in
                          ("mpm_event", "authz_core", "proxy", *enabled))
        return ["apache2", "-DFOREGROUND", "-f", self.write("apache2.conf", """%s
ServerName localhost
ServerRoot %s
DefaultRuntimeDir %s
PidFile %s/pid
ErrorLog /dev/stderr
User www-data
Group www-data
Listen 127.0.0.1:%d
%s""" % (modules, self.folder, self.folder, self.folder, self.port,
         text.replace("*:443", "127.0.0.1:%d" % self.port)))]


class Caddy(Proxy):
    program, language = "caddy", "caddy"

    def command(self, text):
        text = text.replace(NAME + " {", "%s, https://localhost:%d {" % (self.url, self.port)).replace("tls /", "bind 127.0.0.1\n    tls /")
        return ["caddy", "run", "--adapter", "caddyfile", "--config", self.write("Caddyfile", """{
    admin %s
    auto_https disable_redirects
    skip_install_trust
    storage file_system %s
}
%s""" % (self.admin, self.folder, text))]

    @property
    def admin(self):
        return "unix/" + os.path.join(self.folder, "admin")

    def reload(self, _=None):
        subprocess.run(["caddy", "reload", "--force", "--address", self.admin, "--adapter", "caddyfile", "--config",
                        os.path.join(self.folder, "Caddyfile")], check=True, capture_output=True)


def suspended(server, reason):
    """How many requests of the server are suspended for this reason."""
    text = server.fetch("GET", "/metrics").body.decode()
    return int(re.search(r'^claimd_http_requests_parked\{reason="%s"\} (\d+)' % reason, text, re.M)[1])


def messages(response):
    """The messages of a response to a claim."""
    return json.loads(response.body)["messages"]
