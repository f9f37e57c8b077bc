//! The time by which timers and rates run. All of them ask here what time it is and how long to wait, so
//! a node whose time is not the host's needs another answer in this file and nowhere else.

use std::time::Duration;

use rnet_shm::{clock, sleep};

/// The clock of a node: CLOCK_MONOTONIC of the host.
#[derive(Clone, Debug, Default)]
pub struct NodeTime;

impl NodeTime {
    /// Now, in ns.
    pub fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    /// How long a thread that can be woken at its bell may sleep before it looks again whether it is
    /// `due_ns`.
    pub fn left_until(&self, due_ns: u64) -> Duration {
        Duration::from_nanos(due_ns.saturating_sub(self.now_ns()))
    }

    /// Sleeps until it is `due_ns`, or for `limit` at the longest. Returns `false` if a signal ended
    /// the sleep.
    pub fn sleep_until(&self, due_ns: u64, limit: Duration) -> bool {
        sleep::sleep_for(self.left_until(due_ns).min(limit))
    }
}
