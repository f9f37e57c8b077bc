//! What the command and its workers say to each other: one JSON document per line.
//!
//! The command writes a [`Job`], then [`Order`]s, to the worker's stdin; the worker answers with
//! [`Word`]s on its stdout.

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
    /// The private directory of the bench.
    pub place: PathBuf,
    pub domain: String,
}

impl WorkerNode {
    /// Opens it in the bench's domain, whatever the environment says.
    pub fn open(&self) -> rnet::Result<Node> {
        Node::builder(&self.name).dir(&self.place).domain(&self.domain).open()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// All have met: begin.
    Go,
    /// All has been sent: read what is left and report.
    Stop,
    /// Nobody needs you any more.
    Leave,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// Has met everybody.
    Ready,
    /// Has sent everything, and still receives.
    Sent,
    /// The role's report.
    Done(Value),
    /// It cannot be done.
    Failed { timed_out: bool, message: String },
}
