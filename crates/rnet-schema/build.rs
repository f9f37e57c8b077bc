//! Generates the table of the built-in messages: import path and text of each file under `msgs/`.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let msgs = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("msgs");
    println!("cargo::rerun-if-changed={}", msgs.display());
    let mut rows = Vec::new();
    for folder in ["foxglove", "rnet/msgs"] {
        for file in fs::read_dir(msgs.join(folder))? {
            let name = file?.file_name().to_string_lossy().into_owned();
            let text = msgs.join(folder).join(&name);
            rows.push(format!("(\"{folder}/{name}\", include_str!({text:?}))"));
        }
    }
    rows.sort_unstable();
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("builtin.rs"), format!("&[{}]", rows.join(",\n")))
}
