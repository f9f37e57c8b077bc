//! A callback that does not return blocks its lane, and nothing else.

use std::sync::mpsc;
use std::time::Duration;

use rnet::{Error, Lane, OnFull, Subscription};

use super::{is_full, message, reader_of, reliable};
use crate::common::{LONG, Net, eventually};

const SHORT: Duration = Duration::from_millis(100);

/// A callback on `/t` that returns when `open` is dropped.
fn hangs(node: &rnet::Node) -> (Subscription, mpsc::Sender<()>, mpsc::Receiver<()>) {
    let (open, gate) = mpsc::channel::<()>();
    let (say, entered) = mpsc::channel();
    let subscription = reader_of(node, "/t").on(move |_| {
        let _ = say.send(());
        let _ = gate.recv();
    });
    (subscription, open, entered)
}

#[test]
fn publishers_delayed_by_a_blocked_callback() {
    for on_full in [OnFull::Refuse, OnFull::Wait(SHORT), OnFull::Detach { stall: SHORT }] {
        for len in [1000, 20_000] {
            let net = Net::new("hanging callback");
            let (a, b) = (net.node("a"), net.node("b"));
            let mut publisher = reliable(&a, on_full).open().unwrap();
            let (subscription, open, entered) = hangs(&b);
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
            publisher.send(&message(0, len)).unwrap();
            entered.recv_timeout(LONG).unwrap();
            let result = (1..1000).try_for_each(|i| publisher.send(&message(i, len)));
            match (on_full, result) {
                (OnFull::Detach { .. }, Ok(())) => assert_eq!(publisher.subscriber_count(), 0),
                (OnFull::Detach { .. }, Err(error)) => panic!("{error}"),
                (_, result) => is_full(&result.unwrap_err(), "/b"),
            }
            // Once it returns, it receives all other messages, or they are counted.
            drop(open);
            eventually("everything is received or counted", || {
                let stats = subscription.stats();
                let sum: u64 = stats.iter().map(|s| s.received + s.lost.detached).sum();
                sum == publisher.sent() && stats.iter().all(|s| s.lost.total() == s.lost.detached)
            });
        }
    }
}

#[test]
fn rest_of_the_node_beside_a_blocked_callback() {
    let net = Net::new("beside a blocked callback");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").open().unwrap();
    let mut stop = a.publisher::<[u8]>("/stop").urgent().open().unwrap();
    let mut plain = a.publisher::<[u8]>("/plain").open().unwrap();
    drop(publisher);
    publisher = a.publisher("/t").reliable(OnFull::Refuse).open().unwrap();
    let (subscription, open, entered) = hangs(&b);
    let (say, stopped) = mpsc::channel();
    let urgent = b.subscriber::<[u8]>("/stop").lane(Lane::Urgent).open();
    let urgent = urgent.unwrap().on(move |_| say.send(()).unwrap());
    let mut receives = b.subscriber::<[u8]>("/plain").open().unwrap();
    for p in [&publisher, &stop, &plain] {
        p.wait_for_subscribers_timeout(1, LONG).unwrap();
    }
    publisher.send(&message(0, 8)).unwrap();
    entered.recv_timeout(LONG).unwrap();

    // The other lane, receives, matching and closing continue.
    stop.send(b"stop").unwrap();
    stopped.recv_timeout(LONG).unwrap();
    plain.send(b"plain").unwrap();
    assert_eq!(&*receives.recv_timeout(LONG).unwrap(), b"plain");
    let mut late = b.publisher::<[u8]>("/late").open().unwrap();
    let mut reader = a.subscriber::<[u8]>("/late").open().unwrap();
    late.wait_for_subscribers_timeout(1, LONG).unwrap();
    late.send(b"late").unwrap();
    assert_eq!(&*reader.recv_timeout(LONG).unwrap(), b"late");
    drop(urgent);
    drop((receives, late));
    eventually("the publishers are gone", || plain.subscriber_count() == 0);

    // Dropping its subscription from outside waits for it, as documented; so does dropping its node.
    let (say, dropped) = mpsc::channel();
    let drops = std::thread::spawn(move || {
        say.send("begun").unwrap();
        drop(subscription);
        drop(b);
        say.send("done").unwrap();
    });
    assert_eq!(dropped.recv_timeout(LONG), Ok("begun"));
    // Long enough to expose a drop that does not wait; on a very busy machine this proves less.
    assert!(dropped.recv_timeout(SHORT).is_err(), "the drop did not wait for the callback");
    drop(open);
    assert_eq!(dropped.recv_timeout(LONG), Ok("done"));
    drops.join().unwrap();
    eventually("its node is closed", || publisher.subscriber_count() == 0);
    assert!(matches!(reader.recv_timeout(SHORT), Err(Error::Timeout { .. })));
}
