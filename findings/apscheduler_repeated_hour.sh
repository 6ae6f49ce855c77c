#!/bin/bash
# A daily job of APScheduler runs in the second of two equal hours, and an hourly one leaves out the first.
#
# On 2026-10-25 the clocks of Berlin go from 03:00 back to 02:00. One job runs daily at 02:30, another one at minute 30.
#
# Guess:     the first runs at the first 02:30 (00:30 UTC), the second each hour.
# Behavior:  no job runs at the first 02:30. Both run at the second (01:30 UTC).
#
# Takes python3-apscheduler 3.9.1-2 of Debian into a temporary folder. Needs python3 of Debian. Exits with 1 if
# APScheduler behaves otherwise.
set -euo pipefail
version=3.9.1-2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "python3-apscheduler=$version" python3-tz python3-tzlocal python3-pytz-deprecation-shim python3-six \
    python3-dateutil tzdata >/dev/null 2>&1 ||
    { echo "apt-get cannot download python3-apscheduler $version" >&2; exit 1; }
for package in *.deb; do dpkg-deb -x "$package" .; done
times=$(PYTHONPATH=$folder/usr/lib/python3/dist-packages python3 -W ignore -c '
import datetime, pytz
from apscheduler.triggers.cron import CronTrigger
for expression in "30 2 * * *", "30 * * * *":
    trigger = CronTrigger.from_crontab(expression, timezone=pytz.timezone("Europe/Berlin"))
    last, now, times = None, datetime.datetime(2026, 10, 24, 23, tzinfo=pytz.utc), []
    for _ in range(2):
        last = now = trigger.get_next_fire_time(last, now)
        times.append(now.astimezone(pytz.utc).strftime("%dT%H:%MZ"))
    print(*times)')
echo "APScheduler $version:" "$times"
[ "$times" = $'25T01:30Z 26T01:30Z\n24T23:30Z 25T01:30Z' ]
