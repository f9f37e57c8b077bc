//! Watching for the end of peers, without asking them and without polling.
//!
//! The kernel tells of a process's end in two ways. In our own pid namespace a *pidfd* becomes
//! readable. A process in another one (a container) cannot be named from here; but its node holds
//! its FIFO `ctl` open for reading, so whoever holds the *write end* is told, by `EPOLLERR`, when
//! the last reader has closed it, and a process closes its files however it ends. That is a hint,
//! for somebody else may have opened the FIFO for reading. The truth is the node's lock
//! ([`presence`]), which the kernel releases microseconds before or after the FIFO: so it is asked
//! for at the hint, again in steps that double up to [`LAST_STEP`], and then once per [`POLL`],
//! which is also how the end is seen where there is no hint.

use std::collections::{BTreeMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::domain::DomainDir;
use crate::lent;
use crate::node::{NodeMeta, PeerNode};
use crate::presence;
use crate::registry::Registry;

/// How often locks are asked for where nothing hints at anything.
pub const POLL: Duration = Duration::from_secs(1);
/// The lock of a node whose FIFO was closed is asked for again after this time, and twice that, …
const FIRST_STEP: Duration = Duration::from_millis(1);
/// … up to this.
const LAST_STEP: Duration = Duration::from_millis(32);
/// Events that are taken at once; the others follow.
const AT_ONCE: usize = 64;
/// Marks descriptors that are no peer's among the events; incarnations have 40 bits.
const LISTENED: u64 = 1 << 63;

/// By what the end of a peer is noticed.
#[derive(Debug)]
pub enum Handle {
    /// It lives in this very process and cannot end without us.
    Ours,
    /// A pidfd: readable once the process has ended.
    Process(OwnedFd),
    /// The write end of its FIFO: in error once nobody reads there any more.
    Fifo(OwnedFd),
    /// Its FIFO had no reader when we came: it was ending just then.
    Ending,
    /// No descriptor was to be had; its lock is asked for from time to time.
    Nothing,
}

impl Handle {
    /// The best one for a peer whose lock was just held.
    pub(crate) fn on(dir: &DomainDir, node: &PeerNode) -> Handle {
        if node.is_this_process() {
            return Handle::Ours;
        }
        if let Some(process) = pidfd(node.meta()) {
            // The number could have been given to another process before we opened it; the lock
            // says that the node lives, hence that the number was still its own.
            let alive = presence::is_alive(dir, node.stem(), node.incarnation());
            return if alive { Handle::Process(process) } else { Handle::Ending };
        }
        match lent::open(&node.folder().join("ctl"), OFlags::WRONLY) {
            Ok(fifo) => Handle::Fifo(fifo),
            Err(Errno::NXIO | Errno::NOENT) => Handle::Ending,
            Err(_) => Handle::Nothing,
        }
    }

    /// Whether the kernel says that it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        let Handle::Process(process) = self else { return false };
        let mut fds = [PollFd::new(process, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut fds, Some(&now)), Ok(1..))
    }

    /// Whether only the lock says for certain.
    pub(crate) fn asks_lock(&self) -> bool {
        matches!(self, Handle::Fifo(_) | Handle::Ending | Handle::Nothing)
    }
}

/// A handle on the peer's process, if it is in our pid namespace.
fn pidfd(meta: &NodeMeta) -> Option<OwnedFd> {
    if !meta.is_in_our_pid_namespace() {
        return None;
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(meta.pid).ok()?)?;
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

/// What has woken a [`Watch`].
#[derive(Debug, Default)]
pub struct Woken {
    /// Peers that have ended, or seem to.
    pub peers: Vec<u64>,
    /// Marks of the other descriptors that are readable.
    pub listened: Vec<u32>,
    /// Whether it is time to look at all peers, because some can only be asked.
    pub poll: bool,
}

/// A peer that seems to have ended and whose lock is still held.
#[derive(Debug)]
struct Suspect {
    due: Instant,
    step: Duration,
}

/// Waits for the end of peers, and for what else its owner listens to.
#[derive(Debug)]
pub struct Watch {
    epoll: OwnedFd,
    watched: HashSet<u64>,
    suspects: BTreeMap<u64, Suspect>,
    /// When the next poll is due, while some peers need it.
    next_poll: Option<Instant>,
}

impl Watch {
    /// Watches nobody yet.
    pub fn new() -> rustix::io::Result<Watch> {
        Ok(Watch {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            watched: HashSet::new(),
            suspects: BTreeMap::new(),
            next_poll: None,
        })
    }

    /// Wakes for this descriptor, too; with `once`, for the first time only.
    pub fn listen(&self, fd: impl AsFd, mark: u32, once: bool) -> rustix::io::Result<()> {
        let flags = if once { EventFlags::IN | EventFlags::ONESHOT } else { EventFlags::IN };
        epoll::add(&self.epoll, fd, EventData::new_u64(LISTENED | u64::from(mark)), flags)
    }

    /// Wakes for this descriptor no more, whoever holds copies of it.
    pub fn ignore(&self, fd: impl AsFd) -> rustix::io::Result<()> {
        epoll::delete(&self.epoll, fd)
    }

    /// Watches the peers that are new, forgets those that have departed.
    ///
    /// A departed peer's handle is closed by the registry, which takes it out of the epoll set,
    /// unless a forked child holds a copy; so each handle speaks only once.
    pub fn follow(&mut self, registry: &Registry) {
        let peers = registry.peers();
        self.watched.retain(|id| peers.contains_key(id));
        self.suspects.retain(|id, _| peers.contains_key(id));
        let mut missed = false;
        for (id, peer) in peers {
            if self.watched.contains(id) {
                continue;
            }
            let added = match &peer.handle {
                Handle::Ours => true,
                Handle::Nothing => false,
                Handle::Ending => {
                    self.suspect(*id);
                    true
                }
                Handle::Process(fd) => self.add(fd, *id, EventFlags::IN),
                // Its end is an error, which is told of unasked.
                Handle::Fifo(fd) => self.add(fd, *id, EventFlags::empty()),
            };
            if added {
                self.watched.insert(*id);
            }
            missed |= !added;
        }
        // Whom the kernel does not watch for us is looked at, and tried to be watched, until it does.
        self.next_poll = match self.next_poll {
            _ if !missed && !registry.needs_polling() => None,
            None => Some(Instant::now() + POLL),
            due => due,
        };
    }

    fn add(&self, fd: &OwnedFd, id: u64, flags: EventFlags) -> bool {
        let flags = flags | EventFlags::ONESHOT;
        epoll::add(&self.epoll, fd, EventData::new_u64(id), flags).is_ok()
    }

    fn suspect(&mut self, id: u64) {
        let due = Instant::now() + FIRST_STEP;
        self.suspects.entry(id).or_insert(Suspect { due, step: FIRST_STEP });
    }

    /// Sleeps until something has happened, or for `limit`, or until a signal comes.
    pub fn wait(&mut self, limit: Option<Duration>) -> rustix::io::Result<Woken> {
        let now = Instant::now();
        let due = self.suspects.values().map(|s| s.due).chain(self.next_poll).min();
        let due = due.map(|due| due.saturating_duration_since(now));
        let wait = limit.into_iter().chain(due).min().map(|time| Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: i64::from(time.subsec_nanos()),
        });
        let mut events: Vec<Event> = Vec::with_capacity(AT_ONCE);
        let room = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.epoll, room, wait.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let mut woken = Woken::default();
        for event in &events {
            match event.data.u64() {
                mark if mark & LISTENED != 0 => woken.listened.push(mark as u32),
                id => woken.peers.push(id),
            }
        }
        // Those that have really ended are forgotten with the next `follow`.
        woken.peers.iter().for_each(|id| self.suspect(*id));
        self.ask_again(&mut woken);
        Ok(woken)
    }

    /// Adds what is due by the clock.
    fn ask_again(&mut self, woken: &mut Woken) {
        let now = Instant::now();
        self.suspects.retain(|id, suspect| {
            if suspect.due > now {
                return true;
            }
            woken.peers.push(*id);
            suspect.step *= 2;
            suspect.due = now + suspect.step;
            suspect.step <= LAST_STEP
        });
        if self.next_poll.is_some_and(|due| due <= now) {
            self.next_poll = Some(now + POLL);
            woken.poll = true;
        }
    }
}
