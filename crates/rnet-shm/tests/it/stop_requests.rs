//! How the exit of a process is reported after it was asked to stop.

use std::path::Path;

use rnet_core::NodeName;
use rnet_shm::domain::death_notes;
use rnet_shm::domain::directory::{DomainConfig, DomainDir};
use rnet_shm::domain::node::{OwnNode, PeerNode, StopRequest};

/// A node's file, modified as if another process that was killed had written it.
fn of_another_process(file: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(file).unwrap();
    let own = format!("\"pid\":{}", std::process::id());
    let at = bytes.windows(own.len()).position(|window| window == own.as_bytes()).unwrap();
    let other = format!("{:<1$}", "\"pid\":1", own.len());
    bytes[at..at + own.len()].copy_from_slice(other.as_bytes());
    bytes
}

#[test]
fn process_killed_on_request_is_lost_without_a_recorded_death() {
    let base =
        std::env::temp_dir().join(format!("rnet-stop-{:x}", rnet_shm::os::random::random_u64()));
    std::fs::create_dir(&base).unwrap();
    let config = DomainConfig { base: Some(base.clone()), ..DomainConfig::default() };
    let dir = DomainDir::open_or_create(&config).unwrap();
    let name = NodeName::new("arm").unwrap();
    for (request, leaves, is_missed) in [
        (StopRequest::None, false, true),
        (StopRequest::Stop, true, false),
        (StopRequest::Kill, false, false),
    ] {
        let node = OwnNode::create(&dir, &name, "rust", "0").unwrap();
        let (folder, incarnation) = (node.folder().to_owned(), node.incarnation());
        let file = of_another_process(&folder.join("node"));
        drop(node);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("node"), file).unwrap();
        let peer = PeerNode::open(&dir, &name.file_stem(), incarnation).unwrap().unwrap();
        peer.set_stop_request(request).unwrap();
        assert_eq!(peer.has_left(), leaves, "{request:?}");
        death_notes::sweep(&dir, &name.file_stem(), incarnation);
        assert!(!folder.exists());
        assert_eq!(!death_notes::known(&dir).is_empty(), is_missed, "{request:?}");
    }
    std::fs::remove_dir_all(&base).unwrap();
}
