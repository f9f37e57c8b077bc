//! Keys whose time is over take no memory for long, though nobody looks at them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rnet_core::NodeName;
use rnet_shm::domain::directory::{DomainConfig, DomainDir};
use rnet_shm::domain::node::OwnNode;
use rnet_shm::os::random::random_u64;
use rnet_shm::state::{Region, StoredValue, Write};

struct TestDomain(PathBuf);

impl Drop for TestDomain {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn set(region: &Region, key: &str, ends: u64) {
    let stored =
        StoredValue { kind: 1, type_id: 0, bytes: b"here", will: None, expires_boot_ns: ends };
    let write = Write { key, value: Some(stored), expect: None, durable: None };
    region.commit(&[write], &[], &mut |_, _| Ok(())).unwrap();
}

#[test]
fn what_is_over_makes_room() {
    let net = TestDomain(PathBuf::from(format!("/dev/shm/rnet-reap-{:x}", random_u64())));
    std::fs::create_dir(&net.0).unwrap();
    let config = DomainConfig { base: Some(net.0.clone()), ..DomainConfig::default() };
    let dir = DomainDir::open_or_create(&config).unwrap();
    let name = NodeName::new("lessor").unwrap();
    let own = Arc::new(OwnNode::create(&dir, &name, "rust", "0").unwrap());
    let clock = Arc::new(AtomicU64::new(1));
    let read = clock.clone();
    let region = Region::open(&own, Arc::new(move || read.load(Ordering::SeqCst))).unwrap();
    set(&region, "/stays", 0);
    for lease in 0..20_000 {
        let now = clock.fetch_add(1, Ordering::SeqCst);
        set(&region, &format!("/lease/{lease}"), now + 50);
        // One that is renewed all the time is there all the time.
        set(&region, "/renewed", now + 50);
    }
    let usage = region.usage();
    assert!(usage.leaves < 300, "{usage:?}");
    let (_, records) = region.snapshot("/").unwrap();
    let there: Vec<&str> = records.iter().map(|record| record.key()).collect();
    assert!(there.contains(&"/stays") && there.contains(&"/renewed"), "{there:?}");
}
