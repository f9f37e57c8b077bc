//! What is known of a file before its messages are read.

use std::collections::BTreeMap;

use mcap::records::Metadata;

use super::blocks::Block;
use super::channels::Channels;
use super::error::{Problem, ReadError};

/// Problems that are kept by one reader; the others are counted.
const MAX_PROBLEMS: usize = 100;

/// What is in a file, as its index says or as a reader of all of it found.
#[derive(Debug, Default)]
pub struct RecordingInfo {
    pub(super) channels: Channels,
    pub(super) blocks: Vec<Block>,
    /// Messages by channel.
    pub counts: BTreeMap<u16, u64>,
    /// The first and last log time, in ns since 1970 UTC.
    pub times: Option<(u64, u64)>,
    /// Metadata records, in the order of the file.
    pub metadata: Vec<Metadata>,
    /// Where its attachments stand: the first byte of each, and the one behind it.
    pub attachments: Vec<(u64, u64)>,
    /// Number of chunks.
    pub chunks: u64,
    /// How the chunks are compressed: bytes before and after, by the name of the method.
    pub compression: BTreeMap<String, (u64, u64)>,
    /// The file has been read to its end, since it has no index that can be used. Then this says why not.
    pub scan_reason: Option<&'static str>,
    /// What is wrong with the file, as far as it has been read.
    pub problems: Vec<ReadError>,
    /// Problems beyond those.
    pub more_problems: u64,
}

impl RecordingInfo {
    pub(super) fn problem(&mut self, problem: ReadError) {
        match self.problems.len() < MAX_PROBLEMS {
            true => self.problems.push(problem),
            false => self.more_problems += 1,
        }
    }

    /// Whether some written data cannot be read. A file without an end (still written, or its writer was killed) is not
    /// damaged.
    pub fn is_damaged(&self) -> bool {
        let is_end = |one: &ReadError| {
            matches!(one.problem, Problem::Truncated { .. } | Problem::MissingFooter)
        };
        self.more_problems > 0 || !self.problems.iter().all(is_end)
    }

    /// Messages of all channels.
    pub fn messages(&self) -> u64 {
        self.counts.values().sum()
    }
}
