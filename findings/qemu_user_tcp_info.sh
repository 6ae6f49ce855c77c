#!/bin/bash
# With qemu-user 7.2, getsockopt(TCP_INFO) succeeds, but gives 4 bytes.
#
# A program asks for TCP_INFO of a connection of its own, with space for 256 bytes, and reads unacknowledged segments or
# the state of the connection from it. On Linux, it gets more than 200 bytes.
#
# Guess:     qemu-user passes the option on, or fails with ENOPROTOOPT or EOPNOTSUPP, so that the program can do without.
# Behavior:  the call succeeds, with a length of 4. So the program sees a structure that is not filled in.
#
# Takes qemu-user 7.2 of Debian 12, and Perl of Debian 12 for arm64 with its libraries, into a temporary folder. Needs
# Debian 12 on amd64, perl and curl. Exits with 1 if qemu-user behaves otherwise.
set -euo pipefail
version=1:7.2+dfsg-7+deb12u18+b3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "qemu-user=$version" libcapstone4 libglib2.0-0 libnuma1 liburing2 >/dev/null 2>&1 ||
    { echo "apt-get cannot download qemu-user $version" >&2; exit 1; }
for package in *.deb; do dpkg-deb -x "$package" host; done
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' |
    grep -v security | head -1)
while read -r sha256 path; do
    curl -sfO "${mirror%/}/pool/main/$path"
    echo "$sha256  ${path##*/}" | sha256sum --check --quiet
    dpkg-deb -x "${path##*/}" arm64
done <<END
8257ca5f2debe0b4229d98667fe0ed24a8b3b9421c96f847f4f48e9012659174 p/perl/perl-base_5.36.0-7+deb12u3_arm64.deb
01f4330719fd4f65580e16ea5a0527f372fca750e8f588d26deaf09f2d3b1cf4 g/glibc/libc6_2.36-9+deb12u14_arm64.deb
eea0ad76ea5eb507127fea0c291622ea4ecdbb71c4b9a8ed9c76ae33fc1a0127 libx/libxcrypt/libcrypt1_4.4.33-2_arm64.deb
END
libraries=$(find "$folder/host" -name '*.so.*' -printf '%h\n' | sort -u | paste -sd :)
emulated() {
    LD_LIBRARY_PATH=$libraries host/usr/bin/qemu-aarch64 -E LD_LIBRARY_PATH= -L arm64 arm64/usr/bin/perl "$@"
}
LD_LIBRARY_PATH=$libraries host/usr/bin/qemu-aarch64 -version | head -1
cat >try.pl <<'END'
use Socket;
socket(my $listener, AF_INET, SOCK_STREAM, 0);
bind($listener, sockaddr_in(0, INADDR_LOOPBACK)) && listen($listener, 1) || die;
socket(my $connection, AF_INET, SOCK_STREAM, 0);
connect($connection, getsockname($listener)) || die;
my $info = getsockopt($connection, 6, 11); # IPPROTO_TCP, TCP_INFO
print defined $info ? length $info : $!, "\n";
END
linux=$(perl try.pl)
emulated=$(emulated try.pl)
echo "Linux: $linux bytes. qemu-user: $emulated bytes"
[ "$linux" -gt 200 ]
[ "$emulated" = 4 ]
