//! Expired keys: readers no longer see them, and their memory must be freed.
//!
//! A watcher of a key deletes it when it expires, so that all watchers are notified. Each node also remembers
//! the keys for which it set an expiry time, and deletes some expired ones each time it writes another such
//! key. The expired keys of a node that exits, or stops writing, are searched for when memory is short.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::PoisonError;

use rnet_core::Error;
use rnet_ring::state::{self as ring, CommitError, LeafMeta};

use super::{Inner, MAX_ATTEMPTS, Region, Write, back_off, content};

/// Maximum number of keys that a node remembers; others are found when memory is short.
const MAX_TRACKED_KEYS: usize = 1 << 16;
/// Maximum number of keys that one write deletes.
const DELETES_PER_WRITE: usize = 2;

/// The keys for which a node set an expiry time.
#[derive(Default)]
pub(super) struct ExpiryQueue {
    /// When to check which key; each key is listed once.
    due: BinaryHeap<Reverse<(u64, Box<str>)>>,
    /// The current expiry time of each key, and its revision.
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

    /// Takes an expired key, with the revision of the expired value.
    fn pop_expired(&mut self, now: u64) -> Option<(u64, Box<str>)> {
        while self.due.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            let Reverse((_, key)) = self.due.pop()?;
            match self.latest.get(&key).copied() {
                // The expiry time was extended meanwhile.
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
    /// Remembers a written key that expires.
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

    /// Deletes an expired key unless it was written since. The persister also deletes a durable key on disk.
    ///
    /// Never blocks. Returns `false` if the deletion is impossible: no memory is left to record it, or a
    /// transaction on the key is being written to disk.
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
        // Only if the key is absent for readers.
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

    /// Deletes all expired keys; returns whether any existed.
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
