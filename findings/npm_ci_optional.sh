#!/bin/bash
# npm ci of npm 11 refuses the lock file that npm install of npm 11 wrote, if an optional dependency was not available.
#
# A package has a program for each platform in an optional dependency. A project without network installs the package
# and the dependency for its own platform from files. The other one is not there.
#
# Guess:     npm install skips the missing dependency, and npm ci repeats that from the lock file.
# Behavior:  npm install exits with 0, and writes a lock file without the missing dependency. npm ci 11.19 then refuses
#            the lock file: "Missing: one-elsewhere@ from lock file". npm ci 10.9 takes it.
#
# Takes npm 10.9.2 and 11.19.1 into a temporary folder. Needs node and npm. Exits with 1 if npm behaves otherwise.
set -euo pipefail
old=10.9.2 new=11.19.1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for version in $old $new; do
    mkdir "tool-$version"
    npm install --prefix "tool-$version" --silent --no-audit --no-fund "npm@$version"
done
# Without the settings of this machine.
export npm_config_userconfig=$folder/user npm_config_globalconfig=$folder/global npm_config_cache=$folder/cache
export npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false npm_config_offline=true
mkdir one here
echo '{"name": "one", "version": "1.0.0", "optionalDependencies": {"one-here": "1.0.0", "one-elsewhere": "1.0.0"}}' \
    >one/package.json
echo '{"name": "one-here", "version": "1.0.0"}' >here/package.json
for package in one here; do npm pack --silent "./$package" >/dev/null; done

try() { # version of npm
    local npm=../tool-$1/node_modules/npm/bin/npm-cli.js
    rm -rf project
    mkdir project
    cd project
    echo '{"name": "project", "private": true}' >package.json
    node "$npm" --version
    node "$npm" install ../one-1.0.0.tgz ../one-here-1.0.0.tgz >/dev/null 2>&1
    echo "npm install: $(ls node_modules | tr '\n' ' ')"
    grep -o '"node_modules/[^"]*"' package-lock.json | tr '\n' ' '
    echo 'in the lock file'
    ci='npm ci: exit status 0'
    node "$npm" ci >/dev/null 2>error || ci="npm ci: $(grep -oE 'EUSAGE|Missing: .*' error | tr '\n' ' ')"
    echo "$ci"
    cd ..
}
try $old
[ "$ci" = 'npm ci: exit status 0' ]
try $new
[ "$ci" = 'npm ci: EUSAGE Missing: one-elsewhere@ from lock file ' ]
