//! Every fail point that the sources name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

// Written in halves, so that this file names none.
const MARK: &str = concat!("fail_", "point!(\"");

/// The names of all fail points in the crates, from their sources: what is compiled in and what is
/// run cannot drift apart.
///
/// # Panics
/// If the sources cannot be read, or two places have one name.
pub fn all() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut folders: Vec<PathBuf> = vec![crates];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the sources can be listed") {
            let path = entry.expect("the sources can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).expect("the sources can be read");
                for found in text.split(MARK).skip(1) {
                    let name = found.split('"').next().unwrap_or_default();
                    assert!(names.insert(name.to_owned()), "two fail points are called {name}");
                }
            }
        }
    }
    names
}

/// Whether a point is one of the launcher and its keepers.
pub fn is_of_launch(point: &str) -> bool {
    point.starts_with("launch.")
}

/// Whether a point is one of services, actions, work queues or commands, at which nodes of their own die.
pub fn is_of_calls(point: &str) -> bool {
    ["call.", "queue.", "command."].iter().any(|path| point.starts_with(path))
}
