//! The barrier between a frequent publisher and a rare sleeper, moved to the sleeper.
//!
//! `membarrier(2)` makes every running thread of the registered processes pass a full fence, so a
//! publisher pays nothing per message to ask "is anyone asleep". Where the kernel does not offer
//! it, both sides use full fences; a log says which of both its writer counts on.

use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence, fence};

use rnet_ring::sync::Barrier;

const CMD_GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const CMD_REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call takes no pointers.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Registers this process, once, and says whether that worked. A kernel fact of the process, so
/// asking again would change nothing.
fn registered() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| membarrier(CMD_REGISTER_GLOBAL_EXPEDITED))
}

/// The barrier of one side of a log.
#[derive(Clone, Copy, Debug)]
pub struct SharedBarrier {
    asymmetric: bool,
}

impl SharedBarrier {
    /// For the side that publishes: uses `membarrier` where the kernel has it.
    pub fn of_this_process() -> Self {
        SharedBarrier { asymmetric: registered() }
    }

    /// For the other side, which does as the log says.
    pub fn as_declared(asymmetric: bool) -> Self {
        SharedBarrier { asymmetric }
    }

    /// Whether the heavy side must issue the barrier for both.
    pub fn is_asymmetric(self) -> bool {
        self.asymmetric
    }
}

impl Barrier for SharedBarrier {
    #[inline]
    fn light(&self) {
        if self.asymmetric {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    fn heavy(&self) {
        fence(Ordering::SeqCst);
        // Where the call is refused to us but was granted to the publisher (a seccomp filter),
        // a wake-up may be missed; the bounded sleep of `bell` is then what ends the wait.
        if self.asymmetric {
            membarrier(CMD_GLOBAL_EXPEDITED);
        }
    }
}
