//! The worker's side of the conversation with `compare`: see [`crate::spec`].

use crate::collect::Report;
use crate::spec::{Order, Spec};
use crate::{Error, Result};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// An event for a worker's main thread, which sleeps between events.
pub enum Note {
    /// An order of `compare`.
    Order(Order),
    /// A report of the worker's subscription of this number.
    Report(usize, Report),
}

enum Arrival {
    Order(std::result::Result<Order, String>),
    Report(usize, Report),
    End,
}

/// Where orders from standard input and reports of subscriptions arrive.
pub struct Inbox {
    arrivals: Receiver<Arrival>,
    sender: Sender<Arrival>,
}

impl Inbox {
    /// Reads the specification, the first line; a thread reads the lines that follow.
    ///
    /// # Errors
    /// If the line is not a specification.
    pub fn begin() -> Result<(Spec, Self)> {
        let spec = rnet_bench::worker::read_job()
            .map_err(|e| Error::new(format!("the first line is no specification: {e}")))?;
        let (sender, arrivals) = channel();
        let orders = sender.clone();
        rnet_bench::worker::spawn_order_reader(move |order| {
            // Fails if the worker has ended.
            orders.send(order.map_or(Arrival::End, Arrival::Order)).is_ok()
        })?;
        Ok((spec, Self { arrivals, sender }))
    }

    /// Where subscription `number` reports.
    pub fn reporter(&self, number: usize) -> impl FnMut(Report) + Send + 'static {
        let sender = self.sender.clone();
        move |report| {
            // Fails if the worker is closing.
            let _ = sender.send(Arrival::Report(number, report));
        }
    }

    /// The next order or report, or `None` after `timeout`. The end of the input is an order to stop.
    ///
    /// # Errors
    /// If a line is not an order.
    pub fn next(&self, timeout: Option<Duration>) -> Result<Option<Note>> {
        let arrival = match timeout {
            None => self.arrivals.recv().unwrap_or(Arrival::End),
            Some(timeout) => match self.arrivals.recv_timeout(timeout) {
                Ok(arrival) => arrival,
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => Arrival::End,
            },
        };
        Ok(Some(match arrival {
            Arrival::Report(number, report) => Note::Report(number, report),
            Arrival::End => Note::Order(Order::stop()),
            Arrival::Order(order) => Note::Order(order.map_err(Error::new)?),
        }))
    }
}
