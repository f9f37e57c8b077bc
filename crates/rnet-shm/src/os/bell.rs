//! Doorbells: one futex word per waiting thread, in a file that every peer may write.
//!
//! A bell can only wake somebody, so a peer that scribbles over it costs time, never data: a
//! sleep is bounded by [`MAX_SLEEP`], after which the sleeper looks for itself.

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

/// No sleep is longer, whatever a peer does to the bell.
pub const MAX_SLEEP: Duration = Duration::from_secs(1);

const FILE_LEN_BYTES: usize = MAX_BELLS_PER_NODE * 4;

/// The bells of one node.
#[derive(Debug)]
pub struct Bells {
    map: Mapping,
    next: AtomicU32,
    /// Of all waiters of the node: several may wait for the same subscriber in turn.
    tickets: Tickets,
    /// Whether the user was told that the file was truncated.
    reported: AtomicBool,
    /// Whether those who wait here may change what the scheduler does with their threads.
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

    /// Whether the file was truncated, which nobody was told of yet: the rings of peers do not arrive
    /// any more, and each sleep lasts as long as it may.
    pub(crate) fn must_report_truncated(&self) -> bool {
        self.map.is_truncated() && !self.reported.load(Ordering::Relaxed)
    }

    /// As [`Bells::must_report_truncated`], for who then tells of it: `true` once.
    pub(crate) fn report_truncated(&self) -> bool {
        self.must_report_truncated() && !self.reported.swap(true, Ordering::Relaxed)
    }

    /// Whether waits may change what the scheduler does with the threads that wait ([`crate::os::cpu`]).
    pub fn tunes_threads(&self) -> bool {
        self.tunes_threads.load(Ordering::Relaxed)
    }

    /// See [`Bells::tunes_threads`]; they may, unless this says otherwise.
    pub fn set_tunes_threads(&self, yes: bool) {
        self.tunes_threads.store(yes, Ordering::Relaxed);
    }

    /// A bell for one more waiting thread. Beyond the limit two waiters share a bell, which costs
    /// them needless wake-ups and nothing else.
    pub fn allocate(&self) -> u64 {
        u64::from(self.next.fetch_add(1, Ordering::Relaxed)) % MAX_BELLS_PER_NODE as u64
    }

    fn word(&self, index: u64) -> &AtomicU32 {
        self.map.get(index as usize % MAX_BELLS_PER_NODE * 4)
    }

    /// What the bell reads now; take it before looking for work.
    pub fn read(&self, index: u64) -> u32 {
        self.word(index).load(Ordering::Acquire)
    }

    /// Rings, whoever waits wakes. The index may come from a peer; it is taken modulo.
    pub fn ring(&self, index: u64) {
        let word = self.word(index);
        wake::ring(word);
        let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
    }

    /// Sleeps until the bell no longer reads `before`, at the longest for `limit` or
    /// [`MAX_SLEEP`]. Returns `false` if a signal ended the sleep.
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

/// How a sleep is meant to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepMode {
    /// By a ring; its limit may be overstepped by the thread's timer slack, 50 µs by default.
    UntilRung,
    /// At its limit, as closely as the kernel can.
    Timed,
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeReason {
    /// There was something, or somebody rang: look.
    Ready,
    /// The sleep reached its limit.
    TimedOut,
    /// A signal arrived.
    Signal,
}

/// One thread that waits, at one bell, for any number of logs.
#[derive(Debug)]
pub struct Waiter {
    bells: Arc<Bells>,
    index: u64,
}

impl Waiter {
    /// A waiter at a bell of its own.
    pub fn new(bells: Arc<Bells>) -> Waiter {
        let index = bells.allocate();
        Waiter { bells, index }
    }

    /// A waiter at a bell that was allotted before.
    pub fn at(bells: Arc<Bells>, index: u64) -> Waiter {
        Waiter { bells, index }
    }

    /// Which bell wakes this waiter.
    pub fn bell(&self) -> u64 {
        self.index
    }

    /// The bells it belongs to.
    pub fn bells(&self) -> &Arc<Bells> {
        &self.bells
    }

    /// Sleeps until a peer rings, `ready` says there is something, or `limit` is over.
    ///
    /// `places` names the words in which the wakers look for a sleeper, as they are when it is called;
    /// `ready` is asked once between showing the ticket and sleeping, and anything that others do before
    /// ringing this bell is seen by it or ends the sleep.
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

    /// What the bell reads now, for [`Waiter::sleep_since`].
    pub fn read(&self) -> u32 {
        self.bells.read(self.index)
    }

    /// As [`Waiter::sleep`], for a waiter that looked for work before it could name the places:
    /// does not sleep if the bell was rung since it read `before`.
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
