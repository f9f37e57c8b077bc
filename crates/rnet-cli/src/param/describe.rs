//! `rnet param describe`.

use rnet::param::ParamInfo;
use serde_json::{Value as Json, json};

use super::args::DescribeArgs;
use super::{find, text};
use crate::context::Context;
use crate::failure::Outcome;
use crate::value::tame;

pub fn run(context: &mut Context, args: &DescribeArgs) -> Outcome {
    let domain = context.domain()?.id().to_owned();
    let all = find::look(context, &args.me)?;
    let is_node = args.name.is_none() && all.iter().any(|(node, ..)| node == args.node.as_str());
    let params = match is_node {
        true => find::of_node(all, &domain, &args.node)?,
        false => vec![find::one(all, &domain, &args.node, args.name.as_deref())?],
    };
    if context.json() {
        let documents: Vec<Json> =
            params.iter().map(|(node, name, info)| super::document(node, name, info)).collect();
        return context.document(&json!({"domain": domain, "params": documents}));
    }
    for (_, name, info) in &params {
        context.line(format_args!("{name}"))?;
        for (word, what) in rows(info) {
            context.line(format_args!("  {word}: {what}"))?;
        }
    }
    Ok(())
}

/// What there is to say, a line each.
fn rows(info: &ParamInfo) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("value", info.value().map_or_else(|| "none".to_owned(), text::line)),
        ("from", text::origin(info)),
    ];
    let Some(d) = &info.description else {
        rows.push(("declared", "not yet, or what was declared cannot be read".to_owned()));
        return rows;
    };
    rows.insert(0, ("type", d.kind.name().to_owned()));
    if let Some(default) = &d.default {
        rows.push(("default", text::line(default)));
    }
    let range = text::range(d);
    if !range.is_empty() {
        rows.push((if d.choices.is_empty() { "range" } else { "choices" }, range));
    }
    for (word, what) in [("unit", &d.unit), ("description", &d.text)] {
        if !what.is_empty() {
            rows.push((word, tame(what).into_owned()));
        }
    }
    if d.read_only {
        rows.push(("read-only", format!("while {} runs", d.node)));
    }
    let kept = if d.durable { "on disk" } else { "until the machine is off" };
    rows.push(("kept", kept.to_owned()));
    rows.push(("key", info.key.clone()));
    rows
}
