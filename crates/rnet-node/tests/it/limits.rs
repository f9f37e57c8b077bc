//! Each limit returns an error that names it, and values below it work.

use crate::common;

use common::{Child, LONG, Net, role, tell};
use rnet::{Error, Node, Publisher, Subscriber, limits};

/// Processes of the many-node test, and nodes in each.
const PROCESSES: usize = 16;
const NODES_EACH: usize = 8;

/// Other processes of the full-publisher test, and subscribers in each.
const READING: usize = 3;
const READERS_EACH: usize = 100;

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    if role.starts_with("readers") {
        return reads_for_many(&net, &role);
    }
    let orders = common::orders();
    let nodes: Vec<Node> = (0..NODES_EACH).map(|i| net.node(&format!("{role}_{i}"))).collect();
    let publisher = nodes[0].publisher::<[u8]>("/all").open().unwrap();
    let mut publisher_to_all = nodes[1].publisher::<[u8]>("/hello").open().unwrap();
    let mut met = nodes[NODES_EACH - 1].subscriber::<[u8]>("/all").open().unwrap();
    let mut hello = nodes[NODES_EACH - 2].subscriber::<[u8]>("/hello").open().unwrap();
    met.wait_for_publishers_timeout(PROCESSES, LONG).unwrap();
    publisher.wait_for_subscribers_timeout(PROCESSES, LONG).unwrap();
    publisher_to_all.wait_for_subscribers_timeout(PROCESSES, LONG).unwrap();
    publisher_to_all.send(role.as_bytes()).unwrap();
    let mut received: Vec<Vec<u8>> =
        (0..PROCESSES).map(|_| hello.recv_timeout(LONG).unwrap().to_vec()).collect();
    received.sort_unstable();
    received.dedup();
    assert_eq!(received.len(), PROCESSES, "one word of each");
    tell("met");
    drop(orders.recv());
    drop((publisher, publisher_to_all, met, hello, nodes));
    tell("left");
    drop(orders.recv());
}

/// One of the processes whose subscribers fill a publisher.
fn reads_for_many(net: &Net, role: &str) {
    let orders = common::orders();
    let node = net.node(role);
    let mut readers: Vec<Subscriber<[u8]>> =
        (0..READERS_EACH).map(|_| node.subscriber("/t").open().unwrap()).collect();
    for reader in &mut readers {
        reader.wait_for_publishers_timeout(1, LONG).unwrap();
    }
    tell("reading");
    for reader in &mut readers {
        assert_eq!(&*reader.recv_timeout(LONG).unwrap(), b"all");
    }
    tell("read");
    drop(orders.recv());
}

fn is_limit(error: &Error, limit: usize, words: &str) {
    let right = matches!(error, Error::LimitReached { limit: l, .. } if *l == limit);
    assert!(right, "{error:?}");
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn readers_of_a_channel() {
    let net = Net::new("readers");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").open().unwrap();
    let mut children: Vec<Child> =
        (0..READING).map(|i| Child::spawn(&net, &format!("readers{i}"))).collect();
    let here = limits::MAX_READERS_PER_CHANNEL - READING * READERS_EACH;
    let mut readers: Vec<Subscriber<[u8]>> =
        (0..here).map(|_| b.subscriber("/t").open().unwrap()).collect();
    children.iter_mut().for_each(|child| child.expect("reading"));
    publisher.wait_for_subscribers_timeout(limits::MAX_READERS_PER_CHANNEL, LONG).unwrap();
    // Both sides get the error, whether the subscriber waits or receives.
    let mut waits = b.subscriber::<[u8]>("/t").open().unwrap();
    let error = waits.wait_for_publishers_timeout(1, LONG).unwrap_err();
    is_limit(&error, limits::MAX_READERS_PER_CHANNEL, "readers of /t");
    let mut receives = b.subscriber::<[u8]>("/t").open().unwrap();
    let error = receives.recv_timeout(LONG).map(drop).unwrap_err();
    is_limit(&error, limits::MAX_READERS_PER_CHANNEL, "readers of /t");
    let error = publisher
        .wait_for_subscribers_timeout(limits::MAX_READERS_PER_CHANNEL + 1, LONG)
        .unwrap_err();
    is_limit(&error, limits::MAX_READERS_PER_CHANNEL, "readers of /t");
    // All others are served, and a free slot is assigned again.
    publisher.send(b"all").unwrap();
    for reader in &mut readers {
        assert_eq!(&*reader.recv_timeout(LONG).unwrap(), b"all");
    }
    children.iter_mut().for_each(|child| child.expect("read"));
    let publishers = net.inspect().publishers;
    assert_eq!(publishers[0].readers, limits::MAX_READERS_PER_CHANNEL as u64);
    readers.truncate(10);
    // A killed process frees all slots of its subscribers.
    let left = READING * READERS_EACH - READERS_EACH;
    children.pop().unwrap().kill();
    // The subscribers that were refused leave first.
    common::eventually("they have left", || publisher.subscriber_count() == 12 + left);
    publisher.send(b"again").unwrap();
    for refused in [&mut waits, &mut receives] {
        assert_eq!(&*refused.recv_timeout(LONG).unwrap(), b"again");
    }
    let mut next = b.subscriber::<[u8]>("/t").open().unwrap();
    next.wait_for_publishers_timeout(1, LONG).unwrap();
}

#[test]
fn many_nodes_in_many_processes() {
    let net = Net::new("many processes");
    let mut children: Vec<Child> =
        (0..PROCESSES).map(|i| Child::spawn(&net, &format!("p{i}"))).collect();
    children.iter_mut().for_each(|child| child.expect("met"));
    let seen = net.inspect();
    assert_eq!(seen.nodes.len(), PROCESSES * NODES_EACH);
    assert_eq!(seen.problems, [""; 0]);
    assert_eq!((seen.publishers.len(), seen.subscriptions.len()), (2 * PROCESSES, 2 * PROCESSES));
    assert!(seen.publishers.iter().all(|p| p.readers == PROCESSES as u64));
    children.iter_mut().for_each(|child| child.say("leave"));
    children.iter_mut().for_each(|child| child.expect("left"));
    let seen = net.inspect();
    assert_eq!((seen.nodes.len(), seen.problems.len()), (0, 0));
    let uid = rustix::process::geteuid().as_raw();
    for folder in ["nodes", "names"] {
        let path = net.base().join(format!("rnet-{uid}-t/{folder}"));
        assert_eq!(std::fs::read_dir(path).unwrap().count(), 0, "{folder}");
    }
    children.into_iter().for_each(Child::finish);
}

#[test]
fn topics_of_a_domain_and_endpoints_of_a_node() {
    let net = Net::new("topics");
    let node = net.node("a");
    let topics = limits::MAX_TOPICS_PER_DOMAIN;
    let mut subscribers: Vec<Subscriber<[u8]>> =
        (0..topics).map(|i| node.subscriber(&format!("/t{i}")).open().unwrap()).collect();
    let error = node.subscriber::<[u8]>("/one_more").open().map(drop).unwrap_err();
    is_limit(&error, topics, "topics in domain t");
    let error = net.node("b").publisher::<[u8]>("/one_more").open().map(drop).unwrap_err();
    is_limit(&error, topics, "topics in domain t");
    // Existing topics can be joined until the node reaches its limit.
    let more = limits::MAX_ENDPOINTS_PER_NODE - topics;
    subscribers.extend((0..more).map(|i| node.subscriber(&format!("/t{i}")).open().unwrap()));
    let error = node.publisher::<[u8]>("/t0").open().map(drop).unwrap_err();
    is_limit(&error, limits::MAX_ENDPOINTS_PER_NODE, "in node /a");
    // Closing an endpoint frees a slot.
    subscribers.truncate(topics);
    let mut publisher: Publisher<[u8]> = node.publisher("/t4095").open().unwrap();
    publisher.send(b"last").unwrap();
    assert_eq!(&*subscribers[4095].recv_timeout(LONG).unwrap(), b"last");
}
