//! Filters the bytes of a descriptor set before anything is built.
//!
//! An empty descriptor takes two bytes on the wire and hundreds in memory, so a megabyte of them is a bomb.
//! This pass walks the wire format by hand, counts records against the limits, and copies only the parts of a
//! schema: files, messages, fields, enums and their comments. It drops services, extensions (but not their
//! number ranges) and options of other tools, and later steps never see them.

use crate::error::SchemaError;
use crate::limits::{
    MAX_SCHEMA_ENUM_VALUES, MAX_SCHEMA_FIELDS, MAX_SCHEMA_FILES, MAX_SCHEMA_LEN_BYTES,
    MAX_SCHEMA_NESTING, MAX_SCHEMA_RECORDS, MAX_SCHEMA_TYPES,
};
use crate::wire::{Fault, Reader, WireValue, put_len_record};

/// The kind of a length-delimited record of the set.
#[derive(Clone, Copy, PartialEq)]
enum Node {
    Set,
    File,
    Message,
    Enum,
    EnumValue,
    Field,
    Oneof,
    Range,
    FieldOptions,
    MessageOptions,
    EnumOptions,
    SourceInfo,
    Location,
    /// A name, a comment or a list of numbers: copied unchanged.
    Leaf,
}

/// The kind of the field with this number in a node; `None` drops it. The numbers are those of
/// `google/protobuf/descriptor.proto`.
fn child(node: Node, number: u32) -> Option<Node> {
    Some(match (node, number) {
        (Node::Set, 1) => Node::File,
        // name, package, dependency, public_dependency, syntax, edition
        (Node::File, 1..=3 | 10 | 12 | 14) => Node::Leaf,
        (Node::File, 4) | (Node::Message, 3) => Node::Message,
        (Node::File, 5) | (Node::Message, 4) => Node::Enum,
        (Node::File, 9) => Node::SourceInfo,
        (Node::Message, 2) => Node::Field,
        (Node::Message, 7) => Node::MessageOptions,
        (Node::Message, 8) => Node::Oneof,
        // extension_range, reserved_range
        (Node::Message, 5 | 9) | (Node::Enum, 4) => Node::Range,
        // name and reserved names
        (Node::Message, 1 | 10) | (Node::Enum, 1 | 5) => Node::Leaf,
        (Node::Enum, 2) => Node::EnumValue,
        (Node::Enum, 3) => Node::EnumOptions,
        (Node::EnumValue, 1 | 2) | (Node::Oneof, 1) | (Node::Range, 1 | 2) => Node::Leaf,
        // name, number, label, type, type_name, default, oneof, json_name, proto3_optional
        (Node::Field, 1 | 3 | 4 | 5 | 6 | 7 | 9 | 10 | 17) => Node::Leaf,
        (Node::Field, 8) => Node::FieldOptions,
        // packed; map_entry and message_set_wire_format; allow_alias
        (Node::FieldOptions, 2) | (Node::MessageOptions, 1 | 7) | (Node::EnumOptions, 2) => {
            Node::Leaf
        }
        (Node::SourceInfo, 1) => Node::Location,
        // path, comment before, comment after
        (Node::Location, 1 | 3 | 4) => Node::Leaf,
        _ => return None,
    })
}

#[derive(Default)]
struct Counts {
    files: usize,
    types: usize,
    fields: usize,
    values: usize,
    records: usize,
}

impl Counts {
    fn add(&mut self, node: Node) -> Result<(), SchemaError> {
        let (count, what, limit_name, limit) = match node {
            Node::File => (&mut self.files, "files", "MAX_SCHEMA_FILES", MAX_SCHEMA_FILES),
            Node::Message | Node::Enum => {
                (&mut self.types, "messages and enums", "MAX_SCHEMA_TYPES", MAX_SCHEMA_TYPES)
            }
            Node::Field => (&mut self.fields, "fields", "MAX_SCHEMA_FIELDS", MAX_SCHEMA_FIELDS),
            Node::EnumValue => {
                (&mut self.values, "enum values", "MAX_SCHEMA_ENUM_VALUES", MAX_SCHEMA_ENUM_VALUES)
            }
            _ => (&mut self.records, "records", "MAX_SCHEMA_RECORDS", MAX_SCHEMA_RECORDS),
        };
        *count += 1;
        if *count <= limit {
            return Ok(());
        }
        Err(limit_error(
            &format!("number of {what} of the descriptor set"),
            limit_name,
            limit,
            *count,
        ))
    }
}

fn limit_error(what: &str, limit_name: &'static str, limit: usize, found: usize) -> SchemaError {
    SchemaError::Limit { what: what.to_owned(), limit_name, limit, found }
}

fn fault((offset, why): Fault) -> SchemaError {
    SchemaError::Malformed { offset, why }
}

/// The set, reduced to the parts of a schema and within the limits.
pub(crate) fn filter(bytes: &[u8]) -> Result<Vec<u8>, SchemaError> {
    if bytes.len() > MAX_SCHEMA_LEN_BYTES {
        let what = "length of the descriptor set in bytes";
        return Err(limit_error(what, "MAX_SCHEMA_LEN_BYTES", MAX_SCHEMA_LEN_BYTES, bytes.len()));
    }
    let mut out = Vec::with_capacity(bytes.len());
    copy(Node::Set, Reader::new((bytes, 0)), 0, &mut Counts::default(), &mut out)?;
    Ok(out)
}

/// Copies one node. The recursion depth is that of nested messages plus a few fixed levels.
fn copy(
    node: Node,
    mut reader: Reader<'_>,
    depth: usize,
    counts: &mut Counts,
    out: &mut Vec<u8>,
) -> Result<(), SchemaError> {
    while let Some(record) = reader.next_record().map_err(fault)? {
        let Some(kind) = child(node, record.number) else { continue };
        counts.add(kind)?;
        match record.value {
            WireValue::Bytes(body) if kind != Node::Leaf => {
                let depth = depth + usize::from(kind == Node::Message);
                if depth > MAX_SCHEMA_NESTING {
                    let what = "depth of messages declared in messages";
                    return Err(limit_error(what, "MAX_SCHEMA_NESTING", MAX_SCHEMA_NESTING, depth));
                }
                let mut inner = Vec::new();
                copy(kind, Reader::new(body), depth, counts, &mut inner)?;
                put_len_record(record.number, &inner, out);
            }
            _ => out.extend_from_slice(record.raw),
        }
    }
    Ok(())
}
