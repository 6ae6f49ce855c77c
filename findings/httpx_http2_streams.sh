#!/bin/bash
# httpx opens no second HTTP/2 connection if the first has no free stream.
#
# A Python program has one AsyncClient with http2=True and up to ten connections. It sends 110 requests at once for which
# the server takes some seconds, as with long polling. HAProxy in front of the server takes 100 streams per connection.
#
# Guess:     httpx sends ten of them with a second connection, as curl does.
# Behavior:  the ten wait until others have their responses, and no second connection is opened. The timeout for a
#            free connection (pool) does not end that.
#
# Takes httpx 0.23.3-1 and HAProxy 2.6.12-1+deb12u4 of Debian into a temporary folder. Needs openssl and Debian's
# python3. Exits with 1 if httpx behaves otherwise.
set -euo pipefail
httpx=0.23.3-1 haproxy=2.6.12-1+deb12u4
folder=$(mktemp -d)
proxy='' backend=''
trap 'kill $proxy $backend 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "haproxy=$haproxy" liblua5.3-0 "python3-httpx=$httpx" python3-httpcore=0.16.3-1 \
    python3-h2=4.1.0-4 python3-hpack python3-hyperframe python3-anyio python3-certifi python3-h11 python3-idna \
    python3-rfc3986 python3-sniffio >/dev/null 2>&1 ||
    { echo "apt-get cannot download httpx $httpx and haproxy $haproxy" >&2; exit 1; }
for package in *.deb; do dpkg-deb -x "$package" .; done
LD_LIBRARY_PATH=$(dirname "$(find "$folder" -name 'liblua5.3.so.0' | head -1)")
export LD_LIBRARY_PATH PYTHONPATH=$folder/usr/lib/python3/dist-packages

read -r front back < <(/usr/bin/python3 -c '
import socket
some = [socket.socket() for _ in range(2)]
for one in some: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in some))')
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout key.pem -out certificate.pem 2>/dev/null
cat certificate.pem key.pem >both.pem
cat >haproxy.cfg <<END
listen all
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    bind 127.0.0.1:$front ssl crt $folder/both.pem alpn h2,http/1.1
    http-request set-header Connection-Number %[src_port]
    server one 127.0.0.1:$back
END
cat >backend.py <<'END'
"""Prints how many requests came, over how many connections of the client, before the first response."""
import asyncio, re, sys

came, responded = [], False

async def serve(reader, writer):
    global responded
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.split()[1] == b"/wait":
                if not responded:
                    came.append(re.search(rb"(?i)connection-number: (\d+)", head)[1])
                await asyncio.sleep(10)
                if not responded:
                    print("%d requests in %d connections" % (len(came), len(set(came))), flush=True)
                    responded = True
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=200) as server:
        await server.serve_forever()

asyncio.run(main())
END
cat >client.py <<'END'
import asyncio, ssl, sys
import httpx

async def main():
    context = ssl.create_default_context(cafile="certificate.pem")
    async with httpx.AsyncClient(http2=True, verify=context, timeout=httpx.Timeout(60, pool=2),
                                 limits=httpx.Limits(max_connections=10)) as client:
        await client.get(sys.argv[1] + "first")
        responses = await asyncio.gather(*(client.get(sys.argv[1] + "wait") for _ in range(110)))
    print(len(responses), "responses with", *{one.http_version for one in responses})

print("httpx", httpx.__version__)
asyncio.run(main())
END
usr/sbin/haproxy -db -f haproxy.cfg 2>log &
proxy=$!
/usr/bin/python3 backend.py "$back" >seen &
backend=$!
for port in "$front" "$back"; do
    until (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.1; done
done
/usr/bin/python3 client.py "https://localhost:$front/" >client
cat client seen
grep -qx '110 responses with HTTP/2' client
grep -qx '100 requests in 1 connections' seen
