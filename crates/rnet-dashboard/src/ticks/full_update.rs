//! Subscriptions that get all data whenever it has changed.

use std::time::{Duration, Instant};

use super::tick::{Sink, TICK_INTERVAL, Tick};
use crate::outbox::Output;
use crate::wire::Refusal;

/// Reads the current data; `None` if it is unchanged.
pub type Read = Box<dyn FnMut(&Tick<'_>) -> Result<Option<String>, Refusal> + Send>;

/// Figures for a page: nodes, topics, hosts, problems; with `all`, also those of robot-net itself.
pub fn figures(all: bool) -> Read {
    Box::new(move |tick| Ok(tick.view.map(|view| view.text(all).to_owned())))
}

pub struct FullUpdateSink {
    output: Output,
    interval: Duration,
    /// Whether it reads from a snapshot of the domain.
    needs_view: bool,
    read: Read,
    last: Option<Instant>,
}

impl FullUpdateSink {
    pub fn new(output: Output, interval: Duration, read: Read) -> FullUpdateSink {
        FullUpdateSink { output, interval, needs_view: false, read, last: None }
    }

    /// Like `new`, for data from a snapshot of the domain.
    pub fn of_view(output: Output, interval: Duration, read: Read) -> FullUpdateSink {
        FullUpdateSink { needs_view: true, ..FullUpdateSink::new(output, interval, read) }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.duration_since(last) + TICK_INTERVAL / 2 >= self.interval)
    }
}

impl Sink for FullUpdateSink {
    fn needs_snapshot(&self, now: Instant) -> bool {
        self.needs_view && self.is_due(now)
    }

    fn tick(&mut self, tick: &Tick<'_>) {
        if !self.is_due(tick.now) || self.needs_view && tick.view.is_none() {
            return;
        }
        self.last = Some(tick.now);
        match (self.read)(tick) {
            Ok(data) => self.output.send_if_changed(data),
            Err(refusal) => self.output.error(&refusal),
        }
    }
}
