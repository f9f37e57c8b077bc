//! `rnet type show`.

use std::io::Write;
use std::path::Path;

use rnet::schema::Schema;
use rnet::{MessageType, PlainType, TypeDesc};
use serde_json::json;

use super::args::TypeShowArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::snapshot::snapshot_with_topic;
use rnet_format::types::Catalog;
use rnet_format::types::find;
use rnet_format::types::layout;
use rnet_format::types::proto_text;
use rnet_monitor::used_types::{UsedType, types};

pub fn run(context: &mut Context, args: TypeShowArgs) -> Outcome {
    match &args.topic {
        Some(topic) => of_topic(context, topic.as_str(), &args),
        None => by_name(context, args.name.as_deref().unwrap_or_default(), &args),
    }
}

/// A type of files, or a built-in one, or otherwise one of a topic of the domain.
fn by_name(context: &mut Context, name: &str, args: &TypeShowArgs) -> Outcome {
    let failure = match Catalog::of(&args.files.proto, &args.files.include)?.find(name) {
        Ok(MessageType::Protobuf(schema)) => return protobuf(context, &schema, args),
        Ok(MessageType::Plain(plain)) => return plain_type(context, &plain, args),
        Ok(MessageType::Raw) => Failure::Failed(format!("{name} is raw bytes without fields")),
        Err(error) => error,
    };
    if !args.files.proto.is_empty() {
        return Err(failure);
    }
    // A domain that cannot be inspected provides no types.
    let snapshot = context.domain().and_then(|mut domain| Ok(domain.snapshot()?));
    let Ok(snapshot) = snapshot else { return Err(failure) };
    let used = types(&snapshot, None);
    let Ok(full) = find(name, used.iter().map(UsedType::name), "") else { return Err(failure) };
    show(context, &used.iter().filter(|used| used.name() == full).collect::<Vec<_>>(), args)
}

fn of_topic(context: &mut Context, topic: &str, args: &TypeShowArgs) -> Outcome {
    let (_, snapshot) = snapshot_with_topic(context, topic)?;
    let used = types(&snapshot, Some(topic));
    if used.is_empty() {
        let what = format!("messages on {topic} are raw bytes without a type");
        return Err(Failure::Failed(what));
    }
    show(context, &used.iter().collect::<Vec<_>>(), args)
}

/// Shows the first version, and reports that others exist.
fn show(context: &mut Context, used: &[&UsedType<'_>], args: &TypeShowArgs) -> Outcome {
    let Some((first, others)) = used.split_first() else { return Ok(()) };
    for other in others {
        context.eprintln(format_args!(
            "another type or version is in use in {}: {} {}",
            other.nodes.join(", "),
            other.name(),
            other.desc.as_protobuf().map_or("", |named| &named.schema)
        ));
    }
    match (first.schema, first.plain()) {
        (Some(schema), _) => protobuf(context, schema, args),
        (None, Some(plain)) => plain_type(context, plain, args),
        (None, None) => Err(Failure::Failed(format!(
            "cannot read the definition of {} from {}",
            first.name(),
            first.nodes.join(", ")
        ))),
    }
}

fn plain_type(context: &mut Context, plain: &PlainType, args: &TypeShowArgs) -> Outcome {
    if args.descriptor_set.is_some() {
        let what = format!("{} is a plain type, which has no descriptor set", plain.name);
        return Err(Failure::Failed(what));
    }
    if context.json() {
        return context.document(&TypeDesc::Plain(plain.clone()));
    }
    let PlainType { name, size, align, tail, .. } = plain;
    let data = if *tail { ", followed by data" } else { "" };
    context.line(format_args!("plain type {name}: {size} bytes, aligned to {align}{data}"))?;
    layout(plain).iter().try_for_each(|line| context.line(format_args!("{line}")))
}

fn protobuf(context: &mut Context, schema: &Schema, args: &TypeShowArgs) -> Outcome {
    if let Some(path) = &args.descriptor_set {
        return write_set(context, schema, path);
    }
    let (name, hash, text) = (schema.name(), schema.hash(), proto_text(schema, args.all));
    if context.json() {
        let hash = hash.to_string();
        let kind = "protobuf";
        return context.document(&json!({"name": name, "kind": kind, "hash": hash, "proto": text}));
    }
    context.line(format_args!("// {name}, hash {hash}"))?;
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
    context.eprintln(format_args!("{name}: {len} bytes written to {}", path.display()));
    Ok(())
}
