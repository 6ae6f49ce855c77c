#!/bin/bash
# Caddy 2.6 retries a refused connection, but then cannot send the body of the request.
#
# With lb_try_duration, Caddy tries again for some seconds if it cannot connect to the backend. The backend starts
# while a request waits for it. The body has a few bytes, and Caddy has sent none of them.
#
# Guess:     the request reaches the backend, with or without a body, because nothing of it was sent.
# Behavior:  a GET and an empty POST reach it. A POST with a body gets 502: "http: invalid Read on closed Body".
#
# Takes Caddy 2.6.2-5 of Debian into a temporary folder. Needs python3 and curl. Exits with 1 if Caddy behaves
# otherwise.
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
    reverse_proxy 127.0.0.1:$back {
        lb_try_duration 20s
    }
}
END
cat >backend.py <<'END'
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(204)
        self.end_headers()
    do_POST = do_GET
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
HOME=$folder usr/bin/caddy run --config Caddyfile --adapter caddyfile 2>log &
caddy=$!
until (: <"/dev/tcp/127.0.0.1/$front") 2>/dev/null; do sleep 0.1; done

expect() { # status, then words for curl
    local status=$1 said client
    shift
    curl -s -o /dev/null -w '%{http_code}' "$@" "http://127.0.0.1:$front/" >status &
    client=$!
    sleep 1 # the first attempts fail
    python3 backend.py "$back" &
    backend=$!
    wait "$client" || true
    said=$(cat status)
    kill "$backend"
    wait "$backend" 2>/dev/null || true
    echo "curl $*: $said"
    [ "$said" = "$status" ] || { cat log; exit 1; }
}
expect 204 --request GET
expect 204 --request POST --data ''
expect 502 --request POST --data 'a body'
grep -q 'invalid Read on closed Body' log
