#!/bin/bash
# In a backend, "option abortonclose" of HAProxy 2.6 does nothing for clients of HTTP/1.1.
#
# A client sends a request and closes its connection while the server has not responded. With the option, HAProxy
# shall close the connection to the server, too. The manual lists defaults, listen and backend for it.
#
# Guess:     it works in a backend, as in a listen section.
# Behavior:  in a backend it works for HTTP/2 clients only. In listen, or in defaults for frontend and backend, it
#            works for HTTP/1.1, too. In a frontend, HAProxy ignores it with a warning.
#
# Takes HAProxy 2.6.12-1+deb12u4 of Debian into a temporary folder. Needs python3 and curl with HTTP/2. Exits with 1
# if HAProxy behaves otherwise.
set -euo pipefail
version=2.6.12-1+deb12u4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "haproxy=$version" liblua5.3-0 >/dev/null 2>&1 ||
    { echo "apt-get cannot download haproxy $version" >&2; exit 1; }
for package in *.deb; do dpkg-deb -x "$package" .; done
LD_LIBRARY_PATH=$(dirname "$(find "$folder" -name 'liblua5.3.so.0' | head -1)")
export LD_LIBRARY_PATH
usr/sbin/haproxy -v | head -1

cat >try.py <<'END'
"""Prints for HTTP/1.1 and HTTP/2 if the server sees the client leave."""
import select, socket, subprocess, sys, time

common = "mode http\ntimeout connect 5s\ntimeout client 60s\ntimeout server 60s\n"
abort = "option abortonclose\n"
where = sys.argv[1]

def listener():
    one = socket.socket()
    one.bind(("127.0.0.1", 0))
    one.listen()
    return one

server = listener()
spare = listener()
port = spare.getsockname()[1]
spare.close()
bind = "bind 127.0.0.1:%d\n" % port  # speaks HTTP/1.1 and HTTP/2
to = "server one 127.0.0.1:%d\n" % server.getsockname()[1]
if where == "listen":
    text = "listen all\n" + common + abort + bind + to
else:
    text = ("defaults\n" + common + (abort if where == "defaults" else "") + "frontend front\n" + bind +
            "default_backend back\nbackend back\n" + (abort if where == "backend" else "") + to)
with open("haproxy.cfg", "w") as file:
    file.write(text)
proxy = subprocess.Popen(["usr/sbin/haproxy", "-db", "-f", "haproxy.cfg"], stderr=subprocess.DEVNULL)
try:
    while socket.socket().connect_ex(("127.0.0.1", port)) != 0:
        time.sleep(0.05)
    for name, option in ("HTTP/1.1", "--http1.1"), ("HTTP/2", "--http2-prior-knowledge"):
        client = subprocess.Popen(["curl", "-s", option, "http://127.0.0.1:%d/" % port])
        taken, _ = server.accept()
        head = b""
        while b"\r\n\r\n" not in head:
            head += taken.recv(4096)
        client.kill()
        client.wait()
        seen = select.select([taken], [], [], 3)[0]  # the end of the connection, or nothing in 3 seconds
        print("%s %s" % (name, "leaves" if seen else "is not seen to leave"), end="; ")
        taken.close()
finally:
    proxy.kill()
END

expect() { # where the option is, what the server sees
    local said
    said=$(timeout 30 python3 try.py "$1")
    echo "in $1: $said"
    [ "$said" = "$2" ] || exit 1
}
expect listen 'HTTP/1.1 leaves; HTTP/2 leaves; '
expect defaults 'HTTP/1.1 leaves; HTTP/2 leaves; '
expect backend 'HTTP/1.1 is not seen to leave; HTTP/2 leaves; '
