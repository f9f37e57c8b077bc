//! Publishers that have ended while messages of them wait in the link of the other host, or for that host:
//! each message arrives or is counted, and their last will arrives once.

use crate::common;
use crate::hosts;

use common::{Child, LONG, eventually};
use hosts::Hosts;
use rnet::{Error, Node, OnFull, Publisher, Subscriber};

/// So that the proxy of the other host holds few of the received messages.
const LOG_LEN: u64 = 1 << 16;
const LEN: usize = 1000;
/// More than fit there, and less than the credit.
const COUNT: u64 = 1000;

/// The roles of the children: a publisher with a will.
#[test]
#[ignore = "entry point of child processes"]
fn child_entry() {
    let Some(role) = common::role() else { return };
    let node = common::Net::of_parent().node("talker");
    let publisher = node.publisher::<[u8]>("/t").last_will(&b"gone"[..]);
    let publisher = match role.as_str() {
        "reliable" => publisher.reliable(OnFull::Wait(LONG)).log_len_bytes(LOG_LEN),
        _ => publisher.urgent(),
    };
    let mut publisher = publisher.open().unwrap();
    let mut next = 0;
    for order in common::orders() {
        if order == "withdraw" {
            publisher.clear_last_will().unwrap();
            common::tell("withdrawn");
            continue;
        }
        let count: u64 = order.parse().unwrap();
        (next..next + count).for_each(|number| publisher.send(&message(number)).unwrap());
        next += count;
        common::tell("sent");
    }
}

fn message(number: u64) -> Vec<u8> {
    let mut bytes = vec![number as u8; LEN];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn reliable(node: &Node) -> Subscriber<[u8]> {
    node.subscriber("/t").reliable().open().unwrap()
}

/// The messages that a subscriber has read.
#[derive(Default)]
struct ReadCounts {
    messages: u64,
    next: u64,
    wills: u64,
    losses: u64,
}

impl ReadCounts {
    /// Reads all available messages; each comes once, and in order.
    fn all(&mut self, subscriber: &mut Subscriber<[u8]>) {
        loop {
            match subscriber.try_recv() {
                Ok(Some(sample)) if sample.is_last_will() => self.wills += 1,
                Ok(Some(sample)) => {
                    let number = u64::from_le_bytes(sample[..8].try_into().unwrap());
                    assert!(number >= self.next, "message {number} after {}", self.next);
                    (self.messages, self.next) = (self.messages + 1, number + 1);
                }
                Ok(None) => return,
                Err(Error::PeerLost { .. }) => self.losses += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Reads until each of `count` messages has come or is counted.
    #[track_caller]
    fn until_all_are_counted(&mut self, subscriber: &mut Subscriber<[u8]>, count: u64) {
        eventually("each message has come or is counted", || {
            self.all(subscriber);
            self.messages + subscriber.lost().total() == count
        });
    }
}

/// A publisher on the first host whose messages show that earlier data has reached the second.
struct Marker {
    publisher: Publisher<[u8]>,
    subscriber: Subscriber<[u8]>,
    _nodes: [Node; 2],
}

impl Marker {
    fn new(hosts: &Hosts) -> Marker {
        Marker::called(hosts, ["marks", "reads_marks"])
    }

    fn called(hosts: &Hosts, [from, to]: [&str; 2]) -> Marker {
        let nodes = [hosts.node(0, from), hosts.node(1, to)];
        let publisher = nodes[0].publisher::<[u8]>(&format!("/{from}")).open().unwrap();
        let subscriber = nodes[1].subscriber::<[u8]>(&format!("/{from}")).open().unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        Marker { publisher, subscriber, _nodes: nodes }
    }

    /// Waits until both links know everything that has happened on their hosts, and nothing is in flight.
    #[track_caller]
    fn pass(hosts: &Hosts) {
        drop(Marker::called(hosts, ["passes", "reads_passed"]));
        hosts.settle();
    }

    /// Cuts the cable, and waits until both hosts have lost each other.
    #[track_caller]
    fn cut(&mut self, hosts: &Hosts) {
        hosts.cut(0, 1);
        eventually("both hosts are lost", || {
            self.publisher.subscriber_count() == 0 && self.subscriber.publisher_count() == 0
        });
    }

    /// Heals the cable, and waits until the hosts hear each other.
    #[track_caller]
    fn heal(&mut self, hosts: &Hosts) {
        hosts.heal(0, 1);
        self.publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    }
}

/// Whether a host has a proxy of the publisher.
fn has_proxy(hosts: &Hosts, host: usize) -> bool {
    hosts.domain(host).inspect().publishers.iter().any(|publisher| publisher.topic == "/t")
}

/// Whether the link of a host still has a reader of the publisher.
fn has_reader(hosts: &Hosts, host: usize) -> bool {
    hosts.domain(host).inspect().forwarders.iter().any(|info| info.topic == "/t")
}

/// A reliable publisher that has ended, and a subscriber that has not read any message.
fn ended_and_slow(hosts: &Hosts) -> ([Node; 2], Subscriber<[u8]>) {
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let mut publisher = from
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Wait(LONG))
        .log_len_bytes(LOG_LEN)
        .open()
        .unwrap();
    let subscriber = reliable(&to);
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    (0..COUNT).for_each(|number| publisher.send(&message(number)).unwrap());
    hosts.settle();
    drop(publisher);
    Marker::pass(hosts);
    assert!(has_proxy(hosts, 1), "messages wait there");
    ([from, to], subscriber)
}

#[test]
fn unread_messages_of_an_ended_publisher_survive_a_cut() {
    let hosts = Hosts::new("slow in a cut", 2);
    let mut marker = Marker::new(&hosts);
    let (_nodes, mut subscriber) = ended_and_slow(&hosts);
    marker.cut(&hosts);
    eventually("its orphaned proxy is closed", || !has_proxy(&hosts, 1));
    marker.heal(&hosts);
    let mut read = ReadCounts::default();
    read.until_all_are_counted(&mut subscriber, COUNT);
    assert_eq!((read.messages, subscriber.lost().total()), (COUNT, 0));
    // It ends like other publishers, and none of its messages is kept any more.
    eventually("its end is known", || subscriber.publisher_count() == 0 && !has_proxy(&hosts, 1));
    eventually("no link keeps a reader of it", || !has_reader(&hosts, 0));
}

#[test]
fn unread_messages_of_an_ended_publisher_survive_a_link_restart() {
    let mut hosts = Hosts::new("slow and another link", 2);
    let (_nodes, mut subscriber) = ended_and_slow(&hosts);
    hosts.stop(1);
    hosts.start(1, "");
    let mut read = ReadCounts::default();
    read.until_all_are_counted(&mut subscriber, COUNT);
    assert_eq!((read.messages, subscriber.lost().total()), (COUNT, 0));
    eventually("its end is known", || subscriber.publisher_count() == 0);
    assert_eq!(read.losses, 0, "it was closed");
    eventually("no link keeps a reader of it", || !has_reader(&hosts, 0));
}

/// Sends `count` messages, and waits until they were sent.
fn send(child: &mut Child, count: u64) {
    child.say(&count.to_string());
    child.expect("sent");
}

/// A reliable publisher that has sent all messages, and a subscriber that has not read any.
fn all_sent(hosts: &Hosts) -> (Node, Subscriber<[u8]>, Child) {
    let to = hosts.node(1, "to");
    let mut subscriber = reliable(&to);
    let mut child = hosts.child(0, "reliable");
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    send(&mut child, COUNT);
    hosts.settle();
    (to, subscriber, child)
}

/// Waits until the first host has no such publisher any more.
#[track_caller]
fn until_gone(hosts: &Hosts) {
    eventually("it is gone at home", || !has_proxy(hosts, 0));
}

/// No trace of the publisher is left, and its subscriber has read one will and one loss.
#[track_caller]
fn is_lost_once(hosts: &Hosts, read: &mut ReadCounts, subscriber: &mut Subscriber<[u8]>) {
    eventually("its end is known", || {
        read.all(subscriber);
        subscriber.publisher_count() == 0 && !has_proxy(hosts, 1) && !has_reader(hosts, 0)
    });
    Marker::pass(hosts);
    read.all(subscriber);
    assert_eq!((read.wills, read.losses), (1, 1));
}

/// Such as commands of a driver that has died: obeying them after the cable is healed would be late.
#[test]
fn best_effort_messages_of_a_dead_publisher_in_a_cut_are_counted_as_lost() {
    let hosts = Hosts::new("late", 2);
    let (mut marker, to) = (Marker::new(&hosts), hosts.node(1, "to"));
    let mut subscriber = to.subscriber::<[u8]>("/t").keep_all().open().unwrap();
    let mut child = hosts.child(0, "urgent");
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    let mut read = ReadCounts::default();
    send(&mut child, 10);
    read.until_all_are_counted(&mut subscriber, 10);
    hosts.settle();
    marker.cut(&hosts);
    send(&mut child, 5);
    child.kill();
    until_gone(&hosts);
    marker.heal(&hosts);
    read.until_all_are_counted(&mut subscriber, 15);
    assert_eq!((read.messages, subscriber.lost().link), (10, 5));
    is_lost_once(&hosts, &mut read, &mut subscriber);
}

/// The loss of its host publishes the will; its death becomes known later.
#[test]
fn publisher_that_dies_in_a_cut_leaves_one_will() {
    for role in ["reliable", "urgent"] {
        let hosts = Hosts::new("dies in a cut", 2);
        let (mut marker, to) = (Marker::new(&hosts), hosts.node(1, "to"));
        let mut subscriber = match role {
            "reliable" => reliable(&to),
            _ => to.subscriber::<[u8]>("/t").keep_all().open().unwrap(),
        };
        let mut child = hosts.child(0, role);
        subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
        send(&mut child, 10);
        hosts.settle();
        marker.cut(&hosts);
        send(&mut child, 5);
        child.kill();
        until_gone(&hosts);
        marker.heal(&hosts);
        let mut read = ReadCounts::default();
        read.until_all_are_counted(&mut subscriber, 15);
        is_lost_once(&hosts, &mut read, &mut subscriber);
    }
}

/// Its death publishes the will; the loss of its host comes later, perhaps before everything was read.
#[test]
fn publisher_that_dies_before_a_cut_leaves_one_will() {
    for slow in [false, true] {
        let hosts = Hosts::new("dies before a cut", 2);
        let mut marker = Marker::new(&hosts);
        let (_to, mut subscriber, mut child) = all_sent(&hosts);
        let mut read = ReadCounts::default();
        if !slow {
            read.until_all_are_counted(&mut subscriber, COUNT);
        }
        child.kill();
        until_gone(&hosts);
        Marker::pass(&hosts);
        assert_eq!(has_proxy(&hosts, 1), slow);
        marker.cut(&hosts);
        eventually("its orphaned proxy is closed", || !has_proxy(&hosts, 1));
        marker.heal(&hosts);
        read.until_all_are_counted(&mut subscriber, COUNT);
        assert_eq!(read.messages, COUNT);
        is_lost_once(&hosts, &mut read, &mut subscriber);
    }
}

/// The other host has not lost it: the next link there must learn of its death.
#[test]
fn dead_publisher_leaves_its_will_although_the_receivers_link_restarts() {
    let mut hosts = Hosts::new("dead and another link", 2);
    let (_to, mut subscriber, mut child) = all_sent(&hosts);
    child.kill();
    until_gone(&hosts);
    Marker::pass(&hosts);
    hosts.stop(1);
    hosts.start(1, "");
    let mut read = ReadCounts::default();
    read.until_all_are_counted(&mut subscriber, COUNT);
    assert_eq!(read.messages, COUNT);
    is_lost_once(&hosts, &mut read, &mut subscriber);
}

/// No subscriber there reads the rest: it is not kept, and the publisher ends there, too.
#[test]
fn ended_publisher_without_readers_is_dropped() {
    let hosts = Hosts::new("all has come", 2);
    let (_nodes, subscriber) = ended_and_slow(&hosts);
    drop(subscriber);
    eventually("it ends there", || !has_proxy(&hosts, 1));
    eventually("no link keeps a reader of it", || !has_reader(&hosts, 0));

    // More messages wait for it than the credit allows.
    let hosts = Hosts::new("some has come", 2);
    let (mut marker, from, to) = (Marker::new(&hosts), hosts.node(0, "from"), hosts.node(1, "to"));
    let mut publisher = from
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Wait(LONG))
        .log_len_bytes(LOG_LEN)
        .open()
        .unwrap();
    let mut subscriber = reliable(&to);
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    (0..COUNT).for_each(|number| publisher.send(&message(number)).unwrap());
    hosts.settle();
    marker.cut(&hosts);
    (COUNT..8 * COUNT).for_each(|number| publisher.send(&message(number)).unwrap());
    drop(publisher);
    marker.heal(&hosts);
    eventually("it is requested again", || subscriber.publisher_count() == 1);
    Marker::pass(&hosts);
    assert!(has_reader(&hosts, 0), "the rest waits for credit");
    drop(subscriber);
    eventually("no link keeps a reader of it", || !has_reader(&hosts, 0));
    eventually("it ends there", || !has_proxy(&hosts, 1));
}

#[test]
fn dead_publisher_is_lost_once_although_the_network_is_cut_again() {
    let hosts = Hosts::new("cut again", 2);
    let mut marker = Marker::new(&hosts);
    let (_to, mut subscriber, mut child) = all_sent(&hosts);
    marker.cut(&hosts);
    child.kill();
    until_gone(&hosts);
    for _ in 0..2 {
        marker.heal(&hosts);
        Marker::pass(&hosts);
        marker.cut(&hosts);
        eventually("its orphaned proxy is closed", || !has_proxy(&hosts, 1));
    }
    marker.heal(&hosts);
    let mut read = ReadCounts::default();
    read.until_all_are_counted(&mut subscriber, COUNT);
    is_lost_once(&hosts, &mut read, &mut subscriber);
}

/// The loss of its host published the will. The next link there learns of the death, and reads the rest.
#[test]
fn publisher_that_dies_in_a_cut_is_lost_once_although_the_receivers_link_restarts() {
    // Before the network is healed, and after the rest has come.
    for heals_first in [false, true] {
        let mut hosts = Hosts::new("cut and another link", 2);
        let mut marker = Marker::new(&hosts);
        let (_to, mut subscriber, mut child) = all_sent(&hosts);
        marker.cut(&hosts);
        eventually("its orphaned proxy is closed", || !has_proxy(&hosts, 1));
        child.kill();
        until_gone(&hosts);
        if heals_first {
            marker.heal(&hosts);
            Marker::pass(&hosts);
        }
        hosts.stop(1);
        hosts.start(1, "");
        marker.heal(&hosts);
        let mut read = ReadCounts::default();
        read.until_all_are_counted(&mut subscriber, COUNT);
        assert_eq!(read.messages, COUNT);
        is_lost_once(&hosts, &mut read, &mut subscriber);
    }
}

/// The other host has not lost it: its next link publishes what the dead publisher has left.
#[test]
fn will_that_is_withdrawn_in_a_cut_is_not_left() {
    for withdraws in [false, true] {
        let mut hosts = Hosts::new("withdrawn in a cut", 2);
        let mut marker = Marker::new(&hosts);
        let (_to, mut subscriber, mut child) = all_sent(&hosts);
        hosts.cut(0, 1);
        hosts.stop(1);
        eventually("the other host is lost", || marker.publisher.subscriber_count() == 0);
        if withdraws {
            child.say("withdraw");
            child.expect("withdrawn");
        }
        child.kill();
        until_gone(&hosts);
        hosts.start(1, "");
        marker.heal(&hosts);
        let mut read = ReadCounts::default();
        read.until_all_are_counted(&mut subscriber, COUNT);
        eventually("its end is known", || {
            read.all(&mut subscriber);
            subscriber.publisher_count() == 0 && !has_proxy(&hosts, 1)
        });
        Marker::pass(&hosts);
        read.all(&mut subscriber);
        assert_eq!(read.wills, u64::from(!withdraws));
    }
}

/// The report that all was published is lost in a cut: the publisher is announced again, and ends again.
#[test]
fn dead_publisher_is_lost_once_although_its_confirmed_end_is_lost() {
    let hosts = Hosts::new("end is lost", 2);
    let mut marker = Marker::new(&hosts);
    let (_to, mut subscriber, mut child) = all_sent(&hosts);
    child.kill();
    until_gone(&hosts);
    Marker::pass(&hosts);
    // What the other host sends does not arrive, and both lose each other.
    hosts.cut_one_way(1, 0);
    let mut read = ReadCounts::default();
    read.until_all_are_counted(&mut subscriber, COUNT);
    eventually("it has ended there", || {
        read.all(&mut subscriber);
        read.losses == 1 && !has_proxy(&hosts, 1)
    });
    assert!(has_reader(&hosts, 0), "its host does not know");
    marker.cut(&hosts);
    marker.heal(&hosts);
    is_lost_once(&hosts, &mut read, &mut subscriber);
}
