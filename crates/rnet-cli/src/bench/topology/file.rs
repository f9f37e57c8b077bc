//! A robot's topology, read from TOML: the form of `bench/topologies/` and of `walker.toml` here.
//!
//! Unknown keys are errors: a misspelt one would otherwise change what is measured.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rnet::{NodeName, TopicName};
use serde::Deserialize;

use crate::bench::message::MIN_LEN_BYTES;
use crate::failure::{Failure, Outcome};

/// The robot for whoever brings none.
pub const WALKER: &str = include_str!("walker.toml");

/// Longest file, in bytes.
const MAX_FILE_LEN_BYTES: u64 = 1 << 20;
/// Most nodes: each is a process.
const MAX_NODES: usize = 128;
/// Longest message, in bytes.
const MAX_LEN_BYTES: usize = 16 << 20;
/// Shortest and longest period, in ms.
const PERIOD_MS: std::ops::RangeInclusive<f64> = 0.05..=3_600_000.0;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    pub name: String,
    /// Where it comes from.
    #[serde(default)]
    pub source: String,
    #[serde(default, rename = "node")]
    pub nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    pub name: String,
    #[serde(default)]
    pub publishes: Vec<Publish>,
    #[serde(default)]
    pub subscribes: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publish {
    pub topic: String,
    #[serde(rename = "type")]
    type_name: Option<String>,
    /// Bytes of data of a `stamped_vector`.
    size: Option<usize>,
    /// Length of the message; set from the type where the file names one.
    #[serde(default)]
    bytes: Option<usize>,
    pub period_ms: f64,
    /// Length of the message in bytes.
    #[serde(skip)]
    pub len: usize,
}

impl Topology {
    /// Reads and checks a file.
    pub fn read(path: &Path) -> Outcome<Topology> {
        let wrong = |what: String| Failure::Failed(format!("topology {}: {what}", path.display()));
        let meta = std::fs::metadata(path).map_err(|e| wrong(format!("cannot be read: {e}")))?;
        // A device or a pipe has no length to hold against the limit.
        if !meta.is_file() {
            return Err(wrong("is not a file".to_owned()));
        }
        if meta.len() > MAX_FILE_LEN_BYTES {
            let len = meta.len();
            return Err(wrong(format!("has {len} bytes, at most {MAX_FILE_LEN_BYTES}")));
        }
        let text =
            std::fs::read_to_string(path).map_err(|e| wrong(format!("cannot be read: {e}")))?;
        Topology::parse(&text).map_err(wrong)
    }

    /// Reads and checks the text of a file.
    pub fn parse(text: &str) -> Result<Topology, String> {
        // The error's text has the line, and points at the place.
        let mut topology: Topology =
            toml::from_str(text).map_err(|e| format!("is not a topology in TOML: {e}"))?;
        topology.check()?;
        Ok(topology)
    }

    fn check(&mut self) -> Result<(), String> {
        if self.nodes.is_empty() || self.nodes.len() > MAX_NODES {
            let count = self.nodes.len();
            return Err(format!("has {count} nodes; 1 to {MAX_NODES} are possible"));
        }
        let mut names = BTreeSet::new();
        let mut published = BTreeSet::new();
        for node in &mut self.nodes {
            NodeName::new(&node.name).map_err(|e| e.to_string())?;
            let name = &node.name;
            if !names.insert(name.clone()) {
                return Err(format!("there are two nodes {name}"));
            }
            let mut own = BTreeSet::new();
            for publish in &mut node.publishes {
                let topic = absolute(&publish.topic)?;
                let at = |why: String| format!("node {name}, publisher of {topic}: {why}");
                publish.len = publish.length().map_err(at)?;
                publish.check().map_err(at)?;
                if !own.insert(topic.clone()) {
                    return Err(at("is there twice".to_owned()));
                }
                published.insert(topic.clone());
                publish.topic = topic;
            }
        }
        if published.is_empty() {
            return Err("no node publishes anything".to_owned());
        }
        for node in &mut self.nodes {
            let mut own = BTreeSet::new();
            for topic in &mut node.subscribes {
                *topic = absolute(topic)?;
                if !published.contains(topic) {
                    let name = &node.name;
                    return Err(format!(
                        "node {name} subscribes to {topic}, which nobody publishes"
                    ));
                }
                if !own.insert(topic.clone()) {
                    return Err(format!("node {} subscribes to {topic} twice", node.name));
                }
            }
        }
        Ok(())
    }

    /// Each topic's publishers, in the order of the file.
    pub fn publishers(&self) -> BTreeMap<&str, Vec<&Publish>> {
        let mut topics: BTreeMap<&str, Vec<&Publish>> = BTreeMap::new();
        for publish in self.nodes.iter().flat_map(|node| &node.publishes) {
            topics.entry(&publish.topic).or_default().push(publish);
        }
        topics
    }

    /// How many nodes subscribe to a topic.
    pub fn subscribers(&self, topic: &str) -> usize {
        self.nodes.iter().filter(|node| node.subscribes.iter().any(|s| s == topic)).count()
    }
}

impl Publish {
    fn length(&self) -> Result<usize, String> {
        match (&self.type_name, self.bytes) {
            (None, Some(bytes)) if self.size.is_none() => Ok(bytes),
            (Some(name), None) => {
                if self.size.is_some() != (name == "stamped_vector") {
                    return Err("size is for type stamped_vector, which needs it".to_owned());
                }
                type_len(name, self.size).ok_or_else(|| format!("there is no type {name:?}"))
            }
            _ => Err("needs either a type or bytes".to_owned()),
        }
    }

    fn check(&self) -> Result<(), String> {
        if !PERIOD_MS.contains(&self.period_ms) {
            let (least, most) = (PERIOD_MS.start(), PERIOD_MS.end());
            let period = self.period_ms;
            return Err(format!("a period of {period} ms; {least} to {most} ms are possible"));
        }
        if !(MIN_LEN_BYTES..=MAX_LEN_BYTES).contains(&self.len) {
            return Err(format!(
                "messages of {} bytes; {MIN_LEN_BYTES} to {MAX_LEN_BYTES} are possible",
                self.len
            ));
        }
        Ok(())
    }
}

/// A topic's name with its leading slash.
fn absolute(topic: &str) -> Result<String, String> {
    let name = if topic.starts_with('/') { topic.to_owned() } else { format!("/{topic}") };
    TopicName::new(&name).map_err(|e| e.to_string())?;
    Ok(name)
}

/// Bytes of the header in each message of ros2-performance: two words of time, number, frequency
/// and size, four bytes each.
const HEADER_LEN_BYTES: usize = 20;
/// Bytes of the count before an array without a fixed length.
const COUNT_LEN_BYTES: usize = 4;

/// Bytes of a message of ros2-performance's type `name`: `stamped_vector` with its size,
/// `stampedN_int32` and its kin with N elements (one without N), `stampedNb`, `stampedNkb`,
/// `stampedNmb` with as many bytes. `None` when there is no such type.
fn type_len(name: &str, size: Option<usize>) -> Option<usize> {
    let data = name.strip_prefix("stamped")?;
    if data == "_vector" {
        return size?.checked_add(HEADER_LEN_BYTES + COUNT_LEN_BYTES);
    }
    let (count, element) = data.split_at(data.find(|c: char| !c.is_ascii_digit())?);
    let (element_len, needs_count) = match element {
        "_int32" | "_float32" => (4, false),
        "_int64" | "_float64" => (8, false),
        "b" => (1, true),
        "kb" => (1 << 10, true),
        "mb" => (1 << 20, true),
        _ => return None,
    };
    let count: usize = match count {
        "" if needs_count => return None,
        "" => 1,
        count => count.parse().ok().filter(|count| *count > 0)?,
    };
    count.checked_mul(element_len)?.checked_add(HEADER_LEN_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_robot_that_is_built_in_is_right() {
        let walker = Topology::parse(WALKER).unwrap();
        assert_eq!(walker.nodes.len(), 10);
        assert!(walker.publishers().keys().all(|topic| walker.subscribers(topic) > 0));
    }

    #[test]
    fn types_have_the_lengths_of_their_fields() {
        for (name, len) in [
            ("stamped_int64", 28),
            ("stamped4_int32", 36),
            ("stamped3_float32", 32),
            ("stamped10b", 30),
            ("stamped600kb", 20 + 600 * 1024),
            ("stamped8mb", 20 + (8 << 20)),
        ] {
            assert_eq!(type_len(name, None), Some(len), "{name}");
        }
        assert_eq!(type_len("stamped_vector", Some(100)), Some(124));
        for name in
            ["", "stamped", "stampedkb", "stamped0b", "stamped4", "stamped_vector", "4_int32"]
        {
            assert_eq!(type_len(name, None), None, "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let node = |publishes: &str, subscribes: &str| {
            format!(
                "name = \"x\"\n[[node]]\nname = \"a\"\npublishes = [{publishes}]\n\
                 subscribes = [{subscribes}]\n"
            )
        };
        let t = "{ topic = \"t\", bytes = 20, period_ms = 1 }";
        for (text, word) in [
            ("nodes = 1".to_owned(), "unknown field"),
            ("name = \"x".to_owned(), "not a topology"),
            ("name = \"x\"".to_owned(), "has 0 nodes"),
            (node("", ""), "nobody publishes|no node publishes"),
            (node(t, "\"u\""), "which nobody publishes"),
            (node(t, "\"t\", \"/t\""), "twice"),
            (node(&format!("{t}, {t}"), ""), "twice"),
            (node("{ topic = \"t\", bytes = 15, period_ms = 1 }", ""), "15 bytes"),
            (node("{ topic = \"t\", bytes = 99999999, period_ms = 1 }", ""), "99999999 bytes"),
            (node("{ topic = \"t\", bytes = 20, period_ms = 0 }", ""), "a period of 0 ms"),
            (node("{ topic = \"t\", bytes = 20, period_ms = nan }", ""), "a period of NaN ms"),
            (node("{ topic = \"t\", bytes = 20, period = 1 }", ""), "unknown field"),
            (node("{ topic = \"t\", period_ms = 1 }", ""), "either a type or bytes"),
            (node("{ topic = \"t\", type = \"int\", period_ms = 1 }", ""), "no type \"int\""),
            (node("{ topic = \"t t\", bytes = 20, period_ms = 1 }", ""), "t t"),
            (format!("{}[[node]]\nname = \"a\"\n", node(t, "")), "two nodes a"),
        ] {
            let why = Topology::parse(&text).unwrap_err();
            assert!(word.split('|').any(|word| why.contains(word)), "{word}: {why}");
        }
    }
}
