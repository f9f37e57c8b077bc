//! A subscriber's statistics of its present and former publishers.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use rnet_core::{Backlog, LossCounts};
use rnet_shm::channel::reader::Reader;

/// Former publishers with separate statistics. A subscriber that outlives more of them keeps only the sums of
/// the oldest: a node that restarts every second must not fill its peers' memory.
const MAX_SEPARATE: usize = 64;

/// A subscriber's counters for one publisher.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublisherStats {
    /// The publisher's id, as in `Sample::publisher`; 0 in the entry that sums the oldest former publishers,
    /// which exists once there are more than 64.
    pub publisher: u64,
    /// Name of its node; empty in the entry that holds the sums.
    pub node: String,
    /// Messages received from it.
    pub received: u64,
    /// Messages lost, by cause.
    pub lost: LossCounts,
    /// Messages that this subscriber passed over: older than the last that it keeps, or than the newest that
    /// `latest` returned.
    pub skipped: u64,
    /// Messages not delivered because they were older than the publisher's lifespan; neither lost nor
    /// skipped.
    pub expired: u64,
    /// Periods of the subscriber's deadline in which the publisher sent nothing.
    pub deadline_missed: u64,
    /// Messages not taken yet.
    pub behind: Backlog,
    /// Messages from it that could not be decoded; `received` includes them.
    pub malformed: u64,
    /// Whether it is still connected.
    pub connected: bool,
}

/// The counters for a publisher that the subscriber reads.
pub(crate) fn stats_of(channel: &Reader) -> PublisherStats {
    PublisherStats {
        publisher: channel.publisher(),
        node: channel.node().to_owned(),
        received: channel.received(),
        lost: channel.losses(),
        skipped: channel.skipped(),
        expired: channel.expired(),
        deadline_missed: channel.deadline_missed(),
        behind: channel.behind(),
        malformed: channel.slot().page().count.malformed.load(Ordering::Relaxed),
        connected: !channel.has_left(),
    }
}

/// Former publishers: what they sent, and what of it was lost.
#[derive(Clone, Debug, Default)]
pub struct FormerPublishers {
    recent: VecDeque<PublisherStats>,
    older: Option<PublisherStats>,
}

impl FormerPublishers {
    /// Adds one; the oldest separate entry is merged into the sum.
    pub fn push(&mut self, stats: PublisherStats) {
        if self.recent.len() == MAX_SEPARATE
            && let Some(oldest) = self.recent.pop_front()
        {
            self.add_to_sum(&oldest);
        }
        self.recent.push_back(PublisherStats {
            connected: false,
            behind: Backlog::default(),
            ..stats
        });
    }

    /// Saturating: the counts come from a file that others may write.
    fn add_to_sum(&mut self, stats: &PublisherStats) {
        let sum = self.older.get_or_insert_default();
        sum.received = sum.received.saturating_add(stats.received);
        sum.lost.add(&stats.lost);
        sum.skipped = sum.skipped.saturating_add(stats.skipped);
        sum.expired = sum.expired.saturating_add(stats.expired);
        sum.deadline_missed = sum.deadline_missed.saturating_add(stats.deadline_missed);
        sum.malformed = sum.malformed.saturating_add(stats.malformed);
    }

    /// Appends those of `newer`, which left more recently.
    pub fn append(&mut self, newer: FormerPublishers) {
        if let Some(older) = &newer.older {
            self.add_to_sum(older);
        }
        newer.recent.into_iter().for_each(|stats| self.push(stats));
    }

    /// Oldest first, the sum before all.
    pub fn iter(&self) -> impl Iterator<Item = &PublisherStats> {
        self.older.iter().chain(&self.recent)
    }
}
