//! `rnet param list`.

use serde_json::{Value as Json, json};

use super::args::ListArgs;
use super::find::Named;
use super::{find, text};
use crate::context::Context;
use crate::failure::Outcome;
use crate::value::tame;
use crate::{domain, table};

pub fn run(context: &mut Context, args: &ListArgs) -> Outcome {
    let id = context.domain()?.id().to_owned();
    let mut all = find::look_at(context, args.there.host.as_deref(), &args.me)?;
    if let Some(node) = &args.node {
        all = find::of_node(all, &id, node)?;
    }
    if all.is_empty() {
        domain::tell_none(context, "parameters")?;
    }
    for (node, name, info) in &all {
        if let Some(problem) = &info.problem {
            context.say(format_args!(
                "rnet: parameter {name} of {node}: its description cannot be read: {problem}"
            ));
        }
    }
    if context.json() {
        let params: Vec<Json> =
            all.iter().map(|(node, name, info)| super::document(node, name, info)).collect();
        return context.document(&json!({"domain": id, "params": params}));
    }
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    table::print(context, &["NODE", "NAME", "VALUE", "UNIT", "FROM"], &rows)
}

pub fn row((node, name, info): &Named) -> Vec<String> {
    let unit = info.description.as_ref().map_or("", |d| d.unit.as_str());
    vec![
        node.clone(),
        name.clone(),
        info.value().map(text::line).unwrap_or_default(),
        tame(unit).into_owned(),
        text::origin(info),
    ]
}
