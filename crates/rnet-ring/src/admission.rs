//! What a publisher answers those that ask to read, one entry of its page for each.
//!
//! An entry is written by its publisher alone, while any reader may look at it. A reader takes an
//! entry for the answer to its request only if it has read the whole of one answer; which answers
//! there are, and when, is for [`crate::seats`] and [`crate::follower`] to say.

use crate::fail_point;
use crate::layout::{ADMISSION_ACTIVE, ADMISSION_DETACHED, ADMISSION_FREE, Admission};
use crate::sync::{Ordering, fence};

/// One request to read. A subscription numbers its requests, so that no two are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// The subscription.
    pub subscription: u64,
    /// Which of its requests.
    pub generation: u64,
}

/// The answer to a request: from where on the writer keeps the log for this reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    /// What was asked.
    pub ask: Ask,
    /// First byte position that the reader gets.
    pub start: u64,
    /// Sequence number of the message there.
    pub start_seq: u64,
}

/// Whether an answer still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// The writer keeps the log for the reader.
    Served,
    /// The reader stood still for too long. It was promised what follows `start`, but has to
    /// expect gaps until it has asked again.
    LetGo,
}

/// The publisher's side: gives an answer. What stood in the entry is taken back first.
pub fn answer(entry: &Admission, grant: Grant, standing: Standing) {
    entry.state.store(ADMISSION_FREE, Ordering::Relaxed);
    // SYNC-ADMIT: whoever sees a word of this answer sees that the one before was taken back.
    fence(Ordering::Release);
    fail_point!("admit.taken_back");
    entry.subscription.store(grant.ask.subscription, Ordering::Relaxed);
    fail_point!("admit.subscription");
    entry.generation.store(grant.ask.generation, Ordering::Relaxed);
    fail_point!("admit.generation");
    entry.start.store(grant.start, Ordering::Relaxed);
    fail_point!("admit.from");
    entry.start_seq.store(grant.start_seq, Ordering::Relaxed);
    fail_point!("admit.seq");
    let state = match standing {
        Standing::Served => ADMISSION_ACTIVE,
        Standing::LetGo => ADMISSION_DETACHED,
    };
    // SYNC-ADMIT: last, so that whoever sees it sees the whole answer.
    entry.state.store(state, Ordering::Release);
    fail_point!("admit.active");
}

/// The publisher's side: the answer no longer holds; it can still be read.
pub fn let_go(entry: &Admission) {
    entry.state.store(ADMISSION_DETACHED, Ordering::Release);
}

/// The publisher's side: whoever asked is gone.
pub fn free(entry: &Admission) {
    entry.state.store(ADMISSION_FREE, Ordering::Release);
}

/// The reader's side: the answer to its request, and where it stands.
pub fn find(entries: &[Admission], ask: Ask) -> Option<(usize, Grant, Standing)> {
    entries.iter().enumerate().find_map(|(place, entry)| {
        let (grant, standing) = read(entry, ask)?;
        Some((place, grant, standing))
    })
}

/// The reader's side: what the entry answers to `ask`; `None` if it is no answer to that, or just
/// being written.
pub fn read(entry: &Admission, ask: Ask) -> Option<(Grant, Standing)> {
    // SYNC-ADMIT: pairs with the last store of `answer`.
    let standing = || match entry.state.load(Ordering::Acquire) {
        ADMISSION_ACTIVE => Some(Standing::Served),
        ADMISSION_DETACHED => Some(Standing::LetGo),
        _ => None,
    };
    let grant = || Grant {
        ask: Ask {
            subscription: entry.subscription.load(Ordering::Relaxed),
            generation: entry.generation.load(Ordering::Relaxed),
        },
        start: entry.start.load(Ordering::Relaxed),
        start_seq: entry.start_seq.load(Ordering::Relaxed),
    };
    standing()?;
    let found = grant();
    if found.ask != ask {
        return None;
    }
    // SYNC-ADMIT: the entry may have been given to another meanwhile. If a word above was of a
    // later answer, the state below is not older than the moment that one was begun.
    fence(Ordering::Acquire);
    let standing = standing()?;
    (grant() == found).then_some((found, standing))
}

/// The reader's side, of the entry that answered its request: whether the writer still keeps the
/// log for it.
pub fn holds(entry: &Admission, ask: Ask) -> bool {
    entry.state.load(Ordering::Acquire) == ADMISSION_ACTIVE
        && entry.subscription.load(Ordering::Relaxed) == ask.subscription
        && entry.generation.load(Ordering::Relaxed) == ask.generation
}
