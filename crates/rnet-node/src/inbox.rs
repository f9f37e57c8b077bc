//! What the control thread hands to a subscriber until the subscriber's user takes it.
//!
//! A user who does not receive for a long time must not cost a publisher its slot or a message its count. If
//! a publisher left before it was taken and has no unread messages, it is removed at once. If too many
//! publishers are queued, those that left first are removed, and their unread messages are counted as lost.

use std::collections::VecDeque;

use rnet_core::{Error, MAX_PUBLISHERS_PER_SUBSCRIPTION};
use rnet_shm::channel::reader::Reader;

use crate::former_publishers::{FormerPublishers, stats_of};

/// Errors kept for a user who never receives.
pub const MAX_PENDING_ERRORS: usize = 64;

/// See the module.
#[derive(Default)]
pub struct Inbox {
    /// Publishers to follow, including those that have left since; oldest first.
    pub channels: Vec<Reader>,
    /// Taken publishers that have left since, and whether they died.
    pub left: Vec<(u64, bool)>,
    /// Proxies that have left without a successor, and the nodes that they represented.
    pub lost: Vec<(u64, String)>,
    /// Errors, oldest first.
    pub errors: VecDeque<Error>,
    /// Publishers that matched and left.
    pub former_publishers: FormerPublishers,
}

impl Inbox {
    /// Adds a publisher. A subscriber follows a limited number at a time, so if there are too many here, one
    /// of them has left.
    pub fn add(&mut self, channel: Reader) {
        if self.channels.len() >= MAX_PUBLISHERS_PER_SUBSCRIPTION
            && let Some(oldest) = self.channels.iter().position(Reader::has_left)
        {
            self.remove_finished(oldest);
        }
        self.channels.push(channel);
    }

    /// Notes that a publisher has left.
    pub fn publisher_left(&mut self, publisher: u64, died: bool) {
        let Some(at) = self.channels.iter().position(|c| c.publisher() == publisher) else {
            return self.left.push((publisher, died));
        };
        self.channels[at].publisher_left(died);
        if self.channels[at].is_finished() {
            self.remove_finished(at);
        }
    }

    /// Notes that a proxy has left and delivers nothing more.
    pub fn publisher_lost(&mut self, publisher: u64, node: String) {
        if let Some(channel) = self.channels.iter_mut().find(|c| c.publisher() == publisher) {
            return channel.note_death();
        }
        if self.lost.len() == MAX_PENDING_ERRORS {
            self.lost.remove(0);
        }
        self.lost.push((publisher, node));
    }

    /// Keeps an error for the user; drops the oldest if there are too many.
    pub fn push_error(&mut self, error: Error) {
        if self.errors.len() == MAX_PENDING_ERRORS {
            self.errors.pop_front();
        }
        self.errors.push_back(error);
    }

    /// Removes a publisher that has left.
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
