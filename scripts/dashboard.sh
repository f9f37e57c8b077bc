#!/usr/bin/env bash
# Builds and tests the page of the dashboard. Only this needs node: cargo embeds dashboard/dist unchanged.
#
#   dashboard.sh build   builds dashboard/dist from its sources
#   dashboard.sh check   checks the types of the sources, and that dashboard/dist matches them
#   dashboard.sh test    tests the page in headless Chromium with a mock, a running robot, and rnet demo
set -euo pipefail
cd "$(dirname "$0")/../dashboard"
readonly what=${1:?build, check or test}

if ! node_path=$(../scripts/node.sh --path); then
    why="there is no node 20.19 or newer with npm, and it could not be installed"
    if [ "$what" = build ]; then echo "dashboard: $why" >&2 && exit 1; fi
    echo "NOT RUN: dashboard/$what: $why"
    exit 0
fi
PATH=$node_path$PATH

# The lock file contains every version with its checksum. Installed packages already match it.
if ! cmp -s package-lock.json node_modules/.rnet-lock.json; then
    npm ci --no-fund --no-audit --ignore-scripts
    cp package-lock.json node_modules/.rnet-lock.json
fi

case $what in
build)
    npx --no-install tsc --noEmit
    npx --no-install vite build
    ;;
check)
    npx --no-install tsc --noEmit
    built=$(mktemp -d)
    trap 'rm -rf "$built"' EXIT
    npx --no-install vite build --logLevel warn --outDir "$built" --emptyOutDir
    diff -r "$built" dist || {
        echo "dashboard: dashboard/dist does not match its sources: run 'make dashboard', and commit the result" >&2
        exit 1
    }
    echo "dashboard/dist matches its sources"
    ;;
test)
    # One browser at a time: more would overload a small machine.
    node --test --test-concurrency=1 --test-reporter=./tests/reporter.mjs tests/*.test.mjs
    ;;
*)
    echo "dashboard: unknown argument: $what" >&2
    exit 2
    ;;
esac
