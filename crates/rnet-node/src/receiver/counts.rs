//! What a receiver counts and reports of its publishers.

use std::sync::atomic::Ordering;

use rnet_core::{Backlog, Error};
use rnet_shm::channel::reader::Reader;

use super::{PublisherStatus, ReadState, Receiver};
use crate::former_publishers::{PublisherStats, stats_of};

impl Receiver {
    /// The read state with its only publisher.
    pub fn read_state(&self) -> ReadState {
        match self.channels.first() {
            None => ReadState::Unmatched { end: self.last_end },
            Some(channel) => channel.next_seq().map_or(ReadState::Pending, ReadState::Reading),
        }
    }

    /// The status of its only publisher; after the publisher has left, the last status.
    pub fn publisher_status(&self) -> PublisherStatus {
        self.channels.first().map_or(self.last_status, status_of)
    }

    /// The current last will of its only publisher.
    pub fn will(&self) -> Option<Vec<u8>> {
        self.channels.first()?.will()
    }

    /// Number of publishers that have admitted the subscription.
    pub(crate) fn admitted_count(&self) -> usize {
        let known = self.channels.iter().chain(self.succession.readers());
        known.filter(|c| c.is_admitted()).count()
    }

    /// Messages not taken yet, of all publishers.
    pub(crate) fn behind(&self) -> Backlog {
        let mut sum = Backlog::default();
        self.stats().iter().for_each(|stats| sum.add(&stats.behind));
        sum
    }

    /// Statistics of present and former publishers.
    pub(crate) fn stats(&self) -> Vec<PublisherStats> {
        // Publishers that were not taken from the inbox yet count, too. In a forked child a thread that does
        // not exist may hold the lock.
        let inbox = (!self.is_from_parent()).then(|| self.state.inbox());
        let new = inbox.iter().flat_map(|inbox| &inbox.channels);
        let channels = self.channels.iter().chain(self.succession.readers()).chain(new);
        let channels = channels.map(stats_of);
        let mut former_publishers = self.former_publishers.clone();
        former_publishers.append(
            inbox.as_ref().map(|inbox| inbox.former_publishers.clone()).unwrap_or_default(),
        );
        channels.chain(former_publishers.iter().cloned()).collect()
    }

    /// Counts a message that cannot be decoded, and makes its error.
    #[cold]
    pub fn malformed(&self, at: usize, why: String) -> Error {
        let channel = &self.channels[at];
        channel.slot().page().count.malformed.fetch_add(1, Ordering::Relaxed);
        Error::Malformed {
            topic: self.topic.to_string(),
            publisher_node: channel.node().to_owned(),
            why,
        }
    }
}

pub(super) fn status_of(channel: &Reader) -> PublisherStatus {
    PublisherStatus {
        known_lost: channel.known_lost(),
        asserted_ns: channel.asserted_ns(),
        will: channel.will_change(),
    }
}
