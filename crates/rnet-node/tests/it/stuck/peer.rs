//! Stopped processes as peers: writers that pause, nodes that do not answer.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use rnet::{Error, OnFull};

use super::{message, number, reader_of, reliable, stay};
use crate::common::{Child, LONG, Net, eventually, orders, tell};

/// Sends a message per order.
pub(crate) fn writes(net: &Net) {
    let orders = orders();
    let node = net.node("writer");
    let on_full = OnFull::Wait(Duration::from_secs(30));
    let mut publisher = reliable(&node, on_full).open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    tell("ready");
    for (i, _) in (0..).zip(orders) {
        publisher.send(&message(i, 100)).unwrap();
        publisher.send(&message(i, 10_000)).unwrap();
        tell("sent");
    }
}

/// Stopped between two messages: its reader waits, and continues at the next message.
#[test]
fn writer_stopped_between_two_messages() {
    let net = Net::new("paused writer");
    let node = net.node("reader");
    let mut subscriber = reader_of(&node, "/t");
    let mut child = Child::spawn(&net, "writer");
    child.expect("ready");
    for i in 0..5 {
        child.say("send");
        child.expect("sent");
        child.stop();
        // Earlier messages are available, and their memory stays readable.
        assert_eq!(number(&subscriber.recv_timeout(LONG).unwrap()), i);
        assert_eq!(number(&subscriber.recv_timeout(LONG).unwrap()), i);
        let nothing = subscriber.recv_timeout(Duration::from_millis(20)).map(drop);
        assert!(matches!(nothing, Err(Error::Timeout { .. })), "{nothing:?}");
        assert_eq!(subscriber.publisher_count(), 1);
        // Leaving and joining do not depend on it either.
        drop(reader_of(&node, "/t"));
        child.resume();
    }
    assert_eq!(subscriber.lost().total(), 0);
    child.finish();
}

pub(crate) fn has_one_of_each(net: &Net) {
    let node = net.node("peer");
    let _publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/late").open().unwrap();
    tell("ready");
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"late");
    stay("heard");
}

/// No node waits for a stopped node. After it resumes, it finds out what it missed, even if its FIFO had no
/// capacity for the notifications.
#[test]
fn node_that_does_not_answer() {
    let net = Net::new("stopped node");
    let mut child = Child::spawn(&net, "peer");
    child.expect("ready");
    child.stop();
    let (a, b) = (net.node("a"), net.node("b"));
    let nodes = a.domain_path().join("nodes");
    let peer = std::fs::read_dir(nodes).unwrap().map(|e| e.unwrap().path());
    let mut peers = peer.filter(|path| path.to_str().unwrap().contains("/peer@"));
    let fifo = peers.next().unwrap().join("ctl");
    let mut fifo =
        std::fs::File::options().write(true).custom_flags(libc::O_NONBLOCK).open(fifo).unwrap();
    let ring = 7_u64.to_le_bytes();
    while fifo.write(&ring).is_ok() {}
    // Announced while the FIFO has no capacity for a notification.
    let mut late = a.publisher::<[u8]>("/late").open().unwrap();
    // The others match, communicate and close.
    for i in 0..20 {
        let mut publisher = a.publisher::<[u8]>("/t").open().unwrap();
        let mut subscriber = b.subscriber::<[u8]>("/t").open().unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        publisher.send(&message(i, 100)).unwrap();
        assert_eq!(number(&subscriber.recv_timeout(LONG).unwrap()), i);
        drop(net.node("c"));
    }
    assert_eq!(late.subscriber_count(), 0);
    child.resume();
    late.wait_for_subscribers_timeout(1, LONG).unwrap();
    late.send(b"late").unwrap();
    child.expect("heard");
    child.finish();
    eventually("its end is detected", || late.subscriber_count() == 0);
}
