//! The limits of a domain: how many nodes and topics there may be.

use rnet_core::{Error, MAX_NODES_PER_DOMAIN, MAX_TOPICS_PER_DOMAIN, RESERVED_TOOL_NODES, Result};
use rnet_shm::domain::registry::{Peer, TOOL_LANGUAGE};

use super::Matching;

impl Matching {
    /// Checks the limit of nodes; call once the registry was refreshed for the first time. Tools take no place from
    /// other nodes: one that starts again while somebody watches finds its own.
    pub fn check_node_limit(&self, is_tool: bool) -> Result<()> {
        let peers = self.registry.peers();
        let is_a_tool = |peer: &&Peer| peer.node.meta().language == TOOL_LANGUAGE;
        let others = || peers.len() - peers.values().filter(is_a_tool).count();
        let (limit, hint) = if peers.len() >= MAX_NODES_PER_DOMAIN {
            (MAX_NODES_PER_DOMAIN, "")
        } else if !is_tool && others() >= MAX_NODES_PER_DOMAIN - RESERVED_TOOL_NODES {
            (MAX_NODES_PER_DOMAIN - RESERVED_TOOL_NODES, " (more are reserved for tools)")
        } else {
            return Ok(());
        };
        Err(Error::limit_reached(
            format!("nodes in domain {}{hint}", self.own.domain().id()),
            limit,
            "use fewer nodes, or another domain (RNET_DOMAIN)",
        ))
    }

    /// Checks the limit of topics before an endpoint of `topic_hash` is created.
    pub fn check_topic_limit(&self, topic_hash: u64) -> Result<()> {
        if self.index.contains_key(&topic_hash) || self.index.len() < MAX_TOPICS_PER_DOMAIN {
            return Ok(());
        }
        Err(Error::limit_reached(
            format!("topics in domain {}", self.own.domain().id()),
            MAX_TOPICS_PER_DOMAIN,
            "put several values into one message, or use another domain (RNET_DOMAIN)",
        ))
    }
}
