//! A watch for the exit of peers, which needs neither requests nor polling.
//!
//! The kernel reports a process's exit in two ways. In our own pid namespace, a *pidfd* becomes readable. A
//! process in another namespace (a container) cannot be named from here. But its node holds its FIFO `ctl`
//! open for reading, so a process that holds the *write end* receives `EPOLLERR` when the last reader closes
//! it; a process closes its files however it exits. That is a hint, because another process may have opened
//! the FIFO for reading. The node's lock ([`presence`](crate::domain::presence)) is authoritative; the kernel
//! releases it microseconds before or after the FIFO. So the lock is queried at the hint, again at intervals
//! that double up to [`MAX_RETRY_DELAY`], and then once per [`POLL_INTERVAL`], which also detects the exit if
//! a hint is missing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use crate::domain::pidfd::LivenessHandle;
use crate::domain::registry::Registry;

/// Interval at which locks are queried without a hint.
pub const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// First delay before the lock of a node with a closed FIFO is queried again; it doubles each time, …
const MIN_RETRY_DELAY: Duration = Duration::from_millis(1);
/// … up to this.
const MAX_RETRY_DELAY: Duration = Duration::from_millis(32);
/// Maximum number of events per call; the others follow.
const MAX_EVENTS: usize = 64;
/// Marks events of descriptors that do not belong to peers; descriptor numbers have 31 bits.
const LISTENED_BIT: u64 = 1 << 63;

/// What woke a [`Watch`].
#[derive(Debug, Default)]
pub struct WatchEvents {
    /// Peers that have exited, or may have.
    pub peers: Vec<u64>,
    /// Marks of the other descriptors that are readable.
    pub listened: Vec<u32>,
    /// Whether to check all peers, because some can only be polled.
    pub poll: bool,
}

/// A peer that may have exited while its lock is still held.
#[derive(Debug)]
struct Suspect {
    due: Instant,
    step: Duration,
}

/// A watched descriptor. All nodes of a process share theirs.
#[derive(Debug)]
struct Watched {
    descriptor: Arc<OwnedFd>,
    peers: BTreeSet<u64>,
    /// Whether it has reported the exit of its peers, which happens once.
    reported: bool,
}

/// Waits for the exit of peers and for the other descriptors that its owner registers.
#[derive(Debug)]
pub struct Watch {
    epoll: OwnedFd,
    /// Descriptors by number, with the peers whose exit they report.
    watched: HashMap<RawFd, Watched>,
    /// Peers that the kernel does not watch.
    unwatched: BTreeSet<u64>,
    suspects: BTreeMap<u64, Suspect>,
    /// When the next poll is due, while some peers need it.
    next_poll: Option<Instant>,
}

impl Watch {
    /// Creates a watch without peers.
    pub fn new() -> rustix::io::Result<Watch> {
        Ok(Watch {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            watched: HashMap::new(),
            unwatched: BTreeSet::new(),
            suspects: BTreeMap::new(),
            next_poll: None,
        })
    }

    /// Also wakes for this descriptor; with `once`, only the first time.
    pub fn listen(&self, fd: impl AsFd, mark: u32, once: bool) -> rustix::io::Result<()> {
        let flags = if once { EventFlags::IN | EventFlags::ONESHOT } else { EventFlags::IN };
        epoll::add(&self.epoll, fd, EventData::new_u64(LISTENED_BIT | u64::from(mark)), flags)
    }

    /// Stops waking for this descriptor, even if copies of it are open.
    pub fn ignore(&self, fd: impl AsFd) -> rustix::io::Result<()> {
        epoll::delete(&self.epoll, fd)
    }

    /// Watches new peers and forgets departed ones.
    ///
    /// A descriptor is removed from the epoll set explicitly: other nodes of this process, or a forked child,
    /// may hold it longer.
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
                // Its exit is an error event, which epoll always reports.
                LivenessHandle::Fifo(fd) => self.add(fd, id, EventFlags::empty()),
            };
            if !added {
                self.unwatched.insert(id);
            }
        }
        // Peers that the kernel does not watch are polled, and registered again until that succeeds.
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

    /// Sleeps until an event, a signal, or `limit`.
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
        // Peers that have really exited are forgotten with the next `follow`.
        woken.peers.iter().for_each(|id| self.suspect(*id));
        self.retry_suspects(&mut woken);
        Ok(woken)
    }

    /// Adds the checks that are due.
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

    /// If the kernel cannot watch a descriptor, its peer is still checked once a second.
    #[test]
    fn polls_peer_that_the_kernel_does_not_watch() {
        let base = std::env::temp_dir().join(format!("rnet-watch-{:x}", random_u64()));
        std::fs::create_dir(&base).unwrap();
        let config = DomainConfig { base: Some(base.clone()), ..DomainConfig::default() };
        let dir = DomainDir::open_or_create(&config).unwrap();
        let name = NodeName::new("/a").unwrap();
        let node = OwnNode::create(&dir, &name, "rust", "0").unwrap();
        let mut registry = Registry::new(dir, None);
        registry.refresh().unwrap();
        // A handle of a kind that epoll does not accept.
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
