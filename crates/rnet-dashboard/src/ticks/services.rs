//! The services and actions of the domain.

use std::collections::BTreeMap;

use rnet::inspect::{CallType, ServerInfo};
use serde_json::{Value as Json, json};

use super::full_update::Read;

pub fn services() -> Read {
    Box::new(|tick| {
        let Some(view) = tick.view else { return Ok(None) };
        let mut services: BTreeMap<&str, Vec<ServerInfo<'_>>> = BTreeMap::new();
        for server in view.now.snapshot.servers() {
            services.entry(server.service).or_default().push(server);
        }
        let services: Vec<Json> =
            services.iter().filter_map(|(name, servers)| row(name, servers)).collect();
        Ok(Some(json!({"services": services}).to_string()))
    })
}

fn row(name: &str, servers: &[ServerInfo<'_>]) -> Option<Json> {
    let type_name = |of: CallType<'_>| of.desc.name().unwrap_or("raw").to_owned();
    // If servers have different types, those of the first are shown.
    let known = servers.iter().find(|server| server.reply_type().is_some())?;
    let feedback = known.feedback_type().map(type_name);
    let nodes: Vec<&str> = servers.iter().map(ServerInfo::node).collect();
    Some(json!({
        "service": name,
        "kind": if feedback.is_some() { "action" } else { "service" },
        "nodes": nodes,
        "clients": servers.iter().map(|server| server.clients).max(),
        "request": type_name(known.request_type()),
        "reply": known.reply_type().map(type_name),
        "feedback": feedback,
    }))
}
