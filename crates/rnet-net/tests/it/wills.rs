//! Last wills between hosts: what subscribers of another host receive when a publisher's process dies, or
//! its host is lost.

use crate::common;
use crate::hosts;

use common::{Child, LONG, eventually};
use hosts::Hosts;
use rnet::{Error, Subscriber};

/// The roles of the children: a publisher with a will.
#[test]
#[ignore = "entry point of child processes"]
fn child_entry() {
    let Some(role) = common::role() else { return };
    let node = common::Net::of_parent().node("talker");
    let _beside = (role == "beside").then(|| node.publisher::<[u8]>("/beside").open().unwrap());
    let publisher = node.publisher::<[u8]>("/t").last_will(&b"gone"[..]);
    let publisher = if role == "urgent" { publisher.urgent() } else { publisher };
    let mut publisher = Some(publisher.open().unwrap());
    for order in common::orders() {
        let Some(open) = &mut publisher else { continue };
        match order.as_str() {
            "send" => open.send(b"alive").unwrap(),
            "change" => open.set_last_will(b"gone for good").unwrap(),
            "clear" => open.clear_last_will().unwrap(),
            "close" => drop(publisher.take()),
            other => panic!("{other}"),
        }
    }
}

/// A publisher on the first host, and a subscriber on the second that has received a message of it.
fn matched_pair(hosts: &Hosts, role: &str) -> (Child, rnet::Node, Subscriber<[u8]>) {
    let to = hosts.node(1, "to");
    let mut subscriber = to.subscriber::<[u8]>("/t").open().unwrap();
    let mut child = hosts.child(0, role);
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    child.say("send");
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"alive");
    (child, to, subscriber)
}

/// Waits until the proxy on a host has a will of this length, or none.
#[track_caller]
fn until_known(hosts: &Hosts, host: usize, len: Option<u64>) {
    eventually("the other host knows the will", || {
        let found = hosts.domain(host).inspect();
        let proxy = found.publishers.iter().find(|publisher| publisher.topic == "/t");
        proxy.is_some_and(|proxy| proxy.last_will_len == len)
    });
}

/// The next message is the will, once, and then the loss of the publisher.
#[track_caller]
fn gets_the_will(subscriber: &mut Subscriber<[u8]>, will: &[u8]) {
    let sample = subscriber.recv_timeout(LONG).unwrap();
    assert_eq!((&*sample, sample.is_last_will()), (will, true));
    assert_eq!(sample.node(), "@host0/talker");
    is_lost(subscriber);
    assert_eq!(subscriber.lost().total(), 0);
}

#[track_caller]
fn is_lost(subscriber: &mut Subscriber<[u8]>) {
    match subscriber.recv_timeout(LONG) {
        Err(Error::PeerLost { node, .. }) => assert_eq!(node, "@host0/talker"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn killed_process_leaves_its_will_remotely() {
    for role in ["bulk", "urgent"] {
        let hosts = Hosts::new("will", 2);
        let (mut child, to, mut subscriber) = matched_pair(&hosts, role);
        let mut second = to.subscriber::<[u8]>("/t").open().unwrap();
        second.wait_for_publishers_timeout(1, LONG).unwrap();
        child.say("send");
        assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"alive");
        assert_eq!(&*second.recv_timeout(LONG).unwrap(), b"alive");
        child.kill();
        gets_the_will(&mut subscriber, b"gone");
        gets_the_will(&mut second, b"gone");
    }
}

/// It is changed at the last moment: the forwarder reads it when the publisher is dead.
#[test]
fn killed_process_leaves_its_latest_will() {
    let hosts = Hosts::new("changed", 2);
    let (mut child, _to, mut subscriber) = matched_pair(&hosts, "bulk");
    child.say("change");
    child.say("send");
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"alive");
    child.kill();
    gets_the_will(&mut subscriber, b"gone for good");
}

#[test]
fn closed_publisher_leaves_no_will() {
    let hosts = Hosts::new("closed", 2);
    let (mut child, to, mut subscriber) = matched_pair(&hosts, "bulk");
    until_known(&hosts, 1, Some(4));
    child.say("close");
    eventually("it has left", || subscriber.publisher_count() == 0);
    assert!(subscriber.try_recv().unwrap().is_none());
    child.kill();
    drop((to, subscriber));
    // A publisher that has withdrawn its will dies without one.
    let (mut child, _to, mut subscriber) = matched_pair(&hosts, "bulk");
    child.say("clear");
    until_known(&hosts, 1, None);
    child.kill();
    is_lost(&mut subscriber);
}

/// The new link has no report of either: the presence of the node with its other endpoints shows that the
/// publisher was closed.
#[test]
fn will_follows_death_but_not_close_during_a_link_restart() {
    for closes in [true, false] {
        let mut hosts = Hosts::new("meanwhile", 2);
        let (mut child, _to, mut subscriber) = matched_pair(&hosts, "beside");
        until_known(&hosts, 1, Some(4));
        hosts.stop(0);
        if closes {
            child.say("close");
        } else {
            child.kill();
        }
        eventually("it is gone at home", || {
            !hosts.domain(0).inspect().publishers.iter().any(|publisher| publisher.topic == "/t")
        });
        hosts.start(0, "");
        if closes {
            eventually("it has left", || subscriber.publisher_count() == 0);
            assert!(subscriber.try_recv().unwrap().is_none(), "neither a will nor a loss");
        } else {
            gets_the_will(&mut subscriber, b"gone");
        }
    }
}

#[test]
fn lost_host_leaves_the_last_announced_will() {
    let hosts = Hosts::new("lost", 2);
    let (mut child, _to, mut subscriber) = matched_pair(&hosts, "bulk");
    child.say("change");
    until_known(&hosts, 1, Some(13));
    hosts.cut(0, 1);
    gets_the_will(&mut subscriber, b"gone for good");
    hosts.heal(0, 1);
    // It lives and continues: its death is another event.
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    child.say("send");
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"alive");
    child.kill();
    gets_the_will(&mut subscriber, b"gone for good");
}

#[test]
fn restarted_link_leaves_no_will() {
    let mut hosts = Hosts::new("hand-over", 2);
    let (mut child, _to, mut subscriber) = matched_pair(&hosts, "bulk");
    until_known(&hosts, 1, Some(4));
    for host in [1, 0] {
        hosts.stop(host);
        hosts.start(host, "");
        // Nothing else precedes it.
        eventually("a message crosses", || {
            child.say("send");
            match subscriber.recv_timeout(std::time::Duration::from_millis(20)) {
                Ok(sample) => {
                    assert_eq!((&*sample, sample.is_last_will()), (&b"alive"[..], false));
                    true
                }
                Err(Error::Timeout { .. }) => false,
                Err(error) => panic!("{error}"),
            }
        });
        hosts.settle();
        while let Some(sample) = subscriber.try_recv().unwrap() {
            assert!(!sample.is_last_will());
        }
    }
    until_known(&hosts, 1, Some(4));
    child.kill();
    gets_the_will(&mut subscriber, b"gone");
}
