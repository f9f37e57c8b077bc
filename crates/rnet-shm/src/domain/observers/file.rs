//! An observer's file: by it publishers find an observer that sleeps.
//!
//! The observer owns the file, and publishers map its pages read-only, as they do a subscriber's. It
//! gives no cursor and no pin: a publisher that reads it learns whom to wake and nothing that could
//! hold it back. The file is locked for as long as its observer lives.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rnet_core::limits::{MAX_OBSERVERS_PER_DOMAIN, MAX_PUBLISHERS_PER_OBSERVER};
use rnet_core::{Error, Result};
use rnet_ring::fail_point;
use rnet_ring::layout::{OBSERVER_SLOTS_PER_PAGE, ObserverSlot, PAGE_LEN_BYTES};

use super::{BELLS_SUFFIX, ENDPOINTS, MAGIC, Observers, PAGE, STATUS_SUFFIX, WAKE, listed};
use crate::LAYOUT_VERSION;
use crate::domain::directory::DomainDir;
use crate::domain::node::{incarnation_of, ring_control};
use crate::os::barrier::ConditionalBarrier;
use crate::os::bell::{Bells, SleepMode, Waiter, WakeReason};
use crate::os::files::{self, io_error};
use crate::os::fork::{ForkGuard, UnsharedFd};
use crate::os::mapping::{Access, Mapping};
use crate::os::ofd;
use crate::os::random::random_u64;
use crate::os::temp_file::TempFile;

/// From one sleep to the next at least this much time passes. A publisher rings an observer no more
/// often than twice in this time, however often one claims to sleep.
const MIN_SLEEP_INTERVAL: Duration = Duration::from_millis(1);

/// What an observer has in the directory of its domain; unlinked on drop.
#[derive(Debug)]
pub struct ObserverFile {
    path: PathBuf,
    pub(super) mode: u32,
    /// Locked for as long as the observer lives.
    file: UnsharedFd,
    pages: Vec<Mapping>,
    /// The publisher of each slot, 0 if it is free.
    slots: Vec<u64>,
    bells: Arc<Bells>,
    waiter: Waiter,
    /// What the bell of endpoints read when it was last asked.
    seen_endpoints: u32,
    /// When the last sleep ended.
    awake_since: Option<Instant>,
    /// Whether a ring ended it.
    was_rung: bool,
    fork_guard: ForkGuard,
}

impl ObserverFile {
    /// Takes a place among the observers of a domain.
    ///
    /// # Errors
    /// `LimitReached` beyond 64 observers; `OutOfMemory`, `Io`.
    pub fn create(dir: &DomainDir) -> Result<ObserverFile> {
        let fork_guard = ForkGuard::here();
        let folder = dir.observers();
        dir.make_folder(&dir.observers())?;
        let is_full = || listed(&folder).len() >= MAX_OBSERVERS_PER_DOMAIN;
        // Nodes remove what dead observers have left, but perhaps there is none.
        if is_full() && Observers::new(dir).refresh() && is_full() {
            return Err(Error::LimitReached {
                what: format!("observers in domain {}", dir.id()),
                limit: MAX_OBSERVERS_PER_DOMAIN,
                hint: "stop some of the tools that observe this domain".to_owned(),
            });
        }
        let id = random_u64();
        let path = folder.join(format!("{id:016x}"));
        let bells_path = folder.join(format!("{id:016x}{BELLS_SUFFIX}"));
        let failed = |e: rustix::io::Errno| io_error("cannot create", &path, e);
        let bells = Arc::new(Bells::create(&bells_path, dir.file_mode())?);
        fail_point!("observer.bells");
        let made = (|| {
            let (file, temp_file) = TempFile::create(&folder, dir.file_mode())?;
            let words = [MAGIC, u64::from(LAYOUT_VERSION), id, 0];
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            ofd::take(&file, ofd::WHOLE)?;
            files::write_all_at(&file, &bytes, 0)?;
            if temp_file.persist_new(&path)? { Ok(file) } else { Err(rustix::io::Errno::EXIST) }
        })();
        let file = match made {
            Ok(file) => file,
            Err(errno) => {
                let _ = rustix::fs::unlink(&bells_path);
                return Err(failed(errno));
            }
        };
        fail_point!("observer.placed");
        let waiter = Waiter::at(bells.clone(), WAKE);
        Ok(ObserverFile {
            path,
            mode: dir.file_mode(),
            file,
            pages: Vec::new(),
            slots: Vec::new(),
            seen_endpoints: bells.read(ENDPOINTS),
            bells,
            waiter,
            awake_since: None,
            was_rung: false,
            fork_guard,
        })
    }

    /// Has these nodes look at the observers: folder and incarnation of each.
    pub fn greet<'a>(&self, nodes: impl Iterator<Item = (&'a Path, u64)>) {
        for (folder, incarnation) in nodes {
            // A node that is rung in its own name looks at the observers.
            ring_control(folder, incarnation);
        }
    }

    /// Whether its files are still where publishers look for them.
    pub fn exists(&self) -> bool {
        // The doorbells of one that was stopped before it had a file may have been taken for those of a dead one.
        rustix::fs::lstat(&self.path)
            .and(rustix::fs::lstat(self.sibling_path(BELLS_SUFFIX)))
            .is_ok()
    }

    /// A file of its own beside this one.
    pub(super) fn sibling_path(&self, suffix: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(suffix);
        path.into()
    }

    /// Shows a publisher that it is followed, and rings its node, whose folder it is. Returns the slot.
    ///
    /// # Errors
    /// `LimitReached`; `OutOfMemory`, `Io` if the file cannot grow.
    pub fn follow(&mut self, publisher: u64, folder: &Path) -> Result<usize> {
        let free = self.slots.iter().position(|taken| *taken == 0);
        let slot = match free {
            Some(slot) => slot,
            None => self.grow()?,
        };
        self.slots[slot] = publisher;
        self.slot(slot).publisher.store(publisher, Ordering::Release);
        fail_point!("observer.followed");
        self.greet(std::iter::once((folder, incarnation_of(publisher))));
        Ok(slot)
    }

    /// The publisher of this slot is not followed any more.
    pub fn leave(&mut self, slot: usize) {
        self.slot(slot).asleep.store(0, Ordering::Relaxed);
        self.slot(slot).publisher.store(0, Ordering::Release);
        self.slots[slot] = 0;
    }

    fn slot(&self, slot: usize) -> &ObserverSlot {
        let at = slot % OBSERVER_SLOTS_PER_PAGE * size_of::<ObserverSlot>();
        self.pages[slot / OBSERVER_SLOTS_PER_PAGE].get(at)
    }

    fn grow(&mut self) -> Result<usize> {
        let first = self.slots.len();
        if first + OBSERVER_SLOTS_PER_PAGE > MAX_PUBLISHERS_PER_OBSERVER {
            return Err(Error::LimitReached {
                what: "publishers that one observer follows".to_owned(),
                limit: MAX_PUBLISHERS_PER_OBSERVER,
                hint: "observe fewer topics".to_owned(),
            });
        }
        let at = PAGE * (1 + self.pages.len() as u64);
        let failed = |e| files::create_error(None, &self.path, PAGE, e);
        let page = rustix::fs::ftruncate(&self.file, at + PAGE)
            .and_then(|()| files::reserve(&self.file, at, PAGE))
            .and_then(|()| Mapping::new(self.file.as_fd(), at, PAGE_LEN_BYTES, Access::Write, true))
            .map_err(failed)?;
        self.pages.push(page);
        self.slots.resize(first + OBSERVER_SLOTS_PER_PAGE, 0);
        Ok(first)
    }

    /// Whether endpoints have come or gone since this was asked last.
    pub fn endpoints_changed(&mut self) -> bool {
        let now = self.bells.read(ENDPOINTS);
        std::mem::replace(&mut self.seen_endpoints, now) != now
    }

    /// Sleeps until a followed publisher sends, endpoints come or go, `limit` is over or a signal
    /// comes. `ready` is whether there is something to read already; `asks_barrier`, whether a followed
    /// publisher counts on the barrier of those that sleep for its messages.
    pub fn sleep(
        &mut self,
        limit: Duration,
        asks_barrier: impl Fn() -> bool,
        ready: impl Fn() -> bool,
    ) -> WakeReason {
        let begun = Instant::now();
        if let Some(awake) =
            self.awake_since.map(|at| at.elapsed()).filter(|awake| *awake < MIN_SLEEP_INTERVAL)
        {
            std::thread::sleep((MIN_SLEEP_INTERVAL - awake).min(limit));
            if ready() {
                return WakeReason::Ready;
            }
        }
        let left = limit.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return WakeReason::TimedOut;
        }
        let seen = self.seen_endpoints;
        let followed = |slot: &usize| self.slots[*slot] != 0;
        let places = |show: &mut dyn FnMut(&AtomicU64)| {
            for slot in (0..self.slots.len()).filter(followed) {
                let at = slot % OBSERVER_SLOTS_PER_PAGE * size_of::<ObserverSlot>();
                show(&self.pages[slot / OBSERVER_SLOTS_PER_PAGE].get::<ObserverSlot>(at).asleep);
            }
        };
        let bells = &self.bells;
        let woken = self.waiter.sleep(
            SleepMode::UntilRung,
            places,
            &ConditionalBarrier(asks_barrier),
            left,
            || ready() || bells.read(ENDPOINTS) != seen,
        );
        self.awake_since = Some(Instant::now());
        woken
    }

    /// Sleeps until endpoints come or go, `limit` is over or a signal comes. No message ends it: for one that follows more
    /// publishers than it can show.
    pub fn sleep_between_scans(&mut self, limit: Duration) {
        let begun = Instant::now();
        let awake =
            self.awake_since.map(|at| at.elapsed()).filter(|awake| *awake < MIN_SLEEP_INTERVAL);
        if let Some(awake) = awake.filter(|_| self.was_rung) {
            std::thread::sleep((MIN_SLEEP_INTERVAL - awake).min(limit));
        }
        let left = limit.saturating_sub(begun.elapsed());
        let (seen, bells) = (self.seen_endpoints, &self.bells);
        let is_rung = || bells.read(ENDPOINTS) != seen;
        if !left.is_zero() {
            self.waiter.sleep(
                SleepMode::UntilRung,
                |_| {},
                &ConditionalBarrier(|| false),
                left,
                is_rung,
            );
        }
        self.was_rung = is_rung();
        self.awake_since = Some(Instant::now());
    }
}

impl Drop for ObserverFile {
    fn drop(&mut self) {
        if self.fork_guard.is_from_parent() {
            return;
        }
        let _ = rustix::fs::unlink(&self.path);
        let _ = rustix::fs::unlink(self.sibling_path(BELLS_SUFFIX));
        let _ = rustix::fs::unlink(self.sibling_path(STATUS_SUFFIX));
    }
}
