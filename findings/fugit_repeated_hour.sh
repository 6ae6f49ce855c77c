#!/bin/bash
# fugit, which Rails' Solid Queue uses for recurring jobs, runs a daily job twice when its hour is repeated.
#
# On 2026-10-25 the clocks of Berlin go from 03:00 back to 02:00. A job runs daily at 02:30.
#
# Guess:     it runs once, at the first 02:30.
# Behavior:  it runs at both, an hour apart.
#
# Takes ruby-fugit 1.5.2-1 of Debian into a temporary folder. Needs ruby. Exits with 1 if fugit behaves otherwise.
set -euo pipefail
version=1.5.2-1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "ruby-fugit=$version" ruby-et-orbi ruby-raabro ruby-tzinfo ruby-concurrent >/dev/null 2>&1 ||
    { echo "apt-get cannot download ruby-fugit $version" >&2; exit 1; }
for package in *.deb; do dpkg-deb -x "$package" .; done
mapfile -t paths < <(find . -path '*gems*' -type d \( -name lib -o -name concurrent-ruby \))
times=$(ruby "${paths[@]/#/-I}" -I usr/lib/ruby/vendor_ruby -e '
require "fugit"
time = EtOrbi::EoTime.parse("2026-10-24T12:00:00Z")
daily = Fugit::Cron.parse("30 2 * * * Europe/Berlin")
puts 3.times.map { (time = daily.next_time(time)).utc.strftime("%dT%H:%MZ") }.join(" ")')
echo "fugit $version: $times"
[ "$times" = '25T00:30Z 25T01:30Z 26T01:30Z' ]
