//! The built-in messages: import path and text of each file under `msgs/`.
//!
//! `foxglove/` holds the Foxglove schemas with their original names and numbers, which viewers recognize.
//! `rnet/msgs/` contains additional messages for robots. `docs/guide/messages.md` describes them and the
//! conventions of their comments. `build.rs` generates the table.

/// Import path and text of each built-in file, ordered by path.
pub const BUILTIN_FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// The text of a built-in file.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    BUILTIN_FILES.iter().find(|(path, _)| *path == name).map(|(_, text)| *text)
}

/// Import paths of all built-in files.
pub fn builtin_files() -> impl Iterator<Item = &'static str> {
    BUILTIN_FILES.iter().map(|(path, _)| *path)
}
