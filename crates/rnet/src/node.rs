//! Nodes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rnet_core::Result;
use rnet_node::callback_errors::{CallbackErrors, Report};
use rnet_node::{NodeCore, NodeSettings};
use rnet_shm::state::Clock;

use crate::client_cache::ClientCache;
use crate::link_start::LinkStarter;
use crate::log::{self, LogLevel, Logger};
use crate::param::{ParamBuilder, ParamType};
use crate::rate::Rate;
use crate::sim_clock::SimClock;
use crate::state::State;
use crate::{
    EndpointEvent, EndpointWatch, Message, NodeEvent, Publisher, PublisherOptions, Subscriber,
    SubscriberOptions,
};

/// A named participant of a domain.
///
/// A process may have several nodes. Clones are handles to the same node, which is closed when the last handle,
/// publisher, subscriber and kept sample is dropped. It has one control thread, and others when needed: [the crate's
/// page](crate#threads) lists them. They stop with the node.
///
/// If a process exits without dropping the node, its peers see it as died; the next start cleans up automatically. In a
/// forked child, objects created before the fork return `Closed` and do nothing when dropped; the child opens its own
/// nodes. See docs/guide/processes.md.
///
/// ```
/// # fn main() -> rnet::Result<()> {
/// # let dir = std::env::temp_dir();
/// # let domain = format!("node{}", std::process::id());
/// # let node = rnet::Node::builder("arm").dir(dir).domain(&domain).open()?;
/// // let node = rnet::Node::new("arm")?;
/// let mut angles = node.publisher::<[u8]>("/angles")?;
/// angles.send(b"0.25")?; // nobody listens yet, which is no error
/// assert_eq!(node.name(), "/arm");
/// # drop(angles);
/// # let path = node.domain_path().to_owned();
/// # drop(node);
/// # let _ = std::fs::remove_dir_all(path);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Node {
    core: Arc<NodeCore>,
    /// Where durable state is kept, if the program chose a place.
    state_dir: Option<Arc<Path>>,
    log: Logger,
    /// Those that [`Node::call`] uses again; `None` in the handle that one of these clients has.
    pub(crate) clients: Option<Arc<ClientCache>>,
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
        NodeBuilder { settings: NodeSettings::new(name), state_dir: None, programs: None }
    }

    /// The node's name, with its leading slash.
    pub fn name(&self) -> &str {
        self.core.state.own.name().as_str()
    }

    /// The domain's id.
    pub fn domain(&self) -> &str {
        self.core.state.domain.id().as_str()
    }

    /// The domain's directory.
    pub fn domain_path(&self) -> &std::path::Path {
        self.core.state.domain.path()
    }

    /// A publisher with default options: best_effort, bulk lane.
    pub fn publisher<T: Message + ?Sized>(&self, topic: &str) -> Result<Publisher<T>> {
        self.publisher_with(topic, PublisherOptions::default())
    }

    /// A publisher with options.
    ///
    /// # Errors
    /// `BadName`, `BadQos`, `LimitReached`, `OutOfMemory`.
    pub fn publisher_with<T: Message + ?Sized>(
        &self,
        topic: &str,
        options: PublisherOptions,
    ) -> Result<Publisher<T>> {
        self.core.state.check_fork()?;
        Publisher::open(&self.core, self.core.state.topic(topic)?, options)
    }

    /// A subscriber with default options: best_effort, adaptive waiting.
    pub fn subscriber<T: Message + ?Sized>(&self, topic: &str) -> Result<Subscriber<T>> {
        self.subscriber_with(topic, SubscriberOptions::default())
    }

    /// A subscriber with options.
    ///
    /// # Errors
    /// `BadName`, `BadQos`, `LimitReached`, `OutOfMemory`.
    pub fn subscriber_with<T: Message + ?Sized>(
        &self,
        topic: &str,
        options: SubscriberOptions,
    ) -> Result<Subscriber<T>> {
        self.core.state.check_fork()?;
        Subscriber::open(&self.core, self.core.state.topic(topic)?, options)
    }

    /// The state of the domain: keys that hold values. Opened at the first call, and one for the node: later
    /// calls are cheap.
    ///
    /// # Errors
    /// `OutOfMemory`, `NoPermission`, `LayoutVersion` for the file that holds it; `Closed` in a forked child.
    pub fn state(&self) -> Result<State> {
        self.open_state(None)
    }

    /// As [`Node::state`], with clocks of the caller's, for tests: the wall clock, which stamps writes, and
    /// the one by which the time of keys ends, in this boot of the machine. They are those of the first call.
    ///
    /// # Errors
    /// As there.
    #[doc(hidden)]
    pub fn state_with_clocks(
        &self,
        wall: impl Fn() -> u64 + Send + Sync + 'static,
        boot: impl Fn() -> u64 + Send + Sync + 'static,
        boot_id: u64,
    ) -> Result<State> {
        self.open_state(Some(Clock::new(wall, boot).in_boot(boot_id)))
    }

    fn open_state(&self, clock: Option<Clock>) -> Result<State> {
        State::open(&self.core, clock, self.state_dir.as_deref())
    }

    /// A parameter of this node: a setting that users and other nodes can change while it runs.
    ///
    /// It is state under `/params/<node>/` with a description that is checked on every write: a write of a forbidden
    /// value returns an error with the reason and changes nothing. The value outlives the node.
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
        &self.log
    }

    /// How many panics there were so far in the node's callbacks, timers and handlers, exceptions of a binding included.
    ///
    /// Each is counted, and reported on [`crate::LOG_TOPIC`], at most once a second for each callback; tools show
    /// the count.
    pub fn callback_errors(&self) -> u64 {
        self.core.state.own.callback_errors()
    }

    /// The error counter, for bindings whose callbacks run on their own threads.
    #[doc(hidden)]
    pub fn error_counter(&self) -> Arc<CallbackErrors> {
        self.core.state.errors.clone()
    }

    /// The node's time, in ns: CLOCK_MONOTONIC of the host, as [`crate::now_ns`], or the simulated time
    /// ([`NodeBuilder::sim_time`]).
    ///
    /// The simulated time is the last [`crate::msgs::Clock`] on `/clock`, and 0 before the first one. It stops while no
    /// clock message arrives, and in a forked child. With several publishers, the node follows the first until it is
    /// gone. Timers ([`Node::timer`]) and rates ([`Node::rate`]) of the node follow it; message timestamps, deadlines,
    /// lifespans, liveliness and timeouts use the host's clock.
    pub fn now(&self) -> u64 {
        self.core.state.time.now_ns()
    }

    /// Whether the node's time is simulated.
    pub fn is_sim_time(&self) -> bool {
        self.core.state.time.is_simulated()
    }

    /// Keeps a loop at `hz` turns a second of the node's time; as [`Rate::new`] where that is the host's.
    ///
    /// # Errors
    /// As there, and `Closed` in a forked child.
    pub fn rate(&self, hz: f64) -> Result<Rate> {
        self.core.state.check_fork()?;
        Rate::of(self.core.state.time.clone(), hz)
    }

    /// For bindings that stop callbacks before the node: stops a simulated time, and sleeps in it return `Closed`.
    #[doc(hidden)]
    pub fn end_time(&self) {
        self.core.state.time.end();
    }

    /// Calls `callback` when nodes join, leave or die, on the bulk dispatch thread. A callback that panics is not
    /// called again. A short-lived node is reported as joined and then gone, if its directory still exists; if another
    /// node has already removed it, it is not reported.
    ///
    /// Nodes of other hosts are reported as `@host/node`. They also count as died when their host is not reachable.
    pub fn on_node(&self, callback: impl FnMut(&NodeEvent) + Send + 'static) {
        // In a forked child there is no thread to call it.
        if self.core.state.fork_guard().is_from_parent() {
            return;
        }
        self.core.state.watchers.add(Box::new(callback));
        // It fails where this node cannot write a word of its own file, whose pages are there.
        let watched = self.core.state.matching().watch_remote_nodes();
        self.core.state.deliver(watched.unwrap_or_default());
    }

    /// The other nodes of this host, as this one knows them; for the link.
    #[doc(hidden)]
    pub fn peers(&self) -> Vec<String> {
        let matching = self.core.state.matching();
        matching.registry().peers().values().map(|peer| peer.node.meta().name.clone()).collect()
    }

    /// Whether the process of another node of this host is stopped, by a signal or a debugger.
    pub(crate) fn is_stopped(&self, name: &str) -> bool {
        let matching = self.core.state.matching();
        let mut peers = matching.registry().peers().values();
        peers.any(|peer| peer.node.meta().name == name && peer.node.meta().is_stopped())
    }

    /// Calls `callback` for each publisher and subscription of the domain, including those of this node: once for each
    /// existing one, then when one is opened or closed. It stops when the returned [`EndpointWatch`] is dropped.
    ///
    /// It runs on the bulk dispatch thread. A callback that panics is not called again. An endpoint that is closed
    /// before the control thread wakes is not reported.
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
        EndpointWatch::start(&self.core, Box::new(callback))
    }

    pub(crate) fn core(&self) -> &Arc<NodeCore> {
        &self.core
    }
}

rnet_node::debug_by!([] Node, "Node", |this| "name": this.name(), "domain": this.domain());

/// Settings of a node; each overrides the environment.
#[derive(Clone, Debug)]
pub struct NodeBuilder {
    settings: NodeSettings,
    state_dir: Option<PathBuf>,
    programs: Option<PathBuf>,
}

impl NodeBuilder {
    /// The domain, instead of `RNET_DOMAIN` (default `0`).
    pub fn domain(mut self, id: &str) -> Self {
        self.settings.domain = Some(id.to_owned());
        self
    }

    /// The directory of the domains, instead of `RNET_DIR` (default `/dev/shm`).
    pub fn dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.dir = Some(path.into());
        self
    }

    /// The Unix group that shares the domain, instead of `RNET_GROUP` (default: none).
    pub fn group(mut self, group: &str) -> Self {
        self.settings.group = Some(group.to_owned());
        self
    }

    /// The directory for durable state, instead of `RNET_STATE_DIR` (default: `$XDG_STATE_HOME/rnet`, or
    /// `~/.local/state/rnet`). Each domain has its own subdirectory.
    pub fn state_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.state_dir = Some(path.into());
        self
    }

    /// Whether waits may change scheduler settings of the waiting threads, instead of `RNET_TUNE_THREADS` (`1` or `0`,
    /// default `1`).
    ///
    /// A thread that sleeps adaptively for an urgent topic or for state changes gets a short time slice until the
    /// subscriber or watch is dropped, and timers without slack while it sleeps until a message is due. Settings that
    /// the user has chosen for a thread (policy, nice value, slice, slack, processors) are not changed. With `false` no
    /// thread is changed. For the effect see docs/guide/real-time.md.
    pub fn tune_threads(mut self, yes: bool) -> Self {
        self.settings.tune_threads = Some(yes);
        self
    }

    /// Whether the node uses the simulated time on `/clock`, instead of `RNET_SIM_TIME` (`1` or `0`, default `0`). See
    /// [`Node::now`].
    pub fn sim_time(mut self, yes: bool) -> Self {
        self.settings.sim_time = Some(yes);
        self
    }

    /// The namespace of names without a leading `/`, instead of `RNET_NAMESPACE` (default: none): the node's own name,
    /// and its topics, services, actions and commands. State keys are not changed.
    ///
    /// ```no_run
    /// # fn main() -> rnet::Result<()> {
    /// let node = rnet::Node::builder("lidar").namespace("/left").open()?;
    /// let scans = node.publisher::<[u8]>("scan")?;
    /// assert_eq!((node.name(), scans.topic()), ("/left/lidar", "/left/scan"));
    /// # Ok(()) }
    /// ```
    pub fn namespace(mut self, name: &str) -> Self {
        self.settings.namespace = Some(name.to_owned());
        self
    }

    /// Renames a topic, service, action or command: the program's `from` is `to` in the domain. The first matching rule
    /// applies, once; rules of `RNET_REMAP` (`FROM=TO,FROM=TO`) come after the rules given here.
    ///
    /// Names in rules are as elsewhere: below the namespace without a leading `/`, below the node's name with `~/`.
    /// `/a/**` to `/b/**` moves all names below `/a`, and `node:lidar` to `eye` renames the node. `/log`, `/clock` and
    /// `/_rnet/…` cannot be renamed.
    pub fn remap(mut self, from: &str, to: &str) -> Self {
        self.settings.remap.push((from.to_owned(), to.to_owned()));
        self
    }

    /// The language of the node's program, for the tools; bindings set it.
    pub fn language(mut self, language: &str) -> Self {
        self.settings.language = language.to_owned();
        self
    }

    /// For the command line: the node is one of a tool, and may take the places that are kept for these.
    #[doc(hidden)]
    pub fn tool(mut self) -> Self {
        self.settings.language = rnet_shm::domain::registry::TOOL_LANGUAGE.to_owned();
        self
    }

    /// For bindings: where their programs are, `rnet-link` among them.
    #[doc(hidden)]
    pub fn programs(mut self, dir: impl Into<PathBuf>) -> Self {
        self.programs = Some(dir.into());
        self
    }

    /// Joins the domain.
    ///
    /// If a network is configured (`RNET_NETWORK`, `RNET_LISTEN`, `RNET_CONNECT`, `RNET_CONFIG`, or a `robot.toml` in
    /// the working directory), this starts the link between hosts, if it does not run: the program `rnet-link`, in the
    /// background. A failure of that is reported on stderr and is not an error of the node.
    ///
    /// # Errors
    /// As [`Node::new`], and `BadValue` for an invalid level in `RNET_LOG`, an invalid namespace, or an invalid rule.
    pub fn open(self) -> Result<Node> {
        let NodeSettings { domain, dir, group, language, .. } = self.settings.clone();
        let level = log::level_from_env()?;
        let core = self.settings.open()?;
        if language != rnet_shm::domain::registry::TOOL_LANGUAGE {
            LinkStarter { domain, dir, group, programs: self.programs }
                .keep_link_running(&core.state);
        }
        if core.state.time.is_simulated() {
            SimClock::start(&core)?;
        }
        let log = Logger::new(&core, level);
        let reports = log.downgrade();
        core.state.errors.set_reporter(move |report| {
            let Report { text, file, line, printed } = report;
            reports.write(LogLevel::Error, text, (file.as_str(), *line), !printed);
        });
        let (state_dir, clients) = (self.state_dir.map(Into::into), Some(Arc::default()));
        Ok(Node { core, state_dir, log, clients })
    }
}
