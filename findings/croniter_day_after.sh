#!/bin/bash
# croniter with a zone of zoneinfo runs a daily job an hour late on the day after the clocks went back.
#
# On 2026-10-25 the clocks of Berlin go from 03:00 back to 02:00. A job runs daily at 02:30.
#
# Guess:     it runs twice on that day, and at 02:30 on the next ones.
# Behavior:  it runs once on that day, at 03:30 on the next one, and at 02:30 from then on.
#
# Takes python3-croniter 1.3.5-3 of Debian into a temporary folder. Needs python3 of Debian with dateutil. Exits with 1
# if croniter behaves otherwise.
set -euo pipefail
version=1.3.5-3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "python3-croniter=$version" tzdata python3-dateutil python3-six python3-natsort \
    >/dev/null 2>&1 || { echo "apt-get cannot download python3-croniter $version" >&2; exit 1; }
for package in *.deb; do dpkg-deb -x "$package" .; done
times=$(PYTHONPATH=$folder/usr/lib/python3/dist-packages PYTHONTZPATH=$folder/usr/share/zoneinfo python3 -W ignore -c '
import datetime, croniter, zoneinfo
start = datetime.datetime(2026, 10, 24, 12, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
times = croniter.croniter("30 2 * * *", start)
print(*(times.get_next(datetime.datetime).strftime("%dT%H:%M%z") for _ in range(3)))')
echo "croniter $version: $times"
[ "$times" = '25T02:30+0200 26T03:30+0100 27T02:30+0100' ]
