//! The location of an endpoint's node.

use std::path::PathBuf;
use std::sync::Arc;

use rnet_core::{Error, Result};
use rnet_shm::domain::node::{EndpointKind, Entry, incarnation_of};
use rnet_shm::os::bell::Bells;

use super::Matching;

/// The location of a peer, or of this node.
#[derive(Clone)]
pub struct PeerLocation {
    pub node: String,
    pub folder: PathBuf,
}

impl Matching {
    /// Name of the node that owns an endpoint, while the node is present.
    pub fn node_of(&self, endpoint: u64) -> Option<String> {
        self.location_of(endpoint).map(|peer_location| peer_location.node)
    }

    /// The file of a publisher, while its node is present.
    pub fn publisher_path(&self, id: u64, topic_hash: u64) -> Option<PathBuf> {
        let entry = Entry::new(id, topic_hash, EndpointKind::Publisher);
        self.location_of(id).map(|peer_location| entry.path(&peer_location.folder))
    }

    /// The location of an endpoint's node, while the node is present.
    pub(crate) fn location_of(&self, endpoint: u64) -> Option<PeerLocation> {
        let incarnation = incarnation_of(endpoint);
        if incarnation == self.own.incarnation() {
            let node = self.own.name().to_string();
            return Some(PeerLocation { node, folder: self.own.folder().to_owned() });
        }
        let peer = self.registry.peer(incarnation)?;
        Some(PeerLocation {
            node: peer.node.meta().name.clone(),
            folder: peer.node.folder().to_owned(),
        })
    }

    /// The bells of an endpoint's node; `Closed` if the node has left.
    pub(crate) fn bells_of(&self, endpoint: u64) -> Result<Arc<Bells>> {
        let incarnation = incarnation_of(endpoint);
        if incarnation == self.own.incarnation() {
            return Ok(self.own.bells().clone());
        }
        match self.registry.peer(incarnation) {
            Some(peer) => peer.node.bells(),
            None => Err(Error::closed("the peer")),
        }
    }
}
