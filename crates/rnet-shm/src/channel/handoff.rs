//! Passes the newest of a series of values to one taker, without a lock.
//!
//! A publisher's readers are changed by the control thread behind a mutex, and looked at by the
//! thread that sends, which must take none: the control thread may be stopped while it holds it.
//! So each change puts a snapshot here, in place of one that nobody has taken, and the sender takes
//! what is there. A value has one owner at a time, because a swap of the pointer is the only access.

use std::sync::atomic::{AtomicPtr, Ordering};

/// A place for one value; a newer one replaces it.
#[derive(Debug)]
pub(crate) struct Handoff<T>(AtomicPtr<T>);

// SAFETY: a value is handed from the thread that puts it to the one that takes it and is never
// shared, so `Send` is all that it needs.
unsafe impl<T: Send> Send for Handoff<T> {}
// SAFETY: as above; the pointer is changed by atomic swaps only.
unsafe impl<T: Send> Sync for Handoff<T> {}

impl<T> Default for Handoff<T> {
    fn default() -> Self {
        Handoff(AtomicPtr::new(std::ptr::null_mut()))
    }
}

impl<T> Handoff<T> {
    /// Puts a value, in place of one that was not taken.
    pub(crate) fn put(&self, value: T) {
        self.exchange(Box::into_raw(Box::new(value)));
    }

    /// Takes the value that was put last, if it is still there.
    pub(crate) fn take(&self) -> Option<T> {
        self.exchange(std::ptr::null_mut()).map(|value| *value)
    }

    fn exchange(&self, new: *mut T) -> Option<Box<T>> {
        let old = self.0.swap(new, Ordering::AcqRel);
        // SAFETY: a pointer that is not null comes from `put`, and the swap that returned it took it
        // out, so nobody else has it. Acquire: what was written before it was put is seen.
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
    fn the_newest_is_taken_once_and_the_others_are_dropped() {
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
