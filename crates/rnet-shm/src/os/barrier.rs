//! The barrier between a frequent publisher and a rare sleeper, moved to the sleeper's side.
//!
//! `membarrier(2)` makes every running thread of the registered processes execute a full fence, so a
//! publisher need not fence per message before it checks for sleepers. However, it interrupts those threads
//! for microseconds. So a publisher asks sleepers to issue it only while it sends often, by a word in its
//! page. Otherwise, until its process is registered, and on kernels without membarrier, the publisher issues
//! its own fences.

use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

use rnet_ring::sync::Barrier;

use crate::os::{fork, process};

const CMD_QUERY: libc::c_int = 0;
const CMD_GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const CMD_REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

/// Number of messages after which a publisher measures its send rate.
pub const RATE_WINDOW_MESSAGES: u64 = 64;
/// A publisher sends often if the interval between messages is shorter: a fence per message, about 20 ns,
/// then takes more than a thousandth of its time.
const FREQUENT_INTERVAL_NS: u64 = 20_000;

fn membarrier(command: libc::c_int) -> libc::c_long {
    // SAFETY: the call takes no pointers.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}

/// Whether the kernel offers the barrier to this process.
pub fn is_supported() -> bool {
    // No OnceLock here and below: a forked child would wait forever for one that a thread of the parent was
    // initializing. A duplicate query is harmless.
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

/// Whether the process is registered: once true, it stays true. The upper bits hold the fork count; a child
/// registers again.
static REGISTERED: AtomicU64 = AtomicU64::new(UNKNOWN as u64);

fn registered() -> u8 {
    let word = REGISTERED.load(Ordering::Acquire);
    if word >> 8 == u64::from(fork::count()) { word as u8 } else { UNKNOWN }
}

/// Registers this process so that its publishers need no fences.
///
/// The kernel registers a single-threaded process at once. A multithreaded one waits for an RCU grace period
/// of 10 to 30 ms, and *cannot be killed meanwhile*: its peers would notice its death that much later. So a
/// multithreaded process is registered only once that pays, see [`registration_requests`].
pub fn register() {
    if registered() == UNKNOWN {
        let forks = u64::from(fork::count());
        let yes = is_supported() && membarrier(CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
        let state = if yes { YES } else { NO };
        REGISTERED.store(forks << 8 | u64::from(state), Ordering::Release);
    }
}

/// Whether [`register`] would block its caller.
pub fn register_blocks() -> bool {
    registered() == UNKNOWN && !process::is_single_threaded()
}

/// The descriptor through which publishers request registration; the upper half holds the fork count plus
/// one; 0 if no descriptor exists. A child must not ask its parent.
static REQUEST_FD: AtomicU64 = AtomicU64::new(0);
/// The same upper half once a publisher has requested registration.
static REQUESTED: AtomicU32 = AtomicU32::new(0);

/// Identifies this process among its ancestors and forked children.
fn this_process() -> u32 {
    fork::count().wrapping_add(1)
}

/// Readable once a publisher of this process sends often enough for [`register`] to pay. The thread that
/// watches it must call `register` where blocking is acceptable. `None` if registration is unsupported or no
/// descriptor is free; publishers then keep issuing fences.
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
            // SAFETY: opened above and unused; another thread's descriptor is in use.
            drop(unsafe { OwnedFd::from_raw_fd(made) });
            Some(request_fd(faster))
        }
    }
}

fn request_fd(word: u64) -> BorrowedFd<'static> {
    // SAFETY: a descriptor that was put into `REQUEST_FD` is never closed.
    unsafe { BorrowedFd::borrow_raw((word as u32).cast_signed()) }
}

/// Makes one system call in the lifetime of a process.
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
    /// When the send rate was last measured.
    since_ns: u64,
}

impl PublisherBarrier {
    /// Measures the send rate and switches sides if that pays. A frequent publisher omits fences and has
    /// sleepers issue the barrier; a rare publisher spares all other threads this interruption. Called once
    /// per [`RATE_WINDOW_MESSAGES`] messages, between two messages. Sleepers read `shown`.
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
            // SYNC-SIDES: release, so that a sleeper that sees it also sees messages that were sent without a
            // fence.
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

/// The sleeper's side: issues the barrier if one of the publishers that it waits for relies on it.
#[derive(Clone, Copy, Debug)]
pub struct ConditionalBarrier<F>(pub F);

impl<F: Fn() -> bool> Barrier for ConditionalBarrier<F> {
    #[inline]
    fn light(&self) {
        fence(Ordering::SeqCst);
    }

    fn heavy(&self) {
        // SYNC-SIDES: the ticket is stored before `shown` is read.
        fence(Ordering::SeqCst);
        if (self.0)() {
            SleeperBarrier.heavy();
        }
    }
}

/// The side of a thread that admits a reader, or that sleeps for unknown publishers.
#[derive(Clone, Copy, Debug, Default)]
pub struct SleeperBarrier;

impl Barrier for SleeperBarrier {
    #[inline]
    fn light(&self) {
        fence(Ordering::SeqCst);
    }

    fn heavy(&self) {
        fence(Ordering::SeqCst);
        // If a filter denies membarrier to this process but not to the publisher, a wake-up may be missed;
        // the bounded sleep of `bell` then ends the wait.
        if is_supported() {
            membarrier(CMD_GLOBAL_EXPEDITED);
        }
    }
}
