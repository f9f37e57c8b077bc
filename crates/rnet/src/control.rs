//! The control thread: sleeps in the kernel until a peer rings the node's FIFO or a peer's
//! process ends, then matches anew.
//!
//! Peers in the same pid namespace are watched by pidfd. For others (another container) the
//! thread asks for their locks once a second, and only while there are any.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rnet_core::{Error, Result};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use crate::core::{NodeState, spawn};

/// How often the locks of peers in other pid namespaces are asked for.
const POLL: Duration = Duration::from_secs(1);
/// The FIFO's mark among the events; a process is marked by its node's incarnation, never 0.
const FIFO: u64 = 0;

pub(crate) fn start(state: Arc<NodeState>) -> Result<JoinHandle<()>> {
    let failed = |doing: &str, errno: Errno| Error::Io {
        doing: doing.to_owned(),
        path: state.own.folder().to_owned(),
        source_kind: errno.kind(),
        os: Some(errno.raw_os_error()),
    };
    let epoll = epoll::create(CreateFlags::CLOEXEC)
        .map_err(|e| failed("cannot wait for the peers of", e))?;
    epoll::add(&epoll, state.own.control(), EventData::new_u64(FIFO), EventFlags::IN)
        .map_err(|e| failed("cannot wait for the peers of", e))?;
    spawn("rnet-control", move || run(&state, &epoll))
}

fn run(state: &Arc<NodeState>, epoll: &OwnedFd) {
    // Our own copies of the handles: the registry may close its while we still listen.
    let mut watched: HashMap<u64, OwnedFd> = HashMap::new();
    let mut events: Vec<Event> = Vec::with_capacity(64);
    loop {
        let polled = watch_processes(state, epoll, &mut watched);
        let limit = polled.then(|| Timespec {
            tv_sec: POLL.as_secs() as i64,
            tv_nsec: i64::from(POLL.subsec_nanos()),
        });
        events.clear();
        let waited =
            epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), limit.as_ref());
        if !matches!(waited, Ok(_) | Err(Errno::INTR)) || state.is_stopping() {
            return;
        }
        if events.iter().any(|e| e.data.u64() == FIFO) {
            state.own.drain_control();
        }
        // A directory that cannot be read now may be readable at the next ring.
        let _ = state.refresh();
    }
}

/// Listens to the processes of new peers, forgets those of departed ones; returns whether some
/// can only be polled.
fn watch_processes(
    state: &NodeState,
    epoll: &OwnedFd,
    watched: &mut HashMap<u64, OwnedFd>,
) -> bool {
    let matching = state.matching();
    let peers = matching.registry().peers();
    watched.retain(|id, fd| {
        let stays = peers.contains_key(id);
        if !stays {
            let _ = epoll::delete(epoll, fd.as_fd());
        }
        stays
    });
    for (id, peer) in peers {
        let Some(process) = peer.process.as_ref().filter(|_| !watched.contains_key(id)) else {
            continue;
        };
        let Ok(copy) = rustix::io::fcntl_dupfd_cloexec(process, 3) else { continue };
        if epoll::add(epoll, &copy, EventData::new_u64(*id), EventFlags::IN).is_ok() {
            watched.insert(*id, copy);
        }
    }
    matching.registry().needs_polling()
}
