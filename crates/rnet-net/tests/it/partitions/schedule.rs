//! One schedule.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rnet::OnFull;

use super::runs::{EventLog, Outcome, Rejoined};
use super::traffic::{Listener, Talker, common_ns};
use crate::common::LONG;
use crate::hosts::Hosts;
use crate::random::Random;

/// A schedule that runs longer hangs.
const LIMIT: Duration = Duration::from_secs(600);
/// The time-out for any expected event: on an overloaded machine networks are slow.
const WAIT: Duration = Duration::from_secs(120);

/// The interval between two checks of a condition.
const LOOK: Duration = Duration::from_millis(5);

/// Runs the schedule of a seed.
pub fn run(seed: u64) -> Outcome {
    let mut random = Random(seed);
    let count = 2 + random.below(3);
    let mut hosts = Hosts::for_long(&format!("partitions of seed {seed}"), count, LIMIT);
    let nodes: Vec<_> = (0..count).map(|host| hosts.node(host, "node")).collect();

    let (mut listeners, mut publishers) = (Vec::new(), Vec::new());
    for (host, node) in nodes.iter().enumerate() {
        for (kind, reliable) in [("best_effort", false), ("reliable", true)] {
            let topic = format!("/{kind}{host}");
            let mut publisher =
                node.publisher::<[u8]>(&topic).log_len_bytes(1 << random.in_range(16..21));
            if reliable {
                publisher = publisher.reliable(OnFull::Wait(WAIT));
            }
            let publisher = publisher.open().unwrap();
            let before = listeners.len();
            for (other, node) in nodes.iter().enumerate() {
                if other != host && random.chance(3, 4) {
                    listeners.push(Listener::start(node, other, topic.clone(), reliable));
                }
            }
            publisher.wait_for_subscribers_timeout(listeners.len() - before, LONG).unwrap();
            publishers.push((publisher, topic));
        }
    }
    let mut talkers: Vec<_> = publishers
        .into_iter()
        .map(|(publisher, topic)| Talker::start(publisher, topic, 1..8, Random(random.next())))
        .collect();
    for listener in &listeners {
        eventually("messages come", || listener.counts().next > 0);
    }
    let mut outcome = Outcome { schedules: 1, ..Outcome::default() };
    let mut happened = EventLog::new(seed);
    for _ in 0..random.in_range(1..4) {
        std::thread::sleep(random.ms(0..400)); // sleep: how long the network is whole
        let cut = partition(&hosts, count, &mut random);
        happened.note(cut);
        std::thread::sleep(random.ms(10..2000)); // sleep: how long the network is cut
        if random.chance(1, 3) {
            let host = random.below(count);
            hosts.stop(host);
            std::thread::sleep(random.ms(0..200)); // sleep: how long the host has no link
            hosts.start(host, "");
            happened.note(&format!("another link of host{host}"));
        }
        happened.note("healed");
        let after = heal(&hosts, count, &listeners);
        outcome.rejoined.push(Rejoined { after, seed, cut: cut.into() });
    }
    // The last messages have arrived, and all messages are accounted for.
    for listener in &listeners {
        let of = talkers.iter().find(|talker| talker.topic == listener.topic).unwrap();
        let sent = of.sent.load(Ordering::Relaxed);
        eventually(&format!("host{} hears {} to its end", listener.host, of.topic), || {
            let counts = listener.counts();
            happened.last = format!("{sent} sent, {counts:?}, balance {}", counts.balance());
            counts.next >= sent && (counts.balance() == 0 || counts.wrong.is_some())
        });
        let counts = listener.counts();
        assert!(counts.wrong.is_none(), "host{} of {}: {counts:?}", listener.host, listener.topic);
        outcome.received += counts.received;
        outcome.lost += counts.lost.total();
        outcome.peer_lost += counts.peer_lost;
    }
    drop(listeners);
    talkers.drain(..).for_each(Talker::end);
    outcome
}

fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < WAIT, "time-out while waiting until {what}");
        std::thread::sleep(LOOK); // sleep: interval between two checks
    }
}

/// Cuts some connections, or ends them; returns a description.
fn partition(hosts: &Hosts, count: usize, random: &mut Random) -> &'static str {
    let side: Vec<bool> = (0..count).map(|_| random.chance(1, 2)).collect();
    let alone = random.below(count);
    let kind = random.below(5);
    for a in 0..count {
        for b in 0..a {
            match kind {
                // Each connection by itself.
                0 if random.chance(1, 2) => hosts.cut(a, b),
                // One host.
                1 if a == alone || b == alone => hosts.cut(a, b),
                // Two halves.
                2 if side[a] != side[b] => hosts.cut(a, b),
                // One direction.
                3 if random.chance(1, 2) => hosts.cut_one_way(a, b),
                3 => hosts.cut_one_way(b, a),
                // The connection ends and is made again.
                4 => hosts.reset(a, b),
                _ => {}
            }
        }
    }
    ["some pairs", "one host", "two halves", "one direction", "all connections ended"][kind]
}

/// Heals all cuts, and waits until all receive messages sent after that; returns how long that took.
fn heal(hosts: &Hosts, count: usize, listeners: &[Listener]) -> Duration {
    let healed_ns = common_ns();
    listeners.iter().for_each(|listener| listener.wait_from(healed_ns));
    for a in 0..count {
        for b in 0..a {
            hosts.heal(a, b);
        }
    }
    let mut last_ns = healed_ns;
    for listener in listeners {
        let what = format!("host{} hears {} again", listener.host, listener.topic);
        eventually(&what, || {
            let counts = listener.counts();
            counts.rejoined_ns.is_some() || counts.wrong.is_some()
        });
        last_ns = last_ns.max(listener.counts().rejoined_ns.unwrap_or(last_ns));
    }
    Duration::from_nanos((last_ns - healed_ns).unsigned_abs())
}
