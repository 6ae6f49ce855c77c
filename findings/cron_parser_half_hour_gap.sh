#!/bin/bash
# cron-parser moves a daily job out of a gap of an hour, and drops it in a gap of half an hour.
#
# On 2027-03-28 the clocks of Berlin go from 02:00 to 03:00, and a job runs at 02:30. On 2026-10-04 those of Lord Howe
# Island go from 02:00 to 02:30, and a job runs at 02:15.
#
# Guess:     both run at the end of the gap, at 03:00 and at 02:30.
# Behavior:  the first runs an hour later, at 03:30. The second does not run on that day.
#
# Takes cron-parser 5.10.6 into a temporary folder. Needs node and npm. Exits with 1 if cron-parser behaves otherwise.
set -euo pipefail
version=5.10.6
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund "cron-parser@$version" >/dev/null
times=$(node -e '
const { CronExpressionParser } = require("cron-parser")
const next = (expression, tz, from) => CronExpressionParser.parse(expression, { tz, currentDate: new Date(from) })
    .next().toDate().toISOString().slice(0, 16)
console.log(next("30 2 * * *", "Europe/Berlin", "2027-03-27T12:00Z"))
console.log(next("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00Z"))')
echo "cron-parser $version:" "$times"
[ "$times" = $'2027-03-28T01:30\n2026-10-04T15:15' ]
