//! Objects that a process needs once, however many of its nodes use them: found by a number, dropped with the
//! last user.
//!
//! Nodes of one process know nothing of each other. Without this cache, each pair of nodes would open the
//! same objects of a peer separately.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::os::fork;

/// A smaller table is not searched for dropped entries.
const MIN_SWEEP_LEN: usize = 64;

/// Objects by number.
pub(crate) struct WeakCache<T>(Mutex<Table<T>>);

struct Table<T> {
    entries: BTreeMap<u64, Weak<T>>,
    /// At this size, entries of dropped objects are removed.
    full: usize,
}

impl<T> WeakCache<T> {
    pub const fn new() -> WeakCache<T> {
        WeakCache(Mutex::new(Table { entries: BTreeMap::new(), full: MIN_SWEEP_LEN }))
    }

    /// Behind the gate of `fork.rs`, so that a child never inherits a held lock. Nothing is dropped in here,
    /// because a drop may also pass the gate.
    fn with<R>(&self, act: impl FnOnce(&mut Table<T>) -> R) -> R {
        fork::without_fork(|| act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The object with this number.
    pub fn find(&self, number: u64) -> Option<Arc<T>> {
        self.with(|table| table.entries.get(&number).and_then(Weak::upgrade))
    }

    /// The objects with these numbers.
    pub fn find_all(&self, numbers: impl Iterator<Item = u64>) -> Vec<Arc<T>> {
        self.with(|table| {
            let find = |number| table.entries.get(&number).and_then(Weak::upgrade);
            numbers.filter_map(find).collect()
        })
    }

    /// Inserts an object, or returns the one that another thread inserted meanwhile if it is `good`.
    pub fn get_or_insert(&self, number: u64, new: Arc<T>, good: impl Fn(&T) -> bool) -> Arc<T> {
        let (kept, _dropped) =
            self.with(|table| match table.entries.get(&number).and_then(Weak::upgrade) {
                Some(old) if good(&old) => (old, Some(new)),
                old => {
                    table.entries.insert(number, Arc::downgrade(&new));
                    if table.entries.len() >= table.full {
                        table.entries.retain(|_, thing| thing.strong_count() > 0);
                        table.full = MIN_SWEEP_LEN.max(2 * table.entries.len());
                    }
                    (new, old)
                }
            });
        kept
    }
}
