//! Searches libnng and libnanomsg; `cfg(has_nng)` and `cfg(has_nanomsg)` are set if found.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // libnanomsg first: libnng has functions of the same names (its compatibility layer), and the
    // loader takes those of the library that was linked first.
    if let Ok(library) = pkg_config::probe_library("nanomsg") {
        println!("cargo::rustc-cfg=has_nanomsg");
        // The library itself has only the version of its binary interface.
        println!("cargo::rustc-env=NANOMSG_VERSION={}", library.version);
    }
    // Debian's libnng-dev has no pkg-config file, so the C compiler is asked as well.
    if pkg_config::probe_library("nng").is_ok() || is_known_to_the_compiler("nng") {
        println!("cargo::rustc-cfg=has_nng");
    }
}

/// Whether the C compiler finds lib`name`.so; if so it is linked.
fn is_known_to_the_compiler(name: &str) -> bool {
    let file = format!("lib{name}.so");
    let answer = std::process::Command::new("cc").arg(format!("-print-file-name={file}")).output();
    let path = answer.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    // Where it finds none it repeats the name.
    match path {
        Ok(path) if path.contains('/') => {
            println!("cargo::rustc-link-lib={name}");
            true
        }
        _ => false,
    }
}
