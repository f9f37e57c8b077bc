//! Lost proxy publishers: the events that subscribers and watchers receive.

use crate::common;

use std::sync::mpsc;

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::bridge::BridgePublisherBuilder;
use rnet::bridge::ProxyPublisher;
use rnet::{EndpointEvent, Error, MatchEvent, Node, Proxy, Publisher, Subscriber};

fn publisher(link: &Node, topic: &str) -> Publisher<[u8]> {
    let arm = Proxy::new("robot2", "/arm", 7).unwrap();
    link.publisher(topic).proxy(arm).open().unwrap()
}

fn is_lost(error: &Error) -> bool {
    matches!(error, Error::PeerLost { node, .. } if node == "@robot2/arm")
}

/// Expects three messages, the end as lost, and a new publisher after it.
fn expect_end(subscriber: &mut Subscriber<[u8]>) {
    let (got, error) = common::until_error(subscriber);
    assert_eq!(got, [[0], [1], [2]]);
    assert!(is_lost(&error), "{error}");
}

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let link = net.node("link");
    let orders = common::orders();
    if role == "watcher" {
        let _watch = link.on_endpoint(|event| {
            tell(match event {
                EndpointEvent::Opened(_) => "opened",
                EndpointEvent::Lost(_) => "lost",
                EndpointEvent::Closed(_) => "closed",
                _ => "changed",
            });
        });
        drop(orders.recv());
        return;
    }
    let mut publishers: Vec<_> = (0..2).map(|_| publisher(&link, "/t")).collect();
    while let Ok(order) = orders.recv() {
        match order.as_str() {
            "send" => {
                publishers[0].wait_for_subscribers_timeout(1, LONG).unwrap();
                (0..3).for_each(|seq| publishers[0].send(&[seq]).unwrap());
            }
            "lose" => publishers.remove(0).close_as_lost(),
            "close" => drop(publishers.remove(0)),
            "open" => publishers.insert(0, publisher(&link, "/t")),
            other => panic!("unknown order: {other}"),
        }
        tell(&order);
    }
}

#[test]
fn lost_and_closed_proxies_are_distinguished() {
    let net = Net::new("lost and closed");
    let node = net.node("node");
    let mut child = Child::spawn(&net, "link");
    let mut subscriber = node.subscriber("/t").keep_all().open().unwrap();
    let (tell, matches) = mpsc::channel();
    subscriber.on_match(move |event| tell.send(event.clone()).unwrap()).detach();
    let (tell, endpoints) = mpsc::channel();
    let _watch = node.on_endpoint(move |event| tell.send(event.clone()).unwrap()).unwrap();
    let mut order = |order| {
        child.say(order);
        child.expect(order);
    };
    let next = || loop {
        match endpoints.recv_timeout(LONG).unwrap() {
            EndpointEvent::Opened(_) => {}
            event => return event,
        }
    };
    let next_match = || loop {
        match matches.recv_timeout(LONG).unwrap() {
            MatchEvent::Matched(_) => {}
            event => return event,
        }
    };
    subscriber.wait_for_publishers_timeout(2, LONG).unwrap();
    // The next publisher does not reuse its list entry at once, but the entry becomes free later.
    for _ in 0..3 {
        order("send");
        order("lose");
        expect_end(&mut subscriber);
        let EndpointEvent::Lost(lost) = next() else { panic!("not lost") };
        assert_eq!(lost.node, "@robot2/arm");
        assert!(matches!(next_match(), MatchEvent::Lost(peer) if peer.id == lost.id));
        order("open");
        subscriber.wait_for_publishers_timeout(2, LONG).unwrap();
    }
    order("close");
    assert!(matches!(next(), EndpointEvent::Closed(_)));
    assert!(matches!(next_match(), MatchEvent::Unmatched(_)));
    eventually("one publisher is left", || subscriber.publisher_count() == 1);
    assert!(subscriber.try_recv().unwrap().is_none());
}

/// A node that is stopped meanwhile, and one that joins later.
#[test]
fn late_watchers_learn_of_lost_proxies() {
    let net = Net::new("lost and stopped");
    let link = net.node("proxies");
    let mut watcher = Child::spawn(&net, "watcher");
    let (first, second) = (publisher(&link, "/a"), publisher(&link, "/b"));
    watcher.expect("opened");
    watcher.expect("opened");
    watcher.stop();
    first.close_as_lost();
    let third = publisher(&link, "/c");
    drop(second);
    watcher.resume();
    let mut received = [(); 3].map(|()| watcher.hear());
    received.sort();
    assert_eq!(received, ["closed", "lost", "opened"]);
    let late = net.node("late").subscriber::<[u8]>("/a").open().unwrap();
    assert_eq!(net.inspect().publishers.len(), 1);
    drop((third, late));
}

#[test]
fn large_messages_of_a_lost_publisher_are_not_awaited() {
    let net = Net::new("lost large");
    let link = net.node("link");
    let arm = Proxy::new("robot2", "/arm", 7).unwrap();
    let mut publisher =
        link.publisher::<[u8]>("/t").reliable(rnet::OnFull::Refuse).proxy(arm).open().unwrap();
    // In the link's own node, which learns of it in another way.
    let mut subscriber = link.subscriber::<[u8]>("/t").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(b"small").unwrap();
    publisher.send(&vec![7; 100_000]).unwrap();
    publisher.close_as_lost();
    let (got, error) = common::until_error(&mut subscriber);
    assert!(is_lost(&error), "{error}");
    assert_eq!(got, [b"small"]);
    assert_eq!(subscriber.lost().restart, 1);
}
