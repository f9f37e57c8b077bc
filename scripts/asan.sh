#!/usr/bin/env bash
# Runs `cargo "$@"` with AddressSanitizer, which terminates the process on any access out of bounds.
#
# The sanitizer is the only unstable option, enabled by RUSTC_BOOTSTRAP. A Rust installation without its
# runtime runs the same without it, and reports it.
set -euo pipefail
readonly host=x86_64-unknown-linux-gnu
if compgen -G "$(rustc --print sysroot)/lib/rustlib/$host/lib/librustc-*_rt.asan.a" >/dev/null; then
    # Line numbers for the reports. Leaks are not reported: the table of mappings lives as long as the
    # process.
    export CARGO_PROFILE_DEV_DEBUG=line-tables-only CARGO_PROFILE_DEV_STRIP=none
    export RUSTC_BOOTSTRAP=1 ASAN_OPTIONS=detect_leaks=0
    export RUSTFLAGS="-Zsanitizer=address ${RUSTFLAGS-}"
else
    echo "NOT RUN: AddressSanitizer: this Rust does not have its runtime"
fi
exec cargo "$@" --target $host
