//! Hosts that take another address while numbers cross.

use std::time::Instant;

use super::killed::{both, start, start_with};
use super::net::{Host, Net};
use super::peer::Peer;

/// The host to which numbers are sent takes another address twice; in between, if `both`, the other host
/// does.
fn change(test: &str, both: bool, link: impl Fn(&Host, &Host)) {
    let Some(mut net) = Net::new(test) else { return };
    let (mut one, mut two) = (net.host(), net.host());
    let listener = Peer::actor(&two, "listen");
    let mut talker = Peer::actor(&one, "talk");
    link(&one, &two);
    let more = |count: usize| listener.wait("heard", listener.count("heard") + count).1;
    more(1);
    for (last, comes_from) in [(9, false), (10, true), (11, false)] {
        if comes_from && !both {
            continue;
        }
        let host = if comes_from { &mut one } else { &mut two };
        let changed = Instant::now();
        host.set_address(last);
        let back = more(1) - changed;
        let way = if comes_from { "from" } else { "to" };
        println!("numbers {way} the host: a hundred more after {back:?}");
        more(1);
    }
    talker.end_input();
    let sent: u64 = talker.wait("sent", 1).0.parse().unwrap();
    let (counts, _) = listener.wait(&format!("heard {sent}:"), 1);
    let counts: Vec<u64> = counts.split(' ').map(|number| number.parse().unwrap()).collect();
    println!("{sent} sent, {} received, {} lost", counts[0], counts[1]);
    assert_eq!(counts[0] + counts[1], sent);
    assert_eq!(listener.count("twice"), 0);
}

#[test]
fn connecting_host_is_heard_again() {
    // A host to which others connect is not searched for at another address.
    change("addresses::connecting_host_is_heard_again", false, |one, two| {
        start(one, "host1", None);
        start(two, "host2", Some(one));
    });
}

#[test]
fn lan_host_is_heard_again() {
    change("addresses::lan_host_is_heard_again", true, |one, two| {
        for (host, name) in [(one, "host1"), (two, "host2")] {
            start_with(host, name, [("RNET_NETWORK", "lan")]);
        }
    });
}

#[test]
fn host_plugged_in_later_is_heard() {
    let test = "addresses::host_plugged_in_later_is_heard";
    let Some(mut net) = Net::new(test) else { return };
    let (one, two) = (net.host(), net.host());
    let listener = Peer::actor(&two, "listen");
    let _talker = Peer::actor(&one, "talk");
    two.unplug();
    for (host, name) in [(&one, "host1"), (&two, "host2")] {
        start_with(host, name, [("RNET_NETWORK", "lan")]);
    }
    // A standby starts once there is a link.
    both(&two);
    let plugged = Instant::now();
    two.heal();
    println!("plugged in: heard after {:?}", listener.wait("heard", 1).1 - plugged);
}
