//! Rust types of the built-in messages, for `src/msgs.rs`.

use std::path::Path;

fn main() {
    // The built-in files are part of a crate that this one is built with: cargo sees to them.
    println!("cargo::rerun-if-changed=build.rs");
    let out_dir = std::env::var_os("OUT_DIR");
    let done = out_dir.ok_or(rnet_build::BuildError::NoOutDir);
    if let Err(error) = done.and_then(|dir| rnet_build::builtin_protos(Path::new(&dir))) {
        println!("cargo::error={error}");
        std::process::exit(1);
    }
}
