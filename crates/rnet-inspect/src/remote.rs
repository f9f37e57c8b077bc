//! Nodes of other hosts that appear and disappear, seen through the proxies of the link.

use std::collections::BTreeMap;

use rnet_core::TopicName;
use rnet_node::remote_nodes::{NODES_TOPIC, ProxyEnd, RemoteNodes};
use rnet_shm::channel::publisher::PeerPublisher;
use rnet_shm::domain::node::{EndpointKind, incarnation_of};
use rnet_shm::domain::registry::Registry;
use rnet_shm::os::clock;

use rnet_node::NodeEvent;

/// The nodes seen last.
#[derive(Debug, Default)]
pub struct RemoteNodeTracker {
    nodes: RemoteNodes,
    /// The names, by the id of the proxy.
    proxies: BTreeMap<u64, String>,
}

impl RemoteNodeTracker {
    /// The changes since the last update.
    pub fn update(&mut self, registry: Option<&Registry>) -> Vec<NodeEvent> {
        let now_ns = clock::now_ns();
        let topic = TopicName::new(NODES_TOPIC).map(|topic| topic.hash()).ok();
        let mut there = BTreeMap::new();
        for peer in registry.into_iter().flat_map(|registry| registry.peers().values()) {
            for entry in peer.node.entries().iter() {
                if Some(entry.topic_hash) != topic || entry.kind != EndpointKind::Publisher {
                    continue;
                }
                let known = self.proxies.get(&entry.id).cloned();
                let read = || {
                    let meta =
                        PeerPublisher::open(&entry.path(peer.node.folder()), entry.id).ok()?.meta;
                    meta.proxy.filter(|_| meta.topic == NODES_TOPIC).map(|proxy| proxy.to_string())
                };
                // A proxy that closes meanwhile belongs to no node any more.
                if let Some(name) = known.or_else(read) {
                    there.insert(entry.id, name);
                }
            }
        }
        // Additions first: a new proxy may be the successor of a closed one.
        for (id, name) in there.iter().filter(|(id, _)| !self.proxies.contains_key(id)) {
            self.nodes.add_proxy(*id, name);
        }
        for (id, name) in self.proxies.iter().filter(|(id, _)| !there.contains_key(id)) {
            let link = registry.and_then(|registry| registry.peer(incarnation_of(*id)));
            let end = match link {
                None => ProxyEnd::LinkDied,
                Some(link) if link.node.has_lost(*id) => ProxyEnd::Died,
                Some(_) => ProxyEnd::Left,
            };
            self.nodes.remove_proxy(*id, name, end, now_ns);
        }
        self.proxies = there;
        self.nodes.expire(now_ns);
        self.nodes.take_events()
    }
}
