//! Converts ROS 2 messages to protobuf: builds the protobuf type from a description, and re-encodes CDR.
//!
//! So everything that reads protobuf (fields by path, tables, `rnet play`) can read ROS 2. Each field becomes
//! a protobuf field of the same name; bytes become `bytes`, numbers of 8 and 16 bits become 32-bit numbers.

use std::collections::BTreeSet;

use rnet::Prim;
use rnet::schema::Schema;
use rnet_schema::prost_reflect::prost::Message as _;
use rnet_schema::prost_reflect::prost::encoding::{WireType, encode_key, encode_varint};
use rnet_schema::prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use rnet_schema::prost_reflect::prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
};

use super::definition::{Arity, Base, Definition, Field};

/// Length of the header, which contains the encoding.
pub const HEADER_LEN_BYTES: usize = 4;

/// Maximum length of the content of a message without fields.
const EMPTY_LEN_BYTES: usize = 4;

/// A ROS 2 type.
#[derive(Debug)]
pub struct CdrType {
    definition: Definition,
    schema: Schema,
}

impl CdrType {
    /// Parses a description. Errors are text.
    pub fn new(name: &str, text: &str) -> Result<CdrType, String> {
        let definition = Definition::parse(name, text)?;
        let (mut files, mut done) = (Vec::new(), BTreeSet::new());
        add_file(&definition, &definition.name, &mut files, &mut done);
        let set = FileDescriptorSet { file: files }.encode_to_vec();
        let schema = Schema::from_descriptor_set(&set, &full_name(&definition.name));
        Ok(CdrType { schema: schema.map_err(|error| error.to_string())?, definition })
    }

    /// The protobuf type.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// A message as protobuf. The error text says why it does not match the type.
    pub fn to_protobuf(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let (header, content) = message.split_at_checked(HEADER_LEN_BYTES).ok_or_else(|| {
            format!("it has {} bytes, but the CDR header alone has 4", message.len())
        })?;
        let encoding = u16::from_be_bytes([header[0], header[1]]);
        let (is_little, is_cdr2) = match encoding {
            0 | 1 => (encoding == 1, false),
            6 | 7 => (encoding == 7, true),
            2 | 3 | 8..=11 => {
                return Err(format!(
                    "its encoding {encoding:#06x} is for extensible types; only plain CDR and CDR2 are \
                     supported, which types from .msg files use"
                ));
            }
            _ => return Err(format!("its encoding {encoding:#06x} is not a CDR encoding")),
        };
        // rosbag2 writes an empty description if it finds none. A message without fields has one byte, padded
        // to 4.
        if self.definition.is_empty() && content.len() > EMPTY_LEN_BYTES {
            let name = &self.definition.name;
            return Err(format!("the file does not describe {name}: its description is empty"));
        }
        let mut from = CdrReader { content, at: 0, is_little, is_cdr2 };
        let mut out = Vec::with_capacity(content.len() + content.len() / 4);
        convert_message(&self.definition, &self.definition.name, &mut from, &mut out)?;
        Ok(out)
    }
}

fn full_name(name: &str) -> String {
    let (package, name) = package_and_name(name);
    format!("{package}.{name}")
}

/// `a.msg` and `B` for `a/B`, `a.srv` and `B` for `a/srv/B`.
fn package_and_name(name: &str) -> (String, &str) {
    let (package, name) = name.rsplit_once('/').unwrap_or(("", name));
    match package.split_once('/') {
        Some((package, kind)) => (format!("{package}.{kind}"), name),
        None => (format!("{package}.msg"), name),
    }
}

/// Adds the file of a type, after the files of the types that it uses.
fn add_file(
    definition: &Definition,
    of: &str,
    files: &mut Vec<FileDescriptorProto>,
    done: &mut BTreeSet<String>,
) {
    if !done.insert(of.to_owned()) {
        return;
    }
    let (package, name) = package_and_name(of);
    let path = |of: &str| format!("ros2/{of}.proto");
    let fields = definition.fields(of);
    let mut dependency = BTreeSet::new();
    for field in fields {
        if let Base::Type(inner) = &field.base {
            add_file(definition, inner, files, done);
            dependency.insert(path(inner));
        }
    }
    // `x1` and `x_1` are two names in ROS 2, but have the same JSON name in protobuf, which proto3 rejects.
    let plain = |field: &Field| field.name.replace('_', "").to_lowercase();
    let are_alike = fields.iter().map(plain).collect::<BTreeSet<_>>().len() < fields.len();
    let field = |(at, field): (usize, &Field)| {
        let (ty, of) = match &field.base {
            Base::Text => (Type::String, None),
            Base::Type(inner) => (Type::Message, Some(format!(".{}", full_name(inner)))),
            Base::Number(number) if is_bytes(*number, field.arity) => (Type::Bytes, None),
            Base::Number(number) => (protobuf_of(*number), None),
        };
        let is_one = field.arity == Arity::Single || ty == Type::Bytes;
        FieldDescriptorProto {
            name: Some(field.name.clone()),
            json_name: are_alike.then(|| field.name.clone()),
            number: Some(number_of(at) as i32),
            label: Some(if is_one { Label::Optional } else { Label::Repeated }.into()),
            r#type: Some(ty.into()),
            type_name: of,
            ..Default::default()
        }
    };
    let message = DescriptorProto {
        name: Some(name.to_owned()),
        field: fields.iter().enumerate().map(field).collect(),
        ..Default::default()
    };
    files.push(FileDescriptorProto {
        name: Some(path(of)),
        package: Some(package),
        dependency: dependency.into_iter().collect(),
        message_type: vec![message],
        syntax: Some(if are_alike { "proto2" } else { "proto3" }.to_owned()),
        ..Default::default()
    });
}

/// The number of the n-th field. Protobuf reserves 19,000 to 19,999.
fn number_of(at: usize) -> u32 {
    let number = at as u32 + 1;
    if number >= 19_000 { number + 1_000 } else { number }
}

fn is_bytes(number: Prim, arity: Arity) -> bool {
    number == Prim::U8 && arity != Arity::Single
}

fn protobuf_of(number: Prim) -> Type {
    match number {
        Prim::Bool => Type::Bool,
        Prim::U8 | Prim::U16 | Prim::U32 => Type::Uint32,
        Prim::I8 | Prim::I16 | Prim::I32 => Type::Int32,
        Prim::U64 => Type::Uint64,
        Prim::I64 => Type::Int64,
        Prim::F32 => Type::Float,
        Prim::F64 => Type::Double,
    }
}

fn wire_of(number: Prim) -> WireType {
    match number {
        Prim::F32 => WireType::ThirtyTwoBit,
        Prim::F64 => WireType::SixtyFourBit,
        _ => WireType::Varint,
    }
}

struct CdrReader<'a> {
    content: &'a [u8],
    at: usize,
    is_little: bool,
    /// Whether it is CDR2 (XCDR version 2 of DDS-XTypes 1.3, section 7.4.3).
    is_cdr2: bool,
}

impl<'a> CdrReader<'a> {
    fn take(&mut self, len: usize, align: usize) -> Result<&'a [u8], String> {
        let from = self.at.next_multiple_of(align);
        let bytes = from.checked_add(len).and_then(|end| self.content.get(from..end));
        let bytes = bytes.ok_or_else(|| {
            format!("it ends at byte {} of its content, within a value", self.content.len())
        })?;
        self.at = from + len;
        Ok(bytes)
    }

    /// Reads a number as its bits.
    fn number(&mut self, number: Prim) -> Result<u64, String> {
        let align = if self.is_cdr2 { number.size().min(4) } else { number.size() };
        let bytes = self.take(number.size(), align)?;
        let mut wide = [0; 8];
        match self.is_little {
            true => wide[..bytes.len()].copy_from_slice(bytes),
            false => bytes.iter().rev().zip(&mut wide).for_each(|(from, to)| *to = *from),
        }
        Ok(u64::from_le_bytes(wide))
    }

    /// Reads a length of elements that take at least one byte each.
    fn len(&mut self) -> Result<usize, String> {
        let len = self.number(Prim::U32)? as usize;
        match len <= self.content.len() - self.at {
            true => Ok(len),
            false => Err(format!("it claims a length of {len}, but fewer bytes are left")),
        }
    }

    fn text(&mut self) -> Result<&'a str, String> {
        let len = self.len()?;
        let bytes = self.take(len, 1)?;
        let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        std::str::from_utf8(bytes).map_err(|_| "a string is not UTF-8".to_owned())
    }
}

fn convert_message(
    definition: &Definition,
    of: &str,
    from: &mut CdrReader<'_>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let fields = definition.fields(of);
    if fields.is_empty() {
        // A struct without members has a dummy member.
        from.take(1, 1)?;
    }
    for (at, field) in fields.iter().enumerate() {
        let failed = |why: String| format!("{}: {why}", field.name);
        convert_field(definition, field, number_of(at), from, out).map_err(failed)?;
    }
    Ok(())
}

fn convert_field(
    definition: &Definition,
    field: &Field,
    number: u32,
    from: &mut CdrReader<'_>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    if from.is_cdr2 && field.arity != Arity::Single && !matches!(field.base, Base::Number(_)) {
        // The total length of the elements in bytes.
        from.len()?;
    }
    let len = match field.arity {
        Arity::Single => 1,
        Arity::Fixed(len) => len as usize,
        Arity::Sequence => from.len()?,
    };
    match &field.base {
        Base::Number(of) if is_bytes(*of, field.arity) => {
            let bytes = from.take(len, 1)?;
            delimited(number, bytes, out);
        }
        Base::Number(of) if field.arity == Arity::Single => {
            encode_key(number, wire_of(*of), out);
            put_number(*of, from.number(*of)?, out);
        }
        Base::Number(of) => {
            let mut packed = Vec::with_capacity((len * of.size()).min(from.content.len()));
            for _ in 0..len {
                put_number(*of, from.number(*of)?, &mut packed);
            }
            delimited(number, &packed, out);
        }
        Base::Text => {
            for _ in 0..len {
                delimited(number, from.text()?.as_bytes(), out);
            }
        }
        Base::Type(inner) => {
            let mut bytes = Vec::new();
            for _ in 0..len {
                bytes.clear();
                convert_message(definition, inner, from, &mut bytes)?;
                delimited(number, &bytes, out);
            }
        }
    }
    Ok(())
}

fn delimited(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Writes a number from its bits.
fn put_number(of: Prim, bits: u64, out: &mut Vec<u8>) {
    match of {
        Prim::F32 => out.extend_from_slice(&(bits as u32).to_le_bytes()),
        Prim::F64 => out.extend_from_slice(&bits.to_le_bytes()),
        Prim::Bool => encode_varint((bits != 0).into(), out),
        Prim::I8 => encode_varint(i64::from(bits as i8) as u64, out),
        Prim::I16 => encode_varint(i64::from(bits as i16) as u64, out),
        Prim::I32 => encode_varint(i64::from(bits as i32) as u64, out),
        _ => encode_varint(bits, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of `count` numbers of 4 bytes; the first is 1.
    fn numbers(count: u32) -> Vec<u8> {
        let numbers = (1..=count).flat_map(u32::to_le_bytes);
        [0, 1, 0, 0].into_iter().chain(numbers).collect()
    }

    #[test]
    fn keeps_fields_with_equal_json_names_apart() {
        let cdr = CdrType::new("a/msg/B", "int32 x1\nint32 x_1\nint32 xY\nint32 x_y\n").unwrap();
        let message = cdr.to_protobuf(&numbers(4)).unwrap();
        let decoded = rnet::schema::Dynamic::decode(cdr.schema(), &message).unwrap();
        let json = decoded.to_json(&Default::default());
        assert_eq!(json, serde_json::json!({"x1": 1, "x_1": 2, "xY": 3, "x_y": 4}));
    }

    #[test]
    fn parses_type_names_of_services_and_actions() {
        for (name, text, full) in [
            ("a/srv/Add_Request", "int32 n", "a.srv.Add_Request"),
            ("a/action/Go_Goal", "a/msg/P p\n===\nMSG: a/P\nint32 n", "a.action.Go_Goal"),
            (
                "a/action/Go_FeedbackMessage",
                "Go_Feedback feedback\n===\nMSG: a/action/Go_Feedback\nint32 n",
                "a.action.Go_FeedbackMessage",
            ),
        ] {
            let cdr = CdrType::new(name, text).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_eq!(cdr.schema().name(), full);
            assert!(!cdr.to_protobuf(&numbers(1)).unwrap().is_empty(), "{name}");
        }
        assert!(CdrType::new("a/b/C", "int32 n").is_err());
    }

    #[test]
    fn empty_description_accepts_only_empty_messages() {
        let cdr = CdrType::new("std_msgs/msg/Empty", "").unwrap();
        for len in [1, 4] {
            let message = [&[0, 1, 0, 0][..], &vec![0; len]].concat();
            assert_eq!(cdr.to_protobuf(&message).unwrap(), b"");
        }
        let why = cdr.to_protobuf(&numbers(2)).unwrap_err();
        assert!(why.contains("does not describe std_msgs/Empty"), "{why}");
    }
}
