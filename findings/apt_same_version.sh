#!/bin/bash
# apt-get install of a rebuilt package file of the installed version installs it only if some fields have changed.
#
# A developer builds a package again, with another program in it and without a new version, and installs the file.
#
# Guess:     apt-get sees from the checksum, the size or the dependencies that the package is another, and installs it.
# Behavior:  "one is already the newest version", exit status 0, and the old files stay. If Depends or Installed-Size
#            differs, apt-get installs the file. Other fields and the size of the file do not count.
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
cat >apt.conf <<END
Dir "$folder/root";
Dir::State::status "$folder/root/var/lib/dpkg/status";
Dir::Bin::Methods "$folder/tool/usr/lib/apt/methods";
APT::Architecture "amd64";
APT::Architectures "amd64";
END
tool/usr/bin/apt-get --version | head -1

control() { # more fields
    printf '%s\n' 'Package: one' 'Version: 1' 'Architecture: all' 'Maintainer: A <a@example.org>' "$@" 'Description: one'
}
{ control 'Installed-Size: 100' 'Status: install ok installed'; echo
  control 'Status: install ok installed' | sed 's/one/other/'; } >root/var/lib/dpkg/status
expect() { # what apt-get does, size of a file in the package, more fields
    local wanted=$1 size=$2
    shift 2
    rm -rf package
    mkdir -p package/DEBIAN package/usr/share/one
    head -c "$size" /dev/urandom >package/usr/share/one/data
    control "$@" >package/DEBIAN/control
    dpkg-deb --root-owner-group -b package one.deb >/dev/null
    tool/usr/bin/apt-get install --simulate ./one.deb >said 2>&1
    seen=$(grep -oE '^Inst one|one is already the newest version' said)
    echo "$size bytes, $*: $seen"
    [ "$seen" = "$wanted" ] || exit 1
}
expect 'one is already the newest version' 10 'Installed-Size: 100'
expect 'one is already the newest version' 1000000 'Installed-Size: 100'
expect 'one is already the newest version' 10 'Installed-Size: 100' 'Homepage: https://example.org/'
expect 'Inst one' 10 'Installed-Size: 101'
expect 'Inst one' 10 'Installed-Size: 100' 'Depends: other'
