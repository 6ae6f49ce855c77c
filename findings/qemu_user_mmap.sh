#!/bin/bash
# qemu-user 7.2 places each mapping of a program above the earlier one, where Linux places it below.
#
# A program maps four areas of 64 KB one after the other, with no wish for an address. Code that keeps a guard page
# beside a stack meets a neighbor on the other side.
#
# Guess:     the addresses fall, as on Linux, because qemu-user passes mmap() on to the kernel.
# Behavior:  they rise. qemu-user 7.2 looks for the space itself, from below.
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
my $mmap = shift; # PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS
my @at = map { syscall($mmap, 0, 65536, 3, 34, -1, 0) } 1 .. 4;
print join(" ", map { $at[$_] < $at[$_ - 1] ? "below" : "above" } 1 .. 3), "\n";
END
linux=$(perl try.pl 9)
emulated=$(emulated try.pl 222)
echo "Linux: $linux. qemu-user: $emulated"
[ "$linux, $emulated" = 'below below below, above above above' ]
