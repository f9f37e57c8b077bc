//! The progress of a forwarder's channel.

use rnet::LossCause;

use crate::stream::Stream;
use crate::wire::{Data, Item, PlainData};

use super::super::proxy::{MESSAGE_COST, loss_counts};
use super::ForwardStats;

/// Returns whether message `seq` crosses when one of `every` does. Selected are the first that is read at
/// all, and each message from `next` on that is a multiple of `every` or that follows a missing multiple.
/// Selection goes by message number and not by a count, so that the same messages cross whichever link
/// reads them. A message kept for late subscribers counts as the first.
pub fn is_selected(every: u64, next: Option<u64>, seq: u64) -> bool {
    next.is_none_or(|next| next.min(seq).div_ceil(every) * every <= seq)
}

/// The progress of a channel.
pub struct ChannelProgress {
    pub channel: u32,
    /// Number of the next message; `None` if any may be the first.
    pub next_seq: Option<u64>,
    /// Why messages are missing before the next one.
    pub cause: LossCause,
    /// Losses of the subscription at the last check.
    pub lost: u64,
    /// Bytes that were sent.
    pub sent: u64,
    /// Publish time of the last message; `u64::MAX` before the first.
    pub sent_ns: u64,
    pub forwarded: ForwardStats,
}

impl ChannelProgress {
    /// Hands a message to the stream, which has capacity.
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

    /// Like [`ChannelProgress::push_data`], for a message with the common fields only.
    #[inline]
    pub fn push_plain(&mut self, stream: &mut Stream, plain: PlainData<'_>) {
        if self.next_seq != Some(plain.seq) {
            return self.push_data(stream, &plain.into());
        }
        (self.next_seq, self.cause) = (Some(plain.seq + 1), LossCause::Link);
        let pushed = stream.push_plain(plain);
        debug_assert!(
            pushed.is_ok(),
            "the other link is present, and the message fits into a frame"
        );
        let len = plain.payload.len() as u64;
        self.sent += len + MESSAGE_COST;
        self.sent_ns = plain.sent_ns;
        self.forwarded.messages += 1;
        self.forwarded.bytes += len;
    }

    /// Pushes an item. The stream had capacity for the first item of the turn, and this one belongs to it.
    pub fn push_item(&self, stream: &mut Stream, item: &Item<'_>) {
        let pushed = stream.push_along(item);
        debug_assert!(pushed.is_ok(), "the other link is present, and the item fits into a frame");
    }

    /// Advances to message `seq`; missing messages before it are lost.
    pub fn advance_to(&mut self, stream: &mut Stream, seq: u64) {
        match self.next_seq.replace(seq) {
            Some(next_seq) if next_seq < seq => self.count_lost(stream, next_seq, seq - next_seq),
            Some(_) => {}
            // Nothing is missing: the gap states the number from which the sequence is complete.
            None => self.push_gap(stream, seq, 0),
        }
        self.cause = LossCause::Link;
    }

    /// Like [`ChannelProgress::advance_to`], if some messages were left out as configured: as many as the
    /// subscription has counted (`lost` in all) are lost, and the rest were left out.
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

    /// Leaves a message out as configured.
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
