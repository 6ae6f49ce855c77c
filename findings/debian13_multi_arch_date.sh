#!/bin/bash
# Debian 13's libpsl-dev for amd64 and for arm64 cannot be installed together, although both are Multi-Arch: same.
#
# A root for a cross build has the development files of both processors. libcurl4-gnutls-dev needs libpsl-dev.
#
# Guess:     both install side by side, because files with one name are equal in packages with Multi-Arch: same.
# Behavior:  dpkg refuses the second one. Debian rebuilt the package ("+b1") on each processor on another day, and the
#            manual page, made from DocBook, has the day of the build in it. Without manual pages (path-exclude), both
#            install.
#
# Takes libpsl-dev 0.21.2-1.1+b1 for both processors into a temporary folder. Needs a Debian with dpkg, curl, and
# root for dpkg. Exits with 1 if they behave otherwise.
set -euo pipefail
version=0.21.2-1.1+b1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' |
    grep -v security | head -1)
while read -r sha256 arch; do
    curl -sfO "${mirror%/}/pool/main/libp/libpsl/libpsl-dev_${version}_$arch.deb"
    echo "$sha256  libpsl-dev_${version}_$arch.deb" | sha256sum --check --quiet
    echo "$arch: Multi-Arch $(dpkg-deb --field "libpsl-dev_${version}_$arch.deb" Multi-Arch)"
done <<END
3f609ce40be2e3a259b98dd8b7f1b0520044ca495adf7d7b9f55f5d93de5a15e amd64
ae29329028b9663b78640ea28143be61b6729727c25c6deb0b7c010595f1858f arm64
END
install() { # where, and options
    local root=$folder/$1
    shift
    mkdir -p "$root/var/lib/dpkg/"{info,updates}
    touch "$root/var/lib/dpkg/status"
    dpkg --root="$root" --add-architecture arm64
    if dpkg --root="$root" --force-depends --force-script-chrootless "$@" --unpack ./libpsl-dev_*.deb >said 2>&1; then
        echo "both are unpacked"
    else
        grep -o "trying to overwrite shared '[^']*'" said
    fi
}
with=$(install with)
without=$(install without --path-exclude='/usr/share/man/*')
echo "all files: $with. Without manual pages: $without"
for arch in amd64 arm64; do
    dpkg-deb --fsys-tarfile "libpsl-dev_${version}_$arch.deb" | tar -xO ./usr/share/man/man3/libpsl.3.gz |
        zcat | sed -n "s/^.\\\\\"      Date: /$arch: /p"
done
[ "$with, $without" = "trying to overwrite shared '/usr/share/man/man3/libpsl.3.gz', both are unpacked" ]
