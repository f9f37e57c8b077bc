//! Parameters with writers that violate the rules, and with many concurrent ones.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use common::Net;
use rnet::state::Value;
use rnet::{Error, NodeName};
use rnet_shm::domain::node::OwnNode;
use rnet_shm::state::{Record, Region, StoredValue, Write};

/// The value kind of JSON in the region (docs/design/state-values.md).
const JSON: u16 = 6;

/// A writer that stores arbitrary bytes in the region.
fn raw_region(net: &Net) -> Region {
    let config = rnet_shm::domain::directory::DomainConfig {
        id: rnet::DomainId::new("t").unwrap(),
        base: Some(net.base().to_owned()),
        group: None,
    };
    let dir = rnet_shm::domain::directory::DomainDir::open_or_create(&config).unwrap();
    let name = NodeName::new("stranger").unwrap();
    let own = OwnNode::create(&dir, &name, "rust", rnet::VERSION).unwrap();
    let unix_ns = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    Region::open(&Arc::new(own), Arc::new(unix_ns)).unwrap()
}

fn write(region: &Region, key: &str, kind: u16, bytes: &[u8]) {
    let value = StoredValue { kind, type_id: 0, bytes, will: None, expires_boot_ns: 0 };
    let write = Write { key, value: Some(value), expect: None, durable: None };
    region.commit(&[write], &[], &mut |_, _| Ok(())).unwrap();
}

#[test]
fn invalid_description_blocks_setters_and_is_rewritten() {
    let net = Net::new("param corrupt description");
    let (arm, other) = (net.node("arm"), net.node("other"));
    let region = raw_region(&net);
    let declare = || arm.param("/gain").default(1.0).max(9.0).declare().unwrap();
    let state = other.state().unwrap();
    let node = NodeName::new("arm").unwrap();
    for (kind, bytes) in [
        (JSON, &b"{"[..]),
        (JSON, b"{\"type\": \"float\", \"max\": []}"),
        (JSON, b"\xff\xfe"),
        (4, b"text"),
        (999, b""),
    ] {
        let param = declare();
        write(&region, "!param/arm/gain", kind, bytes);
        let error = state.set(param.key(), 2.0).unwrap_err();
        assert!(matches!(error, Error::BadValue { .. }), "{error}");
        assert!(error.to_string().contains("the node rewrites the description"), "{error}");
        assert!(state.reset_param(&node, "gain").is_err());
        let info = state.param(&node, "gain").unwrap().unwrap();
        assert!(info.description.is_none() && info.problem.is_some());
        assert_eq!(state.params().unwrap().len(), 1);
        // The node itself continues, and a restart repairs the description.
        assert_eq!(param.get(), Ok(1.0));
        let param = declare();
        state.set(param.key(), 2.0).unwrap();
        assert_eq!(param.get(), Ok(2.0));
        param.reset().unwrap();
    }
}

#[test]
fn value_of_the_wrong_kind_is_an_error() {
    let net = Net::new("param corrupt value");
    let arm = net.node("arm");
    let region = raw_region(&net);
    let gain = arm.param("/gain").default(1.0).declare().unwrap();
    let legs = arm.param("/legs").default(vec![1_i64]).declare().unwrap();
    write(&region, gain.key(), 4, b"fast");
    write(&region, legs.key(), 4, b"six");
    assert!(matches!(gain.get(), Err(Error::StateType { .. })), "{:?}", gain.get());
    assert!(matches!(legs.get(), Err(Error::BadValue { .. })), "{:?}", legs.get());
    // A float of seven bytes.
    write(&region, gain.key(), 3, &[0; 7]);
    assert!(matches!(gain.get(), Err(Error::BadValue { .. })), "{:?}", gain.get());
    // After a new declaration it has its default.
    let gain = arm.param("/gain").default(1.0).on_refused(|_| {}).declare().unwrap();
    assert_eq!(gain.get(), Ok(1.0));
    assert_eq!(gain.refused().unwrap().set_by, "/stranger");
}

/// A node restarts repeatedly and declares its parameter with changing bounds while others set it. No value
/// ever coexists with a description that forbids it.
#[test]
fn value_never_violates_its_description() {
    const DECLARATIONS: u64 = 300;
    let net = Net::new("param race");
    let witness = raw_region(&net);
    let done = AtomicBool::new(false);
    let (allowed, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let key = "/params/arm/level";
    std::thread::scope(|scope| {
        for setter in 0..2_i64 {
            let node = net.node(&format!("setter_{setter}"));
            let (done, allowed, refused) = (&done, &allowed, &refused);
            scope.spawn(move || {
                let state = node.state().unwrap();
                for value in 0.. {
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                    match state.set(key, (value * 7 + setter) % 100) {
                        Ok(_) => allowed.fetch_add(1, Ordering::Relaxed),
                        Err(Error::BadValue { .. }) => refused.fetch_add(1, Ordering::Relaxed),
                        Err(error) => panic!("{error}"),
                    };
                }
            });
        }
        let (done, net) = (&done, &net);
        scope.spawn(move || {
            for turn in 0..DECLARATIONS {
                let least = (turn * 13 % 90) as i64;
                let arm = net.node("arm");
                let builder = arm.param("/level").default(least).min(least).max(least + 10);
                builder.on_refused(|_| {}).declare().unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        let mut reads = 0;
        while !done.load(Ordering::Relaxed) || reads == 0 {
            reads += u64::from(check_consistency(&witness));
        }
        assert!(reads > 0);
    });
    assert!(allowed.into_inner() > 0 && refused.into_inner() > 0, "both outcomes occurred");
}

/// Reads value and description; `false` if no description exists or it changed in between. A value read
/// between two equal descriptions coexisted with them.
fn check_consistency(region: &Region) -> bool {
    let (mut before, mut after, mut value) = <(Record, Record, Record)>::default();
    let about = "!param/arm/level";
    if !region.get(about, &mut before).unwrap() {
        return false;
    }
    assert!(
        region.get("/params/arm/level", &mut value).unwrap(),
        "a declared parameter has a value"
    );
    assert!(region.get(about, &mut after).unwrap(), "a description is never removed");
    if before.revision != after.revision {
        return false;
    }
    let description: serde_json::Value = serde_json::from_slice(before.value()).unwrap();
    let value = i64::from_le_bytes(value.value().try_into().unwrap());
    let bound = |word: &str| description[word].as_i64().unwrap();
    assert!((bound("min")..=bound("max")).contains(&value), "{value} and {description}");
    true
}

#[test]
fn many_nodes_declare_many_parameters() {
    let net = Net::new("param many");
    let nodes: Vec<_> = (0..8).map(|n| net.node(&format!("node_{n}"))).collect();
    std::thread::scope(|scope| {
        for node in &nodes {
            scope.spawn(move || {
                for name in 0..50_i64 {
                    node.param(&format!("/p{name}")).default(name).declare().unwrap();
                }
            });
        }
    });
    let params = nodes[0].state().unwrap().params().unwrap();
    assert_eq!(params.len(), 400);
    assert!(params.iter().all(|info| info.is_default && info.problem.is_none()));
    assert_eq!(params[0].value(), Some(&Value::Int(0)));
}
