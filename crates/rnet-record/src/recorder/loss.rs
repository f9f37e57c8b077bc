//! Counts the messages that a recording lacks, by topic, node and cause.

use std::collections::BTreeMap;

use rnet::inspect::{MissedCause, UnreadCause};
use serde::Serialize;
use strum::IntoStaticStr;

/// Maximum number of unread publishers whose names are kept; further ones are counted without a name.
const MAX_NAMES: usize = 1000;
/// Replaces an unknown topic or node.
const UNKNOWN: &str = "?";

/// Why a message is not in the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum RecordLossCause {
    /// The publisher overwrote it before the recorder had read it.
    Overrun,
    /// The publisher reused the memory of a large message before the recorder had copied it.
    Reused,
    /// The file was written too slowly, and the recorder's memory was full.
    Queue,
    /// The disk was full.
    DiskFull,
    /// A plain message that was to be recorded as protobuf does not match its type.
    Malformed,
    /// The recording is for ROS 2, which has no message of its type.
    NoCounterpart,
    /// The file was removed while it was written.
    Removed,
    /// The write failed for another reason.
    Write,
}

impl RecordLossCause {
    /// Its name in a recording.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl From<MissedCause> for RecordLossCause {
    fn from(cause: MissedCause) -> Self {
        match cause {
            MissedCause::Reused => Self::Reused,
            _ => Self::Overrun,
        }
    }
}

/// Counts by topic, node and cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CauseCounts<C> {
    counts: BTreeMap<(String, String, C), u64>,
}

/// Numbers of missing messages.
pub type LossCounts = CauseCounts<RecordLossCause>;

/// Numbers of publishers that were seen but not read, or not to their end. The number of their messages is
/// unknown. `?` is an unknown topic or node.
pub type UnheardCounts = CauseCounts<UnreadCause>;

impl<C> Default for CauseCounts<C> {
    fn default() -> Self {
        Self { counts: BTreeMap::new() }
    }
}

impl<C: Copy + Ord> CauseCounts<C> {
    /// Adds `count` for a topic and a node.
    pub fn add(&mut self, topic: &str, node: &str, cause: C, count: u64) {
        let count_of = self.counts.entry((topic.to_owned(), node.to_owned(), cause)).or_default();
        *count_of = count_of.saturating_add(count);
    }

    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        self.counts.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Topic, node, cause and count of each entry.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, C, u64)> {
        self.counts.iter().map(|((topic, node, cause), count)| (&**topic, &**node, *cause, *count))
    }

    /// The metadata record at the end of a file.
    pub fn to_metadata(&self, name: fn(C) -> &'static str) -> BTreeMap<String, String> {
        let counts = self.iter().map(|(topic, node, cause, count)| {
            (format!("{topic} {node} {}", name(cause)), count.to_string())
        });
        counts.chain([("total".to_owned(), self.total().to_string())]).collect()
    }
}

impl LossCounts {
    /// Counts by cause, of all topics.
    pub fn by_cause(&self) -> BTreeMap<RecordLossCause, u64> {
        let mut sums = BTreeMap::new();
        for (.., cause, count) in self.iter() {
            let sum: &mut u64 = sums.entry(cause).or_default();
            *sum = sum.saturating_add(count);
        }
        sums
    }
}

impl UnheardCounts {
    /// Counts a publisher.
    pub(super) fn add_publisher(&mut self, topic: Option<&str>, node: &str, why: UnreadCause) {
        let (topic, node) = match self.counts.len() < MAX_NAMES {
            true => (topic.unwrap_or(UNKNOWN), node),
            false => (UNKNOWN, UNKNOWN),
        };
        self.add(topic, node, why, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_names_without_losing_counts() {
        let mut unheard = UnheardCounts::default();
        for n in 0..MAX_NAMES + 5 {
            unheard.add_publisher(Some("/scan"), &format!("/n{n}"), UnreadCause::Closed);
        }
        unheard.add_publisher(None, "/n0", UnreadCause::Unreadable);
        assert_eq!(unheard.total(), MAX_NAMES as u64 + 6);
        let metadata = unheard.to_metadata(UnreadCause::name);
        assert_eq!((&*metadata["? ? closed"], &*metadata["/scan /n0 closed"]), ("5", "1"));
        assert_eq!(&*metadata["? ? unreadable"], "1");
    }
}
