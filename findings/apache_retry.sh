#!/bin/bash
# Apache does not stop to try a single backend that refused a connection, although ProxyPass has retry=60.
#
# The manual says that httpd forwards nothing to a server in the error state until "retry" seconds have passed, 60
# by default. A backend is down, one request fails, and the backend comes back.
#
# Guess:     requests get 503 for the rest of the 60 seconds, so ProxyPass needs retry=0.
# Behavior:  the next request reaches the backend. A refused connection does not put the only worker of a ProxyPass
#            without a balancer into the error state.
#
# Takes Apache 2.4.71-1~deb12u1 of Debian into a temporary folder. Needs python3 and curl. Exits with 1 if Apache
# behaves otherwise.
set -euo pipefail
version=2.4.71-1~deb12u1
folder=$(mktemp -d)
trap 'kill "$apache" "$backend" 2>/dev/null || true; rm -rf "$folder"' EXIT
apache= backend=
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
ProxyPass / http://127.0.0.1:$back/
END
usr/sbin/apache2 -DFOREGROUND -f "$folder/apache.conf" &
apache=$!
status() {
    curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$front/"
}
down=000
for _ in $(seq 100); do
    down=$(status) || true
    [ "$down" = 000 ] || break
    sleep 0.1
done
mkdir www
python3 -m http.server --directory www --bind 127.0.0.1 "$back" 2>/dev/null &
backend=$!
until curl -s -o /dev/null "http://127.0.0.1:$back/"; do sleep 0.1; done
up=$(status)
echo "while the backend is down: $down. As soon as it is up: $up"
[ "$down $up" = '503 200' ]
