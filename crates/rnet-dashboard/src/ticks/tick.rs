//! A turn of the thread, and what is told of it.

use std::time::{Duration, Instant};

use super::history::History;
use super::view::View;
use crate::operations::Operations;

/// Between two turns.
pub const TICK_INTERVAL: Duration = Duration::from_millis(50);

/// Something that is told of each turn.
pub trait Sink: Send {
    /// Whether it needs a look at the domain now.
    fn needs_snapshot(&self, _now: Instant) -> bool {
        false
    }

    /// A turn; with a view if there was a look. An error ends it, and is told to the page.
    fn tick(&mut self, tick: &Tick<'_>);
}

/// A turn.
pub struct Tick<'a> {
    pub now: Instant,
    pub operations: &'a Operations,
    pub view: Option<&'a View<'a>>,
    pub history: &'a History,
}
