//! What is to be on disk before it holds: asking the keeper, and being it.
//!
//! A transaction with durable keys waits in its slots, not decided; readers go by what was before.
//! Its writer puts it where the keeper looks, and sleeps. The keeper takes all that wait, writes them
//! to disk at once, and decides each. docs/design/durable-state.md has the whole of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rnet_core::Error;
use rnet_ring::fail_point;
use rnet_ring::state::layout::{KEEPER_AT, LOADED_AT};
use rnet_ring::state::leaf::{DELETED, DURABLE};
use rnet_ring::state::word::{ABORTED, COMMITTED, PERSISTING, WRITING, Word};
use rustix::thread::futex;

use super::{Inner, Record, Region};

/// Word of the keeper's line: its bell, rung when somebody asks.
const KEEPER_BELL: usize = KEEPER_AT;
/// Word of the keeper's line: the writers' bell, rung when something is decided.
const DECIDED_BELL: usize = KEEPER_AT + 1;
/// Word of the keeper's line: incarnation of the keeper's node; 0 if there is none.
const KEEPER: usize = KEEPER_AT + 2;
/// Word of the keeper's line: changes while the keeper is not stopped.
const HEARTBEAT: usize = KEEPER_AT + 3;

/// How long a writer waits before it looks whether there still is a keeper.
const SLICE: Duration = Duration::from_millis(20);
/// How long a writer waits for a keeper that does not take what it asks.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sees to it that there is a keeper: called by those who wait for one, again and again.
pub type Keep = Arc<dyn Fn() -> Result<(), Error> + Send + Sync>;

/// A transaction that waits for the keeper.
#[derive(Clone, Debug)]
pub struct Ask {
    word: Word,
    /// Its changes.
    pub changes: Vec<Kept>,
}

/// A change of a durable key.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The key, its value and all about it.
    pub record: Record,
    /// Whether the disk is to have it; else it is to forget the key.
    pub keep: bool,
}

impl Region {
    /// Says what is to be done so that there is a keeper.
    pub fn set_keep(&self, keep: Keep) {
        *self.inner.keep.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(keep);
    }

    /// A word of the region that is 1 once what was on disk has been loaded.
    pub fn loaded(&self) -> &AtomicU64 {
        self.inner.ring().header(LOADED_AT)
    }

    /// Incarnation of the keeper's node; 0 if there is none.
    pub fn keeper(&self) -> &AtomicU64 {
        self.inner.ring().header(KEEPER)
    }

    /// Changes while the keeper is not stopped.
    pub fn heartbeat(&self) -> &AtomicU64 {
        self.inner.ring().header(HEARTBEAT)
    }

    /// For the keeper: all transactions that wait. From here on their writers do not withdraw them;
    /// the same again until [`Region::decide`].
    pub fn asks(&self) -> Vec<Ask> {
        let ring = self.inner.ring();
        let mut asks = Vec::new();
        for place in 0..ring.geometry().asks {
            let word = Word(ring.ask(place).load(Ordering::SeqCst));
            if word.is_none() {
                continue;
            }
            ring.decide(word, PERSISTING, WRITING);
            fail_point!("state.writing");
            let state = ring.status(word).map(|status| status.state());
            if state == Some(WRITING)
                && let Some(changes) = self.changes(word)
            {
                asks.push(Ask { word, changes });
            } else {
                // Decided already, by a keeper that was killed before it cleared the place.
                let (ok, miss) = (Ordering::SeqCst, Ordering::Relaxed);
                let _ = ring.ask(place).compare_exchange(word.0, 0, ok, miss);
            }
        }
        asks
    }

    fn changes(&self, txn: Word) -> Option<Vec<Kept>> {
        let ring = self.inner.ring();
        let mut changes = Vec::new();
        for (leaf, before) in ring.pairs(txn)? {
            let mut record = Record::default();
            ring.copy_leaf(leaf, &mut record.raw)?;
            record.shown();
            let keep = record.raw.facts.has(DURABLE) && !record.raw.facts.has(DELETED);
            let was = ring.facts_of(before).is_some_and(|facts| facts.has(DURABLE));
            if keep || was {
                changes.push(Kept { record, keep });
            }
        }
        Some(changes)
    }

    /// For the keeper: what it asked for is on disk, or is not and never will be, for this reason
    /// (a number that [`Region::set_reason`] explains to nobody but our own writers).
    pub fn decide(&self, ask: &Ask, done: Result<(), u64>) {
        let ring = self.inner.ring();
        if let Err(reason) = done {
            ring.set_reason(ask.word, reason);
        }
        let to = if done.is_ok() { COMMITTED } else { ABORTED };
        ring.decide(ask.word, WRITING, to);
        for place in 0..ring.geometry().asks {
            let (ok, miss) = (Ordering::SeqCst, Ordering::Relaxed);
            let _ = ring.ask(place).compare_exchange(ask.word.0, 0, ok, miss);
        }
        fail_point!("state.answered");
        self.inner.ring_bell(DECIDED_BELL);
    }

    /// For the keeper: sleeps until somebody asks, no longer than `limit`.
    pub fn wait_for_asks(&self, limit: Duration) {
        let ring = self.inner.ring();
        let bell = self.inner.file.futex(KEEPER_BELL);
        let before = bell.load(Ordering::Acquire);
        let any = (0..ring.geometry().asks).any(|a| ring.ask(a).load(Ordering::SeqCst) != 0);
        if !any {
            wait(bell, before, limit);
        }
    }

    /// Ends [`Region::wait_for_asks`].
    pub fn wake_keeper(&self) {
        self.inner.ring_bell(KEEPER_BELL);
    }
}

fn wait(bell: &std::sync::atomic::AtomicU32, before: u32, limit: Duration) {
    let limit = rustix::time::Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: i64::from(limit.subsec_nanos()),
    };
    let _ = futex::wait(bell, futex::Flags::empty(), before, Some(&limit));
}

impl Inner {
    fn ring_bell(&self, word: usize) {
        let bell = self.file.futex(word);
        bell.fetch_add(1, Ordering::Release);
        let _ = futex::wake(bell, futex::Flags::empty(), i32::MAX as u32);
    }

    fn keep(&self) -> Result<(), Error> {
        let keep = self.keep.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        keep.map_or(Ok(()), |keep| keep())
    }

    /// Has the keeper write a transaction of ours to disk: its revision once it is there.
    pub(super) fn persist(&self, txn: Word) -> Result<u64, Error> {
        let ring = self.ring();
        fail_point!("state.asking");
        let asked = self.ask(txn);
        let waited = asked.and_then(|()| self.wait_until_decided(txn));
        if waited.is_err() && ring.decide(txn, PERSISTING, ABORTED) {
            self.unask(txn);
        } else {
            // It was decided, or is being written and will be.
            self.wait_until_decided(txn)?;
        }
        let concluded = ring.conclude(&mut self.local(), self, txn);
        match concluded {
            Ok(Ok(revision)) => Ok(revision),
            Ok(Err(reason)) => Err(waited.err().unwrap_or_else(|| self.refused(reason))),
            Err(_) => Err(self.corrupt("a transaction does not come to an end")),
        }
    }

    /// Why the keeper refused: the system's error number.
    fn refused(&self, reason: u64) -> Error {
        let errno = i32::try_from(reason).unwrap_or_default();
        let why = match errno {
            0 => "the keeper could not write it".to_owned(),
            errno => std::io::Error::from_raw_os_error(errno).to_string(),
        };
        Error::Storage { path: "state on disk".into(), why }
    }

    fn ask(&self, txn: Word) -> Result<(), Error> {
        let ring = self.ring();
        let (ok, miss) = (Ordering::SeqCst, Ordering::Relaxed);
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let placed = (0..ring.geometry().asks)
                .any(|ask| ring.ask(ask).compare_exchange(0, txn.0, ok, miss).is_ok());
            if placed {
                fail_point!("state.asked");
                self.ring_bell(KEEPER_BELL);
                return Ok(());
            }
            self.keep()?;
            let bell = self.file.futex(DECIDED_BELL);
            wait(bell, bell.load(Ordering::Acquire), SLICE);
        }
        Err(late())
    }

    fn unask(&self, txn: Word) {
        let ring = self.ring();
        for ask in 0..ring.geometry().asks {
            let (ok, miss) = (Ordering::SeqCst, Ordering::Relaxed);
            let _ = ring.ask(ask).compare_exchange(txn.0, 0, ok, miss);
        }
    }

    /// Waits until a transaction, of anybody, is decided.
    fn wait_until_decided(&self, txn: Word) -> Result<(), Error> {
        let ring = self.ring();
        let bell = self.file.futex(DECIDED_BELL);
        let begun = Instant::now();
        loop {
            let before = bell.load(Ordering::Acquire);
            let state = ring.status(txn).map(|status| status.state());
            if !matches!(state, Some(PERSISTING | WRITING)) {
                return Ok(());
            }
            if begun.elapsed() >= PATIENCE {
                return Err(late());
            }
            // Before the first sleep too: there may be no keeper.
            self.keep()?;
            wait(bell, before, SLICE);
        }
    }

    /// Waits for a transaction in the way of a write.
    pub(super) fn wait_for(&self, txn: Word) -> Result<(), Error> {
        self.wait_until_decided(txn)
    }
}

fn late() -> Error {
    Error::Timeout {
        what: "the keeper of durable state to write to disk".to_owned(),
        after_ms: PATIENCE.as_millis() as u64,
    }
}
