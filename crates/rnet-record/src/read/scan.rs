//! Reading a file from its start to where it ends or is cut off.

use mcap::records::{Record, op};

use super::blocks::{Block, Contents, LOOSE_LEN_BYTES};
use super::error::{Problem, ReadError};
use super::found::Found;
use super::input::{Head, Input};
use super::record;

/// Longest record that is neither a chunk nor a message.
pub const MAX_RECORD_LEN_BYTES: u64 = 64 << 20;

/// Why a file without end is read as a whole.
const NO_END: &str = "it has no end: it is still written, or whoever wrote it was killed";

/// What is in the file. What cannot be read is left out, and stands among the problems.
pub fn scan(input: &Input, start: u64) -> Found {
    let mut found = Found::default();
    let mut ended = false;
    let mut loose = Loose::default();
    let mut at = start;
    loop {
        let head = match input.head(at, input.len()) {
            Ok(Some(head)) => head,
            Ok(None) => break,
            Err(problem) => {
                found.problem(problem);
                break;
            }
        };
        at = head.end();
        let is_loose = matches!(head.opcode, op::MESSAGE | op::SCHEMA | op::CHANNEL);
        if !is_loose || !loose.takes(&head) {
            loose.finish(input, &mut found);
        }
        match head.opcode {
            op::MESSAGE | op::SCHEMA | op::CHANNEL => loose.add(&head),
            op::DATA_END => {
                ended = true;
                break;
            }
            op::FOOTER => break,
            _ => {
                if let Err(problem) = add(input, &head, &mut found) {
                    found.problem(problem);
                }
            }
        }
    }
    loose.finish(input, &mut found);
    if !ended {
        found.problem(ReadError::new(input.len(), Problem::NoEnd));
    }
    found.scanned = Some(if ended { "its index cannot be used" } else { NO_END });
    found
}

/// Takes in a record that is no loose message.
fn add(input: &Input, head: &Head, found: &mut Found) -> Result<(), ReadError> {
    match head.opcode {
        op::CHUNK => {
            let block = Block {
                offset: head.offset,
                end: head.end(),
                times: (0, u64::MAX),
                channels: None,
            };
            take(input, block, found)
        }
        op::METADATA => {
            let body = input.body(head, MAX_RECORD_LEN_BYTES)?;
            if let Record::Metadata(metadata) = record::parse(head.opcode, &body, head.offset)? {
                found.metadata.push(metadata);
            }
            Ok(())
        }
        op::ATTACHMENT => {
            found.attachments.push((head.offset, head.end()));
            Ok(())
        }
        // What comes later does not belong here: indexes, and records that are not known.
        _ => Ok(()),
    }
}

/// Takes in the messages of a block.
fn take(input: &Input, mut block: Block, found: &mut Found) -> Result<(), ReadError> {
    let Contents { header: chunk, bytes, messages, problem, .. } =
        block.read(input, &mut found.channels)?;
    let first = messages.iter().map(|(header, _)| header.log_time).min();
    let last = messages.iter().map(|(header, _)| header.log_time).max();
    for (header, _) in &messages {
        *found.counts.entry(header.channel_id).or_default() += 1;
    }
    let head = input.head(block.offset, block.end)?;
    if head.is_some_and(|head| head.opcode == op::CHUNK) {
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

/// Messages outside of chunks, gathered until they fill a block.
#[derive(Default)]
struct Loose {
    block: Option<Block>,
}

impl Loose {
    /// Whether a record can be read together with what is gathered.
    fn takes(&self, head: &Head) -> bool {
        match &self.block {
            Some(block) => block.end == head.offset && head.end() - block.offset <= LOOSE_LEN_BYTES,
            None => true,
        }
    }

    fn add(&mut self, head: &Head) {
        let (offset, end) = (head.offset, head.end());
        let new = || Block { offset, end, times: (0, u64::MAX), channels: None };
        self.block.get_or_insert_with(new).end = end;
    }

    fn finish(&mut self, input: &Input, found: &mut Found) {
        if let Some(block) = self.block.take()
            && let Err(problem) = take(input, block, found)
        {
            found.problem(problem);
        }
    }
}
