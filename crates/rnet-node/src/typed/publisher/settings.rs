//! Settings of a publisher before it is opened.

use rnet_core::{Error, Proxy, Result};

use crate::MessageType;

/// Settings of a publisher other than its quality of service.
#[derive(Debug, Default)]
pub struct PublisherSettings {
    pub message_type: Option<MessageType>,
    pub proxy: Option<Proxy>,
    pub deferred: bool,
    pub last_will: Option<LastWill>,
    pub reserve_will: bool,
}

/// A message whose publisher type is not known yet.
#[derive(Clone, Debug)]
pub struct LastWill {
    pub(crate) bytes: Vec<u8>,
    pub(crate) message_type: Result<MessageType>,
}

impl LastWill {
    /// The bytes, if they are a message of type `of`. Bytes without a type match every type.
    ///
    /// # Errors
    /// `BadValue` if they have another type.
    pub fn bytes_of(self, topic: &str, of: &MessageType) -> Result<Vec<u8>> {
        let of_it = |own: &MessageType| matches!(own, MessageType::Raw) || own.desc() == of.desc();
        let fits =
            of_it(&self.message_type?) && of.fixed_len().is_none_or(|len| len == self.bytes.len());
        if fits {
            return Ok(self.bytes);
        }
        let (what, why) =
            (format!("last will on {topic}"), "it is not of the publisher's type".to_owned());
        Err(Error::BadValue { what, why })
    }
}
