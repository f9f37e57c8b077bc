//! Findings of an adversarial review, each as its failure scenario.

use crate::common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::time::Duration;

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::{MatchEvent, Node, NodeEvent, OnFull, Subscriber, Wait, WaitSet};

/// A message of a type that is incompatible with raw bytes.
#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
#[repr(C)]
struct Tick {
    number: u64,
}

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    assert_eq!(role, "ticks");
    let net = Net::of_parent();
    let orders = common::orders();
    let node = net.node("victim");
    let mut publisher = node.publisher::<Tick>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    tell("ready");
    for number in orders {
        publisher.send(&Tick { number: number.parse().unwrap() }).unwrap();
    }
}

/// A publisher remembers the ticket that it has signalled. When each waiter counted its own tickets, the
/// second waiter at a subscriber showed a ticket that was already signalled, and its wake-up was lost.
#[test]
fn alternating_waiters_are_all_woken() {
    const ROUNDS: u64 = 6;
    const TURNS: u64 = 6;
    const CALLS: u64 = 3;
    let net = Net::new("turns");
    let (a, b) = (net.node("a"), net.node("b"));
    for round in 0..ROUNDS {
        let topic = format!("/t{round}");
        let mut publisher = a.publisher::<[u8]>(&topic).open().unwrap();
        let mut subscriber = b.subscriber::<[u8]>(&topic).wait(Wait::Block).open().unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        let observed_net = net.same();
        let sender = std::thread::spawn(move || {
            for number in 0..TURNS + CALLS {
                eventually("the reader has taken all and sleeps", || {
                    let seen = observed_net.inspect();
                    let channel = seen.subscriptions.first().and_then(|s| s.channels.first());
                    channel.is_some_and(|c| c.asleep && c.received == number)
                });
                publisher.send(&number.to_le_bytes()).unwrap();
            }
            publisher
        });
        let mut set = WaitSet::new(&b);
        for number in 0..TURNS {
            // Both orders, so that each waiter reaches a ticket of the other.
            if (number + round) % 2 == 0 {
                // An admission also makes it ready, without a message.
                let got = loop {
                    assert!(set.wait_timeout(&mut [&mut subscriber], LONG).unwrap());
                    if let Some(sample) = subscriber.try_recv().unwrap() {
                        break sample.to_vec();
                    }
                };
                assert_eq!(got, number.to_le_bytes());
            } else {
                assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), number.to_le_bytes());
            }
        }
        let (outbox, calls) = mpsc::channel();
        let subscription = subscriber.on(move |sample| outbox.send(sample.to_vec()).unwrap());
        for number in TURNS..TURNS + CALLS {
            assert_eq!(calls.recv_timeout(LONG).unwrap(), number.to_le_bytes());
        }
        let publisher = sender.join().unwrap();
        let channel = net.inspect().subscriptions.remove(0).channels.remove(0);
        assert_eq!((channel.received, channel.lost.total()), (TURNS + CALLS, 0));
        assert_eq!(channel.late_wakes, 0, "a wake-up was lost in round {round}");
        drop((subscription, publisher));
    }
}

/// A callback that creates an endpoint causes the next event of its own endpoint.
#[test]
fn a_match_callback_may_create_endpoints_and_callbacks() {
    const MADE: usize = 10;
    const COME: usize = 50;
    let net = Net::new("match callbacks");
    let (a, b) = (net.node("a"), net.node("b"));
    let subscriber = Arc::new(Mutex::new(a.subscriber::<[u8]>("/t").open().unwrap()));
    let (of_b, second) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (sender, events) = mpsc::channel();
    let callback = {
        let (ours, node) = (Arc::downgrade(&subscriber), a.clone());
        let (of_b, second) = (of_b.clone(), second.clone());
        let mut made = 0;
        move |event: &MatchEvent| {
            if matches!(event, MatchEvent::Matched(peer) if peer.node == "/b") {
                of_b.fetch_add(1, Ordering::Relaxed);
            }
            if made == MADE {
                return;
            }
            made += 1;
            drop(node.publisher::<[u8]>("/t").open().unwrap());
            drop(node.subscriber::<[u8]>("/t").open().unwrap());
            drop(node.publisher::<[u8]>("/other").open().unwrap());
            let second = second.clone();
            if let Some(ours) = ours.upgrade() {
                ours.lock()
                    .unwrap()
                    .on_match(move |_| {
                        second.fetch_add(1, Ordering::Relaxed);
                    })
                    .detach();
            }
            sender.send(()).unwrap();
        }
    };
    subscriber.lock().unwrap().on_match(callback).detach();
    let stranger = std::thread::spawn(move || {
        for _ in 0..COME {
            let publisher = b.publisher::<[u8]>("/t").open().unwrap();
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        }
        b
    });
    for _ in 0..MADE {
        events.recv_timeout(LONG).expect("the callback goes on");
    }
    drop(stranger.join().unwrap());
    eventually("each match is reported", || of_b.load(Ordering::Relaxed) == COME);
    assert!(second.load(Ordering::Relaxed) > 0, "the added callbacks are called");
    drop((subscriber, a));
    nothing_is_left(&net);
}

#[test]
fn a_node_callback_may_create_endpoints_and_callbacks() {
    const GUESTS: usize = 10;
    let net = Net::new("node callbacks");
    let node = Arc::new(net.node("host"));
    let (sender, events) = mpsc::channel();
    let (plain, plain_events) = mpsc::channel();
    node.on_node(move |event| plain.send(event.clone()).unwrap()).detach();
    // Weak, because a callback owned by a node must not keep the node alive.
    let ours: Weak<Node> = Arc::downgrade(&node);
    node.on_node(move |event| {
        let Some(node) = ours.upgrade() else { return };
        let topic = if matches!(event, NodeEvent::Joined(_)) { "/came" } else { "/went" };
        let mut publisher = node.publisher::<[u8]>(topic).open().unwrap();
        let mut subscriber = node.subscriber::<[u8]>(topic).open().unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        publisher.send(b"event").unwrap();
        assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"event");
        let sender = sender.clone();
        node.on_node(move |event| drop(sender.send(event.clone()))).detach();
    })
    .detach();
    for i in 0..GUESTS {
        // If it left before the host scanned, no node would have seen it.
        let guest = net.node(&format!("guest{i}"));
        let joined = NodeEvent::Joined(format!("/guest{i}"));
        assert_eq!(plain_events.recv_timeout(LONG), Ok(joined));
        drop(guest);
        let went = NodeEvent::Left(format!("/guest{i}"));
        assert_eq!(plain_events.recv_timeout(LONG), Ok(went));
    }
    // Added during the first event, so it is called from the second one on.
    let last = NodeEvent::Left(format!("/guest{}", GUESTS - 1));
    while events.recv_timeout(LONG).expect("the callbacks go on") != last {}
    drop(node);
    nothing_is_left(&net);
}

fn nothing_is_left(net: &Net) {
    let uid = rustix::process::geteuid().as_raw();
    for folder in ["nodes", "names"] {
        let path = net.base().join(format!("rnet-{uid}-t/{folder}"));
        eventually("the node is gone", || std::fs::read_dir(&path).unwrap().count() == 0);
    }
}

/// A task that the dispatch thread never started kept its node alive, and the node kept the thread.
#[test]
fn a_detached_callback_ends_with_its_node() {
    let net = Net::new("detach");
    for _ in 0..50 {
        let node = net.node("short");
        node.subscriber::<[u8]>("/t").open().unwrap().on(|_| {}).detach();
        drop(node);
        nothing_is_left(&net);
    }
}

#[test]
fn an_iterator_outlives_single_publishers() {
    let net = Net::new("iterator");
    let (a, b, c) = (net.node("a"), net.node("b"), net.node("c"));
    let mut steady = a.publisher::<Tick>("/t").open().unwrap();
    let mut subscriber: Subscriber<Tick> = b.subscriber("/t").open().unwrap();
    let (tell, events) = mpsc::channel();
    subscriber.on_match(move |event| tell.send(event.clone()).unwrap()).detach();
    let event_until = |wanted: &dyn Fn(&MatchEvent) -> bool| {
        while !wanted(&events.recv_timeout(LONG).expect("the event arrives")) {}
    };
    steady.wait_for_subscribers_timeout(1, LONG).unwrap();
    let (sender, numbers) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for tick in subscriber.iter() {
            sender.send(tick.number).unwrap();
            if tick.number == u64::MAX {
                return;
            }
        }
        panic!("the iterator has ended");
    });
    let next = || numbers.recv_timeout(LONG).expect("the iterator goes on");
    // The second event is received after everything that preceded the report of the first.
    let mut number = 0;
    let mut goes_on = |steady: &mut rnet::Publisher<Tick>| {
        for _ in 0..2 {
            number += 1;
            steady.send(&Tick { number }).unwrap();
            assert_eq!(next(), number);
        }
    };
    goes_on(&mut steady);

    let stranger = c.publisher::<[u8]>("/t").open().unwrap();
    event_until(&|event| matches!(event, MatchEvent::Incompatible(_)));
    goes_on(&mut steady);
    drop(stranger);
    goes_on(&mut steady);

    let mut passing = c.publisher::<Tick>("/t").open().unwrap();
    passing.wait_for_subscribers_timeout(1, LONG).unwrap();
    passing.send(&Tick { number: 1000 }).unwrap();
    assert_eq!(next(), 1000);
    drop(passing);
    event_until(&|event| matches!(event, MatchEvent::Unmatched(_)));
    goes_on(&mut steady);

    let mut victim = Child::spawn(&net, "ticks");
    victim.expect("ready");
    victim.say("2000");
    assert_eq!(next(), 2000);
    victim.kill();
    event_until(&|event| matches!(event, MatchEvent::Lost(_)));
    goes_on(&mut steady);

    steady.send(&Tick { number: u64::MAX }).unwrap();
    assert_eq!(next(), u64::MAX);
    reader.join().unwrap();
}

/// Like `eventually`, without its pauses; the watchdog ends it.
fn eventually_at_once(mut done: impl FnMut() -> bool) {
    while !done() {
        std::hint::spin_loop();
    }
}

/// A reader counted as served before it knew its start position: messages sent in between were not delivered
/// to it.
#[test]
fn messages_sent_after_a_reader_is_counted_reach_it() {
    let net = Net::new("admission");
    let (a, b) = (net.node("a"), net.node("b"));
    for reliable in [false, true] {
        let topic = if reliable { "/reliable" } else { "/best_effort" };
        let publisher = a.publisher::<[u8]>(topic);
        let publisher = if reliable { publisher.reliable(OnFull::Refuse) } else { publisher };
        let mut publisher = publisher.open().unwrap();
        for round in 0..300_u64 {
            let subscriber = b.subscriber::<[u8]>(topic);
            let subscriber = if reliable { subscriber.reliable() } else { subscriber };
            let mut subscriber = subscriber.open().unwrap();
            // Polls without a pause, to run at the moment of the admission.
            eventually_at_once(|| {
                publisher.wait_for_subscribers_timeout(1, Duration::ZERO).is_ok()
            });
            publisher.send(&round.to_le_bytes()).unwrap();
            let got = subscriber.recv_timeout(LONG).map(|sample| sample.to_vec());
            assert_eq!(got.unwrap(), round.to_le_bytes(), "{topic}");
            assert!(subscriber.try_recv().unwrap().is_none(), "{topic}: more than was sent");
            assert_eq!(subscriber.lost().total(), 0, "{topic}");
            drop(subscriber);
            eventually("the subscriber is gone", || publisher.subscriber_count() == 0);
        }
    }
}
