#!/bin/bash
# dpkg never updates a conffile that the administrator replaced by a symbolic link, and does not say so.
#
# The administrator moves /etc/one/one.conf to a folder under version control, and leaves a link. A new version of the
# package changes the file.
#
# Guess:     dpkg follows the link. With --force-confnew it writes the new text into the target, and the link stays.
# Behavior:  dpkg exits with 0, installs nothing in place of the link or its target, and leaves one.conf.dpkg-new
#            behind. That is so with --force-confnew, with --force-confold and with none, also if the text was not
#            changed. Only a purge follows the link. It deletes the target, and the link stays.
#
# Takes dpkg 1.21.23 of Debian 12 into a temporary folder, and installs packages below that folder. Needs tar. Exits
# with 1 if dpkg behaves otherwise.
set -euo pipefail
version=1.21.23
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "dpkg=$version" >/dev/null 2>&1 || { echo "apt-get cannot download dpkg $version" >&2; exit 1; }
dpkg-deb -x dpkg_*.deb tool
export PATH=$folder/tool/usr/bin:$PATH
dpkg --version | head -1

for number in 1 2; do
    mkdir -p "one$number/DEBIAN" "one$number/etc/one"
    echo "text of version $number" >"one$number/etc/one/one.conf"
    echo /etc/one/one.conf >"one$number/DEBIAN/conffiles"
    printf '%s\n' 'Package: one' "Version: $number" 'Architecture: all' 'Maintainer: A <a@example.org>' \
        'Description: one' >"one$number/DEBIAN/control"
    dpkg-deb --root-owner-group -b "one$number" >/dev/null
done
run() { # words for dpkg
    dpkg --root="$folder/root" --force-not-root --force-script-chrootless --log=/dev/null "$@" </dev/null >said 2>&1
}
try() { # text of the administrator, words for dpkg
    local text=$1
    shift
    rm -rf root
    mkdir -p root/var/lib/dpkg/{info,updates,triggers} root/etc/kept
    touch root/var/lib/dpkg/{status,available}
    run -i one1.deb
    rm root/etc/one/one.conf
    echo "$text" >root/etc/kept/mine.conf
    ln -s ../kept/mine.conf root/etc/one/one.conf
    run "$@" -i one2.deb
    seen="$(cat root/etc/one/one.conf), $(ls root/etc/one | tr '\n' ' ')$(grep -ci conf said || true) lines on conffiles"
    echo "${*:-no option}: $seen"
    [ "$seen" = "$text, one.conf one.conf.dpkg-new 0 lines on conffiles" ]
}
try 'text of version 1'
try 'changed text'
try 'changed text' --force-confold
try 'changed text' --force-confnew
run -P one
seen="link $(readlink root/etc/one/one.conf), target: $(ls root/etc/kept)"
echo "after a purge: $seen"
[ "$seen" = 'link ../kept/mine.conf, target: ' ]
