//! Information about a file that is available before its messages are read.

use std::collections::BTreeMap;

use mcap::records::Metadata;

use super::blocks::Block;
use super::channels::Channels;
use super::error::{Problem, ReadError};

/// Maximum number of problems that a reader keeps; further ones are counted.
const MAX_PROBLEMS: usize = 100;

/// Content of a file, from its index or from a scan of the whole file.
#[derive(Debug, Default)]
pub struct RecordingInfo {
    pub(super) channels: Channels,
    pub(super) blocks: Vec<Block>,
    /// Number of messages by channel.
    pub counts: BTreeMap<u16, u64>,
    /// The first and last log time, in ns since 1970 UTC.
    pub times: Option<(u64, u64)>,
    /// Metadata records, in the order of the file.
    pub metadata: Vec<Metadata>,
    /// Start and end offset of each attachment.
    pub attachments: Vec<(u64, u64)>,
    /// Number of chunks.
    pub chunks: u64,
    /// Compression of the chunks: compressed and uncompressed bytes, by name of the compression.
    pub compression: BTreeMap<String, (u64, u64)>,
    /// Why the file was scanned to its end instead of using its index; `None` if the index was used.
    pub scan_reason: Option<&'static str>,
    /// Problems found so far.
    pub problems: Vec<ReadError>,
    /// Number of further problems.
    pub more_problems: u64,
}

impl RecordingInfo {
    pub(super) fn problem(&mut self, problem: ReadError) {
        match self.problems.len() < MAX_PROBLEMS {
            true => self.problems.push(problem),
            false => self.more_problems += 1,
        }
    }

    /// Whether written data cannot be read. A missing end is not damage: the file is still being written, or
    /// its writer was killed.
    pub fn is_damaged(&self) -> bool {
        let is_end = |one: &ReadError| {
            matches!(one.problem, Problem::Truncated { .. } | Problem::MissingFooter)
        };
        self.more_problems > 0 || !self.problems.iter().all(is_end)
    }

    /// Number of messages of all channels.
    pub fn messages(&self) -> u64 {
        self.counts.values().sum()
    }
}
