//! `rnet param get`, `list` and `describe`.

use rnet::param::ParamInfo;
use serde_json::{Value as Json, json};

use super::args::{DescribeArgs, GetArgs, ListArgs};
use super::find;
use super::find::NodeParam;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::{domain, table};
use rnet_format::params::text;
use rnet_format::text::escape_controls;

pub fn get(context: &mut Context, GetArgs { param: args, target }: &GetArgs) -> Outcome {
    let domain = context.domain()?.id().to_owned();
    let all = find::list_params_on(context, target.host.as_deref(), &args.own_node)?;
    let (node, name, info) = find::find_param(all, &domain, &args.node, args.name.as_deref())?;
    let Some(value) = info.value() else {
        return Err(Failure::Failed(format!("parameter {name} of {node} has no value")));
    };
    match context.json() {
        true => context.document(&super::document(&node, &name, &info)),
        false => context.line(format_args!("{}", text::line(value))),
    }
}

pub fn list(context: &mut Context, args: &ListArgs) -> Outcome {
    let id = context.domain()?.id().to_owned();
    let mut all = find::list_params_on(context, args.target.host.as_deref(), &args.own_node)?;
    if let Some(node) = &args.node {
        all = find::of_node(all, &id, node)?;
    }
    if all.is_empty() {
        domain::report_none_found(context, "parameters")?;
    }
    for (node, name, info) in &all {
        if let Some(problem) = &info.problem {
            context.eprintln(format_args!(
                "rnet: parameter {name} of {node}: cannot read its description: {problem}"
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

pub fn row((node, name, info): &NodeParam) -> Vec<String> {
    let unit = info.description.as_ref().map_or("", |d| d.unit.as_str());
    vec![
        node.clone(),
        name.clone(),
        info.value().map(text::line).unwrap_or_default(),
        escape_controls(unit).into_owned(),
        text::origin(info),
    ]
}

pub fn describe(context: &mut Context, args: &DescribeArgs) -> Outcome {
    let domain = context.domain()?.id().to_owned();
    let all = find::list_params(context, &args.own_node)?;
    let is_node = args.name.is_none() && all.iter().any(|(node, ..)| node == args.node.as_str());
    let params = match is_node {
        true => find::of_node(all, &domain, &args.node)?,
        false => vec![find::find_param(all, &domain, &args.node, args.name.as_deref())?],
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

/// The description of a parameter, one line per row.
fn rows(info: &ParamInfo) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("value", info.value().map_or_else(|| "none".to_owned(), text::line)),
        ("from", text::origin(info)),
    ];
    let Some(d) = &info.description else {
        rows.push(("declared", "not yet, or the declaration cannot be read".to_owned()));
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
            rows.push((word, escape_controls(what).into_owned()));
        }
    }
    if d.read_only {
        rows.push(("read-only", format!("while {} runs", d.node)));
    }
    let kept = if d.durable { "on disk" } else { "until reboot" };
    rows.push(("kept", kept.to_owned()));
    rows.push(("key", info.key.clone()));
    rows
}
