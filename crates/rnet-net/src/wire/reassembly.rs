//! Reassembles large messages of one channel, and documents of one kind.

use super::error::WireError;

/// The progress of a reassembly, one whole at a time. The caller stores the parts.
#[derive(Debug)]
pub struct ReassemblyProgress<K> {
    limit: usize,
    /// The whole in progress, its length, and how many bytes of it were received.
    under_way: Option<(K, u64, u64)>,
}

/// The position of a part in its whole.
#[derive(Debug, PartialEq, Eq)]
pub struct PartStatus<K> {
    /// Whether it is the first.
    pub begins: bool,
    /// Whether it is the last.
    pub ends: bool,
    /// The earlier incomplete whole, abandoned because a part of another arrived.
    pub abandoned: Option<K>,
}

impl<K: Copy + Eq> ReassemblyProgress<K> {
    /// For wholes of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, under_way: None }
    }

    /// Adds a part of `len` bytes. `key` identifies the whole: the sequence number of a message, the
    /// [`Document`](super::Document) of a part. A refused part changes nothing.
    ///
    /// # Errors
    /// If the whole would exceed the limit, or the part does not follow the previous one.
    pub fn add(
        &mut self,
        key: K,
        total: u64,
        offset: u64,
        len: usize,
    ) -> Result<PartStatus<K>, WireError> {
        if total > self.limit as u64 {
            return Err(WireError::LimitExceeded { len: total, limit: self.limit });
        }
        let (have, known) = match self.under_way {
            Some((under_way, known, have)) if under_way == key => (have, known),
            _ => (0, total),
        };
        let end = have.checked_add(len as u64).filter(|end| *end <= total);
        // An empty part of a non-empty whole would allow an endless sequence.
        let moves = len > 0 || total == 0;
        let Some(end) = end.filter(|_| offset == have && known == total && moves) else {
            return Err(WireError::OutOfOrder { len, offset, total, have: have as usize, known });
        };
        let abandoned = self.give_up().filter(|before| *before != key);
        self.under_way = Some((key, total, end)).filter(|_| end < total);
        Ok(PartStatus { begins: have == 0, ends: end == total, abandoned })
    }

    /// The announced length of the whole in progress.
    pub fn under_way_len_bytes(&self) -> Option<u64> {
        self.under_way.map(|(_, total, _)| total)
    }

    /// Abandons the whole in progress and returns its key.
    pub fn give_up(&mut self) -> Option<K> {
        self.under_way.take().map(|(key, ..)| key)
    }
}

/// The concatenated parts of a whole of `total` bytes. It grows with the received bytes, not with the
/// announced length.
#[derive(Debug, Default)]
pub struct PartBuffer(Vec<u8>);

impl PartBuffer {
    /// Adds a part, the first if it `begins`.
    pub fn add(&mut self, part: &[u8], total: u64, begins: bool) {
        let bytes = &mut self.0;
        if begins {
            bytes.clear();
            // A short whole does not keep the memory of a long one.
            if (bytes.capacity() as u64) / 2 > total {
                *bytes = Vec::new();
            }
        }
        // Doubles each time up to the length of the whole, so that the counted memory is the memory held.
        let (need, room) = (bytes.len() + part.len(), 2 * bytes.capacity());
        if need > bytes.capacity() {
            let room = room.clamp(need, need.max(usize::try_from(total).unwrap_or(need)));
            bytes.reserve_exact(room - bytes.len());
        }
        bytes.extend_from_slice(part);
    }

    /// The received bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Bytes of memory, which are kept for the next whole.
    pub fn capacity_bytes(&self) -> u64 {
        self.0.capacity() as u64
    }
}

/// Reassembles parts, one whole at a time.
#[derive(Debug)]
pub struct Reassembly<K> {
    progress: ReassemblyProgress<K>,
    parts: PartBuffer,
}

/// The result of adding a part.
#[derive(Debug, PartialEq, Eq)]
pub struct AddedPart<'a, K> {
    /// The whole, if this was its last part.
    pub whole: Option<&'a [u8]>,
    /// The earlier incomplete whole, abandoned because a part of another arrived.
    pub abandoned: Option<K>,
}

impl<K: Copy + Eq> Reassembly<K> {
    /// For wholes of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { progress: ReassemblyProgress::new(limit), parts: PartBuffer::default() }
    }

    /// Adds a part, as [`ReassemblyProgress::add`] does.
    ///
    /// # Errors
    /// The same.
    pub fn add(
        &mut self,
        key: K,
        total: u64,
        offset: u64,
        part: &[u8],
    ) -> Result<AddedPart<'_, K>, WireError> {
        let PartStatus { begins, ends, abandoned } =
            self.progress.add(key, total, offset, part.len())?;
        self.parts.add(part, total, begins);
        Ok(AddedPart { whole: ends.then_some(self.parts.bytes()), abandoned })
    }

    /// Abandons the whole in progress and returns its key.
    pub fn give_up(&mut self) -> Option<K> {
        self.progress.give_up()
    }
}
