//! The barrier between a frequent publisher and a rare sleeper, moved to the sleeper.
//!
//! `membarrier(2)` makes every running thread of the registered processes pass a full fence, so a
//! publisher pays nothing per message to ask "is anyone asleep". It interrupts those threads,
//! though, for microseconds; so a publisher has sleepers issue it only while it sends often, and
//! says so in its page. Otherwise, until its process is registered, and where the kernel offers no
//! membarrier, it fences for itself.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence, fence};

use rnet_ring::sync::Barrier;

const CMD_QUERY: libc::c_int = 0;
const CMD_GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const CMD_REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

/// Messages after which a publisher takes its pace.
pub const PACE: u64 = 64;
/// A publisher sends often if less time passes from message to message: a fence for each, of some
/// 20 ns, is then more than a thousandth of its time.
const OFTEN_NS: u64 = 20_000;

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
/// The kernel registers a process with one thread at once. Any other waits for an RCU grace period
/// of 10 to 30 ms, and *cannot be killed meanwhile*: its peers would notice its death that much
/// later. So a process of several threads is registered only once it pays, see [`wanted`].
pub fn register() {
    REGISTERED.get_or_init(|| is_offered() && membarrier(CMD_REGISTER_GLOBAL_EXPEDITED) == 0);
}

/// Whether [`register`] would make its caller wait.
pub fn register_takes_time() -> bool {
    REGISTERED.get().is_none()
        && !std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

/// Through which publishers ask for the registration, and whether one has asked.
static WANTED: OnceLock<Option<OwnedFd>> = OnceLock::new();
static ASKED: AtomicBool = AtomicBool::new(false);

/// Readable once a publisher of this process sends so often that [`register`] pays; whoever
/// watches it is to call that, on a thread that nobody waits for. `None` where there is nothing to
/// register for, or no descriptor is left; publishers then go on fencing for themselves.
pub fn wanted() -> Option<BorrowedFd<'static>> {
    use rustix::event::{EventfdFlags, eventfd};
    if REGISTERED.get().is_some() || !is_offered() {
        return None;
    }
    let made = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok();
    WANTED.get_or_init(made).as_ref().map(AsFd::as_fd)
}

/// One system call in the life of a process.
fn ask_to_register() {
    if let Some(Some(wanted)) = WANTED.get()
        && !ASKED.swap(true, Ordering::Relaxed)
    {
        let _ = rustix::io::write(wanted, &1u64.to_ne_bytes());
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
    /// publisher that sends rarely spares them. Called once per [`PACE`] messages, between two of
    /// them. `shown` is what sleepers go by.
    #[cold]
    pub fn take_pace(&mut self, now_ns: u64, shown: &AtomicU64) {
        let passed = now_ns.saturating_sub(self.since_ns);
        self.since_ns = now_ns;
        let mut often = passed < PACE * OFTEN_NS;
        if often {
            let registered = REGISTERED.get();
            if registered.is_none() {
                ask_to_register();
            }
            often = registered == Some(&true);
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
pub struct AskingBarrier<F>(pub F);

impl<F: Fn() -> bool> Barrier for AskingBarrier<F> {
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
        if is_offered() {
            membarrier(CMD_GLOBAL_EXPEDITED);
        }
    }
}
