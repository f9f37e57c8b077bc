//! Files made of files.
//!
//! - [`filter`], [`merge`] and [`split`] write what is chosen of a file, several files as one, and one as several;
//! - [`recover`] writes what can be read of a damaged file into a new one, which is complete.

mod copy;
mod output;
mod recover;

pub use copy::{Cut, Tell, Written, filter, merge, split};
pub use output::{Output, ToolError};
pub use recover::{Recovered, recover};
