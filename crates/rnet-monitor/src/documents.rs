//! JSON documents for keys, parameters and commands, shared by all tools.

use std::collections::BTreeSet;

use rnet::inspect::Snapshot;
use rnet::msgs::CommandStatus;
use rnet::msgs::command_status::Reason;
use rnet::param::ParamInfo;
use rnet::state::{Entry, LastWill};
use serde_json::{Value as Json, json};

use rnet_format::value::to_json;

/// A key with its value and metadata.
pub fn entry(entry: &Entry) -> Json {
    let will = entry.last_will.as_ref().map(|will| match will {
        LastWill::Becomes(value) => json!({"type": value.type_name(), "value": to_json(value)}),
        LastWill::Delete => json!("delete"),
    });
    json!({
        "key": entry.key,
        "type": entry.value.type_name(),
        "value": to_json(&entry.value),
        "revision": entry.revision,
        "version": entry.version,
        "node": entry.owner.node,
        "written_unix_ns": entry.owner.written_unix_ns,
        "durable": entry.durable,
        "ttl_s": entry.ttl_left().map(|left| left.as_secs_f64()),
        "last_will": will,
    })
}

pub use rnet_format::params::update::NodeParam;

/// Parameters with their nodes and names, sorted by these.
pub fn params_by_node(params: Vec<ParamInfo>) -> Vec<NodeParam> {
    let nodes = params.iter().filter_map(|info| info.description.as_ref());
    let nodes: BTreeSet<String> = nodes.map(|description| description.node.clone()).collect();
    let mut named: Vec<NodeParam> =
        params.into_iter().filter_map(|info| name(info, &nodes)).collect();
    named.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    named
}

/// Splits the key of an undeclared parameter after the longest matching node name, else before its last part.
fn name(info: ParamInfo, nodes: &BTreeSet<String>) -> Option<NodeParam> {
    if let Some(d) = &info.description {
        return Some((d.node.clone(), d.name.clone(), info));
    }
    let rest = info.key.strip_prefix("/params")?;
    let ends = || rest.rmatch_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
    let at = ends().find(|at| nodes.contains(&rest[..*at])).or_else(|| ends().next())?;
    Some((rest[..at].to_owned(), rest[at..].to_owned(), info))
}

/// A parameter with its metadata.
pub fn param(node: &str, name: &str, info: &ParamInfo) -> Json {
    let mut document = json!({
        "node": node,
        "name": name,
        "key": info.key,
        "value": info.value().map(to_json),
        "declared": info.description.is_some(),
        "is_default": info.is_default,
    });
    if let Some(entry) = info.entry.as_ref().filter(|_| !info.is_default) {
        document["set_by"] = json!(entry.owner.node);
        document["written_unix_ns"] = json!(entry.owner.written_unix_ns);
        document["revision"] = json!(entry.revision);
    }
    if let Some(d) = &info.description {
        document["type"] = json!(d.kind.name());
        for (word, value) in [("default", &d.default), ("min", &d.min), ("max", &d.max)] {
            document[word] = json!(value.as_ref().map(to_json));
        }
        document["choices"] = json!(d.choices);
        document["unit"] = json!(d.unit);
        document["description"] = json!(d.text);
        document["read_only"] = json!(d.read_only);
        document["durable"] = json!(d.durable);
        if let Some(refused) = d.refused.as_ref().filter(|_| info.is_default) {
            document["refused"] = json!({
                "value": refused.value, "why": refused.why, "set_by": refused.set_by,
            });
        }
    }
    if let Some(problem) = &info.problem {
        document["problem"] = json!(problem);
    }
    document
}

/// The topics of commands with a receiver, and its node.
pub fn receivers(snapshot: &Snapshot) -> Vec<(&str, &str)> {
    let topic = |status| rnet::command_of_status(status);
    let publishers = snapshot.publishers.iter();
    let mut found: Vec<_> =
        publishers.filter_map(|of| Some((topic(&of.topic)?, of.node.as_str()))).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The status of a command's receiver; `None` means that it does not answer.
pub fn command(topic: &str, receiver: &str, status: Option<&CommandStatus>) -> Json {
    let Some(status) = status else {
        return json!({"command": topic, "receiver": receiver, "state": "no_answer"});
    };
    json!({
        "command": topic,
        "receiver": receiver,
        "state": status.state().as_str_name().trim_start_matches("STATE_").to_lowercase(),
        "reason": (status.reason() != Reason::Unspecified)
            .then(|| status.reason().as_str_name().trim_start_matches("REASON_").to_lowercase()),
        "fallback_failed": status.fallback_failed,
        "driver": Some(&status.holder).filter(|holder| !holder.is_empty()),
        "priority": status.priority,
        "number": status.number,
        "lease_ns": status.lease,
        "deadline_ns": status.deadline,
        "applied": status.applied,
        "ignored": status.ignored,
        "fallbacks": status.fallbacks,
    })
}
