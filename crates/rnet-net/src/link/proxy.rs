//! A publisher of another host, as this host has it.

use std::collections::{BTreeSet, VecDeque};

use rnet::{Error, LossCause, LossCounts, Meta, Origin, PeerInfo, Publisher, Result};

use crate::stream::ClockOffset;
use crate::transport::HostId;
use crate::wire::{Fragment, decompress};

use super::positions::PositionSlot;
use large_message::IncomingLargeMessage;

mod large_message;

/// Bytes that the owner may send before it hears how many were read.
pub const CREDIT_LEN_BYTES: u64 = 4 << 20;
/// How often an owner that may have none left is told of a little that was read: it may detach who stands still.
const SLOW_CREDIT_NS: u64 = 10_000_000;
/// How often an owner is told of what was read, however little: it keeps what it has not been told of.
const CREDIT_NS: u64 = 1_000_000_000;
/// How soon room is looked for again as frames come.
const RETRY_INTERVAL_NS: u64 = 100_000;
/// What a message counts beside its bytes.
pub const MESSAGE_COST: u64 = 64;

/// Losses of one cause.
pub fn loss_counts(cause: LossCause, count: u64) -> LossCounts {
    let mut counts = [0; 4];
    counts[cause as usize] = count;
    counts.into()
}

/// A message that a subscriber of this host has no room for, or a gap behind one.
struct WaitingMessage {
    seq: u64,
    gap: Option<LossCounts>,
    /// As they crossed: what waits counts as many bytes as the credit that it has used.
    bytes: Vec<u8>,
    /// What they are uncompressed, if they were, once there was a try to publish them.
    message: Option<Vec<u8>>,
    compressed: bool,
    meta: Meta,
    sent_ns: u64,
    /// How many bytes of the channel had come with it.
    received_len_bytes: u64,
}

/// What has come of a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveStats {
    /// Messages that were published here.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that will not come.
    pub lost: LossCounts,
    /// Messages that came twice and were dropped.
    pub repeated: u64,
}

/// A proxy publisher, and what its channel has brought.
pub struct Proxy {
    /// `None` once it was closed: a frame that is being read may still name its channel.
    publisher: Option<Publisher<[u8]>>,
    host: HostId,
    endpoint: u64,
    /// The channel that carries its messages, if it is wanted.
    pub channel: Option<u32>,
    /// Number of the next message that is expected; `None` before the first.
    pub next_seq: Option<u64>,
    /// What its publisher knew to be missing where the channel has come to, by cause; `None` before it has said so.
    pub known_lost: Option<[u64; 4]>,
    waiting: VecDeque<WaitingMessage>,
    waiting_len_bytes: u64,
    /// Bytes of the channel that came, that were read, and of which the owner knows that they were.
    received_len_bytes: u64,
    read: u64,
    acknowledged: u64,
    /// When the owner was told.
    acknowledged_ns: u64,
    /// When a frame that came had room looked for.
    retried_ns: u64,
    large: IncomingLargeMessage,
    /// Longest message, in bytes.
    limit: usize,
    pub stats: ReceiveStats,
    /// Subscriptions that its owner knows to be served.
    pub admitted: BTreeSet<u64>,
    /// Those that had read it before it was lost; all, if another process held the link then.
    pub previous_readers: BTreeSet<u64>,
    pub expects_all_readers: bool,
    /// Where its place stands for who holds the link after this process.
    slot: Option<PositionSlot>,
}

impl Proxy {
    /// A proxy of this publisher of `host`; what came of it before ended before `next_seq`.
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

    /// A new channel begins; what the one before has brought and nobody had room for stays.
    pub fn set_channel(&mut self, channel: Option<u32>) {
        self.channel = channel;
        self.reset_large();
        // Its owner counts nobody yet.
        self.admitted.clear();
        (self.received_len_bytes, self.read, self.acknowledged) = (0, 0, 0);
        self.acknowledged_ns = rnet::now_ns();
        for waiting in &mut self.waiting {
            waiting.received_len_bytes = 0;
        }
    }

    /// Nobody reads it any more, so the next channel may begin anywhere.
    pub fn reset_position(&mut self) {
        (self.next_seq, self.known_lost) = (None, None);
        self.store_position();
    }

    /// The messages that follow are stamped by what is known of their host's clock.
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

    /// Shows subscribers what was published.
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
        // It fails in a forked child alone.
        let _ = self.publisher.as_ref().map(|publisher| publisher.admit(subscription));
    }

    /// Where its successor has to go on: what waits for room was not published.
    pub fn position(&self) -> Option<u64> {
        self.waiting.front().map_or(self.next_seq, |first| Some(first.seq))
    }

    /// Where its place stands, for who gives it to another; `None` if there was no room for it. A frame that is
    /// still being read writes nothing there any more.
    pub fn take_slot(&mut self) -> Option<PositionSlot> {
        if let Some(publisher) = &mut self.publisher {
            publisher.set_checkpoint(None);
        }
        self.slot.take()
    }

    /// Says where it has come to, to who holds the link after this process. Messages are noted as subscribers can see
    /// them, by the publisher.
    fn store_position(&mut self) {
        self.commit();
        if let Some(slot) = &self.slot {
            slot.mark().set(self.position());
        }
    }

    /// What its publisher knew to be missing at that place, by cause.
    pub fn known_lost_at_position(&self) -> Option<[u64; 4]> {
        let mut known = self.known_lost?;
        for gap in self.waiting.iter().filter_map(|waiting| waiting.meta.gap) {
            known[gap.cause as usize] = known[gap.cause as usize].saturating_sub(gap.size);
        }
        Some(known)
    }

    /// Counts what waits for room as lost: nobody will ask for it again.
    pub fn drop_waiting(&mut self) {
        while let Some(waiting) = self.waiting.pop_front() {
            self.count_all_lost(waiting.gap.unwrap_or_else(|| loss_counts(LossCause::Link, 1)));
        }
        self.waiting_len_bytes = 0;
    }

    /// Closes it, as one whose process has died if it is `lost`.
    pub fn close(&mut self, lost: bool) {
        self.waiting.clear();
        self.waiting_len_bytes = 0;
        match self.publisher.take() {
            Some(publisher) if lost => publisher.close_as_lost(),
            publisher => drop(publisher),
        }
    }

    /// Its topic; empty once it was closed.
    pub fn topic(&self) -> &str {
        self.publisher.as_ref().map_or("", |publisher| publisher.topic())
    }

    /// Longest message that it takes, in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether something waits for room.
    pub fn is_blocked(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether this message has neither come nor been counted as lost.
    pub fn is_expected(&self, seq: u64) -> bool {
        self.next_seq.is_none_or(|next| seq >= next)
    }

    /// A fragment of a message that is not expected counts as read, and takes no memory.
    pub fn skip_fragment(&mut self, fragment: &Fragment<'_>) {
        let ends = fragment.offset.saturating_add(fragment.bytes.len() as u64) >= fragment.total;
        self.add_received(fragment.bytes.len() as u64 + if ends { MESSAGE_COST } else { 0 });
    }

    /// Whether nobody has had this message.
    fn is_new(&mut self, seq: u64) -> bool {
        if !self.large.is_under_way() && self.next_seq == Some(seq) {
            self.next_seq = Some(seq.saturating_add(1));
            return true;
        }
        if self.is_expected(seq) {
            self.interrupt();
        }
        // Nor one before another that was half there, and is counted as lost by now.
        if !self.is_expected(seq) {
            self.stats.repeated += 1;
            return false;
        }
        // A number that was passed over without a gap was left out as configured, and is no loss.
        self.next_seq = Some(seq.saturating_add(1));
        true
    }

    /// Publishes a message, which crossed as `compressed` if that is given; subscribers see it at [`Proxy::commit`]. One
    /// that a reliable subscriber of this host has no room for waits, as it crossed.
    ///
    /// # Errors
    /// Of [`Publisher::send`], but `Full`. The message is counted as lost then.
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

    /// As [`Proxy::publish`], of a message that carries nothing beside its bytes, which crossed as they are.
    ///
    /// # Errors
    /// As there.
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

    /// What a message carries here, whose gap counts among what its publisher knows to be missing.
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
        // An owner that keeps to its credit never comes here.
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

    /// Counts bytes of the channel that came, before what they end is published.
    pub fn add_received(&mut self, len: u64) {
        self.received_len_bytes += len;
    }

    /// Whether to look for room again as a frame comes: a pool that is full takes a while to say so.
    pub fn may_retry(&mut self, now_ns: u64) -> bool {
        let may = now_ns >= self.retried_ns + RETRY_INTERVAL_NS;
        if may {
            self.retried_ns = now_ns;
        }
        may
    }

    /// Publishes what waits, as far as there is room.
    ///
    /// # Errors
    /// As [`Proxy::publish`].
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
                // It was when it came.
                let whole = decompress(&first.bytes, self.limit, &mut message);
                debug_assert!(whole.is_ok(), "it can be decompressed");
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

    /// `count` messages from `seq` on will not come. With none it says which one is the first.
    pub fn gap(&mut self, seq: u64, count: u64, cause: LossCause) {
        let end = seq.saturating_add(count);
        let from = (*self.next_seq.get_or_insert(seq)).max(seq);
        self.store_position();
        if end > from {
            self.next_seq = Some(end);
            let (lost, received_len_bytes) =
                (loss_counts(cause, end - from), self.received_len_bytes);
            let Some(last) = self.waiting.back_mut() else { return self.count_all_lost(lost) };
            // One entry for all between two messages: who tells of gaps without end takes no memory by it.
            if let Some(before) = &mut last.gap {
                before.add(&lost);
                last.received_len_bytes = received_len_bytes;
                return;
            }
            // In its place: a successor that goes on before it counts it.
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

    /// The publisher knows so many messages to be missing, by cause. The first that is heard of it says what nobody
    /// here was promised.
    pub fn add_known_lost(&mut self, known: [u64; 4]) {
        let before = self.known_lost.get_or_insert(known);
        let more: [u64; 4] = std::array::from_fn(|at| known[at].saturating_sub(before[at]));
        *before = std::array::from_fn(|at| known[at].max(before[at]));
        for (cause, count) in LossCause::ALL.into_iter().zip(more).filter(|(_, count)| *count > 0) {
            self.count_lost(cause, count);
        }
    }

    /// Its publisher has asserted that it is alive.
    pub fn assert_alive(&self) {
        // It fails in a forked child alone.
        let _ = self.publisher.as_ref().map(Publisher::assert_alive);
    }

    /// What its subscribers read last when its publisher has died, or its host is lost.
    ///
    /// # Errors
    /// `BadValue` for one that is too long or of another length than the type has, and where none was announced. The
    /// will is then as before.
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
        // It fails in a forked child or with a truncated file alone, where nobody reads it any more.
        let position = self.position();
        let forward = |publisher: &mut Publisher<_>| publisher.forward_gap(cause, count, position);
        let _ = self.publisher.as_mut().map(forward);
        self.store_position();
    }

    /// What is to be told to the owner of the bytes that were read, once that is worth an item: a quarter of the
    /// credit, or less for an owner that has used most of it.
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
