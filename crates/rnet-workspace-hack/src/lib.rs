//! No code: see `Cargo.toml`.
#![forbid(unsafe_code)]
