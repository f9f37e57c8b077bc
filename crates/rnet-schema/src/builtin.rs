//! The messages that every robot-net knows: import path and text of each file under `msgs/`.
//!
//! `foxglove/` holds the Foxglove schemas under their own names and numbers, so that viewers know
//! them; `rnet/msgs/` what robots need beside them. What each means, and how their comments are to
//! be read, says `docs/guide/messages.md`. `build.rs` writes the table.

/// Import path and text of each built-in file, in the order of the paths.
pub const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// The text of a built-in file.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(path, _)| *path == name).map(|(_, text)| *text)
}

/// Import paths of all built-in files.
pub fn builtin_files() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(path, _)| *path)
}
