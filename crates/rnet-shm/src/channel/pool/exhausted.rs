//! Why a pool has no room, and what would make some.

use rustix::io::Errno;

use super::{Chunk, ChunkState, LogView, Pool, size_for};

/// Why no chunk could be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoChunk {
    /// A reliable reader still needs the oldest messages.
    HeldByReader,
    /// There is no room, and no reader that reads on would make any.
    Exhausted(PoolExhausted),
}

/// A pool without room for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolExhausted {
    /// What it has run into.
    pub growth_limit: GrowthLimit,
    /// Bytes that the pool would need for this message and those that late joiners are to get, if
    /// these are what takes the room.
    pub for_history_bytes: Option<u64>,
}

/// What keeps a pool from growing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowthLimit {
    /// Its limit in bytes.
    Limit,
    /// There are as many chunks as there may be.
    TooMany,
    /// The system refused.
    System(Errno),
}

/// Messages below both may be forgotten.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecycleLimit {
    pub(super) position: u64,
    pub(super) seq: u64,
}

impl Pool {
    /// Whether room for a message of `len` bytes would come of giving back what is idle and
    /// forgetting the messages below `until`, as far as nobody pins them.
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
            // What is short is not memory: only a chunk that can be used as it is helps.
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

    /// Who stands in the way of a message that forgetting what may be forgotten does not help: a
    /// reader, if it helps once that has read; late joiners, if nothing else is left to forget.
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

    /// What late joiners are to get stands in the way.
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
        // Of the same size as this one; or, if those before were larger, what they take.
        let promised = size.saturating_mul(self.history.saturating_add(1)).max(kept + size);
        let lent = bytes(&mut self.chunks.iter().filter(|c| match c.state {
            ChunkState::Loaned => true,
            ChunkState::Idle => view.pinned(c.number),
            ChunkState::Live { .. } => false,
        }));
        let for_history_bytes = Some(promised.saturating_add(lent));
        NoChunk::Exhausted(PoolExhausted { growth_limit, for_history_bytes })
    }
}
