//! Where the channel of a forwarder has come to.

use rnet::LossCause;

use crate::stream::Stream;
use crate::wire::{Data, Item, PlainData};

use super::super::proxy::{MESSAGE_COST, loss_counts};
use super::ForwardStats;

/// Whether message `seq` crosses where one of `every` does: the first that is read at all, and each that is a multiple
/// of `every` or has one before it that did not come, from `next` on. The numbers decide, and not how many were read,
/// so that the same ones cross whichever link reads them; one that is kept for later subscribers is the first.
pub fn is_selected(every: u64, next: Option<u64>, seq: u64) -> bool {
    next.is_none_or(|next| next.min(seq).div_ceil(every) * every <= seq)
}

/// Where a channel has come to.
pub struct ChannelProgress {
    pub channel: u32,
    /// Number of the next message; `None` if any may be the first.
    pub next_seq: Option<u64>,
    /// Why messages are missing before the next one.
    pub cause: LossCause,
    /// How many the subscription had counted as lost when it was last asked.
    pub lost: u64,
    /// Bytes that were sent.
    pub sent: u64,
    /// When the last message was sent by its publisher; `u64::MAX` before the first.
    pub sent_ns: u64,
    pub forwarded: ForwardStats,
}

impl ChannelProgress {
    /// Hands a message to the stream, which has room.
    pub fn push_data(&mut self, stream: &mut Stream, data: &Data<'_>) {
        self.advance_to(stream, data.seq);
        self.next_seq = Some(data.seq + 1);
        self.push_item(stream, &Item::Data(*data));
        let len = data.payload.len() as u64;
        self.sent += len + MESSAGE_COST;
        self.sent_ns = data.sent_ns;
        self.forwarded.messages += 1;
        self.forwarded.bytes += len;
    }

    /// As [`ChannelProgress::push_data`], of a message as most are.
    #[inline]
    pub fn push_plain(&mut self, stream: &mut Stream, plain: PlainData<'_>) {
        if self.next_seq != Some(plain.seq) {
            return self.push_data(stream, &plain.into());
        }
        (self.next_seq, self.cause) = (Some(plain.seq + 1), LossCause::Link);
        let pushed = stream.push_plain(plain);
        debug_assert!(pushed.is_ok(), "the other link is there, and the message fits into a frame");
        let len = plain.payload.len() as u64;
        self.sent += len + MESSAGE_COST;
        self.sent_ns = plain.sent_ns;
        self.forwarded.messages += 1;
        self.forwarded.bytes += len;
    }

    /// There was room for the first item of a turn; what belongs to it goes with it.
    pub fn push_item(&self, stream: &mut Stream, item: &Item<'_>) {
        let pushed = stream.push_along(item);
        debug_assert!(pushed.is_ok(), "the other link is there, and the item fits into a frame");
    }

    /// The next message has this number: those before it that did not come are lost.
    pub fn advance_to(&mut self, stream: &mut Stream, seq: u64) {
        match self.next_seq.replace(seq) {
            Some(next_seq) if next_seq < seq => self.count_lost(stream, next_seq, seq - next_seq),
            Some(_) => {}
            // Nothing is missing: it says from where on nothing may be.
            None => self.push_gap(stream, seq, 0),
        }
        self.cause = LossCause::Link;
    }

    /// As [`ChannelProgress::advance_to`], where those that did not come are lost as far as the subscription has counted them
    /// so, `lost` in all, and left out as configured otherwise.
    pub fn skip_to(&mut self, stream: &mut Stream, seq: u64, lost: u64) {
        let next_seq = self.next_seq.unwrap_or(seq);
        let missing = seq.saturating_sub(next_seq);
        let count = lost.saturating_sub(std::mem::replace(&mut self.lost, lost)).min(missing);
        self.forwarded.skipped += missing - count;
        if count > 0 {
            self.count_lost(stream, next_seq, count);
        }
        // Nothing is missing any more.
        self.next_seq = self.next_seq.map(|_| seq);
        self.advance_to(stream, seq);
    }

    /// This message is left out as configured.
    pub fn skip_one(&mut self, seq: u64) {
        self.next_seq = Some(seq + 1);
        self.forwarded.skipped += 1;
    }

    fn count_lost(&mut self, stream: &mut Stream, seq: u64, count: u64) {
        self.forwarded.lost.add(&loss_counts(self.cause, count));
        self.push_gap(stream, seq, count);
    }

    fn push_gap(&self, stream: &mut Stream, seq: u64, count: u64) {
        let (channel, cause) = (self.channel, self.cause);
        self.push_item(stream, &Item::Gap { channel, seq, count, cause });
    }
}
