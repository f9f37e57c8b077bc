//! Wake-ups: none is lost, and unnecessary ones are avoided.
//!
//! The sleeper reads its bell, publishes a *ticket* in its own page, passes the heavy barrier and checks once
//! more for messages; only then does it wait for the bell to change. The waker publishes a message, passes
//! the light barrier and checks for a ticket. Either the waker sees the ticket, or the sleeper sees the
//! message. A waker rings once per ticket: tickets are unique per sleep, so a waker that has rung need not
//! ring for every message until the sleeper is awake.

use crate::fail_point;
use crate::sync::{AtomicU32, AtomicU64, Barrier, Ordering};

/// Source of sleep tickets. All sleepers that use the same ticket words must share one source, because a
/// waker remembers the last ticket that it has rung for.
#[derive(Debug, Default)]
pub struct Tickets(AtomicU64);

impl Tickets {
    /// A new ticket, never 0.
    pub fn next_ticket(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Sleeper side: publishes `ticket` in every word that a waker may check; `places` enumerates them. After
/// this call, check for messages once more, and sleep only if there are none and the bell has the same value
/// as before this call.
pub fn announce(
    places: impl FnOnce(&mut dyn FnMut(&AtomicU64)),
    ticket: u64,
    barrier: &impl Barrier,
) {
    places(&mut |place| {
        // Release: a waker that finds the ticket also finds the bell that was stored before it.
        place.store(ticket, Ordering::Release);
        fail_point!("sleep.ticket");
    });
    // SYNC-SLEEP: pairs with the light barrier between commit and `must_ring`.
    barrier.heavy();
    fail_point!("sleep.announced");
}

/// Sleeper side: withdraws the ticket after waking.
pub fn withdraw(places: impl FnOnce(&mut dyn FnMut(&AtomicU64))) {
    places(&mut |place| {
        place.store(0, Ordering::Relaxed);
        fail_point!("sleep.withdraw");
    });
}

/// Waker side, after its store and the light barrier: whether to ring. `last_rung` is the ticket that the
/// waker rang for last.
#[inline]
pub fn must_ring(place: &AtomicU64, last_rung: &mut u64) -> bool {
    // SYNC-SLEEP: see `announce`.
    let ticket = place.load(Ordering::Acquire);
    ticket != 0 && core::mem::replace(last_rung, ticket) != ticket
}

/// Waker side: changes the bell. The caller then wakes the threads that wait on it.
pub fn ring(bell: &AtomicU32) {
    bell.fetch_add(1, Ordering::Release);
    fail_point!("ring.bell");
}
