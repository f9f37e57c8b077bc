//! `rnet type show`.

use std::io::Write;
use std::path::Path;

use rnet::schema::prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use rnet::schema::{Docs, Schema};
use serde_json::{Value, json};

use super::args::TypeShowArgs;
use super::catalog::Catalog;
use super::proto_text::{field_type, proto_text, split_unit};
use crate::context::Context;
use crate::failure::{Failure, Outcome};

pub fn run(context: &mut Context, args: TypeShowArgs) -> Outcome {
    let name = args.name.as_deref().unwrap_or_default();
    let schema = Catalog::of(&args.files)?.find(name)?;
    if let Some(path) = &args.descriptor_set {
        return write_set(context, &schema, path);
    }
    if context.json() {
        return context.document(&document(&schema, args.all));
    }
    context.line(format_args!("// {}, hash {}", schema.name(), schema.hash()))?;
    let text = proto_text(&schema, args.all);
    context.out().write_all(text.as_bytes())?;
    Ok(())
}

fn write_set(context: &mut Context, schema: &Schema, path: &Path) -> Outcome {
    let bytes = schema.descriptor_set_with_docs();
    if path == Path::new("-") {
        context.out().write_all(&bytes)?;
        return Ok(());
    }
    std::fs::write(path, &bytes)
        .map_err(|e| Failure::Failed(format!("cannot write {}: {e}", path.display())))?;
    let (name, len) = (schema.name(), bytes.len());
    context.say(format_args!("{name}: {len} bytes written to {}", path.display()));
    Ok(())
}

/// The type as JSON: the message first, then what it needs.
fn document(schema: &Schema, all: bool) -> Value {
    let asked = schema.descriptor();
    let mut messages = vec![message(asked, schema.docs())];
    let mut enums = Vec::new();
    let inside =
        |name: &str| name.strip_prefix(asked.full_name()).is_some_and(|rest| rest.starts_with('.'));
    let pool = asked.parent_pool();
    for other in pool.all_messages().filter(|m| m != asked && !m.is_map_entry()) {
        if inside(other.full_name()) || all && !is_protobufs(other.full_name()) {
            messages.push(message(&other, schema.docs()));
        }
    }
    for other in pool.all_enums() {
        if inside(other.full_name()) || all && !is_protobufs(other.full_name()) {
            enums.push(enumeration(&other, schema.docs()));
        }
    }
    json!({
        "name": schema.name(),
        "kind": "protobuf",
        "hash": schema.hash().to_string(),
        "messages": messages,
        "enums": enums,
    })
}

fn is_protobufs(full_name: &str) -> bool {
    full_name.starts_with("google.protobuf.")
}

fn message(message: &MessageDescriptor, docs: &Docs) -> Value {
    let fields: Vec<Value> = message.fields().map(|f| field(&f, docs)).collect();
    json!({
        "name": message.full_name(),
        "import": message.parent_file().name(),
        "comment": docs.get(message.full_name()),
        "fields": fields,
    })
}

fn field(field: &FieldDescriptor, docs: &Docs) -> Value {
    let (comment, unit) = split_unit(docs.get(field.full_name()).unwrap_or_default());
    let refers_to = match field.kind() {
        Kind::Message(entry) if field.is_map() => match entry.map_entry_value_field().kind() {
            Kind::Message(of) => Some(of.full_name().to_owned()),
            Kind::Enum(of) => Some(of.full_name().to_owned()),
            _ => None,
        },
        Kind::Message(of) => Some(of.full_name().to_owned()),
        Kind::Enum(of) => Some(of.full_name().to_owned()),
        _ => None,
    };
    let oneof = field.containing_oneof().filter(|oneof| !oneof.is_synthetic());
    json!({
        "name": field.name(),
        "number": field.number(),
        "type": field_type(field),
        "type_name": refers_to,
        "repeated": field.is_list(),
        "unit": unit,
        "comment": (!comment.is_empty()).then_some(comment),
        "oneof": oneof.map(|oneof| oneof.name().to_owned()),
    })
}

fn enumeration(enumeration: &EnumDescriptor, docs: &Docs) -> Value {
    let value_doc = |name: &str| docs.get(&format!("{}.{name}", enumeration.full_name()));
    let values: Vec<Value> = enumeration
        .values()
        .map(|v| json!({"name": v.name(), "number": v.number(), "comment": value_doc(v.name())}))
        .collect();
    json!({
        "name": enumeration.full_name(),
        "comment": docs.get(enumeration.full_name()),
        "values": values,
    })
}
