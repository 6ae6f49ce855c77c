#!/bin/bash
# npx without network runs a package that it has in its cache, but only after more than a minute.
#
# A laptop has run "npx one" before. Now it has no network, and nothing installed in the project.
#
# Guess:     npx fails after its retries, because it must ask the registry for the newest version.
# Behavior:  npx asks the registry three times, 10 and 60 seconds apart. Then it takes the stale answer and the package
#            from its cache, runs the program, and exits with 0, without a word. With --prefer-offline that takes a
#            second.
#
# Takes npm 11.19.1 into a temporary folder, and serves a registry on the loopback address. Needs node and npm. Exits
# with 1 if npx behaves otherwise. Takes 80 seconds.
set -euo pipefail
version=11.19.1
folder=$(mktemp -d)
registry=
trap 'kill $registry 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
npm install --prefix tool --silent --no-audit --no-fund "npm@$version"
# Without the settings of this machine.
export npm_config_userconfig=$folder/user npm_config_globalconfig=$folder/global npm_config_cache=$folder/cache
export npm_config_audit=false npm_config_update_notifier=false
mkdir one
echo '{"name": "one", "version": "1.0.0", "bin": "one.js"}' >one/package.json
printf '#!/usr/bin/env node\nconsole.log("ran");\n' >one/one.js
npm pack --silent ./one >/dev/null
cat >registry.js <<'END'
const crypto = require('crypto'), fs = require('fs'), http = require('http');
const data = fs.readFileSync('one-1.0.0.tgz');
const integrity = 'sha512-' + crypto.createHash('sha512').update(data).digest('base64');
const server = http.createServer((request, response) => {
    if (request.url === '/one.tgz')
        return response.end(data);
    const dist = {tarball: `http://${request.headers.host}/one.tgz`, integrity};
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({name: 'one', 'dist-tags': {latest: '1.0.0'},
        versions: {'1.0.0': {name: 'one', version: '1.0.0', bin: {one: 'one.js'}, dist}}}));
}).listen(0, '127.0.0.1', () => fs.writeFileSync('port', String(server.address().port)));
END
node registry.js &
registry=$!
until [ -s port ]; do sleep 0.1; done
npm_config_registry=http://127.0.0.1:$(cat port)/
export npm_config_registry
node tool/node_modules/npm/bin/npm-cli.js --version
try() { # words for npx
    local from=$SECONDS
    said=$(node tool/node_modules/npm/bin/npx-cli.js --yes "$@" one 2>&1 </dev/null) || true
    seconds=$((SECONDS - from))
    echo "npx $*: $said, after $seconds s"
}
try
[ "$said" = ran ]
kill $registry
wait $registry || true
try --prefer-offline
[ "$said" = ran ] && [ $seconds -lt 30 ]
try
[ "$said" = ran ] && [ $seconds -ge 60 ]
