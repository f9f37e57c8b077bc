//! An event loop over descriptors waits for messages and state changes.

use crate::common;

use std::os::fd::BorrowedFd;

use common::{Child, LONG, Net, role, tell};
use rnet::{Error, OnFull, OwnedSample, SampleStream};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};

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
    let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(b"child").unwrap();
    tell("sent");
    drop(orders.recv());
}

fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&now)).unwrap() == 1
}

fn wait_readable(fd: BorrowedFd<'_>) {
    let long = Timespec { tv_sec: LONG.as_secs() as i64, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&long)).unwrap(), 1);
}

/// Receives until no message is available.
fn drain(stream: &mut SampleStream<[u8]>) -> Vec<OwnedSample<[u8]>> {
    std::iter::from_fn(|| stream.try_recv().unwrap()).collect()
}

#[test]
fn fd_is_readable_while_messages_are_left() {
    let net = Net::new("level");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").open().unwrap();
    let mut stream = b.subscriber::<[u8]>("/t").open().unwrap().into_stream();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    // The publisher itself may have made it ready.
    stream.fd().unwrap();
    assert!(drain(&mut stream).is_empty());
    for round in 0..100_u8 {
        publisher.send(&[round]).unwrap();
        publisher.send(&[round]).unwrap();
        wait_readable(stream.fd().unwrap());
        assert_eq!(**stream.try_recv().unwrap().as_ref().unwrap(), [round]);
        assert!(is_readable(stream.fd().unwrap()), "one message is left");
        wait_readable(stream.fd().unwrap());
        assert!(drain(&mut stream).len() <= 1);
    }
    while !drain(&mut stream).is_empty() {}
    assert!(!is_readable(stream.fd().unwrap()));
    // Messages from before the first call count, too.
    let mut stream = b.subscriber::<[u8]>("/t").open().unwrap().into_stream();
    publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
    publisher.send(b"first").unwrap();
    wait_readable(stream.fd().unwrap());
    // As a subscriber it has no descriptor, and loses no message.
    let mut subscriber = stream.into_source().unwrap();
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"first");
}

/// Each message arrives at a random moment for the receiver and the dispatch thread; no wake-up may be lost.
#[test]
fn no_wake_up_is_lost() {
    const COUNT: u64 = 20_000;
    let net = Net::new("no lost wake-up");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").reliable(OnFull::Wait(LONG)).open().unwrap();
    let mut stream = b.subscriber::<[u8]>("/t").reliable().open().unwrap().into_stream();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let sender = std::thread::spawn(move || {
        for n in 0..COUNT {
            publisher.send(&n.to_le_bytes()).unwrap();
            // Pauses around the duration of a wake-up.
            (0..(n * 7919) % 4_000).for_each(|_| std::hint::spin_loop());
        }
        publisher
    });
    let mut next = 0_u64;
    while next < COUNT {
        wait_readable(stream.fd().unwrap());
        for sample in drain(&mut stream) {
            assert_eq!(sample[..], next.to_le_bytes());
            next += 1;
        }
    }
    drop(sender.join().unwrap());
}

#[test]
fn sixty_four_subscribers_and_a_watch_are_one_epoll() {
    let net = Net::new("one epoll");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publishers = Vec::new();
    let mut streams = Vec::new();
    for n in 0..64 {
        publishers.push(a.publisher::<[u8]>(&format!("/t{n}")).open().unwrap());
        streams.push(b.subscriber::<[u8]>(&format!("/t{n}")).open().unwrap().into_stream());
    }
    let mut watch = b.state().unwrap().watch("/arm").unwrap().into_stream();
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    for (n, stream) in streams.iter_mut().enumerate() {
        let data = epoll::EventData::new_u64(n as u64);
        epoll::add(&set, stream.fd().unwrap(), data, epoll::EventFlags::IN).unwrap();
    }
    let data = epoll::EventData::new_u64(64);
    epoll::add(&set, watch.fd().unwrap(), data, epoll::EventFlags::IN).unwrap();
    for publisher in &mut publishers {
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        publisher.send(b"x").unwrap();
    }
    a.state().unwrap().set("/arm/mode", "idle").unwrap();
    let mut left: std::collections::BTreeSet<u64> = (0..=64).collect();
    let mut events = [epoll::Event { flags: epoll::EventFlags::empty(), data }; 16];
    while !left.is_empty() {
        let long = Timespec { tv_sec: 30, tv_nsec: 0 };
        let count = epoll::wait(&set, &mut events, Some(&long)).unwrap();
        assert!(count > 0, "not received: {left:?}");
        for event in &events[..count] {
            let n = event.data.u64();
            let found = match streams.get_mut(n as usize) {
                Some(stream) => drain(stream).len(),
                None => std::iter::from_fn(|| watch.try_recv().unwrap()).count(),
            };
            assert!(found == 0 || left.remove(&n), "{n} was received before");
        }
    }
    // Removed while the others stay.
    epoll::delete(&set, streams[0].fd().unwrap()).unwrap();
    drop(streams.remove(0));
    publishers[1].send(b"y").unwrap();
    wait_readable(streams[0].fd().unwrap());
    assert_eq!(drain(&mut streams[0]).len(), 1);
}

/// A stopped publisher does not block the loop, and a dead one wakes it.
#[test]
fn a_stopped_publisher_and_a_killed_one() {
    let net = Net::new("stopped");
    let b = net.node("b");
    let mut stream = b.subscriber::<[u8]>("/t").open().unwrap().into_stream();
    stream.fd().unwrap();
    let mut child = Child::spawn(&net, "publisher");
    child.expect("sent");
    wait_readable(stream.fd().unwrap());
    assert_eq!(drain(&mut stream).len(), 1);
    child.stop();
    let other = net.node("other");
    let mut publisher = other.publisher::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(b"other").unwrap();
    let mut received = Vec::new();
    while received.is_empty() {
        wait_readable(stream.fd().unwrap());
        received = drain(&mut stream);
    }
    assert_eq!(&received[0][..], b"other");
    child.kill();
    loop {
        wait_readable(stream.fd().unwrap());
        match stream.try_recv() {
            Err(Error::PeerLost { .. }) => break,
            Ok(None) => {}
            other => panic!("{other:?}"),
        }
    }
}
