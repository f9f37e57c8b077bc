//! iRobot's JSON format, read as by `performance_test_factory/src/factory.cpp` of ros2-performance.
//!
//! That reader ignores unknown keys, and so does this one.

use super::{Error, MAX_NODES, Node, Publish, Result, Topology, check, msg_type};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Deserialize)]
struct File {
    nodes: Vec<FileNode>,
}

#[derive(Deserialize)]
struct FileNode {
    node_name: String,
    #[serde(default)]
    node_namespace: String,
    number: Option<usize>,
    #[serde(default)]
    publishers: Vec<Publisher>,
    #[serde(default)]
    subscribers: Vec<Subscriber>,
    #[serde(default)]
    clients: Vec<IgnoredAny>,
    #[serde(default)]
    servers: Vec<IgnoredAny>,
    #[serde(default)]
    action_clients: Vec<IgnoredAny>,
    #[serde(default)]
    action_servers: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct Publisher {
    topic_name: String,
    msg_type: String,
    msg_size: Option<usize>,
    freq_hz: Option<f64>,
    period_ms: Option<f64>,
}

#[derive(Deserialize)]
struct Subscriber {
    topic_name: String,
    msg_type: String,
}

pub(crate) fn parse(text: &str, path: &Path) -> Result<Topology> {
    let wrong = |what: String| Error::new(path, what);
    // The error's text has line and column.
    let file: File = serde_json::from_str(text)
        .map_err(|e| wrong(format!("is not in iRobot's JSON format: {e}")))?;
    let mut reader = Reader::default();
    for node in &file.nodes {
        // Checked before the nodes are made: a large number is easily written.
        let more = node.number.unwrap_or(1);
        if more.saturating_add(reader.nodes.len()) > MAX_NODES {
            return Err(wrong(format!(
                "node {} has the number {more}, but the limit is {MAX_NODES} nodes, because each is a process",
                node.node_name
            )));
        }
        match node.number {
            None => reader.node(node, "").map_err(wrong)?,
            Some(number) => {
                for i in 1..=number {
                    reader.node(node, &format!("_{i}")).map_err(wrong)?;
                }
            }
        }
    }
    let stem = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let topology = Topology {
        name: stem.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_"),
        source: format!("{}, in the JSON format of iRobot's ros2-performance", path.display()),
        nodes: reader.nodes,
        left_out: reader.left_out,
    };
    let topology = check::check(topology, path)?;
    topology.check_types().map_err(wrong)?;
    same_types(&topology, &reader.subscribed).map_err(wrong)?;
    Ok(topology)
}

/// The parts read so far.
#[derive(Default)]
struct Reader {
    nodes: Vec<Node>,
    left_out: Vec<String>,
    /// Node, topic and type of each subscription.
    subscribed: Vec<(String, String, String)>,
}

impl Reader {
    fn node(&mut self, node: &FileNode, suffix: &str) -> std::result::Result<(), String> {
        let space = match node.node_namespace.trim_matches('/') {
            "" => String::new(),
            space => format!("{space}{suffix}/"),
        };
        let name = flat(&format!("{space}{}{suffix}", node.node_name));
        let resolve = |topic: &str| match topic.strip_prefix('/') {
            Some(absolute) => flat(absolute),
            None => match topic.strip_prefix("~/") {
                Some(private) => format!("{name}__{}", flat(private)),
                None => flat(&format!("{space}{topic}")),
            },
        };
        let mut publishes = Vec::with_capacity(node.publishers.len());
        for publisher in &node.publishers {
            let topic = resolve(&publisher.topic_name);
            let publish = publish(publisher, topic.clone())
                .map_err(|why| format!("node {name}, publisher of {topic}: {why}"))?;
            publishes.push(publish);
        }
        let mut subscribes = Vec::with_capacity(node.subscribers.len());
        for subscriber in &node.subscribers {
            let topic = resolve(&subscriber.topic_name);
            let msg_type = msg_type::base_name(&subscriber.msg_type).to_owned();
            self.subscribed.push((name.clone(), topic.clone(), msg_type));
            subscribes.push(topic);
        }
        for (what, count) in [
            ("service clients", node.clients.len()),
            ("services", node.servers.len()),
            ("action clients", node.action_clients.len()),
            ("action servers", node.action_servers.len()),
        ] {
            if count > 0 {
                self.left_out.push(format!("{what} of node {name}: {count}"));
            }
        }
        self.nodes.push(Node { name, publishes, subscribes });
        Ok(())
    }
}

/// A name with namespaces as one word. ROS does not allow `__` in a name, so the result is unique.
pub(crate) fn flat(name: &str) -> String {
    name.replace('/', "__")
}

fn publish(publisher: &Publisher, topic: String) -> std::result::Result<Publish, String> {
    let period_ms = match (publisher.freq_hz, publisher.period_ms) {
        (Some(hz), _) if hz > 0.0 => 1e3 / hz,
        (Some(hz), _) => return Err(format!("freq_hz is {hz}; it must be above zero")),
        (None, Some(ms)) => ms,
        (None, None) => return Err("needs period_ms or freq_hz".into()),
    };
    let msg_type = msg_type::base_name(&publisher.msg_type).to_owned();
    let len_bytes = msg_type::len_bytes(&msg_type, publisher.msg_size)
        .ok_or_else(|| format!("unknown message type {:?}", publisher.msg_type))?;
    Ok(Publish { topic, len_bytes, period_ms, msg_type })
}

/// A subscription to another type than the publisher's would receive nothing in ROS.
fn same_types(
    topology: &Topology,
    subscribed: &[(String, String, String)],
) -> std::result::Result<(), String> {
    let types: BTreeMap<&str, &str> = topology
        .nodes
        .iter()
        .flat_map(|node| &node.publishes)
        .map(|publish| (publish.topic.as_str(), publish.msg_type.as_str()))
        .collect();
    for (node, topic, msg_type) in subscribed {
        match types.get(topic.as_str()) {
            Some(published) if published != msg_type => {
                return Err(format!(
                    "node {node} subscribes to {topic} as {msg_type}, but it is published as \
                     {published}"
                ));
            }
            _ => {}
        }
    }
    Ok(())
}
