//! Doorbells: one futex word per waiting thread, in a file that every peer may write.
//!
//! A bell can only wake threads, so a peer that overwrites it costs time, never data: a sleep is at most
//! [`MAX_SLEEP`] long, after which the sleeper checks on its own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rnet_core::{Error, MAX_BELLS_PER_NODE};
use rnet_ring::sync::Barrier;
use rnet_ring::wake::{self, Tickets};
use rustix::io::Errno;
use rustix::thread::futex;

use crate::os::cpu::PreciseTimers;
use crate::os::files;
use crate::os::mapping::{Access, Mapping};

/// Maximum length of a sleep, whatever a peer does to the bell.
pub const MAX_SLEEP: Duration = Duration::from_secs(1);

const FILE_LEN_BYTES: usize = MAX_BELLS_PER_NODE * 4;

/// The bells of one node.
#[derive(Debug)]
pub struct Bells {
    map: Mapping,
    next: AtomicU32,
    /// Tickets of all waiters of the node: several may wait for the same subscriber in turn.
    tickets: Tickets,
    /// Whether the truncation of the file was reported to the user.
    reported: AtomicBool,
    /// Whether waiters may change the scheduling of their threads.
    tunes_threads: AtomicBool,
}

impl Bells {
    pub(crate) fn create(path: &Path, mode: u32) -> Result<Bells, Error> {
        let fd = files::create_sized(path, FILE_LEN_BYTES as u64, mode)
            .map_err(|e| files::create_error(None, path, FILE_LEN_BYTES as u64, e))?;
        Bells::map(&fd, path)
    }

    /// Opens a peer's bells.
    pub(crate) fn open(path: &Path) -> Result<Bells, Error> {
        let fd = files::open_write(path).map_err(|e| files::io_error("cannot open", path, e))?;
        Bells::map(&fd, path)
    }

    fn map(fd: &std::os::fd::OwnedFd, path: &Path) -> Result<Bells, Error> {
        use std::os::fd::AsFd;
        let map = Mapping::new(fd.as_fd(), 0, FILE_LEN_BYTES, Access::Write, false)
            .map_err(|e| files::io_error("cannot map", path, e))?;
        Ok(Bells {
            map,
            next: AtomicU32::new(0),
            tickets: Tickets::default(),
            reported: AtomicBool::new(false),
            tunes_threads: AtomicBool::new(true),
        })
    }

    /// Whether the file was truncated and this is not reported yet: rings of peers no longer arrive, and each
    /// sleep lasts for its full limit.
    pub(crate) fn must_report_truncated(&self) -> bool {
        self.map.is_truncated() && !self.reported.load(Ordering::Relaxed)
    }

    /// Like [`Bells::must_report_truncated`], for the caller that reports it: `true` once.
    pub(crate) fn report_truncated(&self) -> bool {
        self.must_report_truncated() && !self.reported.swap(true, Ordering::Relaxed)
    }

    /// Whether waits may change the scheduling of the waiting threads ([`crate::os::cpu`]).
    pub fn tunes_threads(&self) -> bool {
        self.tunes_threads.load(Ordering::Relaxed)
    }

    /// See [`Bells::tunes_threads`]; the default is `true`.
    pub fn set_tunes_threads(&self, yes: bool) {
        self.tunes_threads.store(yes, Ordering::Relaxed);
    }

    /// Allocates a bell for one more waiting thread. Beyond the limit, two waiters share a bell, which only
    /// causes spurious wake-ups.
    pub fn allocate(&self) -> u64 {
        u64::from(self.next.fetch_add(1, Ordering::Relaxed)) % MAX_BELLS_PER_NODE as u64
    }

    fn word(&self, index: u64) -> &AtomicU32 {
        self.map.get(index as usize % MAX_BELLS_PER_NODE * 4)
    }

    /// The bell's current value; read it before checking for work.
    pub fn read(&self, index: u64) -> u32 {
        self.word(index).load(Ordering::Acquire)
    }

    /// Rings the bell, which wakes its waiters. The index may come from a peer; it is taken modulo.
    pub fn ring(&self, index: u64) {
        let word = self.word(index);
        wake::ring(word);
        let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
    }

    /// Sleeps until the bell no longer reads `before`, at most for `limit` or [`MAX_SLEEP`]. Returns `false`
    /// if a signal ended the sleep.
    fn sleep(&self, index: u64, before: u32, limit: Duration, sleep: SleepMode) -> bool {
        let _precise = (sleep == SleepMode::Timed).then(PreciseTimers::enable);
        let limit = limit.min(MAX_SLEEP);
        let limit = rustix::time::Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: i64::from(limit.subsec_nanos()),
        };
        let slept = futex::wait(self.word(index), futex::Flags::empty(), before, Some(&limit));
        !matches!(slept, Err(Errno::INTR))
    }
}

/// How a sleep is expected to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepMode {
    /// By a ring; the sleep may exceed its limit by the thread's timer slack, 50 µs by default.
    UntilRung,
    /// At its limit, as precisely as the kernel can.
    Timed,
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeReason {
    /// Work may be available, or the bell was rung: check for work.
    Ready,
    /// The sleep reached its limit.
    TimedOut,
    /// A signal arrived.
    Signal,
}

/// One waiting thread, at one bell, for any number of logs.
#[derive(Debug)]
pub struct Waiter {
    bells: Arc<Bells>,
    index: u64,
}

impl Waiter {
    /// A waiter with its own bell.
    pub fn new(bells: Arc<Bells>) -> Waiter {
        let index = bells.allocate();
        Waiter { bells, index }
    }

    /// A waiter at a bell that was allocated before.
    pub fn at(bells: Arc<Bells>, index: u64) -> Waiter {
        Waiter { bells, index }
    }

    /// The bell that wakes this waiter.
    pub fn bell(&self) -> u64 {
        self.index
    }

    /// The bells it belongs to.
    pub fn bells(&self) -> &Arc<Bells> {
        &self.bells
    }

    /// Sleeps until a peer rings, `ready` returns true, or `limit` expires.
    ///
    /// `places` lists the words in which wakers look for a sleeper, as of the call. `ready` is called once
    /// after the ticket is published and before the sleep. Anything that others do before they ring this bell
    /// is visible to `ready` or ends the sleep.
    pub fn sleep(
        &self,
        sleep: SleepMode,
        places: impl Fn(&mut dyn FnMut(&AtomicU64)),
        barrier: &impl Barrier,
        limit: Duration,
        ready: impl FnOnce() -> bool,
    ) -> WakeReason {
        let before = self.read();
        self.sleep_since(sleep, before, places, barrier, limit, ready)
    }

    /// The bell's current value, for [`Waiter::sleep_since`].
    pub fn read(&self) -> u32 {
        self.bells.read(self.index)
    }

    /// Like [`Waiter::sleep`], for a waiter that checked for work before it could list the places: does not
    /// sleep if the bell was rung since it read `before`.
    pub fn sleep_since(
        &self,
        sleep: SleepMode,
        before: u32,
        places: impl Fn(&mut dyn FnMut(&AtomicU64)),
        barrier: &impl Barrier,
        limit: Duration,
        ready: impl FnOnce() -> bool,
    ) -> WakeReason {
        wake::announce(&places, self.bells.tickets.next_ticket(), barrier);
        let woken = if ready() {
            WakeReason::Ready
        } else {
            let whole = self.bells.sleep(self.index, before, limit, sleep);
            match (whole, self.bells.read(self.index) != before) {
                (_, true) => WakeReason::Ready,
                (true, false) => WakeReason::TimedOut,
                (false, false) => WakeReason::Signal,
            }
        };
        wake::withdraw(places);
        woken
    }
}
