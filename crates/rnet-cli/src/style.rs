//! Text styles on a terminal.

use anstyle::{AnsiColor, Style};

/// Style of headings.
pub const HEADING: Style = Style::new().bold();
/// Style of problems.
pub const PROBLEM: Style = AnsiColor::Red.on_default().bold();
/// Style of notes.
pub const NOTE: Style = AnsiColor::Yellow.on_default();
