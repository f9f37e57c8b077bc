#!/usr/bin/env bash
# Runs `cargo "$@"` with AddressSanitizer, where any access out of bounds ends the process.
#
# The sanitizer is the one unstable switch, let through by RUSTC_BOOTSTRAP. A Rust that was installed
# without its runtime runs the same without it, and says so.
set -euo pipefail
readonly host=x86_64-unknown-linux-gnu
if compgen -G "$(rustc --print sysroot)/lib/rustlib/$host/lib/librustc-*_rt.asan.a" >/dev/null; then
    # With lines in what it reports. What is never freed is none of its business: the table of mappings lives as long as the process.
    export CARGO_PROFILE_DEV_DEBUG=line-tables-only CARGO_PROFILE_DEV_STRIP=none
    export RUSTC_BOOTSTRAP=1 ASAN_OPTIONS=detect_leaks=0
    export RUSTFLAGS="-Zsanitizer=address ${RUSTFLAGS-}"
else
    echo "NOT RUN: AddressSanitizer: this Rust does not have its runtime"
fi
exec cargo "$@" --target $host
