//! Files made of files.
//!
//! - [`filter`], [`merge`] and [`split`] write what is chosen of a file, several files as one, and one as several;
//! - [`recover`] writes what can be read of a damaged file into a new one, which is complete.
//!
//! A new file is in its place when it is complete, and not before ([`NewFile`]).

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
