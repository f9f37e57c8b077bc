//! Embeds the files of the built page into the program. They are committed, so no node is needed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    // A link to dashboard/dist, which cargo follows when it packages this crate.
    let page = PathBuf::from(env("CARGO_MANIFEST_DIR")).join("dist");
    println!("cargo::rerun-if-changed={}", page.display());
    let mut files = Vec::new();
    collect(&page, &mut files);
    files.sort();
    let mut table = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(&page).expect("in the folder").to_str().expect("UTF-8");
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
    // Without a built page, the server reports that it is missing.
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}
