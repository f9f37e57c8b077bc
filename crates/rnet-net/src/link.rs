//! The link of a host: a node with proxies of the other hosts' endpoints.
//!
//! It has three kinds of threads. The control thread (`control`) tracks hosts and endpoints. Each lane to
//! each host has a thread that reads the publishers that the host requests, and sends (`lane`,
//! `forwarder`). Inbound messages are published by the thread on which the network delivers them
//! (`receive`, `proxy`).

#[doc(hidden)]
pub mod announcements;
mod backlog;
mod control;
mod control_state;
mod event;
mod forwarder;
mod host;
mod kept_for_reconnect;
mod lane;
mod lock;
mod lost_host_proxies;
mod positions;
mod problems;
mod proxy;
mod receive;
mod reopen_limit;
mod resend_buffer;
mod resume_points;
mod rights;
mod status;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rnet::bridge::StateAccess;
use rnet::{DomainId, EndpointWatch, Lane, Node, NodeBuilder, NodeEvent};
use rnet_keys::HostCertificate;

use crate::config::Config;
use crate::transport::{HostId, Presence, Sink, Transport};
use crate::wire::VERSION;

use control::Control;
use event::Event;
use kept_for_reconnect::OfflineReaders;
use lane::LaneState;
use lock::lock;
use positions::PositionTable;
use rights::Certificates;
pub use status::TOPIC as STATUS_TOPIC;

/// How long to wait for a lane's report on its quiescence.
const QUIESCENCE_TIMEOUT: Duration = Duration::from_millis(500);

/// Options of a link.
pub struct LinkOptions {
    /// Its node, in the domain that it links.
    pub node: NodeBuilder,
    /// This host, and the term in which the role is held.
    pub presence: Presence,
    /// What may cross, and how; the name of the host.
    pub config: Config,
    /// Whether the role is still held. Called before each frame is sent.
    pub holds_role: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// Why a link cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The node, or one of its endpoints.
    #[error(transparent)]
    Node(#[from] rnet::Error),
    /// The network, or a thread.
    #[error(transparent)]
    Network(#[from] io::Error),
}

/// Why a link has stopped by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkFailure {
    /// It cannot continue.
    Fatal(String),
    /// Its network must be reopened: it reports a host as present but does not deliver its data.
    Network(String),
}

/// State shared by the threads of a link.
struct LinkContext {
    node: Node,
    name: String,
    domain: String,
    presence: Presence,
    config: Config,
    holds_role: Arc<dyn Fn() -> bool + Send + Sync>,
    events: mpsc::Sender<Event>,
    /// Taken at shutdown, because the transport holds this state.
    transport: Mutex<Option<Arc<dyn Transport>>>,
    certificates: Certificates,
    positions: PositionTable,
    /// Readers for hosts that are away.
    offline: OfflineReaders,
    sessions: AtomicU64,
    lanes: RwLock<BTreeMap<(HostId, bool), Arc<LaneState>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    failure: (Mutex<Option<LinkFailure>>, Condvar),
}

/// The key by which each frame finds its lane.
fn lane_key(host: HostId, lane: Lane) -> (HostId, bool) {
    (host, lane == Lane::Urgent)
}

impl LinkContext {
    /// Numbers grow from term to term: all sessions of a later holder are above those of the earlier one.
    /// One session per millisecond would take 50 days to reach the range of the next term.
    fn next_session(&self) -> u64 {
        (self.presence.term << 32) + self.sessions.fetch_add(1, Ordering::Relaxed)
    }

    fn transport(&self) -> Option<Arc<dyn Transport>> {
        lock(&self.transport).clone()
    }

    /// The certificate of this host, if keys secure the network.
    fn own_certificate(&self) -> Option<Arc<HostCertificate>> {
        self.transport()?.identity(self.presence.host)
    }

    fn add_lane(&self, lane: Arc<LaneState>) {
        let mut lanes = self.lanes.write().unwrap_or_else(PoisonError::into_inner);
        lanes.insert(lane_key(lane.host, lane.lane), lane);
    }

    fn remove_lane(&self, lane: &Arc<LaneState>) {
        let mut lanes = self.lanes.write().unwrap_or_else(PoisonError::into_inner);
        // A host that has returned has another lane by now.
        let key = lane_key(lane.host, lane.lane);
        if lanes.get(&key).is_some_and(|there| Arc::ptr_eq(there, lane)) {
            lanes.remove(&key);
        }
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) {
        match std::thread::Builder::new().name(name.chars().take(15).collect()).spawn(run) {
            Ok(thread) => {
                let mut threads = lock(&self.threads);
                threads.retain(|thread| !thread.is_finished());
                threads.push(thread);
            }
            Err(error) => self.fail(&format!("cannot start a thread: {error}")),
        }
    }

    /// Records that the link cannot continue.
    fn fail(&self, why: &str) {
        self.set_failure(LinkFailure::Fatal(why.to_owned()));
    }

    /// Records that the network is at fault; another one may work.
    fn fail_network(&self, why: String) {
        self.set_failure(LinkFailure::Network(why));
    }

    fn set_failure(&self, why: LinkFailure) {
        let (ended, changed) = &self.failure;
        lock(ended).get_or_insert(why);
        changed.notify_all();
    }
}

/// The link of a host; dropping it closes the link.
pub struct Link {
    shared: Arc<LinkContext>,
    watch: Option<EndpointWatch>,
    control: Option<JoinHandle<()>>,
}

impl Link {
    /// Joins the domain and the network. `connect` opens the network, which delivers frames and events to
    /// its second argument.
    ///
    /// # Errors
    /// The errors of opening the node and the network.
    pub fn open<T: Transport>(
        options: LinkOptions,
        connect: impl FnOnce(Presence, Arc<dyn Sink>) -> io::Result<Arc<T>>,
    ) -> Result<Link, LinkError> {
        let LinkOptions { node, presence, config, holds_role } = options;
        let node = node.open()?;
        let (events, received) = mpsc::channel();
        let domain = node.domain().to_owned();
        let positions = PositionTable::open(node.domain_path())?;
        let shared = Arc::new(LinkContext {
            name: config.host.clone(),
            domain,
            presence,
            offline: OfflineReaders::new(config.offline),
            config,
            holds_role,
            events: events.clone(),
            transport: Mutex::default(),
            certificates: Certificates::default(),
            positions,
            sessions: AtomicU64::new(1),
            lanes: RwLock::default(),
            threads: Mutex::default(),
            failure: Default::default(),
            node,
        });
        let control = Control::new(shared.clone(), received)?;
        let watch = shared.node.on_endpoint(move |event| {
            let _ = events.send(Event::LocalEndpoint(event.clone()));
        })?;
        // Started before the network: the first announcement to another host is the complete list. An
        // endpoint missing from it counts as lost there, so a link that takes over would cause the loss of
        // its host's publishers.
        watch.run();
        watch_nodes(&shared);
        let sink: Arc<dyn Sink> = shared.clone();
        let transport = connect(presence, sink)?;
        *lock(&shared.transport) = Some(transport);
        let control = std::thread::Builder::new()
            .name("rnet-link".to_owned())
            .spawn(move || control.run())?;
        Ok(Link { shared, watch: Some(watch), control: Some(control) })
    }

    /// Waits until the link cannot continue, and returns the reason; `None` if it still runs after `limit`.
    pub fn wait(&self, limit: Duration) -> Option<LinkFailure> {
        let (ended, changed) = &self.shared.failure;
        let ended = lock(ended);
        let (ended, _) = changed
            .wait_timeout_while(ended, limit, |ended| ended.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        ended.clone()
    }

    /// Decides what other hosts may read and write of the state of this host, for
    /// [`rnet::bridge::serve_state`].
    #[must_use]
    pub fn state_access(&self) -> StateAccess {
        rights::state_access(&self.shared)
    }

    /// Adds a problem to the status of the link for ten minutes.
    pub fn report_problem(&self, error: rnet::Error) {
        let _ = self.shared.events.send(Event::Problem(error));
    }

    /// The number of frames and messages received so far, if nothing is in flight. That means: messages of
    /// this host's publishers were read, sent and acknowledged, or wait for credit of the other host;
    /// received messages were published, or wait for a reliable subscriber. `None` while anything moves,
    /// and while a lane waits for the network.
    ///
    /// Nothing is in flight between hosts if the links of all of them have returned the same numbers twice
    /// in a row, each asked once before any is asked again. Opening and closing endpoints are not
    /// considered: senders wait for subscribers.
    #[must_use]
    pub fn quiescent_count(&self) -> Option<u64> {
        let lanes: Vec<Arc<LaneState>> = {
            let lanes = self.shared.lanes.read().unwrap_or_else(PoisonError::into_inner);
            lanes.values().cloned().collect()
        };
        let asked: Vec<_> = lanes.iter().map(|lane| lane.request_quiescence()).collect();
        // A lane that ends, or that the network blocks, does not answer.
        asked.iter().map(|reply| reply.recv_timeout(QUIESCENCE_TIMEOUT).ok().flatten()).sum()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        drop(self.watch.take());
        let _ = self.shared.events.send(Event::Stop);
        if let Some(control) = self.control.take() {
            let _ = control.join();
        }
        drop(lock(&self.shared.transport).take());
        self.shared.offline.close();
        // A lane that ends may have started the thread for absent hosts.
        loop {
            let Some(thread) = lock(&self.shared.threads).pop() else { break };
            let _ = thread.join();
        }
    }
}

/// Forwards changes of this host's nodes to the control thread.
fn watch_nodes(shared: &LinkContext) {
    let (events, order) = (shared.events.clone(), Arc::new(Mutex::new(())));
    // Events after the snapshot are delivered after it.
    let (_first, then) = (lock(&order), order.clone());
    shared
        .node
        .on_node(move |event| {
            let _then = lock(&then);
            let _ = events.send(Event::LocalNode(event.clone()));
        })
        .detach();
    for node in shared.node.peers() {
        let _ = shared.events.send(Event::LocalNode(NodeEvent::Joined(node)));
    }
}

impl Sink for LinkContext {
    fn on_frame(&self, lane: Lane, from: HostId, frame: &[u8]) {
        self.receive_frame(lane, from, frame);
    }

    fn on_up(&self, presence: Presence) {
        let _ = self.events.send(Event::HostUp(presence));
    }

    fn on_down(&self, presence: Presence) {
        let _ = self.events.send(Event::HostDown(presence));
    }

    fn on_refused(&self, host: HostId, why: &str) {
        let what = format!("host {host}");
        let _ = self.events.send(Event::Problem(rnet::Error::BadValue { what, why: why.into() }));
    }

    fn on_key_problem(&self, what: &str) {
        let problem =
            rnet::Error::BadValue { what: "the keys of this host".into(), why: what.into() };
        let _ = self.events.send(Event::Problem(problem));
    }

    fn on_incompatible(&self, domain: &DomainId, version: u32, is_there: bool) {
        let mut why = Vec::new();
        if domain.as_str() != self.domain {
            why.push(format!(
                "it is in domain {domain}, this one in domain {}: set the same RNET_DOMAIN on both hosts",
                self.domain
            ));
        }
        if version != u32::from(VERSION) {
            why.push(format!(
                "it uses wire version {version}, this one {VERSION}: run the same version of rnet on both \
                 hosts"
            ));
        }
        let what = "the link of another host".to_owned();
        let problem = rnet::Error::BadValue { what, why: why.join("; ") };
        let _ = self.events.send(Event::PersistentProblem(problem, is_there));
    }
}
