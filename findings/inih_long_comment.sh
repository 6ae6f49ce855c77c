#!/bin/bash
# libinih 55 takes the end of a long comment for a setting.
#
# libinih reads a file line by line into 200 bytes. A comment of a configuration file is longer, as comments with an
# address or a list are, and an "=" stands in its second half.
#
# Guess:     55 and later versions behave alike. The rest of a long line is dropped or an error, and a comment of any
#            length stays a comment.
# Behavior:  55 (Debian 12) reads the rest as the next line. It reports a setting out of the comment, and returns 0.
#            59 (Debian 13) and 61 report no setting, and return the number of the line, also for a comment. So a file
#            that one version accepts is an error with the other.
#
# Takes libinih 55 of the Debian of this machine and 59 of Debian 13 into a temporary folder. Needs Debian 12, python3
# and curl. Exits with 1 if libinih behaves otherwise.
set -euo pipefail
old=55-1 new=59-1
sha256=22e51939acb45906a57851508290782a2a704fce5208e213e951268b3c799c4a
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "libinih1=$old" >/dev/null 2>&1 || { echo "apt-get cannot download libinih1 $old" >&2; exit 1; }
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' |
    grep -v security | head -1)
curl -sfO "${mirror%/}/pool/main/libi/libinih/libinih1_${new}_amd64.deb"
echo "$sha256  libinih1_${new}_amd64.deb" | sha256sum --check --quiet
for version in "$old" "$new"; do
    dpkg-deb -x "libinih1_${version}_amd64.deb" "$version"
done
cat >try.py <<'END'
import ctypes, sys

inih = ctypes.CDLL(sys.argv[1])
HANDLER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p)
found = []

def handle(_, section, name, value):
    found.append("%s=%s" % (name.decode(), value.decode()))
    return 1

sentence = "# The server is listed here: "
for fill in 10, 170:  # the comment is shorter, and longer, than 200 bytes
    found.clear()
    text = sentence + "x" * fill + " port = 80\ncolor = red\n"
    failed = inih.ini_parse_string(text.encode(), HANDLER(handle), None)
    print("%d: %d %s" % (len(text.split("\n")[0]), failed, " ".join(found)), end="; ")
END
expect() { # version, what it found
    local said
    said=$(python3 try.py "$(find "$1" -name libinih.so.1)")
    echo "$1: $said"
    [ "$said" = "$2" ] || exit 1
}
expect "$old" '49: 0 color=red; 209: 0 port=80 color=red; '
expect "$new" '49: 0 color=red; 209: 1 color=red; '
