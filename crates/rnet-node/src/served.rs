//! How many publishers serve a subscriber whose reader is with another thread, and waiting for them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rnet_core::{Error, Result, TopicName};

use crate::inbox::MAX_PENDING_ERRORS;
use crate::match_event::Changes;
use crate::options::deadline;
use crate::unseen::UnseenAt;

/// Written by whoever has the reader, read by all.
#[derive(Default)]
pub struct Served {
    count: AtomicUsize,
    changed: Arc<Changes>,
    /// Publishers that cannot be followed and of which no wait has told yet.
    refused: Mutex<VecDeque<Error>>,
}

impl Served {
    fn refused(&self) -> MutexGuard<'_, VecDeque<Error>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub fn changed(&self) -> Arc<Changes> {
        self.changed.clone()
    }

    /// So many serve it now.
    pub fn show(&self, count: usize) {
        // One thread has the reader, so nobody else writes.
        if self.count() != count {
            self.count.store(count, Ordering::Release);
            self.changed.notify_all();
        }
    }

    /// One has come that cannot be followed.
    pub fn refuse(&self, error: Error) {
        let mut refused = self.refused();
        if refused.len() == MAX_PENDING_ERRORS {
            refused.pop_front();
        }
        refused.push_back(error);
        drop(refused);
        self.changed.notify_all();
    }

    /// Only these are still to be told: of the others the user knows.
    pub fn keep_refused(&self, untold: impl Iterator<Item = Error>) {
        *self.refused() = untold.collect();
    }

    /// Waits until there are `n`, or one comes that cannot be followed, or cannot be looked for.
    pub fn wait(
        &self,
        topic: &TopicName,
        n: usize,
        timeout: Option<Duration>,
        unseen: &UnseenAt,
    ) -> Result<()> {
        let until = deadline(timeout);
        loop {
            let seen = self.changed.count();
            if self.count() >= n {
                return Ok(());
            }
            let refused = self.refused().pop_front();
            if let Some(error) = refused.or_else(|| unseen.take()) {
                return Err(error);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(Error::Timeout {
                    topic: topic.to_string(),
                    what: format!("{n} publishers on {topic}"),
                    after_ms: timeout.map_or(0, rnet_core::time::ms_ceil),
                });
            }
            // After a signal the wait goes on.
            let _ = self.changed.wait(seen, left.unwrap_or(Duration::from_secs(3600)));
        }
    }
}
