//! What a forwarder reports about its publisher beside messages: its liveliness, its last will, and its
//! known losses.

use std::time::Duration;

use rnet::Meta;
use rnet::bridge::BridgeSubscriber;

use super::Forwarder;
use crate::stream::Stream;
use crate::wire::Item;

/// Checks per lease for an assertion of the publisher's liveliness.
const CHECKS_PER_LEASE: u64 = 8;
const MIN_CHECK_NS: u64 = 1_000_000;

/// Tracks the liveliness of a publisher that asserts it.
pub struct LivelinessTracker {
    lease_ns: u64,
    /// Time of the last assertion that was reported.
    reported_ns: u64,
    /// Time of the next check: an assertion does not wake the link.
    pub check_at_ns: u64,
}

impl LivelinessTracker {
    pub fn new(lease: Duration) -> LivelinessTracker {
        let lease_ns = lease.as_nanos().try_into().unwrap_or(u64::MAX);
        LivelinessTracker { lease_ns, reported_ns: 0, check_at_ns: 0 }
    }
}

impl Forwarder {
    /// Reports that the publisher has asserted its liveliness, if it has.
    pub(super) fn send_alive(&mut self, stream: &mut Stream, now_ns: u64) {
        let Some(tracker) =
            self.liveliness.as_mut().filter(|tracker| tracker.check_at_ns <= now_ns)
        else {
            return;
        };
        tracker.check_at_ns = now_ns + (tracker.lease_ns / CHECKS_PER_LEASE).max(MIN_CHECK_NS);
        let asserted_ns = self.subscriber.publisher_status().asserted_ns;
        // An old assertion was reported, or its lease is over.
        if asserted_ns > tracker.reported_ns
            && now_ns.saturating_sub(asserted_ns) < tracker.lease_ns
            && stream.push(&Item::Alive { channel: self.channel }).is_ok()
        {
            tracker.reported_ns = asserted_ns;
        }
    }

    /// Sends the publisher's last will if it has changed. A change does not wake the link, so each turn
    /// checks it.
    pub(super) fn send_will(&mut self, stream: &mut Stream) {
        if !self.sends_wills {
            return;
        }
        let now = self.subscriber.publisher_status().will;
        if self.sent_will == Some(now) {
            return;
        }
        let message = self.subscriber.last_will();
        // The will is changing at this moment, or its publisher is gone.
        if message.is_some() != now.is_some() {
            return;
        }
        let will = Item::Will { channel: self.channel, message: message.as_deref() };
        if stream.push(&will).is_ok() {
            // Not kept: the publisher may withdraw it. The will of a dead publisher is read as its last
            // message.
            self.sent_will = Some(now);
        }
    }

    /// Sends the last will that its publisher, which is gone, has left, unless this channel has sent it.
    pub(super) fn send_final_will(&mut self, stream: &mut Stream) {
        if !self.sends_wills || self.sent_will.is_some() {
            return;
        }
        if let Some(message) = &self.will {
            let will = Item::Will { channel: self.channel, message: Some(message) };
            self.progress.push_item(stream, &will);
            self.sent_will = Some(None);
        }
    }

    /// Reports the publisher's known losses, except gaps that the next message reports.
    pub(super) fn send_known_lost(&mut self, stream: &mut Stream, next: [u64; 4]) {
        let now = self.subscriber.publisher_status().known_lost;
        let known = std::array::from_fn(|at| now[at].saturating_sub(next[at]));
        if self.known_lost != Some(known) {
            self.progress.push_item(stream, &Item::KnownLost { channel: self.channel, known });
        }
        self.known_lost = Some(now);
    }

    /// The metadata of a message that was just read, without a gap that was reported before.
    pub(super) fn meta_of(&mut self, stream: &mut Stream, mut meta: Meta) -> Meta {
        let Some((gap, reported)) = meta.gap.zip(self.known_lost) else { return meta };
        let at = gap.cause as usize;
        let mut next = [0; 4];
        if self.subscriber.publisher_status().known_lost[at].saturating_sub(reported[at])
            >= gap.size
        {
            next[at] = gap.size;
        } else {
            meta.gap = None;
        }
        self.send_known_lost(stream, next);
        meta
    }
}
