//! Every fail point in the sources.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

// Split, so that this file does not contain the marker.
const MARK: &str = concat!("fail_", "point!(\"");

/// The names of all fail points in the crates, from their sources, so that the tests cover the points that
/// are compiled in.
///
/// # Panics
/// If the sources cannot be read, or two fail points share a name.
pub fn all() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut folders: Vec<PathBuf> = vec![crates];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("cannot list the sources") {
            let path = entry.expect("cannot list the sources").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).expect("cannot read the sources");
                for found in text.split(MARK).skip(1) {
                    let name = found.split('"').next().unwrap_or_default();
                    assert!(names.insert(name.to_owned()), "two fail points are called {name}");
                }
            }
        }
    }
    names
}

/// Whether a point belongs to the launcher and its keepers.
pub fn is_of_launch(point: &str) -> bool {
    point.starts_with("launch.")
}

/// Whether a point belongs to services, actions, work queues or commands, where separate nodes are killed.
pub fn is_of_calls(point: &str) -> bool {
    ["call.", "queue.", "command."].iter().any(|path| point.starts_with(path))
}
