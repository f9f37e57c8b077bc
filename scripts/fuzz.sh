#!/usr/bin/env bash
# Fuzzes each target for FUZZ_SECONDS (default 10), with AddressSanitizer and guided by coverage.
#
#   fuzz.sh [TARGET...]      all targets, or those named
#   fuzz.sh --replay         only replays the inputs in fuzz/corpus, without a sanitizer
#
# Needs neither cargo-fuzz nor a nightly Rust: coverage is a pass of LLVM. Findings are in fuzz/target/found/.
# Fails if a target crashes, hangs for 20 s, takes 2 GiB, or runs no input.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
readonly host=x86_64-unknown-linux-gnu
if [ "${1-}" = --replay ]; then
    export RNET_FUZZ_DIR=$(mktemp -d /dev/shm/rnet-fuzz-XXXXXX)
    trap 'rm -rf "$RNET_FUZZ_DIR"' EXIT
    cargo build --locked --bins
    for corpus in corpus/*; do
        target=${corpus#corpus/}
        "target/debug/$target" -timeout=300 -rss_limit_mb=2048 "$corpus"/* >"target/$target.log" 2>&1 || {
            tail -n 60 "target/$target.log"
            exit 1
        }
        echo "fuzz $target: $(ls "$corpus" | wc -l) inputs read"
    done
    exit
fi

seconds=${FUZZ_SECONDS:-10}
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(log channel reader_table files domain schema wire keys recording calls state)

RUSTFLAGS="-Cpasses=sancov-module \
-Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
-Cdebug-assertions=on -Coverflow-checks=on" \
    ../scripts/asan.sh build --locked --release --bins

dir=$(mktemp -d /dev/shm/rnet-fuzz-XXXXXX)
trap 'rm -rf "$dir"' EXIT
export RNET_FUZZ_DIR=$dir ASAN_OPTIONS=detect_leaks=0
mkdir -p target/found
code=0
for target in "${targets[@]}"; do
    mkdir -p "target/corpus/$target" "corpus/$target"
    log=target/$target.log
    "target/$host/release/$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
        -max_len=1024 -print_final_stats=1 -artifact_prefix="target/found/$target-" \
        "target/corpus/$target" "corpus/$target" >"$log" 2>&1 || code=1
    inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
    echo "fuzz $target: inputs=${inputs:-0} $(grep -oE 'cov: [0-9]+' "$log" | tail -n 1)"
    if [ "${inputs:-0}" -eq 0 ]; then code=1; fi
    if [ $code -ne 0 ]; then
        tail -n 60 "$log"
        exit $code
    fi
done
