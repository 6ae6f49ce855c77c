#!/bin/bash
# SIGTERM to npx ends npx and not the program that it runs.
#
# A test starts a server with "npx one &", and sends SIGTERM to the process that it has started.
#
# Guess:     npx passes the signal on, waits for the program, and exits with its status.
# Behavior:  npx ends within a second with status 143. The program receives no signal and goes on. npx runs it with
#            "sh -c", and passes the signal to the shell. dash ends, and leaves the program behind.
#
# Takes npm 11.19.1 and dash 0.5.12 of Debian 12 into a temporary folder. Needs node and npm. Exits with 1 if npx
# behaves otherwise.
set -euo pipefail
version=11.19.1 dash=0.5.12-2
folder=$(mktemp -d)
trap 'kill -9 "$(cat "$folder/pid")" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq "dash=$dash" >/dev/null 2>&1 || { echo "apt-get cannot download dash $dash" >&2; exit 1; }
dpkg-deb -x dash_*.deb shell
npm install --prefix tool --silent --no-audit --no-fund "npm@$version"
# Without the settings of this machine.
export npm_config_userconfig=$folder/user npm_config_globalconfig=$folder/global npm_config_cache=$folder/cache
export npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false npm_config_offline=true
npm_config_script_shell=$(find "$folder/shell" -type f -name dash -path '*/bin/*')
export npm_config_script_shell
mkdir one project
echo '{"name": "one", "version": "1.0.0", "bin": {"one": "one.js"}}' >one/package.json
cat >one/one.js <<'END'
#!/usr/bin/env node
const fs = require('fs');
process.on('SIGTERM', () => fs.writeFileSync('received', 'SIGTERM'));
fs.writeFileSync('pid', String(process.pid));
setTimeout(() => {}, 10000);
END
node tool/node_modules/npm/bin/npm-cli.js --version
node tool/node_modules/npm/bin/npm-cli.js pack --silent ./one >/dev/null
node tool/node_modules/npm/bin/npm-cli.js install --silent --prefix project ./one-1.0.0.tgz

start() { # words to run
    rm -f pid received
    "$@" >/dev/null 2>&1 &
    process=$!
    until [ -s pid ]; do sleep 0.1; done
}
start node project/node_modules/.bin/one
kill -TERM $process
until [ -s received ]; do sleep 0.1; done
kill -9 $process
wait $process 2>/dev/null || true
echo "without npx: the program received $(cat received)"

start node tool/node_modules/npm/bin/npx-cli.js --prefix project one
kill -TERM $process
status=0
wait $process || status=$?
sleep 1
program=ended
kill -0 "$(cat pid)" 2>/dev/null && program=runs
echo "with npx: exit status $status, the program $program, and received $(cat received 2>/dev/null || echo nothing)"
[ "$status $program" = '143 runs' ] && [ ! -e received ]
