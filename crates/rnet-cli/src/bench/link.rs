//! A worker's end of the line to its command.
//!
//! The command holds the other end of the worker's stdin for as long as it lives. When that end
//! is gone the command has died, however it died: a thread that reads stdin then removes the
//! private directory and ends the process, whatever its other threads are doing.

use std::sync::mpsc::{Receiver, TryRecvError, channel};

use rnet_bench::worker::Order;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::job::{Event, GO, Job, Report};
use super::place;
use crate::failure::{Failure, Outcome};

/// Exit code of a worker whose command has died. Nobody is there to read it.
const ORPHANED: i32 = 1;

pub struct Link {
    orders: Receiver<Order>,
}

impl Link {
    /// Reads the job, and listens from then on.
    pub fn open<R: DeserializeOwned>() -> Outcome<(Job<R>, Link)> {
        let cannot = |e| Failure::Failed(format!("a bench-worker cannot begin: {e}"));
        let job: Job<R> = rnet_bench::worker::job().map_err(|e| {
            Failure::Usage(format!(
                "bench-worker is started by `rnet bench` or `rnet demo` with a job; this is none: {e}"
            ))
        })?;
        // It is removed with all that is in it, whoever gave the job.
        if !place::is_place(&job.node.place) {
            return Err(Failure::Usage(format!(
                "bench-worker works in the directory of a bench, robot-net-bench-…; {} is none",
                job.node.place.display()
            )));
        }
        let (sender, orders) = channel();
        let place = job.node.place.clone();
        let take = move |order: Option<Result<Order, String>>| match order {
            Some(Ok(order)) => sender.send(order).is_ok(),
            Some(Err(_)) | None => {
                place::remove(&place);
                std::process::exit(ORPHANED)
            }
        };
        rnet_bench::worker::listen(take).map_err(cannot)?;
        Ok((job, Link { orders }))
    }

    /// Waits for this order; those before it have been overtaken.
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

    /// The last report; what the worker has stays until the bench ends.
    pub fn finish(&self, report: &impl Serialize) -> Outcome {
        self.done(report)?;
        self.until(Order::stop());
        Ok(())
    }

    pub fn done(&self, report: &impl Serialize) -> Outcome {
        let report: Value = serde_json::to_value(report).map_err(std::io::Error::from)?;
        self.say(&Event::Done { phase: GO, result: Box::new(Report { report }) })
    }
}
