//! The node of the dashboard, opened when it is first needed.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rnet::inspect::Ordinary;
use rnet::state::State;
use rnet::{Node, Subscription};

use crate::world::World;

/// Dashboards of one process.
const MAX_NAMES: u32 = 64;

pub struct Seat {
    pub world: Arc<World>,
    node: Mutex<Option<Arc<Node>>>,
    /// Opens it for the threads that look and give way: by this node pages operate the robot.
    ordinary: Ordinary,
}

impl Seat {
    pub fn new(world: Arc<World>) -> io::Result<Seat> {
        Ok(Seat { world, node: Mutex::default(), ordinary: Ordinary::start("rnet-dash-seat")? })
    }

    /// The node; the domain is made if it is not there.
    ///
    /// # Errors
    /// Those of opening a node.
    pub fn node(&self) -> rnet::Result<Arc<Node>> {
        let mut node = self.node.lock().unwrap_or_else(PoisonError::into_inner);
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
        self.node.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
