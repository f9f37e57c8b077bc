//! Recordings of a domain: MCAP files that this crate writes and reads.
//!
//! docs/design/recording.md describes the content of a file and the reasons for it. [`names`] contains the
//! names used in it, and a [`Source`] is the metadata of a channel about its publisher. Any MCAP reader can
//! read a recording without this crate.
#![forbid(unsafe_code)]

pub mod blackbox;
mod error;
pub mod export;
mod mcap_file;
pub mod names;
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
pub use mcap_file::ChunkCompression;
pub use recorder::{
    CauseCounts, LossCounts, Progress, RecordLossCause, RecordOptions, Recorder, Selection,
    UnheardCounts,
};
pub use source::{Source, SourceError, TypeKind};

/// The MCAP library that recordings are written and read with.
pub use mcap;

/// Compiles the Rust code of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/recording.md")]
struct Guide;
