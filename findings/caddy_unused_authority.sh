#!/bin/bash
# Caddy 2.6 makes an authority of its own, although each site names its certificate.
#
# A site has the line "tls CERTIFICATE KEY", so nothing needs an authority. Unless the global option skip_install_trust
# is set, as here, a Caddy with root's rights and a site named localhost also installs the authority into the trust store
# of the machine, at each start and each reload, which took 14 seconds on the machine where this was seen.
#
# Guess:     Caddy makes an authority only when a site uses it, so there is none.
# Behavior:  it makes one at its start (pki/authorities/local/root.crt), whatever the name of the site.
#
# Takes Caddy 2.6.2-5 of Debian into a temporary folder. Needs openssl, curl and python3. Exits with 1 if Caddy behaves
# otherwise.
set -euo pipefail
version=2.6.2-5
folder=$(mktemp -d)
caddy=''
trap 'kill $caddy 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "caddy=$version" >/dev/null 2>&1 || { echo "apt-get cannot download caddy $version" >&2; exit 1; }
dpkg-deb -x caddy_*.deb .
usr/bin/caddy version
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test -keyout key -out certificate \
    -addext 'subjectAltName=DNS:localhost,DNS:queues.example.net' 2>/dev/null

# Serves a site of this name, and prints the authorities that Caddy has made.
authorities() {
    local port
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    cat >Caddyfile <<END
{
    admin off
    auto_https disable_redirects
    skip_install_trust
    storage file_system $folder/$1
}
https://$1:$port {
    tls $folder/certificate $folder/key
    respond ok
}
END
    HOME=$folder usr/bin/caddy run --adapter caddyfile --config Caddyfile >log 2>&1 &
    caddy=$!
    curl --silent --fail --insecure --retry 20 --retry-connrefused --retry-delay 1 --output /dev/null \
        --resolve "$1:$port:127.0.0.1" "https://$1:$port/"
    kill "$caddy"
    wait "$caddy" || true
    (cd "$1" 2>/dev/null && find . -name root.crt) || true
}

named=$(authorities queues.example.net)
local=$(authorities localhost)
echo "queues.example.net: ${named:-none}"
echo "localhost: ${local:-none}"
[ "$named" = "$local" ] && [ "$local" = ./pki/authorities/local/root.crt ]

# Output seen:
# 2.6.2
# queues.example.net: ./pki/authorities/local/root.crt
# localhost: ./pki/authorities/local/root.crt
