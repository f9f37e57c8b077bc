//! Measured delays between hosts, compared with the truth: their monotonic clocks differ, and they share
//! `CLOCK_REALTIME`.

use std::io::Read;
use std::time::Duration;

use rnet::msgs::{LinkStatus, duration_to_ns};
use rnet::{Node, Subscriber, now_ns};

use super::killed::start;
use super::net::Net;
use super::peer::{ACTOR_LIMIT, Peer, say};
use super::traffic::common_ns;

const LONG: Duration = ACTOR_LIMIT;
const MESSAGES: usize = 100;

/// Sends in each message when the previous one was sent: the start and the end of the call.
pub fn stamp() {
    let node = Node::builder("stamper").open().unwrap();
    let mut stamps = node.publisher::<[u8]>("/stamps").open().unwrap();
    say("ready");
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let mut before = [0; 2];
    loop {
        let from = common_ns();
        stamps.send(&before.map(i64::to_le_bytes).concat()).unwrap();
        before = [from, common_ns()];
        std::thread::sleep(Duration::from_millis(5)); // sleep: the rate at which it sends
    }
}

/// The largest uncertainty that the link has reported since the last call; `None` if it has reported none.
fn uncertainty_ns(statuses: &mut Subscriber<LinkStatus>) -> Option<i64> {
    let mut stated = Vec::new();
    while let Some(status) = statuses.try_recv().unwrap() {
        let peers = status.peers.iter();
        stated.extend(
            peers.filter_map(|peer| duration_to_ns(peer.clock_offset_uncertainty.as_ref()?)),
        );
    }
    stated.into_iter().max()
}

/// Prints the largest error of the message delays, beyond the time of reading the clocks, and the
/// uncertainty that the link has reported.
pub fn measure() {
    let node = Node::builder("measurer").open().unwrap();
    let mut statuses = node.subscriber::<LinkStatus>("/_rnet/link").keep_all().open().unwrap();
    let mut stamps = node.subscriber::<[u8]>("/stamps").keep_all().open().unwrap();
    say("ready");
    // Before the clocks were compared a delay is unknown.
    while uncertainty_ns(&mut statuses).is_none() {
        stamps.recv_timeout(LONG).unwrap();
    }
    // When each message was sent by the shared clock, as this host has it: the earliest and the latest
    // time.
    let (mut last, mut worst_ns, mut compared) = (None, 0, 0);
    while compared < MESSAGES {
        let sample = stamps.recv_timeout(LONG).unwrap();
        let (before, own, after) = (common_ns(), now_ns(), common_ns());
        let ago = i64::try_from(own - sample.sent_ns()).unwrap();
        let word = |at: usize| i64::from_le_bytes(sample[at..at + 8].try_into().unwrap());
        let this = (sample.seq(), before - ago, after - ago);
        if let Some((seq, from, to)) = last.replace(this)
            && seq + 1 == this.0
        {
            worst_ns = worst_ns.max(word(0) - to).max(from - word(8));
            compared += 1;
        }
    }
    let stated_ns = loop {
        match uncertainty_ns(&mut statuses) {
            Some(ns) => break ns,
            None => drop(stamps.recv_timeout(LONG).unwrap()),
        }
    };
    say(&format!("delays {worst_ns} {stated_ns}"));
}

#[test]
fn delays_are_within_their_uncertainty() {
    let Some(mut net) = Net::new("delay::delays_are_within_their_uncertainty") else { return };
    let (one, two) = (net.host(), net.host());
    start(&one, "host1", None);
    start(&two, "host2", Some(&one));
    let _stamper = Peer::actor(&one, "stamp");
    let measurer = Peer::actor(&two, "measure");
    let reported = measurer.wait("delays", 1).0;
    let reported: Vec<i64> = reported.split(' ').map(|number| number.parse().unwrap()).collect();
    let (worst_ns, stated_ns) = (reported[0], reported[1]);
    println!("delays are wrong by {worst_ns} ns at most, and {stated_ns} ns are stated");
    assert!(worst_ns <= stated_ns);
}
