//! Messages as values: bytes with the description of their type.

use rnet_core::{Error, Result};

use rnet_node::aligned_bytes::AlignedBytes;
use rnet_node::compatibility::{PeerType, check_types};
use rnet_node::{Message, MessageType};

/// A message stored in the state, with its type.
#[derive(Clone, Debug, PartialEq)]
pub struct StateMessage(Box<MessageParts>);

/// Boxed, so that lists of numbers stay small.
#[derive(Clone, Debug)]
struct MessageParts {
    message_type: MessageType,
    bytes: Vec<u8>,
    /// The number of its type in the state, if it was read from there.
    type_id: Option<u64>,
}

impl PartialEq for MessageParts {
    fn eq(&self, other: &MessageParts) -> bool {
        self.message_type == other.message_type && self.bytes == other.bytes
    }
}

impl StateMessage {
    /// Creates a message from its type and its encoded bytes.
    ///
    /// # Errors
    /// `BadValue` if the type is raw bytes (use [`crate::Value::Bytes`]), or the bytes cannot be a message of
    /// the type.
    pub fn new(message_type: MessageType, bytes: Vec<u8>) -> Result<StateMessage> {
        check_bytes(&message_type, &bytes)
            .map_err(|why| Error::bad_value(message_type.desc().to_string(), why))?;
        Ok(StateMessage(Box::new(MessageParts { message_type, bytes, type_id: None })))
    }

    /// Creates a message of a Rust type.
    ///
    /// # Errors
    /// `BadValue` if its type is unknown.
    pub fn of<M: Message>(message: &M) -> Result<StateMessage> {
        let message_type = message.type_of()?;
        let bytes = match message.as_bytes() {
            Some(bytes) => bytes.to_vec(),
            None => {
                let mut bytes = Vec::with_capacity(message.encoded_len());
                message.encode(&mut bytes);
                bytes
            }
        };
        StateMessage::new(message_type, bytes)
    }

    /// Its type.
    pub fn message_type(&self) -> &MessageType {
        &self.0.message_type
    }

    /// The number of its type in the state, if it was read from there: a cheap key for per-type data of a
    /// binding.
    #[doc(hidden)]
    pub fn type_id(&self) -> Option<u64> {
        self.0.type_id
    }

    /// Full name of its type.
    pub fn type_name(&self) -> &str {
        match &self.0.message_type {
            MessageType::Raw => "bytes",
            MessageType::Plain(plain) => &plain.name,
            MessageType::Protobuf(schema) => schema.name(),
        }
    }

    /// Its encoded bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Decodes the message as `M`: its own type, or one that is compatible by the rules of topics
    /// (docs/design/types.md).
    ///
    /// # Errors
    /// `BadValue` with the incompatibility of the types, or the fault in the bytes.
    pub fn decode<M: Message + Clone>(&self) -> Result<M> {
        let holds = || self.0.message_type.desc().to_string();
        self.decode_or(|why| Error::bad_value(holds(), why))
    }

    /// As [`StateMessage::decode`], for the value of a key.
    pub(super) fn decode_key<M: Message + Clone>(&self, key: &str) -> Result<M> {
        self.check_reader(key, &self.reader_of::<M>()?)?;
        self.decode_or(|why| Error::bad_value(key, why))
    }

    /// Checks that a reader of this type understands the message, by the rules of topics; for the value of a
    /// key. For bindings, whose readers have no Rust type.
    ///
    /// # Errors
    /// `StateType`.
    #[doc(hidden)]
    pub fn check_reader(&self, key: &str, reader: &MessageType) -> Result<()> {
        check_compatible(&self.0.message_type, reader).map_err(|why| Error::StateType {
            key: key.to_owned(),
            holds: self.0.message_type.desc().to_string(),
            given: format!("{} ({why})", reader.desc()),
        })
    }

    fn decode_or<M: Message + Clone>(&self, bad: impl Fn(String) -> Error) -> Result<M> {
        let reader = self.reader_of::<M>()?;
        check_compatible(&self.0.message_type, &reader).map_err(&bad)?;
        let mut held = M::new_buffer(&reader);
        // Plain types are read in place.
        let aligned = AlignedBytes::copy_of(&self.0.bytes);
        let bytes = aligned.as_slice();
        if M::IN_PLACE_MIN_LEN.is_none_or(|from| bytes.len() < from) {
            M::decode(bytes, &mut held).map_err(bad)?;
        }
        Ok(M::view(bytes, &held).clone())
    }

    fn reader_of<M: Message>(&self) -> Result<MessageType> {
        if M::accepts(&self.0.message_type) {
            Ok(self.0.message_type.clone())
        } else {
            M::message_type()
        }
    }

    pub(super) fn with_type_id(
        type_id: u64,
        message_type: MessageType,
        bytes: Vec<u8>,
    ) -> StateMessage {
        StateMessage(Box::new(MessageParts { message_type, bytes, type_id: Some(type_id) }))
    }
}

/// The name of a message type.
pub(super) fn type_name_of<M: Message>() -> String {
    M::message_type().map_or_else(|_| "a message".to_owned(), |known| known.desc().to_string())
}

/// Whether these bytes may be a message of the type; does not decode protobuf.
pub(super) fn check_bytes(
    message_type: &MessageType,
    bytes: &[u8],
) -> std::result::Result<(), String> {
    match message_type {
        MessageType::Raw => Err("raw bytes are not a message; store them as bytes".to_owned()),
        MessageType::Plain(plain) if plain.tail && bytes.len() >= plain.size => Ok(()),
        MessageType::Plain(plain) if !plain.tail && bytes.len() == plain.size => Ok(()),
        MessageType::Plain(_) => {
            Err(format!("{} bytes are not a message of this type", bytes.len()))
        }
        MessageType::Protobuf(_) => Ok(()),
    }
}

/// Checks that a reader of one type understands the values of a writer of another type; the error states the
/// first difference.
pub(super) fn check_compatible(
    writer: &MessageType,
    reader: &MessageType,
) -> std::result::Result<(), String> {
    if writer == reader {
        return Ok(());
    }
    let peer = |message_type: &MessageType| PeerType::Type(message_type.schema().cloned());
    check_types((&writer.desc(), &peer(writer)), (&reader.desc(), &peer(reader))).map_err(|m| {
        let field = match m.field_path.as_str() {
            "" => String::new(),
            path => format!("field `{path}`: "),
        };
        format!("{field}written as {}, read as {}", m.publisher, m.subscriber)
    })
}
