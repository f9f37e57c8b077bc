//! The control thread: sleeps in the kernel until a peer rings the node's FIFO or a peer's process exits,
//! then refreshes the matching. [`Watch`] detects exits, also of peers in other containers.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use rnet_core::Result;
use rnet_shm::domain::dead_node_leftovers::OrphanSweeper;
use rnet_shm::domain::exit_watch::{POLL_INTERVAL, Watch};
use rnet_shm::domain::node::ring_control;
use rnet_shm::os::barrier;
use rnet_shm::os::cpu;
use rnet_shm::os::shortage::io_error;

use crate::core::NodeState;
use crate::directory_guard::{CheckOutcome, DirectoryGuard};
use rnet_shm::os::thread::spawn;

/// Event mark of the FIFO.
const FIFO: u32 = 0;
/// Event mark of publishers that ask this process to register for barriers.
const REGISTER: u32 = 1;
/// Event mark of the watch on the names.
const NAMES: u32 = 2;

/// Starts the control thread of a node.
pub(crate) fn start(state: Arc<NodeState>) -> Result<JoinHandle<()>> {
    let failed = |errno| io_error("cannot wait for the peers of", state.own.folder(), errno);
    let watch = Watch::new().map_err(failed)?;
    watch.listen(state.own.control(), FIFO, false).map_err(failed)?;
    if let Some(wanted) = barrier::registration_requests() {
        // Registered once: the event stays readable for the control threads of the process's other nodes.
        watch.listen(wanted, REGISTER, true).map_err(failed)?;
    }
    spawn("rnet-control", move || run(&state, watch))
}

fn run(state: &Arc<NodeState>, mut watch: Watch) {
    if state.own.bells().tunes_threads() {
        cpu::detect_defaults();
    }
    let mut orphans = OrphanSweeper::new(&state.domain);
    // Whether the last refresh failed, so that the cause of a ring is still unread.
    let mut behind = false;
    let mut registration: Option<JoinHandle<()>> = None;
    // Time of the next full refresh, if some work was left undone.
    let mut next_refresh: Option<Instant> = None;
    let mut next_audit = Instant::now() + POLL_INTERVAL;
    let mut directory_guard = DirectoryGuard::default();
    loop {
        let (leads, next_period) = {
            let mut matching = state.matching();
            watch.follow(matching.registry_mut());
            (matching.registry().leads_its_process(), matching.until_next_check())
        };
        orphans.set_watching(leads, &watch, NAMES);
        // A shortage left work undone: retry it.
        let short =
            !state.own.ring_pending() | !state.start_dispatchers() | state.matching().needs_retry();
        let now = Instant::now();
        next_refresh = (behind || short).then(|| next_refresh.unwrap_or(now + POLL_INTERVAL));
        let limit = next_refresh.into_iter().chain(orphans.due()).chain([next_audit]).min();
        let limit = limit.map(|due| due.saturating_duration_since(now));
        let lingering = state.own.lingering().check();
        let limit = limit.into_iter().chain(next_period).chain(lingering).min();
        let Ok(woken) = watch.wait(limit) else { break };
        if woken.listened.contains(&NAMES) && orphans.process_events() {
            orphans.unwatch(&watch);
            next_audit = Instant::now();
        }
        let given_up = orphans.take_due();
        if next_audit <= Instant::now() {
            next_audit = Instant::now() + POLL_INTERVAL;
            match directory_guard.check(state) {
                _ if state.is_stopping() => {}
                CheckOutcome::Intact => {}
                CheckOutcome::RetryAfter(after) => next_audit = Instant::now() + after,
                CheckOutcome::Restored => {
                    orphans.unwatch(&watch);
                    behind |= state.rejoin_peers().is_err();
                }
            }
            state.find_unreported_deaths();
            state.matching().update_observers();
        }
        // Their locks tell whether they live: after `execve` a process continues without its nodes.
        let doubted = match given_up.is_empty() {
            true => Vec::new(),
            false => state.matching().registry_mut().suspect(|stem| given_up.has(stem)),
        };
        let due = next_refresh.take_if(|due| *due <= Instant::now()).is_some();
        let mut nodes = (!woken.poll && !due).then_some(woken.peers);
        if let Some(nodes) = &mut nodes {
            nodes.extend(doubted);
        }
        if woken.listened.contains(&FIFO) {
            let rings = state.own.drain_control();
            // An observer rings a node with the node's own incarnation.
            let own = state.own.incarnation();
            if rings.as_ref().is_none_or(|rings| rings.nodes.contains(&own)) {
                state.matching().update_observers();
            }
            nodes = nodes.zip(rings).map(|(mut nodes, rings)| {
                nodes.extend(rings.nodes);
                state.matching().registry_mut().note_names(rings.names);
                nodes
            });
        }
        // Checked after the FIFO is drained: the drained rings may include the one that stops this thread,
        // and no other ring follows.
        if state.is_stopping() {
            break;
        }
        if woken.listened.contains(&REGISTER) {
            // On its own thread, because the kernel call is slow. If the thread cannot be started, publishers
            // continue as before.
            registration = spawn("rnet-register", barrier::register).ok();
        }
        let names = (!given_up.is_empty()).then_some(&given_up);
        if behind || names.is_some() || nodes.as_ref().is_none_or(|nodes| !nodes.is_empty()) {
            let only = if behind { None } else { nodes.as_deref() };
            state.matching().recheck_admissions(only);
            behind = state.refresh_only(only, names).is_err();
        }
        if next_period.is_some() {
            state.check_deadlines();
        }
        // Last, because it is slow: reports of exits must not wait for it.
        orphans.sweep(&given_up);
        ring_siblings_of_departed(state);
    }
    if let Some(registration) = registration {
        let _ = registration.join();
    }
}

/// Notifies the other nodes of this process of peers that have left although their processes live: only one
/// node of each process is notified. The siblings find that the peer's folder is missing.
fn ring_siblings_of_departed(state: &NodeState) {
    let mut matching = state.matching();
    let outlived = matching.registry_mut().take_outlived();
    if outlived.is_empty() || !matching.registry().leads_its_process() {
        return;
    }
    let peers = matching.registry().peers().values();
    let siblings = peers.filter(|peer| peer.node.is_this_process());
    let folders: Vec<PathBuf> = siblings.map(|peer| peer.node.folder().to_owned()).collect();
    drop(matching);
    for folder in folders {
        for id in &outlived {
            ring_control(&folder, *id);
        }
    }
}
