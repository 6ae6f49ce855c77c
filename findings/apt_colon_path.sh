#!/bin/bash
# apt-get install of a package file installs nothing and exits with 0 if the path has a colon.
#
# A release script puts packages into a folder that is named after a version with an epoch, or after a time of day.
#
# Guess:     only dpkg-deb and repositories write a colon as %3a. apt-get takes any path that ends in .deb.
# Behavior:  for a colon in the name of the file or of a folder, in a relative or in an absolute path, apt-get reads
#            its lists, prints "0 upgraded, 0 newly installed", and exits with 0. A space, "=", "+" and "%3a" are fine.
#
# Takes apt 2.6.2 of Debian 12 into a temporary folder, and simulates. Needs dpkg. Exits with 1 if apt behaves otherwise.
set -euo pipefail
version=2.6.2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "apt=$version" "libapt-pkg6.0=$version" >/dev/null 2>&1 ||
    { echo "apt-get cannot download apt $version" >&2; exit 1; }
for package in *.deb; do dpkg-deb -x "$package" tool; done
LD_LIBRARY_PATH=$(dirname "$(find "$folder" -name 'libapt-pkg.so.6.0' | head -1)")
export LD_LIBRARY_PATH APT_CONFIG=$folder/apt.conf
mkdir -p root/etc/apt root/var/lib/apt/lists/partial root/var/cache/apt/archives/partial root/var/lib/dpkg
touch root/var/lib/dpkg/status
cat >apt.conf <<END
Dir "$folder/root";
Dir::State::status "$folder/root/var/lib/dpkg/status";
Dir::Bin::Methods "$folder/tool/usr/lib/apt/methods";
APT::Architecture "amd64";
APT::Architectures "amd64";
END
tool/usr/bin/apt-get --version | head -1

mkdir -p package/DEBIAN
printf '%s\n' 'Package: one' 'Version: 1' 'Architecture: all' 'Maintainer: A <a@example.org>' 'Description: one' \
    >package/DEBIAN/control
dpkg-deb --root-owner-group -b package one.deb >/dev/null
expect() { # what apt-get does, path
    mkdir -p "$(dirname "$2")"
    cp one.deb "$2" 2>/dev/null || true
    tool/usr/bin/apt-get install --simulate "$2" >said 2>&1
    seen=$(grep -c '^Inst one' said) || true
    echo "$2: exit status 0, installs $seen"
    [ "$seen" = "$1" ] || exit 1
}
expect 1 ./one.deb
expect 1 './o ne.deb'
expect 1 './one=1+2.deb'
expect 1 ./one%3a1.deb
expect 0 ./one:1.deb
expect 0 ./12:30/one.deb
expect 0 "$folder/12:30/one.deb"
grep -x '0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.' said
