//! Proxies: endpoints that represent endpoints of other hosts, and what nodes and tools see of them.

use crate::common;

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::bridge::ProxyPublisher;
use rnet::bridge::{BridgePublisherBuilder, BridgeSubscriberBuilder, ProxySubscription};
use rnet::{EndpointEvent, Error, MatchEvent, Node, OnFull, Proxy, Publisher, Subscriber};

fn arm() -> Proxy {
    Proxy::new("robot2", "/arm", 7).unwrap()
}

fn subscriber(link: &Node, topic: &str, ends: u32) -> Subscriber<[u8]> {
    link.subscriber(topic).proxy(arm(), ends).open().unwrap()
}

fn publisher(link: &Node, topic: &str) -> Publisher<[u8]> {
    link.publisher(topic).proxy(arm()).open().unwrap()
}

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    if role == "watcher" {
        let watcher = net.node("watcher");
        let _watch = watcher.on_endpoint(|event| match event {
            EndpointEvent::Closed(_) => tell("closed"),
            event => tell(&event.endpoint().endpoint_count.to_string()),
        });
        drop(common::orders().recv());
        return;
    }
    let link = net.node("link");
    let _ends = (subscriber(&link, "/t", 5), publisher(&link, "/u"));
    tell("ready");
    drop(common::orders().recv());
}

#[test]
fn a_publisher_that_defers_serves_a_subscription_once_it_admits_it() {
    let net = Net::new("proxy defers");
    let (node, link) = (net.node("node"), net.node("link"));
    let mut proxy =
        link.publisher::<[u8]>("/t").proxy(arm()).transient_local(2).deferred().open().unwrap();
    let (tell, events) = mpsc::channel();
    proxy.on_match(move |event| tell.send(event.clone()).unwrap()).detach();
    let next = || events.recv_timeout(LONG).unwrap();
    let mut volatile = node.subscriber::<[u8]>("/t").open().unwrap();
    let MatchEvent::AdmissionRequested(first) = next() else {
        panic!("the subscription has asked")
    };
    assert_eq!(proxy.awaiting_admission(), std::slice::from_ref(&first));
    assert_eq!((proxy.subscriber_count(), volatile.publisher_count()), (0, 0));
    // Messages sent meanwhile are history for subscriptions admitted later.
    for message in [b"1", b"2", b"3"] {
        proxy.send(message).unwrap();
    }
    let mut late = node.subscriber::<[u8]>("/t").transient_local().open().unwrap();
    let MatchEvent::AdmissionRequested(second) = next() else {
        panic!("the subscription has asked")
    };
    proxy.admit(second.id).unwrap();
    assert_eq!(next(), MatchEvent::Matched(second));
    assert_eq!(proxy.awaiting_admission(), std::slice::from_ref(&first));
    late.wait_for_publishers_timeout(1, LONG).unwrap();
    proxy.admit(first.id).unwrap();
    assert_eq!(next(), MatchEvent::Matched(first.clone()));
    volatile.wait_for_publishers_timeout(1, LONG).unwrap();
    assert!(proxy.awaiting_admission().is_empty());
    proxy.send(b"4").unwrap();
    for message in [b"2", b"3", b"4"] {
        assert_eq!(&*late.recv_timeout(LONG).unwrap(), message);
    }
    assert_eq!(&*volatile.recv_timeout(LONG).unwrap(), b"4");
    // A subscription that closes withdraws its request, and a new one asks again.
    drop(volatile);
    assert_eq!(next(), MatchEvent::Unmatched(first));
    let passing = node.subscriber::<[u8]>("/t").open().unwrap();
    let MatchEvent::AdmissionRequested(_) = next() else { panic!("the subscription has asked") };
    drop(passing);
    eventually("no subscription asks", || proxy.awaiting_admission().is_empty());
}

#[test]
fn a_publisher_counts_the_subscribers_for_which_proxies_stand() {
    let net = Net::new("proxy counts");
    let (node, link) = (net.node("node"), net.node("link"));
    let mut publisher = node.publisher::<[u8]>("/t").reliable(OnFull::Refuse).open().unwrap();
    let (tell, events) = mpsc::channel();
    publisher.on_match(move |event| tell.send(event.clone()).unwrap()).detach();
    let next = || events.recv_timeout(LONG).unwrap();
    let mut proxy = subscriber(&link, "/t", 3);
    publisher.wait_for_subscribers_timeout(3, LONG).unwrap();
    assert_eq!(publisher.subscriber_count(), 3);
    let peers = publisher.subscribers();
    assert_eq!((peers.len(), peers[0].node.as_str()), (1, "@robot2/arm"));
    let peer = peers[0].clone();
    assert_eq!(next(), MatchEvent::Matched(peer.clone()));
    // A normal subscription counts once.
    let own = node.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(4, LONG).unwrap();
    assert!(matches!(next(), MatchEvent::Matched(own) if own.node == "/node"));
    proxy.set_endpoint_count(5).unwrap();
    publisher.wait_for_subscribers_timeout(6, LONG).unwrap();
    assert_eq!(next(), MatchEvent::Changed(peer.clone()));
    proxy.set_endpoint_count(5).unwrap();
    proxy.set_endpoint_count(1).unwrap();
    eventually("it counts as one", || publisher.subscriber_count() == 2);
    assert_eq!(next(), MatchEvent::Changed(peer.clone()));
    for ends in [0, (1 << 16) + 1, u32::MAX] {
        assert!(matches!(proxy.set_endpoint_count(ends), Err(Error::BadValue { .. })));
        let refused = link.subscriber::<[u8]>("/t").proxy(arm(), ends).open();
        assert!(matches!(refused, Err(Error::BadValue { .. })));
    }
    assert!(matches!(own.set_endpoint_count(2), Err(Error::BadValue { .. })), "it is not a proxy");
    // Messages pass through it as through any other.
    publisher.send(b"one").unwrap();
    assert_eq!(&*proxy.recv_timeout(LONG).unwrap(), b"one");
    drop(proxy);
    eventually("the proxy is gone", || publisher.subscriber_count() == 1);
    assert_eq!(next(), MatchEvent::Unmatched(peer));
}

#[test]
fn a_subscriber_sees_the_node_behind_a_proxy() {
    let net = Net::new("proxy publisher");
    let (node, link) = (net.node("node"), net.node("link"));
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    let mut proxy = publisher(&link, "/t");
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    assert_eq!(subscriber.publisher_count(), 1);
    assert_eq!(subscriber.publishers()[0].node, "@robot2/arm");
    proxy.send(b"one").unwrap();
    let sample = subscriber.recv_timeout(LONG).unwrap();
    assert_eq!((&*sample, sample.node()), (&b"one"[..], "@robot2/arm"));
    assert_eq!(subscriber.stats()[0].node, "@robot2/arm");
    // A type mismatch is reported with the node that has the type.
    let _strange = node.publisher::<rnet::msgs::JointState>("/joints").open().unwrap();
    let level =
        rnet::schema::compile_text("l.proto", "syntax=\"proto3\"; message Level { double v = 1; }");
    let level = level.unwrap().schema("Level").unwrap();
    let mut bad = link.subscriber::<[u8]>("/joints").proxy(arm(), 1).schema(&level).open().unwrap();
    let error = bad.wait_for_publishers_timeout(1, LONG).unwrap_err();
    assert!(matches!(error, Error::IncompatibleType { .. }), "{error}");
}

#[test]
fn endpoint_watches_see_the_count_of_a_proxy() {
    let net = Net::new("proxy endpoints");
    let (node, link) = (net.node("node"), net.node("link"));
    let (tell, events) = mpsc::channel();
    let _watch = node.on_endpoint(move |event| tell.send(event.clone()).unwrap()).unwrap();
    let next = || events.recv_timeout(LONG).unwrap();
    let proxy = subscriber(&link, "/t", 2);
    let EndpointEvent::Opened(opened) = next() else { panic!("not opened") };
    assert_eq!((opened.node.as_str(), opened.endpoint_count), ("@robot2/arm", 2));
    let of = opened.proxy.as_ref().unwrap();
    assert_eq!((of.host(), of.node(), of.endpoint()), ("robot2", "/arm", 7));
    proxy.set_endpoint_count(9).unwrap();
    let EndpointEvent::Changed(changed) = next() else { panic!("not changed") };
    assert_eq!((changed.id, changed.endpoint_count), (opened.id, 9));
    drop(proxy);
    assert_eq!(next(), EndpointEvent::Closed(changed));
    // A later watch sees the current count of the proxy.
    let proxy = subscriber(&link, "/t", 2);
    proxy.set_endpoint_count(4).unwrap();
    let seen: Arc<Mutex<Vec<u32>>> = Arc::default();
    let late = seen.clone();
    let _late =
        link.on_endpoint(move |event| late.lock().unwrap().push(event.endpoint().endpoint_count));
    eventually("the late watch gets the event", || *seen.lock().unwrap() == [4]);
}

#[test]
fn resumed_watcher_sees_the_current_count_of_a_proxy() {
    let net = Net::new("proxy stopped watcher");
    let link = net.node("link");
    let proxy = subscriber(&link, "/t", 2);
    let mut watcher = Child::spawn(&net, "watcher");
    watcher.expect("2");
    watcher.stop();
    // More changes than fit in its FIFO.
    for ends in (1..=10_000).rev() {
        proxy.set_endpoint_count(ends).unwrap();
    }
    proxy.set_endpoint_count(7).unwrap();
    watcher.resume();
    while watcher.hear() != "7" {}
    watcher.stop();
    drop(proxy);
    watcher.resume();
    watcher.expect("closed");
}

#[test]
fn tools_show_the_nodes_for_which_proxies_stand() {
    let net = Net::new("proxy inspect");
    let link = net.node("link");
    let (_p, s) = (publisher(&link, "/t"), subscriber(&link, "/u", 3));
    let _own = link.publisher::<[u8]>("/link/stats").open().unwrap();
    s.set_endpoint_count(6).unwrap();
    let snapshot = net.inspect();
    assert_eq!(snapshot.node("/link").unwrap().publishes, ["/link/stats"]);
    assert!(snapshot.node("/link").unwrap().subscribes.is_empty());
    let remote = &snapshot.remote;
    assert_eq!((remote.len(), remote[0].node.as_str()), (1, "@robot2/arm"));
    assert_eq!(
        (&remote[0].publishes[..], &remote[0].subscribes[..]),
        (&["/t".to_owned()][..], &["/u".to_owned()][..])
    );
    let publisher = snapshot.publishers.iter().find(|p| p.topic == "/t").unwrap();
    assert_eq!((publisher.node.as_str(), publisher.via.as_deref()), ("@robot2/arm", Some("/link")));
    assert_eq!(snapshot.subscription_count("/u"), 6);
}

#[test]
fn proxy_of_a_dead_process_is_not_counted() {
    let net = Net::new("proxy death");
    let node = net.node("node");
    let publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/u").open().unwrap();
    let mut child = Child::spawn(&net, "link");
    child.expect("ready");
    publisher.wait_for_subscribers_timeout(5, LONG).unwrap();
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    child.kill();
    eventually("its subscriptions are gone", || publisher.subscriber_count() == 0);
    let error = subscriber.recv_timeout(LONG).unwrap_err();
    assert!(matches!(&error, Error::PeerLost { node, .. } if node == "@robot2/arm"), "{error}");
    assert!(net.inspect().remote.is_empty());
}

/// The folder of the node `link`.
fn folder(net: &Net) -> PathBuf {
    let nodes = std::fs::read_dir(net.inspect_path().join("nodes")).unwrap();
    let mut paths = nodes.map(|entry| entry.unwrap().path());
    paths.find(|path| path.to_string_lossy().contains("link")).unwrap()
}

fn scribble(path: PathBuf, at: u64, bytes: &[u8]) {
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, at).unwrap();
}

#[test]
fn of_two_entries_of_one_endpoint_the_first_counts() {
    let net = Net::new("one endpoint twice");
    let link = net.node("link");
    let _ends = [subscriber(&link, "/a", 2), subscriber(&link, "/b", 2)];
    let path = folder(&net).join("node");
    let list = std::fs::read(&path).unwrap();
    scribble(path.clone(), 8192 + 32, &list[8192..8192 + 24]);
    scribble(path, 8192 + 32 + 24, &7u64.to_le_bytes());
    let node = net.node("node");
    let publisher = node.publisher::<[u8]>("/a").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    assert_eq!(publisher.subscriber_count(), 2);
    let (tell, events) = mpsc::channel();
    let _watch = node.on_endpoint(move |event| tell.send(event.clone()).unwrap()).unwrap();
    let mark = node.publisher::<[u8]>("/mark").open().unwrap();
    drop(mark);
    let mut reported = Vec::new();
    loop {
        let event: EndpointEvent = events.recv_timeout(LONG).unwrap();
        match event {
            EndpointEvent::Closed(_) => break,
            EndpointEvent::Opened(endpoint) => {
                reported.push((endpoint.topic.clone(), endpoint.endpoint_count))
            }
            other => panic!("{other:?}"),
        }
    }
    reported.sort_unstable();
    let expected = [("/a", 1), ("/a", 2), ("/mark", 1)].map(|(topic, n)| (topic.to_owned(), n));
    assert_eq!(reported, expected);
}

#[test]
fn impossible_numbers_and_names_are_ignored() {
    let net = Net::new("hostile proxy");
    let link = net.node("link");
    let _ends =
        [subscriber(&link, "/a", 2), subscriber(&link, "/b", 2), subscriber(&link, "/c", 2)];
    let (_p, _q) = (publisher(&link, "/p"), publisher(&link, "/q"));
    let folder = folder(&net);
    // The list begins at 8192, an entry has 32 bytes, and its last word is the number of endpoints that it
    // represents.
    let ends = |index: u64, ends: u64| {
        scribble(folder.join("node"), 8192 + index * 32 + 24, &ends.to_le_bytes())
    };
    ends(0, 1 << 17);
    ends(1, 1 << 40 | 2);
    ends(3, 2);
    // The host name in the description, which is at 4096, becomes invalid.
    let path = folder.join("p4");
    let text = std::fs::read(&path).unwrap();
    let at = text.windows(6).position(|w| w == b"robot2").unwrap();
    scribble(path, at as u64, b"ro/ot2");
    let snapshot = net.inspect();
    let mut topics = snapshot.topics();
    topics.sort_unstable();
    assert_eq!(topics, ["/c"], "{snapshot:?}");
    assert!(snapshot.problems.iter().any(|problem| problem.contains("host")), "{snapshot:?}");
    // A node that joins now does not see it either.
    let node = net.node("node");
    let [a, b, c] = ["/a", "/b", "/c"].map(|topic| node.publisher::<[u8]>(topic).open().unwrap());
    c.wait_for_subscribers_timeout(2, LONG).unwrap();
    assert_eq!([a.subscriber_count(), b.subscriber_count()], [0, 0]);
    let mut readers = ["/p", "/q"].map(|topic| node.subscriber::<[u8]>(topic).open().unwrap());
    assert_eq!(readers.each_mut().map(|s| s.publisher_count()), [0, 0]);
}
