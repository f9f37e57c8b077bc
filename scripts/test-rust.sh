#!/usr/bin/env bash
# The tests of the workspace, as two runs of cargo at a time: a run has one test executable after the other, and most
# tests wait for something. What the second run prints is shown behind the first one.
set -uo pipefail
cd "$(dirname "$0")/.."

# Features are those of the whole workspace, so that nothing is built twice.
readonly tests=(cargo test --workspace --no-fail-fast)
"${tests[@]}" --no-run --lib --bins --tests --examples || exit

# About as long as each other: by the first letter of the file in tests/.
second=$(mktemp)
trap 'rm -f "$second"' EXIT
"${tests[@]}" --test '[m-z]*' >"$second" 2>&1 &
code=0
"${tests[@]}" --lib --bins --examples --test '[a-l]*' || code=1
wait $! || code=1
cat "$second"
exit $code
