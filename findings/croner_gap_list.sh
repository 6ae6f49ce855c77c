#!/bin/bash
# croner moves a job of one minute out of the hour that does not exist, and drops a job of several minutes.
#
# On 2027-03-28 the clocks of Berlin go from 02:00 to 03:00. One job runs daily at 02:30, another one at 02:00, 02:20 and
# 02:40.
#
# Guess:     the first runs at 03:30, the second once at 03:00.
# Behavior:  the first runs at 03:00. The second does not run on that day.
#
# Takes croner 11.0.1 into a temporary folder. Needs node and npm. Exits with 1 if croner behaves otherwise.
set -euo pipefail
version=11.0.1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund "croner@$version" >/dev/null
times=$(node -e '
const { Cron } = require("croner")
for (const expression of ["30 2 * * *", "*/20 2 * * *"])
    console.log(new Cron(expression, { timezone: "Europe/Berlin" })
        .nextRun(new Date("2027-03-27T12:00Z")).toISOString().slice(8, 17))')
echo "croner $version:" "$times"
[ "$times" = $'28T01:00:\n29T00:00:' ]
