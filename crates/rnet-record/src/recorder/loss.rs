//! What a recording does not have, by topic, node and cause.

use std::collections::BTreeMap;

use rnet::inspect::MissedCause;
use serde::Serialize;

/// Why a message is not in the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// The publisher wrote over it before the recorder had read it.
    Overrun,
    /// The publisher used the memory of a large message anew before the recorder had copied it.
    Reused,
    /// The file was written too slowly, and the recorder's memory was full.
    Queue,
    /// There was no room on the disk.
    DiskFull,
    /// A plain message that was to be recorded as protobuf is none of its type.
    Malformed,
    /// The recording is for ROS 2, which has no message of its type.
    NoCounterpart,
    /// Somebody removed the file while it was written.
    Removed,
    /// It could not be written for another reason.
    Write,
}

impl Cause {
    /// Its name in a recording.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overrun => "overrun",
            Self::Reused => "reused",
            Self::Queue => "queue",
            Self::DiskFull => "disk_full",
            Self::Malformed => "malformed",
            Self::NoCounterpart => "no_counterpart",
            Self::Removed => "removed",
            Self::Write => "write",
        }
    }
}

impl From<MissedCause> for Cause {
    fn from(cause: MissedCause) -> Self {
        match cause {
            MissedCause::Reused => Self::Reused,
            _ => Self::Overrun,
        }
    }
}

/// Numbers of messages that are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    counts: BTreeMap<(String, String, Cause), u64>,
}

impl Losses {
    /// Counts `count` messages of a topic from a node.
    pub fn add(&mut self, topic: &str, node: &str, cause: Cause, count: u64) {
        let count_of = self.counts.entry((topic.to_owned(), node.to_owned(), cause)).or_default();
        *count_of = count_of.saturating_add(count);
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.counts.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Topic, node, cause, number, for each that has any.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, Cause, u64)> {
        self.counts.iter().map(|((topic, node, cause), count)| (&**topic, &**node, *cause, *count))
    }

    /// Numbers by cause, of all topics.
    pub fn by_cause(&self) -> BTreeMap<Cause, u64> {
        let mut sums = BTreeMap::new();
        for (.., cause, count) in self.iter() {
            let sum: &mut u64 = sums.entry(cause).or_default();
            *sum = sum.saturating_add(count);
        }
        sums
    }

    /// As the record at the end of a file.
    pub fn to_metadata(&self) -> BTreeMap<String, String> {
        let counts = self.iter().map(|(topic, node, cause, count)| {
            (format!("{topic} {node} {}", cause.name()), count.to_string())
        });
        counts.chain([("total".to_owned(), self.total().to_string())]).collect()
    }
}
