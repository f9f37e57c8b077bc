//! Compares all redundant data of a file.

use std::collections::BTreeMap;
use std::path::Path;

use mcap::records::{ChunkIndex, MessageHeader, Record, Statistics, op};
use serde::Serialize;

use super::blocks::{Block, BlockContents};
use super::channels::Channels;
use super::chunk::MAX_CHUNK_LEN_BYTES;
use super::error::{Problem, ReadError};
use super::index::{self, Summary};
use super::input::{Head, Input};
use super::recording::read_header;
use super::scan::MAX_RECORD_LEN_BYTES;
use crate::names;
use crate::sequence_set::SequenceSet;

/// The data is read in blocks of this length for its CRC.
const PIECE_LEN_BYTES: u64 = 1 << 20;

/// Maximum number of differences of the statistics that are reported one by one.
const MAX_REPORTED_DIFFERENCES: usize = 16;

/// Maximum number of contiguous runs of sequence numbers, of all channels: some megabytes.
const MAX_RUNS: usize = 1 << 16;

/// Result of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// Messages that could be read.
    pub messages: u64,
    /// Chunks that could be read.
    pub chunks: u64,
    /// Problems reported.
    pub problems: u64,
    /// Messages missing from the file, by the gaps in the sequence numbers. For recordings of robot-net only.
    pub missing: u64,
    /// The numbers have more gaps than the limit of 65,536. Then a duplicate message is found only if fewer
    /// gaps lie between the two, and a message that fills an older gap still counts as missing.
    pub has_too_many_gaps: bool,
    /// Publishers that the recorder saw but did not read, or not to their end, as the file states; `None` if
    /// it does not.
    pub unheard: Option<u64>,
    /// Publishers that the recorder followed, as the file states; `None` if it does not.
    pub followed: Option<u64>,
}

/// Reads a file to its end: every record, every CRC, the order of messages, and whether the indexes and the
/// statistics are correct. Reports each problem to `on_problem`.
///
/// # Errors
/// The file cannot be read, or is not an MCAP file.
pub fn check(
    path: &Path,
    on_problem: &mut dyn FnMut(&ReadError),
) -> Result<CheckReport, ReadError> {
    let input = Input::open(path).map_err(|error| ReadError::new(0, error.into()))?;
    let (profile, _, start) = read_header(&input)?;
    let mut check = Checker {
        input: &input,
        is_rnet_recording: profile == names::PROFILE,
        on_problem,
        checked: CheckReport::default(),
        seen: DataSummary::default(),
        channels: Channels::default(),
        numbers: BTreeMap::new(),
        runs: 0,
        chunk: None,
    };
    let data_end = check.data(start);
    if let Some(end) = data_end {
        check.data_crc(&end);
        match index::summary(&input) {
            Ok(summary) => check.summary(&summary),
            Err(ReadError { problem: Problem::NoIndex, .. }) => {}
            Err(problem) => check.problem(problem),
        }
    }
    check.checked.missing = check.numbers.values().map(SequenceSet::missing).sum();
    Ok(check.checked)
}

/// Summary of the data, for comparison with the index.
#[derive(Default)]
struct DataSummary {
    counts: BTreeMap<u16, u64>,
    times: Option<(u64, u64)>,
    chunks: BTreeMap<u64, ChunkIndex>,
    metadata: BTreeMap<u64, String>,
    attachments: u64,
}

struct Checker<'a> {
    input: &'a Input,
    is_rnet_recording: bool,
    on_problem: &'a mut dyn FnMut(&ReadError),
    checked: CheckReport,
    seen: DataSummary,
    channels: Channels,
    /// The sequence numbers of each channel, in recordings of robot-net.
    numbers: BTreeMap<u16, SequenceSet>,
    /// Number of their runs.
    runs: usize,
    /// The preceding chunk, until its message indexes have been read.
    chunk: Option<LastChunk>,
}

/// A chunk whose message indexes follow it.
struct LastChunk {
    offset: u64,
    /// Log time and offset of each message, by channel.
    messages: BTreeMap<u16, Vec<(u64, u64)>>,
}

impl Checker<'_> {
    fn problem(&mut self, problem: ReadError) {
        self.checked.problems += 1;
        (self.on_problem)(&problem);
    }

    fn report_index_error(&mut self, offset: u64, why: String) {
        self.problem(ReadError::new(offset, Problem::Index(why)));
    }

    /// Reads all records up to the one that ends the data, and returns that.
    fn data(&mut self, start: u64) -> Option<Head> {
        let mut at = start;
        loop {
            let head = match self.input.head(at, self.input.len()) {
                Ok(Some(head)) => head,
                Ok(None) => {
                    self.problem(ReadError::new(at, Problem::MissingFooter));
                    return None;
                }
                Err(problem) => {
                    self.problem(problem);
                    return None;
                }
            };
            at = head.end();
            if head.opcode != op::MESSAGE_INDEX {
                self.end_of_chunk();
            }
            if head.opcode == op::DATA_END {
                return Some(head);
            }
            if let Err(problem) = self.record(&head) {
                self.problem(problem);
            }
        }
    }

    fn record(&mut self, head: &Head) -> Result<(), ReadError> {
        match head.opcode {
            op::CHUNK | op::MESSAGE | op::SCHEMA | op::CHANNEL => self.block(head),
            op::MESSAGE_INDEX => self.message_index(head),
            op::METADATA => {
                if let Record::Metadata(found) = self.input.record(head, MAX_RECORD_LEN_BYTES)? {
                    if self.is_rnet_recording && found.name == names::UNHEARD {
                        let claimed = |key| found.metadata.get(key).and_then(|n| n.parse().ok());
                        let CheckReport { unheard, followed, .. } = &mut self.checked;
                        // A file that was merged from several has several.
                        if let Some(n) = claimed("total") {
                            *unheard = Some(unheard.unwrap_or(0).saturating_add(n));
                        }
                        *followed = claimed("followed").max(*followed);
                    }
                    self.seen.metadata.insert(head.offset, found.name);
                }
                Ok(())
            }
            op::ATTACHMENT => {
                self.seen.attachments += 1;
                // Reading the record checks its CRC.
                self.input.record(head, MAX_CHUNK_LEN_BYTES).map(drop)
            }
            _ => Ok(()),
        }
    }

    fn block(&mut self, head: &Head) -> Result<(), ReadError> {
        let (offset, end) = (head.offset, head.end());
        let is_chunk = head.opcode == op::CHUNK;
        let block = Block { is_chunk, offset, end, times: (0, u64::MAX), channels: None };
        let contents = block.read(self.input, &mut self.channels)?;
        self.messages(head, &contents.messages);
        if head.opcode == op::CHUNK {
            self.chunk(head, &contents);
        }
        contents.problem.map_or(Ok(()), Err)
    }

    fn messages<T>(&mut self, head: &Head, messages: &[(MessageHeader, T)]) {
        for (message, _) in messages {
            self.checked.messages += 1;
            *self.seen.counts.entry(message.channel_id).or_default() += 1;
            let time = message.log_time;
            let (first, last) = self.seen.times.get_or_insert((time, time));
            (*first, *last) = (time.min(*first), time.max(*last));
            if self.is_rnet_recording && !self.is_new(message) {
                let (id, now) = (message.channel_id, message.sequence);
                let topic = self.channels.get(id).map_or("", |channel| &channel.topic);
                let why = format!("message {now} of {topic} (channel {id}) is duplicated");
                self.report_index_error(head.offset, why);
            }
        }
    }

    /// Whether a message is new, if its publisher numbers its messages.
    fn is_new(&mut self, message: &MessageHeader) -> bool {
        let id = message.channel_id;
        if self.channels.get(id).is_some_and(|channel| channel.is_reserved()) {
            return true;
        }
        let numbers = self.numbers.entry(id).or_default();
        let before = numbers.runs();
        let is_new = numbers.add(message.sequence, message.publish_time);
        if self.runs - before + numbers.runs() > MAX_RUNS {
            self.checked.has_too_many_gaps = true;
            numbers.forget_lowest_run();
        }
        self.runs = self.runs - before + numbers.runs();
        is_new
    }

    fn chunk(&mut self, head: &Head, contents: &BlockContents) {
        self.checked.chunks += 1;
        let times = contents.messages.iter().map(|(message, _)| message.log_time);
        let times = (times.clone().min().unwrap_or(0), times.max().unwrap_or(0));
        let claimed = &contents.header;
        if times != (claimed.message_start_time, claimed.message_end_time) {
            let (from, to) = (claimed.message_start_time, claimed.message_end_time);
            let why = format!(
                "the chunk claims messages from {from} to {to}, but they are from {} to {}",
                times.0, times.1
            );
            self.report_index_error(head.offset, why);
        }
        let seen = ChunkIndex {
            message_start_time: times.0,
            message_end_time: times.1,
            chunk_start_offset: head.offset,
            chunk_length: head.end() - head.offset,
            message_index_offsets: BTreeMap::new(),
            message_index_length: 0,
            compression: claimed.compression.clone(),
            compressed_size: claimed.compressed_size,
            uncompressed_size: claimed.uncompressed_size,
        };
        self.seen.chunks.insert(head.offset, seen);
        let mut messages: BTreeMap<u16, Vec<(u64, u64)>> = BTreeMap::new();
        for ((message, _), offset) in contents.messages.iter().zip(&contents.offsets) {
            let of_channel = messages.entry(message.channel_id).or_default();
            of_channel.push((message.log_time, *offset));
        }
        self.chunk = Some(LastChunk { offset: head.offset, messages });
    }

    fn message_index(&mut self, head: &Head) -> Result<(), ReadError> {
        let Record::MessageIndex(index) = self.input.record(head, MAX_CHUNK_LEN_BYTES)? else {
            unreachable!("a record of this opcode is parsed as an index");
        };
        let id = index.channel_id;
        // The index of a chunk that cannot be read.
        let Some(chunk) = &mut self.chunk else { return Ok(()) };
        if let Some(seen) = self.seen.chunks.get_mut(&chunk.offset) {
            seen.message_index_offsets.insert(id, head.offset);
            seen.message_index_length += head.end() - head.offset;
        }
        let mut claimed: Vec<_> = index.records.iter().map(|e| (e.log_time, e.offset)).collect();
        let mut found = chunk.messages.remove(&id).unwrap_or_default();
        claimed.sort_unstable();
        found.sort_unstable();
        if claimed != found {
            let why = format!(
                "the message index of channel {id} lists {} messages of the preceding chunk, which has {} \
                 or has them at other offsets",
                claimed.len(),
                found.len()
            );
            self.report_index_error(head.offset, why);
        }
        Ok(())
    }

    /// Checks that all messages of a chunk are in one of its indexes, if it has any.
    fn end_of_chunk(&mut self) {
        let Some(chunk) = self.chunk.take() else { return };
        let indexed = self.seen.chunks.get(&chunk.offset);
        if indexed.is_none_or(|seen| seen.message_index_offsets.is_empty()) {
            return;
        }
        for (id, messages) in chunk.messages {
            let why = format!(
                "{} messages of channel {id} are missing from the message index",
                messages.len()
            );
            self.report_index_error(chunk.offset, why);
        }
    }

    fn data_crc(&mut self, end: &Head) {
        let crc = || -> Result<Option<(u32, u32)>, ReadError> {
            let claimed = match self.input.record(end, MAX_RECORD_LEN_BYTES)? {
                Record::DataEnd(claimed) if claimed.data_section_crc != 0 => claimed,
                _ => return Ok(None),
            };
            let (mut hasher, mut at) = (crc32fast::Hasher::new(), 0);
            while at < end.offset {
                let len = PIECE_LEN_BYTES.min(end.offset - at);
                hasher.update(&self.input.read(at, len)?);
                at += len;
            }
            Ok(Some((claimed.data_section_crc, hasher.finalize())))
        };
        match crc() {
            Ok(Some((saved, found))) if saved != found => {
                let problem = Problem::Crc { what: "the data", saved, found };
                self.problem(ReadError::new(end.offset, problem));
            }
            Ok(_) => {}
            Err(problem) => self.problem(problem),
        }
    }

    fn summary(&mut self, summary: &Summary) {
        let at = summary.footer.summary_start;
        if let Some(claimed) = &summary.statistics {
            self.statistics(at, claimed);
        }
        for channel in summary.channels.iter() {
            let known = self.channels.get(channel.id).cloned();
            if known.is_some_and(|known| known != *channel) {
                let problem = Problem::Conflict { what: "channel", id: channel.id };
                self.problem(ReadError::new(at, problem));
            }
        }
        for claimed in &summary.chunks {
            let offset = claimed.chunk_start_offset;
            match self.seen.chunks.remove(&offset) {
                Some(seen) if seen == *claimed => {}
                Some(_) => {
                    self.report_index_error(
                        offset,
                        "it describes this chunk incorrectly".to_owned(),
                    );
                }
                None => self.report_index_error(
                    offset,
                    "it lists a chunk here, which cannot be read".to_owned(),
                ),
            }
        }
        if !summary.chunks.is_empty() {
            for (offset, _) in std::mem::take(&mut self.seen.chunks) {
                self.report_index_error(offset, "it does not list this chunk".to_owned());
            }
        }
        for claimed in &summary.metadata {
            if self.seen.metadata.get(&claimed.offset) != Some(&claimed.name) {
                self.report_index_error(
                    claimed.offset,
                    format!("it lists Metadata {:?} here, which does not exist", claimed.name),
                );
            }
        }
    }

    fn statistics(&mut self, at: u64, claimed: &Statistics) {
        let seen = Statistics {
            message_count: self.checked.messages,
            chunk_count: u32::try_from(self.seen.chunks.len()).unwrap_or(u32::MAX),
            metadata_count: u32::try_from(self.seen.metadata.len()).unwrap_or(u32::MAX),
            attachment_count: u32::try_from(self.seen.attachments).unwrap_or(u32::MAX),
            message_start_time: self.seen.times.map_or(0, |times| times.0),
            message_end_time: self.seen.times.map_or(0, |times| times.1),
            // Writers may list channels without messages.
            channel_message_counts: claimed
                .channel_message_counts
                .keys()
                .map(|id| (*id, 0))
                .chain(self.seen.counts.clone())
                .collect(),
            // Those in the summary only count as well.
            schema_count: claimed.schema_count,
            channel_count: claimed.channel_count,
        };
        if seen != *claimed {
            self.report_index_error(
                at,
                format!("the statistics are wrong: {}", differences(claimed, &seen)),
            );
        }
    }
}

/// Describes where the statistics differ from the data.
fn differences(claimed: &Statistics, seen: &Statistics) -> String {
    let sums = [
        ("messages", claimed.message_count, seen.message_count),
        ("chunks", claimed.chunk_count.into(), seen.chunk_count.into()),
        ("metadata records", claimed.metadata_count.into(), seen.metadata_count.into()),
        ("attachments", claimed.attachment_count.into(), seen.attachment_count.into()),
    ];
    let sums = sums.into_iter().map(|(what, claimed, seen)| {
        (claimed, seen, format!("{claimed} {what} instead of {seen}"))
    });
    let times = [
        ("first", claimed.message_start_time, seen.message_start_time),
        ("last", claimed.message_end_time, seen.message_end_time),
    ];
    let times = times.into_iter().map(|(which, claimed, seen)| {
        let text = format!("the {which} message at {claimed} ns instead of {seen} ns");
        (claimed, seen, text)
    });
    let counts = seen.channel_message_counts.iter().map(|(id, seen)| {
        let claimed = claimed.channel_message_counts.get(id).copied().unwrap_or(0);
        (claimed, *seen, format!("channel {id} with {claimed} messages instead of {seen}"))
    });
    let all = sums.chain(times).chain(counts).filter(|(claimed, seen, _)| claimed != seen);
    let mut all: Vec<String> = all.map(|(.., text)| text).collect();
    let more = all.len().saturating_sub(MAX_REPORTED_DIFFERENCES);
    all.truncate(MAX_REPORTED_DIFFERENCES);
    if more > 0 {
        all.push(format!("{more} more differences"));
    }
    all.join("; ")
}
