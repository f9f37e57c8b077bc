//! Number of matched publishers of a subscriber whose reader belongs to another thread, and waits for it.

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

/// The thread that has the reader writes it; all threads read it.
#[derive(Default)]
pub struct MatchedPublishers {
    count: AtomicUsize,
    changed: Arc<ChangeCounter>,
    /// Errors of publishers that cannot be followed, not returned by a wait yet.
    refused: Mutex<VecDeque<Error>>,
}

impl MatchedPublishers {
    /// Number of matched publishers.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Counts the changes; waits sleep on it.
    pub(crate) fn changed(&self) -> Arc<ChangeCounter> {
        self.changed.clone()
    }

    /// Sets the number of matched publishers.
    pub fn set_count(&self, count: usize) {
        // One thread has the reader, so there is only one writer.
        if self.count() != count {
            self.count.store(count, Ordering::Release);
            self.changed.notify_all();
        }
    }

    /// Adds the error of a publisher that cannot be followed.
    pub fn push_refused(&self, error: Error) {
        let mut refused = lock(&self.refused);
        if refused.len() == MAX_PENDING_ERRORS {
            refused.pop_front();
        }
        refused.push_back(error);
        drop(refused);
        self.changed.notify_all();
    }

    /// Keeps only these errors: the user knows the others.
    pub fn retain_refused(&self, untold: impl Iterator<Item = Error>) {
        *lock(&self.refused) = untold.collect();
    }

    /// Waits until `n` publishers match, or until one cannot be followed or inspected.
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
            let what = format!("{n} publishers");
            Err(Error::timeout(topic.shared().clone(), what, timeout.unwrap_or_default()))
        })
    }
}
