//! Interfaces that the configuration names, and one that it does not.

use std::thread;
use std::time::Duration;

use super::killed::{both, start_with};
use super::net::Net;
use super::peer::Peer;

/// Packets of a host that scouts for others: two per second for each lane.
const QUESTIONS: u64 = 12;

/// A host with two interfaces, a host behind each of them, their numbers, and where these arrive.
fn two_interfaces(test: &str, named: Option<&str>) {
    let Some(mut net) = Net::new(test) else { return };
    let (one, two) = (net.host(), net.host());
    let behind = net.host_behind(&one);
    let _talker = Peer::actor(&one, "talk");
    let (listener, other) = (Peer::actor(&two, "listen"), Peer::actor(&behind, "listen"));
    for (host, name) in [(&two, "host2"), (&behind, "host3")] {
        start_with(host, name, [("RNET_NETWORK", "lan")]);
        both(host);
    }
    let until_asked = |questions: u64| {
        let from = one.packets("eth1", "rx");
        while one.packets("eth1", "rx") < from + questions {
            thread::sleep(Duration::from_millis(20)); // sleep: interval between two checks
        }
    };
    until_asked(1);
    let before = one.packets("eth1", "tx");
    let named = named.map(|named| ("RNET_INTERFACES", named));
    start_with(&one, "host1", [("RNET_NETWORK", "lan")].into_iter().chain(named));
    listener.wait("heard", 1);
    if named.is_none() {
        other.wait("heard", 1);
        assert!(one.packets("eth1", "tx") > before);
        return;
    }
    until_asked(QUESTIONS);
    assert_eq!(one.packets("eth1", "tx"), before, "neither an answer nor a scout leaves on it");
    assert_eq!(other.count("heard"), 0);
    listener.wait("heard", listener.count("heard") + 1);
}

#[test]
fn nothing_leaves_on_an_interface_that_is_not_named() {
    two_interfaces("interfaces::nothing_leaves_on_an_interface_that_is_not_named", Some("eth0"));
}

/// Control for the test above: a link on all interfaces.
#[test]
fn hosts_behind_all_interfaces_are_found_if_none_is_named() {
    two_interfaces("interfaces::hosts_behind_all_interfaces_are_found_if_none_is_named", None);
}
