//! The messages that transient_local publishers kept at a time: their last messages before it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use mcap::records::MessageHeader;
use rnet::Durability;

use super::blocks::BlockContents;
use super::channels::{Channel, Channels};
use super::error::ReadError;
use super::messages::{Message, Select};
use super::recording::Recording;
use crate::names;

/// A message in the bytes of its chunk.
type InChunk = (MessageHeader, Range<usize>);

/// A message, preceded by its metadata record if the file has one directly before it.
type Pair<T> = (Option<T>, T);

/// The retained messages of a channel. They are copies, so that they do not keep whole chunks in memory.
struct LatchedChannel {
    channel: Arc<Channel>,
    depth: usize,
    messages: Vec<Pair<Message>>,
}

impl LatchedChannel {
    /// Whether messages up to this log time may be among the last.
    fn may_include(&self, last_ns: u64) -> bool {
        self.messages.len() < self.depth
            || self.messages.first().is_some_and(|(_, first)| first.log_ns() < last_ns)
    }
}

/// The last messages before `start_ns` of each selected transient_local channel, in the order of their log
/// times, which are then set to `start_ns`. Reads only chunks that may contain one, the last first.
pub fn messages_before(
    recording: &Recording,
    select: &Select,
    start_ns: u64,
    channels: &mut Channels,
    problems: &mut Vec<ReadError>,
) -> Vec<Message> {
    let found = recording.info();
    let select = Select { start_ns: None, end_ns: Some(start_ns), ..select.clone() };
    let selected = found.channels.iter().filter(|channel| select.includes(channel));
    let mut kept: BTreeMap<u16, LatchedChannel> = selected
        .filter_map(|channel| match channel.source().ok()?.durability {
            Durability::TransientLocal { depth } => {
                let (channel, depth) = (channel.clone(), depth as usize);
                Some((channel.id, LatchedChannel { channel, depth, messages: Vec::new() }))
            }
            Durability::Volatile => None,
        })
        .collect();
    let meta = found.channels.iter().find(|channel| channel.topic == names::META_TOPIC);
    let meta = meta.filter(|channel| select.includes(channel));
    let mut blocks: Vec<usize> = select.blocks(found).collect();
    blocks.sort_by_key(|at| Reverse(found.blocks[*at].times.1));
    for at in blocks {
        let block = &found.blocks[at];
        let is_there = |id: &u16| block.channels.as_ref().is_none_or(|ids| ids.contains(id));
        if !kept.iter().any(|(id, of)| is_there(id) && of.may_include(block.times.1)) {
            continue;
        }
        let problem = match recording.contents(block, channels, &select) {
            Ok(mut contents) => {
                collect_latched(&mut kept, &contents, start_ns, meta);
                contents.problem.take()
            }
            Err(problem) => Some(problem),
        };
        problems.extend(problem.filter(|_| found.scan_reason.is_none()));
    }
    let mut all: Vec<Pair<Message>> = kept.into_values().flat_map(|of| of.messages).collect();
    all.sort_by_key(|(_, message)| message.log_ns());
    let all =
        all.into_iter().flat_map(|(meta_record, message)| meta_record.into_iter().chain([message]));
    all.map(|message| message.logged_at(start_ns)).collect()
}

/// Collects the messages of a chunk that may be among the last.
fn collect_latched(
    kept: &mut BTreeMap<u16, LatchedChannel>,
    contents: &BlockContents,
    start_ns: u64,
    meta: Option<&Arc<Channel>>,
) {
    let copy = |channel: &Arc<Channel>, (header, data): &InChunk| {
        Message::new(channel.clone(), *header, contents.bytes[data.clone()].to_vec())
    };
    let mut meta_record = None;
    let mut found: BTreeMap<u16, Vec<Pair<&InChunk>>> = BTreeMap::new();
    for message in &contents.messages {
        let header = &message.0;
        if meta.is_some_and(|meta| meta.id == header.channel_id) {
            meta_record = Some(message);
            continue;
        }
        let meta_record = meta_record
            .take()
            .filter(|(meta_record, _)| meta_record.publish_time == header.publish_time);
        if header.log_time < start_ns {
            found.entry(header.channel_id).or_default().push((meta_record, message));
        }
    }
    for (id, of) in kept {
        let mut found = found.remove(id).unwrap_or_default();
        found.sort_by_key(|(_, (header, _))| header.log_time);
        found.drain(..found.len().saturating_sub(of.depth));
        let found = found.into_iter().map(|(meta_record, message)| {
            let meta_record =
                meta_record.zip(meta).map(|(meta_record, channel)| copy(channel, meta_record));
            (meta_record, copy(&of.channel, message))
        });
        of.messages.extend(found);
        of.messages.sort_by_key(|(_, message)| message.log_ns());
        of.messages.drain(..of.messages.len().saturating_sub(of.depth));
    }
}
