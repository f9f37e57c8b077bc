//! Reads the index at the end of a file.

use std::collections::BTreeMap;

use mcap::MAGIC;
use mcap::records::{ChunkIndex, Footer, MetadataIndex, Record, Statistics, op};

use super::blocks::Block;
use super::channels::Channels;
use super::error::{Problem, ReadError};
use super::info::RecordingInfo;
use super::input::{HEAD_LEN_BYTES, Head, Input, heads};
use super::record;
use super::scan::MAX_RECORD_LEN_BYTES;

/// Length of the footer's offsets and CRC.
const FOOTER_BODY_LEN_BYTES: u64 = 20;
/// Maximum length of a summary.
const MAX_SUMMARY_LEN_BYTES: u64 = 1 << 30;
/// Maximum number of metadata records that are read with the index.
const MAX_METADATA: usize = 10_000;

/// Content of the summary.
pub struct Summary {
    pub footer: Footer,
    /// Offset of the Footer record.
    pub footer_at: u64,
    pub channels: Channels,
    /// Whether it has channels whose schemas it does not repeat; they are missing in `channels`.
    pub lacks_schemas: bool,
    pub statistics: Option<Statistics>,
    pub chunks: Vec<ChunkIndex>,
    pub metadata: Vec<MetadataIndex>,
    /// Start and end offsets.
    pub attachments: Vec<(u64, u64)>,
}

/// The content of the file according to its index.
///
/// # Errors
/// The index is missing, or contradicts itself or the file.
pub fn read(input: &Input, start: u64) -> Result<RecordingInfo, ReadError> {
    let mut summary = summary(input)?;
    let lies = |why: String| ReadError::new(summary.footer.summary_start, Problem::Index(why));
    let Some(statistics) = summary.statistics.take() else {
        return Err(ReadError::new(summary.footer_at, Problem::NoIndex));
    };
    // Messages outside of chunks have no index, and a summary need not repeat chunks, channels and schemas.
    let no_channels = summary.channels.iter().next().is_none();
    let lacks_chunks = statistics.chunk_count == 0 || summary.chunks.is_empty();
    let lacks_channels = no_channels || summary.lacks_schemas;
    if statistics.message_count > 0 && (lacks_chunks || lacks_channels) {
        return Err(ReadError::new(summary.footer_at, Problem::NoIndex));
    }
    if statistics.chunk_count as usize != summary.chunks.len() {
        let (said, listed) = (statistics.chunk_count, summary.chunks.len());
        return Err(lies(format!("it counts {said} chunks, but lists {listed}")));
    }
    let counted: u64 =
        statistics.channel_message_counts.values().fold(0, |sum, n| sum.saturating_add(*n));
    if counted != statistics.message_count {
        let said = statistics.message_count;
        return Err(lies(format!("it counts {said} messages, but {counted} over all channels")));
    }
    if let Some(id) =
        statistics.channel_message_counts.keys().find(|id| summary.channels.get(**id).is_none())
    {
        return Err(lies(format!(
            "it counts messages of channel {id}, which it does not describe"
        )));
    }
    let mut found = RecordingInfo {
        counts: statistics.channel_message_counts.clone(),
        chunks: summary.chunks.len() as u64,
        ..RecordingInfo::default()
    };
    if statistics.message_count > 0 {
        let (first, last) = (statistics.message_start_time, statistics.message_end_time);
        if first > last {
            return Err(lies(format!(
                "its first message is at {first}, but its last one at {last}"
            )));
        }
        found.times = Some((first, last));
    }
    let mut others = OtherRecords::default();
    found.blocks = blocks(input, start, &summary, &mut others)?;
    for chunk in &summary.chunks {
        let sizes = found.compression.entry(chunk.compression.clone()).or_default();
        sizes.0 = sizes.0.saturating_add(chunk.uncompressed_size);
        sizes.1 = sizes.1.saturating_add(chunk.chunk_length);
    }
    let mut named: BTreeMap<u64, &str> =
        summary.metadata.iter().map(|index| (index.offset, &*index.name)).collect();
    for (number, head) in others.metadata.iter().enumerate() {
        let name = named.remove(&head.offset);
        if number >= MAX_METADATA {
            continue;
        }
        if let Record::Metadata(metadata) = input.record(head, MAX_RECORD_LEN_BYTES)? {
            if name.is_some_and(|name| name != metadata.name) {
                named.extend(name.map(|name| (head.offset, name)));
            }
            found.metadata.push(metadata);
        }
    }
    if let Some((offset, name)) = named.pop_first() {
        let why = format!("Metadata {name:?} is not here, where the index lists it");
        return Err(ReadError::new(offset, Problem::Index(why)));
    }
    found.attachments = others.attachments;
    found.channels = summary.channels;
    Ok(found)
}

/// Records of a file outside of chunks. Writers need not index them.
#[derive(Default)]
struct OtherRecords {
    metadata: Vec<Head>,
    /// Start and end offsets.
    attachments: Vec<(u64, u64)>,
}

/// The chunks of the index, in the order of the file. Reads every gap between them, to find records that the
/// index does not list.
fn blocks(
    input: &Input,
    start: u64,
    summary: &Summary,
    others: &mut OtherRecords,
) -> Result<Vec<Block>, ReadError> {
    let mut chunks: Vec<&ChunkIndex> = summary.chunks.iter().collect();
    chunks.sort_by_key(|chunk| chunk.chunk_start_offset);
    let data_end = summary.footer.summary_start;
    let mut at = start;
    let mut blocks = Vec::new();
    for chunk in chunks {
        let offset = chunk.chunk_start_offset;
        let lies = |why: String| ReadError::new(offset, Problem::Index(why));
        if offset < at {
            return Err(lies("a chunk overlaps the record before it".to_owned()));
        }
        let (first, last) = (chunk.message_start_time, chunk.message_end_time);
        // Such a chunk would not match any time range.
        if first > last {
            return Err(lies(format!("the chunk here claims the times {first} to {last}")));
        }
        let mut ids = chunk.message_index_offsets.keys();
        if let Some(id) = ids.find(|id| summary.channels.get(**id).is_none()) {
            return Err(lies(format!(
                "it lists messages of channel {id} in the chunk here, but does not describe the channel"
            )));
        }
        read_gap(input, at, offset, others)?;
        let end = offset.checked_add(chunk.chunk_length).filter(|end| *end <= data_end);
        let Some(end) = end else {
            return Err(lies(format!(
                "the chunk of {} bytes here extends beyond the end of the data",
                chunk.chunk_length
            )));
        };
        blocks.push(Block {
            is_chunk: true,
            offset,
            end,
            times: (chunk.message_start_time, chunk.message_end_time),
            channels: match chunk.message_index_offsets.is_empty() {
                true => None,
                false => Some(chunk.message_index_offsets.keys().copied().collect()),
            },
        });
        at =
            end.checked_add(chunk.message_index_length).filter(|at| *at <= data_end).unwrap_or(end);
    }
    read_gap(input, at, data_end, others)?;
    Ok(blocks)
}

/// Reads the records between chunks.
fn read_gap(
    input: &Input,
    start: u64,
    end: u64,
    others: &mut OtherRecords,
) -> Result<(), ReadError> {
    let mut at = start;
    while let Some(head) = input.head(at, end)? {
        match head.opcode {
            op::CHUNK => {
                let why = format!("it does not list the {} record here", head.name());
                return Err(ReadError::new(at, Problem::Index(why)));
            }
            op::MESSAGE => return Err(ReadError::new(at, Problem::NoIndex)),
            op::METADATA => others.metadata.push(head),
            op::ATTACHMENT => others.attachments.push((head.offset, head.end())),
            op::DATA_END => break,
            _ => {}
        }
        at = head.end();
    }
    Ok(())
}

/// The last record of the file.
fn footer(input: &Input) -> Result<(Footer, u64), ReadError> {
    let none = || ReadError::new(input.len(), Problem::MissingFooter);
    let magic = MAGIC.len() as u64;
    let len = HEAD_LEN_BYTES + FOOTER_BODY_LEN_BYTES;
    let at = input.len().checked_sub(magic + len).ok_or_else(none)?;
    if input.read(at + len, magic)? != MAGIC {
        return Err(none());
    }
    let head = input.head(at, at + len).map_err(|_| none())?;
    let is_footer =
        |head: &Head| head.opcode == op::FOOTER && head.body_len == FOOTER_BODY_LEN_BYTES;
    let head = head.filter(is_footer).ok_or_else(none)?;
    match input.record(&head, FOOTER_BODY_LEN_BYTES)? {
        Record::Footer(footer) => Ok((footer, at)),
        _ => unreachable!("a record of this opcode is parsed as a footer"),
    }
}

/// Reads the summary, and checks its CRC.
pub fn summary(input: &Input) -> Result<Summary, ReadError> {
    let (footer, footer_at) = footer(input)?;
    let start = footer.summary_start;
    let lies = |why: String| ReadError::new(footer_at, Problem::Index(why));
    if start == 0 {
        return Err(ReadError::new(footer_at, Problem::NoIndex));
    }
    let Some(len) = footer_at.checked_sub(start) else {
        return Err(lies(format!("it would begin at byte {start}, after its end")));
    };
    if len > MAX_SUMMARY_LEN_BYTES {
        return Err(lies(format!(
            "it has {len} bytes, more than the limit of {MAX_SUMMARY_LEN_BYTES}"
        )));
    }
    let crc_at = footer_at + HEAD_LEN_BYTES + FOOTER_BODY_LEN_BYTES - 4;
    let bytes = input.read(start, crc_at - start)?;
    let found = if footer.summary_crc == 0 { 0 } else { crc32fast::hash(&bytes) };
    if found != footer.summary_crc {
        let (what, saved) = ("the summary", footer.summary_crc);
        return Err(ReadError::new(start, Problem::Crc { what, saved, found }));
    }
    let mut summary = Summary {
        footer,
        footer_at,
        channels: Channels::default(),
        lacks_schemas: false,
        statistics: None,
        chunks: Vec::new(),
        metadata: Vec::new(),
        attachments: Vec::new(),
    };
    let mut channels = Vec::new();
    // `bytes` also has the part of the footer that the CRC covers.
    for head in heads(&bytes[..len as usize], start) {
        let head = head?;
        let offset = head.offset;
        let body = &bytes[(head.body() - start) as usize..(head.end() - start) as usize];
        match record::parse(head.opcode, body, offset)? {
            record @ Record::Schema { .. } => summary.channels.add(record, offset)?,
            // The schemas may follow the channels.
            record @ Record::Channel(_) => channels.push((record.into_owned(), offset)),
            Record::Statistics(statistics) => summary.statistics = Some(statistics),
            Record::ChunkIndex(chunk) => summary.chunks.push(chunk),
            Record::MetadataIndex(metadata) => summary.metadata.push(metadata),
            Record::AttachmentIndex(index) => {
                let end = index.offset.saturating_add(index.length);
                summary.attachments.push((index.offset, end));
            }
            _ => {}
        }
    }
    for (channel, offset) in channels {
        match summary.channels.add(channel, offset) {
            Err(ReadError { problem: Problem::UnknownSchema { .. }, .. }) => {
                summary.lacks_schemas = true;
            }
            added => added?,
        }
    }
    Ok(summary)
}
