//! The control thread: sleeps in the kernel until a peer rings the node's FIFO or a peer's
//! process ends, then matches anew. How an end is noticed, also that of a peer in another
//! container, is for [`Watch`] to say.

use std::sync::Arc;
use std::thread::JoinHandle;

use rnet_core::{Error, Result};
use rnet_shm::barrier;
use rnet_shm::watch::{POLL, Watch};
use rustix::io::Errno;

use crate::core::{NodeState, spawn};

/// The FIFO's mark among the events.
const FIFO: u32 = 0;
/// The mark of publishers that ask for the registration of the process.
const REGISTER: u32 = 1;

pub(crate) fn start(state: Arc<NodeState>) -> Result<JoinHandle<()>> {
    let failed = |errno: Errno| Error::Io {
        doing: "cannot wait for the peers of".to_owned(),
        path: state.own.folder().to_owned(),
        source_kind: errno.kind(),
        os: Some(errno.raw_os_error()),
    };
    let watch = Watch::new().map_err(failed)?;
    watch.listen(state.own.control(), FIFO, false).map_err(failed)?;
    if let Some(wanted) = barrier::wanted() {
        // Once: it stays readable for the control threads of the process's other nodes.
        watch.listen(wanted, REGISTER, true).map_err(failed)?;
    }
    spawn("rnet-control", move || run(&state, watch))
}

fn run(state: &Arc<NodeState>, mut watch: Watch) {
    // Whether the last look failed, so that what was rung for is still to be seen.
    let mut behind = false;
    let mut registration: Option<JoinHandle<()>> = None;
    loop {
        watch.follow(state.matching().registry());
        let Ok(woken) = watch.wait(behind.then_some(POLL)) else { break };
        let mut nodes = (!woken.poll).then_some(woken.peers);
        if woken.listened.contains(&FIFO) {
            let rings = state.own.drain_control();
            nodes = nodes.zip(rings).map(|(mut nodes, rings)| {
                nodes.extend(rings);
                nodes
            });
        }
        // Asked after the FIFO was drained: the ring that tells this thread to stop may be among
        // those just taken out, and no other would follow.
        if state.is_stopping() {
            break;
        }
        if woken.listened.contains(&REGISTER) {
            // On a thread of its own, as the kernel takes its time. Where none can be started,
            // publishers go on as they are.
            registration = spawn("rnet-register", barrier::register).ok();
        }
        let only = if behind { None } else { nodes.as_deref() };
        behind = state.refresh_only(only).is_err();
    }
    if let Some(registration) = registration {
        let _ = registration.join();
    }
}
