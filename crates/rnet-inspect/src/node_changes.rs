//! Nodes that have joined, left and died. The scan that removes dead nodes reports them.

use rnet_core::Result;
use rnet_shm::domain::registry::Registry;

use super::Domain;
use rnet_node::NodeEvent;

impl Domain {
    /// Scans the nodes, and returns the changes since the last scan of any kind. The first scan reports every
    /// present node as joined. Nodes of other hosts are named `@host/node`.
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
        // A restarted node first dies and then joins.
        let mut events: Vec<NodeEvent> = gone.chain(unseen).chain(joined).collect();
        events.extend(self.remote.update(self.registry.as_ref()));
        Ok(events)
    }
}
