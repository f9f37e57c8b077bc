//! What transient_local publishers kept at a time: their last messages before it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use mcap::records::MessageHeader;
use rnet::Durability;

use super::blocks::Contents;
use super::channels::{Channel, Channels};
use super::error::ReadError;
use super::messages::{Message, Select};
use super::recording::Recording;
use crate::names;

/// The messages of a channel that are kept.
struct Kept {
    channel: Arc<Channel>,
    depth: usize,
    messages: Vec<Latched>,
}

struct Latched {
    header: MessageHeader,
    bytes: Arc<Vec<u8>>,
    data: Range<usize>,
    /// What the recorder wrote about this message, directly before it.
    meta: Option<(MessageHeader, Range<usize>)>,
}

impl Kept {
    /// Whether messages up to this log time may be among the last.
    fn takes(&self, last_ns: u64) -> bool {
        self.messages.len() < self.depth
            || self.messages.first().is_some_and(|first| first.header.log_time < last_ns)
    }

    fn trim(&mut self) {
        self.messages.sort_by_key(|latched| latched.header.log_time);
        self.messages.drain(..self.messages.len().saturating_sub(self.depth));
    }
}

/// The last messages before `start_ns` of each transient_local channel that is selected, in the order of their log
/// times, which become `start_ns`. Only chunks that may hold one are read, the last first.
pub fn before(
    recording: &Recording,
    select: &Select,
    start_ns: u64,
    channels: &mut Channels,
    problems: &mut Vec<ReadError>,
) -> Vec<Message> {
    let found = &recording.found;
    let select = Select { start_ns: None, end_ns: Some(start_ns), ..select.clone() };
    let selected = found.channels.iter().filter(|channel| select.takes(channel));
    let mut kept: BTreeMap<u16, Kept> = selected
        .filter_map(|channel| match channel.source().ok()?.durability {
            Durability::TransientLocal { depth } => {
                let (channel, depth) = (channel.clone(), depth as usize);
                Some((channel.id, Kept { channel, depth, messages: Vec::new() }))
            }
            Durability::Volatile => None,
        })
        .collect();
    let meta = found.channels.iter().find(|channel| channel.topic == names::META_TOPIC);
    let meta = meta.filter(|channel| select.takes(channel)).cloned();
    let mut blocks: Vec<usize> = select.blocks(found).collect();
    blocks.sort_by_key(|at| Reverse(found.blocks[*at].times.1));
    for at in blocks {
        let block = &found.blocks[at];
        let is_there = |id: &u16| block.channels.as_ref().is_none_or(|ids| ids.contains(id));
        if !kept.iter().any(|(id, of)| is_there(id) && of.takes(block.times.1)) {
            continue;
        }
        let mut contents = match recording.contents(block, channels, &select) {
            Ok(contents) => contents,
            Err(problem) => {
                problems.extend(found.scanned.is_none().then_some(problem));
                continue;
            }
        };
        problems.extend(contents.problem.take().filter(|_| found.scanned.is_none()));
        take(&mut kept, contents, start_ns, meta.as_ref().map(|channel| channel.id));
    }
    let mut all: Vec<(u64, Option<Message>, Message)> = Vec::new();
    for Kept { channel, messages, .. } in kept.into_values() {
        for Latched { header, bytes, data, meta: said } in messages {
            let log_time = start_ns;
            let said = said.zip(meta.as_ref()).map(|((header, data), channel)| {
                let header = MessageHeader { log_time, ..header };
                Message::new(channel.clone(), header, bytes.clone(), data)
            });
            let at_ns = header.log_time;
            let header = MessageHeader { log_time, ..header };
            all.push((at_ns, said, Message::new(channel.clone(), header, bytes, data)));
        }
    }
    all.sort_by_key(|(at_ns, ..)| *at_ns);
    all.into_iter().flat_map(|(_, said, message)| said.into_iter().chain([message])).collect()
}

/// Takes the messages of a chunk that may be among the last.
fn take(kept: &mut BTreeMap<u16, Kept>, contents: Contents, start_ns: u64, meta: Option<u16>) {
    let bytes = Arc::new(contents.bytes);
    let mut said: Option<(MessageHeader, Range<usize>)> = None;
    for (header, data) in contents.messages {
        if Some(header.channel_id) == meta {
            said = Some((header, data));
            continue;
        }
        let meta = said.take().filter(|(said, _)| said.publish_time == header.publish_time);
        if let Some(of) = kept.get_mut(&header.channel_id).filter(|_| header.log_time < start_ns) {
            of.messages.push(Latched { header, bytes: bytes.clone(), data, meta });
        }
    }
    kept.values_mut().for_each(Kept::trim);
}
