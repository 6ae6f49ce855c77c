#!/bin/bash
# robfig/cron, which Kubernetes uses, takes either of "every second day" and a weekday. crontab(5) requires both there.
#
# A job has the expression "0 0 */2 * 1". For cron a field that begins with a star does not restrict the day by itself.
#
# Guess:     it runs on odd days that are Mondays, as with cron: first on 2026-11-09.
# Behavior:  it runs on Mondays and on odd days: first on 2026-11-02 and 2026-11-03.
#
# Takes golang-github-robfig-cron-dev 3.0.1-1 of Debian into a temporary folder. Needs go. Exits with 1 if it behaves
# otherwise.
set -euo pipefail
version=3.0.1-1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "golang-github-robfig-cron-dev=$version" >/dev/null 2>&1 ||
    { echo "apt-get cannot download golang-github-robfig-cron-dev $version" >&2; exit 1; }
dpkg-deb -x ./*.deb .
mkdir -p usr/share/gocode/src/next
cat >usr/share/gocode/src/next/next.go <<'END'
package main

import (
	"fmt"
	"time"

	"github.com/robfig/cron"
)

func main() {
	schedule, _ := cron.ParseStandard("0 0 */2 * 1")
	next := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for i := 0; i < 2; i++ {
		next = schedule.Next(next)
		fmt.Print(next.Format("2006-01-02 "))
	}
}
END
times=$(GO111MODULE=off GOFLAGS='' GOCACHE=$folder/cache GOPATH=$folder/usr/share/gocode go run next)
echo "robfig/cron $version: $times"
[ "$times" = '2026-11-02 2026-11-03 ' ]
