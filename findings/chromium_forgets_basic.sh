#!/bin/bash
# Chromium forgets the password of a site when one response below it is a 401 for another scheme.
#
# A proxy asks for a password (Basic), and the application behind it for a token (Bearer). The browser has logged
# in at the proxy. Then a script gets a 401 with "WWW-Authenticate: Bearer" from the application.
#
# Guess:     the password stays in the cache. The 401 has no Basic challenge, so it does not concern the password.
# Behavior:  Chromium drops the password. The next request has no Authorization, and the proxy asks once more.
#            After a 403 it keeps the password.
#
# Needs node, and Chromium of Debian (CHROMIUM). Prints its version and exits with 1 if it behaves otherwise.
set -euo pipefail
chromium=${CHROMIUM:-/usr/bin/chromium}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$chromium" --version 2>/dev/null

cat >"$folder/server.js" <<'END'
const {spawn} = require('child_process');
const [chromium, status, profile] = process.argv.slice(2);
const seen = [];
const page = `<script>(async () => {
  await fetch(location.origin + '/api/first');
  await fetch(location.origin + '/api/refused');
  await fetch(location.origin + '/api/next').catch(() => {});
  await fetch(location.origin + '/done');
})()</script>`;
const server = require('http').createServer((request, response) => {
  const basic = (request.headers.authorization || '').startsWith('Basic ');
  if (request.url.startsWith('/api/'))
    seen.push(`${request.url.slice(5)} ${basic ? 'with' : 'without'} password`);
  if (request.url === '/api/next' || request.url === '/done') {
    response.end();
    console.log(seen.join(', '));
    browser.kill();
    server.close();
    server.closeAllConnections();
  } else if (!basic) {
    response.writeHead(401, {'WWW-Authenticate': 'Basic realm="proxy"'}).end();
  } else if (request.url === '/api/refused') {
    response.writeHead(Number(status), status === '401' ? {'WWW-Authenticate': 'Bearer'} : {}).end();
  } else {
    response.writeHead(200, {'Content-Type': 'text/html'}).end(page);
  }
});
let browser;
server.listen(0, '127.0.0.1', () => {
  browser = spawn(chromium, ['--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync',
    '--user-data-dir=' + profile, `http://ann:secret@127.0.0.1:${server.address().port}/`], {stdio: 'ignore'});
});
END

expect() { # status of the refusal, what the server has seen
    local said
    said=$(timeout 60 node "$folder/server.js" "$chromium" "$1" "$folder/profile$1")
    echo "after $1: $said"
    [ "$said" = "$2" ] || exit 1
}
expect 403 'first with password, refused with password, next with password'
expect 401 'first with password, refused with password, next without password'
