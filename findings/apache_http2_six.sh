#!/bin/bash
# Apache passes on six requests of an HTTP/2 connection, and then waits until the backend has responded to one.
#
# A client has one HTTP/2 connection to Apache. It sends twelve requests for which the backend takes some seconds, as
# with long polling, and then one for which it takes no time. Apache has 25 threads, and all others are idle.
#
# Guess:     Apache begins with a few streams, but passes on more while these wait. In at most five seconds, all are
#            with the backend.
# Behavior:  the backend sees six requests until it responds to one of them, however long that takes. The quick request
#            waits, too. With HTTP/1.1, all thirteen reach the backend at once.
#
# Takes Apache 2.4.71-1~deb12u1 of Debian into a temporary folder. Needs openssl, python3 and curl with HTTP/2. Exits
# with 1 if Apache behaves otherwise.
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
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout key.pem -out certificate.pem 2>/dev/null
cat >apache.conf <<END
$(for name in mpm_event authz_core http2 proxy proxy_http ssl; do
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
Protocols h2 http/1.1
SSLEngine on
SSLCertificateFile $folder/certificate.pem
SSLCertificateKeyFile $folder/key.pem
ProxyPass / http://127.0.0.1:$back/
END
cat >backend.py <<'END'
"""Prints how many requests came before the first response, and if the quick one was among them."""
import asyncio, sys

came, responded = [], False

async def serve(reader, writer):
    global responded
    try:
        while True:
            path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
            if not responded and path != "/ready":
                came.append(path)
            if path.startswith("/wait"):
                await asyncio.sleep(10)
                if not responded:
                    print(sum(one != "/quick" for one in came), "waiting,",
                          "the quick one" if "/quick" in came else "not the quick one", flush=True)
                    responded = True
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()

asyncio.run(main())
END
usr/sbin/apache2 -DFOREGROUND -f "$folder/apache.conf" &
apache=$!

ask() {
    curl -s --cacert certificate.pem -o /dev/null "$@"
}
expect() { # option of curl, what the backend has seen
    local said option=$1
    python3 backend.py "$back" >seen &
    backend=$!
    until ask --fail "https://localhost:$front/ready"; do sleep 0.1; done
    curl -s --no-progress-meter --cacert certificate.pem --parallel --parallel-max 20 "$option" \
        "https://localhost:$front/wait[1-12]" --next -s --cacert certificate.pem "$option" \
        "https://localhost:$front/quick"
    kill "$backend"
    wait "$backend" 2>/dev/null || true
    said=$(cat seen)
    echo "$option: $said"
    [ "$said" = "$2" ] || exit 1
}
expect --http1.1 '12 waiting, the quick one'
expect --http2 '6 waiting, not the quick one'
