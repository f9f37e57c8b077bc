//! Which nodes have come, left and died. The look that sweeps up after the dead is the one that learns of them.

use rnet_core::Result;
use rnet_shm::domain::DomainDir;
use rnet_shm::node::{NodeMeta, PeerNode};
use rnet_shm::presence;
use rnet_shm::registry::{Departure, Registry, TOOL};

use super::Domain;
use crate::NodeEvent;

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
        events.extend(self.remote.look(self.registry.as_ref()));
        Ok(events)
    }

    /// Reads anew which nodes there are, and names those of [`Snapshot::died`](super::Snapshot::died).
    pub(super) fn look_for_died(&mut self) -> Result<Vec<String>> {
        // The first look sweeps up after the dead without a word.
        let mut died = if self.has_looked { Vec::new() } else { self.died_unswept() };
        self.has_looked = true;
        let changes = self.refresh()?;
        let known = changes.departed.into_iter().map(|(_, meta, departure)| (meta, departure));
        let is_death = |(meta, departure): (NodeMeta, Departure)| {
            (departure == Departure::Died && meta.language != TOOL).then_some(meta.name)
        };
        died.extend(known.chain(changes.unseen).filter_map(is_death));
        Ok(died)
    }

    /// Nodes that have died and are not swept up.
    fn died_unswept(&self) -> Vec<String> {
        let Ok(Some(dir)) = DomainDir::open(&self.config) else { return Vec::new() };
        let folders = presence::list(&dir).unwrap_or_default();
        let dead = folders.iter().filter(|(stem, id)| !presence::is_alive(&dir, stem, *id));
        let found = dead.filter_map(|(stem, id)| PeerNode::open(&dir, stem, *id).ok().flatten());
        let found = found.filter(|node| !node.has_left() && node.meta().language != TOOL);
        found.map(|node| node.meta().name.clone()).collect()
    }
}
