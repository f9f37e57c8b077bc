//! Messages copied into private memory of this process, where no publisher can change them.

use rnet_shm::plain;

use crate::{Message, MessageType};

/// The bytes of a message, with the same alignment as the bytes of a sample.
///
/// A copy: it does not borrow memory of a publisher, so a publisher that breaks the protocol cannot change it
/// between the check of its content and its use.
#[derive(Clone, Debug, Default)]
pub struct AlignedBytes {
    words: Vec<u64>,
    len: usize,
}

impl AlignedBytes {
    /// Copies `bytes` into new memory.
    pub fn copy_of(bytes: &[u8]) -> AlignedBytes {
        let mut words = Vec::with_capacity(bytes.len().div_ceil(8));
        fill(&mut words, bytes);
        AlignedBytes { words, len: bytes.len() }
    }

    /// Replaces the content with a copy of `bytes`. Reuses the memory if it is long enough.
    pub fn refill(&mut self, bytes: &[u8]) {
        self.words.clear();
        fill(&mut self.words, bytes);
        self.len = bytes.len();
    }

    /// Encodes a message of type `T`.
    ///
    /// # Errors
    /// The reason, as text, why the message cannot be sent.
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

    /// The encoding of `message`: its own bytes if it has them, otherwise the bytes encoded into `encoded`.
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

    /// The bytes of the message, aligned to 8 bytes.
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
