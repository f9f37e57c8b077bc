//! Nodes.

mod builder;
mod calls;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rnet_call::ClientCache;
use rnet_core::Result;
use rnet_node::{NodeCore, NodeHandle, NodeSettings};
use rnet_shm::state::Clock;

use crate::param::{ParamBuilder, ParamType};
use crate::state::{RemoteState, State};
use crate::{
    CallbackGuard, EndpointEvent, EndpointWatch, Logger, Message, NodeEvent, PublisherBuilder,
    Rate, SubscriberBuilder, TimerBuilder,
};
pub use builder::NodeBuilder;

/// A named participant of a domain.
///
/// A process may have several nodes. Clones are handles to the same node, which is closed when the last
/// handle, publisher, subscriber and kept sample is dropped. It has one control thread, and others when
/// needed: [the crate's page](crate#threads) lists them. They stop with the node.
///
/// If a process exits without dropping the node, its peers see it as died; the next start cleans up
/// automatically. In a forked child, objects created before the fork return `Closed` and do nothing when
/// dropped; the child opens its own nodes. See docs/guide/processes.md.
///
/// ```
/// # fn main() -> rnet::Result<()> {
/// # let dir = std::env::temp_dir();
/// # let domain = format!("node{}", std::process::id());
/// # let node = rnet::Node::builder("arm").dir(dir).domain(&domain).open()?;
/// // let node = rnet::Node::new("arm")?;
/// let mut angles = node.publisher::<[u8]>("/angles").open()?;
/// angles.send(b"0.25")?; // without subscribers this is not an error
/// assert_eq!(node.name(), "/arm");
/// # drop(angles);
/// # let path = node.domain_path().to_owned();
/// # drop(node);
/// # let _ = std::fs::remove_dir_all(path);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Node {
    pub(crate) handle: NodeHandle,
    /// The directory of durable state, if the program chose one.
    state_dir: Option<Arc<Path>>,
    /// The clients that [`Node::call`] reuses.
    pub(crate) clients: Arc<ClientCache>,
}

impl Node {
    /// Joins the domain named by the environment (`RNET_DOMAIN`, `RNET_DIR`, `RNET_GROUP`), or
    /// domain 0.
    ///
    /// # Errors
    /// `BadName`; `NameTaken` if a living node has this name; `NoPermission`, `LayoutVersion`,
    /// `OutOfMemory` for the domain's directory; `LimitReached` beyond 1,024 nodes, and where
    /// the process may have no more open files.
    pub fn new(name: &str) -> Result<Node> {
        Node::builder(name).open()
    }

    /// A builder for a node with other settings.
    pub fn builder(name: &str) -> NodeBuilder {
        NodeBuilder::new(NodeSettings::new(name))
    }

    /// The node's name, with its leading slash.
    pub fn name(&self) -> &str {
        self.handle.name()
    }

    /// The domain's id.
    pub fn domain(&self) -> &str {
        self.core().state.domain.id().as_str()
    }

    /// The domain's directory.
    pub fn domain_path(&self) -> &std::path::Path {
        self.core().state.domain.path()
    }

    /// A builder for a publisher, opened by [`PublisherBuilder::open`]; by default best_effort on the bulk
    /// lane.
    pub fn publisher<T: Message + ?Sized>(&self, topic: &str) -> PublisherBuilder<T> {
        self.handle.publisher(topic)
    }

    /// A builder for a subscriber, opened by [`SubscriberBuilder::open`], or by
    /// [`SubscriberBuilder::on_any`] for all topics that match a pattern; by default best_effort, with the
    /// last 10 unread messages and adaptive waiting.
    pub fn subscriber<T: Message + ?Sized>(&self, topic: &str) -> SubscriberBuilder<T> {
        self.handle.subscriber(topic)
    }

    /// The state of the domain: keys that hold values. Opened at the first call, once per node: later calls
    /// are cheap.
    ///
    /// # Errors
    /// `OutOfMemory`, `NoPermission`, `LayoutVersion` for the file that holds it; `Closed` in a forked child.
    pub fn state(&self) -> Result<State> {
        self.open_state(None)
    }

    pub(crate) fn open_state(&self, clock: Option<Clock>) -> Result<State> {
        State::open(self.core(), clock, self.state_dir.as_deref())
    }

    /// The state of another host, by the name under which `rnet link status` shows it. Hold one for many
    /// reads and writes.
    ///
    /// # Errors
    /// `BadName` for an empty name; as [`Node::client`].
    pub fn state_of(&self, host: &str) -> Result<RemoteState> {
        RemoteState::open(&self.handle, host)
    }

    /// A parameter of this node: a setting that users and other nodes can change while it runs.
    ///
    /// It is state under `/params/<node>/` with a description that is checked on every write: a write of a
    /// forbidden value returns an error with the reason and changes nothing. The value outlives the node.
    ///
    /// ```
    /// # fn main() -> rnet::Result<()> {
    /// # let dir = std::env::temp_dir();
    /// # let domain = format!("param{}", std::process::id());
    /// # let node = rnet::Node::builder("arm").dir(dir).domain(&domain).open()?;
    /// let gain = node
    ///     .param("/gain")
    ///     .default(1.0)
    ///     .min(0.0)
    ///     .max(10.0)
    ///     .unit("1/s")
    ///     .description("how hard the arm pulls towards its target")
    ///     .declare()?;
    /// assert_eq!(gain.get()?, 1.0);
    /// // Any node may set it, and no node may set it to this:
    /// let error = node.state()?.set("/params/arm/gain", 11.0).unwrap_err();
    /// assert!(error.to_string().contains("above its maximum 10.0 1/s"));
    /// # let path = node.domain_path().to_owned();
    /// # drop((gain, node));
    /// # std::fs::remove_dir_all(path).ok();
    /// # Ok(()) }
    /// ```
    pub fn param<T: ParamType>(&self, name: &str) -> ParamBuilder<T> {
        ParamBuilder::new(self.state(), name)
    }

    /// The node's log: lines for people, on the topic `/log` and on stderr.
    ///
    /// ```no_run
    /// # fn main() -> rnet::Result<()> {
    /// let node = rnet::Node::new("arm")?;
    /// node.log().info("the arm is at home");
    /// # Ok(()) }
    /// ```
    pub fn log(&self) -> &Logger {
        &self.handle.log
    }

    /// Number of panics so far in the node's callbacks, timers and handlers, including exceptions of a
    /// binding.
    ///
    /// Each is counted, and reported on [`crate::LOG_TOPIC`] at most once per second and callback; tools show
    /// the count.
    pub fn callback_errors(&self) -> u64 {
        self.core().state.own.callback_errors()
    }

    /// The node's time, in ns: CLOCK_MONOTONIC of the host, as [`crate::now_ns`], or the simulated time
    /// ([`NodeBuilder::sim_time`]).
    ///
    /// The simulated time is the last [`crate::msgs::Clock`] on `/clock`, and 0 before the first one. It
    /// stops while no clock message arrives, and in a forked child. With several publishers, the node follows
    /// the first one while it is connected. Timers ([`Node::timer`]) and rates ([`Node::rate`]) of the node
    /// follow it; message timestamps, deadlines, lifespans, liveliness and timeouts use the host's clock.
    pub fn now(&self) -> u64 {
        self.core().state.time.now_ns()
    }

    /// Whether the node's time is simulated.
    pub fn is_sim_time(&self) -> bool {
        self.core().state.time.is_simulated()
    }

    /// Keeps a loop at `hz` turns per second of the node's time; as [`Rate::new`] if that is the host's time.
    ///
    /// # Errors
    /// As [`Rate::new`], and `Closed` in a forked child.
    pub fn rate(&self, hz: f64) -> Result<Rate> {
        self.core().rate(hz)
    }

    /// A builder for a timer that ticks every `period` of the node's time, started by
    /// [`TimerBuilder::on`] with a callback; by default on the dispatch thread of the bulk lane.
    ///
    /// ```no_run
    /// # fn main() -> rnet::Result<()> {
    /// # use std::time::Duration;
    /// let node = rnet::Node::new("beat")?;
    /// let mut publisher = node.publisher::<[u8]>("/beat").open()?;
    /// let timer = node.timer(Duration::from_millis(10)).on(move |tick| {
    ///     let _ = publisher.send(&tick.number.to_le_bytes());
    /// })?;
    /// # drop(timer); Ok(()) }
    /// ```
    pub fn timer(&self, period: Duration) -> TimerBuilder {
        self.handle.timer(period)
    }

    /// Calls `callback` when nodes join, leave or die, on the bulk dispatch thread. A callback that panics is
    /// not called again. A short-lived node is reported as joined and then gone, if its directory still
    /// exists; if another node has already removed it, it is not reported.
    ///
    /// Nodes of other hosts are reported as `@host/node`. They also count as died when their host is not
    /// reachable.
    pub fn on_node(&self, callback: impl FnMut(&NodeEvent) + Send + 'static) -> CallbackGuard {
        let core = self.core();
        let guard = core.state.watchers.add(&core.state, Box::new(callback));
        if core.state.fork_guard().is_from_parent() {
            return guard;
        }
        // It fails only if this node cannot write a word of its own file, whose pages are allocated.
        let watched = self.core().state.matching().watch_remote_nodes();
        self.core().state.deliver(watched.unwrap_or_default());
        guard
    }

    /// Names of the other nodes of this host.
    pub fn peers(&self) -> Vec<String> {
        self.handle.peers()
    }

    /// Calls `callback` for each publisher and subscription of the domain, including those of this node: once
    /// for each existing one, then when one is opened or closed. It stops when the returned [`EndpointWatch`]
    /// is dropped.
    ///
    /// It runs on the bulk dispatch thread. A callback that panics is not called again. An endpoint that is
    /// closed before the control thread wakes is not reported.
    ///
    /// ```no_run
    /// # fn main() -> rnet::Result<()> {
    /// let node = rnet::Node::new("graph")?;
    /// let watch = node.on_endpoint(|event| {
    ///     let endpoint = event.endpoint();
    ///     println!("{} of {}: {}", endpoint.topic, endpoint.node, endpoint.type_desc);
    /// })?;
    /// # drop(watch); Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `Closed` in a forked child; `Io` for the domain's directory.
    pub fn on_endpoint(
        &self,
        callback: impl FnMut(&EndpointEvent) + Send + 'static,
    ) -> Result<EndpointWatch> {
        self.handle.on_endpoint(callback)
    }

    pub(crate) fn core(&self) -> &Arc<NodeCore> {
        &self.handle.core
    }
}

// For [`crate::WaitSet::new`].
#[doc(hidden)]
impl AsRef<NodeCore> for Node {
    fn as_ref(&self) -> &NodeCore {
        self.core()
    }
}

rnet_node::debug_by!([] Node, "Node", |this| "name": this.name(), "domain": this.domain());
