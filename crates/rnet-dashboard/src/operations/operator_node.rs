//! The node of the dashboard, opened on first use.

use std::io;
use std::sync::{Arc, Mutex};

use rnet::inspect::NormalPriority;
use rnet::state::{RemoteState, State};
use rnet::{Node, Subscription};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::app_state::{AppState, lock};
use crate::wire::Refusal;

/// Maximum number of dashboards of one process.
const MAX_NAMES: u32 = 64;
/// Maximum number of views of other hosts, of all pages: each has up to two threads.
const MAX_REMOTE_VIEWS: usize = 32;

pub struct OperatorNode {
    pub app: Arc<AppState>,
    node: Mutex<Option<Arc<Node>>>,
    /// Opens the node with normal priority, although the observing threads have a lower one: pages operate
    /// the robot with this node.
    normal_priority: NormalPriority,
    remote_views: Arc<Semaphore>,
}

impl OperatorNode {
    pub fn new(app: Arc<AppState>) -> io::Result<OperatorNode> {
        let (node, remote_views) = (Mutex::default(), Arc::new(Semaphore::new(MAX_REMOTE_VIEWS)));
        Ok(OperatorNode {
            app,
            node,
            normal_priority: NormalPriority::start("rnet-dash-node")?,
            remote_views,
        })
    }

    /// The node; the domain is created if it does not exist.
    ///
    /// # Errors
    /// Errors of opening a node.
    pub fn node(&self) -> rnet::Result<Arc<Node>> {
        let mut node = lock(&self.node);
        if let Some(node) = &*node {
            return Ok(node.clone());
        }
        let app = self.app.clone();
        let opened = Arc::new(self.normal_priority.run(move || OperatorNode::open(&app))?);
        *node = Some(opened.clone());
        Ok(opened)
    }

    fn open(app: &AppState) -> rnet::Result<Node> {
        let name = format!("/rnet_dashboard_{}", std::process::id());
        let open = |name: &str| {
            let location = &app.options.location;
            let mut builder = Node::builder(name).tool().domain(location.id().as_str());
            builder = builder.dir(location.base());
            if let Some(group) = location.group() {
                builder = builder.group(group);
            }
            builder.open()
        };
        let mut opened = open(&name);
        // Another dashboard of this process uses the name.
        for number in 2..MAX_NAMES {
            if !matches!(opened, Err(rnet::Error::NameTaken { .. })) {
                break;
            }
            opened = open(&format!("{name}_{number}"));
        }
        opened
    }

    /// The state of the domain.
    ///
    /// # Errors
    /// Errors of opening a node and its state.
    pub fn state(&self) -> rnet::Result<State> {
        let node = self.node()?;
        self.normal_priority.run(move || node.state())
    }

    /// The state of another host, by the name that the link knows. The host need not be connected.
    ///
    /// # Errors
    /// Errors of opening a node; the name is invalid.
    pub fn state_of(&self, host: &str) -> rnet::Result<RemoteState> {
        let (node, host) = (self.node()?, host.to_owned());
        self.normal_priority.run(move || node.state_of(&host))
    }

    /// A permit for a view of another host.
    ///
    /// # Errors
    /// The limit is reached.
    pub fn acquire_remote_view(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        self.remote_views.clone().try_acquire_owned().map_err(|_| {
            let why = format!(
                "{MAX_REMOTE_VIEWS} views of other hosts are open, the limit; close one of them"
            );
            Refusal::new("limit", why)
        })
    }

    /// Subscribes to a topic of another host, whose messages cross only if a subscriber exists. Received
    /// messages are discarded.
    ///
    /// # Errors
    /// Errors of opening a node and of subscribing.
    pub fn subscribe_remote(&self, topic: &str) -> rnet::Result<Subscription> {
        let (node, topic) = (self.node()?, topic.to_owned());
        // The call may start the node's callback thread.
        self.normal_priority.run(move || Ok(node.subscriber::<[u8]>(&topic).open()?.on(|_| {})))
    }

    /// The state, if it exists: observing does not create it.
    ///
    /// # Errors
    /// As [`Operations::state`].
    pub fn state_if_any(&self) -> rnet::Result<Option<State>> {
        match self.app.options.location.domain()?.has_state()? {
            true => self.state().map(Some),
            false => Ok(None),
        }
    }

    /// Leaves the domain.
    pub fn leave(&self) {
        lock(&self.node).take();
    }
}
