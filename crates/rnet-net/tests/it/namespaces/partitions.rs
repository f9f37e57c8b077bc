//! Random partition schedules over hosts that the program `rnet-link` joins, in mode `lan` or by addresses.
//!
//! Like `tests/partitions` over an in-memory network; that file states what is checked. Here cables are
//! pulled, lose, delay and reorder packets, connections are reset, and links are killed.

use std::ops::Range;
use std::time::{Duration, Instant};

use rnet::msgs::LinkStatus;
use rnet::{Node, OnFull};
use rustix::process::Signal;

use super::killed::{both, start_with};
use super::net::{Cut, Host, Net, Way};
use super::peer::{ACTOR_LIMIT, PORT, Peer, say};
use super::runs::{EventLog, Outcome, Rejoined, run_all};
use super::traffic::{Listener, ReceiveCounts, Talker, common_ns};
use crate::random::Random;

/// The time-out for any expected event.
const WAIT: Duration = ACTOR_LIMIT;
/// The interval of a publisher's messages. A machine of four cores can run four schedules at once,
/// unoptimized.
const PAUSE_MS: Range<u64> = 5..20;
/// A link publishes its status each second.
const SOON: Duration = Duration::from_secs(5);
/// A delaying cable delays each packet by this time. A millisecond is a dozen packets.
const LATE_MS: Range<u64> = 0..40;
/// The interval between two checks of a condition.
const LOOK: Duration = Duration::from_millis(2);

/// The hosts and topics that the seed of a schedule determines, for the test and for the actors of its
/// hosts.
struct Plan {
    hosts: usize,
    is_lan: bool,
    topics: Vec<Topic>,
    /// For the later steps.
    random: Random,
}

struct Topic {
    name: String,
    is_reliable: bool,
    publisher: usize,
    subscribers: Vec<usize>,
    log_len_bytes: u64,
    talker: u64,
}

impl Plan {
    fn of(seed: u64) -> Self {
        let mut random = Random(seed);
        let hosts = 2 + random.below(3);
        let is_lan = random.chance(1, 2);
        let mut topics = Vec::new();
        for publisher in 0..hosts {
            for (kind, is_reliable) in [("best_effort", false), ("reliable", true)] {
                let others = (0..hosts).filter(|host| *host != publisher);
                topics.push(Topic {
                    name: format!("/{kind}{publisher}"),
                    is_reliable,
                    publisher,
                    subscribers: others.filter(|_| random.chance(3, 4)).collect(),
                    log_len_bytes: 1 << random.in_range(16..21),
                    talker: random.next(),
                });
            }
        }
        // Without a subscriber the test would have nothing to wait for.
        if topics.iter().all(|topic| topic.subscribers.is_empty()) {
            topics[0].subscribers.push(1);
        }
        Plan { hosts, is_lan, topics, random }
    }
}

/// The node of a host. It answers the test's requests: whether it receives from all again, how much it has
/// sent, and whether it has all sent messages.
pub fn actor(host: &str, seed: &str) {
    let (host, plan) = (host.parse::<usize>().unwrap(), Plan::of(seed.parse().unwrap()));
    let node = Node::builder("node").open().unwrap();
    let subscribed = plan.topics.iter().filter(|topic| topic.subscribers.contains(&host));
    let listeners: Vec<Listener> = subscribed
        .map(|topic| Listener::start(&node, host, topic.name.clone(), topic.is_reliable))
        .collect();
    let own = plan.topics.iter().filter(|topic| topic.publisher == host);
    let publishers: Vec<_> = own
        .map(|topic| {
            let publisher = node.publisher::<[u8]>(&topic.name).log_len_bytes(topic.log_len_bytes);
            let publisher =
                if topic.is_reliable { publisher.reliable(OnFull::Wait(WAIT)) } else { publisher };
            (topic, publisher.open().unwrap())
        })
        .collect();
    say("ready");
    let talkers: Vec<Talker> = publishers
        .into_iter()
        .map(|(topic, publisher)| {
            publisher.wait_for_subscribers_timeout(topic.subscribers.len(), WAIT).unwrap();
            Talker::start(publisher, topic.name.clone(), PAUSE_MS, Random(topic.talker))
        })
        .collect();
    say("talks");
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["rejoin", from_ns] => {
                let from_ns = from_ns.parse().unwrap();
                listeners.iter().for_each(|listener| listener.wait_from(from_ns));
                let wrong = wait(&node, &listeners, |counts, _| counts.rejoined_ns.is_some());
                let all = listeners.iter().filter_map(|listener| listener.counts().rejoined_ns);
                say(&format!("rejoined {} {wrong}", all.max().unwrap_or(from_ns)));
            }
            ["sent"] => {
                let sent = talkers.iter().map(|talker| {
                    let count = talker.sent.load(std::sync::atomic::Ordering::Relaxed);
                    format!("{}={count}", talker.topic)
                });
                say(&format!("sent {}", sent.collect::<Vec<_>>().join(" ")));
            }
            ["until", ref sent @ ..] => {
                let sent = |topic: &str| {
                    let mut all = sent.iter().filter_map(|of| of.split_once('='));
                    all.find(|of| of.0 == topic).unwrap().1.parse::<u64>().unwrap()
                };
                let wrong = wait(&node, &listeners, |counts, topic| {
                    counts.next >= sent(topic) && counts.balance() == 0
                });
                let all: Vec<ReceiveCounts> = listeners.iter().map(Listener::counts).collect();
                let sum = |of: fn(&ReceiveCounts) -> u64| all.iter().map(of).sum::<u64>();
                let (received, lost) =
                    (sum(|counts| counts.received), sum(|counts| counts.lost.total()));
                say(&format!("ended {received} {lost} {} {wrong}", sum(|counts| counts.peer_lost)));
            }
            _ => panic!("{line}"),
        }
    }
    drop(listeners);
    talkers.into_iter().for_each(Talker::end);
    say("gone");
}

/// Waits until the condition holds for all; returns the failures, or nothing.
fn wait(
    node: &Node,
    listeners: &[Listener],
    done: impl Fn(&ReceiveCounts, &str) -> bool,
) -> String {
    let began = Instant::now();
    loop {
        let open: Vec<String> = listeners
            .iter()
            .filter(|of| !done(&of.counts(), &of.topic) || of.counts().wrong.is_some())
            .map(|of| {
                let (topic, counts) = (&of.topic, of.counts());
                format!("host{} of {topic}: balance {}, {counts:?}", of.host, counts.balance())
            })
            .collect();
        let is_wrong = listeners.iter().any(|of| of.counts().wrong.is_some());
        if open.is_empty() {
            return String::new();
        }
        if is_wrong || began.elapsed() >= WAIT {
            return format!("{}; {}", open.join("; "), links(node));
        }
        std::thread::sleep(LOOK); // sleep: interval between two checks
    }
}

/// The status of this host's link about its peers.
fn links(node: &Node) -> String {
    let mut statuses =
        node.subscriber::<LinkStatus>("/_rnet/link").transient_local().open().unwrap();
    let Ok(status) = statuses.recv_timeout(SOON) else { return "no link is running".into() };
    let peers = status.peers.iter().map(|peer| {
        let topics = peer.topics.iter().map(|topic| {
            let (way, why) = (topic.direction(), topic.held_back());
            format!(
                "{} {way:?}: {} sent, {why:?} {}",
                topic.name, topic.messages, topic.held_back_text
            )
        });
        let topics = topics.collect::<Vec<_>>().join(", ");
        format!("{} {:?} at {} {}: {topics}", peer.host, peer.state(), peer.address, peer.text)
    });
    format!("link in term {}: {}", status.term, peers.collect::<Vec<_>>().join("; "))
}

fn run(test: &str, seed: u64) -> Outcome {
    let mut net = Net::new(test).expect("namespaces are available");
    let mut plan = Plan::of(seed);
    let hosts: Vec<Host> = (0..plan.hosts).map(|_| net.host()).collect();
    let mut happened = EventLog::new(seed);
    happened.note(&format!("{} hosts{}", plan.hosts, if plan.is_lan { " of a LAN" } else { "" }));
    let mut peers: Vec<Peer> = hosts
        .iter()
        .enumerate()
        .map(|(index, host)| Peer::actor(host, &format!("partitions {index} {seed}")))
        .collect();
    for (index, host) in hosts.iter().enumerate() {
        let name = format!("host{index}");
        if plan.is_lan {
            start_with(host, &name, [("RNET_NETWORK", "lan")]);
            continue;
        }
        let before = hosts[..index].iter().map(|other| format!("tcp/{}:{PORT}", other.address()));
        let before = before.collect::<Vec<_>>().join(",");
        let listen = format!("tcp/0.0.0.0:{PORT}");
        start_with(host, &name, [("RNET_LISTEN", listen.as_str()), ("RNET_CONNECT", &before)]);
    }
    peers.iter().for_each(|peer| drop(peer.wait("talks", 1)));
    let mut outcome = Outcome { schedules: 1, ..Outcome::default() };
    let mut turn = 1;
    rejoin(&mut peers, turn, &mut happened);
    let random = &mut plan.random;
    for _ in 0..random.in_range(1..4) {
        std::thread::sleep(random.ms(0..400)); // sleep: how long the network is whole
        let mut cut = partition(&hosts.iter().collect::<Vec<_>>(), random);
        happened.note(&cut);
        std::thread::sleep(random.ms(10..2500)); // sleep: how long the network is cut
        if random.chance(1, 4) {
            let host = random.below(plan.hosts);
            cut = format!("{cut}, the link of host{host} killed");
            hosts[host].signal(both(&hosts[host])[0], Signal::KILL);
            happened.note(&format!("the link of host{host} is killed"));
            std::thread::sleep(random.ms(0..200)); // sleep: how long the next one cannot reach all
        }
        hosts.iter().for_each(Host::heal);
        happened.note("healed");
        turn += 1;
        let after = rejoin(&mut peers, turn, &mut happened);
        happened.note("all rejoined");
        outcome.rejoined.push(Rejoined { after, seed, cut });
    }
    // The last messages have arrived, and all messages are accounted for.
    peers.iter_mut().for_each(|peer| peer.tell("sent"));
    let sent: Vec<String> = peers.iter().map(|peer| peer.wait("sent", 1).0).collect();
    let sent = sent.join(" ");
    peers.iter_mut().for_each(|peer| peer.tell(&format!("until {sent}")));
    for (host, peer) in peers.iter().enumerate() {
        let ended = peer.wait("ended", 1).0;
        let [received, lost, peer_lost, ref wrong @ ..] = ended.split(' ').collect::<Vec<_>>()[..]
        else {
            panic!("{ended}");
        };
        happened.last = format!("sent: {sent}");
        assert!(wrong.is_empty(), "host{host}: {}", wrong.join(" "));
        outcome.received += received.parse::<u64>().unwrap();
        outcome.lost += lost.parse::<u64>().unwrap();
        outcome.peer_lost += peer_lost.parse::<u64>().unwrap();
    }
    peers.iter_mut().for_each(Peer::end_input);
    peers.iter().for_each(|peer| drop(peer.wait("gone", 1)));
    outcome
}

/// Waits until every subscriber receives messages that are sent from now on; returns how long that took.
fn rejoin(peers: &mut [Peer], turn: usize, happened: &mut EventLog) -> Duration {
    let from_ns = common_ns();
    peers.iter_mut().for_each(|peer| peer.tell(&format!("rejoin {from_ns}")));
    happened.last = "all is heard again".into();
    let reports: Vec<String> = peers.iter().map(|peer| peer.wait("rejoined", turn).0).collect();
    let reports: Vec<(&str, &str)> =
        reports.iter().map(|report| report.split_once(' ').unwrap_or((report, ""))).collect();
    let wrong: Vec<&str> =
        reports.iter().map(|of| of.1).filter(|wrong| !wrong.is_empty()).collect();
    assert!(wrong.is_empty(), "not heard again: {}", wrong.join("\n"));
    let last_ns = reports.iter().map(|of| of.0.parse().unwrap()).max().unwrap_or(from_ns);
    Duration::from_nanos((last_ns - from_ns).unsigned_abs())
}

/// Cuts some connections, or ends them; returns a description.
pub fn partition(hosts: &[&Host], random: &mut Random) -> String {
    let count = hosts.len();
    let side: Vec<bool> = (0..count).map(|_| random.chance(1, 2)).collect();
    let alone = random.below(count);
    let kind = random.below(8);
    // The hosts whose packets each host drops.
    let mut dropped = vec![Vec::new(); count];
    let mut drop = |at: usize, from: usize| dropped[at].push(hosts[from].address());
    for a in 0..count {
        for b in 0..a {
            match kind {
                0 if random.chance(1, 2) => {}
                1 if a != alone && b != alone => {}
                2 if side[a] == side[b] => {}
                3 if random.chance(1, 2) => drop(a, b),
                3 => drop(b, a),
                0..=2 | 4 => {
                    drop(a, b);
                    drop(b, a);
                }
                _ => {}
            }
        }
    }
    let how = if kind == 4 { Cut::Reset } else { Cut::Drop };
    for (host, from) in hosts.iter().zip(&dropped).filter(|(_, from)| !from.is_empty()) {
        host.cut(from, how);
    }
    match kind {
        5 => hosts.iter().for_each(|host| host.lose(20, Way::In)),
        6 => hosts[alone].unplug(),
        7 => hosts[alone].delay(LATE_MS, random),
        _ => {}
    }
    let kinds = [
        "some pairs",
        "one host",
        "two halves",
        "one direction",
        "connections reset",
        "20 % lost",
        "a cable pulled",
        "packets delayed and reordered",
    ];
    kinds[kind].into()
}

/// `None` if this machine cannot have namespaces.
fn run_in_namespaces(test: &str, count: u64) -> Option<Outcome> {
    Net::new(test).map(|_| run_all(count, |seed| run(test, seed)))
}

#[test]
fn a_few_partition_schedules() {
    // The time to heal is published, and judged only by the soak: a busy machine needs longer.
    run_in_namespaces("partitions::a_few_partition_schedules", 2);
}

#[test]
#[ignore = "for `make soak`, which has four run at once: they wait most of the time"]
fn soak_partition_schedules() {
    if let Some(outcome) = run_in_namespaces("partitions::soak_partition_schedules", 1000) {
        outcome.judge();
    }
}
