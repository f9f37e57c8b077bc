//! The barrier between a frequent publisher and a rare sleeper, moved to the sleeper.
//!
//! `membarrier(2)` makes every running thread of the registered processes pass a full fence, so a
//! publisher pays nothing per message to ask "is anyone asleep". A publisher uses full fences of
//! its own until its process is registered; sleepers always issue the barrier for both. So a
//! publisher may change over at any time, and where the kernel offers no membarrier both sides
//! stay with fences.

use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence, fence};

use rnet_ring::sync::Barrier;

const CMD_QUERY: libc::c_int = 0;
const CMD_GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const CMD_REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

fn membarrier(command: libc::c_int) -> libc::c_long {
    // SAFETY: the call takes no pointers.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}

/// Whether the kernel offers the barrier to this process.
pub fn is_offered() -> bool {
    static OFFERED: OnceLock<bool> = OnceLock::new();
    *OFFERED.get_or_init(|| {
        let commands = membarrier(CMD_QUERY);
        let needed = libc::c_long::from(CMD_GLOBAL_EXPEDITED | CMD_REGISTER_GLOBAL_EXPEDITED);
        commands >= 0 && commands & needed == needed
    })
}

/// A kernel fact of the process: once true it stays so.
static REGISTERED: OnceLock<bool> = OnceLock::new();

/// Registers this process so that its publishers may do without fences.
///
/// The kernel registers a process with one thread at once, and makes any other wait for an RCU
/// grace period of 10 ms and more. Until this returns, publishers fence for themselves.
pub fn register() {
    REGISTERED.get_or_init(|| is_offered() && membarrier(CMD_REGISTER_GLOBAL_EXPEDITED) == 0);
}

/// Whether [`register`] would make its caller wait.
pub fn register_takes_time() -> bool {
    REGISTERED.get().is_none()
        && !std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

/// The publisher's side.
#[derive(Clone, Copy, Debug, Default)]
pub struct PublisherBarrier {
    asymmetric: bool,
}

impl PublisherBarrier {
    /// Goes over to the sleepers' barrier once the process is registered; returns whether it has
    /// just done so. Called between messages, fenced on both sides, so that no message is in
    /// between.
    #[inline]
    pub fn upgrade(&mut self) -> bool {
        if self.asymmetric || REGISTERED.get() != Some(&true) {
            return false;
        }
        fence(Ordering::SeqCst);
        self.asymmetric = true;
        true
    }
}

impl Barrier for PublisherBarrier {
    #[inline]
    fn light(&self) {
        if self.asymmetric {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    fn heavy(&self) {
        SleeperBarrier.heavy();
    }
}

/// The side of whoever is about to sleep, or admits a reader.
#[derive(Clone, Copy, Debug, Default)]
pub struct SleeperBarrier;

impl Barrier for SleeperBarrier {
    #[inline]
    fn light(&self) {
        fence(Ordering::SeqCst);
    }

    fn heavy(&self) {
        fence(Ordering::SeqCst);
        // Where a filter refuses to us what the publisher was granted, a wake-up may be missed;
        // the bounded sleep of `bell` is then what ends the wait.
        if is_offered() {
            membarrier(CMD_GLOBAL_EXPEDITED);
        }
    }
}
