#!/bin/bash
# curl 7.88 cannot use a connection of HTTP/2 without TLS for a second transfer.
#
# curl gets four URLs of one server with --http2-prior-knowledge, one after the other or with --parallel. The server
# takes a hundred streams per connection.
#
# Guess:     all four share a connection, as with TLS.
# Behavior:  the first gets its response. The others end at once with error 16, "Error in the HTTP2 framing layer". With
#            TLS, and with --parallel-immediate, which gives each its own connection, all four get theirs.
#
# Takes curl 7.88.1-10+deb12u15 and HAProxy 2.6.12-1+deb12u4 of Debian into a temporary folder. Needs openssl and
# python3. Exits with 1 if curl behaves otherwise.
set -euo pipefail
curl=7.88.1-10+deb12u15 haproxy=2.6.12-1+deb12u4
folder=$(mktemp -d)
server=''
trap 'kill $server 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "curl=$curl" "libcurl4=$curl" "haproxy=$haproxy" liblua5.3-0 >/dev/null 2>&1 ||
    { echo "apt-get cannot download curl $curl and haproxy $haproxy" >&2; exit 1; }
for package in *.deb; do dpkg-deb -x "$package" .; done
LD_LIBRARY_PATH=$(dirname "$(find "$folder" -name 'libcurl.so.4' | head -1)")
export LD_LIBRARY_PATH
usr/bin/curl --version | head -1

read -r plain secure < <(python3 -c '
import socket
some = [socket.socket() for _ in range(2)]
for one in some: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in some))')
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost \
    -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out certificate.pem 2>/dev/null
cat certificate.pem key.pem >both.pem
cat >haproxy.cfg <<END
frontend all
    mode http
    timeout client 60s
    bind 127.0.0.1:$plain
    bind 127.0.0.1:$secure ssl crt $folder/both.pem alpn h2
    http-request return status 200
END
usr/sbin/haproxy -db -f haproxy.cfg 2>log &
server=$!
for port in "$plain" "$secure"; do
    until (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.1; done
done

expect() { # how many succeed, how many fail with error 16, words for curl
    local good=$1 bad=$2
    shift 2
    usr/bin/curl -s --no-progress-meter --cacert certificate.pem --http2-prior-knowledge \
        -w '%{http_code} HTTP/%{http_version} error %{exitcode}\n' "$@" >seen || true
    echo "curl $* : $(grep -c '^200 HTTP/2 error 0' seen) good, $(grep -c ' error 16' seen) with error 16"
    [ "$(grep -c '^200 HTTP/2 error 0' seen) $(grep -c ' error 16' seen)" = "$good $bad" ] || exit 1
}
expect 4 0 "https://127.0.0.1:$secure/[1-4]"
expect 4 0 --parallel "https://127.0.0.1:$secure/[1-4]"
expect 4 0 --parallel --parallel-immediate "http://127.0.0.1:$plain/[1-4]"
expect 1 3 "http://127.0.0.1:$plain/[1-4]"
expect 1 3 --parallel "http://127.0.0.1:$plain/[1-4]"
