//! The node of the dashboard, opened when it is first needed.

use std::io;
use std::sync::{Arc, Mutex};

use rnet::inspect::NormalPriority;
use rnet::state::{RemoteState, State};
use rnet::{Node, Subscription};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::wire::Refusal;
use crate::world::{World, lock};

/// Dashboards of one process.
const MAX_NAMES: u32 = 64;
/// Subscriptions to what other hosts hold, of all pages: each has up to two threads.
const MAX_ABROAD: usize = 32;

pub struct Seat {
    pub world: Arc<World>,
    node: Mutex<Option<Arc<Node>>>,
    /// Opens it for the threads that look and give way: by this node pages operate the robot.
    ordinary: NormalPriority,
    abroad: Arc<Semaphore>,
}

impl Seat {
    pub fn new(world: Arc<World>) -> io::Result<Seat> {
        let (node, abroad) = (Mutex::default(), Arc::new(Semaphore::new(MAX_ABROAD)));
        Ok(Seat { world, node, ordinary: NormalPriority::start("rnet-dash-seat")?, abroad })
    }

    /// The node; the domain is made if it is not there.
    ///
    /// # Errors
    /// Those of opening a node.
    pub fn node(&self) -> rnet::Result<Arc<Node>> {
        let mut node = lock(&self.node);
        if let Some(node) = &*node {
            return Ok(node.clone());
        }
        let world = self.world.clone();
        let opened = Arc::new(self.ordinary.run(move || Seat::open(&world))?);
        *node = Some(opened.clone());
        Ok(opened)
    }

    fn open(world: &World) -> rnet::Result<Node> {
        let name = format!("/rnet_dashboard_{}", std::process::id());
        let open = |name: &str| {
            let location = &world.options.location;
            let mut builder = Node::builder(name).tool().domain(location.id().as_str());
            builder = builder.dir(location.base());
            if let Some(group) = location.group() {
                builder = builder.group(group);
            }
            builder.open()
        };
        let mut opened = open(&name);
        // Another dashboard of this process has that name.
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
    /// Those of opening a node, and of its state.
    pub fn state(&self) -> rnet::Result<State> {
        let node = self.node()?;
        self.ordinary.run(move || node.state())
    }

    /// The state of another host, by the name that the link knows. It need not be there.
    ///
    /// # Errors
    /// Those of opening a node, and of the name.
    pub fn state_of(&self, host: &str) -> rnet::Result<RemoteState> {
        let (node, host) = (self.node()?, host.to_owned());
        self.ordinary.run(move || node.state_of(&host))
    }

    /// A place among those that look at other hosts.
    ///
    /// # Errors
    /// There is none left.
    pub fn go_abroad(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        self.abroad.clone().try_acquire_owned().map_err(|_| {
            let why =
                format!("{MAX_ABROAD} views of other hosts are open, the limit; close one of them");
            Refusal::new("limit", why)
        })
    }

    /// Subscribes to a topic of another host, whose messages cross only while somebody does. They are let go.
    ///
    /// # Errors
    /// Those of opening a node, and of subscribing.
    pub fn show_interest(&self, topic: &str) -> rnet::Result<Subscription> {
        let (node, topic) = (self.node()?, topic.to_owned());
        // The node's thread for callbacks may begin with it.
        self.ordinary.run(move || Ok(node.subscriber::<[u8]>(&topic)?.on(|_| {})))
    }

    /// The state, if there is some: looking makes none.
    ///
    /// # Errors
    /// As [`Desk::state`].
    pub fn state_if_any(&self) -> rnet::Result<Option<State>> {
        match self.world.options.location.domain()?.has_state()? {
            true => self.state().map(Some),
            false => Ok(None),
        }
    }

    /// Leaves the domain.
    pub fn leave(&self) {
        lock(&self.node).take();
    }
}
