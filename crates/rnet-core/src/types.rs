//! Message types: the description that travels with a channel.
//!
//! The JSON form is stored in shared memory; Python writes it too:
//! ```json
//! {"kind":"raw"}
//! {"kind":"protobuf","name":"foxglove.LaserScan","schema":"d228cb696f1a8caf78912b704e4a8964"}
//! {"kind":"plain","name":"Pose","size":32,"align":8,"fields":[
//!   {"name":"x","offset":0,"type":"f64"},
//!   {"name":"at","offset":8,"type":{"struct":{"name":"Stamp","size":8,"align":8,"fields":[…]}}},
//!   {"name":"q","offset":16,"type":{"array":{"of":"f32","len":4}}}]}
//! {"kind":"plain","name":"rnet.msgs.Image","size":192,"align":8,"tail":true,"fields":[…]}
//! ```
//! A hostile or dying peer may have written it. [`TypeDesc::from_json`] therefore checks everything before
//! any other use: a checked description has bounded depth and size, and every field lies inside its struct
//! without overlaps.
//!
//! - this file: the description, its JSON form and its checks;
//! - `plain_compatibility`: differences between a publisher's and a subscriber's types, and whether messages
//!   are readable;
//! - `value`: conversion between bytes and JSON values, for the command line.

mod plain_compatibility;
mod value;

pub use plain_compatibility::{TypeChange, TypeMismatch, compare, compatible};
pub use value::{float_from_json, float_to_json};

use crate::error::{Error, Result};
use crate::limits::{
    MAX_MESSAGE_LEN_BYTES, MAX_META_LEN_BYTES, MAX_PLAIN_ALIGN_BYTES, MAX_TYPE_DEPTH,
    MAX_TYPE_FIELDS, MAX_TYPE_NAME_LEN_BYTES,
};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use strum::{IntoStaticStr, VariantArray};

/// The type of a topic's messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TypeDesc {
    /// Bytes without a description.
    #[default]
    Raw,
    /// A struct of a fixed layout.
    Plain(PlainType),
    /// A protobuf message.
    Protobuf(ProtobufType),
    /// A kind of type from a later version. This version handles its messages as bytes.
    #[serde(other)]
    Unknown,
}

/// A protobuf message type, by name and fingerprint. Its descriptor set is stored next to the endpoint under
/// the fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProtobufType {
    /// Full name: `foxglove.LaserScan`.
    pub name: String,
    /// Fingerprint of the type's structure, 32 hexadecimal digits. Equal fingerprints do not prove equal
    /// types.
    pub schema: String,
}

/// The name that [`PlainType::format`] and [`PlainType::encode`] use for the length of the data after the
/// header.
pub const DATA_LEN: &str = "_data_len";

/// A struct of a fixed layout, little endian. Values from the derive or from [`TypeDesc::from_json`] have
/// passed [`PlainType::validate`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PlainType {
    /// Name of the type; compared between publisher and subscriber.
    pub name: String,
    /// Size of one message, in bytes; with `tail`, the size of its header.
    pub size: usize,
    /// Alignment, in bytes: 1, 2, 4 or 8.
    pub align: usize,
    /// Whether data follows: the struct is then the header of a message of at least `size` bytes. Omitted in
    /// the JSON form if false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tail: bool,
    /// The fields. Bytes outside of all fields are padding.
    pub fields: Vec<Field>,
}

/// A field of a [`PlainType`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Field {
    /// The name. A field whose name starts with `_` is padding and is neither compared nor shown. A publisher
    /// sends a field whose name starts with `_reserved` as zeros, so that a later version can use the space.
    pub name: String,
    /// Offset in its struct, in bytes.
    pub offset: usize,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: FieldType,
}

impl Field {
    /// Whether the field is padding: its name starts with `_`.
    pub fn is_padding(&self) -> bool {
        self.name.starts_with('_')
    }

    /// Whether the field is padding that is always zero: its name starts with `_reserved`.
    pub fn is_reserved(&self) -> bool {
        self.name.starts_with("_reserved")
    }
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldType {
    /// Contiguous elements of one type; in JSON `{"array":{"of":…,"len":3}}`.
    Array {
        /// Type of the elements.
        of: Box<FieldType>,
        /// Number of elements, at least 1.
        len: u32,
    },
    /// A nested struct; in JSON `{"struct":{"name":…,"size":…,"align":…,"fields":[…]}}`.
    Struct(PlainType),
    /// A number; in JSON its name: `"f64"`.
    #[serde(untagged)]
    Prim(Prim),
}

/// A number of a fixed size, little endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantArray, Serialize)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Prim {
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// IEEE 754 single.
    F32,
    /// IEEE 754 double.
    F64,
    /// One byte, 0 for false and any other value for true. Python has such a type (`c_bool`, numpy `bool`).
    /// In Rust use `u8`, because a Rust `bool` with a value other than 0 and 1 is undefined behaviour.
    Bool,
}

impl Prim {
    /// All number types, in the order of the documentation.
    pub const ALL: &'static [Prim] = Self::VARIANTS;

    /// The name in JSON and in messages.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Size, in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// The number type of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|prim| prim.name() == name)
    }
}

impl FieldType {
    /// Size, in bytes; saturates for unchecked descriptions.
    pub fn size(&self) -> usize {
        match self {
            Self::Prim(prim) => prim.size(),
            Self::Array { of, len } => of.size().saturating_mul(*len as usize),
            Self::Struct(plain) => plain.size,
        }
    }
}

impl fmt::Display for FieldType {
    /// `f64`, `f32[4]`, `struct Pose (24 bytes)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prim(prim) => f.write_str(prim.name()),
            Self::Array { of, len } => {
                // As in C, the outer dimension comes first.
                let (mut of, mut dims) = (of, format!("[{len}]"));
                while let Self::Array { of: inner, len } = &**of {
                    dims.push_str(&format!("[{len}]"));
                    of = inner;
                }
                write!(f, "{of}{dims}")
            }
            Self::Struct(plain) => write!(f, "struct {} ({} bytes)", plain.name, plain.size),
        }
    }
}

impl fmt::Display for PlainType {
    /// `plain type Pose (24 bytes)`, `plain type rnet.msgs.Image (192 bytes and data)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = if self.tail { " and data" } else { "" };
        write!(f, "plain type {} ({} bytes{data})", self.name, self.size)
    }
}

impl fmt::Display for TypeDesc {
    /// `raw bytes`, or the text of the type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raw => f.write_str("raw bytes"),
            Self::Plain(plain) => plain.fmt(f),
            Self::Protobuf(protobuf) => write!(f, "protobuf message {}", protobuf.name),
            Self::Unknown => f.write_str("a type of an unknown kind"),
        }
    }
}

impl TypeDesc {
    /// Parses and checks the JSON form. The input may be hostile.
    ///
    /// # Errors
    /// [`Error::BadValue`] with the reason and the field: invalid JSON, longer than [`MAX_META_LEN_BYTES`],
    /// or rejected by [`PlainType::validate`]. Never panics.
    ///
    /// ```
    /// use rnet_core::TypeDesc;
    /// let json = r#"{"kind":"plain","name":"Level","size":8,"align":8,"fields":[{"name":"volt","offset":4,"type":"f64"}]}"#;
    /// let error = TypeDesc::from_json(json).unwrap_err();
    /// assert!(error.to_string().contains("field `volt`"));
    /// ```
    pub fn from_json(json: &str) -> Result<Self> {
        let bad = |why: String| Error::BadValue { what: "type description".into(), why };
        if json.len() > MAX_META_LEN_BYTES {
            return Err(bad(format!(
                "{} bytes of JSON exceed the limit of {MAX_META_LEN_BYTES}",
                json.len()
            )));
        }
        let desc: Self = serde_json::from_str(json).map_err(|error| bad(error.to_string()))?;
        if let Self::Plain(plain) = &desc {
            plain.validate()?;
        }
        Ok(desc)
    }

    /// The JSON form.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a tree of strings and integers always has a JSON form")
    }

    /// The plain type, if it is one.
    pub fn as_plain(&self) -> Option<&PlainType> {
        match self {
            Self::Raw | Self::Protobuf(_) | Self::Unknown => None,
            Self::Plain(plain) => Some(plain),
        }
    }

    /// The protobuf type, if it is one.
    pub fn as_protobuf(&self) -> Option<&ProtobufType> {
        match self {
            Self::Raw | Self::Plain(_) | Self::Unknown => None,
            Self::Protobuf(protobuf) => Some(protobuf),
        }
    }

    /// Name of the type; `None` for raw bytes, `unknown` for an unknown kind.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Raw => None,
            Self::Unknown => Some("unknown"),
            Self::Plain(plain) => Some(&plain.name),
            Self::Protobuf(protobuf) => Some(&protobuf.name),
        }
    }
}

impl From<PlainType> for TypeDesc {
    fn from(plain: PlainType) -> Self {
        Self::Plain(plain)
    }
}

impl PlainType {
    /// Checks a description that was not created by the derive.
    ///
    /// # Errors
    /// [`Error::BadValue`] with the field and the fault: nesting deeper than [`MAX_TYPE_DEPTH`]; more than
    /// [`MAX_TYPE_FIELDS`] fields; a size above [`MAX_MESSAGE_LEN_BYTES`] or not a multiple of the alignment;
    /// an alignment other than 1, 2, 4 or 8; a field of size zero, outside its struct or overlapping another
    /// field; an invalid or duplicate name; data after a nested struct; or a field with the reserved name for
    /// the data's length ([`DATA_LEN`]).
    pub fn validate(&self) -> Result<()> {
        let mut fields_left = MAX_TYPE_FIELDS;
        check_struct(self, "", 1, &mut fields_left).map_err(|(path, why)| Error::BadValue {
            what: "type description".into(),
            why: format!("{path}: {why}"),
        })
    }
}

/// Location in the type, and the fault.
type Fault = (String, String);

fn location(path: &str) -> String {
    if path.is_empty() { "the type itself".to_owned() } else { format!("field `{path}`") }
}

fn check_name(name: &str) -> std::result::Result<(), String> {
    if name.is_empty() || name.len() > MAX_TYPE_NAME_LEN_BYTES {
        return Err(format!(
            "a name must have 1 to {MAX_TYPE_NAME_LEN_BYTES} bytes; this one has {}",
            name.len()
        ));
    }
    match name.chars().find(|c| c.is_control() || ['[', ']', '`'].contains(c)) {
        Some(c) => Err(format!("{c:?} is not allowed in a name")),
        None => Ok(()),
    }
}

fn check_struct(
    plain: &PlainType,
    path: &str,
    depth: usize,
    fields_left: &mut usize,
) -> std::result::Result<(), Fault> {
    let fault = |why: String| Err((location(path), why));
    if let Err(why) = check_name(&plain.name) {
        return fault(format!("type name: {why}"));
    }
    if plain.size > MAX_MESSAGE_LEN_BYTES {
        return fault(format!(
            "size is {} bytes; at most {MAX_MESSAGE_LEN_BYTES} are allowed",
            plain.size
        ));
    }
    if !plain.align.is_power_of_two() || plain.align > MAX_PLAIN_ALIGN_BYTES {
        return fault(format!("align is {}; it must be 1, 2, 4 or 8", plain.align));
    }
    if !plain.size.is_multiple_of(plain.align) {
        return fault(format!("size {} is not a multiple of align {}", plain.size, plain.align));
    }
    if plain.tail && depth > 1 {
        return fault(
            "data must follow the whole message; it cannot follow a nested struct".to_owned(),
        );
    }
    match fields_left.checked_sub(plain.fields.len()) {
        Some(left) => *fields_left = left,
        None => return fault(format!("more than {MAX_TYPE_FIELDS} fields in total")),
    }
    for field in &plain.fields {
        let at = plain_compatibility::join(path, &field.name);
        let fault = |why: String| Err((location(&at), why));
        if let Err(why) = check_name(&field.name) {
            return Err((location(path), format!("field name: {why}")));
        }
        if field.name.contains('.') {
            return fault("'.' is not allowed in a field name".to_owned());
        }
        if plain.tail && field.name == DATA_LEN {
            return fault("this name is reserved for the length of the data".to_owned());
        }
        check_type(&field.ty, &at, depth + 1, fields_left)?;
        let size = field.ty.size();
        if size == 0 {
            return fault("it has no size".to_owned());
        }
        // Compares with the difference because the sum could overflow.
        if size > plain.size || field.offset > plain.size - size {
            return fault(format!(
                "{size} bytes at offset {} are outside its struct of {} bytes",
                field.offset, plain.size
            ));
        }
    }
    check_overlaps(plain, path)
}

/// Checks that fields do not overlap and have different names.
fn check_overlaps(plain: &PlainType, path: &str) -> std::result::Result<(), Fault> {
    let mut by_offset: Vec<&Field> = plain.fields.iter().collect();
    by_offset.sort_by_key(|field| field.offset);
    for pair in by_offset.windows(2) {
        if pair[0].offset + pair[0].ty.size() > pair[1].offset {
            let at = location(&plain_compatibility::join(path, &pair[1].name));
            return Err((at, format!("it overlaps field `{}`", pair[0].name)));
        }
    }
    let mut by_name: Vec<&str> = plain.fields.iter().map(|field| field.name.as_str()).collect();
    by_name.sort_unstable();
    match by_name.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err((
            location(&plain_compatibility::join(path, pair[0])),
            "two fields have this name".to_owned(),
        )),
        None => Ok(()),
    }
}

fn check_type(
    ty: &FieldType,
    path: &str,
    depth: usize,
    fields_left: &mut usize,
) -> std::result::Result<(), Fault> {
    if depth > MAX_TYPE_DEPTH {
        return Err((
            location(path),
            format!("structs and arrays are nested more than {MAX_TYPE_DEPTH} deep"),
        ));
    }
    match ty {
        FieldType::Prim(_) => Ok(()),
        FieldType::Array { of, .. } => check_type(of, path, depth + 1, fields_left),
        FieldType::Struct(plain) => check_struct(plain, path, depth, fields_left),
    }
}

// Parses a field type by hand. Errors then contain the input ("unknown number type `float`") instead of "no
// variant of an untagged enum matched".

/// A field type that is not a number.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Nested {
    Array { of: Box<FieldType>, len: u32 },
    Struct(PlainType),
}

impl<'de> Deserialize<'de> for FieldType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct FieldTypeVisitor;
        impl<'de> Visitor<'de> for FieldTypeVisitor {
            type Value = FieldType;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number type such as \"f64\", {\"array\":…} or {\"struct\":…}")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> std::result::Result<FieldType, E> {
                Prim::from_name(name).map(FieldType::Prim).ok_or_else(|| {
                    let known: Vec<&str> = Prim::ALL.iter().map(|prim| prim.name()).collect();
                    let known = known.join(", ");
                    E::custom(format_args!("unknown number type {name:?}; known types: {known}"))
                })
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                map: A,
            ) -> std::result::Result<FieldType, A::Error> {
                Nested::deserialize(MapAccessDeserializer::new(map)).map(|nested| match nested {
                    Nested::Array { of, len } => FieldType::Array { of, len },
                    Nested::Struct(plain) => FieldType::Struct(plain),
                })
            }
        }
        deserializer.deserialize_any(FieldTypeVisitor)
    }
}

#[cfg(test)]
mod tests;
