//! The barrier between a frequent publisher and a rare sleeper, moved to the sleeper.
//!
//! `membarrier(2)` makes every running thread of the registered processes pass a full fence, so a
//! publisher pays nothing per message to ask "is anyone asleep". It interrupts those threads,
//! though, for microseconds; so a publisher has sleepers issue it only while it sends often, and
//! says so in its page. Otherwise, until its process is registered, and where the kernel offers no
//! membarrier, it fences for itself.

use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

use rnet_ring::sync::Barrier;

use crate::os::{fork, process};

const CMD_QUERY: libc::c_int = 0;
const CMD_GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const CMD_REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

/// Messages after which a publisher takes its pace.
pub const RATE_WINDOW_MESSAGES: u64 = 64;
/// A publisher sends often if less time passes from message to message: a fence for each, of some
/// 20 ns, is then more than a thousandth of its time.
const FREQUENT_INTERVAL_NS: u64 = 20_000;

fn membarrier(command: libc::c_int) -> libc::c_long {
    // SAFETY: the call takes no pointers.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}

/// Whether the kernel offers the barrier to this process.
pub fn is_supported() -> bool {
    // No OnceLock here and below: one that a thread of the parent was about to fill would be
    // waited for without end in a forked child. To ask twice does no harm.
    static SUPPORTED: AtomicU8 = AtomicU8::new(UNKNOWN);
    match SUPPORTED.load(Ordering::Relaxed) {
        UNKNOWN => {
            let commands = membarrier(CMD_QUERY);
            let needed = libc::c_long::from(CMD_GLOBAL_EXPEDITED | CMD_REGISTER_GLOBAL_EXPEDITED);
            let yes = commands >= 0 && commands & needed == needed;
            SUPPORTED.store(if yes { YES } else { NO }, Ordering::Relaxed);
            yes
        }
        known => known == YES,
    }
}

const UNKNOWN: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;

/// A kernel fact of the process: once true it stays so. In the upper bits, how many forks ago; a
/// child asks anew.
static REGISTERED: AtomicU64 = AtomicU64::new(UNKNOWN as u64);

fn registered() -> u8 {
    let word = REGISTERED.load(Ordering::Acquire);
    if word >> 8 == u64::from(fork::count()) { word as u8 } else { UNKNOWN }
}

/// Registers this process so that its publishers may do without fences.
///
/// The kernel registers a process with one thread at once. Any other waits for an RCU grace period
/// of 10 to 30 ms, and *cannot be killed meanwhile*: its peers would notice its death that much
/// later. So a process of several threads is registered only once it pays, see [`registration_requests`].
pub fn register() {
    if registered() == UNKNOWN {
        let forks = u64::from(fork::count());
        let yes = is_supported() && membarrier(CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
        let state = if yes { YES } else { NO };
        REGISTERED.store(forks << 8 | u64::from(state), Ordering::Release);
    }
}

/// Whether [`register`] would make its caller wait.
pub fn register_blocks() -> bool {
    registered() == UNKNOWN && !process::is_single_threaded()
}

/// Through which publishers ask for the registration: the descriptor, and in the upper half, one
/// more than how many forks ago; 0 before there is one. A child must not ask its parent.
static REQUEST_FD: AtomicU64 = AtomicU64::new(0);
/// The same upper half once a publisher has asked.
static REQUESTED: AtomicU32 = AtomicU32::new(0);

/// This process, and no other that it was forked from or that is forked from it.
fn this_process() -> u32 {
    fork::count().wrapping_add(1)
}

/// Readable once a publisher of this process sends so often that [`register`] pays; whoever
/// watches it is to call that, on a thread that nobody waits for. `None` where there is nothing to
/// register for, or no descriptor is left; publishers then go on fencing for themselves.
pub fn registration_requests() -> Option<BorrowedFd<'static>> {
    use rustix::event::{EventfdFlags, eventfd};
    if registered() != UNKNOWN || !is_supported() {
        return None;
    }
    let before = REQUEST_FD.load(Ordering::Acquire);
    if (before >> 32) as u32 == this_process() {
        return Some(request_fd(before));
    }
    let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?.into_raw_fd();
    let word = u64::from(this_process()) << 32 | u64::from(made.cast_unsigned());
    match REQUEST_FD.compare_exchange(before, word, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(request_fd(word)),
        Err(faster) => {
            // SAFETY: made above, and another thread's is in use.
            drop(unsafe { OwnedFd::from_raw_fd(made) });
            Some(request_fd(faster))
        }
    }
}

fn request_fd(word: u64) -> BorrowedFd<'static> {
    // SAFETY: a descriptor that was put into `REQUEST_FD` is never closed.
    unsafe { BorrowedFd::borrow_raw((word as u32).cast_signed()) }
}

/// One system call in the life of a process.
fn request_registration() {
    let wanted = REQUEST_FD.load(Ordering::Acquire);
    if (wanted >> 32) as u32 == this_process()
        && REQUESTED.swap(this_process(), Ordering::Relaxed) != this_process()
    {
        let _ = rustix::io::write(request_fd(wanted), &1u64.to_ne_bytes());
    }
}

/// The publisher's side.
#[derive(Clone, Copy, Debug, Default)]
pub struct PublisherBarrier {
    asymmetric: bool,
    /// When the pace was taken last.
    since_ns: u64,
}

impl PublisherBarrier {
    /// Takes the publisher's pace and changes sides where that pays: whoever sends often does
    /// without fences and has sleepers issue the barrier, an interruption of all others, which a
    /// publisher that sends rarely spares them. Called once per [`RATE_WINDOW_MESSAGES`] messages, between two of
    /// them. `shown` is what sleepers go by.
    #[cold]
    pub fn update_send_rate(&mut self, now_ns: u64, shown: &AtomicU64) {
        let passed = now_ns.saturating_sub(self.since_ns);
        self.since_ns = now_ns;
        let mut often = passed < RATE_WINDOW_MESSAGES * FREQUENT_INTERVAL_NS;
        if often {
            let registered = registered();
            if registered == UNKNOWN {
                request_registration();
            }
            often = registered == YES;
        }
        if often && !self.asymmetric {
            shown.store(1, Ordering::Relaxed);
            // SYNC-SIDES: a sleeper whose ticket is not visible after this fence sees the store
            // above after its own, and issues the barrier.
            fence(Ordering::SeqCst);
            self.asymmetric = true;
        } else if !often && self.asymmetric {
            self.asymmetric = false;
            // SYNC-SIDES: release, so that who sees it also sees what was sent without a fence.
            shown.store(0, Ordering::Release);
        }
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

/// The side of whoever is about to sleep: the barrier is issued if one of the publishers that it
/// sleeps for counts on it.
#[derive(Clone, Copy, Debug)]
pub struct ConditionalBarrier<F>(pub F);

impl<F: Fn() -> bool> Barrier for ConditionalBarrier<F> {
    #[inline]
    fn light(&self) {
        fence(Ordering::SeqCst);
    }

    fn heavy(&self) {
        // SYNC-SIDES: the ticket before the question.
        fence(Ordering::SeqCst);
        if (self.0)() {
            SleeperBarrier.heavy();
        }
    }
}

/// The side of whoever admits a reader, or sleeps for it does not know whom.
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
        if is_supported() {
            membarrier(CMD_GLOBAL_EXPEDITED);
        }
    }
}
