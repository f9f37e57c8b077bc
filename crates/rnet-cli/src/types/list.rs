//! `rnet type list`.

use rnet::schema::is_nested;
use rnet_schema::reflect::ReflectSchema;

use rnet::MessageType;
use rnet::msgs::plain::HeaderDescription;
use serde_json::json;

use super::args::TypeListArgs;
use crate::context::Context;
use crate::failure::Outcome;
use crate::snapshot::{check_host, take_snapshot};
use crate::{domain, table};
use rnet_format::suggestions::did_you_mean;
use rnet_format::text::{escape_controls, first_sentence};
use rnet_format::types::Catalog;
use rnet_monitor::link::own_host;
use rnet_monitor::used_types::{UsedType, types};

pub fn run(context: &mut Context, args: TypeListArgs) -> Outcome {
    let from_files = !args.files.proto.is_empty() || !args.files.include.is_empty();
    let is_asked = args.in_use || args.host.is_some();
    if is_asked || context.global().domain.is_some() && !from_files {
        return in_use(context, args.word.as_deref(), args.host.as_deref());
    }
    let catalog = Catalog::of(&args.files.proto, &args.files.include)?;
    let mut rows = Vec::new();
    let mut documents = Vec::new();
    for name in catalog.names().filter(|name| !is_nested(name, catalog.names())) {
        let message_type = catalog.get(name)?;
        let plain = match &message_type {
            MessageType::Plain(plain) => HeaderDescription::find(plain),
            _ => None,
        };
        let comment = match (&message_type, &plain) {
            (MessageType::Protobuf(schema), _) => schema.docs().get(name).unwrap_or_default(),
            (_, described) => described.as_ref().map_or("", |described| described.comment),
        };
        if !args.word.as_deref().is_none_or(|word| {
            contains_ignoring_case(name, word) || contains_ignoring_case(comment, word)
        }) {
            continue;
        }
        let sentence = first_sentence(comment);
        if context.json() {
            let mut document = json!({"name": name, "kind": "plain", "comment": sentence});
            if let MessageType::Protobuf(schema) = &message_type {
                document["kind"] = "protobuf".into();
                document["import"] = schema.descriptor().parent_file().name().into();
                document["path"] = json!(catalog.path(name));
                document["hash"] = schema.hash().to_string().into();
            }
            documents.push(document);
        } else {
            let kind = if plain.is_some() { "(plain) " } else { "" };
            rows.push(vec![name.to_owned(), format!("{kind}{}", escape_controls(&sentence))]);
        }
    }
    if context.json() {
        return context.document(&json!({"types": documents}));
    }
    for line in table::lines(&rows, usize::MAX, false) {
        context.line(format_args!("{line}"))?;
    }
    Ok(())
}

/// The types of the domain's topics, with the topics.
fn in_use(context: &mut Context, word: Option<&str>, host: Option<&str>) -> Outcome {
    let (domain, snapshot) = take_snapshot(context)?;
    let own = own_host(&snapshot);
    let mut used = types(&snapshot, None);
    if let Some(host) = host {
        check_host(&snapshot, &own, host)?;
        used.retain(|used| used.hosts(&own).contains(host));
    }
    if used.is_empty() {
        domain::report_none_found(context, "types")?;
    } else if let Some(word) = word {
        let names: Vec<String> = used.iter().map(|used| used.name().to_owned()).collect();
        used.retain(|used| contains_ignoring_case(used.name(), word));
        if used.is_empty() {
            let hint = did_you_mean(word, names.iter().map(String::as_str))
                .unwrap_or_else(|| format!("types in use: {}", names.join(", ")));
            context.eprintln(format_args!(
                "no type in domain {} contains {word} in its name; {hint}",
                domain.id()
            ));
        }
    }
    if context.json() {
        let documents = used.iter().map(|used| {
            json!({
                "name": used.name(),
                "kind": if used.plain().is_some() { "plain" } else { "protobuf" },
                "hash": used.desc.as_protobuf().map(|named| &named.schema),
                "topics": used.topics,
                "nodes": used.nodes,
                "hosts": used.hosts(&own),
            })
        });
        let documents: Vec<_> = documents.collect();
        return context.document(&json!({"domain": domain.id(), "types": documents}));
    }
    let row = |used: &UsedType<'_>| vec![used.name().to_owned(), used.topics.join(", ")];
    // If all topics are on one host, its name is omitted.
    if !snapshot.remote.is_empty() {
        let hosts =
            |used: &UsedType<'_>| used.hosts(&own).into_iter().collect::<Vec<_>>().join(", ");
        let rows: Vec<_> =
            used.iter().map(|used| [row(used), vec![hosts(used)]].concat()).collect();
        return table::print(context, &["TYPE", "TOPICS", "HOST"], &rows);
    }
    let rows = used.iter().map(row);
    for line in table::lines(&rows.collect::<Vec<_>>(), usize::MAX, false) {
        context.line(format_args!("{line}"))?;
    }
    Ok(())
}

fn contains_ignoring_case(text: &str, word: &str) -> bool {
    text.to_lowercase().contains(&word.to_lowercase())
}
