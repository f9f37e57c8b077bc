//! What can be sent: raw bytes, plain types, protobuf messages.

use prost::bytes::BufMut;
use rnet_core::{Plain, Result};
use rnet_shm::plain;

use crate::types::MessageType;

/// A type that can be sent and received.
///
/// Implemented for `[u8]` and every [`Plain`] type, which are sent and read as they are in memory; for the
/// protobuf messages that `rnet-build` generates, by `rnet::protobuf_message!`; and for `rnet::Dynamic`,
/// protobuf messages without generated code.
pub trait Message: MessageCodec {
    /// The type, as declared to peers.
    ///
    /// # Errors
    /// `BadValue` if only the options of an endpoint can specify it.
    fn message_type() -> Result<MessageType> {
        Self::static_type()
    }
}

impl<T: MessageCodec + ?Sized> Message for T {}

/// How a message is sent and received. Separate from [`Message`], so that a message shows no functions that
/// users do not call, and whose names could be those of its fields or of prost.
pub trait MessageCodec: Send + 'static {
    /// What a receiver keeps from one message to the next: a decoded message, whose memory is reused. Empty
    /// for messages that are read in place.
    type DecodeBuffer: Send + Unpin + 'static;

    /// Messages of at least this length, in bytes, are read in place without decoding; with `None` all are
    /// decoded.
    const IN_PLACE_MIN_LEN: Option<usize> = None;

    /// Whether a kept message needs its bytes, and so the memory of its publisher.
    const NEEDS_BYTES: bool = Self::IN_PLACE_MIN_LEN.is_some();

    /// Whether [`MessageCodec::decode`] reads each byte at most once. If so, the message may be decoded in
    /// the memory of its publisher, which can change it meanwhile. Otherwise a large message is copied first.
    const READS_EACH_BYTE_ONCE: bool = false;

    /// [`Message::message_type`].
    ///
    /// # Errors
    /// As [`Message::message_type`].
    fn static_type() -> Result<MessageType>;

    /// The type of this message, if messages of one Rust type may have several types.
    ///
    /// # Errors
    /// As [`MessageCodec::static_type`].
    fn type_of(&self) -> Result<MessageType> {
        Self::static_type()
    }

    /// Whether the options of an endpoint may specify this type, even if [`MessageCodec::static_type`] does
    /// not return it.
    fn accepts(_given: &MessageType) -> bool {
        false
    }

    /// The initial buffer of a receiver.
    fn new_buffer(message_type: &MessageType) -> Self::DecodeBuffer;

    /// The bytes of the message, if it is sent as it is in memory.
    fn as_bytes(&self) -> Option<&[u8]>;

    /// Called before a publisher of this type encodes a message.
    ///
    /// # Errors
    /// The reason, as text, why the message cannot be sent.
    fn check(&self, _endpoint: &MessageType) -> std::result::Result<(), String> {
        Ok(())
    }

    /// The number of bytes that [`MessageCodec::encode`] appends.
    fn encoded_len(&self) -> usize;

    /// Appends the message to `out` if [`MessageCodec::as_bytes`] is `None`.
    fn encode(&self, out: &mut impl BufMut);

    /// Called for each received message, which is 8-byte aligned, before [`MessageCodec::view`]; not for
    /// messages of at least [`MessageCodec::IN_PLACE_MIN_LEN`] bytes.
    ///
    /// # Errors
    /// The reason, as text, why the bytes are not a message of this type. The message is then counted as
    /// malformed.
    fn decode(bytes: &[u8], buffer: &mut Self::DecodeBuffer) -> std::result::Result<(), String>;

    /// The message in bytes that were decoded.
    fn view<'a>(bytes: &'a [u8], buffer: &'a Self::DecodeBuffer) -> &'a Self;

    /// Takes what [`MessageCodec::decode`] has left, for the user to keep; a new buffer replaces it.
    fn take_buffer(buffer: &mut Self::DecodeBuffer) -> Self::DecodeBuffer;
}

impl MessageCodec for [u8] {
    type DecodeBuffer = ();
    const IN_PLACE_MIN_LEN: Option<usize> = Some(0);

    fn static_type() -> Result<MessageType> {
        Ok(MessageType::Raw)
    }
    fn accepts(_: &MessageType) -> bool {
        true
    }
    fn new_buffer(_: &MessageType) {}
    #[inline]
    fn as_bytes(&self) -> Option<&[u8]> {
        Some(self)
    }
    fn encoded_len(&self) -> usize {
        size_of_val(self)
    }
    fn encode(&self, _: &mut impl BufMut) {}
    fn decode(_: &[u8], _: &mut ()) -> std::result::Result<(), String> {
        Ok(())
    }
    #[inline]
    fn view<'a>(bytes: &'a [u8], _: &'a ()) -> &'a Self {
        bytes
    }
    fn take_buffer(_: &mut ()) {}
}

/// A copy of a message from a publisher with a shorter type, extended with zeros.
#[derive(Debug)]
pub struct ZeroExtended<T>(Option<Box<T>>);

impl<T: Plain> ZeroExtended<T> {
    #[cold]
    fn take(&mut self, bytes: &[u8]) {
        let message = self.0.get_or_insert_with(plain::zeroed_box);
        let memory = plain::bytes_of_mut(&mut **message);
        let (sent, missing) = memory.split_at_mut(bytes.len());
        sent.copy_from_slice(bytes);
        missing.fill(0);
    }
}

impl<T: Plain> MessageCodec for T {
    type DecodeBuffer = ZeroExtended<T>;
    const IN_PLACE_MIN_LEN: Option<usize> = Some(size_of::<T>());
    const READS_EACH_BYTE_ONCE: bool = true;

    fn static_type() -> Result<MessageType> {
        Ok(MessageType::Plain(T::plain_type()))
    }
    fn new_buffer(_: &MessageType) -> ZeroExtended<T> {
        ZeroExtended(None)
    }
    #[inline]
    fn as_bytes(&self) -> Option<&[u8]> {
        Some(plain::bytes_of(self))
    }
    fn encoded_len(&self) -> usize {
        size_of_val(self)
    }
    fn encode(&self, _: &mut impl BufMut) {}
    fn decode(bytes: &[u8], buffer: &mut ZeroExtended<T>) -> std::result::Result<(), String> {
        buffer.take(bytes);
        Ok(())
    }
    #[inline]
    fn view<'a>(bytes: &'a [u8], buffer: &'a ZeroExtended<T>) -> &'a Self {
        plain::message_in(bytes)
            .unwrap_or_else(|| buffer.0.as_deref().expect("decode extended this short message"))
    }
    fn take_buffer(buffer: &mut ZeroExtended<T>) -> ZeroExtended<T> {
        ZeroExtended(buffer.0.take())
    }
}
