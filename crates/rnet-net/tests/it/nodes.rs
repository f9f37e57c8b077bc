//! Nodes of other hosts, with and without endpoints: which are present, join, leave and die.

use crate::common;
use crate::hosts;

use std::sync::mpsc::{Receiver, channel};

use common::{LONG, eventually};
use hosts::Hosts;
use rnet::inspect::Domain;
use rnet::{Node, NodeEvent};

/// The events of nodes of other hosts that a node receives.
fn node_events(node: &Node) -> Receiver<NodeEvent> {
    let (sender, events) = channel();
    node.on_node(move |event| {
        if event.node().starts_with('@') {
            let _ = sender.send(event.clone());
        }
    })
    .detach();
    events
}

#[track_caller]
fn next(events: &Receiver<NodeEvent>) -> NodeEvent {
    events.recv_timeout(LONG).unwrap()
}

fn domain(hosts: &Hosts, host: usize) -> Domain {
    hosts.domain(host).domain()
}

fn remote(domain: &mut Domain) -> Vec<String> {
    domain.snapshot().unwrap().remote.into_iter().map(|node| node.node).collect()
}

fn name(of: &str) -> String {
    of.to_owned()
}

#[test]
fn nodes_without_endpoints_are_reported() {
    let hosts = Hosts::new("nodes", 3);
    let early = hosts.node(0, "early");
    let watcher = hosts.node(1, "watcher");
    let mut seen = domain(&hosts, 1);
    eventually("earlier nodes are listed", || remote(&mut seen) == ["@host0/early"]);
    let events = node_events(&watcher);
    let late = hosts.node(0, "late");
    assert_eq!(next(&events), NodeEvent::Joined(name("@host0/late")));
    assert_eq!(remote(&mut seen), ["@host0/early", "@host0/late"]);
    let mut child = hosts.child(0, "child");
    assert_eq!(next(&events), NodeEvent::Joined(name("@host0/child")));
    child.kill();
    assert_eq!(next(&events), NodeEvent::Died(name("@host0/child")));
    drop(late);
    assert_eq!(next(&events), NodeEvent::Left(name("@host0/late")));
    // The third host knows it as well, and each node is reported once.
    let mut third = domain(&hosts, 2);
    eventually("all hosts list it", || remote(&mut third) == ["@host0/early", "@host1/watcher"]);
    drop(early);
    assert_eq!(next(&events), NodeEvent::Left(name("@host0/early")));
}

#[test]
#[ignore = "entry point of child processes"]
fn child_entry() {
    let Some(role) = common::role() else { return };
    let _node = common::Net::of_parent().node(&role);
    assert!(common::orders().recv().is_err());
}

#[test]
fn lost_host_loses_its_nodes_and_a_restarted_link_does_not() {
    let mut hosts = Hosts::new("handover", 2);
    let watcher = hosts.node(1, "watcher");
    let events = node_events(&watcher);
    let _lidar = hosts.node(0, "lidar");
    let mut seen = domain(&hosts, 1);
    let mut lookout = domain(&hosts, 1).watch_nodes().unwrap();
    let joined = NodeEvent::Joined(name("@host0/lidar"));
    assert_eq!(next(&events), joined);
    assert_eq!(remote(&mut seen), ["@host0/lidar"]);
    assert!(lookout.wait(LONG).unwrap().contains(&joined));
    hosts.start(0, "");
    hosts.cut(0, 1);
    let died = NodeEvent::Died(name("@host0/lidar"));
    assert_eq!(next(&events), died);
    eventually("the tool gets the event", || {
        lookout.wait(std::time::Duration::from_millis(20)).unwrap().contains(&died)
    });
    hosts.heal(0, 1);
    assert_eq!(next(&events), joined);
    eventually("it is listed again", || remote(&mut seen) == ["@host0/lidar"]);
}
