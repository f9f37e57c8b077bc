//! Filters, merges and splits files.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcap::records::Metadata;
use serde::Serialize;

use super::output::{OutputFile, ToolError};
use crate::names;
use crate::read::{Message, Messages, ReadError, Recording, Select};
use crate::recorder::part_path;
use crate::sequence_set::SequenceSet;

/// A written file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WrittenFile {
    /// Path of the file.
    #[serde(rename = "file")]
    pub path: PathBuf,
    /// Number of messages.
    pub messages: u64,
    /// Length in bytes.
    pub len_bytes: u64,
    /// Duplicates that were written once: messages in several of the files, or twice in one.
    pub duplicates: u64,
}

/// Where a file is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitAt {
    /// When the messages of a part would exceed this length, in bytes without compression.
    Bytes(u64),
    /// At the first message that is this much later than the first one of the part.
    Time(Duration),
}

/// Callback for an unreadable part of a file, which is omitted.
pub type OnProblem<'a> = &'a mut dyn FnMut(&Path, &ReadError);

/// Polled before each message: whether to abort with [`ToolError::Interrupted`].
pub type ShouldStop = fn() -> bool;

/// # Errors
/// `Interrupted` if `stop` returns true.
pub(crate) fn check_stop(stop: ShouldStop) -> Result<(), ToolError> {
    if stop() { Err(ToolError::Interrupted) } else { Ok(()) }
}

/// Writes the selected messages, with the attachments and metadata of the file. Topics in `remap` are
/// renamed.
///
/// # Errors
/// The new file exists or cannot be written; `Interrupted`.
pub fn filter(
    from: &Recording,
    to: &Path,
    select: Select,
    remap: &[(String, String)],
    on_problem: OnProblem<'_>,
    stop: ShouldStop,
) -> Result<WrittenFile, ToolError> {
    let (output, messages) = copy(from, to, select, remap, on_problem, stop)?;
    end(output, to, messages)
}

/// Copies the selected messages into a new, unfinished file. Also returns their number.
pub(super) fn copy(
    from: &Recording,
    to: &Path,
    select: Select,
    remap: &[(String, String)],
    on_problem: OnProblem<'_>,
    stop: ShouldStop,
) -> Result<(OutputFile, u64), ToolError> {
    let mut output = begin(from, to)?;
    let mut messages = 0;
    let mut reader = from.messages(select);
    while let Some(message) = next_readable(&mut reader, from, on_problem) {
        check_stop(stop)?;
        let topic = &message.channel.topic;
        let new = remap.iter().find(|(old, _)| old == topic).map(|(_, new)| new.as_str());
        output.message(&message, new)?;
        messages += 1;
    }
    attachments(from, &mut output, on_problem)?;
    metadata(from, &mut output, false)?;
    Ok((output, messages))
}

/// Writes the messages of several files in the order of their times, with the attachments and metadata of all
/// of them. Identical channels become one. A message that several recorders have recorded is written once.
/// Two messages are the same if their topic, host, node, publisher and number are equal, and their send times
/// differ by at most 1 ms, by the wall clock or by the monotonic clock.
///
/// # Errors
/// The new file exists or cannot be written.
pub fn merge(
    from: &[Recording],
    to: &Path,
    on_problem: OnProblem<'_>,
    stop: ShouldStop,
) -> Result<WrittenFile, ToolError> {
    let Some(first) = from.first() else {
        let error = std::io::Error::other("no files to merge");
        return Err(ToolError::Write { path: to.to_owned(), error });
    };
    let mut output = begin(first, to)?;
    let all = || Select { with_reserved: true, ..Select::default() };
    let mut readers: Vec<Messages> = from.iter().map(|file| file.messages(all())).collect();
    let mut next: Vec<Option<Message>> = Vec::new();
    let mut order = BinaryHeap::new();
    for (number, reader) in readers.iter_mut().enumerate() {
        let message = next_readable(reader, &from[number], on_problem);
        order.extend(message.as_ref().map(|message| Reverse((message.log_ns(), number))));
        next.push(message);
    }
    let (mut messages, mut duplicates) = (0, 0);
    let offsets: Vec<i64> = from.iter().map(offset_ns).collect();
    let mut written_messages = WrittenMessages::default();
    while let Some(Reverse((_, number))) = order.pop() {
        check_stop(stop)?;
        let following = next_readable(&mut readers[number], &from[number], on_problem);
        order.extend(following.as_ref().map(|message| Reverse((message.log_ns(), number))));
        if let Some(message) = std::mem::replace(&mut next[number], following) {
            match written_messages.is_new(&message, offsets[number]) {
                true => {
                    output.message(&message, None)?;
                    messages += 1;
                }
                // Metadata of a duplicate message is dropped with it.
                false => duplicates += u64::from(!message.channel.is_reserved()),
            }
        }
    }
    for file in from {
        attachments(file, &mut output, on_problem)?;
        metadata(file, &mut output, false)?;
    }
    for file in &from[1..] {
        metadata(file, &mut output, true)?;
    }
    Ok(WrittenFile { duplicates, ..end(output, to, messages)? })
}

/// Offset of the file's times from the monotonic clock, as stored in the file.
pub(crate) fn offset_ns(file: &Recording) -> i64 {
    let said = file.metadata(names::CLOCK).and_then(|clock| clock.get("offset_ns")?.parse().ok());
    said.unwrap_or(0)
}

/// The messages and metadata records that were written.
#[derive(Default)]
pub(crate) struct WrittenMessages {
    messages: HashMap<PublisherKey, SequenceTimes>,
    meta: HashMap<PublisherKey, SequenceTimes>,
}

/// Sequence numbers by two clocks. If the wall clock was set between two recordings, only the monotonic times
/// are equal. A merged file has the times of several parts but the clock offset of one of them; its wall
/// clock times are equal in all files that have the message from the same recorder.
#[derive(Default)]
struct SequenceTimes {
    wall: SequenceSet,
    monotonic: SequenceSet,
}

impl SequenceTimes {
    fn add(&mut self, number: u32, sent_ns: u64, offset_ns: i64) -> bool {
        let monotonic_ns = sent_ns.saturating_add_signed(offset_ns.saturating_neg());
        let is_new = self.wall.add(number, sent_ns);
        self.monotonic.add(number, monotonic_ns) && is_new
    }
}

/// Identifies a sequence of numbers: topic, host, node and publisher. Metadata records are identified by the
/// publisher alone.
type PublisherKey = [String; 4];

impl WrittenMessages {
    /// Whether the message was not written before. Messages without a publisher have no usable number.
    pub fn is_new(&mut self, message: &Message, offset_ns: i64) -> bool {
        let sent_ns = message.publish_ns();
        let channel = &message.channel;
        if channel.topic == names::META_TOPIC {
            return self.is_new_meta(message.data(), sent_ns, offset_ns).unwrap_or(true);
        }
        let of = |key: &str| channel.metadata.get(key).cloned();
        let (Some(publisher), false) = (of(names::PUBLISHER_KEY), channel.is_reserved()) else {
            return true;
        };
        let (host, node) = (of(names::HOST_KEY), of(names::NODE_KEY));
        let source =
            [channel.topic.clone(), host.unwrap_or_default(), node.unwrap_or_default(), publisher];
        self.messages.entry(source).or_default().add(message.sequence(), sent_ns, offset_ns)
    }

    fn is_new_meta(&mut self, text: &[u8], sent_ns: u64, offset_ns: i64) -> Option<bool> {
        let said: serde_json::Value = serde_json::from_slice(text).ok()?;
        let (publisher, seq) = (said.get("publisher")?.as_str()?, said.get("seq")?.as_u64()?);
        let source = [String::new(), String::new(), String::new(), publisher.to_owned()];
        // The low 32 bits, as in the header of the message.
        Some(self.meta.entry(source).or_default().add(seq as u32, sent_ns, offset_ns))
    }
}

/// Splits a file into several: `NAME.mcap`, `NAME_1.mcap`, `NAME_2.mcap`. Each has the metadata of the file,
/// and the first one its attachments. A file without messages becomes one without messages.
///
/// # Errors
/// One of the new files exists or cannot be written; `Interrupted`. Files completed before are kept.
pub fn split(
    from: &Recording,
    to: &Path,
    cut: SplitAt,
    on_problem: OnProblem<'_>,
    stop: ShouldStop,
) -> Result<Vec<WrittenFile>, ToolError> {
    let mut parts = Vec::new();
    let mut part: Option<Part> = None;
    let mut messages = from.messages(Select { with_reserved: true, ..Select::default() });
    while let Some(message) = next_readable(&mut messages, from, on_problem) {
        check_stop(stop)?;
        if let Some(full) = part.take_if(|part| part.is_full(&message, cut)) {
            parts.push(full.end(from)?);
        }
        let part = match &mut part {
            Some(part) => part,
            None => {
                let start_ns = message.log_ns();
                part.insert(Part::begin(from, to, parts.len(), start_ns, on_problem)?)
            }
        };
        part.output.message(&message, None)?;
        part.messages += 1;
        part.bytes += message.data().len() as u64;
    }
    if part.is_none() && parts.is_empty() {
        part = Some(Part::begin(from, to, 0, 0, on_problem)?);
    }
    if let Some(last) = part {
        parts.push(last.end(from)?);
    }
    Ok(parts)
}

struct Part {
    path: PathBuf,
    output: OutputFile,
    start_ns: u64,
    bytes: u64,
    messages: u64,
}

impl Part {
    fn begin(
        from: &Recording,
        to: &Path,
        number: usize,
        start_ns: u64,
        on_problem: OnProblem<'_>,
    ) -> Result<Part, ToolError> {
        let path = part_path(to, number as u64);
        let mut output = begin(from, &path)?;
        if number == 0 {
            attachments(from, &mut output, on_problem)?;
        }
        Ok(Part { path, output, start_ns, bytes: 0, messages: 0 })
    }

    fn is_full(&self, next: &Message, cut: SplitAt) -> bool {
        match cut {
            SplitAt::Bytes(most) => self.bytes + next.data().len() as u64 > most,
            SplitAt::Time(most) => {
                u128::from(next.log_ns().saturating_sub(self.start_ns)) >= most.as_nanos()
            }
        }
    }

    fn end(mut self, from: &Recording) -> Result<WrittenFile, ToolError> {
        metadata(from, &mut self.output, false)?;
        end(self.output, &self.path, self.messages)
    }
}

/// The next readable message.
pub(crate) fn next_readable(
    reader: &mut Messages,
    of: &Recording,
    on_problem: OnProblem<'_>,
) -> Option<Message> {
    loop {
        match reader.next()? {
            Ok(message) => return Some(message),
            Err(problem) => on_problem(of.path(), &problem),
        }
    }
}

/// A new file with the leading metadata of the old one.
fn begin(from: &Recording, to: &Path) -> Result<OutputFile, ToolError> {
    let most = from.info().compression.iter().max_by_key(|(_, (_, bytes))| *bytes);
    let compression = most.map_or("zstd", |(name, _)| name);
    let mut output = OutputFile::create(to, from.profile(), from.library(), compression)?;
    metadata(from, &mut output, true)?;
    Ok(output)
}

/// Writes the metadata records that belong at the start, or the others.
fn metadata(from: &Recording, output: &mut OutputFile, first: bool) -> Result<(), ToolError> {
    let stands_first =
        |metadata: &Metadata| [names::RECORDING, names::CLOCK].contains(&metadata.name.as_str());
    let wanted = from.info().metadata.iter().filter(|one| stands_first(one) == first);
    wanted.into_iter().try_for_each(|one| output.metadata(one))
}

fn attachments(
    from: &Recording,
    output: &mut OutputFile,
    on_problem: OnProblem<'_>,
) -> Result<(), ToolError> {
    for place in &from.info().attachments {
        match from.attachment(*place) {
            Ok(attachment) => output.attachment(&attachment)?,
            Err(problem) => on_problem(from.path(), &problem),
        }
    }
    Ok(())
}

pub(super) fn end(
    output: OutputFile,
    path: &Path,
    messages: u64,
) -> Result<WrittenFile, ToolError> {
    Ok(WrittenFile { path: path.to_owned(), messages, len_bytes: output.finish()?, duplicates: 0 })
}
