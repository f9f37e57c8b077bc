//! A task that one process of the domain has at a time, for example the link between hosts.
//!
//! A role is a file in the domain's directory. A word in it, the lease (`lease.rs`), identifies the
//! holder of the role; the holder's number is its **term**. The kernel's lock on one byte of the file, at an
//! offset given by the term, shows whether that holder lives. So no lock is inherited: a process that takes
//! the role from a stopped process locks its own byte. The previous holder keeps its byte, which has no
//! meaning any more. The byte is locked before the word names it. docs/design/role.md draws the states.
//!
//! Each term is higher than all previous terms, even after the file was removed or overwritten: a term is at
//! least the time since boot when it was taken, and starts no earlier than that time.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rnet_core::Result;
use rnet_ring::layout::PAGE_LEN_BYTES;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::domain::directory::DomainDir;
use crate::domain::lease::{
    CHECK_INTERVAL, HEARTBEAT_INTERVAL, Lease, LeaseCell, StallDetector, epoch_of,
};
use crate::os::fork::UnsharedFd;
use crate::os::mapping::{Access, Mapping};
use crate::os::ofd::{self, Span};
use crate::os::temp_file::TempFile;
use crate::os::{clock, files, thread};

/// "rnetrole", little-endian.
const MAGIC: u64 = 0x656c_6f72_7465_6e72;
const VERSION: u64 = 2;
/// Offsets of the words, in bytes. One word is reserved.
const AT_MAGIC: usize = 0;
const AT_VERSION: usize = 8;
const AT_LEASE: usize = 16;
/// Holders, each at `AT_HOLDERS + 16 * (term % HOLDERS)`: `term << PID_BITS | pid`, and the term before it with the
/// tag of the pid namespace. A taker writes its own before it takes the role, so a holder has one however early it
/// stops.
const AT_HOLDERS: usize = 32;
const HOLDERS: u64 = 64;
/// The latest holders, whose entries a taker does not replace.
const KEPT_HOLDERS: usize = 32;
/// Linux has no larger process ids.
const PID_BITS: u32 = 22;
const PID_MASK: u64 = (1 << PID_BITS) - 1;
const LEN_BYTES: usize = PAGE_LEN_BYTES;
const TICK_BITS: u32 = 16;
/// How far a term may be ahead of the clock. A term further ahead is invalid data.
const MAX_AHEAD: u64 = 1 << 36;
/// How many terms a taker tries when concurrent takers have locked them first.
const MAX_RIVALS: u64 = 4096;
/// How many times an invalid file is replaced while other processes do the same.
const MAX_TRIES: u32 = 100;
/// How long to wait for the exit of a killed holder. On a loaded machine it may take seconds; its files are
/// open until then.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A role of the domain, for processes that compete for it.
#[derive(Clone, Debug)]
pub struct Role {
    path: PathBuf,
    mode: u32,
}

/// The role's file, opened once and mapped.
#[derive(Debug)]
struct RoleFile {
    file: UnsharedFd,
    map: Mapping,
}

/// State shared by the holder and its heartbeat thread.
#[derive(Debug)]
struct RoleState {
    path: PathBuf,
    file: Arc<RoleFile>,
    lease: Arc<Lease>,
    ended: AtomicBool,
}

/// A process that held the role, as its entry in the file names it.
struct HolderEntry {
    /// 0 once it has released the role.
    pid: u32,
    /// The term before its own.
    previous_term: u64,
    /// Whether its process id is one of this process's pid namespace.
    is_in_namespace: bool,
}

/// A role that this process holds. Released on drop, and by the kernel when the process exits.
#[derive(Debug)]
pub struct HeldRole {
    shared: Arc<RoleState>,
    heartbeat: Option<JoinHandle<()>>,
}

impl LeaseCell for RoleFile {
    fn read(&self) -> u64 {
        self.word(AT_LEASE).read()
    }

    fn swap(&self, seen: u64, next: u64) -> bool {
        LeaseCell::swap(self.word(AT_LEASE), seen, next)
    }
}

/// Time since boot, in units of 65.5 µs: a term covers 36 years of them.
fn ticks() -> u64 {
    clock::boot_ns() >> TICK_BITS
}

/// Part of the number of this process's pid namespace: ids of processes of another one are ids of others here.
fn namespace_tag() -> u64 {
    let inode = std::fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino());
    inode & PID_MASK
}

/// The byte whose lock shows that the holder of a term lives.
fn byte_of(term: u64) -> Span {
    (term as i64, 1)
}

impl RoleFile {
    /// Opens and maps a file; `None` if it is not a role file or does not exist.
    fn open(path: &Path) -> Result<Option<RoleFile>> {
        let failed = |errno| files::io_error("cannot open", path, errno);
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let open = || rustix::fs::open(path, flags, rustix::fs::Mode::empty());
        let file = match UnsharedFd::open(open) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
            Err(errno) => return Err(failed(errno)),
        };
        match Mapping::new(file.as_fd(), 0, LEN_BYTES, Access::Write, false) {
            Ok(map) => {
                let role = RoleFile { file, map };
                let sound = role.has_header();
                if !sound {
                    role.invalidate();
                }
                Ok(sound.then_some(role))
            }
            // Too short, or not mappable.
            Err(Errno::INVAL | Errno::NODEV | Errno::ACCESS) => Ok(None),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Replaces whatever is at the path with a new file. Other processes may do so at the same time.
    fn make(path: &Path, mode: u32) -> Result<()> {
        let failed = |errno| files::io_error("cannot create", path, errno);
        let folder = path.parent().unwrap_or(Path::new("/"));
        let (file, temp_file) = TempFile::create(folder, mode).map_err(failed)?;
        let head = [MAGIC.to_le_bytes(), VERSION.to_le_bytes()].concat();
        // Allocated, so that writing to it cannot fail because the disk is full.
        files::reserve(&file, 0, LEN_BYTES as u64)
            .and_then(|()| files::write_all_at(&file, &head, 0))
            .map_err(failed)?;
        if temp_file.persist_new(path).map_err(failed)? || RoleFile::open(path)?.is_some() {
            return Ok(());
        }
        // The replaced file may have become a valid role file meanwhile: then its holder loses the role.
        let see = |old: &Path| {
            if let Ok(Some(old)) = RoleFile::open(old) {
                old.invalidate();
            }
        };
        temp_file.exchange(path, see).map_err(failed)
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        self.map.get(at)
    }

    fn has_header(&self) -> bool {
        let is = |at, value: u64| self.word(at).load(Ordering::Relaxed) == value.to_le();
        is(AT_MAGIC, MAGIC) && is(AT_VERSION, VERSION) && !self.map.is_truncated()
    }

    /// Whether the file is still valid and at its path.
    fn is_sound(&self, path: &Path) -> bool {
        let in_place = match rustix::fs::lstat(path) {
            Ok(at) => rustix::fs::fstat(&self.file)
                .is_ok_and(|f| (f.st_dev, f.st_ino) == (at.st_dev, at.st_ino)),
            // An unreadable path gives no information.
            Err(errno) => errno != Errno::NOENT,
        };
        in_place && self.has_header()
    }

    /// Ends the role of a holder that uses this unusable file: its lease reads 0 from now on.
    fn invalidate(&self) {
        let _ = rustix::fs::ftruncate(&self.file, 0);
    }

    /// Whether no living process holds the role by this word.
    fn is_free(&self, word: u64) -> rustix::io::Result<bool> {
        let term = epoch_of(word);
        if term == 0 || term > ticks() + MAX_AHEAD {
            return Ok(true);
        }
        Ok(ofd::holder(&self.file, byte_of(term))?.is_none())
    }

    /// The two words of the holder with this term.
    fn holder_words(&self, term: u64) -> [&AtomicU64; 2] {
        let at = AT_HOLDERS + 16 * (term % HOLDERS) as usize;
        [self.word(at), self.word(at + 8)]
    }

    /// The holder with this term; `None` if a later one has replaced its entry.
    fn holder_entry(&self, term: u64) -> Option<HolderEntry> {
        let [own, previous] = self.holder_words(term).map(|word| word.load(Ordering::Relaxed));
        (term != 0 && own >> PID_BITS == term).then(|| HolderEntry {
            pid: (own & PID_MASK) as u32,
            previous_term: previous >> PID_BITS,
            is_in_namespace: previous & PID_MASK == namespace_tag(),
        })
    }

    /// The holders before `term`, which it includes, the latest first.
    fn holders_from(&self, term: u64) -> impl Iterator<Item = (u64, HolderEntry)> {
        let of = |term| Some((term, self.holder_entry(term)?));
        std::iter::successors(of(term), move |(_, entry)| of(entry.previous_term))
    }

    /// The process of the holder with this term; `None` if it is unknown or has released the role.
    fn pid(&self, term: u64) -> Option<u32> {
        self.holder_entry(term).map(|holder| holder.pid).filter(|pid| *pid != 0)
    }

    /// Takes the role if the word still equals `seen`.
    fn take(self: &Arc<RoleFile>, seen: u64) -> rustix::io::Result<Option<Arc<Lease>>> {
        let now = ticks();
        // An invalid term is ignored.
        let before = Some(epoch_of(seen)).filter(|term| *term <= now + MAX_AHEAD).unwrap_or(0);
        let first = (before + 1).max(now);
        // A successor follows these entries to the processes that were stopped.
        let kept = self.holders_from(before).take(KEPT_HOLDERS);
        let kept: Vec<u64> = kept.map(|(term, _)| term % HOLDERS).collect();
        for term in (first..first + MAX_RIVALS).filter(|term| !kept.contains(&(term % HOLDERS))) {
            // Locked by a concurrent taker, which may be stopped.
            if !ofd::take(&self.file, byte_of(term))? {
                continue;
            }
            // A rival has taken the role: its entry may be the one at this place.
            if self.read() != seen {
                ofd::release(&self.file, byte_of(term));
                return Ok(None);
            }
            let [own, previous] = self.holder_words(term);
            previous.store(before << PID_BITS | namespace_tag(), Ordering::Relaxed);
            own.store(term << PID_BITS | u64::from(std::process::id()), Ordering::Relaxed);
            let cell: Arc<dyn LeaseCell> = self.clone();
            let lease = Lease::take_as(&cell, seen, term);
            if lease.is_none() {
                ofd::release(&self.file, byte_of(term));
            }
            return Ok(lease);
        }
        Ok(None)
    }
}

impl Role {
    /// Opens the role `name` of a domain and creates its file if it does not exist.
    ///
    /// # Errors
    /// Errors of the system, with the file's path.
    pub fn open(dir: &DomainDir, name: &str) -> Result<Role> {
        let role = Role { path: dir.path().join(name), mode: dir.file_mode() };
        role.file()?;
        Ok(role)
    }

    fn file(&self) -> Result<Arc<RoleFile>> {
        for _ in 0..MAX_TRIES {
            if let Some(file) = RoleFile::open(&self.path)? {
                return Ok(Arc::new(file));
            }
            RoleFile::make(&self.path, self.mode)?;
        }
        Err(files::io_error("cannot use", &self.path, Errno::BUSY))
    }

    /// The process that holds the role, responsive or not; `None` if the role is free. Another process may
    /// take it at any moment.
    ///
    /// # Errors
    /// Errors of the system, with the file's path.
    pub fn holder(&self) -> Result<Option<u32>> {
        let file = self.file()?;
        let failed = |errno| files::io_error("cannot inspect", &self.path, errno);
        let word = file.read();
        let free = file.is_free(word).map_err(failed)?;
        Ok((!free).then(|| file.pid(epoch_of(word)).unwrap_or_default()))
    }

    /// The process that held the role through the file `name` of a domain's directory and exited without
    /// releasing it, if the role was not taken since.
    pub fn killed_holder(domain: &Path, name: &str) -> Option<u32> {
        let file = RoleFile::open(&domain.join(name)).ok()??;
        let word = file.read();
        file.pid(epoch_of(word)).filter(|_| file.is_free(word).unwrap_or(false))
    }

    /// Like [`Role::holder`], but only a responsive holder: waits for its next beat, up to
    /// [`STALL_LIMIT`](crate::domain::lease::STALL_LIMIT).
    ///
    /// # Errors
    /// Those of [`Role::holder`].
    pub fn responsive_holder(&self) -> Result<Option<u32>> {
        let file = self.file()?;
        let (first, mut stall_detector) = (file.read(), StallDetector::default());
        loop {
            let holder = self.holder()?;
            if holder.is_none() || file.read() != first {
                return Ok(holder);
            }
            if stall_detector.check(&*file, clock::now_ns()).is_some() {
                return Ok(None);
            }
            std::thread::sleep(CHECK_INTERVAL / 5);
        }
    }

    /// Waits until the role is free, and takes it: at once if its holder's process has exited, after
    /// [`CHECK_INTERVAL`] if its holder released it, and after
    /// [`STALL_LIMIT`](crate::domain::lease::STALL_LIMIT) if its process is stopped. Returns `None` once
    /// `stop` is set, which is checked every [`CHECK_INTERVAL`].
    ///
    /// # Errors
    /// Errors of the system, with the file's path or the thread.
    pub fn wait_for_turn(&self, stop: &AtomicBool) -> Result<Option<HeldRole>> {
        let failed = |errno| files::io_error("cannot lock", &self.path, errno);
        let (mut file, mut stall_detector) = (self.file()?, StallDetector::default());
        let mut holder = HolderProcess::default();
        while !stop.load(Ordering::SeqCst) {
            if !file.is_sound(&self.path) {
                file.invalidate();
                (file, stall_detector) = (self.file()?, StallDetector::default());
            }
            let seen = file.read();
            let entry = file.holder_entry(epoch_of(seen)).filter(|holder| holder.is_in_namespace);
            let pid = entry.map(|holder| holder.pid).unwrap_or_default();
            let due = match file.is_free(seen).map_err(failed)? {
                true => {
                    holder.wait_for_exit(pid, stop);
                    Some(seen)
                }
                false => stall_detector.check(&*file, clock::now_ns()),
            };
            let Some(word) = due else {
                holder.wait(pid);
                continue;
            };
            if let Some(lease) = file.take(word).map_err(failed)? {
                return HeldRole::start(&self.path, file, lease).map(Some);
            }
        }
        Ok(None)
    }
}

/// The process that a waiter assumes to be the holder.
#[derive(Default)]
struct HolderProcess {
    pid: u32,
    process: Option<OwnedFd>,
}

impl HolderProcess {
    /// Waits for its exit, at most until the next check.
    fn wait(&mut self, pid: u32) {
        if self.pid != pid {
            let pid_t = i32::try_from(pid).ok().and_then(Pid::from_raw);
            let open = |pid| pidfd_open(pid, PidfdFlags::empty()).ok();
            *self = HolderProcess { pid, process: pid_t.and_then(open) };
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: CHECK_INTERVAL.as_nanos() as i64 };
        let mut fds: Vec<_> = self.process.iter().map(|p| PollFd::new(p, PollFlags::IN)).collect();
        let ended = matches!(poll(&mut fds, Some(&timeout)), Ok(1..));
        drop(fds);
        if ended {
            // If it was not the holder, do not wait for it again.
            self.process = None;
        }
    }

    /// Waits for the exit of a killed process that has lost its lock already: what else it has open, such as
    /// ports, its successor needs. Ends once `stop` is set.
    fn wait_for_exit(&self, pid: u32, stop: &AtomicBool) {
        let Some(process) = self.process.as_ref().filter(|_| self.pid == pid) else { return };
        let interval = Timespec { tv_sec: 0, tv_nsec: CHECK_INTERVAL.as_nanos() as i64 };
        let until = Instant::now() + EXIT_TIMEOUT;
        while Instant::now() < until && !stop.load(Ordering::SeqCst) {
            if let Ok(1..) = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&interval)) {
                return;
            }
        }
    }
}

impl HeldRole {
    fn start(path: &Path, file: Arc<RoleFile>, lease: Arc<Lease>) -> Result<HeldRole> {
        // The term was ahead because of concurrent takers. The next taker may start from the clock alone.
        while ticks() <= lease.epoch() {
            std::thread::sleep(Duration::from_nanos(1 << TICK_BITS));
        }
        let ended = AtomicBool::new(false);
        let shared = Arc::new(RoleState { path: path.to_owned(), file, lease, ended });
        let beating = shared.clone();
        let heartbeat = Some(thread::spawn("rnet-heartbeat", move || beating.beat())?);
        Ok(HeldRole { shared, heartbeat })
    }

    /// The number of this holder: higher than those of all previous holders.
    pub fn term(&self) -> u64 {
        self.shared.lease.epoch()
    }

    /// The processes that held the role before and live, although they have lost it: those that were stopped,
    /// the latest first. They hold what they have opened, such as ports, until they continue or are killed.
    pub fn stopped_predecessors(&self) -> Vec<u32> {
        let file = &self.shared.file;
        let stopped = file.holders_from(self.term()).take(HOLDERS as usize).skip(1).filter(
            |(term, holder)| {
                // The kernel keeps its lock while it lives, so this is its process and no later one of that id.
                let lock = ofd::holder(&file.file, byte_of(*term));
                holder.pid != 0 && holder.is_in_namespace && lock.is_ok_and(|lock| lock.is_some())
            },
        );
        stopped.map(|(_, holder)| holder.pid).collect()
    }

    /// Whether this process still holds the role: one load. Check it before each act that the role permits.
    /// Once it returns `false`, another process has or will have the role, and this holder never regains it.
    #[inline]
    pub fn holds(&self) -> bool {
        self.shared.lease.holds()
    }
}

impl RoleState {
    fn beat(&self) {
        while !self.ended.load(Ordering::SeqCst) {
            if !self.file.is_sound(&self.path) {
                // Removed or damaged: other processes hold the role through another file, or will.
                return self.file.invalidate();
            }
            if !self.lease.beat() {
                return;
            }
            std::thread::park_timeout(HEARTBEAT_INTERVAL);
        }
    }
}

impl Drop for HeldRole {
    fn drop(&mut self) {
        if self.shared.file.file.fork_guard().is_from_parent() {
            return;
        }
        self.shared.ended.store(true, Ordering::SeqCst);
        if let Some(heartbeat) = self.heartbeat.take() {
            heartbeat.thread().unpark();
            let _ = heartbeat.join();
        }
        // Clears the pid: a waiter need not wait for this process, and it counts as not killed.
        let without_pid = self.term() << PID_BITS;
        let [own, _] = self.shared.file.holder_words(self.term());
        let entry = without_pid | u64::from(std::process::id());
        let _ = own.compare_exchange(entry, without_pid, Ordering::Relaxed, Ordering::Relaxed);
        // The word stays unchanged: the next taker sees that the lock is free.
        ofd::release(&self.shared.file.file, byte_of(self.term()));
    }
}
