//! The control thread: sleeps in the kernel until a peer rings the node's FIFO or a peer's
//! process ends, then matches anew.
//!
//! Peers in the same pid namespace are watched by pidfd. For others (another container) the
//! thread asks for their locks once a second, and only while there are any.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rnet_core::{Error, Result};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use rnet_shm::strays::{self, NameWatch};

use crate::core::{NodeState, spawn};

/// How often the locks of peers in other pid namespaces are asked for.
const POLL: Duration = Duration::from_secs(1);
/// The FIFO's mark among the events; a process is marked by its node's incarnation, never 0.
const FIFO: u64 = 0;
/// The mark of the watch on the names.
const NAMES: u64 = u64::MAX;

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
    let names = NameWatch::new(&state.domain);
    if let Some(names) = &names {
        epoll::add(&epoll, names, EventData::new_u64(NAMES), EventFlags::IN)
            .map_err(|e| failed("cannot wait for the peers of", e))?;
    }
    spawn("rnet-control", move || run(&state, &epoll, names.as_ref()))
}

fn run(state: &Arc<NodeState>, epoll: &OwnedFd, names: Option<&NameWatch>) {
    strays::sweep(&state.domain);
    // When to look for strays again, after a name was given up.
    let mut looks = [].iter();
    let mut watched: HashSet<u64> = HashSet::new();
    let mut events: Vec<Event> = Vec::with_capacity(64);
    // Whether the last look failed, so that what was rung for is still to be seen.
    let mut behind = false;
    loop {
        let polled = watch_processes(state, epoll, &mut watched);
        let look = looks.as_slice().first().copied();
        let limit = look.into_iter().chain((polled || behind).then_some(POLL)).min();
        let limit = limit.map(|limit| Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: i64::from(limit.subsec_nanos()),
        });
        events.clear();
        let waited =
            epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), limit.as_ref());
        if !matches!(waited, Ok(_) | Err(Errno::INTR)) {
            return;
        }
        let given_up = events.iter().any(|e| e.data.u64() == NAMES);
        if let Some(names) = names.filter(|_| given_up) {
            names.drain();
            looks = strays::LOOKS.iter();
        } else if look.is_some() && events.is_empty() {
            looks.next();
            strays::sweep(&state.domain);
        }
        if events.iter().all(|e| e.data.u64() == NAMES) && (given_up || look.is_some()) {
            // Nothing that the peers have to be looked at for, unless the second is over.
            if !(polled || behind) {
                continue;
            }
        }
        let ended = events.iter().map(|e| e.data.u64()).filter(|id| *id != FIFO && *id != NAMES);
        let mut nodes: Option<Vec<u64>> = (!events.is_empty()).then(|| ended.collect());
        if events.iter().any(|e| e.data.u64() == FIFO) {
            nodes = match (nodes, state.own.drain_control()) {
                (Some(mut nodes), Some(rings)) => {
                    nodes.extend(rings);
                    Some(nodes)
                }
                _ => None,
            };
        }
        // Asked after the FIFO was drained: the ring that tells this thread to stop may be among
        // those just taken out, and no other would follow.
        if state.is_stopping() {
            return;
        }
        let only = if behind { None } else { nodes.as_deref() };
        behind = state.refresh_only(only).is_err();
    }
}

/// Listens to the processes of new peers, forgets those of departed ones; returns whether some
/// can only be polled.
///
/// A departed peer's handle is closed by the registry, which takes it out of the epoll set, unless
/// a forked child holds a copy; so each handle speaks only once.
fn watch_processes(state: &NodeState, epoll: &OwnedFd, watched: &mut HashSet<u64>) -> bool {
    let matching = state.matching();
    let peers = matching.registry().peers();
    watched.retain(|id| peers.contains_key(id));
    for (id, peer) in peers {
        let Some(process) = peer.process.as_ref().filter(|_| !watched.contains(id)) else {
            continue;
        };
        if epoll::add(epoll, process, EventData::new_u64(*id), EventFlags::IN | EventFlags::ONESHOT)
            .is_ok()
        {
            watched.insert(*id);
        }
    }
    matching.registry().needs_polling()
}
