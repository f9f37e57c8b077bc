//! A tick of the thread, and its receivers.

use std::time::{Duration, Instant};

use super::history::History;
use super::view::View;
use crate::operations::Operations;

/// Interval between two ticks.
pub const TICK_INTERVAL: Duration = Duration::from_millis(50);

/// A receiver of ticks.
pub trait Sink: Send {
    /// Whether it needs a snapshot of the domain now.
    fn needs_snapshot(&self, _now: Instant) -> bool {
        false
    }

    /// Handles a tick, with a view if a snapshot was taken.
    fn tick(&mut self, tick: &Tick<'_>);
}

/// A tick.
pub struct Tick<'a> {
    pub now: Instant,
    pub operations: &'a Operations,
    pub view: Option<&'a View<'a>>,
    pub history: &'a History,
}
