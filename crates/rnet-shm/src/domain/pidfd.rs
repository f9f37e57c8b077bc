//! The descriptor that reports the exit of a peer: a pidfd, or its FIFO, which the kernel marks. If none is
//! available, the lock is polled.
//!
//! A process holds one pidfd per other process, however many nodes the two have.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::domain::directory::DomainDir;
use crate::domain::node::{NodeMeta, PeerNode};
use crate::domain::presence;
use crate::domain::weak_cache::WeakCache;
use crate::os::{files, unlinked_files};

/// The pidfds of this process, by process id.
static PIDFDS: WeakCache<OwnedFd> = WeakCache::new();

/// How the exit of a peer is detected.
#[derive(Clone, Debug)]
pub enum LivenessHandle {
    /// The peer lives in this process and cannot exit on its own.
    InProcess,
    /// A pidfd: readable once the process has exited.
    PidFd(Arc<OwnedFd>),
    /// The write end of the peer's FIFO: in error once it has no reader.
    Fifo(Arc<OwnedFd>),
    /// The peer's FIFO had no reader when it was opened: the peer was exiting.
    Exiting,
    /// No descriptor was available; the peer's lock is polled.
    LockOnly,
}

impl LivenessHandle {
    /// The best handle for a peer whose lock was just held.
    pub(crate) fn open(dir: &DomainDir, node: &PeerNode) -> LivenessHandle {
        if node.is_this_process() {
            return LivenessHandle::InProcess;
        }
        let mut end = node.weak_handle();
        // Another node of this process has verified that the handle belongs to the peer.
        if let Some(handle) = end.as_ref().and_then(WeakLivenessHandle::handle) {
            return handle;
        }
        let handle = match pidfd(node.meta()) {
            // The process id could have been reused before the pidfd was opened. The lock shows that the node
            // lives, hence that the id was still its own.
            Some(process) => match presence::is_alive(dir, node.stem(), node.incarnation()) {
                true => LivenessHandle::PidFd(process),
                false => LivenessHandle::Exiting,
            },
            None => match unlinked_files::open(&node.folder().join("ctl"), OFlags::WRONLY) {
                Ok(fifo) => LivenessHandle::Fifo(Arc::new(fifo)),
                Err(Errno::NXIO | Errno::NOENT) => LivenessHandle::Exiting,
                Err(_) => LivenessHandle::LockOnly,
            },
        };
        if handle.descriptor().is_some_and(files::is_scarce) {
            return LivenessHandle::LockOnly;
        }
        *end = WeakLivenessHandle::of(&handle);
        handle
    }

    /// The descriptor that the kernel watches.
    pub(crate) fn descriptor(&self) -> Option<&Arc<OwnedFd>> {
        match self {
            LivenessHandle::PidFd(fd) | LivenessHandle::Fifo(fd) => Some(fd),
            LivenessHandle::InProcess | LivenessHandle::Exiting | LivenessHandle::LockOnly => None,
        }
    }

    /// Whether the kernel reports the peer's exit.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self, LivenessHandle::PidFd(process) if process_has_ended(process))
    }

    /// Whether only the lock is reliable.
    pub(crate) fn must_check_lock(&self) -> bool {
        matches!(self, LivenessHandle::Fifo(_) | LivenessHandle::Exiting | LivenessHandle::LockOnly)
    }
}

/// What this process holds to detect the exit of a peer, while one of its nodes uses it.
#[derive(Debug)]
pub(crate) struct WeakLivenessHandle {
    is_pidfd: bool,
    descriptor: Weak<OwnedFd>,
}

impl WeakLivenessHandle {
    fn of(handle: &LivenessHandle) -> Option<WeakLivenessHandle> {
        let descriptor = Arc::downgrade(handle.descriptor()?);
        Some(WeakLivenessHandle {
            is_pidfd: matches!(handle, LivenessHandle::PidFd(_)),
            descriptor,
        })
    }

    fn handle(&self) -> Option<LivenessHandle> {
        let descriptor = self.descriptor.upgrade()?;
        Some(if self.is_pidfd {
            LivenessHandle::PidFd(descriptor)
        } else {
            LivenessHandle::Fifo(descriptor)
        })
    }
}

/// A handle on the peer's process, if it is in our pid namespace.
fn pidfd(meta: &NodeMeta) -> Option<Arc<OwnedFd>> {
    if !meta.is_in_our_pid_namespace() {
        return None;
    }
    let lives = |process: &OwnedFd| !process_has_ended(process);
    if let Some(process) = PIDFDS.find(meta.pid.into()).filter(|process| lives(process)) {
        return Some(process);
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(meta.pid).ok()?)?;
    let new = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()?;
    Some(PIDFDS.get_or_insert(meta.pid.into(), Arc::new(new), lives))
}

fn process_has_ended(process: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut fds, Some(&now)), Ok(1..))
}
