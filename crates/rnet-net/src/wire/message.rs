//! The fields with which `Data` and `Fragment` begin: few bytes, because each message pays for them.
//!
//! Numbers are encoded as the difference from the previous message in the same frame. So a frame can be
//! read without any other, and a repeated one means the same.

use rnet::{KnownGap, LossCause, Meta};

use super::error::WireError;
use super::items::{ItemFields, ItemHead};
use super::varint::{unzigzag, zigzag};

/// Flag in the kind: the bytes are compressed.
const COMPRESSED: u8 = 1;
/// Flag in the kind: `Meta::source_ns` is present.
const SOURCE: u8 = 1 << 1;
/// Flag in the kind: `Meta::correlation` is present.
const CORRELATION: u8 = 1 << 2;
/// Flag in the kind: `Meta::gap` is present.
const GAP: u8 = 1 << 3;
/// Flag in the kind: same channel as the previous message, next sequence number; both are omitted.
pub const FOLLOWS: u8 = 1 << 4;
/// All flags; the other bits distinguish `Data` and `Fragment`.
pub const FLAGS: u8 = COMPRESSED | SOURCE | CORRELATION | GAP | FOLLOWS;

/// Channels whose last sequence number in the frame is remembered.
const REMEMBERED_CHANNELS: usize = 16;

/// State of the earlier messages in the frame.
#[derive(Clone, Debug, Default)]
pub struct DeltaState {
    channel: Option<u32>,
    sent_ns: u64,
    /// Channel and next expected sequence number, at the index `channel % REMEMBERED_CHANNELS`.
    expected: [(u32, u64); REMEMBERED_CHANNELS],
}

impl DeltaState {
    fn expected(&mut self, channel: u32) -> &mut u64 {
        let slot = &mut self.expected[channel as usize % REMEMBERED_CHANNELS];
        if slot.0 != channel {
            *slot = (channel, 0);
        }
        &mut slot.1
    }
}

impl DeltaState {
    /// Whether this message follows the previous one on its channel; if so, the state advances.
    #[inline]
    pub fn advance_if_next(&mut self, channel: u32, seq: u64) -> bool {
        if self.channel != Some(channel) {
            return false;
        }
        let (of, expected) = &mut self.expected[channel as usize % REMEMBERED_CHANNELS];
        if (*of, *expected) != (channel, seq) {
            return false;
        }
        *expected = seq.wrapping_add(1);
        true
    }

    /// The difference of its send time from the previous message, in its encoding on the wire.
    #[inline]
    pub fn encode_time(&mut self, sent_ns: u64) -> u64 {
        let distance = sent_ns.wrapping_sub(std::mem::replace(&mut self.sent_ns, sent_ns));
        zigzag(distance.cast_signed())
    }

    /// The message that follows, with the send time difference as on the wire: its channel, number and
    /// time.
    #[inline]
    pub fn decode_next(&mut self, distance: u64) -> Option<(u32, u64, u64)> {
        let channel = self.channel?;
        let expected = self.expected(channel);
        let seq = *expected;
        *expected = seq.wrapping_add(1);
        self.sent_ns = self.sent_ns.wrapping_add(unzigzag(distance).cast_unsigned());
        Some((channel, seq, self.sent_ns))
    }
}

/// The common fields of `Data` and `Fragment`.
#[derive(Clone, Copy)]
pub struct MessageFields {
    pub channel: u32,
    pub seq: u64,
    pub sent_ns: u64,
    pub meta: Meta,
    pub compressed: bool,
}

impl MessageFields {
    /// Writes the fields; returns the flags for the kind.
    #[inline]
    pub fn put(&self, before: &mut DeltaState, head: &mut ItemHead) -> u8 {
        let mut flags = if self.compressed { COMPRESSED } else { 0 };
        let same = before.channel.replace(self.channel) == Some(self.channel);
        let expected = before.expected(self.channel);
        let distance = self.seq.wrapping_sub(*expected);
        *expected = self.seq.wrapping_add(1);
        if same && distance == 0 {
            flags |= FOLLOWS;
        } else {
            head.put(u64::from(self.channel));
            head.put(zigzag(distance.cast_signed()));
        }
        head.put(zigzag(self.sent_ns.wrapping_sub(before.sent_ns).cast_signed()));
        before.sent_ns = self.sent_ns;
        if let Some(source_ns) = self.meta.source_ns {
            flags |= SOURCE;
            head.put(zigzag(source_ns));
        }
        if let Some(correlation) = self.meta.correlation {
            flags |= CORRELATION;
            head.put(correlation);
        }
        if let Some(KnownGap { cause, size }) = self.meta.gap {
            flags |= GAP;
            head.put(cause as u64);
            head.put(size);
        }
        flags
    }

    /// Reads the fields that [`put`](Self::put) has written.
    #[inline]
    pub fn take(
        before: &mut DeltaState,
        fields: &mut ItemFields<'_>,
    ) -> Result<MessageFields, WireError> {
        let flags = fields.kind & FLAGS;
        let (channel, distance) = if flags & FOLLOWS == 0 {
            (fields.number("channel")?, unzigzag(fields.word()?).cast_unsigned())
        } else {
            (before.channel.ok_or(fields.wrong("channel"))?, 0)
        };
        before.channel = Some(channel);
        let expected = before.expected(channel);
        let seq = expected.wrapping_add(distance);
        *expected = seq.wrapping_add(1);
        before.sent_ns = before.sent_ns.wrapping_add(unzigzag(fields.word()?).cast_unsigned());
        let mut meta = Meta::default();
        if flags & SOURCE != 0 {
            meta.source_ns = Some(unzigzag(fields.word()?));
        }
        if flags & CORRELATION != 0 {
            meta.correlation = Some(fields.word()?);
        }
        if flags & GAP != 0 {
            meta.gap = Some(KnownGap { cause: loss_cause(fields.word()?), size: fields.word()? });
        }
        let compressed = flags & COMPRESSED != 0;
        Ok(MessageFields { channel, seq, sent_ns: before.sent_ns, meta, compressed })
    }
}

/// A cause of a later version counts as one of the link, so that its messages are counted.
pub fn loss_cause(number: u64) -> LossCause {
    let known = usize::try_from(number).ok().and_then(|number| LossCause::ALL.get(number));
    known.copied().unwrap_or(LossCause::Link)
}
