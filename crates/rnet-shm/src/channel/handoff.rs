//! Passes the newest of a series of values to one receiver, without a lock.
//!
//! The control thread changes a publisher's readers under a mutex. The sending thread reads them and must
//! take no lock, because the control thread may be stopped while it holds one. So each change puts a snapshot
//! here, replacing one that was not taken, and the sender takes it. A value has one owner at a time, because
//! a swap of the pointer is the only access.

use std::sync::atomic::{AtomicPtr, Ordering};

/// A slot for one value; a newer value replaces it.
#[derive(Debug)]
pub(crate) struct Handoff<T>(AtomicPtr<T>);

// SAFETY: a value moves from the thread that puts it to the thread that takes it and is never shared, so
// `Send` suffices.
unsafe impl<T: Send> Send for Handoff<T> {}
// SAFETY: as above; the pointer is changed by atomic swaps only.
unsafe impl<T: Send> Sync for Handoff<T> {}

impl<T> Default for Handoff<T> {
    fn default() -> Self {
        Handoff(AtomicPtr::new(std::ptr::null_mut()))
    }
}

impl<T> Handoff<T> {
    /// Puts a value, replacing one that was not taken.
    pub(crate) fn put(&self, value: T) {
        self.exchange(Box::into_raw(Box::new(value)));
    }

    /// Takes the newest value, if it was not taken yet.
    pub(crate) fn take(&self) -> Option<T> {
        self.exchange(std::ptr::null_mut()).map(|value| *value)
    }

    fn exchange(&self, new: *mut T) -> Option<Box<T>> {
        let old = self.0.swap(new, Ordering::AcqRel);
        // SAFETY: a pointer that is not null comes from `put`, and the swap that returned it removed it, so
        // no other thread has it. Acquire: what was written before `put` is visible.
        (!old.is_null()).then(|| unsafe { Box::from_raw(old) })
    }
}

impl<T> Drop for Handoff<T> {
    fn drop(&mut self) {
        self.take();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn newest_is_taken_once_and_others_are_dropped() {
        let counted = Arc::new(());
        let place = Handoff::default();
        std::thread::scope(|scope| {
            let puts = scope.spawn(|| {
                for turn in 0..1000_u32 {
                    place.put((turn, counted.clone()));
                }
            });
            let mut last = None;
            while !puts.is_finished() {
                let Some((turn, _)) = place.take() else { continue };
                assert!(last < Some(turn), "{turn} after {last:?}");
                last = Some(turn);
            }
        });
        place.put((0, counted.clone()));
        assert_eq!(place.take().map(|(turn, _)| turn), Some(0));
        assert!(place.take().is_none());
        place.put((0, counted.clone()));
        drop(place);
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}
