#!/usr/bin/env bash
# Runs one step of the Makefile under a headline, and prints its result and duration.
#
#   step.sh [--tests] NAME COMMAND...   run the step; with --tests, no test run is a failure
#   step.sh --start                     delete the results of an earlier run
#   step.sh --summary                   all steps since --start, with the end of the output of failed ones
#
# The whole output is in target/steps/NAME.log. Each line "step-note: ..." of it is shown in the summary. A
# step has no time limit, because a slow machine is not a failure; with STEP_LIMIT_S, which CI sets, it is
# killed after that time.
#
# A check that could not run must not look like a passed one. A test that cannot run prints "NOT RUN: TEST:
# why", and pytest names skipped tests. The summary shows them, and with NOT_RUN_FAILS=1, as CI sets it, the
# step fails unless .ci/not-run.txt waives the test. A waiver of a test that runs is shown too.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly logs=target/steps
readonly results=$logs/results.txt
readonly waivers=.ci/not-run.txt

summary() {
    echo
    cat "$results"
    awk '/^[^ ]/ { wall += $3; cpu += $5 } END { printf "total: %d s, %d s CPU\n", wall, cpu }' "$results"
    # Failures are repeated here, because their output may be far above.
    grep '^FAILED' "$results" | while read -r _ name _; do
        printf '\n== the end of %s.log\n' "$logs/$name"
        tail -n 60 "$logs/$name.log"
    done || true
}

# Adds up "12 passed" in the output of cargo's test harness and pytest.
count_tests() {
    { grep -oE '[0-9]+ passed' "$1" || true; } | awk '{ n += $1 } END { print n + 0 }'
}

# The tests of a log that could not run, as "TEST: why", in our format and in pytest's.
not_run() {
    sed -nE -e 's/.*NOT RUN: (.*)/\1/p' -e 's/^SKIPPED (.*) - Skipped: (.*)/\1: \2/p' "$1" | sort -u
}

# The tests that the list waives for this step, without the reasons.
waived() {
    if [ -f "$waivers" ]; then sed -nE "s/^$name +([^ ].*[^:]): .+/\1/p" "$waivers"; fi
}

# The lines about test $1; with -v, the others.
of_test() {
    local invert=0
    if [ "$1" = -v ]; then invert=1 && shift; fi
    TEST="$1: " INVERT=$invert awk '(index($0, ENVIRON["TEST"]) == 1) != ENVIRON["INVERT"]'
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

# On a terminal, cargo shows the progress of a build.
if [ -t 1 ]; then export CARGO_TERM_PROGRESS_WHEN=always CARGO_TERM_PROGRESS_WIDTH=${COLUMNS:-80}; fi

printf '\n== %s: %s\n' "$name" "$*"
start=$SECONDS code=0
# `set -m` gives the command its own process group with the default SIGINT, which bash would otherwise disable
# behind `&`. The output goes to a file and not through a pipe, so that a process left behind by the command
# cannot block this one.
: >"$log"
export PYTEST_ADDOPTS="-rs --no-fold-skipped ${PYTEST_ADDOPTS-}"
set -m
timeout --kill-after=10 "${STEP_LIMIT_S:-0}" "$@" </dev/null >"$log" 2>&1 &
set +m
child=$!
trap 'kill "$child" 2>/dev/null; exit 130' INT TERM
tail --lines=+1 --follow --sleep-interval=0.1 --pid="$child" "$log" &
wait $! || true # unlike a command in the foreground, this lets the trap run at once
wait "$child" || code=$?
# User and system time of the command and its waited-for children, from bash's own accounting.
times >"$logs/times.txt"
cpu=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); s += 60 * t[1] + t[2] }; printf "%.0f", s }' \
    "$logs/times.txt")
took="$((SECONDS - start)) s"

result=ok notes=()
note=$(awk 'sub(/^step-note: /, "") { printf "%s%s", between, $0; between = "; " }' "$log")
if [ -n "$note" ]; then notes+=("$note"); fi
if [ -n "${STEP_LIMIT_S-}" ] && { [ "$code" -eq 124 ] || [ "$code" -eq 137 ]; }; then
    notes+=("killed after $took: it hung, or STEP_LIMIT_S is too short")
fi
if [ "$counted" = yes ]; then
    tests=$(count_tests "$log")
    notes+=("$tests tests passed")
    if [ "$tests" -eq 0 ] && [ "$code" -eq 0 ]; then code=1 && notes+=("it ran no test"); fi
fi

skipped=$(not_run "$log")
while read -r test; do
    if [ -z "$test" ]; then continue; fi
    if [ -n "$(of_test "$test" <<<"$skipped")" ]; then
        notes+=("NOT RUN, waived: $test")
    elif [ "$code" -eq 0 ]; then
        notes+=("waived in $waivers and yet it ran: $test")
    fi
    skipped=$(of_test -v "$test" <<<"$skipped")
done < <(waived)
while read -r test; do
    if [ -z "$test" ]; then continue; fi
    notes+=("NOT RUN: $test")
    if [ -n "${NOT_RUN_FAILS-}" ] && [ "$code" -eq 0 ]; then
        code=1
        notes+=("a test has to run here, or $waivers waives it: $name TEST: reason")
    fi
done <<<"$skipped"

if [ "$code" -ne 0 ]; then result=FAILED; fi
line=$(printf '%-6s  %-16s %6s, %5s s CPU' "$result" "$name" "$took" "$cpu")
# The first note is next to the step, further ones below it.
if [ ${#notes[@]} -gt 0 ]; then line="$line  ${notes[0]}"; fi
for note in "${notes[@]:1}"; do line="$line"$'\n'"        $note"; done
echo "$line" >>"$results"
echo "== $line"
exit "$code"
