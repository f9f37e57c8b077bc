//! Subscriptions that get the whole of something when it has changed.

use std::time::{Duration, Instant};

use super::turn::{Sink, TURN, Tick};
use crate::outbox::Output;
use crate::wire::Refusal;

/// Reads the present data; `None` if they are those of before.
pub type Read = Box<dyn FnMut(&Tick<'_>) -> Result<Option<String>, Refusal> + Send>;

/// Figures for a page: nodes, topics, hosts, problems; with `all`, those of robot-net itself too.
pub fn figures(all: bool) -> Read {
    Box::new(move |tick| Ok(tick.view.map(|view| view.text(all).to_owned())))
}

pub struct WholeSink {
    output: Output,
    interval: Duration,
    /// Whether it reads what a look at the domain has found.
    needs_view: bool,
    read: Read,
    last: Option<Instant>,
}

impl WholeSink {
    pub fn new(output: Output, interval: Duration, read: Read) -> WholeSink {
        WholeSink { output, interval, needs_view: false, read, last: None }
    }

    /// The same, of what a look at the domain has found.
    pub fn of_view(output: Output, interval: Duration, read: Read) -> WholeSink {
        WholeSink { needs_view: true, ..WholeSink::new(output, interval, read) }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.duration_since(last) + TURN / 2 >= self.interval)
    }
}

impl Sink for WholeSink {
    fn wants_look(&self, now: Instant) -> bool {
        self.needs_view && self.is_due(now)
    }

    fn tick(&mut self, tick: &Tick<'_>) {
        if !self.is_due(tick.now) || self.needs_view && tick.view.is_none() {
            return;
        }
        self.last = Some(tick.now);
        match (self.read)(tick) {
            Ok(data) => self.output.changed(data),
            Err(refusal) => self.output.trouble(&refusal),
        }
    }
}
