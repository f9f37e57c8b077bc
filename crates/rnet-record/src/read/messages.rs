//! Yields the messages of a file in the order of time.
//!
//! A block is opened when it may contain the next message, so blocks with overlapping times are open at the
//! same time. Recorders write files with few overlaps. Other files may have any number, so at most
//! [`MAX_OPEN`] blocks are open; beyond that, messages are yielded in the order of the file.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Range;
use std::sync::Arc;

use mcap::records::MessageHeader;

use super::blocks::{Block, BlockContents};
use super::channels::{Channel, Channels};
use super::error::ReadError;
use super::info::RecordingInfo;
use super::latched;
use super::recording::Recording;
use crate::names;

/// Maximum number of open blocks.
const MAX_OPEN: usize = 16;

/// A selection of messages. The default selects all messages that publishers sent.
#[derive(Clone, Debug, Default)]
pub struct Select {
    /// The topics; empty for all. The recorder's own topics have to be named.
    pub topics: Vec<String>,
    /// Ids of excluded channels.
    pub excluded_channels: BTreeSet<u16>,
    /// First log time, in ns since 1970 UTC.
    pub start_ns: Option<u64>,
    /// End of the log times (exclusive), in ns since 1970 UTC.
    pub end_ns: Option<u64>,
    /// Also the recorder's own channels.
    pub with_reserved: bool,
    /// Also the messages that transient_local publishers kept at `start_ns`: their last messages before it.
    /// They come first, with `start_ns` as their log time.
    pub with_latched: bool,
    /// Include the records about messages (`/_rnet/recording/meta`).
    pub with_meta: bool,
}

impl Select {
    /// Whether the messages of a channel are selected.
    pub fn includes(&self, channel: &Channel) -> bool {
        if self.with_meta && channel.topic == names::META_TOPIC {
            return true;
        }
        let named = match self.topics.is_empty() {
            true => self.with_reserved || !channel.is_reserved(),
            false => self.topics.contains(&channel.topic),
        };
        named && !self.excluded_channels.contains(&channel.id)
    }

    pub(super) fn includes_time(&self, ns: u64) -> bool {
        self.start_ns.is_none_or(|start| ns >= start) && self.end_ns.is_none_or(|end| ns < end)
    }

    /// The blocks that may contain selected messages, as indexes into [`RecordingInfo::blocks`].
    pub(super) fn blocks(&self, found: &RecordingInfo) -> impl Iterator<Item = usize> {
        let taken = found.channels.iter().filter(|channel| self.includes(channel));
        let taken: BTreeSet<u16> = taken.map(|channel| channel.id).collect();
        let (start, end) = (self.start_ns, self.end_ns);
        let may_hold = move |block: &Block| {
            let by_time = start.is_none_or(|start| block.times.1 >= start)
                && end.is_none_or(|end| block.times.0 < end);
            let of_channels = |ids: &Vec<u16>| ids.iter().any(|id| taken.contains(id));
            by_time && block.channels.as_ref().is_none_or(of_channels)
        };
        (0..found.blocks.len()).filter(move |at| may_hold(&found.blocks[*at]))
    }
}

/// A message of a file.
#[derive(Clone)]
pub struct Message {
    /// Its channel.
    pub channel: Arc<Channel>,
    header: MessageHeader,
    bytes: Arc<Vec<u8>>,
    data: Range<usize>,
}

impl Message {
    /// Its content.
    pub fn data(&self) -> &[u8] {
        &self.bytes[self.data.clone()]
    }

    /// Its content, encoded as the type of its channel describes ([`Channel::content`]).
    ///
    /// # Errors
    /// The reason as text: a ROS 2 message does not match its type.
    pub fn content(&self) -> Result<Cow<'_, [u8]>, String> {
        self.channel.content(self.data())
    }

    pub(super) fn new(channel: Arc<Channel>, header: MessageHeader, content: Vec<u8>) -> Message {
        let data = 0..content.len();
        Message { channel, header, bytes: Arc::new(content), data }
    }

    /// The same message with other content.
    pub(crate) fn with(&self, channel: Arc<Channel>, content: Vec<u8>) -> Message {
        Message::new(channel, self.header, content)
    }

    /// The same message with another log time.
    pub(super) fn logged_at(mut self, log_ns: u64) -> Message {
        self.header.log_time = log_ns;
        self
    }

    /// Its sequence number, or the low 32 bits of it.
    pub fn sequence(&self) -> u32 {
        self.header.sequence
    }

    /// Receive time, in ns since 1970 UTC.
    pub fn log_ns(&self) -> u64 {
        self.header.log_time
    }

    /// Send time, in ns since 1970 UTC.
    pub fn publish_ns(&self) -> u64 {
        self.header.publish_time
    }

    /// The MCAP message header.
    pub fn header(&self) -> &MessageHeader {
        &self.header
    }
}

/// The messages of a file, ordered by log time. An unreadable part is yielded as an error at its position,
/// followed by the messages after it. Problems that were found when the file was opened
/// ([`super::RecordingInfo::problems`]) are not yielded again.
pub struct Messages {
    recording: Recording,
    select: Select,
    /// The channels of the recording, and those that blocks describe in addition.
    channels: Channels,
    /// Unread blocks, as indexes in the order of the file, the last first.
    unread_blocks: Vec<usize>,
    open: Vec<Option<OpenBlock>>,
    /// The next message of each open block: its time, the order of the block, and its index in `open`.
    next: BinaryHeap<Reverse<(u64, u64, usize)>>,
    problems: Vec<ReadError>,
    /// Messages that precede all blocks: see [`Select::with_latched`].
    latched: std::vec::IntoIter<Message>,
}

struct OpenBlock {
    bytes: Arc<Vec<u8>>,
    messages: std::vec::IntoIter<(MessageHeader, Range<usize>)>,
    offset: u64,
}

impl Messages {
    pub(super) fn new(recording: Recording, select: Select) -> Self {
        let found = recording.info();
        let mut unread_blocks: Vec<usize> = select.blocks(found).collect();
        let begin = |at: &usize| (found.blocks[*at].times.0, found.blocks[*at].offset);
        unread_blocks.sort_by_key(|at| Reverse(begin(at)));
        let mut channels = found.channels.clone();
        let (open, next, mut problems) = (Vec::new(), BinaryHeap::new(), Vec::new());
        let latched = match select.start_ns.filter(|_| select.with_latched) {
            Some(start_ns) => latched::messages_before(
                &recording,
                &select,
                start_ns,
                &mut channels,
                &mut problems,
            ),
            None => Vec::new(),
        };
        let latched = latched.into_iter();
        Self { recording, select, channels, unread_blocks, open, next, problems, latched }
    }

    /// Opens all blocks that may contain the next message.
    fn open_blocks(&mut self) {
        while let Some(at) = self.unread_blocks.last() {
            let block = &self.recording.info().blocks[*at];
            let due = match self.next.peek() {
                Some(Reverse((next, ..))) => block.times.0 <= *next && self.next.len() < MAX_OPEN,
                None => true,
            };
            if !due {
                return;
            }
            let offset = block.offset;
            let read = self.recording.contents(block, &mut self.channels, &self.select);
            self.unread_blocks.pop();
            match read {
                Ok(contents) => self.open(offset, contents),
                Err(problem) => self.problem(problem),
            }
        }
    }

    /// A scanned file has its problems in the info already.
    fn problem(&mut self, problem: ReadError) {
        if self.recording.info().scan_reason.is_none() {
            self.problems.push(problem);
        }
    }

    fn open(&mut self, offset: u64, contents: BlockContents) {
        let BlockContents { bytes, mut messages, problem, .. } = contents;
        problem.into_iter().for_each(|problem| self.problem(problem));
        messages.retain(|(header, _)| {
            let channel = self.recording.info().channels.get(header.channel_id);
            channel.is_some_and(|channel| self.select.includes(channel))
                && self.select.includes_time(header.log_time)
        });
        // Stable: messages of the same time stay in the order of the file.
        messages.sort_by_key(|(header, _)| header.log_time);
        let Some((first, _)) = messages.first() else { return };
        let time = first.log_time;
        let open = OpenBlock { bytes: Arc::new(bytes), messages: messages.into_iter(), offset };
        let at = self.open.iter().position(Option::is_none).unwrap_or(self.open.len());
        if at == self.open.len() {
            self.open.push(None);
        }
        self.open[at] = Some(open);
        self.next.push(Reverse((time, offset, at)));
    }
}

impl Iterator for Messages {
    type Item = Result<Message, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(message) = self.latched.next() {
            return Some(Ok(message));
        }
        loop {
            self.open_blocks();
            if let Some(problem) = self.problems.pop() {
                return Some(Err(problem));
            }
            let Reverse((_, _, at)) = self.next.pop()?;
            let Some(open) = self.open[at].as_mut() else { continue };
            let Some((header, data)) = open.messages.next() else { continue };
            let bytes = open.bytes.clone();
            match open.messages.as_slice().first() {
                Some((following, _)) => {
                    self.next.push(Reverse((following.log_time, open.offset, at)));
                }
                None => self.open[at] = None,
            }
            let channel = self.recording.info().channels.get(header.channel_id);
            let Some(channel) = channel else { continue };
            return Some(Ok(Message { channel: channel.clone(), header, bytes, data }));
        }
    }
}
