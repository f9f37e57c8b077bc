//! A wait set whose subscribers come and go while it waits.

use crate::common;

use std::sync::mpsc;
use std::time::Duration;

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::msgs::Clock;
use rnet::{Error, Node, Rate, Subscriber, WaitSet};

/// Entry point of the child processes.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    if role().is_none() {
        return;
    }
    let net = Net::of_parent();
    let orders = common::orders();
    let node = net.node("child");
    let publisher = node.publisher::<[u8]>("/stopped").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    tell("joined");
    drop(orders.recv());
}

fn subscriber(node: &Node, topic: &str) -> Subscriber<[u8]> {
    node.subscriber::<[u8]>(topic).open().unwrap()
}

#[test]
fn subscribers_are_attached_and_detached_while_a_thread_waits() {
    let net = Net::new("attach");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").open().unwrap();
    let mut set = WaitSet::new(&b);
    let handle = set.handle();
    let (tell, receiver) = mpsc::channel();
    let waiting = std::thread::spawn(move || {
        // Each wait ends when an event is available, and never with `false`: there is no time limit.
        while set.wait_timeout(&mut [], LONG).unwrap() {
            let (taken, go_on) = mpsc::channel();
            if tell.send(taken).is_err() || go_on.recv().is_err() {
                return;
            }
        }
    });
    for round in 0..20_u8 {
        let mut attached = handle.attach(subscriber(&b, "/t")).unwrap();
        eventually("the subscriber is matched", || attached.publisher_count() == 1);
        publisher.send(&[round]).unwrap();
        // A publisher's match ends a wait, too.
        let message = loop {
            let taken = receiver.recv_timeout(LONG).unwrap();
            let message = attached.try_recv().unwrap();
            taken.send(()).unwrap();
            if let Some(message) = message {
                break message;
            }
        };
        assert_eq!(*message, [round]);
        // Half of them continue as separate subscribers.
        if round % 2 == 0 {
            let mut subscriber = attached.detach().unwrap();
            publisher.send(&[round, 1]).unwrap();
            assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), [round, 1]);
        }
    }
    drop(receiver);
    let mut last = handle.attach(subscriber(&b, "/t")).unwrap();
    eventually("the subscriber is matched", || last.publisher_count() == 1);
    publisher.send(b"end").unwrap();
    waiting.join().unwrap();
}

#[test]
fn attached_and_named_subscribers_are_one_wait() {
    let net = Net::new("both");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut set = WaitSet::new(&b);
    let mut publishers: Vec<_> =
        (0..64).map(|n| a.publisher::<[u8]>(&format!("/t{n}")).open().unwrap()).collect();
    let mut attached: Vec<_> =
        (0..63).map(|n| set.attach(subscriber(&b, &format!("/t{n}"))).unwrap()).collect();
    let mut named = subscriber(&b, "/t63");
    for publisher in &mut publishers {
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    }
    for (n, publisher) in publishers.iter_mut().enumerate() {
        publisher.send(&[n as u8]).unwrap();
        let found = loop {
            assert!(set.wait_timeout(&mut [&mut named], LONG).unwrap());
            let mut found: Vec<u8> = Vec::new();
            for one in &mut attached {
                found.extend(one.try_recv().unwrap().map(|sample| sample[0]));
            }
            found.extend(named.try_recv().unwrap().map(|sample| sample[0]));
            if !found.is_empty() {
                break found;
            }
        };
        assert_eq!(found, [n as u8]);
    }
    drop(attached);
    assert!(!set.wait_timeout(&mut [], Duration::from_millis(1)).unwrap(), "no publisher is left");
}

#[test]
fn stopped_publisher_does_not_block_the_set() {
    let net = Net::new("stopped peer");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut set = WaitSet::new(&b);
    let mut stopped = set.attach(subscriber(&b, "/stopped")).unwrap();
    let mut other = set.attach(subscriber(&b, "/other")).unwrap();
    let mut child = Child::spawn(&net, "publisher");
    child.expect("joined");
    child.stop();
    let mut publisher = a.publisher::<[u8]>("/other").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(b"x").unwrap();
    while other.try_recv().unwrap().is_none() {
        assert!(set.wait_timeout(&mut [], LONG).unwrap());
        assert!(stopped.try_recv().unwrap().is_none());
    }
    child.kill();
    loop {
        assert!(set.wait_timeout(&mut [], LONG).unwrap());
        match stopped.try_recv() {
            Err(Error::PeerLost { .. }) => break,
            Ok(None) => drop(other.try_recv().unwrap()),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_subscriber_of_another_node_is_refused() {
    let net = Net::new("other node");
    let (a, b) = (net.node("a"), net.node("b"));
    let error = WaitSet::new(&a).attach(subscriber(&b, "/t")).unwrap_err();
    assert!(matches!(error, Error::BadValue { .. }), "{error:?}");
}

#[test]
fn messages_changes_and_ticks_share_a_wait_without_hiding_each_other() {
    let net = Net::new("three kinds");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut set = WaitSet::new(&b);
    let mut busy = set.attach(subscriber(&b, "/busy")).unwrap();
    let mut watch = set.attach(b.state().unwrap().watch("/k").unwrap()).unwrap();
    let mut rate = set.attach(b.rate(1000.0).unwrap()).unwrap();
    let mut publisher = a.publisher::<[u8]>("/busy").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let state = a.state().unwrap();
    for round in 0..200_i64 {
        // The next round finds the messages that are not taken here: the subscriber is always ready.
        (0..10).for_each(|_| publisher.send(&[1]).unwrap());
        state.set("/k/v", round).unwrap();
        let (mut reported, mut ticked) = (None, false);
        while reported != Some(round) || !ticked {
            assert!(set.wait_timeout(&mut [], LONG).unwrap());
            let is_ready = |id| set.ready().contains(&id);
            assert!(is_ready(busy.id()) || is_ready(watch.id()) || is_ready(rate.id()));
            if is_ready(watch.id()) {
                let change = watch.try_recv().unwrap().expect("reported as ready");
                reported = change.entry.and_then(|entry| entry.value.as_int());
            }
            if is_ready(rate.id()) {
                ticked |= rate.try_tick().unwrap().is_some();
            }
        }
        assert!(busy.try_recv().unwrap().is_some());
    }
    assert!(busy.try_recv().unwrap().is_some(), "it was waiting all the time");
    while busy.try_recv().unwrap().is_some() {}
    drop(rate);
    // Nothing is left, and a change of another key does not count.
    state.set("/other", 1).unwrap();
    assert!(!set.wait_timeout(&mut [], Duration::from_millis(1)).unwrap());
    assert!(set.ready().is_empty());
}

#[test]
fn detached_members_can_wait_alone_afterwards() {
    let net = Net::new("afterwards");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut set = WaitSet::new(&b);
    let (mut rate, mut watch) =
        (Rate::new(1000.0).unwrap(), b.state().unwrap().watch("/k").unwrap());
    let state = a.state().unwrap();
    std::thread::scope(|scope| {
        for round in 0..50_i64 {
            // By name, attached, and alone. The writer usually comes while a thread sleeps.
            let write = || scope.spawn(|| state.set("/k", 1).unwrap());
            write();
            while !set.wait_timeout(&mut [&mut watch], LONG).unwrap() {}
            assert!(watch.try_recv().unwrap().is_some(), "in round {round}");
            let mut attached = set.attach(watch).unwrap();
            write();
            assert!(set.wait_timeout(&mut [], LONG).unwrap());
            assert_eq!(set.ready(), [attached.id()]);
            assert!(attached.try_recv().unwrap().is_some());
            watch = attached.detach().unwrap();
            write();
            assert!(watch.recv_timeout(LONG).unwrap().entry.is_some());
            assert!(set.wait_timeout(&mut [&mut rate], LONG).unwrap());
            assert!(rate.try_tick().unwrap().is_some());
        }
    });
    assert!(rate.sleep().is_ok());
}

#[test]
fn subscriber_detached_while_the_set_slept_is_woken() {
    let net = Net::new("detached asleep");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut set = WaitSet::new(&b);
    let handle = set.handle();
    let mut publisher = a.publisher::<[u8]>("/t").open().unwrap();
    let mut one = subscriber(&b, "/t");
    one.wait_for_publishers_timeout(1, LONG).unwrap();
    let waiting = std::thread::spawn(move || set.wait(&mut []));
    for round in 0..300_u64 {
        let attached = handle.attach(one).unwrap();
        // At each point of the set's sleep.
        for _ in 0..round * 200 {
            std::hint::spin_loop();
        }
        one = attached.detach().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| publisher.send(&round.to_le_bytes()).unwrap());
            let message = one.recv_timeout(LONG).unwrap();
            assert_eq!(*message, round.to_le_bytes());
        });
    }
    handle.interrupt();
    assert_eq!(waiting.join().unwrap(), Err(Error::Interrupted));
}

#[test]
fn a_rate_in_simulated_time_wakes_the_set() {
    let net = Net::new("simulated");
    let (host, sim) = (net.node("host"), net.builder("sim").sim_time(true).open().unwrap());
    let mut clock = host.publisher::<Clock>("/clock").open().unwrap();
    clock.wait_for_subscribers_timeout(1, LONG).unwrap();
    clock.send(&Clock { time_ns: 1 }).unwrap();
    eventually("the node has the time", || sim.now() == 1);
    let mut set = WaitSet::new(&sim);
    let mut rate = set.attach(sim.rate(1.0).unwrap()).unwrap();
    let mut waiter = std::thread::spawn(move || {
        let woken = set.wait_timeout(&mut [], LONG);
        (woken, set)
    });
    for tick in 1..=10 {
        assert!(!waiter.is_finished(), "the time is paused");
        clock.send(&Clock { time_ns: 1 + tick * 1_000_000_000 }).unwrap();
        let (woken, mut set) = waiter.join().unwrap();
        assert_eq!(woken, Ok(true));
        assert_eq!(rate.try_tick().unwrap().map(|tick| tick.number), Some(tick as u64));
        waiter = std::thread::spawn(move || {
            let woken = set.wait_timeout(&mut [], LONG);
            (woken, set)
        });
    }
    // Its time ends with the node.
    drop(sim);
    let (woken, mut set) = waiter.join().unwrap();
    assert_eq!(woken, Ok(true));
    assert!(matches!(rate.try_tick(), Err(Error::Closed { .. })));
    assert_eq!(set.wait_timeout(&mut [], LONG), Ok(true), "and stays so");
}

#[test]
fn rate_checked_in_time_has_no_overrun() {
    let net = Net::new("overruns");
    let (host, sim) = (net.node("host"), net.builder("sim").sim_time(true).open().unwrap());
    let mut clock = host.publisher::<Clock>("/clock").open().unwrap();
    clock.wait_for_subscribers_timeout(1, LONG).unwrap();
    let mut set = |s: i64| {
        clock.send(&Clock { time_ns: 1 + s * 1_000_000_000 }).unwrap();
        eventually("the node has the time", || sim.now() == 1 + s as u64 * 1_000_000_000);
    };
    set(0);
    let (mut rate, mut wait_set) = (sim.rate(1.0).unwrap(), WaitSet::new(&sim));
    assert_eq!(wait_set.wait_timeout(&mut [&mut rate], Duration::ZERO), Ok(false));
    for (s, overruns) in [(1, 0), (2, 1)] {
        set(s);
        assert_eq!(wait_set.wait_timeout(&mut [&mut rate], LONG), Ok(true));
        assert!(rate.try_tick().unwrap().is_some());
        assert_eq!(rate.overruns(), overruns);
    }
}

#[test]
fn watch_of_another_node_is_refused_and_an_expiry_ends_a_wait() {
    let net = Net::new("other nodes watch");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut set = WaitSet::new(&a);
    let mut watch = b.state().unwrap().watch("/k").unwrap();
    let error = set.wait_timeout(&mut [&mut watch], LONG).unwrap_err();
    assert!(error.to_string().contains("it belongs to node /b, but the set to node /a"), "{error}");
    assert!(set.attach(watch).is_err());
    // The expiry of a key is reported without a writer.
    let state = a.state().unwrap();
    let mut watch = set.attach(state.watch("/k").unwrap()).unwrap();
    state.put("/k").ttl(Duration::from_millis(20)).set(1).unwrap();
    let mut gone = false;
    while !gone {
        assert!(set.wait_timeout(&mut [], LONG).unwrap());
        gone = watch.try_recv().unwrap().is_some_and(|change| change.entry.is_none());
    }
}

#[test]
fn many_are_attached() {
    const MANY: usize = 512;
    let net = Net::new("many");
    let (a, b) = (net.node("a"), net.node("b"));
    let state = b.state().unwrap();
    let mut set = WaitSet::new(&b);
    // Ticks that no thread waits for, 500 subscribers of one topic, a watch.
    let mut all: Vec<_> =
        (0..MANY - 12).map(|_| set.attach(subscriber(&b, "/t")).unwrap()).collect();
    let mut watch = set.attach(state.watch("/k").unwrap()).unwrap();
    let _rates: Vec<_> =
        (0..11).map(|_| set.attach(Rate::every(Duration::from_secs(3600)).unwrap())).collect();
    let mut publisher = a.publisher::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(MANY - 12, LONG).unwrap();
    for round in 0..5_u8 {
        publisher.send(&[round]).unwrap();
        state.set("/k", 1).unwrap();
        let (mut messages, mut changes) = (0, 0);
        while messages < MANY - 12 || changes < 1 {
            assert!(set.wait_timeout(&mut [], LONG).unwrap());
            for one in &mut all {
                messages += usize::from(one.try_recv().unwrap().is_some());
            }
            changes += usize::from(watch.try_recv().unwrap().is_some());
        }
        assert_eq!((messages, changes), (MANY - 12, 1));
    }
    assert!(!set.wait_timeout(&mut [], Duration::from_millis(1)).unwrap());
}

#[test]
fn wait_is_ended_by_interrupters_of_the_set_and_its_members() {
    let net = Net::new("interrupted");
    let node = net.node("n");
    let mut set = WaitSet::new(&node);
    let (mut topic, watch) = (subscriber(&node, "/t"), node.state().unwrap().watch("/k").unwrap());
    let (handle, interrupters) = (set.handle(), [topic.interrupter(), watch.interrupter()]);
    let _attached = (set.attach(topic).unwrap(), set.attach(watch).unwrap());
    let mut end = |act: &(dyn Fn() + Sync)| {
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| set.wait(&mut []));
            act();
            assert_eq!(waiting.join().unwrap(), Err(Error::Interrupted));
        });
    };
    for _ in 0..20 {
        end(&|| handle.interrupt());
        interrupters.iter().for_each(|one| end(&|| one.interrupt()));
    }
}
