//! Keys whose time is over: nobody sees them any more, and their memory is to come back.
//!
//! Who watches a key deletes it at its time, so that all are told. Of the others, each node remembers
//! the keys that it gave a time to, and deletes some that are over each time it writes another such
//! key. What a node leaves that ends, or writes no more, is looked for when memory is short.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::PoisonError;

use super::{Inner, Region, Write};

/// Keys that a node remembers; those beyond are found when memory is short.
const REMEMBERED: usize = 1 << 16;
/// Keys that one write deletes.
const AT_A_TIME: usize = 2;

/// What a node remembers: when, at which revision, which key.
pub(super) type Ends = BinaryHeap<Reverse<(u64, u64, Box<str>)>>;

impl Region {
    /// A key was written that ends at a time.
    pub(super) fn remember(&self, ends_unix_ns: u64, revision: u64, key: &str) {
        let now = (self.inner.clock)();
        let mut over = Vec::new();
        {
            let mut ends = self.inner.ends.lock().unwrap_or_else(PoisonError::into_inner);
            if ends.len() < REMEMBERED {
                ends.push(Reverse((ends_unix_ns, revision, key.into())));
            }
            while over.len() < AT_A_TIME
                && ends.peek().is_some_and(|Reverse((at, ..))| *at <= now)
                && let Some(Reverse((_, revision, key))) = ends.pop()
            {
                over.push((revision, key));
            }
        }
        for (revision, key) in over {
            self.end(&key, revision);
        }
    }

    /// Deletes a key that is over, unless it was written since. Not at all if it is on disk and that
    /// cannot be told: it is not there for anybody, and a start does not load it.
    fn end(&self, key: &str, revision: u64) {
        let write = Write { key, value: None, expect: Some(revision), durable: None };
        let _ = self.commit_now(&[write], &[], &mut |_, _| Ok(()));
    }

    /// Deletes all that is over; whether there was any.
    pub(super) fn reap(&self) -> bool {
        let inner: &Inner = &self.inner;
        let now = (inner.clock)();
        let mut over = Vec::new();
        let Ok(ring) = inner.sound() else { return false };
        let walked = ring.each_expired(inner.lane, now, &mut |record| {
            if let Ok(key) = str::from_utf8(record.key()) {
                over.push((record.facts.revision, Box::from(key)));
            }
        });
        let over: Vec<(u64, Box<str>)> = if walked.is_ok() { over } else { Vec::new() };
        for (revision, key) in &over {
            self.end(key, *revision);
        }
        !over.is_empty()
    }
}
