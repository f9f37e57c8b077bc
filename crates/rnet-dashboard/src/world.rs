//! What everything of a dashboard shares: what it was started with, and whether it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::options::Options;
use crate::wire::Refusal;

/// Tells a thread whether somebody still wants something of it; it ends when this is dropped.
pub struct Wish(Arc<AtomicBool>);

impl Wish {
    pub fn new() -> (Wish, Wanted) {
        let alive = Arc::new(AtomicBool::new(true));
        (Wish(alive.clone()), Wanted(alive))
    }
}

impl Drop for Wish {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The other end of a [`Wish`].
#[derive(Clone)]
pub struct Wanted(Arc<AtomicBool>);

impl Wanted {
    pub fn is_so(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

pub struct World {
    pub options: Options,
    stopped: AtomicBool,
}

impl World {
    pub fn new(options: Options) -> World {
        World { options, stopped: AtomicBool::new(false) }
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Refuses what changes something where nothing may be changed.
    pub fn may_change(&self) -> Result<(), Refusal> {
        match self.options.read_only {
            false => Ok(()),
            true => Err(Refusal::new("read_only", "the dashboard was started with --read-only")),
        }
    }
}
