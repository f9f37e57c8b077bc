//! `.proto` files that are part of robot-net: `import "rnet/msgs/….proto"` finds them everywhere, with nothing installed.
//!
//! Each is a file under `proto/` of this crate, and one line in the table. `google/protobuf/*.proto` need no line: the linker brings them.

/// Import name and text.
const FILES: &[(&str, &str)] =
    &[("rnet/msgs/JointState.proto", include_str!("../proto/rnet/msgs/JointState.proto"))];

/// The text of a built-in file.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Import names of all built-in files.
pub fn builtin_files() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}
