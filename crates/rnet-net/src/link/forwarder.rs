//! A publisher of this host, as the link reads it for one other host.

use std::collections::BTreeMap;
use std::time::Duration;

use rnet::bridge::{BridgeSubscriber, ReadState};
use rnet::{Error, LossCause, LossCounts, Meta, Result, Subscriber, Waitable};

use crate::config::{Compression, Shaping};
use crate::stream::{PushError, Stream};
use crate::wire::{Data, Fragment, Item, PlainData, compress};

use super::kept_for_reconnect::{OfflineClaim, OfflineReader};
use super::proxy::MESSAGE_COST;
use super::resend_buffer::{Message, ResendBuffer};

mod channel_progress;
mod publisher_status;

use channel_progress::{ChannelProgress, is_selected};
use publisher_status::LivelinessTracker;

/// Longer messages cross in fragments.
const MAX_UNFRAGMENTED_LEN_BYTES: usize = 8 << 10;
/// Messages read from one publisher before the next one has its turn.
const MESSAGES_PER_TURN: usize = 64;

/// Counters of a forwarder.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ForwardStats {
    /// Messages that were handed to the stream.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that were lost: not read in time, or lost when the publisher evicted the link.
    pub lost: LossCounts,
    /// Messages that were left out as configured.
    pub skipped: u64,
    /// What blocks further messages.
    pub blocked_by: Option<BlockReason>,
    /// Age of the message that is blocked.
    pub waited_ns: u64,
}

/// What blocks messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BlockReason {
    /// The credit of the other host is used up.
    Credit,
    /// The window of the network is full.
    Window,
    /// The configuration leaves some messages out.
    Configured(Shaping),
}

/// The result of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnResult {
    /// There may be more to read.
    More,
    /// All messages were read.
    Idle,
    /// The forwarder continues when the other host or the stream has capacity.
    Blocked,
    /// The publisher is gone and all its messages were read.
    Ended,
}

/// A message that crosses in fragments.
struct OutgoingLargeMessage {
    message: Message,
    meta: Meta,
    /// The compressed payload that crosses in place of the original.
    compressed: Option<Vec<u8>>,
    offset: usize,
}

impl OutgoingLargeMessage {
    fn bytes(&self) -> &[u8] {
        self.compressed.as_deref().unwrap_or(self.message.payload.bytes())
    }
}

/// The subscription to one publisher, and the channel that carries it.
pub struct Forwarder {
    pub channel: u32,
    pub subscriber: Subscriber<[u8]>,
    shaping: Shaping,
    /// Whether its messages cross unshaped.
    is_unshaped: bool,
    /// Session of the other link in which the channel was requested.
    pub session: u64,
    progress: ChannelProgress,
    /// Bytes that may be sent in all; `credit` limits those that are not read yet.
    credit_limit: u64,
    credit: u64,
    started: bool,
    /// Whether its publisher is gone.
    publisher_gone: bool,
    large: Option<OutgoingLargeMessage>,
    /// The rate limit blocks messages until then.
    not_before_ns: u64,
    /// Losses that its publisher knows of, as last reported; `None` while nothing was promised.
    known_lost: Option<[u64; 4]>,
    liveliness: Option<LivelinessTracker>,
    /// Whether last wills are sent as such, and not as the last message.
    pub sends_wills: bool,
    /// The last will that was sent; `None` before the first report.
    sent_will: Option<Option<u64>>,
    /// The last will as it was sent, or as the publisher left it.
    pub will: Option<Vec<u8>>,
    /// Messages of a reliable publisher that the other host has not read.
    resend: Option<ResendBuffer>,
    /// Says that this has the publisher for the other host, until it is dropped.
    pub claim: Option<OfflineClaim>,
    /// An earlier reader that still has the sent messages, in case the publisher ends before it admits the
    /// current reader.
    pub spare: Option<Subscriber<[u8]>>,
    /// The stream has all messages; they are acknowledged with this frame.
    end_number: Option<u64>,
    /// Whether the other host announces at the end that it has published all.
    pub awaits_unsubscribe: bool,
    /// Whether the stream lacked capacity for the messages that were ready.
    is_blocked: bool,
    /// Age of the waiting message at that time.
    waited_ns: u64,
    reported: Option<ForwardStats>,
}

/// What is exhausted when the stream has no capacity: the credit of the readers if most of it is used up,
/// otherwise the network.
fn block_reason(unread_len_bytes: u64, credit: u64) -> BlockReason {
    match unread_len_bytes > credit / 2 {
        true => BlockReason::Credit,
        false => BlockReason::Window,
    }
}

impl Forwarder {
    /// Creates a forwarder that reads `subscriber` for this channel, from message `from` on if given.
    pub fn new(
        (channel, session): (u32, u64),
        subscriber: Subscriber<[u8]>,
        from: Option<u64>,
        credit: u64,
        shaping: Shaping,
        lease: Option<Duration>,
    ) -> Forwarder {
        Forwarder {
            channel,
            subscriber,
            shaping,
            is_unshaped: shaping.is_passthrough(),
            session,
            progress: ChannelProgress {
                channel,
                next_seq: from,
                cause: LossCause::Link,
                lost: 0,
                sent: 0,
                sent_ns: u64::MAX,
                forwarded: ForwardStats::default(),
            },
            credit_limit: credit,
            credit,
            started: false,
            publisher_gone: false,
            large: None,
            not_before_ns: 0,
            known_lost: from.map(|_| [0; 4]),
            sends_wills: false,
            sent_will: None,
            will: None,
            resend: None,
            claim: None,
            spare: None,
            end_number: None,
            awaits_unsubscribe: false,
            is_blocked: false,
            waited_ns: 0,
            reported: None,
            liveliness: lease.map(LivelinessTracker::new),
        }
    }

    /// Keeps messages that the other host has not read, and sends those that `buffer` holds from before
    /// this channel again.
    pub fn resend(&mut self, mut buffer: ResendBuffer, from: Option<u64>) {
        buffer.rewind(from.unwrap_or_default());
        self.resend = Some(buffer);
    }

    /// Takes the reader and the claim, which continue without the other host.
    pub fn take_offline(self) -> Option<(OfflineReader, OfflineClaim)> {
        let is_admitted = matches!(self.subscriber.read_state(), ReadState::Reading(_));
        let subscriber = self.spare.filter(|_| !is_admitted).unwrap_or(self.subscriber);
        Some((OfflineReader::new(subscriber, self.resend, self.will), self.claim?))
    }

    /// Whether its publisher is gone and the stream has all its messages.
    pub fn is_over(&self) -> bool {
        self.end_number.is_some()
    }

    /// The frame of the stream with its last message; `None` before its end.
    pub fn end_number(&self) -> Option<u64> {
        self.end_number
    }

    /// Whether all messages were acknowledged and none may have to be sent again. Messages that wait for
    /// capacity there are not published, and are requested again after a cut.
    pub fn is_delivered(&self, stream: &Stream) -> bool {
        !self.awaits_unsubscribe && self.end_number.is_some_and(|end| stream.has_acknowledged(end))
    }

    /// The counters.
    fn forwarded(&self) -> ForwardStats {
        let shaped =
            (self.progress.forwarded.skipped > 0).then_some(BlockReason::Configured(self.shaping));
        let blocked_by = match self.is_blocked {
            _ if !self.has_credit() => Some(BlockReason::Credit),
            true => Some(block_reason(self.unread_len_bytes(), self.credit)),
            false => shaped,
        };
        let waited_ns = if self.is_blocked { self.waited_ns } else { 0 };
        ForwardStats { blocked_by, waited_ns, ..self.progress.forwarded }
    }

    /// Bytes that were sent and that the other host has not reported as read.
    fn unread_len_bytes(&self) -> u64 {
        (self.progress.sent + self.credit).saturating_sub(self.credit_limit)
    }

    /// The counters, if they have changed since the last call.
    pub fn take_changed_stats(&mut self) -> Option<ForwardStats> {
        let now = self.forwarded();
        let before = self.reported.replace(now);
        (before != Some(now)).then_some(now)
    }

    /// When the rate limit allows the next message; `None` without a limit.
    pub fn wake_at(&self) -> Option<u64> {
        (self.shaping.rate_limit_hz.is_some()).then_some(self.not_before_ns)
    }

    /// When to check whether its publisher has asserted its liveliness.
    pub fn liveliness_check_at(&self) -> Option<u64> {
        self.liveliness.as_ref().map(|tracker| tracker.check_at_ns)
    }

    /// Records that its publisher is gone, perhaps without having admitted the reader.
    pub fn note_publisher_gone(&mut self) {
        self.publisher_gone = true;
    }

    /// Records that the other host has read `read` bytes.
    pub fn credit(&mut self, read: u64) {
        let read = read.min(self.progress.sent);
        self.credit_limit = self.credit_limit.max(read.saturating_add(self.credit));
        if let Some(resend) = &mut self.resend {
            resend.drop_read(read);
        }
    }

    /// Bytes that were handed to the stream.
    pub fn sent(&self) -> u64 {
        self.progress.sent
    }

    /// Whether the credit allows reading a message now.
    pub fn has_credit(&self) -> bool {
        self.progress.sent < self.credit_limit
    }

    /// Whether part of a message waits and may be sent. No new message would wake the waiting thread for
    /// it.
    pub fn can_resume(&self) -> bool {
        self.has_partial_message() && self.has_credit()
    }

    /// Whether part of a message that was read is not sent yet.
    fn has_partial_message(&self) -> bool {
        self.large.is_some() || self.resend.as_ref().is_some_and(ResendBuffer::has_next)
    }

    /// Whether it has read everything or may not read more.
    pub fn is_quiescent(&self) -> bool {
        !self.has_credit()
            || (!self.has_partial_message() && self.subscriber.behind().messages == 0)
    }

    /// Hands some messages to the stream.
    ///
    /// # Errors
    /// Errors of the subscription, which continues.
    pub fn run_turn(&mut self, stream: &mut Stream, now_ns: u64) -> Result<TurnResult> {
        self.send_alive(stream, now_ns);
        if self.started {
            self.send_will(stream);
        }
        let turn = self.forward_some(stream, now_ns);
        self.is_blocked = matches!(turn, Ok(TurnResult::Blocked))
            && (self.has_partial_message() || self.subscriber.is_ready());
        if self.is_blocked {
            // The next message is hardly younger than the last one that was sent.
            let large_ns = self.large.as_ref().map(|large| large.message.sent_ns);
            self.waited_ns = now_ns.saturating_sub(large_ns.unwrap_or(self.progress.sent_ns));
        }
        turn
    }

    fn forward_some(&mut self, stream: &mut Stream, now_ns: u64) -> Result<TurnResult> {
        for _ in 0..MESSAGES_PER_TURN {
            if !self.has_credit() || !stream.has_room() {
                return Ok(TurnResult::Blocked);
            }
            if self.large.is_some() {
                if self.push_fragment(stream).is_err() {
                    return Ok(TurnResult::Blocked);
                }
                continue;
            }
            match self.forward_next(stream, now_ns) {
                Ok(true) => {}
                Ok(false) => return Ok(self.handle_idle(stream)),
                Err(Error::PeerLost { .. }) => {}
                Err(error @ Error::Detached { .. }) => {
                    self.progress.cause = LossCause::Detached;
                    return Err(error);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(TurnResult::More)
    }

    /// Handles an empty read: the history was read, the reader waits to be admitted, or the publisher is
    /// gone.
    fn handle_idle(&mut self, stream: &mut Stream) -> TurnResult {
        let next_seq = match self.subscriber.read_state() {
            ReadState::Unmatched { end } if self.started || self.publisher_gone => {
                if let Some(spare) = self.spare.take() {
                    // The spare repeats messages that were read here; the other host drops them.
                    self.subscriber = spare;
                    return TurnResult::More;
                }
                // Messages that were lost at the end, which no later message reveals.
                if let Some(end) = end.filter(|_| self.progress.next_seq.is_some()) {
                    self.advance_to(stream, end);
                }
                self.send_known_lost(stream, [0; 4]);
                self.send_final_will(stream);
                self.end_number = Some(stream.end());
                return TurnResult::Ended;
            }
            // An evicted reader is admitted again.
            ReadState::Unmatched { .. } | ReadState::Pending => return TurnResult::Idle,
            ReadState::Reading(next_seq) => next_seq,
        };
        self.spare = None;
        // Messages that are missing at the end: perhaps no later message reveals them.
        self.advance_to(stream, next_seq);
        self.send_known_lost(stream, [0; 4]);
        if !self.started {
            self.started = true;
            self.send_will(stream);
            let flows = Item::Delivery { channel: self.channel, subscription: 0, active: true };
            self.progress.push_item(stream, &flows);
        }
        TurnResult::Idle
    }

    /// Advances to the message with number `seq`.
    fn advance_to(&mut self, stream: &mut Stream, seq: u64) {
        if self.shaping.skips_to_newest() {
            // If a message was overwritten before it could be read, a newer one crosses, as after a skipped
            // one.
            let detached = self.subscriber.lost().detached;
            self.progress.skip_to(stream, seq, detached);
        } else {
            self.progress.advance_to(stream, seq);
        }
    }

    /// Reads a message; returns whether there was one.
    fn forward_next(&mut self, stream: &mut Stream, now_ns: u64) -> Result<bool> {
        if let Some(message) = self.resend.as_mut().and_then(ResendBuffer::take_next) {
            self.forward_message(stream, message, now_ns);
            return Ok(true);
        }
        let sample = match self.shaping.skips_to_newest() {
            true if now_ns < self.not_before_ns => return Ok(false),
            true => match self.subscriber.latest_timeout(Duration::ZERO) {
                Ok(sample) => sample,
                Err(Error::Timeout { .. }) => return Ok(false),
                Err(error) => return Err(error),
            },
            false => {
                let Some(sample) = self.subscriber.try_recv()? else { return Ok(false) };
                if self.is_unshaped
                    && !sample.has_meta()
                    && sample.len() <= MAX_UNFRAGMENTED_LEN_BYTES
                {
                    let (channel, seq, sent_ns) = (self.channel, sample.seq(), sample.sent_ns());
                    let payload = &*sample;
                    self.progress.push_plain(stream, PlainData { channel, seq, sent_ns, payload });
                    if let Some(resend) = &mut self.resend {
                        resend.add_sent((seq, sent_ns), None, payload, self.progress.sent);
                    }
                    return Ok(true);
                }
                let meta = sample.meta();
                let is_will = meta.last_will && self.sends_wills;
                let is_plain = self.is_unshaped && meta.gap.is_none() && !is_will;
                if is_plain && sample.len() <= MAX_UNFRAGMENTED_LEN_BYTES {
                    let data = Data {
                        channel: self.channel,
                        seq: sample.seq(),
                        sent_ns: sample.sent_ns(),
                        meta,
                        payload: &sample,
                        compressed: false,
                    };
                    self.progress.push_data(stream, &data);
                    if let Some(resend) = self.resend.as_mut().filter(|_| !meta.last_will) {
                        let of = (data.seq, data.sent_ns);
                        resend.add_sent(of, Some(&meta), data.payload, self.progress.sent);
                    }
                    return Ok(true);
                }
                sample.into_owned()
            }
        };
        let message = Message::of(sample);
        if let Some(resend) = self.resend.as_mut().filter(|_| !message.meta.last_will) {
            resend.add(&message);
        }
        self.forward_message(stream, message, now_ns);
        Ok(true)
    }

    /// Hands a message to the stream. If it is large, its fragments follow.
    fn forward_message(&mut self, stream: &mut Stream, message: Message, now_ns: u64) {
        let (shaping, seq) = (self.shaping, message.seq);
        let is_taken = is_selected(shaping.every.get().into(), self.progress.next_seq, seq);
        self.advance_to(stream, seq);
        if message.meta.last_will && self.sends_wills {
            // The will is the last message that is read. No sent message has its number.
            self.will = Some(message.payload.bytes().to_vec());
            self.sent_will = None;
            return self.send_final_will(stream);
        }
        if !is_taken {
            self.progress.skip_one(seq);
            return self.mark_sent();
        }
        if shaping.skips_to_newest() {
            let period = shaping.rate_limit_hz.map_or(0.0, |hz| 1e9 / hz);
            // Counted from the clock and not from the last message, so that the mean rate is as configured.
            self.not_before_ns = (self.not_before_ns as f64).max(now_ns as f64 - period) as u64;
            self.not_before_ns = self.not_before_ns.saturating_add(period as u64);
        }
        let compressed = match shaping.compression {
            Compression::None => None,
            Compression::Lz4 => {
                let mut bytes = Vec::new();
                compress(message.payload.bytes(), &mut bytes).then_some(bytes)
            }
        };
        let meta = self.meta_of(stream, message.meta);
        let large = OutgoingLargeMessage { message, meta, compressed, offset: 0 };
        if large.bytes().len() > MAX_UNFRAGMENTED_LEN_BYTES {
            self.progress.next_seq = Some(seq + 1);
            self.large = Some(large);
            return;
        }
        let data = Data {
            channel: self.channel,
            seq,
            sent_ns: large.message.sent_ns,
            meta: large.meta,
            payload: large.bytes(),
            compressed: large.compressed.is_some(),
        };
        self.progress.push_data(stream, &data);
        self.mark_sent();
    }

    fn mark_sent(&mut self) {
        if let Some(resend) = &mut self.resend {
            resend.mark_sent(self.progress.sent);
        }
    }

    /// Hands the next fragment of a large message to the stream.
    fn push_fragment(&mut self, stream: &mut Stream) -> std::result::Result<(), PushError> {
        let Some(large) = &mut self.large else { return Ok(()) };
        let total = large.bytes().len();
        let end = total.min(large.offset + stream.fragment_len());
        stream.push(&Item::Fragment(Fragment {
            channel: self.channel,
            seq: large.message.seq,
            sent_ns: large.message.sent_ns,
            meta: large.meta,
            total: total as u64,
            offset: large.offset as u64,
            bytes: &large.bytes()[large.offset..end],
            compressed: large.compressed.is_some(),
        }))?;
        self.progress.sent += (end - large.offset) as u64;
        large.offset = end;
        if end == total {
            self.progress.sent += MESSAGE_COST;
            self.progress.sent_ns = large.message.sent_ns;
            self.progress.forwarded.messages += 1;
            self.progress.forwarded.bytes += total as u64;
            self.large = None;
            self.mark_sent();
        }
        Ok(())
    }
}

/// The forwarders of one lane to one host, by channel.
pub type Forwarders = BTreeMap<u32, Forwarder>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_blocks_if_most_of_it_is_unread() {
        assert_eq!(block_reason(100, 1000), BlockReason::Window);
        assert_eq!(block_reason(500, 1000), BlockReason::Window);
        assert_eq!(block_reason(501, 1000), BlockReason::Credit);
    }
}
