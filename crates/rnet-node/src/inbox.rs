//! What the control thread brings to a subscriber, until the subscriber's user takes it in.
//!
//! A user who does not look for long must cost no publisher its place and no message its count. So
//! a publisher that left before it was taken in, and of which nothing is left to read, goes at
//! once; and where there are too many, those that left first go, and what was not read of them is
//! counted as lost with them.

use std::collections::VecDeque;

use rnet_core::{Error, MAX_PUBLISHERS_PER_SUBSCRIPTION};
use rnet_shm::channel::reader::Reader;

use crate::former_publishers::{FormerPublishers, stats_of};

/// Errors kept for a user who never receives.
pub const MAX_PENDING_ERRORS: usize = 64;

/// See the module.
#[derive(Default)]
pub struct Inbox {
    /// Publishers to be followed, those that have left since included; oldest first.
    pub channels: Vec<Reader>,
    /// Publishers that were taken in and have left since, and whether they died.
    pub left: Vec<(u64, bool)>,
    /// Proxies that have left and have found no successor, and the nodes for which they stood.
    pub lost: Vec<(u64, String)>,
    /// What went wrong, oldest first.
    pub errors: VecDeque<Error>,
    /// Publishers that came and went.
    pub former_publishers: FormerPublishers,
}

impl Inbox {
    /// A publisher has come. Not more at a time than a subscriber may follow, so that one of those
    /// here has left if they are too many.
    pub fn add(&mut self, channel: Reader) {
        if self.channels.len() >= MAX_PUBLISHERS_PER_SUBSCRIPTION
            && let Some(oldest) = self.channels.iter().position(Reader::has_left)
        {
            self.remove_finished(oldest);
        }
        self.channels.push(channel);
    }

    /// A publisher has left.
    pub fn publisher_left(&mut self, publisher: u64, died: bool) {
        let Some(at) = self.channels.iter().position(|c| c.publisher() == publisher) else {
            return self.left.push((publisher, died));
        };
        self.channels[at].publisher_left(died);
        if self.channels[at].is_finished() {
            self.remove_finished(at);
        }
    }

    /// Nothing comes any more by a proxy that has left.
    pub fn publisher_lost(&mut self, publisher: u64, node: String) {
        if let Some(channel) = self.channels.iter_mut().find(|c| c.publisher() == publisher) {
            return channel.note_death();
        }
        if self.lost.len() == MAX_PENDING_ERRORS {
            self.lost.remove(0);
        }
        self.lost.push((publisher, node));
    }

    /// Keeps an error for the user; the oldest makes room for it.
    pub fn push_error(&mut self, error: Error) {
        if self.errors.len() == MAX_PENDING_ERRORS {
            self.errors.pop_front();
        }
        self.errors.push_back(error);
    }

    /// Lets a publisher go that has left.
    fn remove_finished(&mut self, at: usize) {
        let mut channel = self.channels.remove(at);
        channel.discard_unread();
        if channel.has_died() {
            let (topic, node) = (channel.meta().topic.clone(), channel.node().to_owned());
            self.push_error(Error::PeerLost { topic, node });
        }
        self.former_publishers.push(stats_of(&channel));
    }
}
