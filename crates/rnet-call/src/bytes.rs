//! A received message of a call, copied out of the memory of its publisher.

use std::fmt;
use std::ops::Deref;

pub use rnet_node::aligned_bytes::AlignedBytes as Bytes;

use rnet_node::{Message, MessageType};

/// A message of a call: a request at the server, a reply at the caller.
pub struct Received<T: Message + ?Sized> {
    bytes: Bytes,
    held: T::DecodeBuffer,
}

impl<T: Message + ?Sized> Received<T> {
    /// # Errors
    /// If the bytes are not a message of this type, the error says why.
    pub(crate) fn decode(
        bytes: Bytes,
        ty: &MessageType,
    ) -> std::result::Result<Received<T>, String> {
        let mut held = T::new_buffer(ty);
        if T::IN_PLACE_MIN_LEN.is_none_or(|len| bytes.as_slice().len() < len) {
            T::decode(bytes.as_slice(), &mut held)?;
        }
        Ok(Received { bytes, held })
    }

    /// The decoded message; for protobuf messages, as [`rnet_node::Sample::into_message`].
    pub fn into_message(mut self) -> T
    where
        T: Sized,
        T::DecodeBuffer: Into<Option<T>>,
    {
        T::take_buffer(&mut self.held).into().expect("it was made of what was decoded")
    }
}

impl<T: Message + ?Sized> Deref for Received<T> {
    type Target = T;

    fn deref(&self) -> &T {
        T::view(self.bytes.as_slice(), &self.held)
    }
}

impl<T: Message + ?Sized + fmt::Debug> fmt::Debug for Received<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}
