//! `rnet state list`.

use rnet::state::{Entry, State};
use serde_json::json;

use super::args::ListArgs;
use super::target::StateTarget;
use super::{document, hint};
use crate::context::Context;
use crate::failure::Outcome;
use crate::{domain, table};
use rnet_format::value::text;

/// Maximum number of characters of a value in a table.
const MAX_VALUE_CHARS: usize = 40;

const TITLES: [&str; 8] = ["KEY", "TYPE", "VALUE", "REVISION ", "OWNER", "AGE ", "TTL ", "DURABLE"];

pub fn run(context: &mut Context, args: ListArgs) -> Outcome {
    let at = StateTarget::observe(context, &args.prefix, &args.own_node)?;
    let (revision, entries) = at.list()?;
    if entries.is_empty() {
        match at.host {
            Some(host) => {
                context.eprintln(format_args!("no keys under {} on host {host}", at.name))
            }
            None => report_none(context, at.local_state(), at.name)?,
        }
    }
    if context.json() {
        let keys: Vec<_> = entries.iter().map(document::of).collect();
        return match at.host {
            Some(host) => context.document(&json!({"host": host, "keys": keys})),
            None => {
                let domain = context.domain()?;
                let id = domain.id();
                context.document(&json!({"domain": id, "revision": revision, "keys": keys}))
            }
        };
    }
    if args.long {
        return table::print(context, &TITLES, &entries.iter().map(row).collect::<Vec<_>>());
    }
    entries.iter().try_for_each(|entry| context.line(format_args!("{}", entry.key)))
}

/// Reports that no keys exist under the prefix, or in the domain.
fn report_none(context: &Context, state: Option<&State>, prefix: &str) -> Outcome {
    match state {
        Some(state) if !state.keys("")?.is_empty() => {
            let near = hint::nearest_key(state, prefix.trim_end_matches('/'));
            let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
            let domain = context.location()?;
            context
                .eprintln(format_args!("no keys under {prefix} in domain {}{hint}", domain.id()));
            Ok(())
        }
        _ => domain::report_none_found(context, "keys"),
    }
}

fn row(entry: &Entry) -> Vec<String> {
    let ttl = entry.ttl_left().map(table::uptime);
    vec![
        entry.key.clone(),
        entry.value.type_name().to_owned(),
        text::line(&entry.value, MAX_VALUE_CHARS),
        entry.revision.to_string(),
        entry.owner.node.clone(),
        table::uptime(document::elapsed_since(entry.owner.written_unix_ns)),
        ttl.unwrap_or_else(|| "-".to_owned()),
        if entry.durable { "yes" } else { "no" }.to_owned(),
    ]
}
