//! `rnet param dump`.

use std::io::Write;

use serde_json::{Map, Value as Json};

use super::args::DumpArgs;
use super::find;
use crate::context::Context;
use crate::failure::Outcome;
use rnet_format::params::write;
use rnet_format::value::to_json;

pub fn run(context: &mut Context, args: &DumpArgs) -> Outcome {
    let domain = context.domain()?.id().to_owned();
    let mut all = find::list_params(context, &args.own_node)?;
    if let Some(node) = &args.node {
        all = find::of_node(all, &domain, node)?;
    }
    if context.json() {
        let mut nodes = Map::new();
        for (node, name, info) in all.iter().filter(|(_, _, info)| args.all || !info.is_default) {
            let Some(value) = info.value() else { continue };
            let params = nodes.entry(node.clone()).or_insert_with(|| Json::Object(Map::new()));
            params[name.trim_start_matches('/')] = to_json(value);
        }
        return context.document(&nodes);
    }
    let file = write::file_text(&domain, &all, args.all);
    context.out().write_all(file.as_bytes())?;
    Ok(())
}
