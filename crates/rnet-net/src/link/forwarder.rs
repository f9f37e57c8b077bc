//! A publisher of this host, as the link reads it for one other host.

use std::collections::BTreeMap;
use std::time::Duration;

use rnet::{Error, LossCause, LossCounts, Meta, Result, Standing, Subscriber, Waitable};

use crate::config::{Compression, Shaping};
use crate::stream::{PushError, Stream};
use crate::wire::{Data, Item, Piece, Plain, compress};

use super::offline::{Claim, OfflineReader};
use super::proxy::MESSAGE_COST;
use super::resend_buffer::{Message, ResendBuffer};

mod course;
mod signs;

use course::{Course, is_one_of};
use signs::LifeSigns;

/// Longer messages cross in pieces.
const WHOLE_LEN_BYTES: usize = 8 << 10;
/// Messages read of one publisher before the next one has its turn.
const TURN: usize = 64;

/// What has gone through a forwarder.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Forwarded {
    /// Messages that were handed to the stream.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that could not be read in time, or of which the publisher has let the link go.
    pub lost: LossCounts,
    /// Messages that were left out as configured.
    pub skipped: u64,
    /// What keeps more from crossing.
    pub held: Option<Held>,
    /// How old the message is that waits for that.
    pub waited_ns: u64,
}

/// What keeps messages from crossing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Held {
    /// The other host has no room for more.
    Credit,
    /// The network has none.
    Window,
    /// The configuration leaves some out.
    Configured(Shaping),
}

/// What a turn has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There may be more to read.
    More,
    /// All was read.
    Idle,
    /// It goes on when the other host has room, or the stream.
    Blocked,
    /// The publisher is gone, and what it has left was read.
    Ended,
}

/// A message that crosses in pieces.
struct Large {
    message: Message,
    meta: Meta,
    /// What crosses in place of its bytes.
    compressed: Option<Vec<u8>>,
    offset: usize,
}

impl Large {
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
    course: Course,
    /// How many bytes may be sent, in all and beyond those that were read.
    limit: u64,
    credit: u64,
    started: bool,
    /// Whether its publisher is gone.
    left: bool,
    large: Option<Large>,
    /// Before then the rate limit lets nothing pass.
    not_before_ns: u64,
    /// What its publisher knows to be missing, as far as that was told; `None` while nothing was promised.
    known_lost: Option<[u64; 4]>,
    signs: Option<LifeSigns>,
    /// Whether last wills are told as such, and not as the last message.
    pub wills: bool,
    /// Which last will was told; `None` before anything was.
    told_will: Option<Option<u64>>,
    /// The last will as it was told, or left.
    pub will: Option<Vec<u8>>,
    /// What the other host has not read, of a reliable publisher.
    resend: Option<ResendBuffer>,
    /// Says that this has the publisher for the other host, until it is dropped.
    pub claim: Option<Claim>,
    /// A reader of the time before that still knows what was sent, should the publisher end before it admits this one.
    pub spare: Option<Subscriber<[u8]>>,
    /// All was handed to the stream; that is acknowledged with this frame.
    over: Option<u64>,
    /// Whether the other host says at the end that it has published all.
    pub awaits_unwant: bool,
    /// Whether the stream had no room for what there was to read.
    is_blocked: bool,
    /// How old the message was then that waited.
    waited_ns: u64,
    told: Option<Forwarded>,
}

/// What has no room where the stream has none: the network, or the readers, if most of their credit is used up.
fn blocked_by(unread_len_bytes: u64, credit: u64) -> Held {
    match unread_len_bytes > credit / 2 {
        true => Held::Credit,
        false => Held::Window,
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
            is_unshaped: shaping.leaves_as_is(),
            session,
            course: Course {
                channel,
                next_seq: from,
                cause: LossCause::Link,
                lost: 0,
                sent: 0,
                sent_ns: u64::MAX,
                forwarded: Forwarded::default(),
            },
            limit: credit,
            credit,
            started: false,
            left: false,
            large: None,
            not_before_ns: 0,
            known_lost: from.map(|_| [0; 4]),
            wills: false,
            told_will: None,
            will: None,
            resend: None,
            claim: None,
            spare: None,
            over: None,
            awaits_unwant: false,
            is_blocked: false,
            waited_ns: 0,
            told: None,
            signs: lease.map(LifeSigns::new),
        }
    }

    /// Keeps what the other host has not read, and sends again what `buffer` has of the time before this channel.
    pub fn resend(&mut self, mut buffer: ResendBuffer, from: Option<u64>) {
        buffer.rewind(from.unwrap_or_default());
        self.resend = Some(buffer);
    }

    /// What goes on without the other host.
    pub fn take_offline(self) -> Option<(OfflineReader, Claim)> {
        let is_admitted = matches!(self.subscriber.standing(), Standing::Reading(_));
        let subscriber = self.spare.filter(|_| !is_admitted).unwrap_or(self.subscriber);
        Some((OfflineReader::new(subscriber, self.resend, self.will), self.claim?))
    }

    /// Whether its publisher is gone and all that it has left was handed to the stream.
    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Whether that was acknowledged, and nothing of it may have to be sent again: what waits there for room is not
    /// published, and is wanted again after a cut.
    pub fn is_delivered(&self, stream: &Stream) -> bool {
        !self.awaits_unwant && self.over.is_some_and(|end| stream.has_acknowledged(end))
    }

    /// What has gone through it.
    fn forwarded(&self) -> Forwarded {
        let shaped = (self.course.forwarded.skipped > 0).then_some(Held::Configured(self.shaping));
        let held = match self.is_blocked {
            _ if !self.has_credit() => Some(Held::Credit),
            true => Some(blocked_by(self.unread_len_bytes(), self.credit)),
            false => shaped,
        };
        let waited_ns = if self.is_blocked { self.waited_ns } else { 0 };
        Forwarded { held, waited_ns, ..self.course.forwarded }
    }

    /// What was sent, as far as the other host has not said that it was read there.
    fn unread_len_bytes(&self) -> u64 {
        (self.course.sent + self.credit).saturating_sub(self.limit)
    }

    /// What has gone through it, if that is not what this said before.
    pub fn news(&mut self) -> Option<Forwarded> {
        let now = self.forwarded();
        let before = self.told.replace(now);
        (before != Some(now)).then_some(now)
    }

    /// When the rate limit lets the next message pass; `None` without one.
    pub fn wake_at(&self) -> Option<u64> {
        (self.shaping.rate_limit_hz.is_some()).then_some(self.not_before_ns)
    }

    /// When to look whether its publisher has asserted that it is alive.
    pub fn look_at(&self) -> Option<u64> {
        self.signs.as_ref().map(|signs| signs.look_at_ns)
    }

    /// Its publisher is gone, perhaps without having admitted it.
    pub fn note_left(&mut self) {
        self.left = true;
    }

    /// The other host has read so many bytes.
    pub fn credit(&mut self, read: u64) {
        let read = read.min(self.course.sent);
        self.limit = self.limit.max(read.saturating_add(self.credit));
        if let Some(resend) = &mut self.resend {
            resend.drop_read(read);
        }
    }

    /// Bytes that were handed to the stream.
    pub fn sent(&self) -> u64 {
        self.course.sent
    }

    /// Whether a message would be read now.
    pub fn has_credit(&self) -> bool {
        self.course.sent < self.limit
    }

    /// Whether a part of a message waits to be sent and may be: no message that comes would wake who waits.
    pub fn can_go_on(&self) -> bool {
        self.is_amid() && self.has_credit()
    }

    /// Whether it has read something that is not sent.
    fn is_amid(&self) -> bool {
        self.large.is_some() || self.resend.as_ref().is_some_and(ResendBuffer::has_next)
    }

    /// Whether it has read all that there is, or may read no more.
    pub fn is_at_rest(&self) -> bool {
        !self.has_credit() || (!self.is_amid() && self.subscriber.behind().messages == 0)
    }

    /// Hands some messages to the stream.
    ///
    /// # Errors
    /// Of the subscription, which goes on.
    pub fn turn(&mut self, stream: &mut Stream, now_ns: u64) -> Result<Turn> {
        self.tell_alive(stream, now_ns);
        if self.started {
            self.tell_will(stream);
        }
        let turn = self.take_turn(stream, now_ns);
        self.is_blocked =
            matches!(turn, Ok(Turn::Blocked)) && (self.is_amid() || self.subscriber.is_ready());
        if self.is_blocked {
            // What comes after the last one that was sent is hardly younger.
            let large_ns = self.large.as_ref().map(|large| large.message.sent_ns);
            self.waited_ns = now_ns.saturating_sub(large_ns.unwrap_or(self.course.sent_ns));
        }
        turn
    }

    fn take_turn(&mut self, stream: &mut Stream, now_ns: u64) -> Result<Turn> {
        for _ in 0..TURN {
            if !self.has_credit() || !stream.has_room() {
                return Ok(Turn::Blocked);
            }
            if self.large.is_some() {
                if self.piece(stream).is_err() {
                    return Ok(Turn::Blocked);
                }
                continue;
            }
            match self.next(stream, now_ns) {
                Ok(true) => {}
                Ok(false) => return Ok(self.idle(stream)),
                Err(Error::PeerLost { .. }) => {}
                Err(error @ Error::Detached { .. }) => {
                    self.course.cause = LossCause::Detached;
                    return Err(error);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Turn::More)
    }

    /// Nothing was found: the past was read, it waits to be admitted, or the publisher is gone.
    fn idle(&mut self, stream: &mut Stream) -> Turn {
        let next_seq = match self.subscriber.standing() {
            Standing::Alone { end } if self.started || self.left => {
                if let Some(spare) = self.spare.take() {
                    // What this one has read comes again, and is dropped there.
                    self.subscriber = spare;
                    return Turn::More;
                }
                // Those that were lost with it, and no message shows.
                if let Some(end) = end.filter(|_| self.course.next_seq.is_some()) {
                    self.come_to(stream, end);
                }
                self.tell_missing(stream, [0; 4]);
                self.tell_left_will(stream);
                self.over = Some(stream.end());
                return Turn::Ended;
            }
            // One that was let go is admitted again.
            Standing::Alone { .. } | Standing::Asking => return Turn::Idle,
            Standing::Reading(next_seq) => next_seq,
        };
        self.spare = None;
        // What is missing at the end: perhaps no message comes that would show it.
        self.come_to(stream, next_seq);
        self.tell_missing(stream, [0; 4]);
        if !self.started {
            self.started = true;
            self.tell_will(stream);
            let flows = Item::Flowing { channel: self.channel, subscription: 0, yes: true };
            self.course.say(stream, &flows);
        }
        Turn::Idle
    }

    /// The next message has this number.
    fn come_to(&mut self, stream: &mut Stream, seq: u64) {
        if self.shaping.takes_newest() {
            // Of what was overwritten as it was about to be read something newer crosses, as of what was passed over.
            let detached = self.subscriber.lost().detached;
            self.course.leave_out(stream, seq, detached);
        } else {
            self.course.come_to(stream, seq);
        }
    }

    /// Reads a message; whether there was one.
    fn next(&mut self, stream: &mut Stream, now_ns: u64) -> Result<bool> {
        if let Some(message) = self.resend.as_mut().and_then(ResendBuffer::take_next) {
            self.cross(stream, message, now_ns);
            return Ok(true);
        }
        let sample = match self.shaping.takes_newest() {
            true if now_ns < self.not_before_ns => return Ok(false),
            true => match self.subscriber.latest(Some(Duration::ZERO)) {
                Ok(sample) => sample,
                Err(Error::Timeout { .. }) => return Ok(false),
                Err(error) => return Err(error),
            },
            false => {
                let Some(sample) = self.subscriber.try_recv()? else { return Ok(false) };
                if self.is_unshaped && !sample.has_meta() && sample.len() <= WHOLE_LEN_BYTES {
                    let (channel, seq, sent_ns) = (self.channel, sample.seq(), sample.sent_ns());
                    let payload = &*sample;
                    self.course.pass_plain(stream, Plain { channel, seq, sent_ns, payload });
                    if let Some(resend) = &mut self.resend {
                        resend.add_sent((seq, sent_ns), None, payload, self.course.sent);
                    }
                    return Ok(true);
                }
                let meta = sample.meta();
                let is_will = meta.last_will && self.wills;
                let is_plain = self.is_unshaped && meta.gap.is_none() && !is_will;
                if is_plain && sample.len() <= WHOLE_LEN_BYTES {
                    let data = Data {
                        channel: self.channel,
                        seq: sample.seq(),
                        sent_ns: sample.sent_ns(),
                        meta,
                        payload: &sample,
                        compressed: false,
                    };
                    self.course.pass(stream, &data);
                    if let Some(resend) = self.resend.as_mut().filter(|_| !meta.last_will) {
                        let of = (data.seq, data.sent_ns);
                        resend.add_sent(of, Some(&meta), data.payload, self.course.sent);
                    }
                    return Ok(true);
                }
                sample.to_owned_sample()
            }
        };
        let message = Message::of(sample);
        if let Some(resend) = self.resend.as_mut().filter(|_| !message.meta.last_will) {
            resend.add(&message);
        }
        self.cross(stream, message, now_ns);
        Ok(true)
    }

    /// Hands a message to the stream, whose pieces follow if it is large.
    fn cross(&mut self, stream: &mut Stream, message: Message, now_ns: u64) {
        let (shaping, seq) = (self.shaping, message.seq);
        let is_taken = is_one_of(shaping.every.get().into(), self.course.next_seq, seq);
        self.come_to(stream, seq);
        if message.meta.last_will && self.wills {
            // It is the last that is read, and has a number that none has sent.
            self.will = Some(message.payload.bytes().to_vec());
            self.told_will = None;
            return self.tell_left_will(stream);
        }
        if !is_taken {
            self.course.leave_out_one(seq);
            return self.mark_sent();
        }
        if shaping.takes_newest() {
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
        let large = Large { message, meta, compressed, offset: 0 };
        if large.bytes().len() > WHOLE_LEN_BYTES {
            self.course.next_seq = Some(seq + 1);
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
        self.course.pass(stream, &data);
        self.mark_sent();
    }

    fn mark_sent(&mut self) {
        if let Some(resend) = &mut self.resend {
            resend.mark_sent(self.course.sent);
        }
    }

    /// Hands the next piece of a large message to the stream.
    fn piece(&mut self, stream: &mut Stream) -> std::result::Result<(), PushError> {
        let Some(large) = &mut self.large else { return Ok(()) };
        let total = large.bytes().len();
        let end = total.min(large.offset + stream.piece_len());
        stream.push(&Item::Piece(Piece {
            channel: self.channel,
            seq: large.message.seq,
            sent_ns: large.message.sent_ns,
            meta: large.meta,
            total: total as u64,
            offset: large.offset as u64,
            bytes: &large.bytes()[large.offset..end],
            compressed: large.compressed.is_some(),
        }))?;
        self.course.sent += (end - large.offset) as u64;
        large.offset = end;
        if end == total {
            self.course.sent += MESSAGE_COST;
            self.course.sent_ns = large.message.sent_ns;
            self.course.forwarded.messages += 1;
            self.course.forwarded.bytes += total as u64;
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
        assert_eq!(blocked_by(100, 1000), Held::Window);
        assert_eq!(blocked_by(500, 1000), Held::Window);
        assert_eq!(blocked_by(501, 1000), Held::Credit);
    }
}
