#!/bin/bash
# croniter with a pytz zone runs a daily job at three wrong times around the day without its hour.
#
# On 2027-03-28 the clocks of Berlin go from 02:00 to 03:00. A job runs daily at 02:30.
#
# Guess:     it runs at 03:30 on that day, and at 02:30 on the next ones.
# Behavior:  it runs at 01:30, which croniter calls 02:30+02:00, and again at 03:30. On the next day it runs at 01:30.
#
# Takes python3-croniter 1.3.5-3 and python3-tz of Debian into a temporary folder. Needs python3 of Debian with dateutil.
# Exits with 1 if croniter behaves otherwise.
set -euo pipefail
version=1.3.5-3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "python3-croniter=$version" python3-tz tzdata python3-dateutil python3-six python3-natsort \
    >/dev/null 2>&1 || { echo "apt-get cannot download python3-croniter $version" >&2; exit 1; }
for package in *.deb; do dpkg-deb -x "$package" .; done
times=$(PYTHONPATH=$folder/usr/lib/python3/dist-packages PYTHONTZPATH=$folder/usr/share/zoneinfo python3 -W ignore -c '
import datetime, croniter, pytz
berlin = pytz.timezone("Europe/Berlin")
times = croniter.croniter("30 2 * * *", berlin.localize(datetime.datetime(2027, 3, 27, 12)))
print(*(times.get_next(datetime.datetime).strftime("%dT%H:%M%z") for _ in range(3)))')
echo "croniter $version: $times"
[ "$times" = '28T02:30+0200 28T03:30+0200 29T01:30+0200' ]
