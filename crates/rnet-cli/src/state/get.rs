//! `rnet state get`.

use std::io::Write;

use rnet::state::Value;
use serde_json::Value as Json;

use super::args::GetArgs;
use super::document;
use super::target::StateTarget;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use rnet_format::value::FieldPath;
use rnet_format::value::{Limits, Message, text, to_json};

pub fn run(context: &mut Context, args: GetArgs) -> Outcome {
    let at = StateTarget::observe(context, &args.key, &args.own_node)?;
    let Some(entry) = at.entry()? else { return Err(at.no_key(context)?) };
    let limits = Limits::of(args.limits.truncate_length, args.limits.full_length);
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
                    "{} holds a value of type {}, which has no raw bytes; omit --raw",
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

/// Prints a field as a message with only that field would be printed.
fn print_field(out: &mut impl Write, value: &Value, path: &FieldPath, limits: Limits) -> Outcome {
    if let Some(field) = message_field(value, path)? {
        return field.print(out, limits);
    }
    match field_json(value, path)? {
        Json::String(text) => writeln!(out, "{text}")?,
        other => writeln!(out, "{other}")?,
    }
    Ok(())
}

fn message_field<'a>(value: &'a Value, path: &'a FieldPath) -> Outcome<Option<Message<'a>>> {
    match value {
        Value::Message(message) => Ok(Message::field_of_state(message, path)?),
        _ => Ok(None),
    }
}

fn field_json(value: &Value, path: &FieldPath) -> Outcome<Json> {
    if let Some(field) = message_field(value, path)? {
        return field.json();
    }
    if let Value::Json(_) = value {
        return path.pick(&to_json(value)).cloned().map_err(Failure::Failed);
    }
    Err(Failure::Failed(format!(
        "a value of type {} has no fields; omit --field",
        value.type_name()
    )))
}
