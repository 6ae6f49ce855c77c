#!/bin/bash
# The package's unit with a real systemd: ROOT, a fresh Debian, is booted by systemd-nspawn, and
# the lines below run in it. Ends with "all is well", or tells what is not. Needs root, and a kernel
# that lets systemd-nspawn boot something; scripts/test does without.
#
#   tests/e2e/package/systemd_probe.sh ROOT PACKAGE
set -euo pipefail
root=$(readlink -f "$1")

cp "$2" "$root/root/claimd.deb"
rm -rf "$root/newer"
dpkg-deb --raw-extract "$2" "$root/newer"
sed -i -E 's/^(Version: .*)$/\1+newer1/' "$root/newer/DEBIAN/control"
dpkg-deb --root-owner-group --build "$root/newer" "$root/root/newer.deb" >/dev/null
rm -rf "$root/newer"
chroot "$root" apt-get -qq update
DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get -qq install -y --no-install-recommends \
    systemd-sysv dbus curl openssl python3 libcurl3-gnutls /root/claimd.deb >/dev/null 2>&1
cp tests/support/keystone.py "$root/root/"

cat >"$root/root/probe" <<'PROBE'
api=http://127.0.0.1:8888
who=(-H 'Client-ID: 3381af92-2b9e-11e3-b191-71861300734c' -H 'X-Project-ID: demo'
     -H 'Content-Type: application/json')

fail() { echo "FAILED: $*"; journalctl --no-pager -u claimd; systemctl poweroff; exit 1; }
is() { [ "$2" = "$3" ] || fail "$1: $2, not $3"; echo "ok  $1: $2"; }
shown() { systemctl show -p "$1" --value claimd; }
until_shown() { # what, property, value
    for _ in $(seq 100); do
        [ "$(shown "$2")" != "$3" ] || break
        sleep 0.1
    done
    is "$1" "$(shown "$2")" "$3"
}
status() { curl -s -o /dev/null -w '%{http_code}' "${who[@]}" "$@"; }
total() { curl -s "${who[@]}" "$@" $api/v2/queues/jobs/stats | grep -o '"total":[0-9]*'; }

is state "$(shown ActiveState)" active
is user "$(stat -c %U "/proc/$(shown MainPID)")" claimd
is capabilities "$(grep -h CapBnd "/proc/$(shown MainPID)/status" | cut -f2)" 0000000000000000
is 'system calls are filtered' "$(grep -hw Seccomp: "/proc/$(shown MainPID)/status" | cut -f2)" 2
is health "$(claimd health)" '127.0.0.1:8888 is ready'
is post "$(status $api/v2/queues/jobs/messages -d '{"messages":[{"body":1},{"body":2}]}')" 201

token=$(claimd token new a --role worker)
sed -i 's/^#auth = .*/auth = tokens/' /etc/claimd/claimd.conf
systemctl restart claimd
is 'without a token' "$(status $api/v2/queues/jobs/stats)" 401
is 'with one, after a restart' "$(total -H "X-Auth-Token: $token")" '"total":2'
before=$(</etc/claimd/tokens)
echo broken >/etc/claimd/tokens
systemctl reload claimd
until_shown 'a bad reload' StatusText \
    'not reloaded: tokens: /etc/claimd/tokens:1: a line must be NAME ROLE PROJECTS EXPIRES sha256:DIGITS'
echo "$before" >/etc/claimd/tokens
systemctl reload claimd
until_shown 'a good one' StatusText 'listening on http://127.0.0.1:8888'
is 'nothing was restarted for it' "$(shown NRestarts)" 0

mkdir -p /etc/systemd/system/claimd.service.d
printf '[Service]\nWatchdogSec=1\n' >/etc/systemd/system/claimd.service.d/short.conf
systemctl daemon-reload
systemctl restart claimd
sleep 4
is 'a watchdog of a second is kept quiet' "$(shown NRestarts)" 0
kill -STOP "$(shown MainPID)"
until_shown 'and bites when claimd stands still' NRestarts 1
until_shown 'it is there again' ActiveState active
is 'with all it had' "$(total -H "X-Auth-Token: $token")" '"total":2'
rm -r /etc/systemd/system/claimd.service.d
systemctl daemon-reload

pid=$(shown MainPID)
apt-get -qq install -y /root/newer.deb </dev/null &>/dev/null || fail upgrade
[ "$pid" != "$(shown MainPID)" ] || fail 'an upgrade does not restart it'
is 'after an upgrade' "$(total -H "X-Auth-Token: $token")" '"total":2'
# systemd listens: who connects while claimd is restarted waits, and is served.
systemctl disable -q --now claimd.service
systemctl enable -q --now claimd.socket
is 'no request yet' "$(shown ActiveState)" inactive
is 'the first request starts it' "$(total -H "X-Auth-Token: $token")" '"total":2'
for _ in $(seq 200); do
    status -H "X-Auth-Token: $token" $api/v2/queues
    echo
    sleep 0.02
done >/root/statuses &
for _ in $(seq 8); do
    systemctl restart claimd
    sleep 0.3
done
wait
is 'during eight restarts' "$(sort -u /root/statuses)" 200
is 'and they were really many' "$(wc -l </root/statuses)" 200

# TLS beside it, on a socket of systemd's; clients' certificates by a CA that only root can read.
cd /root
p256=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2)
openssl req -x509 "${p256[@]}" -subj /CN=localhost -addext subjectAltName=DNS:localhost \
    -keyout /etc/claimd/key.pem -out /etc/claimd/chain.pem 2>/dev/null
openssl req -x509 "${p256[@]}" -subj '/CN=clients' -keyout ca-key.pem \
    -out /etc/ssl/private/queue-clients.pem 2>/dev/null
openssl req "${p256[@]}" -subj '/CN=press' -keyout press-key.pem 2>/dev/null |
    openssl x509 -req -CA /etc/ssl/private/queue-clients.pem -CAkey ca-key.pem -CAcreateserial \
        -days 2 -extfile <(echo extendedKeyUsage=clientAuth) -out press.pem 2>/dev/null
chmod 0600 /etc/ssl/private/queue-clients.pem
echo 'press worker demo subject:CN=press' >/etc/claimd/certificates
chgrp claimd /etc/claimd/{key.pem,certificates}
chmod 0640 /etc/claimd/{key.pem,certificates}
cat >>/etc/claimd/claimd.conf <<'CONF'
tls_certificate = /etc/claimd/chain.pem
tls_key = /etc/claimd/key.pem
certificates = /etc/claimd/certificates
CONF
mkdir -p /etc/systemd/system/claimd.service.d
cp /usr/share/doc/claimd/examples/credentials.conf /etc/systemd/system/claimd.service.d/
systemctl daemon-reload
systemctl stop -q claimd.service claimd.socket
systemctl enable -q --now claimd.socket claimd-tls.socket
tls=(--cacert /etc/claimd/chain.pem)
secure=https://localhost:8443/v2/queues/jobs/stats
is 'by TLS, with the token' "$(status "${tls[@]}" -H "X-Auth-Token: $token" $secure)" 200
is 'by TLS, with a certificate' "$(status "${tls[@]}" --cert press.pem --key press-key.pem $secure)" 200
is 'by TLS, with neither' "$(status "${tls[@]}" $secure)" 401
is 'plain, with the token' "$(total -H "X-Auth-Token: $token")" '"total":2'

# A Keystone that has a name, and a certificate.
openssl req -x509 "${p256[@]}" -subj /CN=keystone.test -addext subjectAltName=DNS:keystone.test \
    -keyout keystone-key.pem -out /etc/claimd/keystone-ca.pem 2>/dev/null
chmod 0644 /etc/claimd/keystone-ca.pem
echo '127.0.0.1 localhost keystone.test' >/etc/hosts
cat >keystone_of_the_probe.py <<'PYTHON'
import ssl
import threading
from keystone import Keystone
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/etc/claimd/keystone-ca.pem", "keystone-key.pem")
keystone = Keystone()
keystone.stop()
keystone.start(5000, context)
print(keystone.service, keystone.issue("demo", ["member"]), flush=True)
threading.Event().wait()
PYTHON
exec 3< <(exec python3 keystone_of_the_probe.py)
keystone=$!
read -r service member <&3
(umask 0137 && echo "$service" >/etc/claimd/keystone-token && chgrp claimd /etc/claimd/keystone-token)
sed -i 's/^auth = .*/auth = keystone/' /etc/claimd/claimd.conf
cat >>/etc/claimd/claimd.conf <<'CONF'
keystone_url = https://keystone.test:5000/v3
keystone_ca = /etc/claimd/keystone-ca.pem
CONF
systemctl restart claimd
is 'a token of Keystone' "$(total -H "X-Auth-Token: $member")" '"total":2'
is 'an unknown token' "$(status -H 'X-Auth-Token: nobody' $api/v2/queues/jobs/stats)" 401
kill $keystone
is 'while it is away' "$(status -H 'X-Auth-Token: somebody' $api/v2/queues/jobs/stats)" 503
is 'nothing was restarted for it' "$(shown NRestarts)" 0
rm -r /etc/claimd/{key,chain,keystone-ca}.pem /etc/claimd/{certificates,keystone-token}

apt-get -qq purge -y claimd &>/dev/null || fail purge
is 'after a purge' "$(systemctl is-active claimd)" inactive
is 'nothing listens' "$(systemctl is-active claimd.socket)" inactive
is 'nothing is left' "$(ls -d /etc/claimd /var/lib/claimd 2>/dev/null)" ''
echo 'all is well'
systemctl poweroff
PROBE
cat >"$root/etc/systemd/system/probe.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
StandardOutput=file:/root/said
StandardError=inherit
ExecStart=/bin/bash /root/probe
[Install]
WantedBy=multi-user.target
UNIT
chroot "$root" systemctl -q enable probe.service
timeout 300 systemd-nspawn --quiet --directory "$root" --private-network --register=no --keep-unit \
    --boot --console=pipe </dev/null >"$root/root/boot.log" 2>&1 || tail "$root/root/boot.log"
cat "$root/root/said"
[ "$(tail -n 1 "$root/root/said")" = "all is well" ]
