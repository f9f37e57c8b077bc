//! Keys whose time is over: nobody sees them any more, and their memory is to come back.
//!
//! Who watches a key deletes it at its time, so that all are told. Of the others, each node remembers
//! the keys that it gave a time to, and deletes some that are over each time it writes another such
//! key. What a node leaves that ends, or writes no more, is looked for when memory is short.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::PoisonError;

use rnet_core::Error;
use rnet_ring::state::{self as ring, CommitError, LeafMeta};

use super::{Inner, MAX_ATTEMPTS, Region, Write, back_off, content};

/// Keys that a node remembers; those beyond are found when memory is short.
const MAX_TRACKED_KEYS: usize = 1 << 16;
/// Keys that one write deletes.
const DELETES_PER_WRITE: usize = 2;

/// What a node remembers of the keys that it gave a time to.
#[derive(Default)]
pub(super) struct ExpiryQueue {
    /// When to look at which key; each stands there once.
    due: BinaryHeap<Reverse<(u64, Box<str>)>>,
    /// When it really ends by now, and at which revision.
    latest: HashMap<Box<str>, (u64, u64)>,
}

impl ExpiryQueue {
    fn note(&mut self, ends_boot_ns: u64, revision: u64, key: &str) {
        if let Some(latest) = self.latest.get_mut(key) {
            *latest = (ends_boot_ns, revision);
        } else if self.latest.len() < MAX_TRACKED_KEYS {
            self.due.push(Reverse((ends_boot_ns, key.into())));
            self.latest.insert(key.into(), (ends_boot_ns, revision));
        }
    }

    /// A key that is over, and at which revision it was to be.
    fn pop_expired(&mut self, now: u64) -> Option<(u64, Box<str>)> {
        while self.due.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            let Reverse((_, key)) = self.due.pop()?;
            match self.latest.get(&key).copied() {
                // Renewed meanwhile.
                Some((ends, _)) if ends > now => self.due.push(Reverse((ends, key))),
                Some((_, revision)) => {
                    self.latest.remove(&key);
                    return Some((revision, key));
                }
                None => {}
            }
        }
        None
    }
}

impl Region {
    /// A key was written that ends at a time.
    pub(super) fn track_expiry(&self, ends_boot_ns: u64, revision: u64, key: &str) {
        let now = self.inner.clock.boot_ns();
        let mut over: Vec<(u64, Box<str>)> = Vec::with_capacity(DELETES_PER_WRITE);
        {
            let mut ends = self.inner.expiries.lock().unwrap_or_else(PoisonError::into_inner);
            ends.note(ends_boot_ns, revision, key);
            over.extend(std::iter::from_fn(|| ends.pop_expired(now)).take(DELETES_PER_WRITE));
        }
        for (revision, key) in over {
            self.delete_expired(&key, revision);
        }
    }

    /// Deletes a key that is over, unless it was written since. Of one that is on disk too the persister
    /// does the same there.
    ///
    /// Waits for nobody. `false` if it could not be done: there is no memory left to write that down, or a
    /// transaction on the key that is being written to disk is in the way.
    pub fn delete_expired(&self, key: &str, revision: u64) -> bool {
        let inner = &*self.inner;
        let Ok(ring_key) = inner.key(key) else { return false };
        let write = Write { key, value: None, expect: Some(revision), durable: None };
        let writer = inner.own.name().as_str().as_bytes();
        let write = ring::Write {
            key: &ring_key,
            content: content(&write, writer, inner.clock.unix_ns()),
            expect: write.expect,
            durable: None,
        };
        // Only what is not there any more.
        let mut over = |_, head: Option<&LeafMeta>| match head {
            None => Ok(()),
            Some(_) => Err(Error::Interrupted),
        };
        for attempt in 0..MAX_ATTEMPTS {
            match inner.attempt_one(&write, inner.clock.boot_ns(), &mut over) {
                Ok(_) | Err(CommitError::Conflict { .. }) => return true,
                Err(CommitError::Retry) => back_off(attempt),
                Err(_) => return false,
            }
        }
        false
    }

    /// Deletes all that is over; whether there was any.
    pub(super) fn reap(&self) -> bool {
        let inner: &Inner = &self.inner;
        let now = inner.clock.boot_ns();
        let mut over = Vec::new();
        let Ok(ring) = inner.checked_ring() else { return false };
        let walked = ring.each_expired(inner.process_slot, now, &mut |record| {
            if let Ok(key) = str::from_utf8(record.key()) {
                over.push((record.meta.revision, Box::from(key)));
            }
        });
        let over: Vec<(u64, Box<str>)> = if walked.is_ok() { over } else { Vec::new() };
        for (revision, key) in &over {
            self.delete_expired(key, *revision);
        }
        !over.is_empty()
    }
}
