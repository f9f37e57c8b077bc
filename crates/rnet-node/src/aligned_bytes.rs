//! Messages in memory of this process alone, where no publisher can change them.

use rnet_shm::plain;

use crate::{Message, MessageType};

/// The bytes of a message, aligned as those of a sample are.
///
/// A copy: whoever keeps it holds no memory of a publisher's, and a publisher that breaks the protocol cannot change
/// it between the check of its content and the use of it.
#[derive(Clone, Debug, Default)]
pub struct AlignedBytes {
    words: Vec<u64>,
    len: usize,
}

impl AlignedBytes {
    pub fn copy_of(bytes: &[u8]) -> AlignedBytes {
        let mut words = Vec::with_capacity(bytes.len().div_ceil(8));
        fill(&mut words, bytes);
        AlignedBytes { words, len: bytes.len() }
    }

    /// Becomes a copy of these, in the same memory if that is long enough.
    pub fn refill(&mut self, bytes: &[u8]) {
        self.words.clear();
        fill(&mut self.words, bytes);
        self.len = bytes.len();
    }

    /// As a message of this type is sent.
    ///
    /// # Errors
    /// In words, why it is not sent.
    pub fn encode<T: Message + ?Sized>(
        message: &T,
        ty: &MessageType,
        encoded: &mut Vec<u8>,
    ) -> std::result::Result<(), String> {
        let own = message.as_bytes();
        AlignedBytes::of(message, ty, encoded)?;
        own.into_iter().for_each(|bytes| encoded.extend_from_slice(bytes));
        Ok(())
    }

    /// The bytes as which a message of this type is sent: its own, or those that it is encoded to.
    ///
    /// # Errors
    /// As [`AlignedBytes::encode`].
    pub fn of<'a, T: Message + ?Sized>(
        message: &'a T,
        ty: &MessageType,
        encoded: &'a mut Vec<u8>,
    ) -> std::result::Result<&'a [u8], String> {
        encoded.clear();
        message.check(ty)?;
        let bytes = match message.as_bytes() {
            Some(bytes) => bytes,
            None => {
                message.encode(encoded);
                encoded
            }
        };
        match ty.fixed_len() {
            Some(fixed) if fixed != bytes.len() => {
                Err(format!("it is {} bytes long, but its type is {fixed}", bytes.len()))
            }
            _ => Ok(bytes),
        }
    }

    pub fn as_slice(&self) -> &[u8] {
        &plain::bytes_of_fields(&self.words)[..self.len]
    }
}

fn fill(words: &mut Vec<u64>, bytes: &[u8]) {
    let (chunks, rest) = bytes.as_chunks::<8>();
    words.extend(chunks.iter().map(|chunk| u64::from_ne_bytes(*chunk)));
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        words.push(u64::from_ne_bytes(last));
    }
}
