//! What workers do.

pub mod busy;
pub mod death;
pub mod echo;
pub mod idle;
pub mod nodes;
pub mod robot;
pub mod stream;
pub mod tracer;

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::demo::robot::DemoJob;

/// How long ends of a topic wait for each other. They are all started, so one that does not come
/// has failed, and says so itself.
pub const MEET: Duration = Duration::from_secs(20);
/// How long a sender waits for a reader that stands still.
pub const WAIT_LIMIT: Duration = Duration::from_secs(10);
/// How often one that receives nothing looks whether all is over.
pub const LOOK: Duration = Duration::from_millis(100);

/// What a worker does, and with what.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Sender(stream::SenderJob),
    Reader(stream::ReaderJob),
    Pinger(echo::PingerJob),
    Echo(echo::EchoJob),
    Robot(robot::RobotJob),
    Busy(busy::BusyJob),
    Tracer,
    Idle(idle::IdleJob),
    Joiner(idle::JoinerJob),
    Nodes(nodes::NodesJob),
    Victim(death::VictimJob),
    Watcher(death::WatcherJob),
    Demo(DemoJob),
}

impl Role {
    /// The Python that plays it, if it is not this program.
    pub fn python(&self) -> Option<&Path> {
        if let Role::Demo(job) = self { job.python.as_deref() } else { None }
    }
}
