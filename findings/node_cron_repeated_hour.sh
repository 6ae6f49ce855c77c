#!/bin/bash
# An hourly job of node-cron leaves out the first of two equal hours, and a daily one runs in the second.
#
# On 2026-10-25 the clocks of Berlin go from 03:00 back to 02:00. One job runs at minute 30, another one daily at 02:30.
#
# Guess:     the first runs each hour, the second runs twice.
# Behavior:  no job runs at the first 02:30 (00:30 UTC). Both run at the second (01:30 UTC).
#
# Takes node-cron 4.6.0 into a temporary folder. Needs node, npm and faketime. Exits with 1 if node-cron behaves
# otherwise.
set -euo pipefail
version=4.6.0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund "node-cron@$version" >/dev/null
times=$(TZ=UTC faketime -f '@2026-10-24 23:00:00' node -e '
for (const expression of ["30 * * * *", "30 2 * * *"]) {
    const task = require("node-cron").createTask(expression, () => {}, { timezone: "Europe/Berlin" })
    task.start()
    console.log(task.getNextRuns(2).map((run) => run.toISOString().slice(8, 16)).join(" "))
}
process.exit(0)')
echo "node-cron $version:" "$times"
[ "$times" = $'24T23:30 25T01:30\n25T01:30 26T01:30' ]
