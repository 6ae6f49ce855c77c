#!/bin/bash
# npm links the command of a dependency instead of the command of the package, if the name of the dependency sorts first.
#
# A package has a command, a script that starts the program of its platform. The program is in an optional dependency,
# which also has it as a command of the same name.
#
# Guess:     node_modules/.bin has the command of the package that the project depends on.
# Behavior:  of all packages in node_modules, npm links the one that sorts first. A scoped name (@one/linux-x64) sorts
#            before all others. npx runs the same one. A global installation links the command of the package.
#
# Takes npm 11.19.1 into a temporary folder. Needs node and npm. Exits with 1 if npm behaves otherwise.
set -euo pipefail
version=11.19.1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --prefix tool --silent --no-audit --no-fund "npm@$version"
# Without the settings of this machine.
export npm_config_userconfig=$folder/user npm_config_globalconfig=$folder/global npm_config_cache=$folder/cache
export npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false npm_config_offline=true
npm() {
    node "$folder/tool/node_modules/npm/bin/npm-cli.js" "$@"
}
npm --version
pack() { # folder, name, more fields
    mkdir -p "$1"
    echo "{\"name\": \"$2\", \"version\": \"1.0.0\", \"bin\": {\"one\": \"one.js\"}$3}" >"$1/package.json"
    printf '#!/usr/bin/env node\nconsole.log("%s");\n' "$2" >"$1/one.js"
    npm pack --silent "./$1"
}
try() { # name of the dependency, command that is expected in a project
    local name=$1 wanted=$2
    rm -rf project globally
    file=$(pack dependency "$name" '')
    pack package one ", \"optionalDependencies\": {\"$name\": \"file:$folder/$file\"}" >/dev/null
    mkdir project
    cd project
    echo '{"name": "project", "private": true}' >package.json
    npm install --silent ../one-1.0.0.tgz
    seen="project: $(node_modules/.bin/one), npx: $(npm exec one)"
    cd ..
    npm install --silent --global --prefix globally ./one-1.0.0.tgz
    seen="$seen, global: $(globally/bin/one)"
    echo "dependency $name: $seen"
    [ "$seen" = "project: $wanted, npx: $wanted, global: one" ] || exit 1
}
try @one/linux-x64 @one/linux-x64
try a-linux-x64 a-linux-x64
try one-linux-x64 one
