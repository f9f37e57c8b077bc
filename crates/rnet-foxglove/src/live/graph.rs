//! The domain as a graph: which nodes publish, subscribe and serve.

use std::collections::BTreeMap;

use rnet::inspect::Snapshot;

use super::RESERVED;
use crate::outgoing::ConnectionGraph;

pub fn from_snapshot(snapshot: &Snapshot, include_internal: bool) -> ConnectionGraph {
    let shown = |topic: &str| include_internal || !topic.starts_with(RESERVED);
    let mut graph = ConnectionGraph::default();
    for publisher in snapshot.publishers.iter().filter(|p| shown(&p.topic)) {
        add(&mut graph.published, &publisher.topic, &publisher.node);
    }
    for subscription in snapshot.subscriptions.iter().filter(|s| shown(&s.topic)) {
        add(&mut graph.subscribed, &subscription.topic, &subscription.node);
    }
    for server in snapshot.servers().iter().filter(|server| shown(server.service)) {
        add(&mut graph.services, server.service, server.node());
    }
    graph
}

fn add(names: &mut BTreeMap<String, Vec<String>>, name: &str, node: &str) {
    let nodes = names.entry(name.to_owned()).or_default();
    if !nodes.iter().any(|known| known == node) {
        nodes.push(node.to_owned());
    }
}
