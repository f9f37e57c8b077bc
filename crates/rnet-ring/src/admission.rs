//! Answers of a publisher to readers that request admission, one entry of its page for each.
//!
//! Only the publisher writes an entry; any reader may read it at any time. A reader accepts an entry as the
//! answer to its request only if it has read one complete answer. [`crate::reader_requests`] and
//! [`crate::reader_admission`] define which answers are given, and when.

use crate::fail_point;
use crate::layout::{ADMISSION_ACTIVE, ADMISSION_DETACHED, ADMISSION_FREE, Admission, LogControl};
use crate::sync::{AtomicU64, Ordering, fence};

/// The entries of one publisher, in two parts: the first ones are in its first page, the others after its
/// log, where memory is allocated when they are first used.
#[derive(Clone, Copy)]
pub struct AdmissionTable<'a> {
    first: &'a [Admission],
    more: &'a [Admission],
    /// Number of used entries, from the first on; `None`: all.
    used: Option<&'a AtomicU64>,
}

impl<'a> AdmissionTable<'a> {
    /// The table of a publisher. `more` are the entries beyond those in `control`.
    #[inline]
    pub fn new(control: &'a LogControl, more: &'a [Admission]) -> AdmissionTable<'a> {
        let used = Some(&control.flow.used_admissions);
        AdmissionTable { first: &control.admissions, more, used }
    }

    /// A contiguous table; all its entries are in use.
    pub fn contiguous(entries: &'a [Admission]) -> AdmissionTable<'a> {
        AdmissionTable { first: entries, more: &[], used: None }
    }

    /// Capacity of the table.
    pub fn len(&self) -> usize {
        self.first.len() + self.more.len()
    }

    /// Whether its capacity is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of entries that were ever used, from the first on. Accessing another entry might allocate
    /// memory.
    pub fn used(&self) -> usize {
        // Acquire: pairs with `set_used`, before which the entries got their memory.
        let used = self.used.map_or(u64::MAX, |used| used.load(Ordering::Acquire));
        usize::try_from(used).unwrap_or(usize::MAX).min(self.len())
    }

    /// Publisher side: the first `count` entries have memory and may be accessed.
    pub fn set_used(&self, count: usize) {
        if let Some(used) = self.used
            && self.used() < count
        {
            used.store(count as u64, Ordering::Release);
        }
    }

    /// The entry at `place`, used or not.
    ///
    /// # Panics
    /// If `place` is not below the capacity.
    #[inline]
    pub fn at(&self, place: usize) -> &'a Admission {
        match self.first.get(place) {
            Some(entry) => entry,
            None => &self.more[place - self.first.len()],
        }
    }

    /// The used entries.
    pub fn iter(&self) -> impl Iterator<Item = &'a Admission> {
        self.first.iter().chain(self.more).take(self.used())
    }
}

/// One request for admission. A subscription numbers its requests, so that no two are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    /// The subscription.
    pub subscription: u64,
    /// Number of the request in its subscription.
    pub generation: u64,
}

/// The answer to a request: the position from which the writer keeps the log for this reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The answered request.
    pub request: RequestId,
    /// First byte position that the reader gets.
    pub start: u64,
    /// Sequence number of the message there.
    pub start_seq: u64,
}

/// Whether an answer is still valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdmissionState {
    /// The writer keeps the log for the reader.
    Active,
    /// The reader made no progress for too long. It was promised everything after `start`, but must expect
    /// gaps until it requests admission again.
    Detached,
}

/// Publisher side: writes an answer. The previous content of the entry is invalidated first.
pub fn answer(entry: &Admission, grant: Grant, state: AdmissionState) {
    entry.state.store(ADMISSION_FREE, Ordering::Relaxed);
    // SYNC-ADMIT: a reader that sees a word of this answer also sees the invalidation of the one before.
    fence(Ordering::Release);
    fail_point!("admit.taken_back");
    entry.subscription.store(grant.request.subscription, Ordering::Relaxed);
    fail_point!("admit.subscription");
    entry.generation.store(grant.request.generation, Ordering::Relaxed);
    fail_point!("admit.generation");
    entry.start.store(grant.start, Ordering::Relaxed);
    fail_point!("admit.from");
    entry.start_seq.store(grant.start_seq, Ordering::Relaxed);
    fail_point!("admit.seq");
    let state = match state {
        AdmissionState::Active => ADMISSION_ACTIVE,
        AdmissionState::Detached => ADMISSION_DETACHED,
    };
    // SYNC-ADMIT: stored last, so that a reader that sees it sees the complete answer.
    entry.state.store(state, Ordering::Release);
    fail_point!("admit.active");
}

/// Publisher side: the answer is no longer valid; it can still be read.
pub fn detach(entry: &Admission) {
    entry.state.store(ADMISSION_DETACHED, Ordering::Release);
}

/// Publisher side: the requester is gone.
pub fn free(entry: &Admission) {
    entry.state.store(ADMISSION_FREE, Ordering::Release);
}

/// Reader side: the answer to its request, and the entry's index.
pub fn find(entries: AdmissionTable<'_>, id: RequestId) -> Option<(usize, Grant, AdmissionState)> {
    entries.iter().enumerate().find_map(|(place, entry)| {
        let (grant, state) = read(entry, id)?;
        Some((place, grant, state))
    })
}

/// Reader side: the answer of the entry to `id`; `None` if the entry answers another request or is being
/// written.
pub fn read(entry: &Admission, id: RequestId) -> Option<(Grant, AdmissionState)> {
    // SYNC-ADMIT: pairs with the last store of `answer`.
    let state = || match entry.state.load(Ordering::Acquire) {
        ADMISSION_ACTIVE => Some(AdmissionState::Active),
        ADMISSION_DETACHED => Some(AdmissionState::Detached),
        _ => None,
    };
    let grant = || Grant {
        request: RequestId {
            subscription: entry.subscription.load(Ordering::Relaxed),
            generation: entry.generation.load(Ordering::Relaxed),
        },
        start: entry.start.load(Ordering::Relaxed),
        start_seq: entry.start_seq.load(Ordering::Relaxed),
    };
    state()?;
    let found = grant();
    if found.request != id {
        return None;
    }
    // SYNC-ADMIT: the entry may have been reassigned meanwhile. If a word above belongs to a later answer,
    // the state loaded below is at least as new as the start of that answer.
    fence(Ordering::Acquire);
    let state = state()?;
    (grant() == found).then_some((found, state))
}

/// Reader side, for the entry that answered its request: whether the writer still keeps the log for it.
pub fn is_active(entry: &Admission, id: RequestId) -> bool {
    entry.state.load(Ordering::Acquire) == ADMISSION_ACTIVE
        && entry.subscription.load(Ordering::Relaxed) == id.subscription
        && entry.generation.load(Ordering::Relaxed) == id.generation
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::layout::{READERS_IN_CONTROL, READERS_PER_LOG};

    /// Readers do not access entries past the end of the table, whatever the publisher's page contains, and
    /// the publisher never reduces the number of used entries.
    #[test]
    fn only_used_entries_are_accessed() {
        let control = LogControl::default();
        let more: Vec<Admission> =
            (READERS_IN_CONTROL..READERS_PER_LOG).map(|_| Admission::default()).collect();
        let table = AdmissionTable::new(&control, &more);
        assert_eq!((table.len(), table.iter().count()), (READERS_PER_LOG, 0));
        for (place, used) in [(0, 1), (63, 64), (64, 65), (2, 65), (READERS_PER_LOG - 1, 512)] {
            table.set_used(place + 1);
            assert_eq!((table.used(), table.iter().count()), (used, used));
        }
        assert!(std::ptr::eq(table.at(63), &control.admissions[63]));
        assert!(std::ptr::eq(table.at(64), &more[0]));
        for lie in [u64::MAX, 1 << 32, READERS_PER_LOG as u64 + 1] {
            control.flow.used_admissions.store(lie, Ordering::Relaxed);
            assert_eq!((table.used(), table.iter().count()), (READERS_PER_LOG, READERS_PER_LOG));
        }
    }
}
