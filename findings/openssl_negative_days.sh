#!/bin/bash
# openssl x509 of OpenSSL 3.5 makes no expired certificate with -days -1.
#
# A test signs a certificate that ended a day ago, to see that a client refuses it.
#
# Guess:     -days -1 does it with 3.5 (Debian 13) as with 3.0 (Debian 12).
# Behavior:  3.0 writes a certificate that ends before it begins. 3.5 writes none, and exits with 1: "end date before
#            start date". Its new options -not_before and -not_after make an expired one.
#
# Takes OpenSSL 3.0 of Debian 12, and OpenSSL 3.5 of Debian 13 with its C library, into a temporary folder. Needs
# Debian 12 on amd64 and curl. Exits with 1 if OpenSSL behaves otherwise.
set -euo pipefail
old=3.0.20-1~deb12u2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "openssl=$old" "libssl3=$old" >/dev/null 2>&1 ||
    { echo "apt-get cannot download openssl $old" >&2; exit 1; }
for package in *.deb; do dpkg-deb -x "$package" 12; done
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' |
    grep -v security | head -1)
while read -r sha256 path; do
    curl -sfO "${mirror%/}/pool/main/$path"
    echo "$sha256  ${path##*/}" | sha256sum --check --quiet
    dpkg-deb -x "${path##*/}" 13
done <<END
faf53a993766c81f94f35b6a31202f0dcd936e1529791790a393aa59f41c0993 o/openssl/openssl_3.5.9-1~deb13u1_amd64.deb
ffefb9af363e0e4592251b2533eb06453c8e470f7772e40263c4b2129251a6d5 o/openssl/libssl3t64_3.5.9-1~deb13u1_amd64.deb
b59b0625cd1a791375d40dab23a4d5d3d0641e3d0a773501becdc3725b7f99cf g/glibc/libc6_2.41-12+deb13u5_amd64.deb
END
export OPENSSL_CONF=/dev/null
openssl12() {
    LD_LIBRARY_PATH=12/usr/lib/x86_64-linux-gnu 12/usr/bin/openssl "$@"
}
openssl13() {
    "$(find 13 -name 'ld-linux-x86-64.so.2' | head -1)" \
        --library-path "13/usr/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu" 13/usr/bin/openssl "$@"
}
openssl12 version
openssl13 version
openssl12 req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=late -keyout key.pem -out request.pem 2>/dev/null

expect() { # program, if it makes a certificate that has ended, words for x509
    local said program=$1 wanted=$2
    shift 2
    if ! "$program" x509 -req -in request.pem -signkey key.pem "$@" -out certificate.pem 2>error; then
        said=$(grep -io 'end date before start date' error)
    elif openssl12 x509 -in certificate.pem -noout -checkend 0 >/dev/null; then
        said='valid'
    else
        said='expired'
    fi
    echo "$program $*: $said"
    [ "$said" = "$wanted" ] || exit 1
}
expect openssl12 valid -days 1
expect openssl13 valid -days 1
expect openssl12 expired -days -1
expect openssl13 'end date before start date' -days -1
expect openssl13 expired -not_before 20200101000000Z -not_after 20200102000000Z
