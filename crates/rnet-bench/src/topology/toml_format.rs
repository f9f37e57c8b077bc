//! Our TOML format. Unknown keys are errors: a misspelt key would otherwise change what is measured.

use super::{Error, Node, Publish, Result, Topology, check, msg_type};
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    node: Vec<FileNode>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileNode {
    name: String,
    #[serde(default)]
    publishes: Vec<FilePublish>,
    #[serde(default)]
    subscribes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilePublish {
    topic: String,
    #[serde(rename = "type")]
    msg_type: Option<String>,
    /// Length of a `stamped_vector`'s data, in bytes.
    size: Option<usize>,
    /// Length of the whole message in bytes, instead of a type.
    bytes: Option<usize>,
    period_ms: f64,
}

pub(crate) fn parse(text: &str, path: &Path) -> Result<Topology> {
    // The error's text has the line and marks the position.
    let file: File = toml::from_str(text)
        .map_err(|e| Error::new(path, format!("is not in robot-net's TOML format: {e}")))?;
    let mut nodes = Vec::with_capacity(file.node.len());
    for node in file.node {
        let mut publishes = Vec::with_capacity(node.publishes.len());
        for publish in node.publishes {
            let (topic, period_ms) = (word(&publish.topic), publish.period_ms);
            let (msg_type, len_bytes) = typed(publish).map_err(|why| {
                Error::new(path, format!("node {}, publisher of {topic}: {why}", node.name))
            })?;
            publishes.push(Publish { topic, len_bytes, period_ms, msg_type });
        }
        let subscribes = node.subscribes.iter().map(|topic| word(topic)).collect();
        nodes.push(Node { name: node.name, publishes, subscribes });
    }
    let topology = Topology { name: file.name, source: file.source, nodes };
    check::check(topology, path)
}

/// A topic as one word, with or without its leading slash in the file.
fn word(topic: &str) -> String {
    topic.strip_prefix('/').unwrap_or(topic).replace('/', "__")
}

/// The type and the length of a publisher's messages.
fn typed(publish: FilePublish) -> std::result::Result<(String, usize), String> {
    match (publish.msg_type, publish.size, publish.bytes) {
        (None, None, Some(bytes)) => Ok(("bytes".into(), bytes)),
        (Some(msg_type), size, None) => {
            if size.is_some() != (msg_type == "stamped_vector") {
                return Err(
                    "size must be given for type \"stamped_vector\", and only for it".into()
                );
            }
            let len = msg_type::len_bytes(&msg_type, size)
                .ok_or_else(|| format!("unknown message type {msg_type:?}"))?;
            Ok((msg_type, len))
        }
        _ => Err("needs either type or bytes".into()),
    }
}
