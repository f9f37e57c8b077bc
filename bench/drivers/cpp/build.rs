//! Compiles the C++ sources of the systems whose libraries are installed.

use std::path::Path;

/// Folder of librnet.so; bench/setup.sh builds it. It is linked dynamically: a program
/// with two copies of Rust's standard library has no other way.
const LIBRNET: &str = "../../../target/release/c";
const HEADERS: [&str; 2] = ["../../../cpp/include", "../../../crates/rnet-c/include"];

fn main() {
    println!("cargo::rerun-if-changed=cpp");
    HEADERS.iter().for_each(|folder| println!("cargo::rerun-if-changed={folder}"));
    println!("cargo::rerun-if-changed={LIBRNET}/librnet.so.1");
    // Without a library the crate still builds and reports what is missing.
    if let Ok(folder) = Path::new(LIBRNET).canonicalize()
        && folder.join("librnet.so").exists()
    {
        compile("rnet", &mut cpp("cpp/rnet.cpp").includes(HEADERS));
        let folder = folder.display();
        println!("cargo::rustc-link-search=native={folder}");
        println!("cargo::rustc-link-lib=dylib=rnet");
        println!("cargo::metadata=librnet={folder}");
    }
    // cppzmq is headers alone.
    let found = pkg_config::Config::new().cargo_metadata(false).probe("cppzmq");
    if let (Ok(headers), Ok(_)) = (found, pkg_config::probe_library("libzmq")) {
        compile("zmq", cpp("cpp/zmq.cpp").includes(headers.include_paths));
    }
}

/// What a user gets from a release build with CMake: -O2 and the platform's compiler.
fn cpp(source: &str) -> cc::Build {
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").file(source).opt_level(2).flag("-Wall").flag("-Wextra");
    build
}

fn compile(system: &str, build: &mut cc::Build) {
    build.compile(&format!("bench_cpp_{system}"));
    println!("cargo::rustc-cfg=has_cpp_{system}");
}
