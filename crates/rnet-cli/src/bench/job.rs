//! What the command and its workers say to each other: one JSON document per line.
//!
//! The command writes a [`Job`], then [`Order`]s, to the worker's stdin; the worker answers with
//! [`Word`]s on its stdout.

use std::path::PathBuf;

use rnet::Node;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::roles::{busy, death, echo, idle, robot, stream};

/// What a worker is to do.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    /// The private directory of the bench.
    pub place: PathBuf,
    pub domain: String,
    /// The node's name.
    pub node: String,
    pub role: Role,
}

impl Job {
    /// The worker's node, in the bench's domain whatever the environment says.
    pub fn open_node(&self) -> rnet::Result<Node> {
        Node::builder(&self.node).dir(&self.place).domain(&self.domain).open()
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Sender(stream::SenderJob),
    Reader(stream::ReaderJob),
    Pinger(echo::PingerJob),
    Echo(echo::EchoJob),
    Robot(robot::RobotJob),
    Busy(busy::BusyJob),
    Idle(idle::IdleJob),
    Joiner(idle::JoinerJob),
    Victim(death::VictimJob),
    Watcher(death::WatcherJob),
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
