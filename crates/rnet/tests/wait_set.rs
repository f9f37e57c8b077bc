//! A wait set whose subscribers come and go while it waits.

mod common;

use std::sync::mpsc;
use std::time::Duration;

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::{Error, Node, Subscriber, WaitSet};

/// The role of the children.
#[test]
#[ignore = "played by the children of the other tests"]
fn child_entry() {
    if role().is_none() {
        return;
    }
    let net = Net::of_parent();
    let orders = common::orders();
    let node = net.node("child");
    let publisher = node.publisher::<[u8]>("/stopped").unwrap();
    publisher.wait_for_subscribers(1, LONG).unwrap();
    tell("joined");
    drop(orders.recv());
}

fn subscriber(node: &Node, topic: &str) -> Subscriber<[u8]> {
    node.subscriber::<[u8]>(topic).unwrap()
}

#[test]
fn subscribers_are_attached_and_detached_while_a_thread_waits() {
    let net = Net::new("attach");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").unwrap();
    let mut set = WaitSet::new(&b);
    let handle = set.handle();
    let (tell, told) = mpsc::channel();
    let waiting = std::thread::spawn(move || {
        // Each wait is over when there is something, and `false` never: there is no time limit.
        while set.wait(&mut [], LONG).unwrap() {
            let (taken, go_on) = mpsc::channel();
            if tell.send(taken).is_err() || go_on.recv().is_err() {
                return;
            }
        }
    });
    for round in 0..20_u8 {
        let mut attached = handle.attach(subscriber(&b, "/t")).unwrap();
        eventually("it is served", || attached.publisher_count() == 1);
        publisher.send(&[round]).unwrap();
        // That a publisher has come ends a wait, too.
        let message = loop {
            let taken = told.recv_timeout(LONG.unwrap()).unwrap();
            let message = attached.try_recv().unwrap();
            taken.send(()).unwrap();
            if let Some(message) = message {
                break message;
            }
        };
        assert_eq!(*message, [round]);
        // Half of them go on as subscribers, by themselves.
        if round % 2 == 0 {
            let mut subscriber = attached.detach().unwrap();
            publisher.send(&[round, 1]).unwrap();
            assert_eq!(*subscriber.recv(LONG).unwrap(), [round, 1]);
        }
    }
    drop(told);
    let mut last = handle.attach(subscriber(&b, "/t")).unwrap();
    eventually("it is served", || last.publisher_count() == 1);
    publisher.send(b"end").unwrap();
    waiting.join().unwrap();
}

#[test]
fn attached_and_named_subscribers_are_one_wait() {
    let net = Net::new("both");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut set = WaitSet::new(&b);
    let mut publishers: Vec<_> =
        (0..64).map(|n| a.publisher::<[u8]>(&format!("/t{n}")).unwrap()).collect();
    let mut attached: Vec<_> =
        (0..63).map(|n| set.attach(subscriber(&b, &format!("/t{n}"))).unwrap()).collect();
    let mut named = subscriber(&b, "/t63");
    for publisher in &mut publishers {
        publisher.wait_for_subscribers(1, LONG).unwrap();
    }
    for (n, publisher) in publishers.iter_mut().enumerate() {
        publisher.send(&[n as u8]).unwrap();
        let found = loop {
            assert!(set.wait(&mut [&mut named], LONG).unwrap());
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
    assert!(!set.wait(&mut [], Some(Duration::from_millis(1))).unwrap(), "nobody is left");
}

#[test]
fn a_stopped_publisher_keeps_nothing_from_the_set() {
    let net = Net::new("stopped peer");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut set = WaitSet::new(&b);
    let mut stopped = set.attach(subscriber(&b, "/stopped")).unwrap();
    let mut other = set.attach(subscriber(&b, "/other")).unwrap();
    let mut child = Child::spawn(&net, "publisher");
    child.expect("joined");
    child.stop();
    let mut publisher = a.publisher::<[u8]>("/other").unwrap();
    publisher.wait_for_subscribers(1, LONG).unwrap();
    publisher.send(b"x").unwrap();
    while other.try_recv().unwrap().is_none() {
        assert!(set.wait(&mut [], LONG).unwrap());
        assert!(stopped.try_recv().unwrap().is_none());
    }
    child.kill();
    loop {
        assert!(set.wait(&mut [], LONG).unwrap());
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
