//! The names of hosts that declare the same name: the next boot of one host, and two live ones.

use rnet::Node;
use rnet::msgs::LinkStatus;
use rnet::msgs::link_status::State;

use crate::common::{LONG, eventually};
use crate::hosts::Hosts;

/// Three hosts, of which the last has the name of the first and no link yet.
fn hosts(test: &str) -> Hosts {
    let mut hosts = Hosts::partly_linked(test, 3, 2);
    hosts.rename(2, "host0");
    hosts
}

/// Waits until the link of a node's host knows exactly these hosts, by name and state.
fn knows(node: &Node, what: &str, wanted: &[(&str, State)]) {
    let mut statuses =
        node.subscriber::<LinkStatus>("/_rnet/link").transient_local().open().unwrap();
    let mut last = Vec::new();
    eventually(what, || {
        while let Some(status) = statuses.try_recv().unwrap() {
            let peers = status.peers.iter();
            last = peers.map(|peer| (peer.host.clone(), peer.state())).collect();
            last.sort_by(|(one, _), (two, _)| one.cmp(two));
        }
        last.iter().map(|(name, state)| (name.as_str(), *state)).eq(wanted.iter().copied())
    });
}

/// Waits until the mode of a host has this value, as the node reads it.
fn has_mode(node: &Node, host: &str, mode: &str) {
    let remote = node.state_of(host).unwrap();
    eventually("the state is reached", || {
        remote.get("/mode").is_ok_and(|read| !read.is_stale && read.value == Some(mode.into()))
    });
}

#[test]
fn restarted_host_keeps_its_name() {
    let mut hosts = hosts("restarted");
    let desk = hosts.node(1, "desk");
    let (home, robot) = (hosts.home(0), hosts.node(0, "robot"));
    robot.state().unwrap().set("/mode", "one").unwrap();
    has_mode(&desk, "host0", "one");
    let remote = desk.state_of("host0").unwrap();
    let replica = remote.mirror("/mode").unwrap();
    hosts.stop(0);
    drop((home, robot));
    hosts.start(2, "");
    let _home = hosts.home(2);
    hosts.node(2, "robot").state().unwrap().set("/mode", "two").unwrap();
    knows(&desk, "it has its earlier name", &[("host0", State::Connected)]);
    has_mode(&desk, "host0", "two");
    // Its earlier subscriptions continue.
    eventually("it is read", || {
        remote.get("/mode").is_ok_and(|read| read.value == Some("two".into()))
    });
    eventually("it is followed", || {
        replica.get("/mode").is_ok_and(|read| !read.is_stale && read.value == Some("two".into()))
    });
    assert!(desk.state_of("host0-2").unwrap().get("/mode").is_err());
}

#[test]
fn silently_exited_host_is_replaced_once_it_is_lost() {
    let mut hosts = hosts("replaced");
    let desk = hosts.node(1, "desk");
    knows(&desk, "it is connected", &[("host0", State::Connected)]);
    // It is cut off from the others, and its link still runs.
    hosts.cut(0, 1);
    hosts.start(2, "");
    let _home = hosts.home(2);
    hosts.node(2, "robot").state().unwrap().set("/mode", "two").unwrap();
    knows(&desk, "it has its earlier name", &[("host0", State::Connected)]);
    has_mode(&desk, "host0", "two");
}

#[test]
fn two_hosts_of_one_name_are_read_by_their_display_names() {
    let mut hosts = hosts("twins");
    let desk = hosts.node(1, "desk");
    let _first = hosts.home(0);
    hosts.node(0, "one").state().unwrap().set("/mode", "one").unwrap();
    has_mode(&desk, "host0", "one");
    hosts.start(2, "");
    let _second = hosts.home(2);
    hosts.node(2, "two").state().unwrap().set("/mode", "two").unwrap();
    let both = [("host0", State::Connected), ("host0-2", State::Connected)];
    knows(&desk, "both are connected", &both);
    has_mode(&desk, "host0-2", "two");
    has_mode(&desk, "host0", "one");
    let second = desk.state_of("host0-2").unwrap();
    second.set("/mode", "three").unwrap();
    has_mode(&desk, "host0-2", "three");
    has_mode(&desk, "host0", "one");
    let replica = second.mirror("/mode").unwrap();
    second.set("/mode", "four").unwrap();
    eventually("it is followed", || {
        replica.get("/mode").is_ok_and(|read| read.value == Some("four".into()))
    });
    let mut statuses =
        desk.subscriber::<LinkStatus>("/_rnet/link").transient_local().open().unwrap();
    let problems = statuses.recv_timeout(LONG).unwrap().problems.join(" ");
    assert!(problems.contains("two hosts have this name"), "{problems}");
}
