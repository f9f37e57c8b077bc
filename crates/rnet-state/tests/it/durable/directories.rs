//! One directory, one store: for each spelling of the path and each node's setting.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use rnet::state::Value;
use rnet::{Error, Node};

use super::{reboot, set};
use crate::common::Net;

/// The error of a node with a different directory: it names both directories.
fn refused<T: std::fmt::Debug>(done: rnet::Result<T>, kept: &Net, configured: &std::path::Path) {
    let error = done.unwrap_err();
    assert!(matches!(error, Error::Storage { .. }), "{error}");
    let said = error.to_string();
    let names = |path: &std::path::Path| said.contains(path.to_str().unwrap());
    assert!(names(&kept.keep()) && names(configured) && said.contains("RNET_STATE_DIR"), "{said}");
}

#[test]
fn differently_spelled_directory_has_the_same_store() {
    let net = Net::new("spelled");
    set(&net.node("first").state().unwrap(), "/calibration", 0);
    let link = net.base().join("link");
    symlink(net.base(), &link).unwrap();
    let name = net.base().file_name().unwrap();
    let text = net.base().to_str().unwrap();
    let spelled = [
        link.clone(),
        PathBuf::from(format!("{text}/")),
        PathBuf::from(text.replacen("/dev", "//dev", 1)),
        net.base().join("..").join(name),
        net.base().join("."),
        link.join("..").join(name),
    ];
    for (n, base) in spelled.into_iter().enumerate() {
        reboot(&net);
        let open = |name: &str| {
            let keep = base.join("keep");
            Node::builder(name).domain("t").dir(&base).state_dir(keep).open().unwrap()
        };
        let (node, straight) = (open("crooked"), net.node("straight"));
        assert_eq!(node.domain_path(), straight.domain_path());
        let state = node.state().unwrap();
        assert_eq!(state.get("/calibration").unwrap(), Some(Value::Int(n as i64)), "{base:?}");
        set(&state, "/calibration", n as i64 + 1);
        assert_eq!(
            straight.state().unwrap().get("/calibration").unwrap(),
            Some(Value::Int(n as i64 + 1))
        );
    }
}

#[test]
fn node_with_another_directory_is_refused_by_name() {
    let net = Net::new("other-place");
    let other = net.base().join("other");
    let early = net.builder("early").state_dir(&other).open().unwrap();
    // Nothing is stored yet, so the directory is not fixed.
    let early_state = early.state().unwrap();
    let first = net.node("first");
    let state = first.state().unwrap();
    set(&state, "/calibration", 7);
    refused(net.builder("late").state_dir(&other).open().unwrap().state(), &net, &other);
    refused(early_state.put("/calibration").durable(true).set(8), &net, &other);
    assert!(!other.exists(), "a refused directory stays empty");
    assert_eq!(early_state.get("/calibration").unwrap(), Some(Value::Int(7)));
    // The same directory under another name is accepted.
    let link = net.base().join("link");
    symlink(net.keep(), &link).unwrap();
    let same = net.builder("same").state_dir(&link).open().unwrap();
    set(&same.state().unwrap(), "/calibration", 9);
    // The directory stays fixed after the first node is gone; loading fixes it as well as writing.
    drop((state, first, same));
    refused(net.builder("later").state_dir(&other).open().unwrap().state(), &net, &other);
    drop((early_state, early));
    reboot(&net);
    let state = net.node("again").state().unwrap();
    assert_eq!(state.get("/calibration").unwrap(), Some(Value::Int(9)));
    refused(net.builder("last").state_dir(&other).open().unwrap().state(), &net, &other);
}

/// A node without a configured directory uses the domain's, not its user's home.
#[test]
fn node_without_a_directory_uses_that_of_the_domain() {
    let net = Net::new("follows");
    let first = net.node("first");
    set(&first.state().unwrap(), "/a", 1);
    drop(first);
    let node = Node::builder("second").domain("t").dir(net.base()).open().unwrap();
    set(&node.state().unwrap(), "/a", 2);
    drop(node);
    reboot(&net);
    assert_eq!(net.node("third").state().unwrap().get("/a").unwrap(), Some(Value::Int(2)));
}
