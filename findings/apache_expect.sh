#!/bin/bash
# Apache does not forward a body to a backend that sends no "100 Continue".
#
# curl sends "Expect: 100-continue" before a body of more than 1 MB. If no "100 Continue" comes within a second, it sends
# the body. The backend does not know the header. It only reads on, and then responds.
#
# Guess:     Apache sends "100 Continue" itself, and forwards the body at once.
# Behavior:  it forwards the header, and waits for a 100 or a response until its own timeout. Then curl gets 503, and
#            the backend has seen no byte of the body. A request without the header gets its response at once.
#
# Takes Apache 2.4.71-1~deb12u1 of Debian into a temporary folder. Needs python3 and curl. Exits with 1 if Apache
# behaves otherwise.
set -euo pipefail
version=2.4.71-1~deb12u1
folder=$(mktemp -d)
apache='' backend=''
trap 'kill $apache $backend 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "apache2-bin=$version" libapr1 libaprutil1 >/dev/null 2>&1 ||
    { echo "apt-get cannot download apache2-bin $version" >&2; exit 1; }
for package in *.deb; do dpkg-deb -x "$package" .; done
LD_LIBRARY_PATH=$(dirname "$(find "$folder" -name 'libapr-1.so.0' | head -1)")
export LD_LIBRARY_PATH
usr/sbin/apache2 -v | head -1

read -r front back < <(python3 -c '
import socket
some = [socket.socket() for _ in range(2)]
for one in some: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in some))')
cat >apache.conf <<END
$(for name in mpm_event authz_core proxy proxy_http; do
    echo "LoadModule ${name}_module $folder/usr/lib/apache2/modules/mod_$name.so"
done)
ServerName localhost
ServerRoot $folder
DefaultRuntimeDir $folder
PidFile $folder/pid
ErrorLog $folder/log
User www-data
Group www-data
Listen 127.0.0.1:$front
StartServers 1
ServerLimit 1
ThreadsPerChild 25
MaxRequestWorkers 25
ProxyTimeout 5
ProxyPass / http://127.0.0.1:$back/
END
cat >backend.py <<'END'
"""Writes to the file "seen" what came of each request."""
import socketserver, sys

class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        expects, left, read = False, 0, 0
        while (line := self.rfile.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode().lower().partition(":")
            left = int(value) if name == "content-length" else left
            expects |= name == "expect"
        while left > read and (part := self.rfile.read1(min(left - read, 65536))):
            read += len(part)
        with open("seen", "w") as file:
            file.write("%s, %d bytes" % ("Expect" if expects else "no Expect", read))
        self.wfile.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")

socketserver.ThreadingTCPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
head -c 2000000 /dev/zero >body
usr/sbin/apache2 -DFOREGROUND -f "$folder/apache.conf" &
apache=$!
python3 backend.py "$back" 2>/dev/null &
backend=$!
for port in "$front" "$back"; do
    until (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.1; done
done

expect() { # name, port, header, the status, what the backend sees
    local said
    rm -f seen
    said=$(curl -s -o /dev/null -w '%{http_code}' -H "$3" --data-binary @body "http://127.0.0.1:$2/") || true
    for _ in $(seq 100); do
        [ ! -s seen ] || break
        sleep 0.1
    done
    said="$said: $(cat seen)"
    echo "$1: $said"
    [ "$said" = "$4: $5" ] || exit 1
}
expect 'backend alone' "$back" 'Expect: 100-continue' 204 'Expect, 2000000 bytes'
expect 'without the header' "$front" 'Expect:' 204 'no Expect, 2000000 bytes'
expect 'with the header' "$front" 'Expect: 100-continue' 503 'Expect, 0 bytes'
