//! Interfaces that the configuration names, and one that it does not.

use std::thread;
use std::time::Duration;

use super::killed::{both, start_with};
use super::net::Net;
use super::peer::Peer;

/// Packets of a host that asks for others: it does so twice a second, for each lane.
const QUESTIONS: u64 = 12;

/// One with two interfaces, behind each of which there is a host, numbers of it, and where they come.
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
            thread::sleep(Duration::from_millis(20)); // sleep: between two looks at a condition
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
    assert_eq!(one.packets("eth1", "tx"), before, "nothing leaves on it: no answer, no question");
    assert_eq!(other.count("heard"), 0);
    listener.wait("heard", listener.count("heard") + 1);
}

#[test]
fn nothing_leaves_on_an_interface_that_is_not_named() {
    two_interfaces("interfaces::nothing_leaves_on_an_interface_that_is_not_named", Some("eth0"));
}

/// What the test above would see of a link that is on all.
#[test]
fn hosts_behind_all_interfaces_are_met_if_none_is_named() {
    two_interfaces("interfaces::hosts_behind_all_interfaces_are_met_if_none_is_named", None);
}
