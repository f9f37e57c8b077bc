//! Deadlines and liveliness: both sides count and report each promise that a publisher breaks.

use crate::common;

use std::sync::mpsc;
use std::time::Duration;

use common::{Child, LONG, Net, eventually, orders, role, tell};
use rnet::{
    DeadlineMissed, Error, LivelinessChange, LivelinessCounts, Node, Publisher, Subscriber,
};

const PERIOD: Duration = Duration::from_millis(40);

/// Entry point of the child processes: they publish with a deadline or a lease.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let node = net.node("victim");
    let publisher = node.publisher::<[u8]>("/t");
    let publisher = match role.as_str() {
        "deadline" => publisher.deadline(PERIOD),
        "lease" => publisher.manual_by_topic(PERIOD),
        other => panic!("unknown role: {other}"),
    };
    let mut publisher = publisher.open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let orders = orders();
    publisher.send(b"first").unwrap();
    tell("sent");
    // Until the parent sends an order or exits.
    while let Err(mpsc::RecvTimeoutError::Timeout) = orders.recv_timeout(PERIOD / 8) {
        match role.as_str() {
            "deadline" => publisher.send(b"again").unwrap(),
            _ => publisher.assert_alive().unwrap(),
        }
    }
}

fn with_deadline(node: &Node) -> Publisher<[u8]> {
    node.publisher("/t").deadline(PERIOD).open().unwrap()
}

fn asks_deadline(node: &Node) -> Subscriber<[u8]> {
    node.subscriber("/t").deadline(PERIOD).open().unwrap()
}

fn missed(subscriber: &Subscriber<[u8]>) -> u64 {
    subscriber.stats().iter().map(|stats| stats.deadline_missed).sum()
}

#[test]
fn both_sides_count_missed_deadlines_per_period() {
    let net = Net::new("deadline both");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = with_deadline(&a);
    let subscriber = asks_deadline(&b);
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let (at_publisher, offered) = mpsc::channel::<DeadlineMissed>();
    let (at_subscriber, asked) = mpsc::channel::<DeadlineMissed>();
    publisher.on_deadline(move |event| drop(at_publisher.send(event.clone()))).detach();
    subscriber.on_deadline(move |event| drop(at_subscriber.send(event.clone()))).detach();
    // A publisher that has never sent has not missed a deadline.
    std::thread::sleep(3 * PERIOD); // sleep: silence is what is tested
    assert_eq!((publisher.deadline_missed(), missed(&subscriber)), (0, 0));
    publisher.send(b"one").unwrap();
    for (name, events) in [("/a", &offered), ("/a", &asked)] {
        let (mut total, mut events_so_far) = (0, 0);
        while total < 3 {
            let event = events.recv_timeout(LONG).unwrap();
            assert_eq!((event.publisher.node.as_str(), event.publisher.id), (name, publisher.id()));
            total += event.missed;
            events_so_far += 1;
            assert_eq!(event.total, total);
        }
        assert!(events_so_far <= total);
    }
    assert!(publisher.deadline_missed() >= 3 && missed(&subscriber) >= 3);
    // Tools see the same counts.
    let snapshot = net.inspect();
    assert!(snapshot.publishers[0].deadline_missed >= 3);
    assert!(snapshot.subscriptions[0].channels[0].deadline_missed >= 3);
    assert_eq!(snapshot.publishers[0].qos.deadline, Some(PERIOD));
    // Closing the publisher does not count as a missed deadline.
    drop(publisher);
    eventually("the publisher is gone", || net.inspect().publishers.is_empty());
    let before = missed(&subscriber);
    std::thread::sleep(2 * PERIOD); // sleep: no further miss may be counted
    assert_eq!(missed(&subscriber), before);
}

#[test]
fn a_publisher_that_keeps_its_deadline_misses_none() {
    let net = Net::new("deadline kept");
    let (a, b) = (net.node("a"), net.node("b"));
    let second = Duration::from_secs(30);
    let mut publisher = a.publisher::<[u8]>("/t").deadline(second).open().unwrap();
    let subscriber = b.subscriber::<[u8]>("/t").deadline(second).open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    for _ in 0..10 {
        publisher.send(b"in time").unwrap();
        std::thread::sleep(Duration::from_millis(5)); // sleep: the topic is periodic
    }
    assert_eq!((publisher.deadline_missed(), missed(&subscriber)), (0, 0));
}

#[test]
fn sixty_four_subscribers_detect_a_stopped_then_killed_publisher() {
    let net = Net::new("deadline killed");
    let nodes: Vec<Node> = (0..8).map(|n| net.node(&format!("ear{n}"))).collect();
    let subscribers: Vec<Subscriber<[u8]>> =
        (0..64).map(|n| asks_deadline(&nodes[n % nodes.len()])).collect();
    let mut victim = Child::spawn(&net, "deadline");
    victim.expect("sent");
    let (tell_killed, receiver) = mpsc::channel::<DeadlineMissed>();
    eventually("all are matched", || {
        let snapshot = net.inspect();
        snapshot.subscriptions.iter().all(|s| s.channels.len() == 1)
    });
    victim.stop();
    eventually("each counts the silence", || subscribers.iter().all(|s| missed(s) >= 2));
    victim.resume();
    subscribers[0].on_deadline(move |event| drop(tell_killed.send(event.clone()))).detach();
    victim.kill();
    // Death counts at once, not after a period.
    let event = receiver.recv_timeout(LONG).unwrap();
    assert_eq!(event.publisher.node, "/victim");
    eventually("the dead publisher is no longer monitored", || {
        let before: u64 = subscribers.iter().map(missed).sum();
        std::thread::sleep(3 * PERIOD); // sleep: no further miss may be counted
        before == subscribers.iter().map(missed).sum::<u64>()
    });
}

#[test]
fn incompatible_deadlines_and_leases_are_refused_on_both_sides() {
    let net = Net::new("deadline refused");
    let (a, b) = (net.node("a"), net.node("b"));
    let publisher =
        a.publisher::<[u8]>("/t").manual_by_topic(2 * PERIOD).deadline(2 * PERIOD).open().unwrap();
    let subscriber = || b.subscriber::<[u8]>("/t");
    for (subscriber, word) in [
        (subscriber().deadline(PERIOD), "a deadline of 40ms"),
        (subscriber().manual_by_topic(PERIOD), "a lease of 40ms"),
    ] {
        let mut subscriber = subscriber.open().unwrap();
        for error in [
            subscriber.wait_for_publishers_timeout(1, LONG).unwrap_err(),
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap_err(),
        ] {
            assert!(matches!(error, Error::IncompatibleQos { .. }), "{error}");
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}

#[test]
fn live_publisher_without_assertion_is_not_alive() {
    let net = Net::new("lease");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").manual_by_topic(PERIOD).open().unwrap();
    let subscriber = b.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let (tell, receiver) = mpsc::channel::<LivelinessChange>();
    subscriber.on_liveliness(move |change| drop(tell.send(change.clone()))).detach();
    let next = || receiver.recv_timeout(LONG).unwrap();
    let counts = |alive, not_alive| LivelinessCounts { alive, not_alive };
    // Depending on when it was registered, the callback may have received the match.
    let mut change = next();
    if change.alive {
        change = next();
    }
    assert_eq!((change.alive, change.counts), (false, counts(0, 1)));
    assert_eq!(subscriber.liveliness(), counts(0, 1));
    let snapshot = net.inspect();
    assert!(!snapshot.publishers[0].is_alive());
    // A message asserts liveliness, and so does an explicit call.
    publisher.send(b"here").unwrap();
    assert_eq!((next().alive, next().alive), (true, false));
    publisher.assert_alive().unwrap();
    assert_eq!((next().alive, next().alive), (true, false));
    assert!(receiver.try_recv().is_err());
    drop(publisher);
    let change = next();
    assert_eq!((change.alive, change.counts), (false, counts(0, 0)));
}

#[test]
fn a_publisher_that_asserts_is_alive_until_it_is_stopped_or_killed() {
    let net = Net::new("lease killed");
    let node = net.node("ear");
    let automatic = node.publisher::<[u8]>("/t").open().unwrap();
    let subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    let (tell, receiver) = mpsc::channel::<LivelinessChange>();
    subscriber.on_liveliness(move |change| drop(tell.send(change.clone()))).detach();
    let mut victim = Child::spawn(&net, "lease");
    victim.expect("sent");
    // On a busy machine an assertion may be late: only the final state counts.
    let until = |alive, counts: LivelinessCounts| {
        while let Ok(change) = receiver.recv_timeout(LONG) {
            if change.publisher.node == "/victim"
                && (change.alive, change.counts) == (alive, counts)
            {
                return;
            }
        }
        panic!("never reported: alive {alive}, {counts:?}");
    };
    until(true, LivelinessCounts { alive: 2, not_alive: 0 });
    victim.stop();
    until(false, LivelinessCounts { alive: 1, not_alive: 1 });
    victim.resume();
    until(true, LivelinessCounts { alive: 2, not_alive: 0 });
    victim.kill();
    until(false, LivelinessCounts { alive: 1, not_alive: 0 });
    assert_eq!(subscriber.liveliness(), LivelinessCounts { alive: 1, not_alive: 0 });
    drop(automatic);
    eventually("no publisher is left", || subscriber.liveliness() == LivelinessCounts::default());
}
