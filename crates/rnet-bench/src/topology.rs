//! A robot's topology: its nodes, and the topics that each publishes and subscribes to.
//!
//! The comparison and `rnet bench topology` read their files with it.
//!
//! The files are TOML ([`Topology::from_toml`]); `bench/topologies/` has some. Every [`Topology`] has a
//! publisher for each subscription and only periods above zero.

mod check;
mod error;
pub mod msg_type;
mod toml_format;

pub use error::{Error, Result};

use std::path::Path;

/// Maximum number of nodes; each becomes a process.
pub const MAX_NODES: usize = 256;
/// Maximum length of a message, in bytes.
pub const MAX_LEN_BYTES: usize = 16 << 20;
/// Minimum length of a message, in bytes: the harness's header must fit.
pub const MIN_LEN_BYTES: usize = 16;
/// Maximum period, in ms.
pub const MAX_PERIOD_MS: f64 = 3_600_000.0;
/// Minimum period, in ms: the benchmark counts in whole µs.
pub const MIN_PERIOD_MS: f64 = 0.001;
/// Maximum length of a file, in bytes.
pub const MAX_FILE_LEN_BYTES: u64 = 8 << 20;

/// Nodes with their publishers and subscriptions.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Name, for instance "sierra_nevada".
    pub name: String,
    /// Origin of the topology, for the report.
    pub source: String,
    /// The nodes, in the order of the file.
    pub nodes: Vec<Node>,
}

/// A node; a process in the benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique name.
    pub name: String,
    /// The topics that it publishes, in the order of the file.
    pub publishes: Vec<Publish>,
    /// The topics that it subscribes to, in the order of the file.
    pub subscribes: Vec<String>,
}

/// A topic that a node publishes.
#[derive(Clone, Debug, PartialEq)]
pub struct Publish {
    /// The topic: letters, digits and `_`. A `/` in the file becomes `__`, except the first.
    pub topic: String,
    /// Length of each message in bytes, see [`msg_type`].
    pub len_bytes: usize,
    /// Period, in ms.
    pub period_ms: f64,
    /// The type as named in the file; "bytes" if the file gives only a length.
    pub msg_type: String,
}

impl Publish {
    /// The period in ns.
    pub fn period_ns(&self) -> u64 {
        (self.period_ms * 1e6).round() as u64
    }

    /// Messages per second.
    pub fn rate_hz(&self) -> f64 {
        1e3 / self.period_ms
    }

    /// A message with a latency above this is late, unless it is [too late](Self::too_late_ns): 20 % of the
    /// period, at most 5 ms (ros2-performance, irobot_benchmark/README.md).
    pub fn late_ns(&self) -> u64 {
        (self.period_ns() / 5).min(5_000_000)
    }

    /// A message with a latency above this is too late, and not counted as late: the period, at most 50 ms.
    ///
    /// The benchmark excludes messages that are too late from its mean latency; it counts them as received.
    pub fn too_late_ns(&self) -> u64 {
        self.period_ns().min(50_000_000)
    }
}

impl Topology {
    /// Reads a file.
    ///
    /// # Errors
    /// The error in the file, and its location.
    pub fn read(path: &Path) -> Result<Self> {
        let wrong = |what: String| Error::new(path, what);
        let meta = std::fs::metadata(path).map_err(|e| wrong(format!("cannot be read: {e}")))?;
        // A device or a pipe has no length to check.
        if !meta.is_file() {
            return Err(wrong("is not a file".into()));
        }
        if path.extension().is_none_or(|end| end != "toml") {
            return Err(wrong("the name must end in .toml".into()));
        }
        let len = meta.len();
        if len > MAX_FILE_LEN_BYTES {
            return Err(wrong(format!("{len} bytes exceed the limit of {MAX_FILE_LEN_BYTES}")));
        }
        let text =
            std::fs::read_to_string(path).map_err(|e| wrong(format!("cannot be read: {e}")))?;
        Self::from_toml(&text, path)
    }

    /// Reads the content of a file from `text`; `path` is only for messages.
    ///
    /// ```toml
    /// name = "two"
    /// source = "made up"
    ///
    /// [[node]]
    /// name = "camera"
    /// publishes = [
    ///     { topic = "image", type = "stamped_vector", size = 50000, period_ms = 33.3 },
    ///     { topic = "state", bytes = 64, period_ms = 10 },  # a length instead of a type
    /// ]
    ///
    /// [[node]]
    /// name = "planner"
    /// subscribes = ["image", "state"]
    /// ```
    ///
    /// # Errors
    /// The error in the text, and its location.
    pub fn from_toml(text: &str, path: &Path) -> Result<Self> {
        toml_format::parse(text, path)
    }

    /// Checks that all publishers of each topic have the same type, which typed systems require.
    ///
    /// # Errors
    /// The first publisher of another type.
    pub fn check_types(&self) -> std::result::Result<(), String> {
        check::one_type(self)
    }

    /// The topics, in the order of their first publisher.
    pub fn topics(&self) -> Vec<&str> {
        let mut topics: Vec<&str> = Vec::new();
        for publish in self.nodes.iter().flat_map(|node| &node.publishes) {
            if !topics.contains(&publish.topic.as_str()) {
                topics.push(&publish.topic);
            }
        }
        topics
    }

    /// The names of the nodes that publish `topic`, each with its publisher.
    pub fn publishers_of<'a>(
        &'a self,
        topic: &'a str,
    ) -> impl Iterator<Item = (&'a Node, &'a Publish)> {
        self.nodes.iter().flat_map(move |node| {
            node.publishes.iter().filter(move |p| p.topic == topic).map(move |p| (node, p))
        })
    }

    /// The nodes that subscribe to `topic`.
    pub fn subscribers_of<'a>(&'a self, topic: &'a str) -> impl Iterator<Item = &'a Node> {
        self.nodes.iter().filter(move |node| node.subscribes.iter().any(|s| s == topic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(period_ms: f64) -> Publish {
        Publish { topic: "t".into(), len_bytes: 16, period_ms, msg_type: "bytes".into() }
    }

    #[test]
    fn late_and_too_late_match_benchmark_definition() {
        // The limits that its README shows in events.txt: 2000 us at 100 Hz, 5000 us and 50000 us at 10 Hz.
        assert_eq!((publish(10.0).late_ns(), publish(10.0).too_late_ns()), (2_000_000, 10_000_000));
        assert_eq!(
            (publish(100.0).late_ns(), publish(100.0).too_late_ns()),
            (5_000_000, 50_000_000)
        );
        assert_eq!(publish(25.0).late_ns(), 5_000_000);
        assert_eq!(publish(50.0).too_late_ns(), 50_000_000);
        assert_eq!(publish(0.5).late_ns(), 100_000);
        assert_eq!(publish(15.625).period_ns(), 15_625_000);
        assert_eq!(publish(4.0).rate_hz(), 250.0);
    }
}
