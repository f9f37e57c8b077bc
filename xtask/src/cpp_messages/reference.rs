//! Filled messages, encoded by prost-reflect: the encoder in C++ is compared with them.
//!
//! A field with number n gets values of x = 1000 n, and a list those of x and x + 1. cpp/tests/test_messages.cpp
//! has the same rule.

use rnet_schema::prost_reflect::prost::Message;
use rnet_schema::prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};

/// Length and FNV-1a hash of the filled message in the wire format.
pub fn len_and_hash(message: &MessageDescriptor) -> Result<(usize, u64), String> {
    let bytes = filled(message)?.encode_to_vec();
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    Ok((bytes.len(), hash))
}

fn filled(of: &MessageDescriptor) -> Result<DynamicMessage, String> {
    let mut message = DynamicMessage::new(of.clone());
    for field in of.fields() {
        let x = 1000 * field.number();
        let value = match field.is_list() {
            true => Value::List(vec![value(&field, x)?, value(&field, x + 1)?]),
            false => value(&field, x)?,
        };
        message.try_set_field(&field, value).map_err(|e| format!("{}: {e}", field.full_name()))?;
    }
    Ok(message)
}

fn value(field: &FieldDescriptor, x: u32) -> Result<Value, String> {
    let signed = i64::from(x);
    Ok(match field.kind() {
        Kind::Double => Value::F64(f64::from(x) + 0.5),
        Kind::Float => Value::F32(x as f32 + 0.25),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(-(x as i32)),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(-signed << 33),
        Kind::Uint32 | Kind::Fixed32 => Value::U32(x.wrapping_mul(100_003)),
        Kind::Uint64 | Kind::Fixed64 => Value::U64(u64::from(x) << 45),
        Kind::Bool => Value::Bool(x.is_multiple_of(2)),
        Kind::String => Value::String(format!("{x} é € 😀")),
        Kind::Bytes => Value::Bytes(vec![x as u8, 0xff, 0].into()),
        Kind::Enum(_) => Value::EnumNumber(x as i32),
        Kind::Message(inner) => Value::Message(filled(&inner)?),
    })
}
