//! Why a pool is exhausted, and what would free memory.

use rustix::io::Errno;

use super::{Chunk, ChunkState, LogView, Pool, size_for};

/// Why no chunk is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoChunk {
    /// A reliable reader still needs the oldest messages.
    HeldByReader,
    /// Memory is short, and no progress of a reader would free any.
    Exhausted(PoolExhausted),
}

/// A pool without memory for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolExhausted {
    /// The limit that was reached.
    pub growth_limit: GrowthLimit,
    /// Bytes that the pool would need for this message and those kept for late joiners, if the latter use the
    /// memory.
    pub for_history_bytes: Option<u64>,
}

/// What prevents a pool from growing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowthLimit {
    /// The pool's limit in bytes.
    Limit,
    /// The maximum number of chunks.
    TooMany,
    /// An error of the system.
    System(Errno),
}

/// Messages below both positions may be dropped.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecycleLimit {
    pub(super) position: u64,
    pub(super) seq: u64,
}

impl Pool {
    /// Whether freeing idle chunks and dropping the messages below `until`, except pinned ones, would make
    /// space for a message of `len` bytes.
    pub(super) fn recycling_helps(
        &self,
        len: usize,
        growth_limit: GrowthLimit,
        view: &mut LogView<'_>,
        until: RecycleLimit,
    ) -> bool {
        let size = size_for(len);
        let enough = |freed: u64| match growth_limit {
            GrowthLimit::Limit | GrowthLimit::TooMany => {
                self.bytes - freed + size <= self.limit_bytes
            }
            GrowthLimit::System(Errno::NOSPC | Errno::DQUOT | Errno::NOMEM) => freed >= size,
            // The exhausted resource is not memory: only an existing chunk helps.
            GrowthLimit::System(_) => false,
        };
        let mut freed = 0;
        let idle = self.chunks.iter().filter(|c| c.state == ChunkState::Idle);
        let oldest_first =
            self.live.iter().filter_map(|m| self.chunks.iter().find(|c| c.number == m.number));
        for chunk in idle.chain(oldest_first) {
            let held = matches!(chunk.state, ChunkState::Live { position, seq }
                if position >= until.position || seq >= until.seq);
            if held || view.pinned(chunk.number) {
                continue;
            }
            freed += chunk.map.len() as u64;
            if chunk.suits(len, self.default_len) || enough(freed) {
                return true;
            }
        }
        false
    }

    /// Finds what blocks a message for which dropping messages does not free enough memory: a reader, if its
    /// progress would suffice; late joiners, if no other messages are left to drop.
    #[cold]
    pub(super) fn find_blocker(
        &self,
        len: usize,
        growth_limit: GrowthLimit,
        view: &mut LogView<'_>,
    ) -> NoChunk {
        let kept_from = self.kept_from(view);
        let mut helps = |seq| {
            let until = RecycleLimit { position: u64::MAX, seq };
            self.recycling_helps(len, growth_limit, view, until)
        };
        if helps(kept_from) {
            NoChunk::HeldByReader
        } else if helps(u64::MAX) {
            self.blocked_by_history(len, growth_limit, view)
        } else {
            NoChunk::Exhausted(PoolExhausted { growth_limit, for_history_bytes: None })
        }
    }

    /// Messages kept for late joiners block the message.
    #[cold]
    pub(super) fn blocked_by_history(
        &self,
        len: usize,
        growth_limit: GrowthLimit,
        view: &mut LogView<'_>,
    ) -> NoChunk {
        let size = size_for(len);
        let bytes = |chunks: &mut dyn Iterator<Item = &Chunk>| {
            chunks.map(|chunk| chunk.map.len() as u64).sum::<u64>()
        };
        let kept_from = self.kept_from(view);
        let is_kept =
            |c: &&Chunk| matches!(c.state, ChunkState::Live { seq, .. } if seq >= kept_from);
        let kept = bytes(&mut self.chunks.iter().filter(is_kept));
        // Kept messages count with the size of this one, or with their actual size if that is larger.
        let promised = size.saturating_mul(self.history.saturating_add(1)).max(kept + size);
        let loaned = bytes(&mut self.chunks.iter().filter(|c| match c.state {
            ChunkState::Loaned => true,
            ChunkState::Idle => view.pinned(c.number),
            ChunkState::Live { .. } => false,
        }));
        let for_history_bytes = Some(promised.saturating_add(loaned));
        NoChunk::Exhausted(PoolExhausted { growth_limit, for_history_bytes })
    }
}
