//! One schedule.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rnet::{OnFull, PublisherOptions};

use crate::common::LONG;
use crate::hosts::Hosts;
use crate::random::Random;
use crate::traffic::{Listener, Talker};

/// A cut of this length ends connections.
const LEASE: Duration = Duration::from_millis(1200);

/// One that runs for longer hangs.
const LIMIT: Duration = Duration::from_secs(600);
/// For anything that is going to happen: a machine that does more than it can has narrow networks.
const WAIT: Duration = Duration::from_secs(120);

/// Between two looks at a condition.
const LOOK: Duration = Duration::from_millis(5);

/// What schedules have come to.
#[derive(Default)]
pub struct Outcome {
    schedules: u64,
    healings: u64,
    pub received: u64,
    lost: u64,
    peer_lost: u64,
    /// From healing a cut that had ended connections to the first message that was sent after it, in ms.
    rejoined_ms: Vec<f64>,
}

impl Outcome {
    pub fn add(&mut self, other: Outcome) {
        self.schedules += other.schedules;
        self.healings += other.healings;
        self.received += other.received;
        self.lost += other.lost;
        self.peer_lost += other.peer_lost;
        self.rejoined_ms.extend(other.rejoined_ms);
    }

    pub fn summary(&mut self) -> String {
        let Outcome { schedules, healings, received, lost, peer_lost, rejoined_ms } = self;
        rejoined_ms.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let last = rejoined_ms.len().saturating_sub(1);
            rejoined_ms.get((last as f64 * share) as usize).copied().unwrap_or_default()
        };
        format!(
            "partitions: schedules={schedules} healings={healings} received={received} lost={lost} \
             PeerLost={peer_lost}\npartitions: rejoined after cuts of {LEASE:?} and more: n={} median={:.0} ms \
             p99={:.0} ms max={:.0} ms",
            rejoined_ms.len(),
            at(0.5),
            at(0.99),
            at(1.0)
        )
    }
}

/// What a schedule has done, which is shown if it fails.
struct Happened {
    seed: u64,
    began: Instant,
    said: Vec<String>,
    /// What was waited for last.
    last: String,
}

impl Happened {
    fn note(&mut self, what: &str) {
        self.said.push(format!("{} ms: {what}", self.began.elapsed().as_millis()));
    }
}

impl Drop for Happened {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (said, last) = (self.said.join(", "), &self.last);
            eprintln!("PARTITIONS_SEED={} has failed: {said}; {last}", self.seed);
        }
    }
}

/// Runs the schedule of a seed.
pub fn run(seed: u64) -> Outcome {
    let mut random = Random(seed);
    let count = 2 + random.below(3);
    let mut hosts = Hosts::for_long(&format!("partitions of seed {seed}"), count, LIMIT);
    let nodes: Vec<_> = (0..count).map(|host| hosts.node(host, "node")).collect();
    let began = Instant::now();

    let (mut listeners, mut publishers) = (Vec::new(), Vec::new());
    for (host, node) in nodes.iter().enumerate() {
        for (kind, reliable) in [("best_effort", false), ("reliable", true)] {
            let topic = format!("/{kind}{host}");
            let mut options = PublisherOptions::new().log_len_bytes(1 << random.in_range(16..21));
            if reliable {
                options = options.reliable(OnFull::Wait(WAIT));
            }
            let publisher = node.publisher_with::<[u8]>(&topic, options).unwrap();
            let before = listeners.len();
            for (other, node) in nodes.iter().enumerate() {
                if other != host && random.chance(3, 4) {
                    listeners.push(Listener::start(node, other, topic.clone(), reliable, began));
                }
            }
            publisher.wait_for_subscribers(listeners.len() - before, LONG).unwrap();
            publishers.push((publisher, topic));
        }
    }
    let mut talkers: Vec<_> = publishers
        .into_iter()
        .map(|(publisher, topic)| Talker::start(publisher, topic, began, Random(random.next())))
        .collect();
    for listener in &listeners {
        eventually("messages come", || listener.heard().next > 0);
    }
    let mut outcome = Outcome { schedules: 1, ..Outcome::default() };
    let mut happened = Happened { seed, began, said: Vec::new(), last: String::new() };
    for _ in 0..random.in_range(1..4) {
        std::thread::sleep(random.ms(0..400)); // sleep: for how long the network is whole
        let cut = Instant::now();
        happened.note(partition(&hosts, count, &mut random));
        std::thread::sleep(random.ms(10..2000)); // sleep: for how long the network is cut
        if random.chance(1, 3) {
            let host = random.below(count);
            hosts.stop(host);
            std::thread::sleep(random.ms(0..200)); // sleep: for how long there is no link
            hosts.start(host, "");
            happened.note(&format!("another link of host{host}"));
        }
        let ended = cut.elapsed() >= LEASE;
        happened.note("healed");
        heal(&hosts, count, &listeners, began, &mut outcome, ended);
    }
    // What was sent last has come, and all is accounted for.
    for listener in &listeners {
        let of = talkers.iter().find(|talker| talker.topic == listener.topic).unwrap();
        let sent = of.sent.load(Ordering::Relaxed);
        eventually(&format!("host{} hears {} to its end", listener.host, of.topic), || {
            let heard = listener.heard();
            happened.last = format!("{sent} sent, {heard:?}, balance {}", heard.balance());
            heard.next >= sent && (heard.balance() == 0 || heard.wrong.is_some())
        });
        let heard = listener.heard();
        assert!(heard.wrong.is_none(), "host{} of {}: {heard:?}", listener.host, listener.topic);
        outcome.received += heard.received;
        outcome.lost += heard.lost.total();
        outcome.peer_lost += heard.peer_lost;
    }
    drop(listeners);
    talkers.drain(..).for_each(Talker::end);
    outcome
}

fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < WAIT, "it never happened: {what}");
        std::thread::sleep(LOOK); // sleep: between two looks at a condition
    }
}

/// Cuts some connections, or ends them; says what it did.
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
                // The connection ends and comes back.
                4 => hosts.reset(a, b),
                _ => {}
            }
        }
    }
    ["some pairs", "one host", "two halves", "one direction", "all connections ended"][kind]
}

/// Heals all, and waits until all hear what is sent by then.
fn heal(
    hosts: &Hosts,
    count: usize,
    listeners: &[Listener],
    began: Instant,
    outcome: &mut Outcome,
    ended: bool,
) {
    let healed_ns = began.elapsed().as_nanos() as u64;
    for listener in listeners {
        let mut heard = listener.heard.lock().unwrap();
        (heard.from_ns, heard.rejoined_ns) = (healed_ns, None);
    }
    for a in 0..count {
        for b in 0..a {
            hosts.heal(a, b);
        }
    }
    outcome.healings += 1;
    for listener in listeners {
        let what = format!("host{} hears {} again", listener.host, listener.topic);
        eventually(&what, || {
            let heard = listener.heard();
            heard.rejoined_ns.is_some() || heard.wrong.is_some()
        });
        let rejoined_ns = listener.heard().rejoined_ns;
        if ended && let Some(rejoined_ns) = rejoined_ns {
            outcome.rejoined_ms.push((rejoined_ns - healed_ns) as f64 / 1e6);
        }
    }
}
