//! Memory for messages, for the crates above the engine.

use super::Publisher;
use crate::Message;
use crate::internal::EnginePublisher;

impl<T: Message + ?Sized> EnginePublisher for Publisher<T> {
    fn reserve_encoded(&mut self, len_bytes: usize) {
        self.encoded.reserve(len_bytes);
    }
}
