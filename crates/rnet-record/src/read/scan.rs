//! Scans a file from its start to its end, or to where it is truncated.

use std::collections::BTreeMap;

use mcap::records::{Record, op};

use super::blocks::{Block, BlockContents, MAX_UNCHUNKED_LEN_BYTES};
use super::chunk::Chunk;
use super::error::{Problem, ReadError};
use super::index::Summary;
use super::info::RecordingInfo;
use super::input::{HEAD_LEN_BYTES, Head, Input};

/// Maximum length of a record other than a chunk or a message.
pub const MAX_RECORD_LEN_BYTES: u64 = 64 << 20;

/// Why a file without an end is scanned.
const NO_END: &str = "it has no end: it is still being written, or its writer was killed";

/// Offsets of records from an index with a correct CRC, used if the head of a record is damaged.
#[derive(Default)]
struct IndexedRecords {
    /// Chunks, attachments and metadata records.
    records: BTreeMap<u64, Head>,
    /// Offset of the summary.
    data_end: Option<u64>,
}

impl IndexedRecords {
    fn of(summary: &Summary) -> IndexedRecords {
        let data_end = summary.footer.summary_start;
        let mut records = BTreeMap::new();
        let mut add = |opcode, offset: u64, end: u64| {
            if let Some(body_len) = end.checked_sub(offset.saturating_add(HEAD_LEN_BYTES))
                && end <= data_end
            {
                records.insert(offset, Head { opcode, offset, body_len });
            }
        };
        for chunk in &summary.chunks {
            let offset = chunk.chunk_start_offset;
            add(op::CHUNK, offset, offset.saturating_add(chunk.chunk_length));
        }
        for (offset, end) in &summary.attachments {
            add(op::ATTACHMENT, *offset, *end);
        }
        for metadata in &summary.metadata {
            add(op::METADATA, metadata.offset, metadata.offset.saturating_add(metadata.length));
        }
        IndexedRecords { records, data_end: Some(data_end) }
    }

    /// The first record after this offset.
    fn next(&self, at: u64) -> Option<u64> {
        self.records.range(at.saturating_add(1)..).next().map(|(offset, _)| *offset)
    }

    /// The head of the record at this offset: as stored, unless the index contradicts it; then from the
    /// index. `None` at the end.
    fn head(&self, input: &Input, at: u64) -> Result<Option<Head>, ReadError> {
        let read = input.head(at, input.len());
        let known = self.records.get(&at).copied();
        let next = self.next(at).or(self.data_end.filter(|end| at < *end));
        let Some(next) = next else { return read };
        match (read, known) {
            (Ok(Some(head)), Some(known))
                if head.end() != known.end()
                    && head.opcode == op::CHUNK
                    && Chunk::read(input, &known).is_err() =>
            {
                Ok(Some(head))
            }
            (_, Some(known)) => Ok(Some(known)),
            (Ok(head), None) if head.is_none_or(|head| head.end() <= next) => Ok(head),
            (_, None) => Err(ReadError::new(at, Problem::Skipped { next })),
        }
    }
}

/// Scans the file. Unreadable parts are skipped and reported as problems. A summary with a correct CRC
/// locates records whose heads are damaged, and describes channels whose descriptions are damaged.
pub fn scan(input: &Input, start: u64, summary: Option<&Summary>) -> RecordingInfo {
    let summary = summary.filter(|summary| summary.footer.summary_crc != 0);
    let known = summary.map(IndexedRecords::of).unwrap_or_default();
    let channels = summary.map(|summary| summary.channels.clone()).unwrap_or_default();
    let mut found = RecordingInfo { channels, ..RecordingInfo::default() };
    let mut ended = false;
    let mut loose = UnchunkedBlock::default();
    let mut at = start;
    while !ended {
        let head = match known.head(input, at) {
            Ok(Some(head)) => head,
            Ok(None) => break,
            Err(problem) => {
                loose.finish(input, &mut found);
                let next = match problem.problem {
                    Problem::Skipped { next } => Some(next),
                    _ => None,
                };
                found.problem(problem);
                ended = next.is_some() && next == known.data_end;
                match next {
                    Some(next) => at = next,
                    None => break,
                }
                continue;
            }
        };
        at = head.end();
        let is_loose = matches!(head.opcode, op::MESSAGE | op::SCHEMA | op::CHANNEL);
        if !is_loose || !loose.takes(&head) {
            loose.finish(input, &mut found);
        }
        match head.opcode {
            op::MESSAGE | op::SCHEMA | op::CHANNEL => loose.add(&head),
            op::DATA_END => ended = true,
            op::FOOTER => break,
            _ => {
                if let Err(problem) = add_record(input, &head, &mut found) {
                    found.problem(problem);
                }
            }
        }
    }
    loose.finish(input, &mut found);
    if !ended {
        found.problem(ReadError::new(input.len(), Problem::MissingFooter));
    }
    found.scan_reason = Some(if ended { "its index cannot be used" } else { NO_END });
    found
}

/// Processes a record other than an unchunked message.
fn add_record(input: &Input, head: &Head, found: &mut RecordingInfo) -> Result<(), ReadError> {
    match head.opcode {
        op::CHUNK => {
            let block = Block {
                is_chunk: true,
                offset: head.offset,
                end: head.end(),
                times: (0, u64::MAX),
                channels: None,
            };
            add_block(input, block, found)
        }
        op::METADATA => {
            if let Record::Metadata(metadata) = input.record(head, MAX_RECORD_LEN_BYTES)? {
                found.metadata.push(metadata);
            }
            Ok(())
        }
        op::ATTACHMENT => {
            found.attachments.push((head.offset, head.end()));
            Ok(())
        }
        // Message indexes and unknown records are ignored.
        _ => Ok(()),
    }
}

/// Counts the messages of a block.
fn add_block(input: &Input, mut block: Block, found: &mut RecordingInfo) -> Result<(), ReadError> {
    let BlockContents { header: chunk, bytes, messages, problem, .. } =
        block.read(input, &mut found.channels)?;
    let first = messages.iter().map(|(header, _)| header.log_time).min();
    let last = messages.iter().map(|(header, _)| header.log_time).max();
    for (header, _) in &messages {
        *found.counts.entry(header.channel_id).or_default() += 1;
    }
    if block.is_chunk {
        found.chunks += 1;
        let (before, after) = found.compression.entry(chunk.compression).or_default();
        *before += bytes.len() as u64;
        *after += block.end - block.offset;
    }
    if let (Some(first), Some(last)) = (first, last) {
        block.times = (first, last);
        let channels = messages.iter().map(|(header, _)| header.channel_id);
        let channels: std::collections::BTreeSet<u16> = channels.collect();
        block.channels = Some(channels.into_iter().collect());
        found.blocks.push(block);
        let times = found.times.get_or_insert((first, last));
        *times = (times.0.min(first), times.1.max(last));
    }
    problem.map_or(Ok(()), Err)
}

/// Messages outside of chunks, collected until they fill a block.
#[derive(Default)]
struct UnchunkedBlock {
    block: Option<Block>,
}

impl UnchunkedBlock {
    /// Whether a record can be added to the collected ones.
    fn takes(&self, head: &Head) -> bool {
        match &self.block {
            Some(block) => {
                block.end == head.offset && head.end() - block.offset <= MAX_UNCHUNKED_LEN_BYTES
            }
            None => true,
        }
    }

    fn add(&mut self, head: &Head) {
        let (offset, end) = (head.offset, head.end());
        let (is_chunk, times) = (false, (0, u64::MAX));
        let new = || Block { is_chunk, offset, end, times, channels: None };
        self.block.get_or_insert_with(new).end = end;
    }

    fn finish(&mut self, input: &Input, found: &mut RecordingInfo) {
        if let Some(block) = self.block.take()
            && let Err(problem) = add_block(input, block, found)
        {
            found.problem(problem);
        }
    }
}
