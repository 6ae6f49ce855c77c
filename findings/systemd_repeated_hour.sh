#!/bin/bash
# An hourly systemd timer in a time zone leaves out the repeated hour, so two hours pass between two runs.
#
# On 2026-10-25 the clocks of Berlin go from 03:00 back to 02:00. A timer has OnCalendar=*:30 in that zone.
#
# Guess:     25 runs on that day, one each hour.
# Behavior:  24 runs. After 02:30 of the first hour (00:30 UTC) the next one is 03:30 (02:30 UTC).
#
# Takes systemd 252.38-1~deb12u1 of Debian into a temporary folder. Exits with 1 if systemd behaves otherwise.
set -euo pipefail
version=252.38-1~deb12u1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "systemd=$version" "libsystemd-shared=$version" tzdata >/dev/null 2>&1 ||
    { echo "apt-get cannot download systemd $version" >&2; exit 1; }
for package in *.deb; do dpkg-deb -x "$package" .; done
LD_LIBRARY_PATH=$(dirname "$(find "$folder" -name 'libsystemd-shared-*.so')")
export LD_LIBRARY_PATH TZDIR=$folder/usr/share/zoneinfo TZ=UTC
usr/bin/systemd-analyze --version | head -1
times=$(usr/bin/systemd-analyze calendar --base-time='2026-10-24 23:00:00 UTC' --iterations=4 '*:30 Europe/Berlin' |
    grep -oE '[0-9]{2}:30:00 UTC' | tr '\n' ' ')
echo "$times"
[ "$times" = '23:30:00 UTC 00:30:00 UTC 02:30:00 UTC 03:30:00 UTC ' ]
