#!/usr/bin/env bash
# Runs one step of the Makefile under a headline, and says how it ended and how long it took.
#
#   step.sh [--tests] NAME COMMAND...   run the step; with --tests, no test run is a failure
#   step.sh --start                     forget the steps of an earlier run
#   step.sh --summary                   all steps since --start, with the end of what failed
#
# The whole output stands in target/steps/NAME.log. A step that hangs is ended after
# STEP_LIMIT_S seconds (default 900). A line "step-note: ..." of its output is shown in the summary:
# a check that could not check anything must not look like one that did.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly logs=target/steps
readonly results=$logs/results.txt

summary() {
    echo
    cat "$results"
    # What failed is shown again, because it may stand far above.
    grep '^FAILED' "$results" | while read -r _ name _; do
        printf '\n== the end of %s.log\n' "$logs/$name"
        tail -n 60 "$logs/$name.log"
    done || true
}

# Sums up "12 passed" as cargo's test harness and pytest print it.
count_tests() {
    { grep -oE '[0-9]+ passed' "$1" || true; } | awk '{ n += $1 } END { print n + 0 }'
}

mkdir -p "$logs"
case ${1-} in
--start) : >"$results" && exit ;;
--summary) summary && exit ;;
--tests) counted=yes && shift ;;
*) counted=no ;;
esac
name=$1 log=$logs/$1.log
shift

printf '\n== %s: %s\n' "$name" "$*"
start=$SECONDS code=0
# `set -m` gives the command a process group of its own with SIGINT at its default, which bash would
# otherwise switch off behind `&`. The output goes by way of a file and not of a pipe, so that a
# process left behind by the command cannot hold this one up.
: >"$log"
set -m
timeout --kill-after=10 "${STEP_LIMIT_S:-900}" "$@" </dev/null >"$log" 2>&1 &
set +m
child=$!
trap 'kill "$child" 2>/dev/null; exit 130' INT TERM
tail --lines=+1 --follow --sleep-interval=0.1 --pid="$child" "$log" &
wait $! || true # unlike a command in the foreground, this lets the trap run at once
wait "$child" || code=$?
took="$((SECONDS - start)) s"

result=ok note=$(sed -n 's/^step-note: //p' "$log" | tail -n 1)
case $code in 124 | 137) note="ended after $took: it hung, or STEP_LIMIT_S is too short" ;; esac
if [ "$counted" = yes ]; then
    tests=$(count_tests "$log")
    note="${note:+$note, }$tests tests passed"
    # A test that could not run here must not look like one that did.
    skipped=$(grep -c 'NOT RUN: ' "$log" || true)
    if [ "$skipped" -gt 0 ]; then note="$note, $skipped of them NOT RUN here (see $log)"; fi
    if [ "$tests" -eq 0 ] && [ "$code" -eq 0 ]; then code=1 note="it ran no test"; fi
fi
if [ "$code" -ne 0 ]; then result=FAILED; fi
line=$(printf '%-6s  %-16s %6s  %s' "$result" "$name" "$took" "$note")
echo "$line" >>"$results"
echo "== $line"
exit "$code"
