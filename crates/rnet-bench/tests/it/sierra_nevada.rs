//! The committed topology is that of the benchmark.

use rnet_bench::topology::Topology;
use std::path::{Path, PathBuf};

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/topologies/sierra_nevada.toml")
}

#[test]
fn has_nodes_topics_and_links_of_benchmark() {
    let robot = Topology::read(&committed()).expect("it is right");
    assert_eq!((robot.nodes.len(), robot.topics().len()), (10, 13));
    // One row for each in the benchmark's latency_all.txt.
    let links: usize = robot.nodes.iter().map(|n| n.subscribes.len()).sum();
    assert_eq!(links, 17);
    // Its column size[b] without our 20 bytes of header (and 4 of a vector's count), freq[hz].
    for (topic, data_len, hz, readers) in [
        ("amazon", 36, 100.0, 1),
        ("danube", 8, 100.0, 4),
        ("ganges", 16, 100.0, 1),
        ("nile", 16, 100.0, 1),
        ("tigris", 16, 100.0, 1),
        ("parana", 12, 100.0, 2),
        ("salween", 48, 10.0, 1),
        ("missouri", 10_000 + 4, 10.0, 1),
        ("volga", 8, 2.0, 1),
        ("mekong", 100 + 4, 2.0, 1),
        ("lena", 50 + 4, 10.0, 1),
        ("congo", 16, 10.0, 1),
        ("arkansas", 16, 10.0, 1),
    ] {
        let published: Vec<_> = robot.publishers_of(topic).collect();
        let [(_, publish)] = published[..] else { panic!("{topic} has one publisher") };
        assert_eq!(publish.len_bytes, data_len + 20, "{topic}");
        assert_eq!(publish.rate_hz(), hz, "{topic}");
        assert_eq!(robot.subscribers_of(topic).count(), readers, "{topic}");
    }
}
