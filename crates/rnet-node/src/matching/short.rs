//! Matches that fail for want of something that may be there later: a file descriptor, a map, a page
//! of memory, a place in a table. The user is told once, and it is tried again until it works.

use rnet_core::Error;
use rnet_shm::node::Entry;
use rnet_shm::shortage::is_passing;
use rnet_shm::subscription::PeerSubscription;

use super::{Known, Matching};
use crate::match_event::{MatchEvent, Notice, push_notice};

impl Matching {
    /// Whether something is left undone for want of what may be there later: a file descriptor, a
    /// map, a place in a table. Then the control thread looks again once a second.
    pub fn is_short(&self) -> bool {
        self.short || self.registry.is_behind()
    }

    /// A publisher fits and cannot be followed for want of something: tells the user once, and has
    /// it tried again until it can be.
    pub fn cannot_follow(
        &mut self,
        sub: u64,
        entry: &Entry,
        error: Error,
        notices: &mut Vec<Notice>,
    ) {
        self.pending.insert(entry.topic_hash);
        self.short = true;
        let Some(subscription) = self.subscriptions.get_mut(&sub) else { return };
        if subscription.short.insert(entry.id) {
            subscription.state.refuse(error.clone());
            let hooks = subscription.state.hooks.clone();
            push_notice(notices, hooks, MatchEvent::Incompatible(error));
        }
    }

    /// The subscription is looked at again whenever its topic is.
    pub fn wait_for(&mut self, publisher: u64, entry: &Entry, peer: PeerSubscription) {
        self.pending.insert(entry.topic_hash);
        if let Some(own) = self.publishers.get_mut(&publisher) {
            own.known.insert(entry.id, Known::Pending(peer));
        }
    }

    /// A subscription fits and cannot be served for now: tells the user once, and has it tried
    /// again until it can be.
    pub fn cannot_serve(
        &mut self,
        publisher: u64,
        subscription: u64,
        error: Error,
        notices: &mut Vec<Notice>,
    ) {
        if !is_passing(&error) {
            return;
        }
        self.short = true;
        let Some(own) = self.publishers.get_mut(&publisher) else { return };
        if own.short.insert(subscription) {
            own.state.lock().note(error.clone());
            own.state.changed.notify_all();
            push_notice(notices, own.state.hooks.clone(), MatchEvent::Incompatible(error));
        }
    }
}
