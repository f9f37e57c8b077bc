//! What a worker of a bench and its command share: the worker's node, the phases, and what each says.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use crate::worker::Order;
use rnet::Node;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bench_dir;
use rnet_format::{CommandError, Outcome};

/// Exit code of a worker whose command has died. Nobody is there to read it.
const ORPHANED_EXIT_CODE: i32 = 1;
/// The phase in which workers send.
pub const SEND_PHASE: usize = 0;
/// The phase after it: all has been sent; read what is left and report.
pub const COLLECT_PHASE: usize = 1;
/// How long endpoints of a topic wait for each other. All workers are started, so one that does not come has failed, and
/// says so itself.
pub const MATCH_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a sender waits for a reader that makes no progress.
pub const WAIT_LIMIT: Duration = Duration::from_secs(10);
/// How often a worker that receives nothing looks for an order.
pub const ORDER_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A worker's node.
#[derive(Debug, Serialize, Deserialize)]
pub struct WorkerNode {
    pub name: String,
    /// The private directory of the bench, which is removed with it.
    pub bench_dir: PathBuf,
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

/// What a worker says.
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
    /// Listens to the command of a bench in this private directory.
    pub fn open(bench_dir: &Path) -> Outcome<Link> {
        // It is removed with all that is in it, whoever gave the job.
        if !bench_dir::is_bench_dir(bench_dir) {
            let path = bench_dir.display();
            return Err(CommandError::Usage(format!(
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
        let failed = |e| CommandError::Failed(format!("cannot start a bench-worker: {e}"));
        crate::worker::spawn_order_reader(take).map_err(failed)?;
        Ok(Link { orders })
    }

    /// Waits for this order; those before it are obsolete.
    pub fn wait_for(&self, order: Order) {
        // The listener ends only with the process.
        while self.orders.recv().is_ok_and(|came| came != order) {}
    }

    /// Whether there is a new order.
    pub fn has_new_order(&self) -> bool {
        !matches!(self.orders.try_recv(), Err(TryRecvError::Empty))
    }

    pub fn send_event(&self, event: &Event) -> Outcome {
        Ok(crate::worker::send_event(event)?)
    }

    /// Says that this worker has met its peers, and waits for the first phase.
    pub fn report_ready(&self) -> Outcome {
        self.send_event(&Event::Ready)?;
        self.wait_for(Order::phase(SEND_PHASE));
        Ok(())
    }

    pub fn send_report(&self, report: &impl Serialize) -> Outcome {
        let report = serde_json::to_value(report).map_err(std::io::Error::from)?;
        self.send_event(&Event::Done { phase: SEND_PHASE, result: Box::new(Report { report }) })
    }

    /// The last report; what the worker has open stays until the bench ends.
    pub fn finish(&self, report: &impl Serialize) -> Outcome {
        self.send_report(report)?;
        self.wait_for(Order::stop());
        Ok(())
    }
}
