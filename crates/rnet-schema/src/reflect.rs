//! Access to the reflection library behind types and messages, for crates that walk them. `rnet` does not
//! re-export these traits: the library is not part of its API.

use std::borrow::Cow;

use prost_reflect::{DynamicMessage, Kind, MessageDescriptor, Value};

use crate::{Dynamic, FieldPath, NumberReader, Schema};

/// The descriptor of a type.
pub trait ReflectSchema {
    /// The descriptor to decode and build messages.
    fn descriptor(&self) -> &MessageDescriptor;
}

impl ReflectSchema for Schema {
    fn descriptor(&self) -> &MessageDescriptor {
        Schema::descriptor(self)
    }
}

/// The reflected form of a message.
pub trait ReflectDynamic {
    /// The message itself.
    fn message(&self) -> &DynamicMessage;

    /// The value at a path: the default for an unset field, and `None` for a missing element or entry.
    fn get(&self, path: &FieldPath) -> Option<Cow<'_, Value>>;
}

impl ReflectDynamic for Dynamic {
    fn message(&self) -> &DynamicMessage {
        Dynamic::message(self)
    }

    fn get(&self, path: &FieldPath) -> Option<Cow<'_, Value>> {
        Dynamic::get(self, path)
    }
}

/// The type of an extracted number.
pub trait ReflectNumber {
    /// One of the integers or floats, [`Kind::Bool`], or [`Kind::Enum`].
    fn kind(&self) -> &Kind;
}

impl ReflectNumber for NumberReader {
    fn kind(&self) -> &Kind {
        NumberReader::kind(self)
    }
}
