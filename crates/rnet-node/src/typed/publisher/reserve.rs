//! Memory for what is sent, taken before it is needed.

use super::Publisher;
use crate::Message;

impl<T: Message + ?Sized> Publisher<T> {
    /// Has room for the encoded form of messages of so many bytes, which then take no memory when they are sent.
    #[doc(hidden)]
    pub fn reserve_encoded(&mut self, len_bytes: usize) {
        self.encoded.reserve(len_bytes);
    }
}
