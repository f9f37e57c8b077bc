//! Following the changes of a domain: reads the journal, and shows writers that a follower sleeps at its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rnet_core::Error;
use rnet_ring::fail_point;
use rnet_ring::state::layout::{FOLLOWER_BELL, FOLLOWER_FILTER, FOLLOWER_OWNER, Geometry};
use rnet_ring::state::{self as ring, Position};

use super::{Inner, Record, Region};

/// The result of [`Follower::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextChange {
    /// A change; the record contains it.
    Change,
    /// No more changes at the moment.
    Nothing,
    /// Changes were missed: take a snapshot and resume from its revision.
    Overrun,
}

/// Follows the changes of the domain.
/// Dropping it frees its slot in the region.
pub struct Follower {
    inner: Arc<Inner>,
    /// Its slot in the region.
    number: usize,
    at: Position,
    prefix: (String, ring::Prefix),
}

impl Region {
    /// Follows every change after a revision.
    ///
    /// # Errors
    /// `LimitReached` if the domain has too many followers, `Corrupt`.
    pub fn follow(&self, after_revision: u64) -> Result<Follower, Error> {
        let inner = &self.inner;
        let ring = inner.checked_ring()?;
        let me = u64::from(inner.process_slot) + 1;
        let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
        let limit = ring.geometry().followers;
        let number = (0..limit)
            .find(|f| {
                let owner = ring.follower(*f, FOLLOWER_OWNER);
                owner.load(Ordering::Relaxed) == 0
                    && owner.compare_exchange(0, me, ok, miss).is_ok()
            })
            .ok_or_else(|| Error::LimitReached {
                what: format!("watches in domain {}", inner.own.domain().id()),
                limit,
                hint: "drop some, or watch a longer prefix once and share it".to_owned(),
            })?;
        fail_point!("state.follower");
        Ok(Follower {
            inner: inner.clone(),
            number,
            at: Position { revision: after_revision.wrapping_add(1), within: 0 },
            prefix: (String::new(), prefix(inner, "")),
        })
    }
}

fn prefix(inner: &Inner, text: &str) -> ring::Prefix {
    ring::Prefix::new(text.as_bytes(), inner.seed, &Geometry::DOMAIN)
}

impl Follower {
    /// The next change of a key that matches `prefix`; see [`Region::snapshot`].
    pub fn next(&mut self, prefix: &str, into: &mut Record) -> NextChange {
        self.set_prefix(prefix);
        let Ok(ring) = self.inner.checked_ring() else { return NextChange::Overrun };
        match ring.next_change(&mut self.at, &self.prefix.1, &mut into.raw) {
            ring::Next::Change => {
                into.load_meta();
                NextChange::Change
            }
            ring::Next::Nothing => NextChange::Nothing,
            ring::Next::Overrun => NextChange::Overrun,
        }
    }

    /// Resumes with the changes after a revision, as required after [`NextChange::Overrun`].
    pub fn resume_after(&mut self, after_revision: u64) {
        self.at = Position { revision: after_revision.wrapping_add(1), within: 0 };
    }

    /// The revision up to which no deletion was missed, even after [`NextChange::Overrun`].
    pub fn known(&self) -> u64 {
        self.at.revision.saturating_sub(1)
    }

    fn set_prefix(&mut self, text: &str) {
        if self.prefix.0 != text {
            self.prefix = (text.to_owned(), prefix(&self.inner, text));
        }
    }

    /// Sets the bell of its node at which its waiting thread sleeps.
    pub fn set_bell(&self, bell: u64) {
        // Relaxed: a writer that sees the sleep announced by `before_sleep` also sees this.
        self.inner.ring().follower(self.number, FOLLOWER_BELL).store(bell, Ordering::Relaxed);
    }

    /// Announces that a thread, which has already read the bell, is about to sleep at it; `true` if a change
    /// may be available. A writer that makes a potentially matching change after this rings the bell once.
    pub fn before_sleep(&self) -> bool {
        // An unreadable region is checked again after the sleep.
        let Ok(ring) = self.inner.checked_ring() else { return false };
        let filter = self.prefix.1.root().map_or(0, |root| u64::from(root) + 1);
        ring.follower(self.number, FOLLOWER_FILTER).store(filter, Ordering::Release);
        fail_point!("state.falling_asleep");
        ring.before_sleep(self.number, &self.at)
    }

    /// Whether the follower has unread changes; they may not match. Also `true` if the region is unreadable,
    /// which the next read reports.
    pub fn has_unread(&self) -> bool {
        self.inner.checked_ring().map_or(true, |ring| ring.may_have(&self.at))
    }

    /// Announces that the thread no longer sleeps.
    pub fn after_sleep(&self) {
        self.inner.ring().after_sleep(self.number);
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if !self.inner.own.fork_guard().is_from_parent() {
            let ring = self.inner.ring();
            ring.after_sleep(self.number);
            ring.follower(self.number, FOLLOWER_OWNER).store(0, Ordering::Release);
        }
    }
}
