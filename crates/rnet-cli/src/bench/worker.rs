//! `rnet bench-worker`: one process of a bench or of the demo, which start it. Hidden.
//!
//! It speaks the protocol of [`rnet_bench::worker`]. The command holds the other end of the worker's stdin for as long as
//! it lives. When that end is gone the command has died, however it died: a thread that reads stdin then removes the
//! private directory and exits, whatever the other threads are doing.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use rnet::Node;
use rnet_bench::worker::Order;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::place;
use super::roles::{death, echo, load, nodes, robot};
use crate::demo::{self, robot::DemoJob};
use crate::failure::{Failure, Outcome};

/// Exit code of a worker whose command has died. Nobody is there to read it.
const ORPHANED: i32 = 1;
/// The phase in which workers send.
pub const GO: usize = 0;
/// The phase after it: all has been sent; read what is left and report.
pub const COLLECT: usize = 1;
/// How long endpoints of a topic wait for each other. All workers are started, so one that does not come has failed, and
/// says so itself.
pub const MEET: Duration = Duration::from_secs(20);
/// How long a sender waits for a reader that makes no progress.
pub const WAIT_LIMIT: Duration = Duration::from_secs(10);
/// How often a worker that receives nothing looks for an order.
pub const LOOK: Duration = Duration::from_millis(20);

/// The job of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    pub node: WorkerNode,
    pub role: Role,
}

/// A worker's node.
#[derive(Debug, Serialize, Deserialize)]
pub struct WorkerNode {
    pub name: String,
    /// The private directory of the bench, which is removed with it.
    pub place: PathBuf,
    /// Directory of the domain: the same, or the one with the domains of robots.
    pub dir: PathBuf,
    pub domain: String,
}

impl WorkerNode {
    /// Opens a node in that domain, whatever the environment says.
    pub fn open_as(&self, name: &str) -> rnet::Result<Node> {
        Node::builder(name).dir(&self.dir).domain(&self.domain).open()
    }

    pub fn open(&self) -> rnet::Result<Node> {
        self.open_as(&self.name)
    }
}

/// What a worker does, and with what.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Robot(robot::RobotJob),
    Pinger(echo::EchoJob),
    Echo(echo::EchoJob),
    Busy { core: usize },
    Tracer { topic: String },
    Nodes(nodes::NodesJob),
    Joiner { topic: String },
    Victim { watchers: usize },
    Watcher { kills: u32 },
    Demo(DemoJob),
}

impl Role {
    /// The Python that plays it, if it is not this program.
    pub fn python(&self) -> Option<&Path> {
        if let Role::Demo(job) = self { job.python.as_deref() } else { None }
    }
}

/// What a worker says.
pub type Event = rnet_bench::worker::Event<Report>;

/// The report of a role.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    pub report: Value,
}

/// A worker's connection to its command.
pub struct Link {
    orders: Receiver<Order>,
}

impl Link {
    /// Reads the job, and listens from then on.
    fn open() -> Outcome<(Job, Link)> {
        let job: Job = rnet_bench::worker::job().map_err(|e| {
            Failure::Usage(format!(
                "bench-worker is started by `rnet bench` or `rnet demo` with a job; invalid job: {e}"
            ))
        })?;
        let place = job.node.place.clone();
        // It is removed with all that is in it, whoever gave the job.
        if !place::is_place(&place) {
            let path = place.display();
            return Err(Failure::Usage(format!(
                "bench-worker works in the directory of a bench, robot-net-bench-…, not in {path}"
            )));
        }
        let (sender, orders) = channel();
        let take = move |order: Option<Result<Order, String>>| match order {
            Some(Ok(order)) => sender.send(order).is_ok(),
            Some(Err(_)) | None => {
                place::remove(&place);
                std::process::exit(ORPHANED)
            }
        };
        let failed = |e| Failure::Failed(format!("a bench-worker cannot start: {e}"));
        rnet_bench::worker::listen(take).map_err(failed)?;
        Ok((job, Link { orders }))
    }

    /// Waits for this order; those before it are obsolete.
    pub fn until(&self, order: Order) {
        // The listener ends only with the process.
        while self.orders.recv().is_ok_and(|came| came != order) {}
    }

    /// Whether there is a new order.
    pub fn ordered(&self) -> bool {
        !matches!(self.orders.try_recv(), Err(TryRecvError::Empty))
    }

    pub fn say(&self, event: &Event) -> Outcome {
        Ok(rnet_bench::worker::tell(event)?)
    }

    /// Says that this worker has met its peers, and waits for the first phase.
    pub fn ready(&self) -> Outcome {
        self.say(&Event::Ready)?;
        self.until(Order::phase(GO));
        Ok(())
    }

    pub fn done(&self, report: &impl Serialize) -> Outcome {
        let report = serde_json::to_value(report).map_err(std::io::Error::from)?;
        self.say(&Event::Done { phase: GO, result: Box::new(Report { report }) })
    }

    /// The last report; what the worker has open stays until the bench ends.
    pub fn finish(&self, report: &impl Serialize) -> Outcome {
        self.done(report)?;
        self.until(Order::stop());
        Ok(())
    }
}

/// Does the job that is read from stdin.
pub fn run() -> Outcome {
    let (Job { node, role }, link) = Link::open()?;
    let Err(failure) = work(&node, &role, &link) else { return Ok(()) };
    let timed_out = matches!(failure, Failure::TimedOut(_));
    // If the command is gone this fails too, and the listener ends the process.
    let _ = link.say(&Event::Failed { why: failure.message(), timed_out });
    link.until(Order::stop());
    Err(Failure::Told)
}

fn work(node: &WorkerNode, role: &Role, link: &Link) -> Outcome {
    match role {
        Role::Robot(job) => robot::run(node, job, link),
        Role::Pinger(job) => echo::ping(node, job, link),
        Role::Echo(job) => echo::echo(node, job, link),
        Role::Busy { core } => load::compute(*core, link),
        Role::Tracer { topic } => load::trace(node, topic, link),
        Role::Nodes(job) => nodes::run(node, job, link),
        Role::Joiner { topic } => nodes::join(node, topic, link),
        Role::Victim { watchers } => death::die(node, *watchers, link),
        Role::Watcher { kills } => death::watch(node, *kills, link),
        Role::Demo(job) => demo::node::run(node, job, link),
    }
}
