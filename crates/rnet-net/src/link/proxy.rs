//! A publisher of another host, represented on this host.

use std::collections::{BTreeSet, VecDeque};

use rnet::bridge::BridgePublisher;
use rnet::bridge::ProxyPublisher;
use rnet::{Error, LossCause, LossCounts, Meta, Origin, PeerInfo, Publisher, Result};

use crate::stream::ClockOffset;
use crate::transport::HostId;
use crate::wire::{Fragment, decompress};

use super::positions::PositionSlot;
use large_message::IncomingLargeMessage;

mod large_message;

/// Bytes that the owner may send before it learns how many were read.
pub const CREDIT_LEN_BYTES: u64 = 4 << 20;
/// Interval at which small amounts of read bytes are reported to an owner that may have no credit left: it
/// may detach a reader that makes no progress.
const SLOW_CREDIT_NS: u64 = 10_000_000;
/// Interval at which read bytes are reported to an owner, however few: it keeps messages until they are
/// reported.
const CREDIT_NS: u64 = 1_000_000_000;
/// Interval at which arriving frames retry waiting messages.
const RETRY_INTERVAL_NS: u64 = 100_000;
/// Cost of a message beside its bytes.
pub const MESSAGE_COST: u64 = 64;

/// The losses of one cause.
pub fn loss_counts(cause: LossCause, count: u64) -> LossCounts {
    let mut counts = [0; 4];
    counts[cause as usize] = count;
    counts.into()
}

/// A message for which a subscriber of this host lacks capacity, or a gap behind one.
struct WaitingMessage {
    seq: u64,
    gap: Option<LossCounts>,
    /// The bytes as they crossed: a waiting message counts as many bytes as the credit that it used.
    bytes: Vec<u8>,
    /// The decompressed bytes, if it was compressed and publishing was tried.
    message: Option<Vec<u8>>,
    compressed: bool,
    meta: Meta,
    sent_ns: u64,
    /// Bytes received on the channel up to this message.
    received_len_bytes: u64,
}

/// Counters of a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveStats {
    /// Messages that were published here.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that will not arrive.
    pub lost: LossCounts,
    /// Messages that arrived twice and were dropped.
    pub repeated: u64,
}

/// A proxy publisher and the state of its channel.
pub struct Proxy {
    /// `None` once closed: a frame that is being processed may still name its channel.
    publisher: Option<Publisher<[u8]>>,
    host: HostId,
    endpoint: u64,
    /// The channel that carries its messages, if requested.
    pub channel: Option<u32>,
    /// Number of the next expected message; `None` before the first.
    pub next_seq: Option<u64>,
    /// Losses that the publisher knew of at the current position, by cause; `None` before the first report.
    pub known_lost: Option<[u64; 4]>,
    waiting: VecDeque<WaitingMessage>,
    waiting_len_bytes: u64,
    /// Bytes of the channel: received, read, and reported to the owner as read.
    received_len_bytes: u64,
    read: u64,
    acknowledged: u64,
    /// When the owner was last informed.
    acknowledged_ns: u64,
    /// When an arriving frame last caused a retry.
    retried_ns: u64,
    large: IncomingLargeMessage,
    /// Longest message, in bytes.
    limit: usize,
    pub stats: ReceiveStats,
    /// Subscriptions that its owner knows to be served.
    pub admitted: BTreeSet<u64>,
    /// Subscriptions that had read it before it was lost; all, if another process held the link then.
    pub previous_readers: BTreeSet<u64>,
    pub expects_all_readers: bool,
    /// The slot of its position for the next process that holds the link.
    slot: Option<PositionSlot>,
}

impl Proxy {
    /// Creates a proxy of this publisher of `host`; earlier messages ended before `next_seq`.
    pub fn new(
        mut publisher: Publisher<[u8]>,
        (host, endpoint): (HostId, u64),
        next_seq: Option<u64>,
        slot: Option<PositionSlot>,
        limit: usize,
    ) -> Proxy {
        publisher.set_waiting(false);
        publisher.set_checkpoint(slot.as_ref().map(PositionSlot::mark));
        Proxy {
            publisher: Some(publisher),
            host,
            endpoint,
            channel: None,
            next_seq,
            known_lost: None,
            waiting: VecDeque::new(),
            waiting_len_bytes: 0,
            received_len_bytes: 0,
            read: 0,
            acknowledged: 0,
            acknowledged_ns: 0,
            retried_ns: 0,
            large: IncomingLargeMessage::new(limit),
            limit,
            stats: ReceiveStats::default(),
            admitted: BTreeSet::new(),
            previous_readers: BTreeSet::new(),
            expects_all_readers: false,
            slot,
        }
    }

    /// Begins a new channel; messages of the previous one that wait for capacity stay.
    pub fn set_channel(&mut self, channel: Option<u32>) {
        self.channel = channel;
        self.reset_large();
        // Its owner counts no subscriber yet.
        self.admitted.clear();
        (self.received_len_bytes, self.read, self.acknowledged) = (0, 0, 0);
        self.acknowledged_ns = rnet::now_ns();
        for waiting in &mut self.waiting {
            waiting.received_len_bytes = 0;
        }
    }

    /// Resets the position: without readers, the next channel may begin anywhere.
    pub fn reset_position(&mut self) {
        (self.next_seq, self.known_lost) = (None, None);
        self.store_position();
    }

    /// Sets the clock offset by which later messages are stamped.
    pub fn set_clock(&mut self, clock: Option<ClockOffset>) {
        if let Some(publisher) = &mut self.publisher {
            publisher.set_sent_uncertainty_ns(clock.map(|clock| clock.uncertainty_ns));
        }
    }

    fn forward(&mut self, bytes: &[u8], meta: Meta, sent_ns: u64) -> Result<()> {
        let forward =
            |publisher: &mut Publisher<_>| publisher.forward_uncommitted(bytes, meta, sent_ns);
        self.publisher.as_mut().map_or(Ok(()), forward)
    }

    /// Makes published messages visible to subscribers.
    pub fn commit(&mut self) {
        if let Some(publisher) = &mut self.publisher {
            publisher.commit();
        }
    }

    /// The subscriptions that wait to be admitted, and those that are served.
    pub fn readers(&self) -> (BTreeSet<u64>, BTreeSet<u64>) {
        let ids = |peers: Vec<PeerInfo>| peers.into_iter().map(|peer| peer.id).collect();
        let Some(publisher) = &self.publisher else { return Default::default() };
        (ids(publisher.awaiting_admission()), ids(publisher.subscribers()))
    }

    /// Serves this subscription.
    pub fn admit(&self, subscription: u64) {
        // It fails only in a forked child.
        let _ = self.publisher.as_ref().map(|publisher| publisher.admit(subscription));
    }

    /// The position where its successor continues: messages that wait for capacity were not published.
    pub fn position(&self) -> Option<u64> {
        self.waiting.front().map_or(self.next_seq, |first| Some(first.seq))
    }

    /// Takes its slot to give it to another proxy; `None` if it has none. A frame that is still being
    /// processed no longer writes there.
    pub fn take_slot(&mut self) -> Option<PositionSlot> {
        if let Some(publisher) = &mut self.publisher {
            publisher.set_checkpoint(None);
        }
        self.slot.take()
    }

    /// Stores whether its loss was reported to subscribers, for the next process that holds the link.
    pub fn set_lost(&mut self, is_lost: bool) {
        if let Some(slot) = &mut self.slot {
            slot.set_lost(is_lost);
        }
    }

    /// Stores the position for the next process that holds the link. The publisher stores it as messages
    /// become visible.
    fn store_position(&mut self) {
        self.commit();
        if let Some(slot) = &self.slot {
            slot.mark().set(self.position());
        }
    }

    /// Losses that its publisher knew of at that position, by cause.
    pub fn known_lost_at_position(&self) -> Option<[u64; 4]> {
        let mut known = self.known_lost?;
        for gap in self.waiting.iter().filter_map(|waiting| waiting.meta.gap) {
            known[gap.cause as usize] = known[gap.cause as usize].saturating_sub(gap.size);
        }
        Some(known)
    }

    /// Counts waiting messages as lost: they will not be requested again.
    pub fn drop_waiting(&mut self) {
        while let Some(waiting) = self.waiting.pop_front() {
            self.count_all_lost(waiting.gap.unwrap_or_else(|| loss_counts(LossCause::Link, 1)));
        }
        self.waiting_len_bytes = 0;
    }

    /// Closes it; if `lost`, like a publisher whose process has died.
    pub fn close(&mut self, lost: bool) {
        self.waiting.clear();
        self.waiting_len_bytes = 0;
        match self.publisher.take() {
            Some(publisher) if lost => publisher.close_as_lost(),
            publisher => drop(publisher),
        }
    }

    /// Its topic; empty once closed.
    pub fn topic(&self) -> &str {
        self.publisher.as_ref().map_or("", |publisher| publisher.topic())
    }

    /// Longest message that it accepts, in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether messages wait for capacity.
    pub fn is_blocked(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether this message has neither arrived nor been counted as lost.
    pub fn is_expected(&self, seq: u64) -> bool {
        self.next_seq.is_none_or(|next| seq >= next)
    }

    /// Counts a fragment of an unexpected message as read without storing it.
    pub fn skip_fragment(&mut self, fragment: &Fragment<'_>) {
        let ends = fragment.offset.saturating_add(fragment.bytes.len() as u64) >= fragment.total;
        self.add_received(fragment.bytes.len() as u64 + if ends { MESSAGE_COST } else { 0 });
    }

    /// Whether this message is new.
    fn is_new(&mut self, seq: u64) -> bool {
        if !self.large.is_under_way() && self.next_seq == Some(seq) {
            self.next_seq = Some(seq.saturating_add(1));
            return true;
        }
        if self.is_expected(seq) {
            self.interrupt();
        }
        // The message does not count either if it precedes a partly received message and is counted as lost
        // by now.
        if !self.is_expected(seq) {
            self.stats.repeated += 1;
            return false;
        }
        // A number that was skipped without a gap was left out as configured and is not a loss.
        self.next_seq = Some(seq.saturating_add(1));
        true
    }

    /// Publishes a message, which crossed as `compressed` if given; subscribers see it at
    /// [`Proxy::commit`]. If a reliable subscriber of this host lacks capacity, the message waits in the
    /// form in which it crossed.
    ///
    /// # Errors
    /// The errors of [`Publisher::send`], except `Full`. The message is then counted as lost.
    pub fn publish(
        &mut self,
        seq: u64,
        sent_ns: u64,
        meta: Meta,
        bytes: &[u8],
        compressed: Option<&[u8]>,
    ) -> Result<()> {
        if !self.is_new(seq) {
            return Ok(());
        }
        self.publish_new(seq, sent_ns, meta, bytes, compressed)
    }

    /// Like [`Proxy::publish`], for a message without metadata that crossed uncompressed.
    ///
    /// # Errors
    /// The same.
    #[inline]
    pub fn publish_plain(&mut self, seq: u64, sent_ns: u64, bytes: &[u8]) -> Result<()> {
        if !self.is_new(seq) {
            return Ok(());
        }
        if self.waiting.is_empty()
            && let Some(publisher) = &mut self.publisher
        {
            let origin = Origin { host: self.host.0, publisher: self.endpoint, seq };
            match publisher.forward_plain(bytes, origin, sent_ns) {
                Err(Error::Full { .. }) => {}
                sent => return self.count_published(bytes.len(), sent),
            }
        }
        self.publish_new(seq, sent_ns, Meta::default(), bytes, None)
    }

    fn publish_new(
        &mut self,
        seq: u64,
        sent_ns: u64,
        meta: Meta,
        bytes: &[u8],
        compressed: Option<&[u8]>,
    ) -> Result<()> {
        let meta = self.local_meta(seq, meta);
        if self.waiting.is_empty() {
            match self.forward(bytes, meta, sent_ns) {
                Err(Error::Full { .. }) => {}
                sent => return self.count_published(bytes.len(), sent),
            }
        }
        let (bytes, compressed) = (compressed.unwrap_or(bytes), compressed.is_some());
        self.wait_for_room(seq, sent_ns, meta, bytes.to_vec(), compressed)
    }

    /// The metadata of a message on this host; its gap counts among the publisher's known losses.
    fn local_meta(&mut self, seq: u64, meta: Meta) -> Meta {
        if let Some((known, gap)) = self.known_lost.as_mut().zip(meta.gap) {
            let known = &mut known[gap.cause as usize];
            *known = known.saturating_add(gap.size);
        }
        let origin = Origin { host: self.host.0, publisher: self.endpoint, seq };
        meta.with_origin(origin)
    }

    fn wait_for_room(
        &mut self,
        seq: u64,
        sent_ns: u64,
        meta: Meta,
        bytes: Vec<u8>,
        compressed: bool,
    ) -> Result<()> {
        self.waiting_len_bytes += bytes.len() as u64 + MESSAGE_COST;
        // An owner that respects its credit never reaches this.
        if self.waiting_len_bytes > 2 * CREDIT_LEN_BYTES + self.limit as u64 {
            self.waiting_len_bytes -= bytes.len() as u64 + MESSAGE_COST;
            self.count_lost(LossCause::Link, 1);
            let what = format!("message of host {}", self.host);
            return Err(Error::BadValue {
                what,
                why: "it exceeds the requested credit".to_owned(),
            });
        }
        let (gap, message, received_len_bytes) = (None, None, self.received_len_bytes);
        self.waiting.push_back(WaitingMessage {
            seq,
            gap,
            bytes,
            message,
            compressed,
            meta,
            sent_ns,
            received_len_bytes,
        });
        Ok(())
    }

    /// Counts received bytes of the channel before the message that they complete is published.
    pub fn add_received(&mut self, len: u64) {
        self.received_len_bytes += len;
    }

    /// Whether an arriving frame may retry waiting messages: a full pool takes a while to report that it is
    /// full.
    pub fn may_retry(&mut self, now_ns: u64) -> bool {
        let may = now_ns >= self.retried_ns + RETRY_INTERVAL_NS;
        if may {
            self.retried_ns = now_ns;
        }
        may
    }

    /// Publishes waiting messages as far as there is capacity.
    ///
    /// # Errors
    /// The same as for [`Proxy::publish`].
    pub fn retry(&mut self) -> Result<()> {
        let published = self.publish_waiting();
        self.commit();
        published
    }

    fn publish_waiting(&mut self) -> Result<()> {
        while let Some(mut first) = self.waiting.pop_front() {
            if let Some(lost) = first.gap {
                self.waiting_len_bytes -= MESSAGE_COST;
                self.read = self.read.max(first.received_len_bytes);
                self.count_all_lost(lost);
                continue;
            }
            if first.compressed && first.message.is_none() {
                let mut message = Vec::new();
                // It was valid when it arrived.
                let whole = decompress(&first.bytes, self.limit, &mut message);
                debug_assert!(whole.is_ok(), "a waiting message decompresses");
                first.message = Some(message);
            }
            let message = first.message.as_ref().unwrap_or(&first.bytes);
            let len = message.len();
            let sent = self.forward(message, first.meta, first.sent_ns);
            if matches!(sent, Err(Error::Full { .. })) {
                self.waiting.push_front(first);
                return Ok(());
            }
            self.waiting_len_bytes -= first.bytes.len() as u64 + MESSAGE_COST;
            self.read = self.read.max(first.received_len_bytes);
            self.count_published(len, sent)?;
        }
        Ok(())
    }

    fn count_published(&mut self, len: usize, sent: Result<()>) -> Result<()> {
        match sent {
            Ok(()) => {
                self.stats.messages += 1;
                self.stats.bytes += len as u64;
                Ok(())
            }
            Err(error) => {
                self.count_lost(LossCause::Link, 1);
                Err(error)
            }
        }
    }

    /// Records that `count` messages from `seq` on will not arrive. A count of 0 marks which message is the
    /// first.
    pub fn gap(&mut self, seq: u64, count: u64, cause: LossCause) {
        let end = seq.saturating_add(count);
        let from = (*self.next_seq.get_or_insert(seq)).max(seq);
        self.store_position();
        if end > from {
            self.next_seq = Some(end);
            let (lost, received_len_bytes) =
                (loss_counts(cause, end - from), self.received_len_bytes);
            let Some(last) = self.waiting.back_mut() else { return self.count_all_lost(lost) };
            // One entry for all gaps between two messages: endless gaps take no memory.
            if let Some(before) = &mut last.gap {
                before.add(&lost);
                last.received_len_bytes = received_len_bytes;
                return;
            }
            // Queued in order: a successor that continues before it counts the gap.
            self.waiting.push_back(WaitingMessage {
                seq: from,
                gap: Some(lost),
                bytes: Vec::new(),
                message: None,
                compressed: false,
                meta: Meta::default(),
                sent_ns: 0,
                received_len_bytes,
            });
            self.waiting_len_bytes += MESSAGE_COST;
        }
    }

    /// Applies the losses that the publisher knows of, by cause. The first report covers losses of messages
    /// that no reader here was promised.
    pub fn add_known_lost(&mut self, known: [u64; 4]) {
        let before = self.known_lost.get_or_insert(known);
        let more: [u64; 4] = std::array::from_fn(|at| known[at].saturating_sub(before[at]));
        *before = std::array::from_fn(|at| known[at].max(before[at]));
        for (cause, count) in LossCause::ALL.into_iter().zip(more).filter(|(_, count)| *count > 0) {
            self.count_lost(cause, count);
        }
    }

    /// Records that its publisher has asserted its liveliness.
    pub fn assert_alive(&self) {
        // It fails only in a forked child.
        let _ = self.publisher.as_ref().map(Publisher::assert_alive);
    }

    /// Sets the message that its subscribers read last if its publisher dies or its host is lost.
    ///
    /// # Errors
    /// `BadValue` if it is too long, if its length differs from that of the type, or if no will was
    /// announced. The will is then unchanged.
    pub fn set_will(&mut self, message: Option<&[u8]>) -> Result<()> {
        let Some(publisher) = &mut self.publisher else { return Ok(()) };
        match message {
            Some(message) => publisher.set_last_will(message),
            None => publisher.clear_last_will(),
        }
    }

    fn count_all_lost(&mut self, lost: LossCounts) {
        for (cause, (_, count)) in LossCause::ALL.into_iter().zip(lost.parts()) {
            if count > 0 {
                self.count_lost(cause, count);
            }
        }
    }

    fn count_lost(&mut self, cause: LossCause, count: u64) {
        self.stats.lost.add(&loss_counts(cause, count));
        // It fails only in a forked child or with a truncated file, which no process reads any more.
        let position = self.position();
        let forward = |publisher: &mut Publisher<_>| publisher.forward_gap(cause, count, position);
        let _ = self.publisher.as_mut().map(forward);
        self.store_position();
    }

    /// The read bytes to report to the owner, once they are worth an item: a quarter of the credit, or less
    /// for an owner that has used most of it.
    pub fn take_credit(&mut self, now_ns: u64) -> Option<u64> {
        if self.waiting.is_empty() {
            self.read = self.received_len_bytes;
        }
        let (more, used) =
            (self.read - self.acknowledged, self.received_len_bytes - self.acknowledged);
        let unacknowledged_ns = now_ns.saturating_sub(self.acknowledged_ns);
        let is_slow = used >= CREDIT_LEN_BYTES / 2 && unacknowledged_ns >= SLOW_CREDIT_NS;
        let is_due = more > 0 && (is_slow || unacknowledged_ns >= CREDIT_NS);
        (more >= CREDIT_LEN_BYTES / 4 || is_due).then(|| {
            (self.acknowledged, self.acknowledged_ns) = (self.read, now_ns);
            self.read
        })
    }
}

#[cfg(test)]
mod tests;
