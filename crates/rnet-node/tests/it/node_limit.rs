//! A domain with the maximum number of nodes, and the cost of each node for the others.

use crate::common;

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::{Error, Node, NodeEvent, Publisher, Subscriber, limits};
use rustix::process::{Resource, getrlimit, setrlimit};

/// Processes of the full domain, this one included.
const PROCESSES: usize = 4;
/// Nodes that are not tools.
const MOST: usize = limits::MAX_NODES_PER_DOMAIN - limits::RESERVED_TOOL_NODES;
const EACH: usize = MOST / PROCESSES;
/// Nodes of the process that starts and is killed, in the descriptor tests.
const OTHERS: usize = 20;
/// Nodes of the process that counts its descriptors.
const COUNTING: usize = 3;
/// Time limit of a full domain on a busy machine.
const FULL_LIMIT: Duration = Duration::from_secs(300);

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    match role.as_str() {
        "counts" => counts(&net),
        "lacks" => lacks(&net),
        "others" => {
            let orders = common::orders();
            let _nodes: Vec<Node> = (0..OTHERS).map(|i| net.node(&format!("other{i}"))).collect();
            tell("open");
            drop(orders.recv());
        }
        _ => {
            allow_files(None);
            let orders = common::orders();
            let nodes = open(&net, &role);
            tell("open");
            assert_eq!(orders.recv().unwrap(), "meet");
            let mut subscribers = meet(&role, &nodes);
            tell("met");
            for subscriber in &mut subscribers {
                assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"all");
            }
            tell("heard");
            drop(orders.recv());
            drop((subscribers, nodes));
            tell("left");
            drop(orders.recv());
        }
    }
}

/// Raises this process's limit of open files to this number, or as far as permitted.
fn allow_files(soft: Option<u64>) {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = soft.or(limit.maximum);
    setrlimit(Resource::Nofile, limit).unwrap();
}

fn open_files() -> usize {
    // Without the descriptor of the listing.
    std::fs::read_dir("/proc/self/fd").unwrap().count() - 1
}

fn open(net: &Net, role: &str) -> Vec<Node> {
    (0..EACH).map(|i| net.node(&format!("{role}_{i}"))).collect()
}

/// Each node receives from the publisher of its process.
fn meet(role: &str, nodes: &[Node]) -> Vec<Subscriber<[u8]>> {
    let topic = format!("/of_{role}");
    let subscribe = |node: &Node| {
        let mut subscriber = node.subscriber::<[u8]>(&topic).open().unwrap();
        subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
        subscriber
    };
    nodes.iter().map(subscribe).collect()
}

fn is_limit(error: &Error, limit: usize) {
    let right = matches!(error, Error::LimitReached { limit: l, .. } if *l == limit);
    assert!(right, "{error:?}");
    let text = error.to_string();
    assert!(text.contains("nodes in domain t") && text.contains("another domain"), "{text}");
}

/// The node events of a node.
fn events(node: &Node) -> Receiver<NodeEvent> {
    let (tell, events) = channel();
    node.on_node(move |event| drop(tell.send(event.clone()))).detach();
    events
}

/// Waits for one event of a kind from each of `count` nodes with this name prefix, and asserts no duplicates.
fn hear(events: &Receiver<NodeEvent>, count: usize, kind: fn(String) -> NodeEvent, name: &str) {
    let mut received = BTreeSet::new();
    while received.len() < count {
        let event = events.recv_timeout(LONG);
        let event = event.unwrap_or_else(|_| panic!("{} of {count} {name}", received.len()));
        let (NodeEvent::Joined(node) | NodeEvent::Left(node) | NodeEvent::Died(node)) = &event
        else {
            continue;
        };
        if node.starts_with(name) && event == kind(node.clone()) {
            assert!(received.insert(node.clone()), "twice: {event:?}");
        }
    }
}

/// Asserts that no further event of these nodes arrives: a duplicate would come after the first.
fn hear_no_more(events: &Receiver<NodeEvent>, name: &str) {
    for event in events.try_iter() {
        let (NodeEvent::Joined(node) | NodeEvent::Left(node) | NodeEvent::Died(node)) = &event
        else {
            continue;
        };
        assert!(!node.starts_with(name), "twice: {event:?}");
    }
}

/// A stable number of open files: a control thread briefly opens one now and then.
fn settled_files() -> usize {
    let mut before = 0;
    eventually("the number is stable", || std::mem::replace(&mut before, open_files()) == before);
    before
}

/// Lets nodes see another node come and go. The first callback starts its thread, which has its own
/// descriptors.
fn hear_of_guest(net: &Net, listeners: &[Receiver<NodeEvent>]) {
    let guest = net.node("guest");
    listeners.iter().for_each(|events| hear(events, 1, NodeEvent::Joined, "/guest"));
    drop(guest);
    listeners.iter().for_each(|events| hear(events, 1, NodeEvent::Left, "/guest"));
}

#[test]
#[ignore = "more than a minute for 1,024 nodes: make test-full"]
fn a_full_domain() {
    allow_files(None);
    let net = Net::for_long("a full domain", FULL_LIMIT);
    let tool = |i: usize| net.builder(&format!("tool{i}")).tool().open();
    // An existing tool takes no slot from other nodes.
    let first = tool(0).unwrap();
    let roles: Vec<String> = (1..PROCESSES).map(|i| format!("p{i}")).collect();
    let mut children: Vec<Child> = roles.iter().map(|role| Child::spawn(&net, role)).collect();
    let mut nodes = open(&net, "p0");
    for child in &mut children {
        assert_eq!(child.hear_for(FULL_LIMIT.as_secs()), "open");
    }
    is_limit(&net.builder("one_more").open().unwrap_err(), MOST);
    let tools: Vec<Node> =
        (1..limits::RESERVED_TOOL_NODES).map(|i| tool(i).unwrap()).chain([first]).collect();
    // The 1,025th node.
    is_limit(&tool(99).unwrap_err(), limits::MAX_NODES_PER_DOMAIN);

    let publisher = |i: usize| nodes[i].publisher::<[u8]>(&format!("/of_p{i}")).open().unwrap();
    let mut publishers: Vec<Publisher<[u8]>> = (0..PROCESSES).map(publisher).collect();
    children.iter_mut().for_each(|child| child.say("meet"));
    let mut subscribers = meet("p0", &nodes);
    for child in &mut children {
        assert_eq!(child.hear_for(FULL_LIMIT.as_secs()), "met");
    }
    for publisher in &mut publishers {
        publisher.wait_for_subscribers_timeout(EACH, LONG).unwrap();
        publisher.send(b"all").unwrap();
    }
    for subscriber in &mut subscribers {
        assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"all");
    }
    children.iter_mut().for_each(|child| child.expect("heard"));

    // A process with a quarter of all nodes is killed.
    let listeners = [&nodes[0], &nodes[EACH - 2], &tools[0]].map(events);
    children.pop().unwrap().kill();
    listeners.iter().for_each(|events| hear(events, EACH, NodeEvent::Died, "/p3"));
    eventually("its subscribers are gone", || publishers[PROCESSES - 1].subscriber_count() == 0);
    // A node that leaves can come back, and other nodes fit as well.
    drop(nodes.pop());
    nodes.push(net.node("back"));
    net.node("one_more");
    listeners.iter().for_each(|events| hear(events, 1, NodeEvent::Joined, "/back"));
    listeners.iter().for_each(|events| hear_no_more(events, "/p3"));
    for mut child in children {
        child.say("leave");
        assert_eq!(child.hear_for(FULL_LIMIT.as_secs()), "left");
        child.finish();
    }
    drop((publishers, subscribers, nodes, tools));
    assert_eq!(std::fs::read_dir(net.inspect_path().join("nodes")).unwrap().count(), 0);
}

/// The nodes of a process share the descriptor that detects the end of another process.
#[test]
fn a_peer_costs_no_descriptor_and_another_process_one() {
    let net = Net::new("descriptors");
    let _here = net.node("here");
    let mut counts = Child::spawn(&net, "counts");
    counts.expect("counted");
    // Nodes of a known process.
    let _nodes: Vec<Node> = (0..OTHERS).map(|i| net.node(&format!("more{i}"))).collect();
    counts.expect("as before");
    let mut others = Child::spawn(&net, "others");
    counts.expect("one more");
    others.expect("open");
    others.kill();
    counts.expect("one less");
    counts.finish();
}

fn counts(net: &Net) {
    let _orders = common::orders();
    let nodes: Vec<Node> = (0..COUNTING).map(|i| net.node(&format!("counts{i}"))).collect();
    let listeners: Vec<_> = nodes.iter().map(events).collect();
    hear_of_guest(net, &listeners);
    let before = settled_files();
    tell("counted");
    listeners.iter().for_each(|events| hear(events, OTHERS, NodeEvent::Joined, "/more"));
    eventually("as before", || open_files() == before);
    tell("as before");
    listeners.iter().for_each(|events| hear(events, OTHERS, NodeEvent::Joined, "/other"));
    eventually("one more", || open_files() == before + 1);
    tell("one more");
    listeners.iter().for_each(|events| hear(events, OTHERS, NodeEvent::Died, "/other"));
    eventually("as before", || open_files() == before);
    tell("one less");
}

/// If descriptors are scarce, the remaining ones are reserved for operations that need one.
#[test]
fn with_few_descriptors_deaths_are_seen_and_nodes_refused() {
    let net = Net::new("few descriptors");
    let mut lacks = Child::spawn(&net, "lacks");
    lacks.expect("limited");
    let mut others = Child::spawn(&net, "others");
    lacks.expect("seen");
    others.kill();
    lacks.expect("gone");
    lacks.expect("refused");
    lacks.finish();
}

fn lacks(net: &Net) {
    let _orders = common::orders();
    let node = net.node("lacks");
    let listeners = [events(&node)];
    hear_of_guest(net, &listeners);
    // All files opened from now on use the upper half.
    let before = settled_files();
    allow_files(Some(before as u64 + 8));
    tell("limited");
    hear(&listeners[0], OTHERS, NodeEvent::Joined, "/other");
    eventually("no descriptor is held for another process", || open_files() == before);
    tell("seen");
    // The nodes poll once per second.
    hear(&listeners[0], OTHERS, NodeEvent::Died, "/other");
    tell("gone");
    let nodes: Result<Vec<Node>, Error> =
        (0..OTHERS).map(|i| net.builder(&format!("more{i}")).open()).collect();
    let error = nodes.unwrap_err();
    assert!(matches!(error, Error::LimitReached { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("open files in this process") && text.contains("ulimit -n"), "{text}");
    // The existing node continues.
    let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    publisher.send(b"here").unwrap();
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"here");
    tell("refused");
}
