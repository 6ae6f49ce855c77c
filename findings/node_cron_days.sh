#!/bin/bash
# node-cron requires both the day of the month and the weekday. crontab(5) and POSIX require either.
#
# A job has the expression "0 0 13 * 5": the 13th and Friday.
#
# Guess:     it runs on each 13th and on each Friday, as with cron.
# Behavior:  it runs on Fridays that are a 13th: once in November 2026, then in August 2027.
#
# Takes node-cron 4.6.0 into a temporary folder. Needs node, npm and faketime. Exits with 1 if node-cron behaves
# otherwise.
set -euo pipefail
version=4.6.0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund "node-cron@$version" >/dev/null
times=$(TZ=UTC faketime -f '@2026-11-01 00:00:00' node -e '
const task = require("node-cron").createTask("0 0 13 * 5", () => {}, { timezone: "UTC" })
task.start()
console.log(task.getNextRuns(2).map((run) => run.toISOString().slice(0, 10)).join(" "))
process.exit(0)')
echo "node-cron $version: $times"
[ "$times" = '2026-11-13 2027-08-13' ]
