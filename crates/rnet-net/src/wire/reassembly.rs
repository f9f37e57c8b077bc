//! Parts to wholes: large messages of one channel, documents of one kind.

use super::error::WireError;

/// Puts together what comes in parts, one whole at a time. It grows with what has arrived, not with what a
/// first part announces.
#[derive(Debug)]
pub struct Reassembly<K> {
    limit: usize,
    bytes: Vec<u8>,
    /// What is being put together, and its length.
    under_way: Option<(K, u64)>,
}

/// What a part has brought.
#[derive(Debug, PartialEq, Eq)]
pub struct Added<'a, K> {
    /// The whole, if this was its last part.
    pub whole: Option<&'a [u8]>,
    /// What had begun before and is given up, because a part of another came.
    pub given_up: Option<K>,
}

impl<K: Copy + Eq> Reassembly<K> {
    /// For wholes of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, bytes: Vec::new(), under_way: None }
    }

    /// Adds a part. `key` says of which whole: the sequence number of a message, the [`Document`](super::Document)
    /// of a part. What is refused changes nothing.
    ///
    /// # Errors
    /// If the whole would exceed the limit, or the part does not follow the one before it.
    pub fn add(
        &mut self,
        key: K,
        total: u64,
        offset: u64,
        part: &[u8],
    ) -> Result<Added<'_, K>, WireError> {
        if total > self.limit as u64 {
            return Err(WireError::Limit { len: total, limit: self.limit });
        }
        let (have, known) = match self.under_way {
            Some((under_way, known)) if under_way == key => (self.bytes.len(), known),
            _ => (0, total),
        };
        let fits = (have as u64).checked_add(part.len() as u64).is_some_and(|end| end <= total);
        // An empty part of what is not empty would keep its sender from ever ending.
        let moves = !part.is_empty() || total == 0;
        if offset != have as u64 || known != total || !fits || !moves {
            return Err(WireError::Part { len: part.len(), offset, total, have, known });
        }
        let given_up = self.under_way.take().map(|(key, _)| key).filter(|before| *before != key);
        if have == 0 {
            self.bytes.clear();
            // A short one does not hold on to the room of a long one.
            if (self.bytes.capacity() as u64) / 2 > total {
                self.bytes = Vec::new();
            }
        }
        // Twice as much each time, but no more than the whole takes: what is counted is what is held.
        let (need, room) = (have + part.len(), 2 * self.bytes.capacity());
        if need > self.bytes.capacity() {
            let room = room.clamp(need, need.max(usize::try_from(total).unwrap_or(need)));
            self.bytes.reserve_exact(room - have);
        }
        self.bytes.extend_from_slice(part);
        if (self.bytes.len() as u64) < total {
            self.under_way = Some((key, total));
            return Ok(Added { whole: None, given_up });
        }
        Ok(Added { whole: Some(&self.bytes), given_up })
    }

    /// Length of what is under way, as it was announced, or of the room for it, which is kept for the next, if that is
    /// more.
    pub fn held_len_bytes(&self) -> u64 {
        self.under_way.map_or(0, |(_, total)| total).max(self.bytes.capacity() as u64)
    }

    /// Gives back what is kept for the next, unless something is under way.
    pub fn give_back(&mut self) {
        if self.under_way.is_none() {
            self.bytes = Vec::new();
        }
    }

    /// Gives up what is under way, and says what that was.
    pub fn give_up(&mut self) -> Option<K> {
        self.under_way.take().map(|(key, _)| key)
    }
}
