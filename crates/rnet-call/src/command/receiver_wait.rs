//! A driver's wait for its receiver.

use std::time::{Duration, Instant};

use rnet_core::{Error, Result};
use rnet_node::NodeHandle;

use super::builder::receiver_of;

/// Interval between two checks whether a wait for authority continues.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A wait for the receiver, in slices.
pub struct ReceiverWait<F> {
    pub node: NodeHandle,
    pub topic: String,
    /// `None` without a limit.
    pub until: Option<Instant>,
    pub after: Duration,
    pub keep_waiting: F,
    pub had_authority: bool,
}

impl<F: Fn() -> bool> ReceiverWait<F> {
    pub fn left(&self) -> Duration {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        self.until.map_or(Duration::MAX, left)
    }

    pub fn timed_out(&self, what: &str) -> Error {
        let what = format!("{what} of {}", self.topic);
        Error::timeout(self.topic.as_str(), what, self.after)
    }

    /// A receiver whose process is stopped answers only after it is resumed, so it is not waited for.
    fn check_running(&self) -> Result<()> {
        match receiver_of(&self.node, &self.topic, 0)? {
            Some(node) if self.node.is_stopped(&node) => {
                let why = format!("the process of its receiver {node} is stopped");
                Err(Error::NotInForce {
                    topic: self.topic.clone(),
                    why,
                    had_authority: self.had_authority,
                })
            }
            _ => Ok(()),
        }
    }

    pub fn poll_until<R>(
        &self,
        what: &str,
        mut wait: impl FnMut(Duration) -> Result<R>,
    ) -> Result<R> {
        loop {
            let left = self.left();
            match wait(left.min(POLL_INTERVAL)) {
                Err(Error::Timeout { .. } | Error::Interrupted) => self.check_running()?,
                done => return done,
            }
            match (left.is_zero(), (self.keep_waiting)()) {
                (true, _) => return Err(self.timed_out(what)),
                (false, true) => {}
                (false, false) => return Err(Error::Interrupted),
            }
        }
    }
}
