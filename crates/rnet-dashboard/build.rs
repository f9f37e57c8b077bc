//! Makes a table of the files of the built page, which become part of the program. They are committed: no node is needed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    // A link to dashboard/dist, which cargo follows: the page is in the package of this crate.
    let page = PathBuf::from(env("CARGO_MANIFEST_DIR")).join("dist");
    println!("cargo::rerun-if-changed={}", page.display());
    let mut files = Vec::new();
    collect(&page, &mut files);
    files.sort();
    let mut table = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(&page).expect("it was found there").to_str().expect("UTF-8");
        let path = file.to_str().expect("UTF-8");
        writeln!(table, "    (\"/{name}\", include_bytes!({path:?})),").expect("memory");
    }
    table.push_str("]\n");
    let out = Path::new(&env("OUT_DIR")).join("page.rs");
    std::fs::write(&out, table)
        .unwrap_or_else(|why| panic!("cannot write {}: {why}", out.display()));
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    // Without a built page the server says so.
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}
