//! Following the changes of a domain: reading the journal, and showing whoever writes that one sleeps at its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rnet_core::Error;
use rnet_ring::fail_point;
use rnet_ring::state::layout::{FOLLOWER_BELL, FOLLOWER_FILTER, FOLLOWER_OWNER, Geometry};
use rnet_ring::state::{self as ring, Position};

use super::{Inner, Record, Region};

/// What [`Follower::next`] has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextChange {
    /// A change; it stands in the record.
    Change,
    /// Nothing more at the moment.
    Nothing,
    /// Something was missed: take a snapshot, and follow anew from its revision.
    Overrun,
}

/// Follows the changes of the domain.
/// Its place in the region is free again when it is dropped.
pub struct Follower {
    inner: Arc<Inner>,
    /// Of its place in the region.
    number: usize,
    at: Position,
    prefix: (String, ring::Prefix),
}

impl Region {
    /// Every change after a revision.
    ///
    /// # Errors
    /// `LimitReached` if there are too many followers, `Corrupt`.
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
    /// The next change of a key that `prefix` means; see [`Region::snapshot`].
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

    /// Goes on with the changes after a revision, as one that was [`NextChange::Overrun`] has to.
    pub fn resume_after(&mut self, after_revision: u64) {
        self.at = Position { revision: after_revision.wrapping_add(1), within: 0 };
    }

    /// The revision up to which no deletion was missed, also when it is [`NextChange::Overrun`].
    pub fn known(&self) -> u64 {
        self.at.revision.saturating_sub(1)
    }

    fn set_prefix(&mut self, text: &str) {
        if self.prefix.0 != text {
            self.prefix = (text.to_owned(), prefix(&self.inner, text));
        }
    }

    /// Names the bell of its node, at which whoever waits for it sleeps.
    pub fn set_bell(&self, bell: u64) {
        // Relaxed: seen by whoever sees from `before_sleep` on that it sleeps.
        self.inner.ring().follower(self.number, FOLLOWER_BELL).store(bell, Ordering::Relaxed);
    }

    /// Shows that somebody is about to sleep at its bell, who has read the bell before; `true` if there may be
    /// something already. Whoever makes a change from here on that may match rings the bell, once.
    pub fn before_sleep(&self) -> bool {
        // What cannot be read is looked at again when the sleep is over.
        let Ok(ring) = self.inner.checked_ring() else { return false };
        let filter = self.prefix.1.root().map_or(0, |root| u64::from(root) + 1);
        ring.follower(self.number, FOLLOWER_FILTER).store(filter, Ordering::Release);
        fail_point!("state.falling_asleep");
        ring.before_sleep(self.number, &self.at)
    }

    /// Whether something was changed that it has not passed yet; it may not match. Also where nothing can be read
    /// any more, which the next look says.
    pub fn has_unread(&self) -> bool {
        self.inner.checked_ring().map_or(true, |ring| ring.may_have(&self.at))
    }

    /// Nobody sleeps for it any more.
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
