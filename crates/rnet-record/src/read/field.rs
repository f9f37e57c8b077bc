//! Reads a field of messages as a number or an array of numbers of one size.
//!
//! In a plain message the field is at a fixed offset; in a protobuf message the reader walks to it. Neither
//! decodes the whole message.

use rnet::schema::{Columns, FieldPath, NumberReader};
use rnet::{FieldType, MessageType, PlainType, Prim};
use rnet_format::value::Step;
use rnet_schema::prost_reflect::Kind;
use rnet_schema::reflect::ReflectNumber;

use super::channels::{Channel, TypeError};
use super::series::number;

/// Why a field cannot be read as numbers.
#[derive(Debug, thiserror::Error)]
#[error("field {field:?} of {topic} cannot be read: {why}")]
pub struct FieldError {
    /// Topic of the channel.
    pub topic: String,
    /// The requested field.
    pub field: String,
    /// The reason, and the available fields.
    pub why: String,
    /// The type of the messages has no such field; the type of another publisher may have it.
    pub is_missing: bool,
}

/// Why a type has no number at a path.
enum NumberError {
    /// The type has no such field.
    Missing(String),
    /// The field is not a number.
    Other(String),
}

impl From<NumberError> for String {
    fn from(refused: NumberError) -> String {
        match refused {
            NumberError::Missing(why) | NumberError::Other(why) => why,
        }
    }
}

/// Reads one field.
pub struct FieldReader {
    /// Type of the number, or of the elements of the array.
    pub prim: Prim,
    /// Dimensions of the array, the outer one first; empty for a single number.
    pub shape: Vec<usize>,
    location: FieldLocation,
}

enum FieldLocation {
    Plain { offset: usize, size: usize, message: MessageSize },
    Protobuf(NumberReader),
}

/// The lengths that messages may have.
struct MessageSize {
    len: usize,
    tail: bool,
}

impl FieldReader {
    /// A reader for the messages of this channel, whose type is `ty`.
    pub fn new(channel: &Channel, ty: &MessageType, field: &str) -> Result<Self, FieldError> {
        let failed = |refused: NumberError| {
            let (topic, field) = (channel.topic.clone(), field.to_owned());
            let is_missing = matches!(refused, NumberError::Missing(_));
            FieldError { topic, field, is_missing, why: refused.into() }
        };
        Self::of_type(ty, &channel.message_encoding, field).map_err(failed)
    }

    /// A reader for messages of this type; `encoding` names messages without a type.
    fn of_type(ty: &MessageType, encoding: &str, field: &str) -> Result<Self, NumberError> {
        match ty {
            MessageType::Plain(plain) => Self::plain(plain, field),
            MessageType::Protobuf(schema) => {
                let path = FieldPath::parse(schema, field);
                let path = path.map_err(|error| NumberError::Missing(error.to_string()))?;
                let number = NumberReader::new(schema, &path);
                let number = number.map_err(|error| NumberError::Other(error.to_string()))?;
                let prim = prim_of(number.kind());
                Ok(Self { prim, shape: Vec::new(), location: FieldLocation::Protobuf(number) })
            }
            MessageType::Raw => Err(NumberError::Other(format!(
                "its messages are {encoding:?}; fields can be read only from protobuf and plain messages"
            ))),
        }
    }

    /// A reader for a single number in messages of this type, from any source.
    ///
    /// # Errors
    /// Why the field is not a number, as text.
    pub fn single_number(ty: &MessageType, field: &str) -> Result<Self, String> {
        let reader = Self::of_type(ty, "raw", field)?;
        match reader.shape.is_empty() {
            true => Ok(reader),
            false => {
                Err(format!("it has {:?} numbers; specify one, such as {field}[0]", reader.shape))
            }
        }
    }

    /// The value of the field in a message, as `f64`; `None` if it is absent. Integers beyond 2^53 are
    /// rounded.
    ///
    /// # Errors
    /// Why the message does not match its type, as text.
    pub fn read_f64(&self, message: &[u8], buffer: &mut Vec<u8>) -> Result<Option<f64>, String> {
        buffer.clear();
        let is_there = self.read(message, buffer)?;
        Ok(is_there.then(|| number(self.prim, buffer)))
    }

    fn plain(plain: &PlainType, field: &str) -> Result<Self, NumberError> {
        let path: rnet_format::value::FieldPath = field.parse().map_err(NumberError::Other)?;
        let (offset, mut at) = find_plain_field(plain, &path).map_err(NumberError::Missing)?;
        let (size, mut shape) = (at.size(), Vec::new());
        let prim = loop {
            at = match at {
                FieldType::Prim(prim) => break prim,
                FieldType::Array { of, len } => {
                    shape.push(len as usize);
                    *of
                }
                FieldType::Struct(of) => {
                    let why = format!("it is not a number; {}", describe_fields(&of));
                    return Err(NumberError::Other(why));
                }
            };
        };
        let message = MessageSize { len: plain.size, tail: plain.tail };
        Ok(Self { prim, shape, location: FieldLocation::Plain { offset, size, message } })
    }

    /// Appends the value of the field in a message, little endian. If it is absent, appends zeros and returns
    /// false.
    pub fn read(&self, message: &[u8], out: &mut Vec<u8>) -> Result<bool, String> {
        match &self.location {
            FieldLocation::Plain { offset, size, message: MessageSize { len, tail } } => {
                if message.len() < *len || (message.len() > *len && !tail) {
                    let (there, least) = (message.len(), if *tail { "at least " } else { "" });
                    return Err(format!("it has {there} bytes, but its type has {least}{len}"));
                }
                let bytes = &message[*offset..offset + size];
                match self.prim {
                    // Any byte other than 0 is true, and readers of the column accept only 0 and 1.
                    Prim::Bool => out.extend(bytes.iter().map(|byte| u8::from(*byte != 0))),
                    _ => out.extend_from_slice(bytes),
                }
                Ok(true)
            }
            FieldLocation::Protobuf(number) => {
                let found = number.read(message).map_err(|error| error.to_string())?;
                out.extend_from_slice(&found.unwrap_or(0).to_le_bytes()[..self.prim.size()]);
                Ok(found.is_some())
            }
        }
    }
}

impl Channel {
    /// The fields that can be read as numbers: single numbers and arrays of a fixed length. Repeated protobuf
    /// fields are not included, but their elements can be read by name (`ranges[0]`).
    ///
    /// # Errors
    /// As [`Channel::message_type`]; the type has more fields than a table may have columns.
    pub fn number_fields(&self) -> Result<Vec<String>, TypeError> {
        let failed = |why: String| TypeError { topic: self.topic.clone(), why };
        match self.message_type()? {
            MessageType::Raw => Ok(Vec::new()),
            MessageType::Plain(plain) => {
                let mut fields = Vec::new();
                collect_number_fields(&plain, "", &mut fields);
                Ok(fields)
            }
            MessageType::Protobuf(schema) => {
                let columns = Columns::all(&schema).map_err(|error| failed(error.to_string()))?;
                let is_number = |field: &String| {
                    let path = FieldPath::parse(&schema, field);
                    path.is_ok_and(|path| NumberReader::new(&schema, &path).is_ok())
                };
                Ok(columns.header().into_iter().filter(is_number).collect())
            }
        }
    }
}

/// Collects the numbers of a struct and its arrays of numbers. Structs in arrays have to be requested by
/// name.
fn collect_number_fields(plain: &PlainType, within: &str, fields: &mut Vec<String>) {
    for field in plain.fields.iter().filter(|field| !field.is_padding()) {
        let path = format!("{within}{}", field.name);
        let mut ty = &field.ty;
        while let FieldType::Array { of, .. } = ty {
            ty = of;
        }
        match (&field.ty, ty) {
            (_, FieldType::Prim(_)) => fields.push(path),
            (FieldType::Struct(inner), _) => {
                collect_number_fields(inner, &format!("{path}."), fields)
            }
            _ => {}
        }
    }
}

fn missing_field(name: &str, of: &PlainType) -> String {
    format!("field {name:?} does not exist; {}", describe_fields(of))
}

fn describe_fields(of: &PlainType) -> String {
    let names = of.fields.iter().filter(|field| !field.is_padding());
    let names: Vec<&str> = names.map(|field| field.name.as_str()).collect();
    format!("{} has {}", of.name, names.join(", "))
}

fn prim_of(kind: &Kind) -> Prim {
    match kind {
        Kind::Double => Prim::F64,
        Kind::Float => Prim::F32,
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Prim::I64,
        Kind::Uint64 | Kind::Fixed64 => Prim::U64,
        Kind::Uint32 | Kind::Fixed32 => Prim::U32,
        Kind::Bool => Prim::Bool,
        // `NumberReader::new` rejects the others.
        _ => Prim::I32,
    }
}

/// Offset and type of the field at the end of the steps. The error names the missing field.
pub(crate) fn find_plain_field(
    plain: &PlainType,
    path: &rnet_format::value::FieldPath,
) -> Result<(usize, FieldType), String> {
    let (mut offset, mut at) = (0, FieldType::Struct(plain.clone()));
    for step in path.steps() {
        (offset, at) = match (step, at) {
            (Step::Field(name), FieldType::Struct(of)) => {
                let named = |field: &&rnet::Field| field.name == *name && !field.is_padding();
                let found = of.fields.iter().find(named).ok_or_else(|| missing_field(name, &of))?;
                (offset + found.offset, found.ty.clone())
            }
            (Step::Index(index), FieldType::Array { of, len }) if *index < len as usize => {
                (offset + index * of.size(), *of)
            }
            (Step::Index(index), FieldType::Array { len, .. }) => {
                return Err(format!("[{index}] does not exist: the array has {len} elements"));
            }
            (Step::Field(name), ty) => return Err(format!("{ty} has no field {name:?}")),
            (Step::Index(index), ty) => return Err(format!("{ty} has no element [{index}]")),
            (Step::Key(key), ty) => {
                let why = format!("{ty} has no element [{key:?}]; write a number, as in legs[2]");
                return Err(why);
            }
        };
    }
    Ok((offset, at))
}
