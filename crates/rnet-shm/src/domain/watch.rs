//! Watching for the end of peers, without asking them and without polling.
//!
//! The kernel tells of a process's end in two ways. In our own pid namespace a *pidfd* becomes
//! readable. A process in another one (a container) cannot be named from here; but its node holds
//! its FIFO `ctl` open for reading, so whoever holds the *write end* is told, by `EPOLLERR`, when
//! the last reader has closed it, and a process closes its files however it ends. That is a hint,
//! for somebody else may have opened the FIFO for reading. The truth is the node's lock
//! ([`presence`](crate::domain::presence)), which the kernel releases microseconds before or after the FIFO: so it is asked
//! for at the hint, again in steps that double up to [`MAX_RETRY_DELAY`], and then once per [`POLL_INTERVAL`],
//! which is also how the end is seen where there is no hint.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use crate::domain::liveness_handle::LivenessHandle;
use crate::domain::registry::Registry;

/// How often locks are asked for where nothing hints at anything.
pub const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The lock of a node whose FIFO was closed is asked for again after this time, and twice that, …
const MIN_RETRY_DELAY: Duration = Duration::from_millis(1);
/// … up to this.
const MAX_RETRY_DELAY: Duration = Duration::from_millis(32);
/// Events that are taken at once; the others follow.
const MAX_EVENTS: usize = 64;
/// Marks descriptors that are no peer's among the events; numbers of descriptors have 31 bits.
const LISTENED_BIT: u64 = 1 << 63;

/// What has woken a [`Watch`].
#[derive(Debug, Default)]
pub struct WatchEvents {
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

/// A descriptor that is watched. All nodes of a process share theirs.
#[derive(Debug)]
struct Watched {
    descriptor: Arc<OwnedFd>,
    peers: BTreeSet<u64>,
    /// Whether it has told of their end, which it does once.
    reported: bool,
}

/// Waits for the end of peers, and for what else its owner listens to.
#[derive(Debug)]
pub struct Watch {
    epoll: OwnedFd,
    /// Descriptors by number, and whose end they tell of.
    watched: HashMap<RawFd, Watched>,
    /// Peers that the kernel does not watch for us.
    unwatched: BTreeSet<u64>,
    suspects: BTreeMap<u64, Suspect>,
    /// When the next poll is due, while some peers need it.
    next_poll: Option<Instant>,
}

impl Watch {
    /// Watches nobody yet.
    pub fn new() -> rustix::io::Result<Watch> {
        Ok(Watch {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            watched: HashMap::new(),
            unwatched: BTreeSet::new(),
            suspects: BTreeMap::new(),
            next_poll: None,
        })
    }

    /// Wakes for this descriptor, too; with `once`, for the first time only.
    pub fn listen(&self, fd: impl AsFd, mark: u32, once: bool) -> rustix::io::Result<()> {
        let flags = if once { EventFlags::IN | EventFlags::ONESHOT } else { EventFlags::IN };
        epoll::add(&self.epoll, fd, EventData::new_u64(LISTENED_BIT | u64::from(mark)), flags)
    }

    /// Wakes for this descriptor no more, whoever holds copies of it.
    pub fn ignore(&self, fd: impl AsFd) -> rustix::io::Result<()> {
        epoll::delete(&self.epoll, fd)
    }

    /// Watches the peers that are new, forgets those that have departed.
    ///
    /// A descriptor is taken out of the epoll set explicitly: other nodes of this process, or a forked child, may
    /// hold it for longer.
    pub fn follow(&mut self, registry: &mut Registry) {
        let watch_changes = registry.take_watch_changes();
        for (id, handle) in watch_changes.departed {
            self.unwatched.remove(&id);
            self.suspects.remove(&id);
            self.forget(id, &handle);
        }
        let mut new = std::mem::take(&mut self.unwatched);
        new.extend(watch_changes.joined);
        for id in new {
            let Some(peer) = registry.peer(id) else { continue };
            let added = match &peer.handle {
                LivenessHandle::InProcess => true,
                LivenessHandle::LockOnly => false,
                LivenessHandle::Exiting => {
                    self.suspect(id);
                    true
                }
                LivenessHandle::PidFd(fd) => self.add(fd, id, EventFlags::IN),
                // Its end is an error, which is told of unasked.
                LivenessHandle::Fifo(fd) => self.add(fd, id, EventFlags::empty()),
            };
            if !added {
                self.unwatched.insert(id);
            }
        }
        // Whom the kernel does not watch for us is looked at, and tried to be watched, until it does.
        self.next_poll = match self.next_poll {
            _ if self.unwatched.is_empty() && !registry.needs_polling() => None,
            None => Some(Instant::now() + POLL_INTERVAL),
            due => due,
        };
    }

    fn add(&mut self, descriptor: &Arc<OwnedFd>, id: u64, flags: EventFlags) -> bool {
        let number = descriptor.as_raw_fd();
        if let Some(watched) = self.watched.get_mut(&number) {
            watched.peers.insert(id);
            if watched.reported {
                self.suspect(id);
            }
            return true;
        }
        let flags = flags | EventFlags::ONESHOT;
        let data = EventData::new_u64(number as u64);
        let added = epoll::add(&self.epoll, descriptor, data, flags).is_ok();
        if added {
            let (descriptor, peers) = (descriptor.clone(), BTreeSet::from([id]));
            self.watched.insert(number, Watched { descriptor, peers, reported: false });
        }
        added
    }

    fn forget(&mut self, id: u64, handle: &LivenessHandle) {
        let Some(number) = handle.descriptor().map(|fd| fd.as_raw_fd()) else { return };
        let Some(watched) = self.watched.get_mut(&number) else { return };
        watched.peers.remove(&id);
        if watched.peers.is_empty() {
            let _ = epoll::delete(&self.epoll, &watched.descriptor);
            self.watched.remove(&number);
        }
    }

    fn suspect(&mut self, id: u64) {
        let due = Instant::now() + MIN_RETRY_DELAY;
        self.suspects.entry(id).or_insert(Suspect { due, step: MIN_RETRY_DELAY });
    }

    /// Sleeps until something has happened, or for `limit`, or until a signal comes.
    pub fn wait(&mut self, limit: Option<Duration>) -> rustix::io::Result<WatchEvents> {
        let now = Instant::now();
        let due = self.suspects.values().map(|s| s.due).chain(self.next_poll).min();
        let due = due.map(|due| due.saturating_duration_since(now));
        let wait = limit.into_iter().chain(due).min().map(|time| Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: i64::from(time.subsec_nanos()),
        });
        let mut events: Vec<Event> = Vec::with_capacity(MAX_EVENTS);
        let room = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.epoll, room, wait.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let mut woken = WatchEvents::default();
        for event in &events {
            match event.data.u64() {
                mark if mark & LISTENED_BIT != 0 => woken.listened.push(mark as u32),
                number => {
                    let Some(watched) = self.watched.get_mut(&(number as RawFd)) else { continue };
                    watched.reported = true;
                    woken.peers.extend(&watched.peers);
                }
            }
        }
        // Those that have really ended are forgotten with the next `follow`.
        woken.peers.iter().for_each(|id| self.suspect(*id));
        self.retry_suspects(&mut woken);
        Ok(woken)
    }

    /// Adds what is due by the clock.
    fn retry_suspects(&mut self, woken: &mut WatchEvents) {
        let now = Instant::now();
        self.suspects.retain(|id, suspect| {
            if suspect.due > now {
                return true;
            }
            woken.peers.push(*id);
            suspect.step *= 2;
            suspect.due = now + suspect.step;
            suspect.step <= MAX_RETRY_DELAY
        });
        if self.next_poll.is_some_and(|due| due <= now) {
            self.next_poll = Some(now + POLL_INTERVAL);
            woken.poll = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::directory::{DomainConfig, DomainDir};
    use crate::domain::node::OwnNode;
    use crate::os::random::random_u64;
    use rnet_core::NodeName;

    /// The kernel refuses to watch a descriptor: its peer is looked at once a second all the same.
    #[test]
    fn one_that_the_kernel_does_not_watch_is_polled() {
        let base = std::env::temp_dir().join(format!("rnet-watch-{:x}", random_u64()));
        std::fs::create_dir(&base).unwrap();
        let config = DomainConfig { base: Some(base.clone()), ..DomainConfig::default() };
        let dir = DomainDir::open_or_create(&config).unwrap();
        let name = NodeName::new("/a").unwrap();
        let node = OwnNode::create(&dir, &name, "rust", "0").unwrap();
        let mut registry = Registry::new(dir, None);
        registry.refresh().unwrap();
        // It says that it waits for an end, and is of a kind that epoll does not take.
        let plain = std::fs::File::open(node.folder().join("node")).unwrap();
        let handle = LivenessHandle::PidFd(Arc::new(plain.into()));
        registry.set_handle(node.incarnation(), handle);
        assert!(!registry.needs_polling());
        let mut watch = Watch::new().unwrap();
        watch.follow(&mut registry);
        assert!(watch.wait(Some(Duration::from_secs(50))).unwrap().poll);
        drop(node);
        std::fs::remove_dir_all(&base).unwrap();
    }
}
