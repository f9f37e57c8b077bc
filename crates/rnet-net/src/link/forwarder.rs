//! A publisher of this host, as the link reads it for one other host.

use std::collections::BTreeMap;
use std::time::Duration;

use rnet::{Error, LossCause, OwnedSample, Result, Subscriber};

use crate::config::{Compression, Shaping};
use crate::stream::{PushError, Stream};
use crate::wire::{Data, Item, Piece, compress};

use super::proxy::MESSAGE_COST;

/// Longer messages cross in pieces.
const WHOLE_LEN_BYTES: usize = 8 << 10;
/// Messages read of one publisher before the next one has its turn.
const TURN: usize = 64;

/// What has gone through a forwarder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// Messages that were handed to the stream.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that could not be read in time.
    pub lost: u64,
    /// Messages that were left out as configured.
    pub skipped: u64,
    /// Whether the other host has no room for more.
    pub held_back: bool,
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
    sample: OwnedSample<[u8]>,
    /// What crosses in place of its bytes.
    compressed: Option<Vec<u8>>,
    offset: usize,
}

impl Large {
    fn bytes(&self) -> &[u8] {
        self.compressed.as_deref().unwrap_or(&self.sample)
    }
}

/// The subscription to one publisher, and the channel that carries it.
pub struct Forwarder {
    pub channel: u32,
    pub subscriber: Subscriber<[u8]>,
    shaping: Shaping,
    /// Session of the other link in which it was asked for.
    pub session: u64,
    course: Course,
    /// How many bytes may be sent, in all and beyond those that were read.
    limit: u64,
    credit: u64,
    started: bool,
    large: Option<Large>,
    /// Before then the rate limit lets nothing pass.
    not_before_ns: u64,
    seen: u64,
}

impl Forwarder {
    /// Reads with `subscriber` for this channel, from message `from` on if that is given.
    pub fn new(
        (channel, session): (u32, u64),
        subscriber: Subscriber<[u8]>,
        from: Option<u64>,
        credit: u64,
        shaping: Shaping,
    ) -> Forwarder {
        Forwarder {
            channel,
            subscriber,
            shaping,
            session,
            course: Course {
                channel,
                next_seq: from,
                cause: LossCause::Link,
                sent: 0,
                forwarded: Forwarded::default(),
            },
            limit: credit,
            credit,
            started: false,
            large: None,
            not_before_ns: 0,
            seen: 0,
        }
    }

    /// What has gone through it.
    pub fn forwarded(&self) -> Forwarded {
        Forwarded { held_back: !self.has_credit(), ..self.course.forwarded }
    }

    /// When the rate limit lets the next message pass; `None` without one.
    pub fn wake_at(&self) -> Option<u64> {
        (self.shaping.rate_limit_hz.is_some()).then_some(self.not_before_ns)
    }

    /// The other host has read so many bytes.
    pub fn credit(&mut self, read: u64) {
        self.limit = self.limit.max(read.min(self.course.sent).saturating_add(self.credit));
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
        self.large.is_some() && self.has_credit()
    }

    /// Whether it has read all that there is, or may read no more.
    pub fn is_at_rest(&self) -> bool {
        !self.has_credit() || (self.large.is_none() && self.subscriber.behind().messages == 0)
    }

    /// Hands some messages to the stream.
    ///
    /// # Errors
    /// Of the subscription, which goes on.
    pub fn turn(&mut self, stream: &mut Stream, now_ns: u64) -> Result<Turn> {
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
                Ok(false) => return self.idle(stream),
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

    /// Nothing was found: the past was read, or the publisher is gone.
    fn idle(&mut self, stream: &mut Stream) -> Result<Turn> {
        let there = self.subscriber.publisher_count() > 0;
        if there && !self.started {
            let flows = Item::Flowing { channel: self.channel, subscription: 0, yes: true };
            match stream.push(&flows) {
                Ok(()) => self.started = true,
                Err(_) => return Ok(Turn::Blocked),
            }
        }
        Ok(if self.started && !there { Turn::Ended } else { Turn::Idle })
    }

    /// Reads a message; whether there was one.
    fn next(&mut self, stream: &mut Stream, now_ns: u64) -> Result<bool> {
        let shaping = self.shaping;
        let sample = match shaping.newest_only || shaping.rate_limit_hz.is_some() {
            true if now_ns < self.not_before_ns => return Ok(false),
            true => match self.subscriber.latest(Some(Duration::ZERO)) {
                Ok(sample) => sample,
                Err(Error::Timeout { .. }) => return Ok(false),
                Err(error) => return Err(error),
            },
            false => match self.subscriber.try_recv()? {
                Some(sample)
                    if shaping == Shaping::default()
                        && sample.len() <= WHOLE_LEN_BYTES
                        && self.course.next_seq.is_some() =>
                {
                    let data = Data {
                        channel: self.channel,
                        seq: sample.seq(),
                        sent_ns: sample.sent_ns(),
                        meta: sample.meta(),
                        payload: &sample,
                        compressed: false,
                    };
                    self.course.pass(stream, &data);
                    return Ok(true);
                }
                Some(sample) => sample.to_owned_sample(),
                None => return Ok(false),
            },
        };
        self.seen += 1;
        let seq = sample.seq();
        if self.course.next_seq.is_none() {
            // It has been told that messages flow: those that it missed before the first one are a loss too.
            let lost = self.subscriber.lost();
            self.course.next_seq = Some(seq.saturating_sub(lost.overrun + lost.detached));
        }
        if !self.seen.is_multiple_of(shaping.every.get().into()) {
            self.course.skip(seq + 1);
            return Ok(true);
        }
        if shaping.newest_only || shaping.rate_limit_hz.is_some() {
            self.course.skip(seq);
            let period = shaping.rate_limit_hz.map_or(0.0, |hz| 1e9 / hz);
            // By the clock and not by the last one, so that the mean is as configured.
            self.not_before_ns = (self.not_before_ns as f64).max(now_ns as f64 - period) as u64;
            self.not_before_ns = self.not_before_ns.saturating_add(period as u64);
        }
        let compressed = match shaping.compression {
            Compression::None => None,
            Compression::Lz4 => {
                let mut bytes = Vec::new();
                compress(&sample, &mut bytes).then_some(bytes)
            }
        };
        let large = Large { sample, compressed, offset: 0 };
        if large.bytes().len() > WHOLE_LEN_BYTES {
            self.course.note_gap(stream, seq);
            self.large = Some(large);
            return Ok(true);
        }
        let data = Data {
            channel: self.channel,
            seq,
            sent_ns: large.sample.sent_ns(),
            meta: large.sample.meta(),
            payload: large.bytes(),
            compressed: large.compressed.is_some(),
        };
        self.course.pass(stream, &data);
        Ok(true)
    }

    /// Hands the next piece of a large message to the stream.
    fn piece(&mut self, stream: &mut Stream) -> std::result::Result<(), PushError> {
        let Some(large) = &mut self.large else { return Ok(()) };
        let total = large.bytes().len();
        let end = total.min(large.offset + stream.piece_len());
        stream.push(&Item::Piece(Piece {
            channel: self.channel,
            seq: large.sample.seq(),
            sent_ns: large.sample.sent_ns(),
            meta: large.sample.meta(),
            total: total as u64,
            offset: large.offset as u64,
            bytes: &large.bytes()[large.offset..end],
            compressed: large.compressed.is_some(),
        }))?;
        self.course.sent += (end - large.offset) as u64;
        large.offset = end;
        if end == total {
            self.course.sent += MESSAGE_COST;
            self.course.forwarded.messages += 1;
            self.course.forwarded.bytes += total as u64;
            self.large = None;
        }
        Ok(())
    }
}

/// Where a channel has come to.
struct Course {
    channel: u32,
    /// Number of the next message; `None` if any may be the first.
    next_seq: Option<u64>,
    /// Why messages are missing before the next one.
    cause: LossCause,
    /// Bytes that were sent.
    sent: u64,
    forwarded: Forwarded,
}

impl Course {
    /// Hands a message to the stream, which has room.
    fn pass(&mut self, stream: &mut Stream, data: &Data<'_>) {
        self.note_gap(stream, data.seq);
        // The gap may have taken the last of the room; the message was read and goes with it.
        let pushed = stream.push_along(&Item::Data(*data));
        debug_assert!(pushed.is_ok(), "it was asked whether there is room");
        let len = data.payload.len() as u64;
        self.sent += len + MESSAGE_COST;
        self.forwarded.messages += 1;
        self.forwarded.bytes += len;
    }

    /// What comes before message `next` is left out, as configured.
    fn skip(&mut self, next: u64) {
        let from = self.next_seq.replace(next).unwrap_or(next);
        self.forwarded.skipped += next.saturating_sub(from);
    }

    /// Tells of the messages that are missing before message `seq`.
    fn note_gap(&mut self, stream: &mut Stream, seq: u64) {
        let expected = self.next_seq.replace(seq + 1).unwrap_or(seq);
        if seq > expected {
            let (channel, count, cause) = (self.channel, seq - expected, self.cause);
            self.forwarded.lost += count;
            let pushed = stream.push(&Item::Gap { channel, seq: expected, count, cause });
            debug_assert!(pushed.is_ok(), "it was asked whether there is room");
        }
        self.cause = LossCause::Link;
    }
}

/// The forwarders of one lane to one host, by channel.
pub type Forwarders = BTreeMap<u32, Forwarder>;
