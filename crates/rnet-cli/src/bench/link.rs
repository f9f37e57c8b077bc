//! A worker's end of the line to its command.
//!
//! The command holds the other end of the worker's stdin for as long as it lives. When that end
//! is gone the command has died, however it died: a thread that reads stdin then removes the
//! private directory and ends the process, whatever its other threads are doing.

use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::job::{Job, Order, Word};
use super::place;
use super::usage::LISTENER;
use crate::failure::{Failure, Outcome};

/// Exit code of a worker whose command has died. Nobody is there to read it.
const ORPHANED: i32 = 1;

pub struct Link {
    orders: Receiver<Order>,
}

impl Link {
    /// Reads the job, and listens from then on.
    pub fn open<R: DeserializeOwned>() -> Outcome<(Job<R>, Link)> {
        let mut first = String::new();
        let cannot = |e| Failure::Failed(format!("a bench-worker cannot begin: {e}"));
        std::io::stdin().lock().read_line(&mut first).map_err(cannot)?;
        let job: Job<R> = serde_json::from_str(&first).map_err(|e| {
            Failure::Usage(format!(
                "bench-worker is started by `rnet bench`, which gives it a job; this is none: {e}"
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
        let listen = move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                let Ok(order) = serde_json::from_str(&line) else { break };
                if sender.send(order).is_err() {
                    // The worker is about to end.
                    return;
                }
            }
            place::remove(&place);
            std::process::exit(ORPHANED);
        };
        std::thread::Builder::new().name(LISTENER.to_owned()).spawn(listen).map_err(cannot)?;
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

    pub fn say(&self, word: &Word) -> Outcome {
        let mut out = std::io::stdout().lock();
        serde_json::to_writer(&mut out, word).map_err(std::io::Error::from)?;
        out.write_all(b"\n")?;
        out.flush()?;
        Ok(())
    }

    pub fn done(&self, report: &impl Serialize) -> Outcome {
        let report: Value = serde_json::to_value(report).map_err(std::io::Error::from)?;
        self.say(&Word::Done(report))
    }
}
