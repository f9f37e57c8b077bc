//! The job of a worker; [`rnet_bench::worker`] has the conversation that follows.

use std::path::PathBuf;

use rnet::Node;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a worker is to do; `R` is [`Role`](super::roles::Role), which this module does without.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job<R> {
    pub node: WorkerNode,
    pub role: R,
}

/// A worker's node.
#[derive(Debug, Serialize, Deserialize)]
pub struct WorkerNode {
    pub name: String,
    /// The private directory of the bench, which goes with it.
    pub place: PathBuf,
    /// Where the domain stands: there, or among those of robots.
    pub dir: PathBuf,
    pub domain: String,
}

impl WorkerNode {
    /// Opens it in that domain, whatever the environment says.
    pub fn open(&self) -> rnet::Result<Node> {
        Node::builder(&self.name).dir(&self.dir).domain(&self.domain).open()
    }
}

/// The phase in which workers send, and what they say of it.
pub const GO: usize = 0;
/// The phase after it: all has been sent; read what is left and report.
pub const COLLECT: usize = 1;

/// What a worker says.
pub type Event = rnet_bench::worker::Event<Report>;

/// The report of a role.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    pub report: Value,
}
