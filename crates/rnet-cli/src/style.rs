//! What things look like on a terminal.

use anstyle::{AnsiColor, Style};

/// Of what stands above other lines.
pub const HEADING: Style = Style::new().bold();
/// Of what is wrong.
pub const PROBLEM: Style = AnsiColor::Red.on_default().bold();
/// Of what is worth knowing.
pub const NOTE: Style = AnsiColor::Yellow.on_default();
