#!/bin/bash
# cron-expression of PHP, which Laravel's scheduler uses, accepts a step of 90 minutes and runs at minute 30 of each hour.
#
# The field has 60 minutes. cron runs "*/90" at minute 0 of each hour, and other libraries refuse it.
#
# Guess:     it is refused, or runs at minute 0.
# Behavior:  it runs at minute 30.
#
# Takes php-dragonmantank-cron-expression 3.3.1-2 of Debian into a temporary folder. Needs php. Exits with 1 if it behaves
# otherwise.
set -euo pipefail
version=3.3.1-2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "php-dragonmantank-cron-expression=$version" php-webmozart-assert >/dev/null 2>&1 ||
    { echo "apt-get cannot download php-dragonmantank-cron-expression $version" >&2; exit 1; }
for package in *.deb; do dpkg-deb -x "$package" .; done
times=$(php -r '
spl_autoload_register(fn ($name) => include "usr/share/php/" . str_replace("\\", "/", $name) . ".php");
$runs = (new Cron\CronExpression("*/90 * * * *"))->getMultipleRunDates(3, "2026-11-01 00:00:00", false, false, "UTC");
echo implode(" ", array_map(fn ($run) => $run->format("H:i"), $runs)), "\n";')
echo "cron-expression $version: $times"
[ "$times" = '00:30 01:30 02:30' ]
