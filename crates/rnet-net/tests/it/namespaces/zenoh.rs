//! Zenoh between hosts: found, cut, found again.

use std::time::{Duration, Instant};

use super::net::{Net, Way};
use super::peer::{LIMIT, PORT, Peer};

/// How long to wait for a series before it is sent again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends a series each way until one has arrived completely on each lane. Frames in flight are lost when a
/// connection ends, which may happen at any time if packets are lost or the machine is busy: the series is
/// sent again, as the links do.
fn exchange((a, a_id): (&mut Peer, u64), (b, b_id): (&mut Peer, u64)) {
    send_series((a, a_id), (b, b_id));
    send_series((b, b_id), (a, a_id));
    assert_eq!((a.count("disorder"), b.count("disorder")), (0, 0));
}

fn send_series((from, from_id): (&mut Peer, u64), (to, to_id): (&mut Peer, u64)) {
    let series = ["Urgent", "Bulk"].map(|lane| format!("series {lane} 1000 from {from_id}"));
    let before = series.each_ref().map(|line| to.count(line));
    let begun = Instant::now();
    loop {
        from.send(to_id, 1000);
        let mut whole = series.iter().zip(before);
        if whole.all(|(line, before)| to.says_within(line, before + 1, PATIENCE)) {
            return;
        }
        assert!(begun.elapsed() < LIMIT, "no series from {from_id} comes whole to {to_id}");
        println!("sent again from {from_id} to {to_id} after {:?}", begun.elapsed());
    }
}

#[test]
fn cut_is_reported_to_both_and_ends_when_healed() {
    let Some(mut net) = Net::new("zenoh::cut_is_reported_to_both_and_ends_when_healed") else {
        return;
    };
    let (one, two) = (net.host(), net.host());
    let mut a = Peer::network(&one, 1, &[two.address()]);
    let mut b = Peer::network(&two, 2, &[one.address()]);
    let seconds = |peer: &Peer| peer.wait("ready", 1).0.parse::<i64>().unwrap();
    assert!(seconds(&b) >= seconds(&a) + 4000, "their clocks differ");
    a.wait("up 2", 1);
    b.wait("up 1", 1);
    exchange((&mut a, 1), (&mut b, 2));
    for (turn, way) in [Way::Both, Way::In, Way::Out].into_iter().enumerate() {
        let cut = Instant::now();
        two.lose(100, way);
        let gone = (a.wait("down 2", turn + 1).1 - cut, b.wait("down 1", turn + 1).1 - cut);
        let healed = Instant::now();
        two.heal();
        let back = (a.wait("up 2", turn + 2).1 - healed, b.wait("up 1", turn + 2).1 - healed);
        println!("cut {way:?}: reported after {gone:?}, back after {back:?}");
        exchange((&mut a, 1), (&mut b, 2));
    }
}

/// Neither the connecting nor the listening side sends an urgent packet without the mark.
#[test]
fn the_urgent_lane_is_marked_and_the_bulk_lane_is_not() {
    let Some(mut net) = Net::new("zenoh::the_urgent_lane_is_marked_and_the_bulk_lane_is_not")
    else {
        return;
    };
    let (one, two) = (net.host(), net.host());
    one.keep_to_marks(PORT);
    two.keep_to_marks(PORT);
    let mut a = Peer::network(&one, 1, &[]);
    let mut b = Peer::network(&two, 2, &[one.address()]);
    a.wait("up 2", 1);
    b.wait("up 1", 1);
    exchange((&mut a, 1), (&mut b, 2));
}

#[test]
fn host_is_found_again_after_reboot_or_address_change() {
    let Some(mut net) = Net::new("zenoh::host_is_found_again_after_reboot_or_address_change")
    else {
        return;
    };
    let (one, mut two) = (net.host(), net.host());
    let a = Peer::network(&one, 1, &[]);
    let b = Peer::network(&two, 2, &[one.address()]);
    a.wait("up 2", 1);
    b.wait("up 1", 1);
    let began = Instant::now();
    two.set_address(9);
    println!("another address: back after {:?}", a.wait("up 2", 2).1 - began);
    let began = Instant::now();
    two.reboot();
    println!("reboot: reported after {:?}", a.wait("down 2", 2).1 - began);
    let _b = Peer::network(&two, 3, &[one.address()]);
    a.wait("up 3", 1);
}

#[test]
fn frames_come_through_losses_a_narrow_cable_and_a_long_one() {
    let Some(mut net) = Net::new("zenoh::frames_come_through_losses_a_narrow_cable_and_a_long_one")
    else {
        return;
    };
    let (one, two, between) = (net.host(), net.host(), net.host());
    let _relay = Peer::relay(&between, one.address(), Duration::from_millis(20));
    let mut a = Peer::network(&one, 1, &[]);
    let mut b = Peer::network(&two, 2, &[between.address()]);
    a.wait("up 2", 1);
    b.wait("up 1", 1);
    exchange((&mut a, 1), (&mut b, 2));
    for host in [&one, &two] {
        host.shape(Some("20mbit"));
    }
    exchange((&mut a, 1), (&mut b, 2));
    one.lose(20, Way::In);
    exchange((&mut a, 1), (&mut b, 2));
    assert!(one.received_bytes() > 3 * 2 * 1000 * 16);
}

#[test]
fn hosts_of_a_lan_find_each_other_by_multicast() {
    let Some(mut net) = Net::new("zenoh::hosts_of_a_lan_find_each_other_by_multicast") else {
        return;
    };
    let (one, two) = (net.host(), net.host());
    let mut a = Peer::lan(&one, 1);
    let began = Instant::now();
    let mut b = Peer::lan(&two, 2);
    println!("found after {:?}", b.wait("up 1", 1).1 - began);
    a.wait("up 2", 1);
    exchange((&mut a, 1), (&mut b, 2));
    two.lose(100, Way::Both);
    a.wait("down 2", 1);
    b.wait("down 1", 1);
    let healed = Instant::now();
    two.heal();
    println!("back after {:?}", a.wait("up 2", 2).1 - healed);
    b.wait("up 1", 2);
}
