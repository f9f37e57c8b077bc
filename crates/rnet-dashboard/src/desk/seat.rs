//! The node of the dashboard, opened when it is first needed.

use std::sync::{Arc, Mutex, PoisonError};

use rnet::Node;
use rnet::state::State;

use crate::world::World;

/// Dashboards of one process.
const MAX_NAMES: u32 = 64;

pub struct Seat {
    pub world: Arc<World>,
    node: Mutex<Option<Arc<Node>>>,
}

impl Seat {
    pub fn new(world: Arc<World>) -> Seat {
        Seat { world, node: Mutex::default() }
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
        let opened = Arc::new(self.open()?);
        *node = Some(opened.clone());
        Ok(opened)
    }

    fn open(&self) -> rnet::Result<Node> {
        let name = format!("/rnet_dashboard_{}", std::process::id());
        let open = |name: &str| {
            let location = &self.world.options.location;
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
        self.node()?.state()
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
