//! Keeps frames for a host that takes nothing out of Zenoh, so that Zenoh can end its connection without a wait.
//!
//! A sender that finds the queue of a connection full waits in Zenoh under the lock of that queue. Zenoh takes the same
//! lock to end the connection once the lease is over, in the one thread that writes for all hosts and then in one of
//! those that read, and both wait until the sender gives up: no other host is served meanwhile. So a sender waits here
//! instead, as soon as nothing has come from the host for [`QUIET`], and one that waits in Zenoh at that moment has
//! given up before the lease is over.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::Duration;

use rnet::now_ns;

use super::settings::STALL;
use crate::HostId;

/// A host of which nothing has come for so long is quiet: it sends something every 100 ms.
pub(super) const QUIET: Duration = Duration::from_millis(250);
/// So much is handed to Zenoh for a quiet host all the same: what says that this host is there.
const MAX_UNHEARD_LEN_BYTES: u64 = 4096;
/// Stands in place of the bytes that were handed over where a frame has waited in Zenoh until it was dropped.
const STALLED: u64 = 1 << 62;
/// So often a frame for a quiet host passes in any case: both sides may wait for each other.
const RETRY: Duration = Duration::from_secs(2);

/// The gate of each host that is sent to.
pub(super) type Gates = Arc<RwLock<HashMap<HostId, Arc<Gate>>>>;

/// Tells the gate of a host that something has come from it.
pub(super) fn note_heard(gates: &Gates, host: HostId) {
    let gates = gates.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(gate) = gates.get(&host) {
        gate.note_heard(now_ns());
    }
}

/// What is known of one host.
pub(super) struct Gate {
    heard_ns: AtomicU64,
    /// What was handed to Zenoh since, or [`STALLED`].
    unheard_len_bytes: AtomicU64,
    passed_ns: AtomicU64,
    waiters: Mutex<()>,
    changed: Condvar,
}

impl Gate {
    pub(super) fn new() -> Gate {
        let (waiters, changed) = Default::default();
        let now = now_ns();
        Gate {
            heard_ns: AtomicU64::new(now),
            unheard_len_bytes: AtomicU64::new(0),
            passed_ns: AtomicU64::new(now),
            waiters,
            changed,
        }
    }

    fn note_heard(&self, now: u64) {
        self.heard_ns.store(now, Ordering::Release);
        if self.unheard_len_bytes.swap(0, Ordering::AcqRel) > MAX_UNHEARD_LEN_BYTES {
            drop(self.waiters.lock());
            self.changed.notify_all();
        }
    }

    /// A frame has waited in Zenoh until it was dropped.
    pub(super) fn note_stalled(&self) {
        self.unheard_len_bytes.store(STALLED, Ordering::Release);
    }

    /// Whether a frame of this length may be handed to Zenoh now.
    fn admit(&self, now: u64, len_bytes: u64) -> bool {
        let is_quiet =
            |since: u64, limit: Duration| now.saturating_sub(since) >= limit.as_nanos() as u64;
        let handed = self.unheard_len_bytes.load(Ordering::Acquire);
        let quiet = is_quiet(self.heard_ns.load(Ordering::Acquire), QUIET);
        let fits = handed + len_bytes <= MAX_UNHEARD_LEN_BYTES || (!quiet && handed < STALLED);
        if !fits && !is_quiet(self.passed_ns.load(Ordering::Relaxed), RETRY) {
            return false;
        }
        self.passed_ns.store(now, Ordering::Relaxed);
        if handed < STALLED {
            self.unheard_len_bytes.fetch_add(len_bytes, Ordering::AcqRel);
        }
        true
    }

    /// Waits until a frame of this length may be handed to Zenoh; `false` if it is to be dropped.
    pub(super) fn wait(&self, len_bytes: usize) -> bool {
        let begun = now_ns();
        let mut waiters = None;
        loop {
            let now = now_ns();
            if self.admit(now, len_bytes as u64) {
                return true;
            }
            let left = STALL.saturating_sub(Duration::from_nanos(now.saturating_sub(begun)));
            if left.is_zero() {
                return false;
            }
            // Locked before it is asked again, so that no word of a frame that comes now is missed.
            let lock = || self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
            waiters = Some(match waiters.take() {
                None => lock(),
                Some(guard) => {
                    self.changed.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(duration: Duration) -> u64 {
        duration.as_nanos() as u64
    }

    #[test]
    fn a_host_that_is_quiet_gets_little_until_it_is_heard() {
        let gate = Gate::new();
        let begun = gate.heard_ns.load(Ordering::Relaxed);
        assert!(gate.admit(begun, 1 << 20), "it was heard just now");
        let quiet = begun + ns(QUIET);
        assert!(!gate.admit(quiet, 40));
        gate.note_heard(quiet);
        assert!(gate.admit(quiet, 40));
        let quiet = quiet + ns(QUIET);
        assert!(gate.admit(quiet, 40), "what says that this host is there");
        assert!(!gate.admit(quiet, MAX_UNHEARD_LEN_BYTES));
    }

    #[test]
    fn after_a_stall_nothing_passes_until_it_is_heard_or_for_long() {
        let gate = Gate::new();
        let begun = gate.heard_ns.load(Ordering::Relaxed);
        assert!(gate.admit(begun, 40));
        gate.note_stalled();
        assert!(!gate.admit(begun + 1, 40));
        assert!(gate.admit(begun + ns(RETRY), 40));
        assert!(!gate.admit(begun + ns(RETRY) + 1, 40));
        gate.note_heard(begun + ns(RETRY) + 2);
        assert!(gate.admit(begun + ns(RETRY) + 3, 1 << 20));
    }

    #[test]
    fn a_sender_that_waits_goes_on_when_the_host_is_heard() {
        let gate = Arc::new(Gate::new());
        gate.note_stalled();
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| while !gate.wait(1 << 20) {});
            while !sender.is_finished() {
                gate.note_heard(now_ns());
                std::thread::yield_now();
            }
        });
    }
}
