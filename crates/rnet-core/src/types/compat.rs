//! Whether a publisher and a subscriber mean the same struct, and the first place where they do not.
//!
//! Layouts are compared field by field, by name and offset, so that a struct written with `#[repr(C)]` in Rust and one
//! written with `ctypes` in Python agree exactly when their bytes do. Padding is left out on both sides: Rust names
//! it (`_pad`), C and ctypes leave a gap.

use super::{Field, FieldType, PlainType, TypeDesc};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The first difference between a publisher's and a subscriber's type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TypeMismatch {
    /// The field, from the outside in: `pose.x`, `legs[].force`. Empty when the types as a whole differ.
    pub field_path: String,
    /// What the publisher has there, in words.
    pub publisher: String,
    /// What the subscriber has there, in words.
    pub subscriber: String,
}

impl std::fmt::Display for TypeMismatch {
    /// ``field `pose.x`: publisher has f64 at 8, subscriber has f32 at 8``.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.field_path.is_empty() {
            write!(f, "field `{}`: ", self.field_path)?;
        }
        write!(f, "publisher has {}, subscriber has {}", self.publisher, self.subscriber)
    }
}

impl std::error::Error for TypeMismatch {}

/// Whether a subscriber of one type can read what a publisher of the other sends. A raw subscriber takes everything; a plain
/// one takes the same plain type: name, size, and the name, offset and type of every field that is not padding.
///
/// # Errors
/// The first difference. Offsets in it count from the start of the message (in arrays, of the first element).
pub fn compatible(publisher: &TypeDesc, subscriber: &TypeDesc) -> Result<(), TypeMismatch> {
    match (publisher, subscriber) {
        (_, TypeDesc::Raw) => Ok(()),
        (TypeDesc::Plain(p), TypeDesc::Plain(s)) => {
            if p.name != s.name {
                return mismatch("", publisher.to_string(), subscriber.to_string());
            }
            structs("", 0, p, s)?;
            if p.size != s.size {
                return mismatch("", publisher.to_string(), subscriber.to_string());
            }
            Ok(())
        }
        // Of the same fingerprint; whoever has both descriptor sets says more.
        (TypeDesc::Protobuf(p), TypeDesc::Protobuf(s)) if p == s => Ok(()),
        _ => mismatch("", publisher.to_string(), subscriber.to_string()),
    }
}

/// `pose` and `x` make `pose.x`.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn mismatch(path: &str, publisher: String, subscriber: String) -> Result<(), TypeMismatch> {
    Err(TypeMismatch { field_path: path.to_owned(), publisher, subscriber })
}

/// The fields of two structs that start `base` bytes into the message. Names and sizes of the structs themselves are the caller's.
fn structs(path: &str, base: usize, p: &PlainType, s: &PlainType) -> Result<(), TypeMismatch> {
    let shown = |field: &Field| format!("{} at {}", field.ty, base.saturating_add(field.offset));
    let of = |fields: &'_ [Field]| -> Vec<Field> {
        fields.iter().filter(|f| !f.is_padding()).cloned().collect()
    };
    let (p_fields, s_fields) = (of(&p.fields), of(&s.fields));
    let s_by_name: HashMap<&str, &Field> = s_fields.iter().map(|f| (f.name.as_str(), f)).collect();
    for pf in &p_fields {
        let at = join(path, &pf.name);
        let Some(sf) = s_by_name.get(pf.name.as_str()) else {
            return mismatch(&at, shown(pf), "no such field".to_owned());
        };
        // The inside first: "`pose.x`: f64, f32" says more than "`pose`: 24 bytes, 20 bytes".
        types(&at, base.saturating_add(pf.offset), &pf.ty, &sf.ty, &shown(pf), &shown(sf))?;
        if pf.offset != sf.offset {
            return mismatch(&at, shown(pf), shown(sf));
        }
    }
    let p_names: std::collections::HashSet<&str> =
        p_fields.iter().map(|f| f.name.as_str()).collect();
    match s_fields.iter().find(|sf| !p_names.contains(sf.name.as_str())) {
        Some(sf) => mismatch(&join(path, &sf.name), "no such field".to_owned(), shown(sf)),
        None => Ok(()),
    }
}

fn types(
    path: &str,
    base: usize,
    p: &FieldType,
    s: &FieldType,
    p_shown: &str,
    s_shown: &str,
) -> Result<(), TypeMismatch> {
    let differ = || mismatch(path, p_shown.to_owned(), s_shown.to_owned());
    match (p, s) {
        (FieldType::Prim(p), FieldType::Prim(s)) if p == s => Ok(()),
        (FieldType::Array { of: p, len: p_len }, FieldType::Array { of: s, len: s_len }) => {
            if p_len != s_len {
                return differ();
            }
            let elements = if matches!(**p, FieldType::Struct(_)) {
                format!("{path}[]")
            } else {
                path.to_owned()
            };
            types(&elements, base, p, s, p_shown, s_shown)
        }
        (FieldType::Struct(p), FieldType::Struct(s)) => {
            if p.name != s.name {
                return differ();
            }
            structs(path, base, p, s)?;
            if p.size != s.size { differ() } else { Ok(()) }
        }
        _ => differ(),
    }
}
