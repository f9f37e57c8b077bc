//! Protobuf messages without generated code, as messages of a topic.

use std::ops::{Deref, DerefMut};

use crate::MessageType;
use crate::message::MessageCodec;
use prost::Message as _;
use prost::bytes::BufMut;
use rnet_core::{Error, Result};
use rnet_schema::Schema;
use rnet_schema::reflect::ReflectDynamic;

/// A protobuf message whose type is known only at run time, from the builder of its publisher or subscriber.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = std::env::temp_dir();
/// # let domain = format!("dynamic{}", std::process::id());
/// # let node = rnet::Node::builder("tools").dir(dir).domain(&domain).open()?;
/// use rnet::{Dynamic, schema};
/// let text = r#"syntax = "proto3"; message Level { double volt = 1; }"#;
/// let level = schema::compile_text("level.proto", text)?.schema("Level")?;
/// let mut levels = node.publisher::<Dynamic>("/level").schema(&level).open()?;
/// let mut subscriber = node.subscriber::<Dynamic>("/level").schema(&level).open()?;
/// subscriber.wait_for_publishers(1)?;
/// let message = schema::Dynamic::from_json(&level, &serde_json::json!({"volt": 24.1}))?;
/// levels.send(&message.into())?;
/// let volt = schema::FieldPath::parse(&level, "volt")?;
/// let value = subscriber.recv()?.get_json(&volt, &schema::JsonOptions::default());
/// assert_eq!(value.and_then(|value| value.as_f64()), Some(24.1));
/// # drop((levels, subscriber));
/// # let path = node.domain_path().to_owned();
/// # drop(node);
/// # std::fs::remove_dir_all(path)?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dynamic(rnet_schema::Dynamic);

impl Dynamic {
    /// A message without any field set.
    pub fn new(schema: &Schema) -> Dynamic {
        Dynamic(rnet_schema::Dynamic::new(schema))
    }
}

impl From<rnet_schema::Dynamic> for Dynamic {
    fn from(message: rnet_schema::Dynamic) -> Dynamic {
        Dynamic(message)
    }
}

impl Deref for Dynamic {
    type Target = rnet_schema::Dynamic;
    fn deref(&self) -> &rnet_schema::Dynamic {
        &self.0
    }
}

impl DerefMut for Dynamic {
    fn deref_mut(&mut self) -> &mut rnet_schema::Dynamic {
        &mut self.0
    }
}

impl MessageCodec for Dynamic {
    type DecodeBuffer = Option<Dynamic>;

    fn static_type() -> Result<MessageType> {
        Err(Error::bad_value(
            "type of a Dynamic message",
            "set a protobuf type with PublisherBuilder::schema or SubscriberBuilder::schema",
        ))
    }
    fn type_of(&self) -> Result<MessageType> {
        Ok(MessageType::Protobuf(self.0.schema().clone()))
    }
    fn accepts(given: &MessageType) -> bool {
        given.schema().is_some()
    }
    fn new_buffer(message_type: &MessageType) -> Option<Dynamic> {
        message_type.schema().map(Dynamic::new)
    }
    fn as_bytes(&self) -> Option<&[u8]> {
        None
    }
    fn check(&self, endpoint: &MessageType) -> std::result::Result<(), String> {
        let own = self.0.schema();
        match endpoint.schema() {
            Some(schema) if schema == own => Ok(()),
            Some(schema) if schema.name() != own.name() => {
                Err(format!("it is a {}, but the publisher sends {}", own.name(), schema.name()))
            }
            _ => Err(format!(
                "its {} differs from the publisher's; create it from the schema that the publisher \
                 was opened with",
                own.name()
            )),
        }
    }
    fn encoded_len(&self) -> usize {
        self.0.message().encoded_len()
    }
    fn encode(&self, out: &mut impl BufMut) {
        self.0.message().encode_raw(out);
    }
    fn decode(bytes: &[u8], buffer: &mut Option<Dynamic>) -> std::result::Result<(), String> {
        let Some(message) = buffer else { return Err("its type is not known".to_owned()) };
        message.0 = rnet_schema::Dynamic::decode(message.schema(), bytes)
            .map_err(|error| error.to_string())?;
        Ok(())
    }
    fn view<'a>(_: &'a [u8], buffer: &'a Option<Dynamic>) -> &'a Self {
        buffer.as_ref().expect("nothing is decoded without a type")
    }
    fn take_buffer(buffer: &mut Option<Dynamic>) -> Option<Dynamic> {
        let next = buffer.as_ref().map(|message| Dynamic::new(message.schema()));
        std::mem::replace(buffer, next)
    }
}
