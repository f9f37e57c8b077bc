//! What the parts of a node share, and how it ends.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use rnet_core::{Lane, Result};
use rnet_shm::domain::DomainDir;
use rnet_shm::fork::Birth;
use rnet_shm::node::OwnNode;
use rnet_shm::state::{Clock, Standing};
use rnet_shm::strays::GivenUp;

use crate::dispatch::Dispatcher;
use crate::match_event::{Callbacks, Notice};
use crate::matching::Matching;
use crate::node::NodeEvent;
use crate::node_time::NodeTime;
use crate::state::StateShared;

/// The state that a node's threads and handles share. The threads hold it too, so it does not
/// stop them; [`NodeCore`] does.
pub(crate) struct NodeState {
    pub(crate) own: Arc<OwnNode>,
    pub(crate) domain: DomainDir,
    matching: Mutex<Matching>,
    stopping: AtomicBool,
    urgent: OnceLock<Dispatcher>,
    bulk: OnceLock<Dispatcher>,
    /// The state, from its first use on.
    state: OnceLock<Arc<StateShared>>,
    opening: Mutex<()>,
    /// Where durable state is kept, if the program chose a place.
    state_dir: Option<PathBuf>,
    pub(crate) watchers: Callbacks<NodeEvent>,
    /// By which timers run.
    pub(crate) time: NodeTime,
    pub(crate) next_task: AtomicU64,
}

impl NodeState {
    pub(crate) fn new(own: OwnNode, state_dir: Option<PathBuf>) -> Result<Arc<NodeState>> {
        let own = Arc::new(own);
        let domain = own.domain().clone();
        Ok(Arc::new(NodeState {
            matching: Mutex::new(Matching::new(own.clone())),
            own,
            domain,
            stopping: AtomicBool::new(false),
            urgent: OnceLock::new(),
            bulk: OnceLock::new(),
            state: OnceLock::new(),
            opening: Mutex::default(),
            state_dir,
            watchers: Callbacks::default(),
            time: NodeTime,
            next_task: AtomicU64::new(0),
        }))
    }

    pub(crate) fn matching(&self) -> MutexGuard<'_, Matching> {
        self.matching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// In which process the node was made.
    pub(crate) fn birth(&self) -> Birth {
        self.own.birth()
    }

    /// Refuses to act for a node of the process that this one was forked from. To be asked before
    /// any lock is taken: a thread that is not here may hold it.
    pub(crate) fn check_birth(&self) -> Result<()> {
        self.birth().check(|| format!("node {}", self.own.name()))
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// The dispatch thread of a lane, started at first use.
    pub(crate) fn dispatcher(&self, lane: Lane) -> &Dispatcher {
        let start = || Dispatcher::start(&self.own, lane, self.time.clone());
        let dispatcher = self.cell(lane).get_or_init(start);
        if !dispatcher.revive() {
            // The control thread then tries again once a second.
            self.own.ring_self();
        }
        dispatcher
    }

    /// The dispatch thread of a lane, if it was started.
    pub(crate) fn started(&self, lane: Lane) -> Option<&Dispatcher> {
        self.cell(lane).get()
    }

    /// Starts the dispatch threads that could not be started before; `false` if some still cannot.
    pub(crate) fn start_dispatchers(&self) -> bool {
        let mut all = true;
        // Each of them, also after one that failed.
        for dispatcher in [Lane::Urgent, Lane::Bulk].iter().filter_map(|lane| self.started(*lane)) {
            all &= dispatcher.revive();
        }
        if let Some(state) = self.state.get() {
            all &= state.callbacks().revive(state);
            all &= state.revive_sweep();
        }
        all
    }

    /// The state, opened at first use; with another clock only then.
    pub(crate) fn state(&self, clock: Option<Clock>) -> Result<Arc<StateShared>> {
        self.check_birth()?;
        if let Some(state) = self.state.get() {
            return Ok(state.clone());
        }
        // One for each node: a last will is that of the region which wrote it.
        let _one = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = self.state.get() {
            return Ok(state.clone());
        }
        let clock = clock.unwrap_or_else(Clock::system);
        let state = StateShared::open(&self.own, clock, self.state_dir.clone())?;
        Ok(self.state.get_or_init(|| state).clone())
    }

    fn cell(&self, lane: Lane) -> &OnceLock<Dispatcher> {
        match lane {
            Lane::Urgent => &self.urgent,
            Lane::Bulk => &self.bulk,
        }
    }

    /// Looks at the peers and matches what has changed. Run by the control thread when it is
    /// rung, and by whoever creates or closes an endpoint, so that the change is quick.
    pub(crate) fn refresh(self: &Arc<Self>) -> Result<()> {
        self.refresh_only(None, None)?;
        let mut matching = self.matching();
        let look = matching.take_joined() | matching.is_short();
        drop(matching);
        if look {
            // Peers that were first seen here are to be watched there, and what could not be done
            // for want of something is to be tried again there.
            self.own.ring_self();
        }
        Ok(())
    }

    /// As [`NodeState::refresh`], but looks only at the given nodes and names if there are any.
    pub(crate) fn refresh_only(
        self: &Arc<Self>,
        only: Option<&[u64]>,
        given_up: Option<&GivenUp>,
    ) -> Result<()> {
        let mut matching = self.matching();
        let events = matching.refresh(only, given_up);
        let left = matching.registry_mut().take_left();
        let ended = matching.take_ended() | given_up.is_some();
        drop(matching);
        if ended {
            self.sweep_state();
        }
        // Word of an end waits neither for the sweep nor for those who wait for the lock.
        let done = events.map(|events| self.tell(events));
        left.sweep();
        done
    }

    /// Executes the last wills of the dead in the state, and cleans up behind them. Who is dead is for the
    /// region to say: what this node has seen of them is no matter.
    fn sweep_state(self: &Arc<Self>) {
        if let Some(state) = self.state.get()
            && state.region().has_dead()
            && !state.sweep()
        {
            // The control thread then tries again once a second.
            self.own.ring_self();
        }
    }

    /// Looks for nodes that have died in the state without our being told: before we knew them, or
    /// where the kernel tells of nothing. Cheap where all who use the state are known.
    pub(crate) fn audit_state(self: &Arc<Self>) {
        let Some(state) = self.state.get() else { return };
        let strangers = {
            let matching = self.matching();
            let peers = matching.registry().peers();
            state.region().has_strangers(|id| peers.contains_key(&id))
        };
        if strangers {
            self.sweep_state();
        }
    }

    /// Sees to it that others find the state that this node uses; `None` if it uses none.
    pub(crate) fn put_back_state(&self) -> Option<Result<Standing>> {
        self.state.get().map(|state| state.region().put_back())
    }

    /// What was removed of the directory is back: meets the peers again, as at the start.
    pub(crate) fn meet_again(self: &Arc<Self>) -> Result<()> {
        let met = self.refresh_only(None, None);
        self.matching().greet();
        met
    }

    /// Tells the user's callbacks, on the bulk dispatch thread: they may take their time, and the
    /// control thread may not.
    pub(crate) fn tell(self: &Arc<Self>, events: Vec<Notice>) {
        for notice in events {
            match notice {
                Notice::Node(event) => {
                    if !self.watchers.is_empty() {
                        let state = Arc::downgrade(self);
                        self.dispatcher(Lane::Bulk).post(Box::new(move || {
                            if let Some(state) = state.upgrade() {
                                state.watchers.call(&event);
                            }
                        }));
                    }
                }
                Notice::Endpoint(hooks, event) => {
                    self.dispatcher(Lane::Bulk).post(Box::new(move || hooks.call(&event)));
                }
            }
        }
    }
}

/// Held by every handle of a node; the last one to go ends the node's threads.
pub(crate) struct NodeCore {
    pub(crate) state: Arc<NodeState>,
    control: Option<JoinHandle<()>>,
}

impl NodeCore {
    pub(crate) fn start(
        own: OwnNode,
        state_dir: Option<PathBuf>,
        is_tool: bool,
    ) -> Result<Arc<NodeCore>> {
        let state = NodeState::new(own, state_dir)?;
        // Before the first thread: the kernel does it at once for a process of one thread.
        // Otherwise the control thread sees to it once a publisher asks.
        if !rnet_shm::barrier::register_takes_time() {
            rnet_shm::barrier::register();
        }
        let control = Some(crate::control::start(state.clone())?);
        let core = Arc::new(NodeCore { state, control });
        core.state.refresh()?;
        let matching = core.state.matching();
        matching.check_node_limit(is_tool)?;
        matching.greet();
        drop(matching);
        // The control thread may have looked before there were peers to watch.
        core.state.own.ring_self();
        Ok(core)
    }
}

impl Drop for NodeCore {
    fn drop(&mut self) {
        if self.state.birth().is_parents() {
            // In a forked child the threads are not there to be waited for, and may have held any
            // lock; so everything is left as it is.
            std::mem::forget((self.control.take(), self.state.clone()));
            return;
        }
        self.state.stopping.store(true, Ordering::Release);
        self.state.own.ring_self();
        if let Some(control) = self.control.take() {
            // The last handle may be dropped by a callback, on one of the threads themselves.
            if control.thread().id() != std::thread::current().id() {
                let _ = control.join();
            }
        }
        // After the control thread, which could start one.
        for dispatcher in [self.state.urgent.get(), self.state.bulk.get()].into_iter().flatten() {
            dispatcher.stop();
        }
        if let Some(state) = self.state.state.get() {
            state.callbacks().stop();
            state.stop_sweep();
        }
        self.state.matching().farewell();
    }
}

/// Starts a thread that leaves signals to the threads of the user's program.
pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let failed = |e: std::io::Error| rnet_shm::shortage::no_thread(name, &e);
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the call writes the set that it is given.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // But not of this one, which is no message but a fault of the thread itself: while it is
    // blocked, a file that a peer truncates ends the process (docs/decisions/0010).
    // SAFETY: `all` was written above.
    unsafe { libc::sigdelset(all.as_mut_ptr(), libc::SIGBUS) };
    // SAFETY: `all` was written above; the call writes `before`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
    // SAFETY: `before` was written above; the new thread has inherited the full mask.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    thread.map_err(failed)
}
