//! Queue of fired triggers, and of notes for the user.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Maximum number of queued triggers; further ones are only counted. The box takes them twenty times a
/// second.
const MAX_WAITING: usize = 256;
/// Maximum number of queued notes.
const MAX_NOTES: usize = 1000;

/// A trigger that has fired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FiredTrigger {
    /// The trigger's text; `call` for a requested file.
    pub name: String,
    /// The reason.
    pub why: String,
    /// When it happened, in ns of CLOCK_MONOTONIC.
    pub at_ns: u64,
}

/// A queued trigger.
#[derive(Debug)]
pub struct PendingTrigger {
    pub fired: FiredTrigger,
    /// The node whose exit fired the trigger, if an expected exit of that node explains it.
    pub by: Option<String>,
}

#[derive(Debug, Default)]
pub struct TriggerQueue {
    inner: Mutex<Inner>,
    pushed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    fired: VecDeque<PendingTrigger>,
    /// Triggers that did not fit into the queue.
    more: u64,
    notes: Vec<String>,
    is_stopped: bool,
}

impl TriggerQueue {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a fired trigger; for `by` see [`PendingTrigger::by`].
    pub fn push(&self, fired: FiredTrigger, by: Option<String>) {
        let mut inner = self.lock();
        if inner.fired.len() < MAX_WAITING {
            inner.fired.push_back(PendingTrigger { fired, by });
        } else {
            inner.more += 1;
        }
        self.pushed.notify_one();
    }

    /// Takes the queued triggers and the number of triggers that did not fit; waits up to `limit` for one.
    pub fn wait(&self, limit: Duration) -> (VecDeque<PendingTrigger>, u64) {
        let none = |inner: &mut Inner| inner.fired.is_empty() && !inner.is_stopped;
        let waited = self.pushed.wait_timeout_while(self.lock(), limit, none);
        let (mut inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut inner.fired), std::mem::take(&mut inner.more))
    }

    pub fn stop(&self) {
        self.lock().is_stopped = true;
        self.pushed.notify_all();
    }

    pub fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// Adds a note for the user, unless it equals the last one.
    pub fn note(&self, note: String) {
        let mut inner = self.lock();
        if inner.notes.last() != Some(&note) && inner.notes.len() < MAX_NOTES {
            inner.notes.push(note);
        }
    }

    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().notes)
    }
}
