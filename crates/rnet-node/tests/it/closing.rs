//! Closing and dropping publishers whose reliable subscribers have not read large messages, and removing
//! callbacks by their guards.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rnet::{Error, OnFull, Publisher, Subscriber};

use crate::common::{LONG, Net, eventually};

const LARGE: &[u8] = &[5; 100_000];

/// A publisher with an unread large message, its node, and the subscriber.
fn unread(net: &Net) -> (rnet::Node, Publisher<[u8]>, Subscriber<[u8]>) {
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").reliable(OnFull::Refuse).open().unwrap();
    let subscriber = b.subscriber::<[u8]>("/t").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(LARGE).unwrap();
    (a, publisher, subscriber)
}

/// The files of large messages: `p`, the publisher's number, `.`, the file's number.
fn files(node: &rnet::Node) -> usize {
    let paths = walk(node.domain_path());
    let names = paths.iter().filter_map(|path| path.file_name()?.to_str());
    let numbers = names.filter_map(|name| name.strip_prefix('p')?.split_once('.'));
    numbers
        .filter(|(one, other)| one.parse::<u32>().is_ok() && other.parse::<u32>().is_ok())
        .count()
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => found.extend(walk(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

#[test]
fn close_waits_until_large_messages_are_read() {
    let net = Net::new("close waits");
    let (_a, publisher, mut subscriber) = unread(&net);
    let reader = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50)); // sleep: the close has to wait
        let read = subscriber.recv_timeout(LONG).unwrap().len();
        (read, subscriber.lost().total())
    });
    publisher.close(LONG).unwrap();
    assert_eq!(reader.join().unwrap(), (LARGE.len(), 0));
}

#[test]
fn close_reports_large_messages_that_nobody_read() {
    let net = Net::new("close reports");
    let (a, publisher, mut subscriber) = unread(&net);
    let error = publisher.close(Duration::from_millis(10)).unwrap_err();
    assert!(matches!(&error, Error::Timeout { .. }) && error.topic() == Some("/t"), "{error}");
    assert_eq!(files(&a), 0, "its memory is freed at once");
    let error = subscriber.recv_timeout(Duration::from_millis(50)).unwrap_err();
    assert_eq!(error.code(), "timeout");
    assert_eq!(subscriber.lost().total(), 1);
}

/// The publisher is dropped at once, and the node later: it waits.
#[test]
fn a_node_keeps_what_dropped_publishers_sent() {
    let net = Net::new("node keeps");
    let (a, publisher, mut subscriber) = unread(&net);
    drop(publisher);
    assert!(files(&a) > 0);
    let closing = std::thread::spawn(move || drop(a));
    assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), *LARGE);
    closing.join().unwrap();
    assert_eq!(subscriber.lost().total(), 0);
}

/// A subscriber that never reads holds the memory for a second, and no thread.
#[test]
fn a_node_frees_what_nobody_reads() {
    let net = Net::new("node frees");
    let (a, publisher, subscriber) = unread(&net);
    let began = Instant::now();
    drop(publisher);
    eventually("the memory is freed", || files(&a) == 0);
    assert!(began.elapsed() >= Duration::from_millis(900), "{:?}", began.elapsed());
    drop(subscriber);
}

#[test]
fn a_dropped_guard_removes_its_callback_and_no_other() {
    let net = Net::new("guards");
    let (a, b) = (net.node("a"), net.node("b"));
    let publisher = a.publisher::<[u8]>("/t").open().unwrap();
    let (sender, events) = channel();
    let hook = |name: &'static str| {
        let sender = sender.clone();
        move |_: &rnet::MatchEvent| _ = sender.send(name)
    };
    let first = publisher.on_match(hook("first"));
    publisher.on_match(hook("second")).detach();
    drop(first);
    let subscriber = b.subscriber::<[u8]>("/t").open().unwrap();
    assert_eq!(events.recv_timeout(LONG), Ok("second"));
    drop(subscriber);
    assert_eq!(events.recv_timeout(LONG), Ok("second"));
    assert!(events.try_recv().is_err());
}

/// Otherwise what the callback uses could be freed under it.
#[test]
fn dropping_a_guard_waits_for_the_running_call() {
    let net = Net::new("guard waits");
    let (a, b) = (net.node("a"), net.node("b"));
    let publisher = a.publisher::<[u8]>("/t").open().unwrap();
    let ((began, begun), (go, gone)) = (channel(), channel::<()>());
    let (ended, end) = channel();
    let guard = publisher.on_match(move |_| {
        let _ = began.send(());
        let _ = gone.recv();
        let _ = ended.send(());
    });
    let _subscriber = b.subscriber::<[u8]>("/t").open().unwrap();
    begun.recv_timeout(LONG).unwrap();
    let dropping = std::thread::spawn(move || drop(guard));
    std::thread::sleep(Duration::from_millis(20)); // sleep: the drop has to wait
    assert!(!dropping.is_finished());
    drop(go);
    dropping.join().unwrap();
    assert_eq!(end.try_recv(), Ok(()));
}

/// A callback that removes itself must not wait for itself.
#[test]
fn a_callback_may_drop_its_own_guard() {
    let net = Net::new("own guard");
    let (a, b) = (net.node("a"), net.node("b"));
    let publisher = a.publisher::<[u8]>("/t").open().unwrap();
    let own = std::sync::Arc::new(std::sync::Mutex::new(None));
    let (sender, events) = channel();
    let held = own.clone();
    let guard = publisher.on_match(move |_| {
        drop(held.lock().unwrap().take());
        let _ = sender.send(());
    });
    *own.lock().unwrap() = Some(guard);
    let subscriber = b.subscriber::<[u8]>("/t").open().unwrap();
    events.recv_timeout(LONG).unwrap();
    drop(subscriber);
    // The callback, and with it the sender, is dropped with the guard.
    assert_eq!(events.recv_timeout(LONG), Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
}

/// Options override `qos`, whichever is called first.
#[test]
fn an_option_overrides_the_given_quality_of_service() {
    let net = Net::new("qos order");
    let node = net.node("a");
    let latched = rnet::PublisherQos {
        durability: rnet::Durability::TransientLocal { depth: 3 },
        ..rnet::PublisherQos::default()
    };
    let before = node.publisher::<[u8]>("/a").urgent().qos(latched.clone()).open().unwrap();
    let after = node.publisher::<[u8]>("/b").qos(latched).urgent().open().unwrap();
    let (sender, endpoints) = channel();
    let watch = node.on_endpoint(move |event| {
        let _ = sender.send((event.endpoint().topic.clone(), event.endpoint().qos.clone()));
    });
    for _ in 0..2 {
        let (topic, qos) = endpoints.recv_timeout(LONG).unwrap();
        let rnet::EndpointQos::Publisher(qos) = qos else { panic!("{topic}") };
        assert_eq!(qos.lane, rnet::Lane::Urgent, "{topic}");
        assert_eq!(qos.durability, rnet::Durability::TransientLocal { depth: 3 }, "{topic}");
    }
    drop((before, after, watch));
}

/// A program that opens and drops publishers without end must not fill the memory of all.
#[test]
fn dropped_publishers_keep_a_bounded_number_of_messages() {
    let net = Net::new("many dropped");
    let (a, b) = (net.node("a"), net.node("b"));
    let _reader = b.subscriber::<[u8]>("/t").reliable().open().unwrap();
    let mut most = 0;
    for _ in 0..100 {
        let mut publisher = a.publisher::<[u8]>("/t").reliable(OnFull::Refuse).open().unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        publisher.send(LARGE).unwrap();
        drop(publisher);
        most = most.max(files(&a));
    }
    assert!((1..=64).contains(&most), "{most}");
}

/// It must not spin, and its node keeps the message.
#[test]
fn an_interrupt_ends_a_close() {
    let net = Net::new("interrupted close");
    let (a, publisher, mut subscriber) = unread(&net);
    publisher.interrupter().interrupt();
    assert_eq!(publisher.close(Duration::MAX).unwrap_err(), Error::Interrupted);
    assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), *LARGE);
    drop(a);
}

/// Otherwise an endpoint that is opened and closed in a loop would leave its callbacks.
#[test]
fn a_kept_guard_does_not_keep_the_callback_of_a_closed_endpoint() {
    let net = Net::new("kept guard");
    let node = net.node("a");
    let used = std::sync::Arc::new(());
    let publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let captured = used.clone();
    let guard = publisher.on_match(move |_| _ = &captured);
    drop(publisher);
    eventually("the callback is freed", || std::sync::Arc::strong_count(&used) == 1);
    drop(guard);
}
