//! Shared by the workers of a benchmark and their command: the worker's node, the phases, and the events.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use crate::worker::Order;
use rnet::Node;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bench_dir;
use rnet_format::{Failure, Outcome};

/// Exit code of a worker whose command has exited. Nothing reads it.
const ORPHANED_EXIT_CODE: i32 = 1;
/// The phase in which workers send.
pub const SEND_PHASE: usize = 0;
/// The phase after it: everything is sent; read the rest and report.
pub const COLLECT_PHASE: usize = 1;
/// How long endpoints of a topic wait for each other. All workers are started, so a worker that does not
/// appear has failed, and reports that itself.
pub const MATCH_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a sender waits for a reader that makes no progress.
pub const WAIT_LIMIT: Duration = Duration::from_secs(10);
/// How often a worker that receives nothing checks for an order.
pub const ORDER_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A worker's node.
#[derive(Debug, Serialize, Deserialize)]
pub struct WorkerNode {
    pub name: String,
    /// The private directory of the benchmark, which is removed with it.
    pub bench_dir: PathBuf,
    /// Directory of the domain: the private one, or that of the robots' domains.
    pub dir: PathBuf,
    pub domain: String,
}

impl WorkerNode {
    /// Opens a node in that domain, regardless of the environment.
    pub fn open_as(&self, name: &str) -> rnet::Result<Node> {
        Node::builder(name).dir(&self.dir).domain(&self.domain).open()
    }

    pub fn open(&self) -> rnet::Result<Node> {
        self.open_as(&self.name)
    }
}

/// An event of a worker.
pub type Event = crate::worker::Event<Report>;

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
    /// Reads orders from the command of a benchmark in this private directory.
    pub fn open(bench_dir: &Path) -> Outcome<Link> {
        // The directory is removed recursively, so it is checked regardless of who gave the job.
        if !bench_dir::is_bench_dir(bench_dir) {
            let path = bench_dir.display();
            return Err(Failure::Usage(format!(
                "bench-worker runs only in the directory of a benchmark, robot-net-bench-…, not in {path}"
            )));
        }
        let (sender, orders) = channel();
        let bench_dir = bench_dir.to_owned();
        let take = move |order: Option<Result<Order, String>>| match order {
            Some(Ok(order)) => sender.send(order).is_ok(),
            Some(Err(_)) | None => {
                bench_dir::remove(&bench_dir);
                std::process::exit(ORPHANED_EXIT_CODE)
            }
        };
        let failed = |e| Failure::Failed(format!("cannot start a bench-worker: {e}"));
        crate::worker::spawn_order_reader(take).map_err(failed)?;
        Ok(Link { orders })
    }

    /// Waits for this order; earlier ones are obsolete.
    pub fn wait_for(&self, order: Order) {
        // The order reader ends only with the process.
        while self.orders.recv().is_ok_and(|received| received != order) {}
    }

    /// Whether a new order has arrived.
    pub fn has_new_order(&self) -> bool {
        !matches!(self.orders.try_recv(), Err(TryRecvError::Empty))
    }

    pub fn send_event(&self, event: &Event) -> Outcome {
        Ok(crate::worker::send_event(event)?)
    }

    /// Reports that this worker has met its peers, and waits for the first phase.
    pub fn report_ready(&self) -> Outcome {
        self.send_event(&Event::Ready)?;
        self.wait_for(Order::phase(SEND_PHASE));
        Ok(())
    }

    pub fn send_report(&self, report: &impl Serialize) -> Outcome {
        let report = serde_json::to_value(report).map_err(std::io::Error::from)?;
        self.send_event(&Event::Done { phase: SEND_PHASE, result: Box::new(Report { report }) })
    }

    /// Sends the last report; the worker's endpoints stay open until the benchmark ends.
    pub fn finish(&self, report: &impl Serialize) -> Outcome {
        self.send_report(report)?;
        self.wait_for(Order::stop());
        Ok(())
    }
}
