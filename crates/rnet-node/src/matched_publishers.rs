//! How many publishers serve a subscriber whose reader is with another thread, and waiting for them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rnet_core::{Error, Result, TopicName};

use crate::inbox::MAX_PENDING_ERRORS;
use crate::inspection_shortage::ShortageReporter;
use crate::match_event::ChangeCounter;
use crate::options::deadline;
use crate::sync::lock;

/// Written by whoever has the reader, read by all.
#[derive(Default)]
pub struct MatchedPublishers {
    count: AtomicUsize,
    changed: Arc<ChangeCounter>,
    /// Publishers that cannot be followed and of which no wait has told yet.
    refused: Mutex<VecDeque<Error>>,
}

impl MatchedPublishers {
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub fn changed(&self) -> Arc<ChangeCounter> {
        self.changed.clone()
    }

    /// So many serve it now.
    pub fn set_count(&self, count: usize) {
        // One thread has the reader, so nobody else writes.
        if self.count() != count {
            self.count.store(count, Ordering::Release);
            self.changed.notify_all();
        }
    }

    /// One has come that cannot be followed.
    pub fn push_refused(&self, error: Error) {
        let mut refused = lock(&self.refused);
        if refused.len() == MAX_PENDING_ERRORS {
            refused.pop_front();
        }
        refused.push_back(error);
        drop(refused);
        self.changed.notify_all();
    }

    /// Only these are still to be told: of the others the user knows.
    pub fn retain_refused(&self, untold: impl Iterator<Item = Error>) {
        *lock(&self.refused) = untold.collect();
    }

    /// Waits until there are `n`, or one comes that cannot be followed, or cannot be looked for.
    pub fn wait(
        &self,
        topic: &TopicName,
        n: usize,
        timeout: Option<Duration>,
        shortage: &ShortageReporter,
    ) -> Result<()> {
        let waited = self.changed.wait_until(deadline(timeout), || {
            if self.count() >= n {
                return Some(Ok(()));
            }
            let refused = lock(&self.refused).pop_front();
            refused.or_else(|| shortage.take()).map(Err)
        });
        waited.unwrap_or_else(|| {
            let (topic, what) = (topic.to_string(), format!("{n} publishers on {topic}"));
            let after_ms = timeout.map_or(0, rnet_core::time::ms_ceil);
            Err(Error::Timeout { topic, what, after_ms })
        })
    }
}
