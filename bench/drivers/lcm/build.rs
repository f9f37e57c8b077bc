//! Finds liblcm.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Debian's lcm.pc asks for GLib's development files, which only building LCM needs and
    // liblcm-dev does not bring: where pkg-config refuses for that, the file itself is read.
    let probed = pkg_config::Config::new().cargo_metadata(false).probe("lcm");
    let version = probed.ok().map(|lcm| lcm.version).or_else(version_in_file);
    if let Some(version) = version {
        println!("cargo::rustc-env=LCM_PC_VERSION={version}");
        println!("cargo::rustc-link-search=native=/usr/local/lib");
        println!("cargo::rustc-link-lib=lcm");
        println!("cargo::rustc-cfg=has_lcm");
    }
}

/// The version in lcm.pc, searched in the folders of pkg-config.
fn version_in_file() -> Option<String> {
    let dirs = pkg_config::get_variable("pkg-config", "pc_path").ok()?;
    let text = std::env::split_paths(&dirs)
        .find_map(|dir: PathBuf| std::fs::read_to_string(dir.join("lcm.pc")).ok())?;
    let version = text.lines().find_map(|line| line.strip_prefix("Version:"))?;
    Some(version.trim().into())
}
