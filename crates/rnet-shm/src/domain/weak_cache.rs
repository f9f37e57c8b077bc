//! What a process needs once, however many of its nodes use it: found by a number, gone with its last user.
//!
//! Nodes know nothing of each other, also where they share a process. What they have open of the same peer
//! would be open once for each pair of nodes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::os::fork;

/// Entries below which a table is not searched for those that are gone.
const MIN_SWEEP_LEN: usize = 64;

/// Things by number.
pub(crate) struct WeakCache<T>(Mutex<Table<T>>);

struct Table<T> {
    entries: BTreeMap<u64, Weak<T>>,
    /// With so many entries, those of things that are gone are removed.
    full: usize,
}

impl<T> WeakCache<T> {
    pub const fn new() -> WeakCache<T> {
        WeakCache(Mutex::new(Table { entries: BTreeMap::new(), full: MIN_SWEEP_LEN }))
    }

    /// Behind the gate of `fork.rs`, so that no child inherits the lock while it is held. Nothing is dropped
    /// in there, as that may pass the gate, too.
    fn with<R>(&self, act: impl FnOnce(&mut Table<T>) -> R) -> R {
        fork::without_fork(|| act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The thing of this number.
    pub fn find(&self, number: u64) -> Option<Arc<T>> {
        self.with(|table| table.entries.get(&number).and_then(Weak::upgrade))
    }

    /// The things of these numbers.
    pub fn find_all(&self, numbers: impl Iterator<Item = u64>) -> Vec<Arc<T>> {
        self.with(|table| {
            let find = |number| table.entries.get(&number).and_then(Weak::upgrade);
            numbers.filter_map(find).collect()
        })
    }

    /// Enters a thing, or returns the one that another thread has entered meanwhile, if that is `good`.
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
