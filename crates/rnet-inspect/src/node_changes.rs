//! Which nodes have come, left and died. The look that sweeps up after the dead is the one that learns of them.

use rnet_core::Result;
use rnet_shm::domain::registry::Registry;

use super::Domain;
use rnet_node::NodeEvent;

impl Domain {
    /// Looks at the nodes, and says what has changed since the last look of any kind. The first
    /// look finds that all that are there have joined. Nodes of other hosts are named `@host/node`.
    ///
    /// # Errors
    /// `NoPermission`, `LayoutVersion`, `Io` for the domain's directory.
    pub fn node_events(&mut self) -> Result<Vec<NodeEvent>> {
        let changes = self.refresh()?;
        let departed = changes.departed.into_iter();
        let gone = departed.map(|(_, meta, departure)| NodeEvent::gone(meta.name, departure));
        let unseen = changes.unseen.into_iter().flat_map(|(meta, departure)| {
            [NodeEvent::Joined(meta.name.clone()), NodeEvent::gone(meta.name, departure)]
        });
        let peers = self.registry.as_ref().map(Registry::peers);
        let joined = changes.joined.iter().filter_map(|id| peers?.get(id));
        let joined = joined.map(|peer| NodeEvent::Joined(peer.node.meta().name.clone()));
        // A node that was started anew first dies and then joins.
        let mut events: Vec<NodeEvent> = gone.chain(unseen).chain(joined).collect();
        events.extend(self.remote.update(self.registry.as_ref()));
        Ok(events)
    }
}
