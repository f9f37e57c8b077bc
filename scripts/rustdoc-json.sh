#!/bin/sh
# rustdoc with JSON output, which a stable Rust enables only with this variable; for `cargo xtask api`.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
