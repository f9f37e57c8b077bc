//! What a forwarder tells of its publisher beside messages: that it is alive, its last will, and what it knows to be
//! missing.

use std::time::Duration;

use rnet::Meta;

use super::Forwarder;
use crate::stream::Stream;
use crate::wire::Item;

/// How often it is looked for an assertion that its publisher is alive.
const CHECKS_PER_LEASE: u64 = 8;
const MIN_CHECK_NS: u64 = 1_000_000;

/// What is told of a publisher that may assert that it is alive.
pub struct LivelinessTracker {
    lease_ns: u64,
    /// When it asserted that last, as far as that was told.
    reported_ns: u64,
    /// When to look next: no assertion wakes anybody.
    pub check_at_ns: u64,
}

impl LivelinessTracker {
    pub fn new(lease: Duration) -> LivelinessTracker {
        let lease_ns = lease.as_nanos().try_into().unwrap_or(u64::MAX);
        LivelinessTracker { lease_ns, reported_ns: 0, check_at_ns: 0 }
    }
}

impl Forwarder {
    /// Tells that the publisher has asserted that it is alive, if it has.
    pub(super) fn send_alive(&mut self, stream: &mut Stream, now_ns: u64) {
        let Some(tracker) =
            self.liveliness.as_mut().filter(|tracker| tracker.check_at_ns <= now_ns)
        else {
            return;
        };
        tracker.check_at_ns = now_ns + (tracker.lease_ns / CHECKS_PER_LEASE).max(MIN_CHECK_NS);
        let asserted_ns = self.subscriber.publisher_status().asserted_ns;
        // One of long ago was told, or its lease is over.
        if asserted_ns > tracker.reported_ns
            && now_ns.saturating_sub(asserted_ns) < tracker.lease_ns
            && stream.push(&Item::Alive { channel: self.channel }).is_ok()
        {
            tracker.reported_ns = asserted_ns;
        }
    }

    /// Tells which last will the publisher has, if it is another than was told. No change of it wakes anybody: it is
    /// looked for in each turn.
    pub(super) fn send_will(&mut self, stream: &mut Stream) {
        if !self.sends_wills {
            return;
        }
        let now = self.subscriber.publisher_status().will;
        if self.sent_will == Some(now) {
            return;
        }
        let message = self.subscriber.last_will();
        // It is being changed at this moment, or its publisher is gone.
        if message.is_some() != now.is_some() {
            return;
        }
        let will = Item::Will { channel: self.channel, message: message.as_deref() };
        if stream.push(&will).is_ok() {
            // Not kept: it may be taken back. What a dead publisher leaves is read as its last message.
            self.sent_will = Some(now);
        }
    }

    /// Tells the last will that its publisher, which is gone, has left, unless it was told over this channel.
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

    /// Tells what the publisher knows to be missing, but for gaps that the next message tells.
    pub(super) fn send_known_lost(&mut self, stream: &mut Stream, next: [u64; 4]) {
        let now = self.subscriber.publisher_status().known_lost;
        let known = std::array::from_fn(|at| now[at].saturating_sub(next[at]));
        if self.known_lost != Some(known) {
            self.progress.push_item(stream, &Item::KnownLost { channel: self.channel, known });
        }
        self.known_lost = Some(now);
    }

    /// What a message that was just read carries to the other host: a gap that was told before is left out.
    pub(super) fn meta_of(&mut self, stream: &mut Stream, mut meta: Meta) -> Meta {
        let Some((gap, told)) = meta.gap.zip(self.known_lost) else { return meta };
        let at = gap.cause as usize;
        let mut next = [0; 4];
        if self.subscriber.publisher_status().known_lost[at].saturating_sub(told[at]) >= gap.size {
            next[at] = gap.size;
        } else {
            meta.gap = None;
        }
        self.send_known_lost(stream, next);
        meta
    }
}
