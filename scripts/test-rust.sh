#!/usr/bin/env bash
# The tests of the workspace, as two runs of cargo at a time: a run has one test executable after the other, and most
# tests wait for something. What the second run prints is shown behind the first one.
#
# Each run is of the whole workspace, so that its features are the same and nothing is built twice. Which executables
# are its own is decided where cargo starts them: `test-rust.sh --half N EXECUTABLE...`.
set -uo pipefail

if [ "${1-}" = --half ]; then
    readonly half=$2
    shift 2
    # By the first letter, the two halves take about as long as each other.
    name=${1##*/}
    if [[ ${name:0:1} > l ]]; then its=2; else its=1; fi
    if [ $its -ne "$half" ]; then exit 0; fi
    exec "$@"
fi

cd "$(dirname "$0")/.."
second=$(mktemp)
readonly second
trap 'rm -f "$second"' EXIT
run() { # HALF
    local runner=\"$PWD/scripts/test-rust.sh\",\"--half\",\"$1\"
    cargo --config "target.'cfg(all())'.runner=[$runner]" \
        test --workspace --no-fail-fast --lib --bins --tests --examples
}

cargo test --workspace --no-run --quiet --lib --bins --tests --examples || exit
run 2 >"$second" 2>&1 &
code=0
run 1 || code=1
wait $! || code=1
cat "$second"
exit $code
