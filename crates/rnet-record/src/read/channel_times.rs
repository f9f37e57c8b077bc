//! The first and last message of each channel, without reading all messages.

use std::collections::BTreeMap;

use mcap::records::{Record, op};

use super::blocks::Block;
use super::channels::Channels;
use super::chunk::MAX_CHUNK_LEN_BYTES;
use super::input::Input;

/// The first and last log time by channel, in ns since 1970 UTC.
pub type ChannelTimes = BTreeMap<u16, (u64, u64)>;

/// Adds the time of a message.
pub fn add_time(times: &mut ChannelTimes, channel: u16, at_ns: u64) {
    let (first, last) = times.entry(channel).or_insert((at_ns, at_ns));
    (*first, *last) = ((*first).min(at_ns), (*last).max(at_ns));
}

/// Reads the message indexes of those blocks that can have the first or the last message of a channel.
/// Unreadable blocks are skipped.
pub fn read(input: &Input, blocks: &[Block], channels: &Channels) -> ChannelTimes {
    let mut times = ChannelTimes::new();
    let mut by_time: Vec<&Block> = blocks.iter().collect();
    by_time.sort_by_key(|block| block.times.0);
    for block in by_time.iter().copied() {
        let begins = |(first, _): &(u64, u64)| *first <= block.times.0;
        read_unless(input, block, channels, &mut times, begins);
    }
    by_time.sort_by_key(|block| std::cmp::Reverse(block.times.1));
    for block in by_time {
        let ends = |(_, last): &(u64, u64)| *last >= block.times.1;
        read_unless(input, block, channels, &mut times, ends);
    }
    times
}

/// Adds the times of a block, unless all its channels are known well enough.
fn read_unless(
    input: &Input,
    block: &Block,
    channels: &Channels,
    times: &mut ChannelTimes,
    is_known: impl Fn(&(u64, u64)) -> bool,
) {
    let is_read = |times: &ChannelTimes, id: &u16| times.get(id).is_some_and(&is_known);
    if block.channels.as_ref().is_some_and(|ids| ids.iter().all(|id| is_read(times, id))) {
        return;
    }
    let mut found = ChannelTimes::new();
    read_indexes(input, block, &mut found);
    if block.channels.as_ref().is_none_or(|ids| ids.iter().any(|id| !found.contains_key(id))) {
        let Ok(contents) = block.read(input, &mut channels.clone()) else { return };
        for (header, _) in &contents.messages {
            add_time(&mut found, header.channel_id, header.log_time);
        }
    }
    for (id, (first, last)) in found {
        add_time(times, id, first);
        add_time(times, id, last);
    }
}

/// Reads the message indexes, which follow a chunk.
fn read_indexes(input: &Input, block: &Block, found: &mut ChannelTimes) {
    let mut at = block.end;
    while block.is_chunk
        && let Ok(Some(head)) = input.head(at, input.len())
        && head.opcode == op::MESSAGE_INDEX
        && let Ok(Record::MessageIndex(index)) = input.record(&head, MAX_CHUNK_LEN_BYTES)
    {
        for entry in &index.records {
            add_time(found, index.channel_id, entry.log_time);
        }
        at = head.end();
    }
}
