//! Nobody sleeps through a message, and nobody rings who need not.
//!
//! The sleeper reads its bell, shows a *ticket* in its own page, passes the heavy barrier and
//! looks once more for messages; only then it waits for the bell to change. The waker publishes,
//! passes the light barrier and looks for a ticket. Either the waker sees the ticket, or the
//! sleeper saw the message. A ticket is rung for once: it is new for each sleep, so a waker that
//! already rang for it need not ring for every message until the sleeper has got up.

use crate::fail_point;
use crate::sync::{AtomicU32, AtomicU64, Barrier, Ordering};

/// Gives out sleep tickets. All sleepers that ever show tickets in the same places share one: a
/// waker remembers a ticket it has rung for, whoever showed it.
#[derive(Debug, Default)]
pub struct Tickets(AtomicU64);

impl Tickets {
    /// A ticket that was not used before, never 0.
    pub fn next_ticket(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// The sleeper's side: shows `ticket` in every place where a waker may look, each of which `places` names. After
/// it, look for messages once more, and sleep only if there are none and the bell still reads what it read before
/// this call.
pub fn announce(
    places: impl FnOnce(&mut dyn FnMut(&AtomicU64)),
    ticket: u64,
    barrier: &impl Barrier,
) {
    places(&mut |place| {
        // Release: whoever finds the ticket also finds the bell that was named before it.
        place.store(ticket, Ordering::Release);
        fail_point!("sleep.ticket");
    });
    // SYNC-SLEEP: pairs with the light barrier between commit and `must_ring`.
    barrier.heavy();
    fail_point!("sleep.announced");
}

/// The sleeper's side: awake again.
pub fn withdraw(places: impl FnOnce(&mut dyn FnMut(&AtomicU64))) {
    places(&mut |place| {
        place.store(0, Ordering::Relaxed);
        fail_point!("sleep.withdraw");
    });
}

/// The waker's side, after its store and the light barrier: whether to ring. `last_rung` is the
/// waker's memory of the sleeper's ticket.
#[inline]
pub fn must_ring(place: &AtomicU64, last_rung: &mut u64) -> bool {
    // SYNC-SLEEP: see `announce`.
    let ticket = place.load(Ordering::Acquire);
    ticket != 0 && core::mem::replace(last_rung, ticket) != ticket
}

/// The waker's side: changes the bell. The caller then wakes whoever waits on it.
pub fn ring(bell: &AtomicU32) {
    bell.fetch_add(1, Ordering::Release);
    fail_point!("ring.bell");
}
