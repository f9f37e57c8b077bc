//! What can be sent: raw bytes, plain types, protobuf messages.

use prost::bytes::BufMut;
use rnet_core::{Plain, Result};
use rnet_shm::plain;

use crate::types::MessageType;

/// Something that can be sent and received.
///
/// Implemented for `[u8]` and every [`Plain`] type, whose memory is what is sent and which are read
/// where they are; for the protobuf messages that `rnet-build` makes code of, by
/// `rnet::protobuf_message!`; and for `rnet::Dynamic`, protobuf messages without their code.
pub trait Message: MessageCodec {
    /// The type, as it is told to the other side.
    ///
    /// # Errors
    /// `BadValue` if only the options of an endpoint can say it.
    fn message_type() -> Result<MessageType> {
        Self::static_type()
    }
}

impl<T: MessageCodec + ?Sized> Message for T {}

/// How a message is sent and received. Apart from [`Message`], so that a message shows no functions
/// of its own that users do not call, and whose names could be those of its fields or of prost.
pub trait MessageCodec: Send + 'static {
    /// What a receiver keeps from one message to the next: a decoded message, whose memory is used
    /// again. Nothing for what is read in place.
    type DecodeBuffer: Send + Unpin + 'static;

    /// Messages of at least this length, in bytes, are read where they are and need no decoding; with
    /// `None` all are decoded.
    const IN_PLACE_MIN_LEN: Option<usize> = None;

    /// Whether a message that is kept needs its bytes, and with them the memory of its publisher.
    const NEEDS_BYTES: bool = Self::IN_PLACE_MIN_LEN.is_some();

    /// Whether [`MessageCodec::decode`] reads each byte at most once, and then the message may be decoded in the memory of
    /// its publisher, who can change it meanwhile. Else a large message is copied first.
    const READS_EACH_BYTE_ONCE: bool = false;

    /// [`Message::message_type`].
    ///
    /// # Errors
    /// As there.
    fn static_type() -> Result<MessageType>;

    /// The type of this message, where messages of one Rust type may be of several.
    ///
    /// # Errors
    /// As [`MessageCodec::static_type`].
    fn type_of(&self) -> Result<MessageType> {
        Self::static_type()
    }

    /// Whether the options of an endpoint may say that its messages are of this type, without
    /// [`MessageCodec::static_type`] saying the same.
    fn accepts(_given: &MessageType) -> bool {
        false
    }

    /// What a receiver of this type of messages begins with.
    fn new_buffer(message_type: &MessageType) -> Self::DecodeBuffer;

    /// The message itself, if its memory is what is sent.
    fn as_bytes(&self) -> Option<&[u8]>;

    /// Called before a message is encoded that a publisher of this type is to send.
    ///
    /// # Errors
    /// In words, why it does not send it.
    fn check(&self, _endpoint: &MessageType) -> std::result::Result<(), String> {
        Ok(())
    }

    /// How many bytes [`MessageCodec::encode`] appends.
    fn encoded_len(&self) -> usize;

    /// Appends the message to `out`, where [`MessageCodec::as_bytes`] is `None`.
    fn encode(&self, out: &mut impl BufMut);

    /// Called for each received message, which is 8-byte aligned, before [`MessageCodec::view`]; not for those
    /// that [`MessageCodec::IN_PLACE_MIN_LEN`] excepts.
    ///
    /// # Errors
    /// In words, why the bytes are no message of this type. It is then counted as malformed.
    fn decode(bytes: &[u8], buffer: &mut Self::DecodeBuffer) -> std::result::Result<(), String>;

    /// The message, of bytes that were decoded.
    fn view<'a>(bytes: &'a [u8], buffer: &'a Self::DecodeBuffer) -> &'a Self;

    /// What [`MessageCodec::decode`] has left, for the user to keep; another takes its place.
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

/// The copy of a message that was sent by a publisher whose type is shorter: it ends in zeros.
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
            .unwrap_or_else(|| buffer.0.as_deref().expect("it was lengthened when it was received"))
    }
    fn take_buffer(buffer: &mut ZeroExtended<T>) -> ZeroExtended<T> {
        ZeroExtended(buffer.0.take())
    }
}
