//! Chunks: memory for messages that are too large for the log.
//!
//! Each chunk is a separate file beside the log, so that the pool grows and shrinks by creating and unlinking
//! files, and a reader maps only what it reads. Only the publisher decides when a chunk is reused: when its
//! message is no longer needed and no reader pins it. Messages that are kept for late joiners are never
//! dropped for lack of memory: the next message fails instead.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rnet_core::{MAX_CHUNKS_PER_CHANNEL, PublisherQos};
use rnet_ring::fail_point;
use rnet_ring::layout::{CHUNK_MAGIC, ChunkHeader, PAGE_LEN_BYTES};
use rnet_ring::pins;
use rnet_ring::record::ChunkRef;

use crate::channel::reader_table::{ReaderRef, ReaderTable};
use crate::os::files;
use crate::os::fork::ForkGuard;
use crate::os::mapping::{Access, Mapping};

mod exhausted;
mod history_check;

use exhausted::RecycleLimit;
pub use exhausted::{GrowthLimit, NoChunk, PoolExhausted};
pub(crate) use history_check::check_history;

/// Bytes in front of a chunk's payload: a page, so that the payload is page-aligned.
pub const CHUNK_HEADER_LEN_BYTES: usize = PAGE_LEN_BYTES;

/// Smallest chunk: below it the file's own overhead dominates.
const MIN_CHUNK_LEN_BYTES: usize = 16 << 10;

/// Length of a new chunk for a shorter message, if the pool's limit permits it. Creating and mapping a chunk
/// takes longer than sending 64 KiB, and messages of growing length would cause that repeatedly.
const DEFAULT_CHUNK_LEN_BYTES: usize = 64 << 10;

/// A chunk longer than [`DEFAULT_CHUNK_LEN_BYTES`] is not used for a message shorter than this fraction of
/// it: otherwise a small message could occupy the memory of a large one.
const MAX_FIT_RATIO: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
    /// No message uses it, but pins may still hold it.
    Idle,
    /// Being filled by the publisher.
    Loaned,
    /// Holds the message at `position`.
    Live { position: u64, seq: u64 },
}

#[derive(Debug)]
struct Chunk {
    number: u32,
    map: Mapping,
    capacity: usize,
    generation: u64,
    state: ChunkState,
}

impl Chunk {
    fn header(&self) -> &ChunkHeader {
        self.map.get(0)
    }

    /// Whether a message of `len` bytes may use it, in a pool whose chunks have at least `default_len`.
    fn suits(&self, len: usize, default_len: usize) -> bool {
        self.capacity >= len && self.capacity <= (len * MAX_FIT_RATIO).max(default_len)
    }
}

/// A message in a chunk.
#[derive(Clone, Copy, Debug)]
struct LiveMessage {
    number: u32,
    position: u64,
    seq: u64,
    /// [`Pool::carried_bytes`] before it.
    before_bytes: u64,
}

/// The state of the log that the pool needs to decide which messages are no longer needed.
pub(crate) struct LogView<'a> {
    pub head: u64,
    pub next_seq: u64,
    pub seen_epoch: &'a mut u64,
    pub readers: &'a mut Vec<Arc<ReaderRef>>,
    pub reader_table: &'a ReaderTable,
}

impl LogView<'_> {
    /// Whether a reader pins the chunk, whose message is no longer needed.
    ///
    /// The writer's copy of the readers is brought up to date first. A reader that has just been admitted may
    /// already have pinned an earlier message: then it saw its admission before the fence of its pin, which
    /// is before that of [`pins::invalidate`], so this load sees the epoch that admitted it (SYNC-PIN).
    fn pinned(&mut self, chunk: u32) -> bool {
        self.reader_table.update(self.seen_epoch, self.readers);
        self.readers.iter().any(|reader| pins::is_pinned(chunk, &reader.page().pins))
    }

    fn lowest_needed(&self, reliable_only: bool) -> u64 {
        self.readers
            .iter()
            .filter(|r| r.reliable || !reliable_only)
            .map(|r| r.needed())
            .min()
            .unwrap_or(u64::MAX)
    }
}

/// A publisher's chunks.
#[derive(Debug)]
pub struct Pool {
    prefix: PathBuf,
    mode: u32,
    publisher: u64,
    limit_bytes: u64,
    depth: usize,
    /// Number of messages kept for late joiners.
    history: u64,
    /// Length of the shortest chunks that are created while memory permits it.
    default_len: usize,
    chunks: Vec<Chunk>,
    /// The messages in chunks, oldest first.
    live: VecDeque<LiveMessage>,
    /// Total bytes of all messages that were sent in chunks; each counts as if its chunk were only as long as
    /// needed.
    carried_bytes: u64,
    next_number: u32,
    bytes: u64,
    fork_guard: ForkGuard,
}

impl Pool {
    /// An empty pool; the file names of its chunks start with `prefix`.
    pub(crate) fn new(prefix: PathBuf, mode: u32, publisher: u64, qos: &PublisherQos) -> Pool {
        // A pool with a low limit holds as many short messages as before: messages that stay readable, and
        // those that readers hold beside them, use at most a quarter of it.
        let kept = u64::from(qos.large_depth).max(qos.history().saturating_add(1));
        let kept_bytes = kept.saturating_mul(size_for(DEFAULT_CHUNK_LEN_BYTES));
        let is_roomy = kept_bytes <= qos.pool_limit_bytes / 4;
        Pool {
            default_len: if is_roomy { DEFAULT_CHUNK_LEN_BYTES } else { MIN_CHUNK_LEN_BYTES },
            fork_guard: ForkGuard::here(),
            prefix,
            mode,
            publisher,
            limit_bytes: qos.pool_limit_bytes,
            depth: qos.large_depth as usize,
            history: qos.history(),
            chunks: Vec::new(),
            live: VecDeque::new(),
            carried_bytes: 0,
            next_number: 0,
            bytes: 0,
        }
    }

    /// An empty pool with the same settings.
    pub(crate) fn emptied(&self) -> Pool {
        Pool {
            prefix: self.prefix.clone(),
            chunks: Vec::new(),
            live: VecDeque::new(),
            carried_bytes: 0,
            next_number: 0,
            bytes: 0,
            ..*self
        }
    }

    /// Bytes of memory that the chunks use.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of chunks on loan.
    pub(crate) fn loaned(&self) -> usize {
        self.chunks.iter().filter(|c| c.state == ChunkState::Loaned).count()
    }

    /// Number of chunks.
    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Whether the pool has no chunks.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Loans a chunk of at least `len` bytes; returns its number.
    pub(crate) fn acquire(&mut self, len: usize, view: &mut LogView<'_>) -> Result<u32, NoChunk> {
        // A message that can never fit must not evict existing messages.
        let size = size_for(len);
        if size > self.limit_bytes {
            return Err(NoChunk::Exhausted(PoolExhausted {
                growth_limit: GrowthLimit::Limit,
                for_history_bytes: None,
            }));
        }
        self.recycle(view, true);
        loop {
            if let Some(number) = self.take_idle(len, view) {
                return Ok(number);
            }
            let growth_limit = match self.grow(len) {
                Ok(number) => return Ok(number),
                Err(growth_limit) => growth_limit,
            };
            // Memory is short: free chunks that do not fit, then drop the oldest messages. Messages kept for
            // late joiners stay, and none is dropped for a message that could still not be sent.
            let kept_from = self.kept_from(view);
            let until = RecycleLimit { position: view.lowest_needed(true), seq: kept_from };
            if !self.recycling_helps(len, growth_limit, view, until) {
                return Err(self.find_blocker(len, growth_limit, view));
            }
            if self.drop_one_idle(view) {
                continue;
            }
            // Readers may have pinned chunks since the previous check.
            let reliable_read = view.lowest_needed(true);
            let may_go = |m: &LiveMessage| m.position < reliable_read && m.seq < kept_from;
            if !self.live.front().is_some_and(may_go) {
                return Err(self.find_blocker(len, growth_limit, view));
            }
            self.release_oldest();
        }
    }

    /// Loans an existing chunk that is no longer needed: no readable message is dropped for it, and the pool
    /// does not grow.
    pub(crate) fn acquire_idle(&mut self, len: usize, view: &mut LogView<'_>) -> Option<u32> {
        self.recycle(view, false);
        self.take_idle(len, view)
    }

    fn take_idle(&mut self, len: usize, view: &mut LogView<'_>) -> Option<u32> {
        let at = self.find_idle(len, view)?;
        self.chunks[at].state = ChunkState::Loaned;
        Some(self.chunks[at].number)
    }

    /// The publisher's write buffer: `len` bytes of a loaned chunk.
    pub(crate) fn payload(&mut self, number: u32, len: usize) -> Option<&mut [u8]> {
        let chunk = self.chunks.iter_mut().find(|c| c.number == number)?;
        if chunk.state != ChunkState::Loaned || len > chunk.capacity {
            return None;
        }
        let at = chunk.map.bytes(CHUNK_HEADER_LEN_BYTES, len);
        // SAFETY: the chunk is loaned to the caller, who holds `&mut self`; no reader pins it or can pin it,
        // because no record names its current generation yet.
        Some(unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), len) })
    }

    /// Like [`Pool::payload`], read-only.
    pub(crate) fn payload_ref(&self, number: u32, len: usize) -> Option<&[u8]> {
        let chunk = self.chunks.iter().find(|c| c.number == number)?;
        if chunk.state != ChunkState::Loaned || len > chunk.capacity {
            return None;
        }
        let at = chunk.map.bytes(CHUNK_HEADER_LEN_BYTES, len);
        // SAFETY: as in `payload`.
        Some(unsafe { std::slice::from_raw_parts(at.as_ptr(), len) })
    }

    /// The chunk reference that the record of a loaned chunk must contain.
    pub(crate) fn reference(&self, number: u32, len: usize) -> Option<ChunkRef> {
        let chunk = self.chunks.iter().find(|c| c.number == number)?;
        if chunk.map.is_truncated() {
            return None;
        }
        Some(ChunkRef { chunk: number, generation: chunk.generation, len: len as u64 })
    }

    /// Marks the loaned chunk as holding the message at `position`.
    pub(crate) fn sent(&mut self, number: u32, len: usize, position: u64, seq: u64) {
        if let Some(chunk) = self.chunks.iter_mut().find(|c| c.number == number) {
            chunk.state = ChunkState::Live { position, seq };
            let before_bytes = self.carried_bytes;
            self.carried_bytes += size_for(len);
            self.live.push_back(LiveMessage { number, position, seq, before_bytes });
        }
    }

    /// Ends a loan without sending a message.
    pub(crate) fn give_back(&mut self, number: u32) {
        if let Some(chunk) = self.chunks.iter_mut().find(|c| c.number == number) {
            chunk.state = ChunkState::Idle;
        }
    }

    /// Position of the newest message in a chunk.
    pub(crate) fn newest_position(&self) -> Option<u64> {
        self.live.back().map(|message| message.position)
    }

    /// Number of messages in chunks at or after `position`, and the length of their chunks.
    pub(crate) fn backlog(&self, position: u64) -> (usize, u64) {
        let first = self.live.partition_point(|message| message.position < position);
        let from_bytes = self.live.get(first).map_or(self.carried_bytes, |m| m.before_bytes);
        (self.live.len() - first, self.carried_bytes - from_bytes)
    }

    /// Position of the `nth` newest message in a chunk; the newest is the first.
    pub(crate) fn nth_newest_position(&self, nth: usize) -> Option<u64> {
        Some(self.live.get(self.live.len().checked_sub(nth)?)?.position)
    }

    /// Position of the oldest message in a chunk.
    #[cfg(test)]
    pub(crate) fn oldest_position(&self) -> Option<u64> {
        self.live.front().map(|message| message.position)
    }

    /// Sequence number of the oldest message that is kept for late joiners.
    fn kept_from(&self, view: &LogView<'_>) -> u64 {
        view.next_seq.saturating_sub(self.history)
    }

    /// Drops messages that are no longer needed: the log or every reader has passed them; with
    /// `beyond_depth`, also those beyond the depth that the publisher keeps.
    fn recycle(&mut self, view: &LogView<'_>, beyond_depth: bool) {
        let all_read = view.lowest_needed(false);
        let reliable_read = view.lowest_needed(true);
        let kept_from = self.kept_from(view);
        while let Some(&LiveMessage { position, seq, .. }) = self.live.front() {
            let passed = position < view.head;
            let read = position < all_read && seq < kept_from;
            // One more than the history, which stays complete while the next message is built.
            let kept = self.depth.max((self.history as usize).saturating_add(1));
            let beyond = beyond_depth && self.live.len() >= kept && position < reliable_read;
            if !(passed || read || beyond) {
                break;
            }
            self.release_oldest();
        }
    }

    fn release_oldest(&mut self) {
        let Some(LiveMessage { number, .. }) = self.live.pop_front() else { return };
        if let Some(chunk) = self.chunks.iter_mut().find(|c| c.number == number) {
            chunk.generation += 1;
            chunk.state = ChunkState::Idle;
            pins::invalidate(chunk.header(), chunk.generation);
            fail_point!("pool.ended");
        }
    }

    /// The smallest idle chunk that fits; of equal ones the most recently used, which is still in the cache.
    fn find_idle(&self, len: usize, view: &mut LogView<'_>) -> Option<usize> {
        let fits = |c: &Chunk| c.state == ChunkState::Idle && c.suits(len, self.default_len);
        let mut best: Option<usize> = None;
        for (at, chunk) in self.chunks.iter().enumerate().filter(|(_, c)| fits(c)) {
            let better = best.is_none_or(|b| {
                let b = &self.chunks[b];
                (chunk.capacity, u64::MAX - chunk.generation)
                    < (b.capacity, u64::MAX - b.generation)
            });
            if better && !view.pinned(chunk.number) {
                best = Some(at);
            }
        }
        best
    }

    fn grow(&mut self, len: usize) -> Result<u32, GrowthLimit> {
        self.grow_by(len.max(self.default_len)).or_else(|growth_limit| {
            match len < self.default_len {
                true => self.grow_by(len),
                false => Err(growth_limit),
            }
        })
    }

    fn grow_by(&mut self, len: usize) -> Result<u32, GrowthLimit> {
        let capacity = capacity_for(len);
        let size = size_for(len);
        if self.bytes + size > self.limit_bytes {
            return Err(GrowthLimit::Limit);
        }
        if self.chunks.len() >= MAX_CHUNKS_PER_CHANNEL {
            return Err(GrowthLimit::TooMany);
        }
        let number = self.next_number;
        let path = self.path_of(number);
        let file = files::create_sized(&path, size, self.mode).map_err(GrowthLimit::System)?;
        let map = Mapping::new(file.as_fd(), 0, size as usize, Access::Write, true)
            .inspect_err(|_| crate::os::folders::remove(&path))
            .map_err(GrowthLimit::System)?;
        let header: &ChunkHeader = map.get(0);
        fail_point!("pool.mapped");
        header.publisher.store(self.publisher, Ordering::Relaxed);
        fail_point!("pool.publisher");
        header.capacity.store(capacity as u64, Ordering::Relaxed);
        fail_point!("pool.capacity");
        header.generation.store(1, Ordering::Relaxed);
        fail_point!("pool.generation");
        header.magic.store(CHUNK_MAGIC, Ordering::Release);
        fail_point!("pool.magic");
        self.next_number += 1;
        self.bytes += size;
        self.chunks.push(Chunk { number, map, capacity, generation: 1, state: ChunkState::Loaned });
        Ok(number)
    }

    /// Whether the file of a chunk was truncated.
    pub(crate) fn is_truncated(&self, number: u32) -> bool {
        self.chunks.iter().any(|c| c.number == number && c.map.is_truncated())
    }

    /// Drops idle chunks whose files were truncated, even pinned ones: readers keep their mappings.
    pub(crate) fn drop_truncated(&mut self) {
        let truncated = |c: &Chunk| c.state == ChunkState::Idle && c.map.is_truncated();
        while let Some(at) = self.chunks.iter().position(truncated) {
            let chunk = self.chunks.swap_remove(at);
            self.retire(&chunk);
        }
    }

    fn drop_one_idle(&mut self, view: &mut LogView<'_>) -> bool {
        let idle = |c: &Chunk| c.state == ChunkState::Idle && !view.pinned(c.number);
        let Some(at) = self.chunks.iter().position(idle) else { return false };
        let chunk = self.chunks.swap_remove(at);
        self.retire(&chunk);
        true
    }

    fn retire(&mut self, chunk: &Chunk) {
        chunk.header().retired.store(1, Ordering::Release);
        fail_point!("pool.retired");
        crate::os::folders::remove(&self.path_of(chunk.number));
        fail_point!("pool.unlinked");
        self.bytes -= chunk.map.len() as u64;
    }

    /// The file of the next chunk.
    pub(crate) fn next_path(&self) -> PathBuf {
        self.path_of(self.next_number)
    }

    fn path_of(&self, number: u32) -> PathBuf {
        chunk_path(&self.prefix, number)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.fork_guard.is_from_parent() {
            return;
        }
        for chunk in std::mem::take(&mut self.chunks) {
            self.retire(&chunk);
        }
    }
}

/// A chunk's file: the publisher's own path, then `.` and the chunk's number.
pub(crate) fn chunk_path(publisher: &Path, number: u32) -> PathBuf {
    let mut path = publisher.as_os_str().to_owned();
    path.push(format!(".{number}"));
    path.into()
}

/// Bytes of memory that a message of `len` bytes uses.
pub(crate) fn size_for(len: usize) -> u64 {
    (capacity_for(len) + CHUNK_HEADER_LEN_BYTES) as u64
}

/// Rounds up so that messages of slowly changing size use the same chunks: four steps an octave.
fn capacity_for(len: usize) -> usize {
    let len = len.max(MIN_CHUNK_LEN_BYTES);
    let step = (len.next_power_of_two() / 8).max(PAGE_LEN_BYTES);
    len.next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_wastes_at_most_a_quarter() {
        for len in (0..4 << 20).step_by(997) {
            let capacity = capacity_for(len);
            assert!(capacity >= len && capacity.is_multiple_of(PAGE_LEN_BYTES));
            if len > MIN_CHUNK_LEN_BYTES {
                assert!(capacity - len <= len / 4 + PAGE_LEN_BYTES, "{len} -> {capacity}");
            }
        }
    }
}
