//! Endpoints that were lost stay in their node's list for a while, and take no place from others.

use std::sync::Arc;

use rnet_core::{MAX_ENDPOINTS_PER_NODE, NodeName};
use rnet_shm::domain::directory::{DomainConfig, DomainDir};
use rnet_shm::domain::node::{EndpointKind, Entry, OwnNode};
use rnet_shm::domain::registry::Registry;

#[test]
fn however_many_are_lost_peers_see_those_that_are_there() {
    let base = std::env::temp_dir().join(format!("rnet-lost-{}", std::process::id()));
    std::fs::create_dir(&base).unwrap();
    let config = DomainConfig { base: Some(base.clone()), ..DomainConfig::default() };
    let dir = DomainDir::open_or_create(&config).unwrap();
    let name = NodeName::new("link").unwrap();
    let node = Arc::new(OwnNode::create(&dir, &name, "rust", "0").unwrap());
    let open = || {
        let id = node.next_endpoint().unwrap();
        node.announce(Entry::new(id, 7, EndpointKind::Publisher)).unwrap();
        id
    };
    let lose = || {
        let id = open();
        node.withdraw(id, true);
        id
    };
    let (first, oldest) = (open(), lose());
    let lost: Vec<u64> = (0..MAX_ENDPOINTS_PER_NODE).map(|_| lose()).collect();
    let last = open();
    let mut registry = Registry::new(dir, None);
    registry.refresh().unwrap();
    let peer = &registry.peer(node.incarnation()).unwrap().node;
    let mut there: Vec<u64> = peer.entries().iter().map(|entry| entry.id).collect();
    there.sort_unstable();
    assert_eq!(there, [first, last]);
    let newest = lost.last().copied().unwrap();
    assert!(peer.has_lost(newest) && node.has_lost(newest));
    assert!(!peer.has_lost(oldest) && !node.has_lost(oldest), "its place was needed");
    assert!(!peer.has_lost(first) && !peer.has_lost(last));
    drop(node);
    std::fs::remove_dir_all(&base).unwrap();
}
