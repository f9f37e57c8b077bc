//! Finds Cyclone DDS, has its `idlc` compile the message type, and compiles the shim.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=c");
    // Without the library the crate still builds and reports the missing library.
    let Ok(library) = pkg_config::Config::new().atleast_version("0.10").probe("CycloneDDS") else {
        return;
    };
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let compiled = Command::new("idlc").arg("-o").arg(&out).arg("c/octets.idl").status();
    if !compiled.is_ok_and(|status| status.success()) {
        println!("cargo::warning=idlc (package cyclonedds-tools) did not run: built without");
        return;
    }
    cc::Build::new()
        .file("c/shim.c")
        .file(out.join("octets.c"))
        .include(&out)
        .includes(library.include_paths)
        .opt_level(2)
        .compile("bench_cyclone_shim");
    println!("cargo::rustc-link-lib=ddsc");
    println!("cargo::rustc-cfg=has_cyclone");
}
