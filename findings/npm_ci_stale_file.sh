#!/bin/bash
# npm ci installs the old content of a package file that has changed, and exits with 0.
#
# A project depends on a file, one.tgz. The file is built again with the same version. package-lock.json has the
# checksum of the first one.
#
# Guess:     npm ci reads the file, and fails because the checksum is another (EINTEGRITY).
# Behavior:  npm ci takes the content with the checksum of the lock file from its cache, and does not look at the file.
#            npm install does the same, also after node_modules was removed. With an empty cache both fail.
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
pack() { # content
    echo "$1" >one/content
    npm pack --silent --pack-destination project ./one >/dev/null
}
mkdir one project
echo '{"name": "one", "version": "1.0.0"}' >one/package.json
echo '{"name": "project", "private": true}' >project/package.json
pack old
cd project
npm install --silent ./one-1.0.0.tgz
cd ..
pack new
cd project
echo "the file: $(tar -xOzf one-1.0.0.tgz package/content)"
expect() { # what is seen, words for npm
    local wanted=$1
    shift
    rm -rf node_modules
    if npm "$@" >/dev/null 2>error; then
        seen=$(cat node_modules/one/content)
    else
        seen=$(grep -o EINTEGRITY error | head -1)
    fi
    echo "npm $*: $seen"
    [ "$seen" = "$wanted" ] || exit 1
}
expect old ci
expect old install
rm -rf "$folder/cache"
expect EINTEGRITY ci
expect EINTEGRITY install
