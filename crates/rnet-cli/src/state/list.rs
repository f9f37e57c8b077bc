//! `rnet state list`.

use rnet::state::{Entry, State, split_host};
use serde_json::json;

use super::args::ListArgs;
use super::{document, hint, remote};
use crate::context::Context;
use crate::failure::Outcome;
use crate::session::join_to_look;
use crate::value::text;
use crate::{domain, table};

/// Characters of a value in a table.
const SHOWN_CHARS: usize = 40;

const TITLES: [&str; 8] = ["KEY", "TYPE", "VALUE", "REVISION ", "OWNER", "AGE ", "TTL ", "DURABLE"];

pub fn run(context: &mut Context, args: ListArgs) -> Outcome {
    if let Some((host, prefix)) = split_host(&args.prefix) {
        let entries = remote::list(context, (host, prefix), &args.me)?;
        if entries.is_empty() {
            context.say(format_args!("no keys under {prefix} on host {host}"));
        }
        if context.json() {
            let keys: Vec<_> = entries.iter().map(document::of).collect();
            return context.document(&json!({"host": host, "keys": keys}));
        }
        if !args.long {
            return entries
                .iter()
                .try_for_each(|entry| context.line(format_args!("{}", entry.key)));
        }
        return table::print(context, &TITLES, &entries.iter().map(row).collect::<Vec<_>>());
    }
    let session = join_to_look(context, "state", &args.me)?;
    let state = session.as_ref().map(|session| &session.state);
    if !args.long && !context.json() {
        let keys = state.map(|state| state.keys(&args.prefix)).transpose()?.unwrap_or_default();
        if keys.is_empty() {
            tell_none(context, state, &args.prefix)?;
        }
        return keys.iter().try_for_each(|key| context.line(format_args!("{key}")));
    }
    let snapshot = state.map(|state| state.snapshot(&args.prefix)).transpose()?;
    let (revision, entries) =
        snapshot.map_or_else(Default::default, |picture| (picture.revision, picture.entries));
    if entries.is_empty() {
        tell_none(context, state, &args.prefix)?;
    }
    if context.json() {
        let domain = context.domain()?;
        let keys: Vec<_> = entries.values().map(document::of).collect();
        return context.document(&json!({
            "domain": domain.id(),
            "revision": revision,
            "keys": keys,
        }));
    }
    table::print(context, &TITLES, &entries.values().map(row).collect::<Vec<_>>())
}

/// Nothing is under the prefix, or in the domain.
fn tell_none(context: &Context, state: Option<&State>, prefix: &str) -> Outcome {
    match state {
        Some(state) if !state.keys("")?.is_empty() => {
            let near = hint::near(state, prefix.trim_end_matches('/'));
            let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
            let domain = context.location()?;
            context.say(format_args!("no keys under {prefix} in domain {}{hint}", domain.id()));
            Ok(())
        }
        _ => domain::tell_none(context, "keys"),
    }
}

fn row(entry: &Entry) -> Vec<String> {
    let ttl = entry.ttl_left().map(table::uptime);
    vec![
        entry.key.clone(),
        entry.value.type_name().to_owned(),
        text::line(&entry.value, SHOWN_CHARS),
        entry.revision.to_string(),
        entry.owner.node.clone(),
        table::uptime(document::ago(entry.owner.written_unix_ns)),
        ttl.unwrap_or_else(|| "-".to_owned()),
        if entry.durable { "yes" } else { "no" }.to_owned(),
    ]
}
