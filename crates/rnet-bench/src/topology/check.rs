//! Checks for every topology, in either format.

use super::{
    Error, MAX_LEN_BYTES, MAX_NODES, MAX_PERIOD_MS, MIN_LEN_BYTES, MIN_PERIOD_MS, Publish, Result,
    Topology,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Checks a topology that was read from `path`.
pub(crate) fn check(topology: Topology, path: &Path) -> Result<Topology> {
    let wrong = |what: String| Error::new(path, what);
    name(&topology.name).map_err(|why| wrong(format!("the topology's {why}")))?;
    if topology.nodes.is_empty() {
        return Err(wrong("has no nodes".into()));
    }
    if topology.nodes.len() > MAX_NODES {
        let nodes = topology.nodes.len();
        return Err(wrong(format!(
            "has {nodes} nodes, but the limit is {MAX_NODES}, because each is a process"
        )));
    }
    let mut nodes = BTreeSet::new();
    let mut topics = BTreeSet::new();
    for node in &topology.nodes {
        name(&node.name).map_err(|why| wrong(format!("a node's {why}")))?;
        if !nodes.insert(&node.name) {
            return Err(wrong(format!("the node name {} is used twice", node.name)));
        }
        let mut own = BTreeSet::new();
        for publish in &node.publishes {
            let at = |why: String| {
                wrong(format!("node {}, publisher of {}: {why}", node.name, publish.topic))
            };
            endpoint(publish).map_err(at)?;
            if !own.insert(&publish.topic) {
                return Err(at("appears twice".into()));
            }
            topics.insert(publish.topic.as_str());
        }
    }
    if topics.is_empty() {
        return Err(wrong("no node has a publisher".into()));
    }
    for node in &topology.nodes {
        let mut own = BTreeSet::new();
        for topic in &node.subscribes {
            if !topics.contains(topic.as_str()) {
                return Err(wrong(format!(
                    "node {} subscribes to {topic}, which has no publisher",
                    node.name
                )));
            }
            if !own.insert(topic) {
                return Err(wrong(format!("node {} subscribes to {topic} twice", node.name)));
            }
        }
    }
    Ok(topology)
}

/// Checks that all publishers of a topic have the same type.
pub(crate) fn one_type(topology: &Topology) -> std::result::Result<(), String> {
    // For each topic: its first publisher, and the type.
    let mut topics: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for node in &topology.nodes {
        for Publish { topic, msg_type, .. } in &node.publishes {
            let (other, first) = *topics.entry(topic).or_insert((&node.name, msg_type));
            if first != msg_type {
                let mine = &node.name;
                return Err(format!(
                    "node {mine}, publisher of {topic}: publishes {msg_type}, but node {other} publishes {first}"
                ));
            }
        }
    }
    Ok(())
}

/// Checks a name that every compared system must support.
fn name(name: &str) -> std::result::Result<(), String> {
    let fits = |c: u8| c.is_ascii_alphanumeric() || c == b'_';
    if name.is_empty() || name.len() > 100 || !name.bytes().all(fits) {
        let rule = "a name must have 1 to 100 letters, digits and _";
        return Err(format!("name is {name:?}: {rule}"));
    }
    Ok(())
}

fn endpoint(publish: &Publish) -> std::result::Result<(), String> {
    name(&publish.topic).map_err(|why| format!("the topic's {why}"))?;
    let period = publish.period_ms;
    // NaN is in no range.
    if !(MIN_PERIOD_MS..=MAX_PERIOD_MS).contains(&period) {
        return Err(format!(
            "the period is {period} ms; it must be from {MIN_PERIOD_MS} to {MAX_PERIOD_MS} ms"
        ));
    }
    let len = publish.len_bytes;
    if !(MIN_LEN_BYTES..=MAX_LEN_BYTES).contains(&len) {
        return Err(format!(
            "the message length is {len} bytes; it must be from {MIN_LEN_BYTES} to {MAX_LEN_BYTES} bytes"
        ));
    }
    Ok(())
}
