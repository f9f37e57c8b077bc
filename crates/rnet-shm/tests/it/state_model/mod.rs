//! The region of the state against a map: millions of random operations, each answer compared, and
//! nothing left over at the end.
//!
//! `STATE_MODEL_OPERATIONS` says how many; a million otherwise, ten in `make soak`.

mod killed;
mod model;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rnet_core::{DomainId, NodeName};
use rnet_shm::domain::directory::{DomainConfig, DomainDir};
use rnet_shm::domain::node::OwnNode;
use rnet_shm::state::Region;

use model::Model;

/// Blocks that a node has at hand which has just opened the region.
const KEPT: u64 = 64;
/// Operations, unless the environment says otherwise.
const OPERATIONS: u64 = 1_000_000;

/// A domain of the test's own, with a clock that the test sets.
pub struct TestDomain {
    base: PathBuf,
    dir: DomainDir,
    owned: bool,
    /// What the regions' clock shows, ns.
    pub now: Arc<AtomicU64>,
}

impl TestDomain {
    /// An empty one.
    fn new() -> TestDomain {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let base = PathBuf::from(format!("/dev/shm/rnet-model-{}-{count}", std::process::id()));
        std::fs::create_dir(&base).unwrap();
        let mut domain = TestDomain::of_parent(base);
        domain.owned = true;
        domain
    }

    /// The domain that the parent of this process made.
    fn of_parent(base: PathBuf) -> TestDomain {
        let id = DomainId::new("t").unwrap();
        let config = DomainConfig { id, base: Some(base.clone()), group: None };
        let dir = DomainDir::open_or_create(&config).unwrap();
        TestDomain { base, dir, owned: false, now: Arc::new(AtomicU64::new(1_000_000_000)) }
    }

    fn base(&self) -> &std::path::Path {
        &self.base
    }

    fn region(&self, node: &str) -> Region {
        let name = NodeName::new(node).unwrap();
        let own = Arc::new(OwnNode::create(&self.dir, &name, "rust", "0").unwrap());
        let now = self.now.clone();
        Region::open(&own, Arc::new(move || now.load(Ordering::Relaxed))).unwrap()
    }
}

impl Drop for TestDomain {
    fn drop(&mut self) {
        if self.owned {
            std::fs::remove_dir_all(&self.base).unwrap();
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn a_million_random_operations_answer_as_a_map_does() {
    let operations = number("STATE_MODEL_OPERATIONS").unwrap_or(OPERATIONS);
    let seed = number("STATE_MODEL_SEED").unwrap_or_else(|| {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("it is after 1970");
        since.as_nanos() as u64
    });
    println!("STATE_MODEL_SEED={seed}");
    let domain = TestDomain::new();
    let regions = [domain.region("/one"), domain.region("/two")];
    let mut model = Model::new(&regions, domain.now.clone(), seed);
    for _ in 0..operations {
        model.step();
    }
    model.empty();
    println!("{}", model.summary());
    drop(model);
    drop(regions);
    nothing_is_left(&domain);
}

/// Once nobody has the region open any more, nothing in it is used but the trie.
fn nothing_is_left(domain: &TestDomain) {
    let usage = domain.region("/last").usage();
    println!("{usage:?}");
    assert_eq!((usage.leaves, usage.transactions), (0, 0), "{usage:?}");
    assert!(usage.cached <= KEPT, "{usage:?}");
}
