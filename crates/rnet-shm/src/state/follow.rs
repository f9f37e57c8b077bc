//! Following the changes of a domain: reading the journal, and sleeping at its end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rnet_core::Error;
use rnet_ring::fail_point;
use rnet_ring::state::layout::{
    FOLLOWER_BELL, FOLLOWER_FILTER, FOLLOWER_OWNER, Geometry, LINE_WORDS,
};
use rnet_ring::state::{self as ring, Position};
use rustix::io::Errno;
use rustix::thread::futex;

use super::{Inner, Record, Region};
use crate::bell::{MAX_SLEEP, Woken};
use crate::cpu::Precise;

/// What [`Follower::next`] has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A change; it stands in the record.
    Change,
    /// Nothing more at the moment.
    Nothing,
    /// Something was missed: take a snapshot, and follow anew from its revision.
    Behind,
}

/// Follows the changes of the domain.
pub struct Follower {
    inner: Arc<Inner>,
    place: Arc<Place>,
    at: Position,
    prefix: (String, ring::Prefix),
}

/// A follower's place in the region; free again when its follower is gone.
struct Place {
    inner: Arc<Inner>,
    number: usize,
    interrupted: AtomicBool,
}

impl Region {
    /// Every change after a revision.
    ///
    /// # Errors
    /// `LimitReached` if there are too many followers, `Corrupt`.
    pub fn follow(&self, after_revision: u64) -> Result<Follower, Error> {
        let inner = &self.inner;
        let ring = inner.sound()?;
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
        let place = Place { inner: inner.clone(), number, interrupted: AtomicBool::new(false) };
        Ok(Follower {
            inner: inner.clone(),
            place: Arc::new(place),
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
    pub fn next(&mut self, prefix: &str, into: &mut Record) -> Next {
        self.mean(prefix);
        let Ok(ring) = self.inner.sound() else { return Next::Behind };
        match ring.next_change(&mut self.at, &self.prefix.1, &mut into.raw) {
            ring::Next::Change => {
                into.shown();
                Next::Change
            }
            ring::Next::Nothing => Next::Nothing,
            ring::Next::Behind => Next::Behind,
        }
    }

    /// Goes on with the changes after a revision, as one that was [`Next::Behind`] has to.
    pub fn go_on_from(&mut self, after_revision: u64) {
        self.at = Position { revision: after_revision.wrapping_add(1), within: 0 };
    }

    /// The revision up to which no deletion was missed, also when it is [`Next::Behind`].
    pub fn known(&self) -> u64 {
        self.at.revision.saturating_sub(1)
    }

    fn mean(&mut self, text: &str) {
        if self.prefix.0 != text {
            self.prefix = (text.to_owned(), prefix(&self.inner, text));
        }
    }

    /// Sleeps until a change may match, no longer than `limit` and [`MAX_SLEEP`]; it may also return for
    /// nothing.
    pub fn wait(&mut self, prefix: &str, limit: Duration) -> Woken {
        self.mean(prefix);
        if self.place.interrupted.swap(false, Ordering::AcqRel) {
            return Woken::Look;
        }
        let Ok(ring) = self.inner.sound() else { return Woken::Look };
        let number = self.place.number;
        let filter = self.prefix.1.root().map_or(0, |root| u64::from(root) + 1);
        ring.follower(number, FOLLOWER_FILTER).store(filter, Ordering::Release);
        let bell = self.place.bell();
        let before = bell.load(Ordering::Acquire);
        fail_point!("state.falling_asleep");
        if ring.sleepy(number, &self.at) {
            return Woken::Look;
        }
        let limit = limit.min(MAX_SLEEP);
        let limit = rustix::time::Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: i64::from(limit.subsec_nanos()),
        };
        let slept = match self.place.interrupted.swap(false, Ordering::AcqRel) {
            true => Ok(()),
            false => futex::wait(bell, futex::Flags::empty(), before, Some(&limit)),
        };
        ring.wakeless(number);
        match slept {
            Err(Errno::TIMEDOUT) => Woken::TimedOut,
            Err(Errno::INTR) => Woken::Signal,
            _ => Woken::Look,
        }
    }

    /// As [`Follower::wait`], with a limit that is kept as closely as the kernel can.
    pub fn doze(&mut self, prefix: &str, limit: Duration) -> Woken {
        let _precise = Precise::timers();
        self.wait(prefix, limit)
    }

    /// Ends waits of this follower from other threads.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter(Arc::downgrade(&self.place))
    }
}

/// Ends waits of a [`Follower`]; made by [`Follower::interrupter`].
#[derive(Clone)]
pub struct Interrupter(Weak<Place>);

impl Interrupter {
    /// The wait that goes on ends with [`Woken::Look`], or the next one does at once.
    pub fn interrupt(&self) {
        let Some(place) = self.0.upgrade() else { return };
        place.interrupted.store(true, Ordering::Release);
        let bell = place.bell();
        bell.fetch_add(1, Ordering::Release);
        let _ = futex::wake(bell, futex::Flags::empty(), i32::MAX as u32);
    }
}

impl Place {
    fn bell(&self) -> &std::sync::atomic::AtomicU32 {
        let first = Geometry::DOMAIN.followers_at() + self.number * LINE_WORDS;
        self.inner.file.futex(first + FOLLOWER_BELL)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.inner.own.fork_guard().is_parents() {
            let ring = self.inner.ring();
            ring.wakeless(self.number);
            ring.follower(self.number, FOLLOWER_OWNER).store(0, Ordering::Release);
        }
    }
}
