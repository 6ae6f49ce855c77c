#!/bin/bash
# The kind of the time zone object decides in which of two equal hours a job of APScheduler runs.
#
# On 2026-10-25 the clocks of Berlin go from 03:00 back to 02:00. A job runs daily at 02:30. Its zone is one of the
# module zoneinfo, then one of pytz with the same name.
#
# Guess:     with both it runs at the second 02:30 (01:30 UTC), as seen with pytz.
# Behavior:  with zoneinfo it runs at the first 02:30 (00:30 UTC), with pytz at the second.
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
import datetime, pytz, zoneinfo
from apscheduler.triggers.cron import CronTrigger
for zone in zoneinfo.ZoneInfo("Europe/Berlin"), pytz.timezone("Europe/Berlin"):
    trigger = CronTrigger.from_crontab("30 2 * * *", timezone=zone)
    due = trigger.get_next_fire_time(None, datetime.datetime(2026, 10, 24, 23, tzinfo=datetime.timezone.utc))
    print(due.astimezone(datetime.timezone.utc).strftime("%dT%H:%MZ"))')
echo "APScheduler $version:" "$times"
[ "$times" = $'25T00:30Z\n25T01:30Z' ]
