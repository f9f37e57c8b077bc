//! `Node::on_endpoint`: reports each endpoint of the domain once when it opens and once when it closes.

use crate::common;

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::{EndpointEvent, EndpointQos, EndpointWatch, Error, Node, Reliability};

/// How often the endpoints of each node and topic were opened, closed and lost.
type Counts = BTreeMap<(String, String), [usize; 3]>;

/// The events that a watch reported.
#[derive(Clone, Default)]
struct EndpointCounts(Arc<Mutex<Counts>>);

impl EndpointCounts {
    fn watch(&self, node: &Node) -> EndpointWatch {
        let counts = self.clone();
        node.on_endpoint(move |event| counts.note(event)).unwrap()
    }

    fn note(&self, event: &EndpointEvent) {
        let endpoint = event.endpoint();
        let key = (endpoint.node.clone(), endpoint.topic.clone());
        let at = match event {
            EndpointEvent::Opened(_) => 0,
            EndpointEvent::Closed(_) => 1,
            EndpointEvent::Lost(_) => 2,
            other => panic!("{other:?}"),
        };
        self.0.lock().unwrap().entry(key).or_default()[at] += 1;
    }

    fn of(&self, node: &str, topic: &str) -> [usize; 3] {
        let key = (node.to_owned(), topic.to_owned());
        self.0.lock().unwrap().get(&key).copied().unwrap_or_default()
    }

    fn expect(&self, node: &str, topic: &str, counts: [usize; 3]) {
        eventually(&format!("{node} {topic} {counts:?}, {:?}", self.of(node, topic)), || {
            self.of(node, topic) == counts
        });
    }
}

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let node = net.node("victim");
    let _first = node.publisher::<[u8]>("/first").open().unwrap();
    tell("ready");
    let orders = common::orders();
    match role.as_str() {
        "leaves" => drop(orders.recv()),
        _ => loop {
            std::thread::park();
        },
    }
}

#[test]
fn existing_endpoints_are_reported_first_with_their_description() {
    let net = Net::new("existing endpoints");
    let (a, b) = (net.node("a"), net.node("b"));
    let publisher = a.publisher::<[u8]>("/t").reliable(rnet::OnFull::Refuse).open().unwrap();
    let _subscriber = b.subscriber::<[u8]>("/t").keep_last(3).open().unwrap();
    let (tell, events) = mpsc::channel();
    let watch = b.on_endpoint(move |event| tell.send(event.clone()).unwrap()).unwrap();
    let next = || events.recv_timeout(LONG).unwrap();
    let mut ends = [next().endpoint().clone(), next().endpoint().clone()];
    ends.sort_by(|x, y| x.node.cmp(&y.node));
    assert_eq!((ends[0].node.as_str(), ends[0].topic.as_str()), ("/a", "/t"));
    assert_eq!((ends[0].id, &ends[0].type_desc), (publisher.id(), &rnet::TypeDesc::Raw));
    let EndpointQos::Publisher(qos) = &ends[0].qos else { panic!("{:?}", ends[0]) };
    assert_eq!(qos.reliability, Reliability::Reliable);
    let EndpointQos::Subscriber(qos) = &ends[1].qos else { panic!("{:?}", ends[1]) };
    assert_eq!((ends[1].node.as_str(), qos.depth()), ("/b", Some(3)));
    drop(publisher);
    assert_eq!(next(), EndpointEvent::Closed(ends[0].clone()));
    drop(watch);
    let _other = a.publisher::<[u8]>("/t").open().unwrap();
    assert!(events.recv_timeout(LONG).is_err(), "the watch dropped its callback");
}

#[test]
fn endpoints_are_reported_without_a_match() {
    let net = Net::new("endpoints come and go");
    let (watcher, other) = (net.node("watcher"), net.node("other"));
    let (counts, too) = (EndpointCounts::default(), EndpointCounts::default());
    let watch = counts.watch(&watcher);
    let own = watcher.publisher::<[u8]>("/own").open().unwrap();
    counts.expect("/watcher", "/own", [1, 0, 0]);
    let publisher = other.publisher::<[u8]>("/p").open().unwrap();
    counts.expect("/other", "/p", [1, 0, 0]);
    let subscriber = other.subscriber::<[u8]>("/s").open().unwrap();
    counts.expect("/other", "/s", [1, 0, 0]);
    // A second watch begins with the existing endpoints, and does not affect the first.
    let second = too.watch(&watcher);
    too.expect("/other", "/p", [1, 0, 0]);
    too.expect("/other", "/s", [1, 0, 0]);
    drop(publisher);
    counts.expect("/other", "/p", [1, 1, 0]);
    drop(watch);
    drop((subscriber, own));
    too.expect("/other", "/s", [1, 1, 0]);
    too.expect("/watcher", "/own", [1, 1, 0]);
    assert_eq!(counts.of("/other", "/s"), [1, 0, 0]);
    // Without a watch, and then again with one.
    drop(second);
    let _late = other.publisher::<[u8]>("/late").open().unwrap();
    let again = EndpointCounts::default();
    let _watch = again.watch(&watcher);
    again.expect("/other", "/late", [1, 0, 0]);
    assert_eq!(again.of("/other", "/p"), [0, 0, 0]);
    // A node that joins later.
    let late = net.node("late");
    let publisher = late.publisher::<[u8]>("/p").open().unwrap();
    again.expect("/late", "/p", [1, 0, 0]);
    drop((publisher, late));
    again.expect("/late", "/p", [1, 1, 0]);
}

#[test]
fn a_node_that_dies_takes_its_endpoints_and_one_that_is_stopped_keeps_them() {
    let net = Net::new("endpoints of the dead");
    let watcher = net.node("watcher");
    let counts = EndpointCounts::default();
    let _watch = counts.watch(&watcher);
    let mut child = Child::spawn(&net, "stays");
    child.expect("ready");
    counts.expect("/victim", "/first", [1, 0, 0]);
    child.stop();
    let mark = net.node("mark");
    let _mark = mark.publisher::<[u8]>("/mark").open().unwrap();
    counts.expect("/mark", "/mark", [1, 0, 0]);
    assert_eq!(counts.of("/victim", "/first"), [1, 0, 0]);
    // A watch that begins while the node is stopped.
    let late = EndpointCounts::default();
    let _late = late.watch(&mark);
    late.expect("/victim", "/first", [1, 0, 0]);
    child.kill();
    counts.expect("/victim", "/first", [1, 0, 1]);
    late.expect("/victim", "/first", [1, 0, 1]);
    let mut child = Child::spawn(&net, "leaves");
    child.expect("ready");
    counts.expect("/victim", "/first", [2, 0, 1]);
    child.say("leave");
    counts.expect("/victim", "/first", [2, 1, 1]);
    child.ended();
}

#[test]
fn many_concurrent_endpoints_are_reported_once_each() {
    let net = Net::new("many endpoints");
    let watchers = [net.node("watcher1"), net.node("watcher2")];
    let watched = [EndpointCounts::default(), EndpointCounts::default()];
    let _watches: Vec<EndpointWatch> =
        watched.iter().zip(&watchers).map(|(watched, node)| watched.watch(node)).collect();
    let threads: Vec<_> = (0..4)
        .map(|t| {
            let node = net.node(&format!("n{t}"));
            std::thread::spawn(move || {
                let publishers: Vec<_> = (0..32)
                    .map(|i| node.publisher::<[u8]>(&format!("/t{t}/p{i}")).open().unwrap())
                    .collect();
                let subscribers: Vec<_> = (0..32)
                    .map(|i| node.subscriber::<[u8]>(&format!("/t{t}/s{i}")).open().unwrap())
                    .collect();
                (node, publishers, subscribers)
            })
        })
        .collect();
    let ends: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let all = |counts: [usize; 3]| {
        for watched in &watched {
            eventually("all are reported", || {
                let watched = watched.0.lock().unwrap();
                watched.len() == 256 && watched.values().all(|of| *of == counts)
            });
        }
    };
    all([1, 0, 0]);
    drop(ends);
    all([1, 1, 0]);
}

/// The opener of an endpoint may not see the new watch yet, and the watch may have read the list before.
#[test]
fn watch_that_begins_while_endpoints_open_misses_none() {
    let net = Net::new("watch begins");
    let (watcher, other) = (net.node("watcher"), net.node("other"));
    for round in 0..50 {
        let counts = EndpointCounts::default();
        let topic = move |i: usize| format!("/r{round}/p{i}");
        let (publishers, watch) = std::thread::scope(|scope| {
            let (other, topic) = (&other, &topic);
            let open = move |i| other.publisher::<[u8]>(&topic(i)).open().unwrap();
            let publishers = scope.spawn(move || (0..4).map(open).collect::<Vec<_>>());
            let watch = counts.watch(&watcher);
            (publishers.join().unwrap(), watch)
        });
        (0..4).for_each(|i| counts.expect("/other", &topic(i), [1, 0, 0]));
        drop(publishers);
        (0..4).for_each(|i| counts.expect("/other", &topic(i), [1, 1, 0]));
        drop(watch);
    }
}

#[test]
fn watch_can_be_dropped_in_its_callback_and_stops_after_a_panic() {
    let net = Net::new("watch dropped in its callback");
    let node = net.node("n");
    let (calls, panics) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let held: Arc<Mutex<Option<EndpointWatch>>> = Arc::default();
    let (counted, own, captured) = (calls.clone(), held.clone(), Arc::new(()));
    let gone = Arc::downgrade(&captured);
    let mut slot = held.lock().unwrap();
    let watch = node.on_endpoint(move |_| {
        let _captured = &captured;
        counted.fetch_add(1, Ordering::Relaxed);
        drop(own.lock().unwrap().take());
    });
    *slot = Some(watch.unwrap());
    drop(slot);
    let counted = panics.clone();
    let _panics = node
        .on_endpoint(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            panic!("on purpose");
        })
        .unwrap();
    let counts = EndpointCounts::default();
    let _watch = counts.watch(&node);
    let _ends: Vec<_> =
        (0..3).map(|i| node.publisher::<[u8]>(&format!("/t{i}")).open().unwrap()).collect();
    for i in 0..3 {
        counts.expect("/n", &format!("/t{i}"), [1, 0, 0]);
    }
    // The third callback was called after the others for each endpoint.
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert_eq!(panics.load(Ordering::Relaxed), 1);
    eventually("the callback's captures are dropped", || gone.upgrade().is_none());
}

/// Offset of the endpoint's description in its file.
const META_AT: u64 = 4096;

/// Writes into a node's file.
fn scribble(net: &Net, node: &str, file: &str, at: u64, bytes: &[u8]) {
    let nodes = std::fs::read_dir(net.inspect_path().join("nodes")).unwrap();
    let mut folders = nodes.map(|entry| entry.unwrap().path());
    let folder = folders.find(|folder| folder.to_string_lossy().contains(node)).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(folder.join(file)).unwrap();
    file.write_all_at(bytes, at).unwrap();
}

/// Simulates a description from a newer version.
#[test]
fn endpoint_of_an_unknown_type_kind_is_reported_and_received_as_bytes() {
    let net = Net::new("unknown kind of type");
    let (watcher, newer) = (net.node("watcher"), net.node("newer"));
    let mut publisher = newer.publisher::<[u8]>("/t").open().unwrap();
    let text = br#"{"topic":"/t","type":{"kind":"raw"}"#;
    scribble(&net, "newer", "p0", META_AT, &text[..text.len() - 5]);
    scribble(&net, "newer", "p0", META_AT + text.len() as u64 - 5, b"odd");
    let (tell, events) = mpsc::channel();
    let _watch = watcher.on_endpoint(move |event| tell.send(event.clone()).unwrap()).unwrap();
    let event = events.recv_timeout(LONG).unwrap();
    assert_eq!(
        (event.endpoint().topic.as_str(), &event.endpoint().type_desc),
        ("/t", &rnet::TypeDesc::Unknown)
    );
    let (tell, receiver) = mpsc::channel();
    let tell = Mutex::new(tell);
    let _any = watcher.subscriber::<[u8]>("/*").on_any(move |message| {
        let sample = message.unwrap();
        tell.lock().unwrap().send((sample.type_desc().clone(), sample.bytes().to_vec())).unwrap();
    });
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(b"odd").unwrap();
    let counts = receiver.recv_timeout(LONG).unwrap();
    assert_eq!(counts, (rnet::TypeDesc::Unknown, b"odd".to_vec()));
}

#[test]
fn contradictory_entries_are_ignored() {
    let net = Net::new("hostile endpoints");
    let (watcher, hostile) = (net.node("watcher"), net.node("hostile"));
    let _ends: Vec<_> = ["/a", "/b", "/c"]
        .map(|topic| hostile.publisher::<[u8]>(topic).open().unwrap())
        .into_iter()
        .collect();
    // A topic that differs from the entry's, and an invalid name; the file has the length.
    scribble(&net, "hostile", "p0", META_AT, br#"{"topic":"/z""#);
    scribble(&net, "hostile", "p1", META_AT, br#"{"topic":"! ""#);
    let counts = EndpointCounts::default();
    let _watch = counts.watch(&watcher);
    counts.expect("/hostile", "/c", [1, 0, 0]);
    assert_eq!(counts.0.lock().unwrap().len(), 1);
}

#[test]
fn in_a_forked_child_a_watch_is_refused() {
    let net = Net::new("watch in a forked child");
    let node = net.node("n");
    let counts = EndpointCounts::default();
    let watch = counts.watch(&node);
    watch.detach();
    let _end = node.publisher::<[u8]>("/t").open().unwrap();
    counts.expect("/n", "/t", [1, 0, 0]);
    // SAFETY: the child only queries a node of its parent and exits.
    match unsafe { libc::fork() } {
        0 => {
            let refused = matches!(node.on_endpoint(|_| ()), Err(Error::Closed { .. }));
            // SAFETY: exits the child at once.
            unsafe { libc::_exit(i32::from(!refused)) };
        }
        child => {
            let mut status = 0;
            // SAFETY: a child of this process.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0);
        }
    }
}
