//! A message without generated code: decoded, accessed by field, shown, and created from JSON.

use crate::decode::{self, DecodeLimits};
use crate::error::{DecodeError, ValueError};
use crate::json::{self, JsonOptions};
use crate::path::FieldPath;
use crate::text::TextOptions;
use crate::{Schema, text};
use prost::Message;
use std::borrow::Cow;

use prost_reflect::{DynamicMessage, Value};

/// A message whose type is known at run time only.
///
/// ```
/// use rnet_schema::{Dynamic, FieldPath, JsonOptions, compile_text};
/// let text = r#"syntax = "proto3"; message Leg { repeated double force = 1; } message Robot { repeated Leg legs = 1; }"#;
/// let robot = compile_text("robot.proto", text)?.schema("Robot")?;
/// let message = Dynamic::from_json(&robot, &serde_json::json!({"legs": [{"force": [1.5, 2.5]}]}))?;
/// let again = Dynamic::decode(&robot, &message.encode())?;
/// let force = FieldPath::parse(&robot, "legs[0].force[1]")?;
/// let value = again.get_json(&force, &rnet_schema::JsonOptions::default());
/// assert_eq!(value.and_then(|value| value.as_f64()), Some(2.5));
/// assert_eq!(again.to_json(&JsonOptions::default())["legs"][0]["force"][0], 1.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dynamic {
    schema: Schema,
    message: DynamicMessage,
}

impl Dynamic {
    /// A message without set fields.
    pub fn new(schema: &Schema) -> Self {
        let message = DynamicMessage::new(schema.descriptor().clone());
        Self { schema: schema.clone(), message }
    }

    /// Decodes a message. Unknown fields are preserved and written again by [`Dynamic::encode`].
    ///
    /// # Errors
    /// [`DecodeError`] with the byte and the field. Never panics.
    pub fn decode(schema: &Schema, bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::decode_within(schema, bytes, &DecodeLimits::default())
    }

    /// Decodes a message with other limits than [`DecodeLimits::default`].
    ///
    /// # Errors
    /// As [`Dynamic::decode`].
    pub fn decode_within(
        schema: &Schema,
        bytes: &[u8],
        limits: &DecodeLimits,
    ) -> Result<Self, DecodeError> {
        let message = decode::decode(schema, bytes, limits)?;
        Ok(Self { schema: schema.clone(), message })
    }

    /// Builds a message from JSON: field names as in the `.proto` file or in lowerCamelCase, otherwise the
    /// proto3 JSON mapping.
    ///
    /// # Errors
    /// [`ValueError`] with the field (`legs[2].force`) and the expected value.
    pub fn from_json(schema: &Schema, value: &serde_json::Value) -> Result<Self, ValueError> {
        let message = json::read(schema.descriptor(), value)?;
        Ok(Self { schema: schema.clone(), message })
    }

    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        self.message.encode_to_vec()
    }

    /// The message as JSON.
    pub fn to_json(&self, options: &JsonOptions) -> serde_json::Value {
        json::message(&self.message, options)
    }

    /// The message as YAML text: one line per field, with the unit as a comment.
    pub fn to_text(&self) -> String {
        self.to_text_with(&TextOptions::default())
    }

    /// The same with other limits of the output.
    pub fn to_text_with(&self, options: &TextOptions) -> String {
        text::message(&self.message, self.schema.docs(), options)
    }

    /// The value at a path, in the same format.
    pub fn get_text(&self, path: &FieldPath, options: &TextOptions) -> Option<String> {
        let unit = path.unit(self.schema.docs());
        let value = self.get(path)?;
        Some(text::field(&value, path.kind(), unit, self.schema.docs(), options))
    }

    /// The value at a path as JSON.
    pub fn get_json(&self, path: &FieldPath, options: &JsonOptions) -> Option<serde_json::Value> {
        self.get(path).map(|value| json::value(&value, path.kind(), options))
    }

    pub(crate) fn get(&self, path: &FieldPath) -> Option<Cow<'_, Value>> {
        path.find(&self.message)
    }

    pub(crate) fn message(&self) -> &DynamicMessage {
        &self.message
    }

    /// The type.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }
}
