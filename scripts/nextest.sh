#!/usr/bin/env bash
# Runs Rust tests with cargo-nextest, each in its own process, and prints slow tests and tests that could not
# run.
#
#   nextest.sh ARGUMENTS OF `nextest run`...
set -uo pipefail
cd "$(dirname "$0")/.."
profile=${NEXTEST_PROFILE:-default}
export NEXTEST_TEST_THREADS=${NEXTEST_TEST_THREADS:-$((2 * $(nproc) + 1))}
readonly report=${CARGO_TARGET_DIR:-target}/nextest/$profile/junit.xml
rm -f "$report"
code=0
.venv/bin/cargo-nextest nextest run --no-input-handler "$@" || code=$?
if [ -f "$report" ]; then .venv/bin/python scripts/junit.py "$report" || code=1; fi
exit $code
