//! Reliable topics over a cut: messages within the budget arrive in order; the rest is counted as lost by
//! the link.

use crate::common;
use crate::hosts;

use common::{LONG, eventually};
use hosts::Hosts;
use rnet::{Error, Node, OnFull, Publisher, Subscriber};
use rnet_net::config::OfflineLimits;

/// The cost of a message beside its bytes.
const COST: u64 = 64;

/// Waits without limit for a present reader: nothing here may block it.
fn publisher(node: &Node, topic: &str) -> Publisher<[u8]> {
    node.publisher(topic).reliable(OnFull::Wait(LONG)).open().unwrap()
}

fn subscriber(node: &Node, topic: &str) -> Subscriber<[u8]> {
    node.subscriber(topic).reliable().open().unwrap()
}

fn message(number: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![number as u8; len.max(8)];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn send(publisher: &mut Publisher<[u8]>, numbers: std::ops::Range<u64>, len: usize) {
    for number in numbers {
        publisher.send(&message(number, len)).unwrap();
    }
}

/// Reads up to message `last`: all received messages are in order and intact. Returns how many came.
fn read_to(subscriber: &mut Subscriber<[u8]>, first: u64, last: u64, len: usize) -> u64 {
    let (mut next, mut count) = (first, 0);
    while next <= last {
        match subscriber.recv_timeout(LONG) {
            Ok(got) => {
                let number = u64::from_le_bytes(got[..8].try_into().unwrap());
                assert!(number >= next, "message {number} after {next}");
                assert!(*got == message(number, len)[..], "message {number} is corrupt");
                (next, count) = (number + 1, count + 1);
            }
            Err(Error::PeerLost { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    // The missing ones are counted when no more messages are found.
    assert!(subscriber.try_recv().unwrap().is_none());
    count
}

/// A node on each host, and a topic between them of which one message has arrived.
fn begun(hosts: &Hosts, len: usize) -> ([Node; 2], Publisher<[u8]>, Subscriber<[u8]>) {
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let (mut publisher, mut subscriber) = (publisher(&from, "/t"), subscriber(&to, "/t"));
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    send(&mut publisher, 0..1, len);
    assert_eq!(read_to(&mut subscriber, 0, 0, len), 1);
    ([from, to], publisher, subscriber)
}

/// Cuts the cable and waits until both hosts have lost each other.
fn cut(hosts: &Hosts, publisher: &Publisher<[u8]>) {
    hosts.cut(0, 1);
    eventually("the other host is lost", || publisher.subscriber_count() == 0);
}

#[test]
fn messages_within_the_budget_survive_a_cut() {
    let hosts = Hosts::new("survives a cut", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    // Each topic has more messages than a log keeps of read ones, and fits the budget.
    let topics: [(usize, u64); 4] = [(22, 60_000), (2000, 4000), (100_000, 100), (3_000_000, 4)];
    let mut pairs: Vec<_> = (topics.iter().enumerate())
        .map(|(at, _)| {
            let topic = format!("/t{at}");
            (publisher(&from, &topic), subscriber(&to, &topic))
        })
        .collect();
    for (publisher, _) in &pairs {
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    }
    for ((publisher, subscriber), (len, _)) in pairs.iter_mut().zip(topics) {
        send(publisher, 0..2, len);
        assert_eq!(read_to(subscriber, 0, 1, len), 2);
    }
    // Some are in flight as it happens.
    hosts.cut(0, 1);
    for ((publisher, _), (len, _)) in pairs.iter_mut().zip(topics) {
        send(publisher, 2..3, len);
    }
    cut(&hosts, &pairs[0].0);
    for ((publisher, _), (len, count)) in pairs.iter_mut().zip(topics) {
        send(publisher, 3..count, len);
    }
    hosts.heal(0, 1);
    for ((publisher, subscriber), (len, count)) in pairs.iter_mut().zip(topics) {
        send(publisher, count..count + 1, len);
        assert_eq!(read_to(subscriber, 2, count, len), count - 1, "of {len} bytes");
        assert_eq!(subscriber.lost().total(), 0);
    }
}

#[test]
fn several_cuts_lose_nothing() {
    let hosts = Hosts::new("several cuts", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let (mut publisher, mut subscriber) = (publisher(&from, "/t"), subscriber(&to, "/t"));
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    for round in 0..3 {
        let first = round * 2000;
        send(&mut publisher, first..first + 500, 1000);
        cut(&hosts, &publisher);
        send(&mut publisher, first + 500..first + 2000, 1000);
        hosts.heal(0, 1);
        assert_eq!(read_to(&mut subscriber, first, first + 1999, 1000), 2000);
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    }
    assert_eq!(subscriber.lost().total(), 0);
}

#[test]
fn messages_beyond_the_budget_count_as_lost_by_the_link() {
    const LIMIT: u64 = 1 << 20;
    let config = format!("[[network.topic]]\ntopic = \"/t\"\nresend_limit_bytes = {LIMIT}");
    let hosts = Hosts::with_config("beyond the budget", &[&config, ""]);
    let (_nodes, mut publisher, mut subscriber) = begun(&hosts, 1000);
    cut(&hosts, &publisher);
    let (count, fits) = (8000, LIMIT / (1000 + COST));
    send(&mut publisher, 1..count, 1000);
    hosts.heal(0, 1);
    send(&mut publisher, count..count + 1, 1000);
    let got = read_to(&mut subscriber, 1, count, 1000);
    let lost = subscriber.lost();
    assert_eq!((got + lost.link, lost.total()), (count, lost.link));
    // And not more than that: the newest messages.
    assert!((fits..fits + 1000).contains(&got), "{got} of {fits} have come");
}

/// The longest are dropped: a topic of small messages loses nothing.
#[test]
fn longest_topics_lose_beyond_the_limit_of_all_topics() {
    const LIMIT: u64 = 4 << 20;
    let limits = OfflineLimits { len_bytes: LIMIT, ..OfflineLimits::default() };
    let hosts = Hosts::with_offline("limit of all topics", limits);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let topics: [(usize, u64); 3] = [(1000, 4000), (100, 1000), (2000, 2000)];
    let mut pairs: Vec<_> = (0..topics.len())
        .map(|at| (publisher(&from, &format!("/t{at}")), subscriber(&to, &format!("/t{at}"))))
        .collect();
    for ((publisher, subscriber), (len, _)) in pairs.iter_mut().zip(topics) {
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        send(publisher, 0..1, len);
        assert_eq!(read_to(subscriber, 0, 0, len), 1);
    }
    cut(&hosts, &pairs[0].0);
    for ((publisher, _), (len, count)) in pairs.iter_mut().zip(topics) {
        send(publisher, 1..count, len);
    }
    hosts.heal(0, 1);
    let mut kept = 0;
    for ((publisher, subscriber), (len, count)) in pairs.iter_mut().zip(topics) {
        send(publisher, count..count + 1, len);
        let got = read_to(subscriber, 1, count, len);
        let lost = subscriber.lost();
        assert_eq!((got + lost.link, lost.total()), (count, lost.link));
        assert_eq!(lost.link > 0, len >= 1000, "of {len} bytes: {lost:?}");
        kept += got * (len as u64 + COST);
    }
    // Beside the messages that the publishers' logs still had, and those that came last.
    assert!(kept > LIMIT / 2 && kept < 2 * LIMIT, "{kept} bytes came");
}

#[test]
fn messages_that_wait_too_long_are_counted() {
    let time = std::time::Duration::from_millis(100);
    let limits = OfflineLimits { time, ..OfflineLimits::default() };
    let hosts = Hosts::with_offline("waits for too long", limits);
    let (_nodes, mut publisher, mut subscriber) = begun(&hosts, 1000);
    cut(&hosts, &publisher);
    send(&mut publisher, 1..8000, 1000);
    eventually("no reader is left", || {
        !hosts.domain(0).inspect().forwarders.iter().any(|info| info.topic == "/t")
    });
    hosts.heal(0, 1);
    send(&mut publisher, 8000..8001, 1000);
    let got = read_to(&mut subscriber, 1, 8000, 1000);
    let lost = subscriber.lost();
    assert_eq!((got + lost.link, lost.total()), (8000, lost.link));
    assert!(lost.link > 1000, "{got} have come");
}

#[test]
fn without_a_budget_only_the_log_survives() {
    let config = "[[network.topic]]\ntopic = \"/**\"\nresend_limit_bytes = 0";
    let hosts = Hosts::with_config("without a budget", &[config, ""]);
    let (_nodes, mut publisher, mut subscriber) = begun(&hosts, 1000);
    cut(&hosts, &publisher);
    send(&mut publisher, 1..8000, 1000);
    hosts.heal(0, 1);
    send(&mut publisher, 8000..8001, 1000);
    let got = read_to(&mut subscriber, 1, 8000, 1000);
    let lost = subscriber.lost();
    assert_eq!((got + lost.link, lost.total()), (8000, lost.link));
    assert!(lost.link > 7000, "{lost:?}");
}

#[test]
fn many_topics_survive_together() {
    let hosts = Hosts::new("many topics cut", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let topics: Vec<String> = (0..40).map(|n| format!("/t{n}")).collect();
    let mut publishers: Vec<_> = topics.iter().map(|topic| publisher(&from, topic)).collect();
    let mut subscribers: Vec<_> = topics.iter().map(|topic| subscriber(&to, topic)).collect();
    for publisher in &mut publishers {
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        send(publisher, 0..1, 500);
    }
    hosts.settle();
    cut(&hosts, &publishers[0]);
    for number in 1..500 {
        for publisher in &mut publishers {
            send(publisher, number..number + 1, 500);
        }
    }
    hosts.heal(0, 1);
    for subscriber in &mut subscribers {
        assert_eq!(read_to(subscriber, 0, 499, 500), 500);
        assert_eq!(subscriber.lost().total(), 0);
    }
}

#[test]
fn receivers_link_may_restart_in_a_cut() {
    let mut hosts = Hosts::new("receiver restarts in a cut", 2);
    let (_nodes, mut publisher, mut subscriber) = begun(&hosts, 1000);
    cut(&hosts, &publisher);
    send(&mut publisher, 1..3000, 1000);
    hosts.stop(1);
    hosts.start(1, "");
    send(&mut publisher, 3000..6000, 1000);
    hosts.heal(0, 1);
    assert_eq!(read_to(&mut subscriber, 1, 5999, 1000), 5999);
    assert_eq!(subscriber.lost().total(), 0);
}

#[test]
fn receivers_link_may_restart_without_a_cut() {
    let mut hosts = Hosts::new("receiver restarts", 2);
    let (_nodes, mut publisher, mut subscriber) = begun(&hosts, 1000);
    send(&mut publisher, 1..1000, 1000);
    hosts.stop(1);
    send(&mut publisher, 1000..6000, 1000);
    hosts.start(1, "");
    assert_eq!(read_to(&mut subscriber, 1, 5999, 1000), 5999);
    assert_eq!(subscriber.lost().total(), 0);
}

#[test]
fn losses_of_the_senders_link_are_counted() {
    let mut hosts = Hosts::new("sender restarts in a cut", 2);
    let (_nodes, mut publisher, mut subscriber) = begun(&hosts, 1000);
    cut(&hosts, &publisher);
    send(&mut publisher, 1..3000, 1000);
    hosts.stop(0);
    hosts.start(0, "");
    send(&mut publisher, 3000..6000, 1000);
    hosts.heal(0, 1);
    send(&mut publisher, 6000..6001, 1000);
    let got = read_to(&mut subscriber, 1, 6000, 1000);
    let lost = subscriber.lost();
    assert_eq!((got + lost.link, lost.total()), (6000, lost.link));
}

#[test]
fn publisher_that_closes_in_a_cut_is_read_to_its_end() {
    let hosts = Hosts::new("closes in a cut", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let (mut first, mut hears) = (publisher(&from, "/t"), subscriber(&to, "/t"));
    first.wait_for_subscribers_timeout(1, LONG).unwrap();
    send(&mut first, 0..1, 1000);
    assert_eq!(read_to(&mut hears, 0, 0, 1000), 1);
    cut(&hosts, &first);
    send(&mut first, 1..4000, 1000);
    drop(first);
    hosts.heal(0, 1);
    assert_eq!(read_to(&mut hears, 1, 3999, 1000), 3999);
    eventually("its end is known", || hears.publisher_count() == 0);
    let mut second = publisher(&from, "/t");
    second.wait_for_subscribers_timeout(1, LONG).unwrap();
    send(&mut second, 5000..5100, 1000);
    assert_eq!(read_to(&mut hears, 5000, 5099, 1000), 100);
    assert_eq!(hears.lost().total(), 0);
}

/// When a publisher closes, relative to the cut.
#[derive(Clone, Copy, Debug)]
enum Ends {
    /// Before the cut is noticed.
    Unnoticed,
    InTheCut,
    /// As the cable is healed: it is announced as present.
    Healed,
    /// Once the other host hears of it again.
    Back,
}

/// Each message of a publisher that has waited for its subscriber arrives or is counted, whatever the
/// number of cuts and whenever it closes. Drivers of commands do so at each cut.
#[test]
fn publishers_that_close_around_cuts_lose_nothing_silently() {
    let hosts = Hosts::with_config("close around cuts", &["[network]\nlost_after_ms = 300"; 2]);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let mut subscribers =
        [to.subscriber::<[u8]>("/t0").keep_all().open().unwrap(), subscriber(&to, "/t1")];
    let (mut sent, mut got) = ([0; 2], [0; 2]);
    for round in 0..24 {
        let ends = [Ends::Unnoticed, Ends::InTheCut, Ends::Healed, Ends::Back][round % 4];
        let reset = round % 3 == 2;
        let best_effort = from.publisher("/t0").urgent().open().unwrap();
        let mut publishers = [Some(best_effort), Some(publisher(&from, "/t1"))];
        for publisher in publishers.iter().flatten() {
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        }
        let mut send = |publishers: &mut [Option<Publisher<[u8]>>; 2], count| {
            for (publisher, sent) in publishers.iter_mut().zip(&mut sent) {
                let Some(publisher) = publisher else { continue };
                (0..count).for_each(|_| publisher.send(&message(*sent, 100)).unwrap());
                *sent += count;
            }
        };
        let none = || [None, None];
        send(&mut publishers, 20);
        match reset {
            true => hosts.reset(0, 1),
            false => hosts.cut(0, 1),
        }
        send(&mut publishers, 3);
        if matches!(ends, Ends::Unnoticed) {
            publishers = none();
        }
        if !reset {
            let of = publishers[0].as_ref();
            eventually("the other host is lost", || {
                of.is_none_or(|publisher| publisher.subscriber_count() == 0)
            });
        }
        send(&mut publishers, 5);
        if matches!(ends, Ends::InTheCut) {
            publishers = none();
        }
        hosts.heal(0, 1);
        if matches!(ends, Ends::Back) {
            publishers
                .iter()
                .flatten()
                .for_each(|of| of.wait_for_subscribers_timeout(1, LONG).unwrap());
        }
        send(&mut publishers, 1);
        drop(publishers);
        eventually(&format!("all messages are counted in round {round}, {ends:?}"), || {
            for (subscriber, got) in subscribers.iter_mut().zip(&mut got) {
                loop {
                    match subscriber.try_recv() {
                        Ok(Some(_)) => *got += 1,
                        Ok(None) => break,
                        Err(Error::PeerLost { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            let lost = [0, 1].map(|at| subscribers[at].lost().total());
            assert_eq!(lost[1], 0, "messages within the budget arrive");
            (0..2).all(|at| got[at] + lost[at] == sent[at])
        });
    }
}
