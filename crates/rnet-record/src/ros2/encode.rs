//! Encodes values as CDR, little endian, according to a ROS 2 description.

use std::collections::BTreeMap;

use rnet::Prim;

use super::decode::HEADER_LEN_BYTES;
use super::definition::{Arity, Base, Definition, Field};

/// A value before its conversion to the type of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A 64-bit integer, signed or unsigned.
    Int(i128),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Message(Fields),
}

pub type Fields = BTreeMap<String, Value>;

/// Encodes a message of the type. Missing fields become 0, empty, or `false`; fields unknown to the type are
/// omitted.
pub fn encode(definition: &Definition, fields: &Fields) -> Vec<u8> {
    let mut out = CdrWriter(vec![0, 1, 0, 0]);
    out.message(definition, &definition.name, Some(fields));
    out.0
}

struct CdrWriter(Vec<u8>);

impl CdrWriter {
    /// Alignment is relative to the end of the header.
    fn align(&mut self, to: usize) {
        let len = (self.0.len() - HEADER_LEN_BYTES).next_multiple_of(to);
        self.0.resize(len + HEADER_LEN_BYTES, 0);
    }

    fn number(&mut self, of: Prim, value: Option<&Value>) {
        self.align(of.size());
        let (int, float) = match value {
            Some(Value::Int(int)) => (*int, *int as f64),
            Some(Value::Float(float)) => ((*float as i64).into(), *float),
            _ => (0, 0.0),
        };
        match of {
            Prim::F32 => self.0.extend_from_slice(&(float as f32).to_le_bytes()),
            Prim::F64 => self.0.extend_from_slice(&float.to_le_bytes()),
            _ => self.0.extend_from_slice(&int.to_le_bytes()[..of.size()]),
        }
    }

    fn len(&mut self, len: usize) {
        self.align(4);
        self.0.extend_from_slice(&(len as u32).to_le_bytes());
    }

    fn text(&mut self, value: Option<&Value>) {
        let text = match value {
            Some(Value::Text(text)) => text.as_str(),
            _ => "",
        };
        self.len(text.len() + 1);
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(0);
    }

    fn message(&mut self, definition: &Definition, of: &str, values: Option<&Fields>) {
        let fields = definition.fields(of);
        if fields.is_empty() {
            self.0.push(0);
        }
        for field in fields {
            let value = values.and_then(|values| values.get(&field.name));
            self.field(definition, field, value);
        }
    }

    fn field(&mut self, definition: &Definition, field: &Field, value: Option<&Value>) {
        if field.arity == Arity::Single {
            return self.one(definition, &field.base, value);
        }
        if let (Base::Number(Prim::U8), Some(Value::Bytes(bytes))) = (&field.base, value) {
            let len = match field.arity {
                Arity::Fixed(len) => len as usize,
                _ => bytes.len(),
            };
            if field.arity == Arity::Sequence {
                self.len(len);
            }
            let begin = self.0.len();
            self.0.extend_from_slice(&bytes[..len.min(bytes.len())]);
            return self.0.resize(begin + len, 0);
        }
        let values = match value {
            Some(Value::List(values)) => values.as_slice(),
            _ => &[],
        };
        let len = match field.arity {
            Arity::Fixed(len) => len as usize,
            _ => values.len(),
        };
        if field.arity == Arity::Sequence {
            self.len(len);
        }
        for n in 0..len {
            self.one(definition, &field.base, values.get(n));
        }
    }

    fn one(&mut self, definition: &Definition, base: &Base, value: Option<&Value>) {
        match (base, value) {
            (Base::Number(of), _) => self.number(*of, value),
            (Base::Text, _) => self.text(value),
            (Base::Type(inner), Some(Value::Message(fields))) => {
                self.message(definition, inner, Some(fields));
            }
            (Base::Type(inner), _) => self.message(definition, inner, None),
        }
    }
}
