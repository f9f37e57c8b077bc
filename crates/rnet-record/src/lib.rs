//! Recordings of a domain: MCAP files that this crate writes and reads.
//!
//! What stands in a file, and why so, is docs/design/recording.md; its names are in [`names`], and what a channel says
//! of its publisher is a [`Source`]. Whoever knows MCAP can read a recording without this crate.

pub mod names;
pub mod read;
mod source;
pub mod tools;

pub use source::{Kind, Source, SourceError};

/// The MCAP library that recordings are written and read with.
pub use mcap;
