//! Why a pool has no room, and what would make some.

use rustix::io::Errno;

use super::{Chunk, LogView, Pool, Use, size_for};

/// Why no chunk could be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoChunk {
    /// A reliable reader still needs the oldest messages.
    HeldByReader,
    /// There is no room, and no reader that reads on would make any.
    Short(Short),
}

/// A pool without room for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// What it has run into.
    pub wall: Wall,
    /// Bytes that the pool would need for this message and those that late joiners are to get, if
    /// these are what takes the room.
    pub for_history_bytes: Option<u64>,
}

/// What keeps a pool from growing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wall {
    /// Its limit in bytes.
    Limit,
    /// There are as many chunks as there may be.
    TooMany,
    /// The system refused.
    System(Errno),
}

/// Messages below both may be forgotten.
#[derive(Clone, Copy, Debug)]
pub(super) struct Until {
    pub(super) position: u64,
    pub(super) seq: u64,
}

impl Pool {
    /// Whether room for a message of `len` bytes would come of giving back what is idle and
    /// forgetting the messages below `until`, as far as nobody pins them.
    pub(super) fn forgetting_helps(
        &self,
        len: usize,
        wall: Wall,
        view: &mut LogView<'_>,
        until: Until,
    ) -> bool {
        let size = size_for(len);
        let enough = |freed: u64| match wall {
            Wall::Limit | Wall::TooMany => self.bytes - freed + size <= self.limit_bytes,
            Wall::System(Errno::NOSPC | Errno::DQUOT | Errno::NOMEM) => freed >= size,
            // What is short is not memory: only a chunk that can be used as it is helps.
            Wall::System(_) => false,
        };
        let mut freed = 0;
        let idle = self.chunks.iter().filter(|c| c.used == Use::Idle);
        let oldest_first =
            self.live.iter().filter_map(|m| self.chunks.iter().find(|c| c.number == m.number));
        for chunk in idle.chain(oldest_first) {
            let held = matches!(chunk.used, Use::Live { position, seq }
                if position >= until.position || seq >= until.seq);
            if held || view.pinned(chunk.number) {
                continue;
            }
            freed += chunk.map.len() as u64;
            if chunk.suits(len, self.usual_len) || enough(freed) {
                return true;
            }
        }
        false
    }

    /// Who stands in the way of a message that forgetting what may be forgotten does not help: a
    /// reader, if it helps once that has read; late joiners, if nothing else is left to forget.
    #[cold]
    pub(super) fn what_holds(&self, len: usize, wall: Wall, view: &mut LogView<'_>) -> NoChunk {
        let kept_from = self.kept_from(view);
        let mut helps = |seq| {
            let until = Until { position: u64::MAX, seq };
            self.forgetting_helps(len, wall, view, until)
        };
        if helps(kept_from) {
            NoChunk::HeldByReader
        } else if helps(u64::MAX) {
            self.kept_back(len, wall, view)
        } else {
            NoChunk::Short(Short { wall, for_history_bytes: None })
        }
    }

    /// What late joiners are to get stands in the way.
    #[cold]
    pub(super) fn kept_back(&self, len: usize, wall: Wall, view: &mut LogView<'_>) -> NoChunk {
        let size = size_for(len);
        let bytes = |chunks: &mut dyn Iterator<Item = &Chunk>| {
            chunks.map(|chunk| chunk.map.len() as u64).sum::<u64>()
        };
        let kept_from = self.kept_from(view);
        let is_kept = |c: &&Chunk| matches!(c.used, Use::Live { seq, .. } if seq >= kept_from);
        let kept = bytes(&mut self.chunks.iter().filter(is_kept));
        // Of the same size as this one; or, if those before were larger, what they take.
        let promised = size.saturating_mul(self.history.saturating_add(1)).max(kept + size);
        let lent = bytes(&mut self.chunks.iter().filter(|c| match c.used {
            Use::Loaned => true,
            Use::Idle => view.pinned(c.number),
            Use::Live { .. } => false,
        }));
        let for_history_bytes = Some(promised.saturating_add(lent));
        NoChunk::Short(Short { wall, for_history_bytes })
    }
}
