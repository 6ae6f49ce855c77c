#!/bin/bash
# Caddy 2.6 responds with 200 to a client that ends its sending, before the backend has responded.
#
# A client sends a complete POST, ends its half of the connection, as `nc -N` does, and waits for the response. The
# backend takes the request and needs a second for its response, 503.
#
# Guess:     Caddy takes the client for gone, and closes the connection without a response.
# Behavior:  it responds "200 OK" with an empty body at once, so the client takes its message for stored. A client that
#            does not end its half gets the 503.
#
# Takes Caddy 2.6.2-5 of Debian into a temporary folder. Needs python3. Exits with 1 if Caddy behaves otherwise.
set -euo pipefail
version=2.6.2-5
folder=$(mktemp -d)
caddy='' backend=''
trap 'kill $caddy $backend 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "caddy=$version" >/dev/null 2>&1 || { echo "apt-get cannot download caddy $version" >&2; exit 1; }
dpkg-deb -x caddy_*.deb .
usr/bin/caddy version

read -r front back < <(python3 -c '
import socket
some = [socket.socket() for _ in range(2)]
for one in some: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in some))')
cat >Caddyfile <<END
{
    admin off
    auto_https off
}
http://127.0.0.1:$front {
    reverse_proxy 127.0.0.1:$back
}
END
cat >backend.py <<'END'
import http.server, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(1)
        self.send_response(503)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
cat >client.py <<'END'
import socket, sys
port, ends = int(sys.argv[1]), sys.argv[2] == "ends"
connection = socket.create_connection(("127.0.0.1", port))
connection.sendall(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 7\r\n\r\nmessage")
if ends:
    connection.shutdown(socket.SHUT_WR)
response = b""
while part := connection.recv(4096):
    response += part
head, body = response.split(b"\r\n\r\n", 1)
print(head.split()[1].decode(), "%d bytes" % len(body))
END
HOME=$folder usr/bin/caddy run --config Caddyfile --adapter caddyfile 2>log &
caddy=$!
python3 backend.py "$back" 2>/dev/null &
backend=$!
for port in "$front" "$back"; do
    until (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.1; done
done

expect() { # "stays" or "ends", port, what the client gets
    local said
    said=$(timeout 20 python3 client.py "$2" "$1")
    echo "$1: $said"
    [ "$said" = "$3" ] || exit 1
}
echo 'without Caddy'
expect ends "$back" '503 0 bytes'
echo 'with Caddy'
expect stays "$front" '503 0 bytes'
expect ends "$front" '200 0 bytes'
