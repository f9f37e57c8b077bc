//! By what the end of a peer is noticed: a descriptor that the kernel marks, where there is one.
//!
//! A process has one pidfd for each other process, however many nodes the two have.

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

/// By what the end of a peer is noticed.
#[derive(Clone, Debug)]
pub enum LivenessHandle {
    /// It lives in this very process and cannot end without us.
    InProcess,
    /// A pidfd: readable once the process has ended.
    PidFd(Arc<OwnedFd>),
    /// The write end of its FIFO: in error once nobody reads there any more.
    Fifo(Arc<OwnedFd>),
    /// Its FIFO had no reader when we came: it was ending just then.
    Exiting,
    /// No descriptor was to be had; its lock is asked for from time to time.
    LockOnly,
}

impl LivenessHandle {
    /// The best one for a peer whose lock was just held.
    pub(crate) fn open(dir: &DomainDir, node: &PeerNode) -> LivenessHandle {
        if node.is_this_process() {
            return LivenessHandle::InProcess;
        }
        let mut end = node.weak_handle();
        // Another node of this process has found it to be the peer's.
        if let Some(handle) = end.as_ref().and_then(WeakLivenessHandle::handle) {
            return handle;
        }
        let handle = match pidfd(node.meta()) {
            // The number could have been given to another process before we opened it; the lock
            // says that the node lives, hence that the number was still its own.
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

    /// Whether the kernel says that it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self, LivenessHandle::PidFd(process) if process_has_ended(process))
    }

    /// Whether only the lock says for certain.
    pub(crate) fn must_check_lock(&self) -> bool {
        matches!(self, LivenessHandle::Fifo(_) | LivenessHandle::Exiting | LivenessHandle::LockOnly)
    }
}

/// What this process holds to notice the end of a peer, for as long as one of its nodes does.
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
