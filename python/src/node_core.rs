//! State shared by a node's Python objects: they keep it alive, and it closes them.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;

use crate::drop_without_gil::drop_without_gil;
use crate::errors::OrRaise;
use crate::interpreter;
use crate::members::{Member, Members};
use crate::resource::Resource;

/// A node and the objects created from it.
pub(crate) struct NodeCore {
    pub(crate) name: String,
    pub(crate) domain: String,
    pub(crate) path: PathBuf,
    pub(crate) group: Option<String>,
    resource: Resource<rnet::Node>,
    pub(crate) members: Members,
}

impl NodeCore {
    pub(crate) fn new(node: rnet::Node, group: Option<&str>) -> Arc<NodeCore> {
        Arc::new(NodeCore {
            name: node.name().to_owned(),
            domain: node.domain().to_owned(),
            path: node.domain_path().to_owned(),
            group: group.map(str::to_owned),
            resource: Resource::new(format!("node {}", node.name()), node),
            members: Members::new(),
        })
    }

    /// The node itself, unless it was closed. If it was closed meanwhile, dropping it may wait for callbacks:
    /// call this, and drop the result, without the GIL. Threads that have the GIL use [`NodeCore::with`].
    pub(crate) fn node(&self) -> rnet::Result<rnet::Node> {
        self.resource.get()
    }

    /// The result of `act` for the node itself.
    pub(crate) fn with<R>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&rnet::Node) -> R,
    ) -> PyResult<R> {
        let node = self.node().or_raise(py)?;
        let result = act(&node);
        self.resource.drop_clone(node);
        Ok(result)
    }

    /// Whether it was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.resource.is_closed()
    }

    /// Closes everything, and leaves the domain. Call it without the GIL.
    pub(crate) fn close(&self) {
        if self.resource.is_from_parent() {
            return;
        }
        // A callback may sleep until a simulated time, and the close below waits for it.
        if let Ok(node) = self.node() {
            rnet::binding::end_time(&node);
        }
        self.members.close();
        self.resource.close();
    }

    /// Closes the node at the end of the program, while the interpreter can still run its callbacks.
    pub(crate) fn close_at_exit(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        let shared = Arc::downgrade(self);
        interpreter::at_exit(py, move || {
            if let Some(shared) = shared.upgrade() {
                shared.close();
            }
        })
    }

    /// The function that closes a member that the node keeps.
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

impl Drop for NodeCore {
    fn drop(&mut self) {
        if self.resource.is_from_parent() {
            return;
        }
        let (kept, node) = (self.members.take(), self.resource.take());
        // Like in `close`.
        if let Some(node) = &node {
            rnet::binding::end_time(node);
        }
        match node {
            Some(node) => interpreter::drop_in_time((kept, node)),
            // It was closed.
            None => drop_without_gil(kept),
        }
    }
}
