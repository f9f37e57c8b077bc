//! Reserves memory for sent messages in advance.

use super::Publisher;
use crate::Message;

impl<T: Message + ?Sized> Publisher<T> {
    /// Reserves memory to encode messages of `len_bytes`, so that sending them allocates nothing.
    #[doc(hidden)]
    pub fn reserve_encoded(&mut self, len_bytes: usize) {
        self.encoded.reserve(len_bytes);
    }
}
