//! Matches that fail for want of something that may be there later: a file descriptor, a map, a page
//! of memory, a place in a table. The user is told once, and it is tried again until it works.

use rnet_core::Error;
use rnet_shm::channel::subscription::PeerSubscription;
use rnet_shm::domain::node::Entry;
use rnet_shm::os::shortage::is_transient;

use super::own::{OwnPublisher, OwnSubscription};
use super::{MatchState, Matching};
use crate::inspection_shortage::ShortageReporter;
use crate::match_event::{MatchEvent, Notice, push_notice};

impl Matching {
    /// Whether something is left undone for want of what may be there later: a file descriptor, a
    /// map, a place in a table. Then the control thread looks again once a second.
    pub fn needs_retry(&self) -> bool {
        self.has_shortage || self.registry.needs_rescan()
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
        self.has_shortage = true;
        if let Some(subscription) = self.subscriptions.get_mut(&sub) {
            subscription.report_shortage(entry.id, error, notices);
        }
    }

    /// For an endpoint of this node.
    pub fn shortage_reporter(&self) -> ShortageReporter {
        ShortageReporter::new(self.shortage.clone())
    }

    /// Some node of the domain cannot be looked at for want of something, and may have what somebody waits for.
    pub fn cannot_inspect(&mut self, error: Error) {
        if !self.shortage.begin(error) {
            return;
        }
        self.publishers.values().for_each(|own| own.state.changed.notify_all());
        self.subscriptions.values().for_each(|own| own.state.notify_shortage());
    }

    /// The subscription, which cannot be served yet, is looked at again whenever its topic is.
    pub fn retry_later(
        &mut self,
        publisher: u64,
        entry: &Entry,
        peer: PeerSubscription,
        error: Error,
        notices: &mut Vec<Notice>,
    ) {
        self.pending.insert(entry.topic_hash);
        if let Some(own) = self.publishers.get_mut(&publisher) {
            own.known.insert(entry.id, MatchState::Pending(peer));
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
        self.has_shortage = true;
        if let Some(own) = self.publishers.get_mut(&publisher) {
            own.report_shortage(subscription, error, notices);
        }
    }
}

impl OwnPublisher {
    fn report_shortage(&mut self, subscription: u64, error: Error, notices: &mut Vec<Notice>) {
        if self.shortage_reported.insert(subscription) {
            self.state.lock().push_incompatible(error.clone());
            self.state.changed.notify_all();
            push_notice(
                notices,
                self.state.match_callbacks.clone(),
                MatchEvent::Incompatible(error),
            );
        }
    }
}

impl OwnSubscription {
    fn report_shortage(&mut self, publisher: u64, error: Error, notices: &mut Vec<Notice>) {
        if self.shortage_reported.insert(publisher) {
            self.state.push_refusal(error.clone());
            push_notice(
                notices,
                self.state.match_callbacks.clone(),
                MatchEvent::Incompatible(error),
            );
        }
    }
}
