//! Namespaces and remap rules: each kind of endpoint applies them, exactly once.

use crate::common;

use std::time::Duration;

use common::{Child, LONG, Net, role, tell};
use rnet::{Error, NodeBuilder};

#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
#[repr(C)]
struct N {
    x: u32,
}

fn left(net: &Net, name: &str) -> NodeBuilder {
    net.builder(name).namespace("/left")
}

fn topics(net: &Net) -> Vec<String> {
    let snapshot = net.inspect();
    let shown = snapshot.topics().into_iter().filter(|topic| !topic.starts_with("/_rnet/"));
    shown.map(str::to_owned).collect()
}

#[test]
fn two_robots_of_one_program_are_separate() {
    let net = Net::new("naming-two");
    let open = |namespace: &str| {
        let node = net.builder("lidar").namespace(namespace).open().unwrap();
        let scans = node.publisher::<[u8]>("scan").open().unwrap();
        let own = node.publisher::<[u8]>("~/dirty").open().unwrap();
        let reader = node.subscriber::<[u8]>("scan").open().unwrap();
        let map = node.subscriber::<[u8]>("/map").open().unwrap();
        (node, scans, own, reader, map)
    };
    let mut one = open("left");
    let mut other = open("/right");
    assert_eq!((one.0.name(), other.0.name()), ("/left/lidar", "/right/lidar"));
    assert_eq!(one.1.topic(), "/left/scan");
    assert_eq!(
        topics(&net),
        ["/left/lidar/dirty", "/left/scan", "/map", "/right/lidar/dirty", "/right/scan"]
    );
    one.1.send(b"left").unwrap();
    other.1.send(b"right").unwrap();
    assert_eq!(&*one.3.recv_timeout(LONG).unwrap(), b"left");
    assert_eq!(&*other.3.recv_timeout(LONG).unwrap(), b"right");
    assert!(one.3.try_recv().unwrap().is_none());
    // A parameter is below its node's name.
    let gain = one.0.param("gain").default(1.0).declare().unwrap();
    let kept = one.0.state().unwrap().get("/params/left/lidar/gain").unwrap();
    assert_eq!(kept, Some(rnet::state::Value::from(1.0)));
    drop(gain);
}

#[test]
fn remap_rule_applies_once_to_each_kind_of_endpoint() {
    let net = Net::new("naming-rules");
    // Each rule would rename the other's result a second time.
    let renamed = net.builder("a").remap("/**", "/left/**").remap("node:a", "b").open().unwrap();
    assert_eq!(renamed.name(), "/b");
    let plain = net.node("plain");

    let service = renamed.service::<N, N>("/double").serve(|n| Ok(N { x: 2 * n.x })).unwrap();
    assert_eq!(service.name(), "/left/double");
    for (node, name) in [(&plain, "/left/double"), (&renamed, "/double")] {
        assert_eq!(*node.call_timeout::<N, N>(name, &N { x: 4 }, LONG).unwrap(), N { x: 8 });
    }

    let (applied, done) = std::sync::mpsc::channel();
    let command = renamed.command::<N>("/speed").deadline(Duration::from_secs(5));
    let command = command
        .fallback(&N { x: 0 })
        .apply(move |speed| applied.send(speed.x).unwrap_or_default())
        .unwrap();
    assert_eq!(done.recv_timeout(Duration::from_secs(30)).unwrap(), 0);
    let mut driver = plain.drive::<N>("/left/speed").timeout(LONG).take().unwrap();
    driver.send(&N { x: 7 }).unwrap();
    assert_eq!(done.recv_timeout(Duration::from_secs(30)).unwrap(), 7);
    driver.release().unwrap();
    let mut driver = renamed.drive::<N>("/speed").timeout(LONG).take().unwrap();
    assert_eq!(driver.topic(), "/left/speed");
    driver.send(&N { x: 8 }).unwrap();
    assert_eq!(done.recv_timeout(Duration::from_secs(30)).unwrap_or(0), 0, "the fallback");
    assert_eq!(done.recv_timeout(Duration::from_secs(30)).unwrap(), 8);
    drop((driver, command));

    // The log belongs to the domain, and so does its clock.
    renamed.log().info("hello");
    assert!(topics(&net).contains(&"/log".to_owned()), "{:?}", topics(&net));
}

#[test]
fn swapped_names_are_swapped_and_patterns_are_of_the_domain() {
    let net = Net::new("naming-swap");
    let node = net.builder("a").remap("/x", "/y").remap("/y", "/x").open().unwrap();
    let mut x = node.publisher::<[u8]>("/x").open().unwrap();
    assert_eq!(x.topic(), "/y");
    let mut y = net.node("plain").subscriber::<[u8]>("/y").open().unwrap();
    let (sender, any) = std::sync::mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let _any = node
        .subscriber::<[u8]>("/y")
        .on_any(move |message| {
            sender.lock().unwrap().send(message.unwrap().to_vec()).unwrap();
        })
        .unwrap();
    x.wait_for_subscribers_timeout(2, LONG).unwrap();
    x.send(b"swapped").unwrap();
    assert_eq!(&*y.recv_timeout(LONG).unwrap(), b"swapped");
    assert_eq!(any.recv_timeout(Duration::from_secs(30)).unwrap(), b"swapped");
}

#[test]
fn two_names_that_become_one_are_refused() {
    let net = Net::new("naming-taken");
    let _one = left(&net, "a").open().unwrap();
    let error = net.builder("/left/a").open().unwrap_err();
    assert!(matches!(error, Error::NameTaken { .. }), "{error}");
    let error = net.builder("b").remap("node:*", "/left/a").open().unwrap_err();
    assert!(matches!(error, Error::NameTaken { .. }), "{error}");
    // A tool uses the domain's names.
    let tool = left(&net, "a").remap("/x", "/y").tool().open().unwrap();
    assert_eq!(tool.name(), "/a");
    assert_eq!(tool.publisher::<[u8]>("/x").open().unwrap().topic(), "/x");
}

#[test]
fn invalid_rules_are_reported_when_the_node_opens() {
    let net = Net::new("naming-wrong");
    let error = net.builder("a").namespace("/a b").open().unwrap_err().to_string();
    assert!(error.contains("namespace") && error.contains("' ' at character 3"), "{error}");
    let error = net.builder("a").remap("/a", "/_rnet/x").open().unwrap_err().to_string();
    assert!(error.contains("remap") && error.contains("of robot-net itself"), "{error}");
    let long = "n".repeat(150);
    let error = net.builder(&long).namespace(&long).open().unwrap_err();
    assert!(matches!(error, Error::BadName { what: "node", .. }), "{error}");
    let node = left(&net, "a").open().unwrap();
    for name in ["", "~", "~/", "a b", "/a//b"] {
        let error = node.publisher::<[u8]>(name).open().unwrap_err();
        assert!(matches!(error, Error::BadName { .. }), "{name:?}: {error}");
        let error = node.client::<N, N>(name).open().map(drop).unwrap_err();
        assert!(matches!(error, Error::BadName { .. }), "{name:?}: {error}");
    }
}

#[test]
fn the_environment_renames_any_program() {
    let net = Net::new("naming-environment");
    let run = |variables: &[(&str, &str)]| {
        let program = std::env::current_exe().unwrap();
        let mut command = Child::order(std::process::Command::new(program), &net, "program");
        command.envs(variables.iter().copied());
        let mut child = Child::start(command);
        let said = child.hear();
        child.finish();
        said
    };
    let said = run(&[("RNET_NAMESPACE", "left"), ("RNET_REMAP", "/scan=/eye, given=taken")]);
    assert_eq!(said, "/left/lidar /eye /left/points /left/first");
    let said = run(&[("RNET_NAMESPACE", ""), ("RNET_REMAP", "")]);
    assert_eq!(said, "/lidar /scan /points /first");
    let said = run(&[("RNET_NAMESPACE", "9")]);
    assert!(said.contains("RNET_NAMESPACE") && said.contains("'9' at character 1"), "{said}");
    let said = run(&[("RNET_REMAP", "/a=/b,/c")]);
    assert!(said.contains("RNET_REMAP") && said.contains("rule 2 is \"/c\""), "{said}");
    let said = run(&[("RNET_REMAP", "/clock=/b")]);
    assert!(
        said.contains("RNET_REMAP") && said.contains("/clock is a name of robot-net"),
        "{said}"
    );
}

fn program(net: &Net) {
    let node = match net.builder("lidar").remap("given", "first").open() {
        Ok(node) => node,
        Err(error) => return tell(&error.to_string()),
    };
    let scans = node.publisher::<[u8]>("/scan").open().unwrap();
    let points = node.publisher::<[u8]>("points").open().unwrap();
    // A rule of the program precedes one of the environment.
    let given = node.publisher::<[u8]>("given").open().unwrap();
    tell(&format!("{} {} {} {}", node.name(), scans.topic(), points.topic(), given.topic()));
}

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    if role().as_deref() == Some("program") {
        program(&Net::of_parent());
    }
}
