//! A publisher of this host, as the link reads it for one other host.

use std::collections::BTreeMap;
use std::time::Duration;

use rnet::{Error, LossCause, LossCounts, Meta, ReadState, Result, Subscriber, Waitable};

use crate::config::{Compression, Shaping};
use crate::stream::{PushError, Stream};
use crate::wire::{Data, Fragment, Item, PlainData, compress};

use super::offline::{OfflineClaim, OfflineReader};
use super::proxy::MESSAGE_COST;
use super::resend_buffer::{Message, ResendBuffer};

mod channel_progress;
mod publisher_status;

use channel_progress::{ChannelProgress, is_selected};
use publisher_status::LivelinessTracker;

/// Longer messages cross in fragments.
const MAX_UNFRAGMENTED_LEN_BYTES: usize = 8 << 10;
/// Messages read of one publisher before the next one has its turn.
const MESSAGES_PER_TURN: usize = 64;

/// What has gone through a forwarder.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ForwardStats {
    /// Messages that were handed to the stream.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that could not be read in time, or of which the publisher has let the link go.
    pub lost: LossCounts,
    /// Messages that were left out as configured.
    pub skipped: u64,
    /// What keeps more from crossing.
    pub blocked_by: Option<BlockReason>,
    /// How old the message is that waits for that.
    pub waited_ns: u64,
}

/// What keeps messages from crossing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BlockReason {
    /// The other host has no room for more.
    Credit,
    /// The network has none.
    Window,
    /// The configuration leaves some out.
    Configured(Shaping),
}

/// What a turn has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnResult {
    /// There may be more to read.
    More,
    /// All was read.
    Idle,
    /// It goes on when the other host has room, or the stream.
    Blocked,
    /// The publisher is gone, and what it has left was read.
    Ended,
}

/// A message that crosses in fragments.
struct OutgoingLargeMessage {
    message: Message,
    meta: Meta,
    /// What crosses in place of its bytes.
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
    /// Whether its messages cross as they are.
    is_unshaped: bool,
    /// Session of the other link in which it was asked for.
    pub session: u64,
    progress: ChannelProgress,
    /// How many bytes may be sent, in all and beyond those that were read.
    credit_limit: u64,
    credit: u64,
    started: bool,
    /// Whether its publisher is gone.
    publisher_gone: bool,
    large: Option<OutgoingLargeMessage>,
    /// Before then the rate limit lets nothing pass.
    not_before_ns: u64,
    /// What its publisher knows to be missing, as far as that was told; `None` while nothing was promised.
    known_lost: Option<[u64; 4]>,
    liveliness: Option<LivelinessTracker>,
    /// Whether last wills are told as such, and not as the last message.
    pub sends_wills: bool,
    /// Which last will was told; `None` before anything was.
    sent_will: Option<Option<u64>>,
    /// The last will as it was told, or left.
    pub will: Option<Vec<u8>>,
    /// What the other host has not read, of a reliable publisher.
    resend: Option<ResendBuffer>,
    /// Says that this has the publisher for the other host, until it is dropped.
    pub claim: Option<OfflineClaim>,
    /// A reader of the time before that still knows what was sent, should the publisher end before it admits this one.
    pub spare: Option<Subscriber<[u8]>>,
    /// All was handed to the stream; that is acknowledged with this frame.
    end_number: Option<u64>,
    /// Whether the other host says at the end that it has published all.
    pub awaits_unsubscribe: bool,
    /// Whether the stream had no room for what there was to read.
    is_blocked: bool,
    /// How old the message was then that waited.
    waited_ns: u64,
    reported: Option<ForwardStats>,
}

/// What has no room where the stream has none: the network, or the readers, if most of their credit is used up.
fn block_reason(unread_len_bytes: u64, credit: u64) -> BlockReason {
    match unread_len_bytes > credit / 2 {
        true => BlockReason::Credit,
        false => BlockReason::Window,
    }
}

impl Forwarder {
    /// Reads with `subscriber` for this channel, from message `from` on if that is given.
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

    /// Keeps what the other host has not read, and sends again what `buffer` has of the time before this channel.
    pub fn resend(&mut self, mut buffer: ResendBuffer, from: Option<u64>) {
        buffer.rewind(from.unwrap_or_default());
        self.resend = Some(buffer);
    }

    /// What goes on without the other host.
    pub fn take_offline(self) -> Option<(OfflineReader, OfflineClaim)> {
        let is_admitted = matches!(self.subscriber.read_state(), ReadState::Reading(_));
        let subscriber = self.spare.filter(|_| !is_admitted).unwrap_or(self.subscriber);
        Some((OfflineReader::new(subscriber, self.resend, self.will), self.claim?))
    }

    /// Whether its publisher is gone and all that it has left was handed to the stream.
    pub fn is_over(&self) -> bool {
        self.end_number.is_some()
    }

    /// Whether that was acknowledged, and nothing of it may have to be sent again: what waits there for room is not
    /// published, and is wanted again after a cut.
    pub fn is_delivered(&self, stream: &Stream) -> bool {
        !self.awaits_unsubscribe && self.end_number.is_some_and(|end| stream.has_acknowledged(end))
    }

    /// What has gone through it.
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

    /// What was sent, as far as the other host has not said that it was read there.
    fn unread_len_bytes(&self) -> u64 {
        (self.progress.sent + self.credit).saturating_sub(self.credit_limit)
    }

    /// What has gone through it, if that is not what this said before.
    pub fn take_changed_stats(&mut self) -> Option<ForwardStats> {
        let now = self.forwarded();
        let before = self.reported.replace(now);
        (before != Some(now)).then_some(now)
    }

    /// When the rate limit lets the next message pass; `None` without one.
    pub fn wake_at(&self) -> Option<u64> {
        (self.shaping.rate_limit_hz.is_some()).then_some(self.not_before_ns)
    }

    /// When to look whether its publisher has asserted that it is alive.
    pub fn liveliness_check_at(&self) -> Option<u64> {
        self.liveliness.as_ref().map(|tracker| tracker.check_at_ns)
    }

    /// Its publisher is gone, perhaps without having admitted it.
    pub fn note_publisher_gone(&mut self) {
        self.publisher_gone = true;
    }

    /// The other host has read so many bytes.
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

    /// Whether a message would be read now.
    pub fn has_credit(&self) -> bool {
        self.progress.sent < self.credit_limit
    }

    /// Whether a part of a message waits to be sent and may be: no message that comes would wake who waits.
    pub fn can_resume(&self) -> bool {
        self.has_partial_message() && self.has_credit()
    }

    /// Whether it has read something that is not sent.
    fn has_partial_message(&self) -> bool {
        self.large.is_some() || self.resend.as_ref().is_some_and(ResendBuffer::has_next)
    }

    /// Whether it has read all that there is, or may read no more.
    pub fn is_quiescent(&self) -> bool {
        !self.has_credit()
            || (!self.has_partial_message() && self.subscriber.behind().messages == 0)
    }

    /// Hands some messages to the stream.
    ///
    /// # Errors
    /// Of the subscription, which goes on.
    pub fn run_turn(&mut self, stream: &mut Stream, now_ns: u64) -> Result<TurnResult> {
        self.send_alive(stream, now_ns);
        if self.started {
            self.send_will(stream);
        }
        let turn = self.forward_some(stream, now_ns);
        self.is_blocked = matches!(turn, Ok(TurnResult::Blocked))
            && (self.has_partial_message() || self.subscriber.is_ready());
        if self.is_blocked {
            // What comes after the last one that was sent is hardly younger.
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

    /// Nothing was found: the past was read, it waits to be admitted, or the publisher is gone.
    fn handle_idle(&mut self, stream: &mut Stream) -> TurnResult {
        let next_seq = match self.subscriber.read_state() {
            ReadState::Unmatched { end } if self.started || self.publisher_gone => {
                if let Some(spare) = self.spare.take() {
                    // What this one has read comes again, and is dropped there.
                    self.subscriber = spare;
                    return TurnResult::More;
                }
                // Those that were lost with it, and no message shows.
                if let Some(end) = end.filter(|_| self.progress.next_seq.is_some()) {
                    self.advance_to(stream, end);
                }
                self.send_known_lost(stream, [0; 4]);
                self.send_final_will(stream);
                self.end_number = Some(stream.end());
                return TurnResult::Ended;
            }
            // One that was let go is admitted again.
            ReadState::Unmatched { .. } | ReadState::Pending => return TurnResult::Idle,
            ReadState::Reading(next_seq) => next_seq,
        };
        self.spare = None;
        // What is missing at the end: perhaps no message comes that would show it.
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

    /// The next message has this number.
    fn advance_to(&mut self, stream: &mut Stream, seq: u64) {
        if self.shaping.skips_to_newest() {
            // Of what was overwritten as it was about to be read something newer crosses, as of what was passed over.
            let detached = self.subscriber.lost().detached;
            self.progress.skip_to(stream, seq, detached);
        } else {
            self.progress.advance_to(stream, seq);
        }
    }

    /// Reads a message; whether there was one.
    fn forward_next(&mut self, stream: &mut Stream, now_ns: u64) -> Result<bool> {
        if let Some(message) = self.resend.as_mut().and_then(ResendBuffer::take_next) {
            self.forward_message(stream, message, now_ns);
            return Ok(true);
        }
        let sample = match self.shaping.skips_to_newest() {
            true if now_ns < self.not_before_ns => return Ok(false),
            true => match self.subscriber.latest(Some(Duration::ZERO)) {
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

    /// Hands a message to the stream, whose fragments follow if it is large.
    fn forward_message(&mut self, stream: &mut Stream, message: Message, now_ns: u64) {
        let (shaping, seq) = (self.shaping, message.seq);
        let is_taken = is_selected(shaping.every.get().into(), self.progress.next_seq, seq);
        self.advance_to(stream, seq);
        if message.meta.last_will && self.sends_wills {
            // It is the last that is read, and has a number that none has sent.
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
            // By the clock and not by the last one, so that the mean is as configured.
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
    fn who_has_read_little_of_its_credit_is_what_holds_back() {
        assert_eq!(block_reason(100, 1000), BlockReason::Window);
        assert_eq!(block_reason(500, 1000), BlockReason::Window);
        assert_eq!(block_reason(501, 1000), BlockReason::Credit);
    }
}
