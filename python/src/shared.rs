//! What a node's Python objects share: they keep it alive, and it closes them.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::gate;
use crate::held::Held;
use crate::members::{Member, Members};
use crate::release::release;

/// A node and what was made of it.
pub(crate) struct NodeShared {
    pub(crate) name: String,
    pub(crate) domain: String,
    pub(crate) path: PathBuf,
    pub(crate) group: Option<String>,
    held: Held<rnet::Node>,
    pub(crate) members: Members,
}

impl NodeShared {
    pub(crate) fn new(node: rnet::Node, group: Option<&str>) -> Arc<NodeShared> {
        Arc::new(NodeShared {
            name: node.name().to_owned(),
            domain: node.domain().to_owned(),
            path: node.domain_path().to_owned(),
            group: group.map(str::to_owned),
            held: Held::new(format!("node {}", node.name()), node),
            members: Members::new(),
        })
    }

    /// The node itself, unless it was closed. To drop it may wait for callbacks, if it was closed meanwhile: call this,
    /// and drop what it gives, without the GIL. [`NodeShared::with`] is for those that have the GIL.
    pub(crate) fn node(&self) -> rnet::Result<rnet::Node> {
        self.held.get()
    }

    /// What `act` comes to for the node itself.
    pub(crate) fn with<R>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&rnet::Node) -> R,
    ) -> PyResult<R> {
        let node = self.node().or_raise(py)?;
        let result = act(&node);
        self.held.give_back(node);
        Ok(result)
    }

    /// Whether it was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.held.is_closed()
    }

    /// Closes everything, and leaves the domain. Call it without the GIL.
    pub(crate) fn close(&self) {
        if self.held.is_from_parent() {
            return;
        }
        // A callback may sleep until a simulated time, and is waited for below.
        if let Ok(node) = self.node() {
            node.end_time();
        }
        self.members.close();
        self.held.close();
    }

    /// Closes it at the end of the program, while there still is an interpreter that its
    /// callbacks can be waited for in.
    pub(crate) fn close_at_exit(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        let shared = Arc::downgrade(self);
        gate::at_exit(py, move || {
            if let Some(shared) = shared.upgrade() {
                shared.close();
            }
        })
    }

    /// What closes a member that the node keeps.
    pub(crate) fn closing<M: Member + 'static>(
        self: &Arc<Self>,
        member: &Arc<M>,
    ) -> impl FnOnce() + Send + 'static {
        let (node, member) = (self.clone(), member.clone());
        move || {
            member.close();
            node.members.forget(&member);
        }
    }
}

impl Drop for NodeShared {
    fn drop(&mut self) {
        if self.held.is_from_parent() {
            return;
        }
        let (kept, node) = (self.members.take(), self.held.take());
        // As in `close`.
        if let Some(node) = &node {
            node.end_time();
        }
        match node {
            Some(node) => gate::drop_in_time((kept, node)),
            // It was closed.
            None => release(kept),
        }
    }
}
