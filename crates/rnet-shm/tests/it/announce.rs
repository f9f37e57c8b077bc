//! A peer reads a node's list of endpoints while it grows: who has seen that it changed has seen the change.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rnet_core::NodeName;
use rnet_shm::domain::directory::{DomainConfig, DomainDir};
use rnet_shm::domain::node::{EndpointKind, Entry, OwnNode, PeerNode};

#[test]
fn no_announcement_is_missed() {
    let base = std::env::temp_dir().join(format!("rnet-announce-{}", std::process::id()));
    std::fs::create_dir(&base).unwrap();
    let config = DomainConfig { base: Some(base.clone()), ..DomainConfig::default() };
    let dir = DomainDir::open_or_create(&config).unwrap();
    for round in 0..8 {
        let name = NodeName::new(&format!("n{round}")).unwrap();
        let node = OwnNode::create(&dir, &name, "rust", "0").unwrap();
        let header = File::open(node.folder().join("node")).unwrap();
        let mut peer =
            PeerNode::open(&dir, &name.file_stem(), node.incarnation()).unwrap().unwrap();
        std::thread::scope(|scope| {
            let announcer = scope.spawn(|| {
                for topic_hash in 0..1000 {
                    let id = node.next_endpoint().unwrap();
                    let kind = EndpointKind::Publisher;
                    node.announce(Entry::new(id, topic_hash, kind)).unwrap();
                }
            });
            while !announcer.is_finished() {
                // Where docs/design/shm-layout.md has it; one more announcement each.
                let mut generation = [0; 8];
                header.read_exact_at(&mut generation, 32).unwrap();
                peer.refresh();
                let seen = peer.entries().len() as u64;
                assert!(seen >= u64::from_le_bytes(generation), "{seen} of {generation:?}");
            }
        });
        peer.refresh();
        assert_eq!(peer.entries().len(), 1000);
    }
    std::fs::remove_dir_all(&base).unwrap();
}
