#!/bin/bash
# Caddy 2.6 cuts off some responses to HTTP/1.1 posts, because it closes the connection to its own backend.
#
# A client posts 16 bytes over HTTP/1.1. The backend responds at once with 600 kB and leaves the connection open. 3000
# requests, one after the other, with the plain configuration and with buffer_requests.
#
# Guess:     each response arrives whole, as the backend and the client do nothing unusual.
# Behavior:  without buffer_requests, some responses (here 18 of 3000) end early. Caddy logs "aborting with incomplete
#            response" and "use of closed network connection": it reads the end of the request body at the time at which
#            the response begins, and closes the connection to the backend if it loses this race. With buffer_requests
#            none is cut off. With max_buffer_size besides, some are again.
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

read -r plain buffers limits back < <(python3 -c '
import socket
some = [socket.socket() for _ in range(4)]
for one in some: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in some))')
cat >Caddyfile <<END
{
    admin off
    auto_https off
}
http://127.0.0.1:$plain {
    reverse_proxy 127.0.0.1:$back
}
http://127.0.0.1:$buffers {
    reverse_proxy 127.0.0.1:$back {
        buffer_requests
    }
}
http://127.0.0.1:$limits {
    reverse_proxy 127.0.0.1:$back {
        buffer_requests
        max_buffer_size 1MB
    }
}
END
cat >backend.py <<'END'
import socket, sys, threading
RESPONSE = b"HTTP/1.1 201 Created\r\nContent-Length: 600000\r\n\r\n" + b"x" * 600_000
def serve(connection):
    request = b""
    while part := connection.recv(65536):
        request += part
        if request.endswith(b"\r\n\r\n0123456789abcdef"):
            connection.sendall(RESPONSE)
            request = b""
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
END
cat >client.py <<'END'
import socket, sys
cut = 0
for _ in range(3000):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 16\r\n\r\n0123456789abcdef")
        received, whole = b"", None
        while whole is None or len(received) < whole:
            part = connection.recv(1 << 20)
            if not part:
                cut += 1
                break
            received += part
            if whole is None and b"\r\n\r\n" in received:
                whole = received.index(b"\r\n\r\n") + 4 + 600_000
print(cut)
END
HOME=$folder usr/bin/caddy run --config Caddyfile --adapter caddyfile 2>log &
caddy=$!
python3 backend.py "$back" 2>/dev/null &
backend=$!
for port in "$plain" "$buffers" "$limits" "$back"; do
    until (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.1; done
done
expect() { # name, port, 1 if some responses are cut off
    local cut
    cut=$(timeout 300 python3 client.py "$2")
    echo "$1: $cut of 3000 cut off"
    [ "$((cut > 0))" = "$3" ] || exit 1
}
expect 'without Caddy' "$back" 0
expect 'with Caddy' "$plain" 1
expect 'with buffer_requests' "$buffers" 0
expect 'with buffer_requests and max_buffer_size' "$limits" 1
grep -o '"msg":"aborting with incomplete response","error":"read tcp' log | sort | uniq -c
