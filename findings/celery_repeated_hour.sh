#!/bin/bash
# An hourly job of Celery's beat leaves out the second of two equal hours, so two hours pass between two runs.
#
# On 2026-10-25 the clocks of Berlin go from 03:00 back to 02:00. A crontab schedule runs at minute 30. The script asks it
# as beat does: it waits as long as the schedule says, at most five minutes, and asks again.
#
# Guess:     a run each hour.
# Behavior:  after 02:30 of the first hour (00:30 UTC) the next run is at 03:30 (02:30 UTC).
#
# Takes python3-celery 5.2.6-5 of Debian into a temporary folder. Needs python3 of Debian. Exits with 1 if Celery behaves
# otherwise.
set -euo pipefail
version=5.2.6-5
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "python3-celery=$version" python3-kombu python3-vine python3-billiard python3-amqp python3-tz \
    python3-click python3-click-didyoumean python3-click-plugins python3-click-repl python3-prompt-toolkit \
    python3-wcwidth python3-six tzdata >/dev/null 2>&1 ||
    { echo "apt-get cannot download python3-celery $version" >&2; exit 1; }
for package in *.deb; do dpkg-deb -x "$package" .; done
times=$(PYTHONPATH=$folder/usr/lib/python3/dist-packages python3 -W ignore -c '
import datetime, pytz
from celery import Celery
from celery.schedules import crontab
berlin = pytz.timezone("Europe/Berlin")
app = Celery("jobs")
app.conf.timezone = "Europe/Berlin"
last = now = datetime.datetime(2026, 10, 24, 23, tzinfo=pytz.utc)
hourly = crontab(minute="30", app=app, nowfun=lambda: now.astimezone(berlin))
times = []
while len(times) < 4:
    due, seconds = hourly.is_due(last.astimezone(berlin))
    if due:
        times.append(now.strftime("%dT%H:%MZ"))
        last = now
    now += datetime.timedelta(seconds=max(1, min(seconds, 300)))
print(*times)')
echo "Celery $version: $times"
[ "$times" = '24T23:30Z 25T00:30Z 25T02:30Z 25T03:30Z' ]
