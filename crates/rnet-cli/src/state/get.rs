//! `rnet state get`.

use std::io::Write;

use rnet::MessageType;
use rnet::schema::{self, Dynamic, JsonOptions, TextOptions};
use rnet::state::Value;
use serde_json::Value as Json;

use super::args::GetArgs;
use super::text::{self, Limits};
use super::{document, hint, join_to_look};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::render::{self, FieldPath};
use crate::topic::plain_text;

pub fn run(context: &mut Context, args: GetArgs) -> Outcome {
    let session = join_to_look(context, &args.node)?;
    let state = session.as_ref().map(|session| &session.state);
    let entry = state.map(|state| state.entry(&args.key)).transpose()?.flatten();
    let Some(entry) = entry else {
        return Err(hint::no_key(state, context.domain()?.id(), &args.key));
    };
    let limits = Limits::of(args.truncate_length, args.full_length);
    if context.json() {
        let mut document = document::of(&entry);
        if let Some(path) = &args.field {
            document["value"] = field_json(&entry.value, path)?;
        }
        return context.document(&document);
    }
    if args.raw {
        let bytes = match &entry.value {
            Value::Bytes(bytes) => bytes,
            Value::Message(message) => message.bytes(),
            other => {
                return Err(Failure::Failed(format!(
                    "{} holds a value of type {}, which has no bytes of its own; leave out --raw",
                    args.key,
                    other.type_name()
                )));
            }
        };
        context.out().write_all(bytes)?;
        return Ok(());
    }
    let out = context.out();
    match &args.field {
        None => text::print(out, &entry.value, limits)?,
        Some(path) => print_field(out, &entry.value, path, limits)?,
    }
    Ok(())
}

/// A field, as a message of that field alone would be printed.
fn print_field(out: &mut impl Write, value: &Value, path: &FieldPath, limits: Limits) -> Outcome {
    if let Value::Message(message) = value {
        match message.message_type() {
            MessageType::Protobuf(schema) => {
                let (message, path) = protobuf_field(schema, message.bytes(), path)?;
                let (max_elements, max_bytes) = (limits.elements, limits.field_bytes);
                let text = message.get_text(&path, &TextOptions { max_elements, max_bytes });
                // An element or entry that this message does not have.
                out.write_all(text.unwrap_or_else(|| "null\n".to_owned()).as_bytes())?;
                return Ok(());
            }
            MessageType::Plain(plain) => {
                let shown = plain_text::readable(plain, message.bytes());
                let field = path.pick(&shown).map_err(Failure::Failed)?;
                render::by_field(out, field, limits.elements)?;
                return Ok(());
            }
            MessageType::Raw => {}
        }
    }
    match field_json(value, path)? {
        Json::String(text) => writeln!(out, "{text}")?,
        other => writeln!(out, "{other}")?,
    }
    Ok(())
}

fn field_json(value: &Value, path: &FieldPath) -> Outcome<Json> {
    match value {
        Value::Message(message) => match message.message_type() {
            MessageType::Protobuf(schema) => {
                let (message, path) = protobuf_field(schema, message.bytes(), path)?;
                let options = JsonOptions {
                    proto_names: true,
                    defaults: true,
                    plain_integers: true,
                    ..JsonOptions::default()
                };
                return Ok(message.get_json(&path, &options).unwrap_or(Json::Null));
            }
            MessageType::Plain(plain) => {
                let shown = plain.format(message.bytes());
                return path.pick(&shown).cloned().map_err(Failure::Failed);
            }
            MessageType::Raw => {}
        },
        Value::Json(_) => return path.pick(&text::json(value)).cloned().map_err(Failure::Failed),
        _ => {}
    }
    Err(Failure::Failed(format!(
        "a value of type {} has no fields; leave out --field",
        value.type_name()
    )))
}

fn protobuf_field(
    schema: &schema::Schema,
    bytes: &[u8],
    path: &FieldPath,
) -> Outcome<(Dynamic, schema::FieldPath)> {
    let path = schema::FieldPath::parse(schema, path.text());
    let path = path.map_err(|e| Failure::Failed(e.to_string()))?;
    let message = Dynamic::decode(schema, bytes)
        .map_err(|e| Failure::Failed(format!("the value is no {}: {e}", schema.name())))?;
    Ok((message, path))
}
