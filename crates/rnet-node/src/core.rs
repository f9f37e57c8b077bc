//! The state that the parts of a node share, and the shutdown of a node.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::JoinHandle;

use rnet_core::{
    Error, Lane, MIN_LOG_LEN_BYTES, NameResolver, PublisherQos, Result, TopicName, TraceRecord,
    TypeDesc,
};
use rnet_shm::channel::publisher::{PublisherMeta, Writer};
use rnet_shm::domain::dead_node_leftovers::ReleasedNames;
use rnet_shm::domain::directory::DomainDir;
use rnet_shm::domain::node::{EndpointKind, Entry, OwnNode};
use rnet_shm::os::fork::ForkGuard;
use rnet_shm::state::FileStatus;

use crate::callback_errors::CallbackErrors;
use crate::callbacks::{Callback, CallbackGuard, Callbacks, CallsBack};
use crate::dispatch::Dispatcher;
use crate::extension::Extension;
use crate::match_event::{LivelinessChange, LivelinessCounts, Notice};
use crate::matching::Matching;
use crate::matching::tracing::TraceChange;
use crate::node_event::NodeEvent;
use crate::node_time::NodeTime;
use crate::options::check_endpoint_count;
use crate::subscriber_state::SubscriberState;
use crate::sync::{join, lock};
use crate::trace_publisher::TracePublisher;

/// The state that a node's threads and handles share. The threads hold it too, so dropping it does not stop
/// them; dropping [`NodeCore`] does.
pub struct NodeState {
    /// The node's folder in the domain, with its announcements, bells and counters.
    pub own: Arc<OwnNode>,
    /// The directory of the domain that the node joined.
    pub domain: DomainDir,
    matching: Mutex<Matching>,
    stopping: AtomicBool,
    urgent: OnceLock<Dispatcher>,
    bulk: OnceLock<Dispatcher>,
    /// The extensions of the node, each opened at its first use.
    extensions: Mutex<Vec<Arc<dyn Extension>>>,
    extension_lock: Mutex<()>,
    /// Callbacks for nodes that join, leave or die.
    pub watchers: Arc<Callbacks<NodeEvent>>,
    /// The clock of the node's timers and rates.
    pub time: NodeTime,
    next_task: AtomicU64,
    /// Errors of the program's callbacks.
    pub errors: Arc<CallbackErrors>,
    naming: NameResolver,
}

impl NodeState {
    pub(crate) fn new(
        own: OwnNode,
        time: NodeTime,
        naming: NameResolver,
    ) -> Result<Arc<NodeState>> {
        let own = Arc::new(own);
        let domain = own.domain().clone();
        let errors = CallbackErrors::new(&own);
        Ok(Arc::new(NodeState {
            matching: Mutex::new(Matching::new(own.clone())),
            own,
            domain,
            stopping: AtomicBool::new(false),
            urgent: OnceLock::new(),
            bulk: OnceLock::new(),
            extensions: Mutex::default(),
            extension_lock: Mutex::default(),
            watchers: Arc::default(),
            time,
            next_task: AtomicU64::new(0),
            errors,
            naming,
        }))
    }

    /// Resolves `name` (a topic, a service, an action or a command) to its name in the domain.
    ///
    /// # Errors
    /// `BadName`.
    pub fn topic(&self, name: &str) -> Result<TopicName> {
        self.naming.topic(self.own.name(), name)
    }

    /// Locks the matching of this node's endpoints with those of its peers.
    pub fn matching(&self) -> MutexGuard<'_, Matching> {
        lock(&self.matching)
    }

    /// Detects use in a forked child of the process that made the node.
    pub fn fork_guard(&self) -> ForkGuard {
        self.own.fork_guard()
    }

    /// Returns an error in a forked child. Call it before taking any lock: a thread that does not exist in
    /// the child may hold the lock.
    pub fn check_fork(&self) -> Result<()> {
        self.fork_guard().check(|| format!("node {}", self.own.name()))
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// The dispatch thread of a lane, started at first use.
    pub fn dispatcher(&self, lane: Lane) -> &Dispatcher {
        let start = || Dispatcher::start(&self.own, lane, self.time.clone(), self.errors.clone());
        let dispatcher = self.dispatcher_cell(lane).get_or_init(start);
        if !dispatcher.ensure_started() {
            // The control thread then retries once per second.
            self.own.ring_self();
        }
        dispatcher
    }

    /// The dispatch thread of a lane, if it was started.
    pub fn started_dispatcher(&self, lane: Lane) -> Option<&Dispatcher> {
        self.dispatcher_cell(lane).get()
    }

    /// Starts the dispatch threads that could not be started before; `false` if one of them still cannot
    /// start.
    pub fn start_dispatchers(&self) -> bool {
        let mut all = true;
        // Tries each of them, also after a failure.
        for dispatcher in self.dispatchers() {
            all &= dispatcher.ensure_started();
        }
        for extension in self.extensions() {
            all &= extension.start_threads();
        }
        all
    }

    fn extensions(&self) -> Vec<Arc<dyn Extension>> {
        lock(&self.extensions).clone()
    }

    fn find<E: Extension>(&self) -> Option<Arc<E>> {
        let extensions = lock(&self.extensions);
        extensions.iter().find_map(|extension| {
            let any: Arc<dyn Any + Send + Sync> = extension.clone();
            any.downcast().ok()
        })
    }

    /// The node's only extension of this type, opened at its first use.
    ///
    /// # Errors
    /// Those of `open`; `Closed` in a forked child.
    pub fn extension<E: Extension>(
        &self,
        open: impl FnOnce(&Arc<OwnNode>) -> Result<Arc<E>>,
    ) -> Result<Arc<E>> {
        self.check_fork()?;
        if let Some(found) = self.find() {
            return Ok(found);
        }
        // One per node: the region that wrote a last will owns it.
        let _one = lock(&self.extension_lock);
        if let Some(found) = self.find() {
            return Ok(found);
        }
        let opened = open(&self.own)?;
        let mut extensions = lock(&self.extensions);
        extensions.push(opened.clone());
        Ok(opened)
    }

    /// The dispatchers of all lanes that have one.
    pub fn dispatchers(&self) -> impl Iterator<Item = &Dispatcher> {
        [&self.urgent, &self.bulk].into_iter().filter_map(OnceLock::get)
    }

    fn dispatcher_cell(&self, lane: Lane) -> &OnceLock<Dispatcher> {
        match lane {
            Lane::Urgent => &self.urgent,
            Lane::Bulk => &self.bulk,
        }
    }

    /// Reads what the peers have announced and matches what has changed. A thread that creates or closes an
    /// endpoint calls it, so that the change takes effect quickly.
    pub fn refresh(self: &Arc<Self>) {
        let mut matching = self.matching();
        let events = matching.refresh_lists();
        let must_ring = matching.needs_retry() | matching.must_check_earlier();
        let traces = matching.take_trace_changes();
        drop(matching);
        self.deliver(events);
        self.apply_trace_changes(traces);
        if must_ring {
            // The control thread retries what a shortage left undone.
            self.own.ring_self();
        }
    }

    /// Reads the peers and matches what has changed. The control thread calls it when it is rung; `only` and
    /// `given_up` as in [`Matching::refresh`].
    pub fn refresh_only(
        self: &Arc<Self>,
        only: Option<&[u64]>,
        given_up: Option<&ReleasedNames>,
    ) -> Result<()> {
        let mut matching = self.matching();
        let (events, done) = matching.refresh(only, given_up);
        let left = matching.registry_mut().take_dead_folders();
        let ended = matching.take_node_ended() | given_up.is_some();
        let traces = matching.take_trace_changes();
        drop(matching);
        if ended {
            self.clean_up_after_ended();
        }
        // Reports of exits wait neither for the sweep nor for threads that wait for the lock.
        self.deliver(events);
        left.sweep();
        self.apply_trace_changes(traces);
        done
    }

    /// Opens the publisher for the trace records of one subscription.
    fn open_trace_publisher(self: &Arc<Self>, topic: &TopicName) -> Result<TracePublisher> {
        // The minimum log: a tracer reads only from time to time.
        let qos = PublisherQos { log_len_bytes: MIN_LOG_LEN_BYTES, ..PublisherQos::default() };
        let type_desc = TypeDesc::Plain(TraceRecord::plain_type());
        let meta =
            PublisherMeta { topic: topic.to_string(), type_desc, qos, proxy: None, will: false };
        self.matching().check_topic_limit(topic.hash())?;
        let id = self.own.next_endpoint()?;
        let entry = Entry::new(id, topic.hash(), EndpointKind::Publisher);
        let writer = Writer::create(&self.own, entry.path(self.own.folder()), id, &meta)?;
        let readers = writer.reader_table().clone();
        self.matching().add_publisher(id, topic.hash(), meta, readers, false)?;
        let node = Arc::downgrade(self);
        let close = move || {
            if let Some(node) = node.upgrade().filter(|node| !node.fork_guard().is_from_parent()) {
                node.matching().remove(id);
                node.refresh();
            }
        };
        let publisher = TracePublisher::new(writer, close);
        self.refresh();
        Ok(publisher)
    }

    /// Starts and stops the tracing of our subscriptions.
    fn apply_trace_changes(self: &Arc<Self>, changes: Vec<TraceChange>) {
        for TraceChange { id, state, topic } in changes {
            match topic.map(|topic| self.open_trace_publisher(&topic)).transpose() {
                Ok(Some(publisher)) => {
                    state.trace.set(Some(publisher));
                    state.resume_tracing();
                    // Opening the publisher refreshed the peers, which may already have stopped this trace.
                    if !self.matching().wants_trace(id) {
                        state.pause_tracing();
                        state.trace.set(None);
                    }
                }
                Ok(None) => {
                    // First: closing the publisher refreshes the peers, which may start another trace.
                    state.pause_tracing();
                    state.trace.set(None);
                }
                Err(_) => self.matching().retry_trace(id),
            }
        }
    }

    /// Makes the extensions clean up what exited nodes have left.
    fn clean_up_after_ended(&self) {
        let mut all = true;
        for extension in self.extensions() {
            all &= extension.nodes_ended();
        }
        if !all {
            // The control thread then retries once per second.
            self.own.ring_self();
        }
    }

    /// Finds nodes that exited without a notification: before this node knew them, or where the kernel does
    /// not report exits. Cheap if all nodes are known.
    pub fn find_unreported_deaths(&self) {
        let has_unknown = {
            let extensions = self.extensions();
            let matching = self.matching();
            let peers = matching.registry().peers();
            extensions.iter().any(|e| e.has_unknown_nodes(&|id| peers.contains_key(&id)))
        };
        if has_unknown {
            self.clean_up_after_ended();
        }
    }

    /// Restores the missing files of the extensions.
    pub fn put_back(&self) -> Vec<Result<FileStatus>> {
        self.extensions().iter().map(|extension| extension.put_back()).collect()
    }

    /// Checks the deadlines and leases that are due.
    pub fn check_deadlines(self: &Arc<Self>) {
        let events = self.matching().check_deadlines();
        self.deliver(events);
    }

    /// Sets the number of endpoints that our proxy subscription represents.
    pub fn set_endpoint_count(self: &Arc<Self>, id: u64, endpoint_count: u32) -> Result<()> {
        self.check_fork()?;
        check_endpoint_count(endpoint_count)?;
        self.matching().set_endpoint_count(id, endpoint_count)?;
        self.refresh();
        Ok(())
    }

    /// Sets whether this publisher serves our passive subscription.
    pub fn set_served_by(self: &Arc<Self>, id: u64, publisher: u64, yes: bool) -> Result<()> {
        self.check_fork()?;
        self.matching().set_served_by(id, publisher, yes)?;
        self.refresh();
        Ok(())
    }

    /// Admits this subscription to our publisher, which defers admission.
    pub fn admit(self: &Arc<Self>, publisher: u64, subscription: u64) -> Result<()> {
        self.check_fork()?;
        self.matching().admit(publisher, subscription)?;
        self.refresh();
        Ok(())
    }

    /// Number of publishers of a subscription that are alive now.
    pub fn liveliness_of(&self, id: u64) -> LivelinessCounts {
        // A forked child has no publishers, and a thread that does not exist in it may hold the lock.
        if self.fork_guard().is_from_parent() {
            return LivelinessCounts::default();
        }
        self.matching().liveliness_of(id)
    }

    /// The directory was restored: matches the peers again, as at the start.
    pub fn rejoin_peers(self: &Arc<Self>) -> Result<()> {
        let met = self.refresh_only(None, None);
        self.matching().greet();
        met
    }

    /// Calls the user's callbacks on the bulk dispatch thread: they may be slow, and the control thread must
    /// not wait for them.
    pub fn deliver(self: &Arc<Self>, events: Vec<Notice>) {
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
                Notice::Endpoint(match_callbacks, event) => {
                    self.dispatcher(Lane::Bulk)
                        .post(Box::new(move || match_callbacks.call(&event)));
                }
                Notice::Report(error) => {
                    let errors = self.errors.clone();
                    self.dispatcher(Lane::Bulk).post(Box::new(move || errors.report_other(&error)));
                }
                Notice::Call(call) => self.dispatcher(Lane::Bulk).post(call),
            }
        }
    }
}

impl NodeState {
    /// A new id for a task or a timer.
    pub fn next_task(&self) -> u64 {
        self.next_task.fetch_add(1, Ordering::Relaxed)
    }

    /// Removes a task or a timer from its lane. Outside callbacks, it no longer runs after this returns.
    pub fn end_task(&self, id: u64) {
        let outside = !CallbackErrors::is_callback_thread();
        // It may be moving from one lane to the other.
        for _ in 0..2 {
            if self.dispatchers().any(|d| d.remove(id, outside)) {
                return;
            }
        }
    }

    /// Whether this is one of the node's dispatch threads.
    pub fn is_dispatch_thread(&self) -> bool {
        self.dispatchers().any(Dispatcher::is_this_thread)
    }

    /// The error that keeps a needed dispatch thread from running; normally `None`.
    pub fn dispatch_error(&self) -> Option<Error> {
        self.dispatchers().find_map(|dispatcher| dispatcher.try_start().err())
    }
}

/// Held by every handle of a node; dropping the last handle stops the node's threads.
pub struct NodeCore {
    /// The state that the node's threads and handles share.
    pub state: Arc<NodeState>,
    control: Option<JoinHandle<()>>,
}

impl NodeCore {
    /// Adds a callback for the liveliness of the publishers of a subscription.
    pub fn on_liveliness(
        self: &Arc<Self>,
        subscriber: &SubscriberState,
        id: u64,
        callback: Callback<LivelinessChange>,
    ) -> CallbackGuard {
        let guard = subscriber.liveliness.add(&self.state, callback);
        if !self.state.fork_guard().is_from_parent() {
            self.state.matching().watch_leases(id);
            // The control thread may sleep past the end of the first lease.
            self.state.own.ring_self();
        }
        guard
    }

    /// Starts the control thread and matches the node with its peers; fails if the domain has too many nodes.
    pub(crate) fn start(
        own: OwnNode,
        is_tool: bool,
        time: NodeTime,
        naming: NameResolver,
    ) -> Result<Arc<NodeCore>> {
        let state = NodeState::new(own, time, naming)?;
        // Before the first thread starts: the kernel registers a single-threaded process at once. Otherwise
        // the control thread registers once a publisher asks.
        if !rnet_shm::os::barrier::register_blocks() {
            rnet_shm::os::barrier::register();
        }
        let control = Some(crate::control::start(state.clone())?);
        let core = Arc::new(NodeCore { state, control });
        core.state.refresh_only(None, None)?;
        let matching = core.state.matching();
        matching.check_node_limit(is_tool)?;
        matching.greet();
        drop(matching);
        // The control thread may have run before this node knew its peers.
        core.state.own.ring_self();
        Ok(core)
    }
}

impl CallsBack for NodeState {
    fn is_from_parent(&self) -> bool {
        self.fork_guard().is_from_parent()
    }
}

impl Drop for NodeCore {
    fn drop(&mut self) {
        if self.state.fork_guard().is_from_parent() {
            // In a forked child the threads do not exist and may have held any lock, so nothing is released.
            std::mem::forget((self.control.take(), self.state.clone()));
            return;
        }
        self.state.stopping.store(true, Ordering::Release);
        self.state.own.ring_self();
        // A callback may sleep until a simulated time; the threads are joined below.
        self.state.time.end();
        // The last handle may be dropped by a callback, on one of the threads themselves.
        join(self.control.take());
        // After the control thread, which could start a dispatcher.
        self.state.dispatchers().for_each(Dispatcher::stop);
        self.state.extensions().iter().for_each(|extension| extension.stop());
        self.state.own.lingering().finish();
    }
}
