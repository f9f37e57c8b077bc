//! Matches that fail because of a temporary shortage: a file descriptor, a map, a page of memory, a table
//! entry. The user is notified once, and the match is retried until it works.

use rnet_core::Error;
use rnet_shm::channel::subscription::PeerSubscription;
use rnet_shm::domain::node::Entry;
use rnet_shm::os::shortage::is_transient;

use super::own::{OwnPublisher, OwnSubscription};
use super::{MatchState, Matching};
use crate::inspection_shortage::ShortageReporter;
use crate::match_event::{MatchEvent, Notice, push_notice};

impl Matching {
    /// Whether a shortage left work undone (a file descriptor, a map, a table entry). The control thread then
    /// retries once per second.
    pub fn needs_retry(&self) -> bool {
        self.has_shortage || self.registry.needs_rescan()
    }

    /// A compatible publisher cannot be followed because of a shortage: reports it once to the user and
    /// retries until it works.
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

    /// A reporter for an endpoint of this node.
    pub fn shortage_reporter(&self) -> ShortageReporter {
        ShortageReporter::new(self.shortage.clone())
    }

    /// Some node of the domain cannot be inspected because of a shortage, and may have an endpoint that a
    /// wait needs.
    pub fn cannot_inspect(&mut self, error: Error) {
        if !self.shortage.begin(error) {
            return;
        }
        self.publishers.values().for_each(|own| own.state.changed.notify_all());
        self.subscriptions.values().for_each(|own| own.state.notify_shortage());
    }

    /// The subscription cannot be served yet; it is checked again with every refresh of its topic.
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

    /// A compatible subscription cannot be served for now: reports it once to the user and retries until it
    /// works.
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
