//! Recordings of a domain: MCAP files that this crate writes and reads.
//!
//! What stands in a file, and why so, is docs/design/recording.md; its names are in [`names`], and what a channel says
//! of its publisher is a [`Source`]. Whoever knows MCAP can read a recording without this crate.

pub mod blackbox;
mod error;
pub mod names;
mod sequence_set;
mod part;
pub mod play;
pub mod read;
mod recorder;
pub mod rerun;
pub mod ros2;
mod source;
pub mod tools;

pub use error::{RecordError, Result};
pub use part::ChunkCompression;
pub use recorder::{RecordLossCause, CauseCounts, LossCounts, Progress, RecordOptions, Recorder, Selection, UnheardCounts};
pub use source::{TypeKind, Source, SourceError};

/// The MCAP library that recordings are written and read with.
pub use mcap;

/// The Rust of the guide compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/recording.md")]
struct Guide;
