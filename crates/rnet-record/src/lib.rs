//! Recordings of a domain: MCAP files that this crate writes and reads.
//!
//! What stands in a file, and why so, is docs/design/recording.md; its names are in [`names`], and what a channel says
//! of its publisher is a [`Source`]. Whoever knows MCAP can read a recording without this crate.

pub mod blackbox;
mod error;
pub mod export;
pub mod names;
mod part;
pub mod play;
pub mod plot;
pub mod read;
mod recorder;
pub mod rerun;
pub mod ros2;
mod sequence_set;
mod source;
pub mod summary;
pub mod tools;

pub use error::{RecordError, Result};
pub use part::ChunkCompression;
pub use recorder::{
    CauseCounts, LossCounts, Progress, RecordLossCause, RecordOptions, Recorder, Selection,
    UnheardCounts,
};
pub use source::{Source, SourceError, TypeKind};

/// The MCAP library that recordings are written and read with.
pub use mcap;

/// The Rust of the guide compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/recording.md")]
struct Guide;
