#!/bin/sh
# rustdoc with its JSON, which a stable Rust writes only for this variable; `cargo xtask api` runs it.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
