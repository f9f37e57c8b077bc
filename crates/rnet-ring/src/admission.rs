//! What a publisher answers those that ask to read, one entry of its page for each.
//!
//! An entry is written by its publisher alone, while any reader may look at it. A reader takes an
//! entry for the answer to its request only if it has read the whole of one answer; which answers
//! there are, and when, is for [`crate::reader_requests`] and [`crate::follower`] to say.

use crate::fail_point;
use crate::layout::{ADMISSION_ACTIVE, ADMISSION_DETACHED, ADMISSION_FREE, Admission, LogControl};
use crate::sync::{AtomicU64, Ordering, fence};

/// The entries of one publisher, in two pieces: the first stand in its first page, the others behind its log,
/// where memory is taken for them as they come into use.
#[derive(Clone, Copy)]
pub struct AdmissionTable<'a> {
    first: &'a [Admission],
    more: &'a [Admission],
    /// How many are in use, from the first on; `None`: all.
    used: Option<&'a AtomicU64>,
}

impl<'a> AdmissionTable<'a> {
    /// The table of a publisher: `more` are the entries that `control` has no room for.
    #[inline]
    pub fn new(control: &'a LogControl, more: &'a [Admission]) -> AdmissionTable<'a> {
        let used = Some(&control.flow.used_admissions);
        AdmissionTable { first: &control.admissions, more, used }
    }

    /// A table in one piece, of which all entries are in use.
    pub fn contiguous(entries: &'a [Admission]) -> AdmissionTable<'a> {
        AdmissionTable { first: entries, more: &[], used: None }
    }

    /// How many entries it has room for.
    pub fn len(&self) -> usize {
        self.first.len() + self.more.len()
    }

    /// Whether it has room for none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many entries were ever in use, from the first on. A look at any other might take memory.
    pub fn used(&self) -> usize {
        // Acquire: pairs with `set_used`, behind which the entries have memory.
        let used = self.used.map_or(u64::MAX, |used| used.load(Ordering::Acquire));
        usize::try_from(used).unwrap_or(usize::MAX).min(self.len())
    }

    /// The publisher's side: the first `count` entries have memory and may be looked at.
    pub fn set_used(&self, count: usize) {
        if let Some(used) = self.used
            && self.used() < count
        {
            used.store(count as u64, Ordering::Release);
        }
    }

    /// The entry at `place`, in use or not.
    ///
    /// # Panics
    /// If the table has no such place.
    #[inline]
    pub fn at(&self, place: usize) -> &'a Admission {
        match self.first.get(place) {
            Some(entry) => entry,
            None => &self.more[place - self.first.len()],
        }
    }

    /// The entries in use.
    pub fn iter(&self) -> impl Iterator<Item = &'a Admission> {
        self.first.iter().chain(self.more).take(self.used())
    }
}

/// One request to read. A subscription numbers its requests, so that no two are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    /// The subscription.
    pub subscription: u64,
    /// Which of its requests.
    pub generation: u64,
}

/// The answer to a request: from where on the writer keeps the log for this reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    /// What was asked.
    pub request: RequestId,
    /// First byte position that the reader gets.
    pub start: u64,
    /// Sequence number of the message there.
    pub start_seq: u64,
}

/// Whether an answer still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdmissionState {
    /// The writer keeps the log for the reader.
    Active,
    /// The reader stood still for too long. It was promised what follows `start`, but has to
    /// expect gaps until it has asked again.
    Detached,
}

/// The publisher's side: gives an answer. What stood in the entry is taken back first.
pub fn answer(entry: &Admission, grant: Grant, state: AdmissionState) {
    entry.state.store(ADMISSION_FREE, Ordering::Relaxed);
    // SYNC-ADMIT: whoever sees a word of this answer sees that the one before was taken back.
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
    // SYNC-ADMIT: last, so that whoever sees it sees the whole answer.
    entry.state.store(state, Ordering::Release);
    fail_point!("admit.active");
}

/// The publisher's side: the answer no longer holds; it can still be read.
pub fn detach(entry: &Admission) {
    entry.state.store(ADMISSION_DETACHED, Ordering::Release);
}

/// The publisher's side: whoever asked is gone.
pub fn free(entry: &Admission) {
    entry.state.store(ADMISSION_FREE, Ordering::Release);
}

/// The reader's side: the answer to its request, and where it stands.
pub fn find(entries: AdmissionTable<'_>, id: RequestId) -> Option<(usize, Grant, AdmissionState)> {
    entries.iter().enumerate().find_map(|(place, entry)| {
        let (grant, state) = read(entry, id)?;
        Some((place, grant, state))
    })
}

/// The reader's side: what the entry answers to `id`; `None` if it is no answer to that, or just
/// being written.
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
    // SYNC-ADMIT: the entry may have been given to another meanwhile. If a word above was of a
    // later answer, the state below is not older than the moment that one was begun.
    fence(Ordering::Acquire);
    let state = state()?;
    (grant() == found).then_some((found, state))
}

/// The reader's side, of the entry that answered its request: whether the writer still keeps the
/// log for it.
pub fn is_active(entry: &Admission, id: RequestId) -> bool {
    entry.state.load(Ordering::Acquire) == ADMISSION_ACTIVE
        && entry.subscription.load(Ordering::Relaxed) == id.subscription
        && entry.generation.load(Ordering::Relaxed) == id.generation
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::layout::{READERS_IN_CONTROL, READERS_PER_LOG};

    /// Whatever a publisher's page says, nobody looks past the end of its table, and the publisher itself never
    /// takes back what was in use.
    #[test]
    fn no_more_entries_are_looked_at_than_are_in_use() {
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
