//! Memory that a publisher lends to its user, who fills it and sends it or gives it back.

/// Memory lent to the sender.
#[derive(Debug)]
pub struct Loaned {
    pub(super) len: usize,
    pub(super) place: Place,
}

impl Loaned {
    /// Bytes lent.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no byte is lent.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sends only the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

#[derive(Debug)]
pub(super) enum Place {
    /// Small: built aside and copied into the log, which costs less than a chunk.
    Scratch(Vec<u8>),
    /// Large: the chunk that readers will read.
    Chunk(u32),
}
