//! Creates files from other files.
//!
//! - [`filter`], [`merge`] and [`split`] write selected messages of a file, several files as one, and one as
//!   several;
//! - [`recover`] writes the readable content of a damaged file into a new, complete file.
//!
//! A new file appears under its name only when it is complete ([`NewFile`]).

mod copy;
mod new_file;
mod output;
mod recover;
mod select;

pub use copy::{OnProblem, ShouldStop, SplitAt, WrittenFile, filter, merge, split};
pub(crate) use copy::{WrittenMessages, check_stop, next_readable, offset_ns};
pub use new_file::NewFile;
pub use output::{OutputFile, ToolError};
pub use recover::recover;
pub use select::{no_topic, remap, select, topic_matches};
