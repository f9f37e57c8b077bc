//! Files made of files.
//!
//! - [`recover`] writes what can be read of a damaged file into a new one, which is complete.

mod output;
mod recover;

pub use output::{Output, ToolError};
pub use recover::{Recovered, recover};
