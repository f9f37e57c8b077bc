//! Matches that fail for want of something that may be there later: a file descriptor, a map, a page
//! of memory, a place in a table. The user is told once, and it is tried again until it works.

use rnet_core::Error;
use rnet_shm::node::Entry;
use rnet_shm::shortage::is_transient;
use rnet_shm::subscription::PeerSubscription;

use super::own::{OwnPublisher, OwnSubscription};
use super::{Known, Matching};
use crate::match_event::{MatchEvent, Notice, push_notice};
use crate::unseen::UnseenAt;

impl Matching {
    /// Whether something is left undone for want of what may be there later: a file descriptor, a
    /// map, a place in a table. Then the control thread looks again once a second.
    pub fn is_short(&self) -> bool {
        self.short || self.registry.needs_rescan()
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
        if let Some(subscription) = self.subscriptions.get_mut(&sub) {
            subscription.tell_short(entry.id, error, notices);
        }
    }

    /// For an endpoint of this node.
    pub fn unseen_at(&self) -> UnseenAt {
        UnseenAt::new(self.unseen.clone())
    }

    /// Some node of the domain cannot be looked at for want of something, and may have what somebody waits for.
    pub fn cannot_look(&mut self, error: Error) {
        if !self.unseen.begin(error) {
            return;
        }
        self.publishers.values().for_each(|own| own.state.changed.notify_all());
        self.subscriptions.values().for_each(|own| own.state.tell_unseen());
    }

    /// The subscription, which cannot be served yet, is looked at again whenever its topic is.
    pub fn wait_for(
        &mut self,
        publisher: u64,
        entry: &Entry,
        peer: PeerSubscription,
        error: Error,
        notices: &mut Vec<Notice>,
    ) {
        self.pending.insert(entry.topic_hash);
        if let Some(own) = self.publishers.get_mut(&publisher) {
            own.known.insert(entry.id, Known::Pending(peer));
        }
        self.cannot_serve(publisher, entry.id, error, notices);
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
        if !is_transient(&error) {
            return;
        }
        self.short = true;
        if let Some(own) = self.publishers.get_mut(&publisher) {
            own.tell_short(subscription, error, notices);
        }
    }
}

impl OwnPublisher {
    fn tell_short(&mut self, subscription: u64, error: Error, notices: &mut Vec<Notice>) {
        if self.short.insert(subscription) {
            self.state.lock().note(error.clone());
            self.state.changed.notify_all();
            push_notice(notices, self.state.hooks.clone(), MatchEvent::Incompatible(error));
        }
    }
}

impl OwnSubscription {
    fn tell_short(&mut self, publisher: u64, error: Error, notices: &mut Vec<Notice>) {
        if self.short.insert(publisher) {
            self.state.refuse(error.clone());
            push_notice(notices, self.state.hooks.clone(), MatchEvent::Incompatible(error));
        }
    }
}
