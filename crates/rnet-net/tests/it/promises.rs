//! Promises of publishers, and rules that withhold topics, between hosts.

use crate::common;
use crate::hosts;

use std::time::Duration;

use common::{LONG, eventually};
use hosts::Hosts;
use rnet::{LossCause, Meta};

const PERIOD: Duration = Duration::from_millis(50);

#[test]
fn missed_deadline_is_counted_remotely() {
    let hosts = Hosts::new("deadline", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let mut publisher = from.publisher::<[u8]>("/t").deadline(PERIOD).open().unwrap();
    let mut subscriber = to.subscriber::<[u8]>("/t").deadline(PERIOD).open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(b"first").unwrap();
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"first");
    let missed = || subscriber.stats().iter().map(|stats| stats.deadline_missed).sum::<u64>();
    eventually("periods without a message are counted", || missed() > 2);
    assert_eq!(subscriber.lost().total(), 0);
}

#[test]
fn lifespan_begins_when_the_message_was_sent_on_its_host() {
    let hosts = Hosts::new("lifespan", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let mut publisher = from.publisher::<[u8]>("/t").lifespan(PERIOD).open().unwrap();
    let mut subscriber = to.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let expired = |of: &rnet::Subscriber<[u8]>| of.stats().iter().map(|s| s.expired).sum::<u64>();
    // A message that is read at once has not expired, unless this thread or the link was delayed for the
    // whole lifespan.
    let mut number = 0_u64;
    eventually("a message is received in time", || {
        number += 1;
        publisher.send(&number.to_le_bytes()).unwrap();
        eventually("it is received, or too old", || {
            subscriber.try_recv().unwrap().is_some() || expired(&subscriber) == number
        });
        expired(&subscriber) < number
    });
    let before = expired(&subscriber);
    publisher.send(b"old").unwrap();
    std::thread::sleep(2 * PERIOD); // sleep: the message must get older than its lifespan
    eventually("it is counted as expired", || {
        assert!(subscriber.try_recv().unwrap().is_none());
        expired(&subscriber) == before + 1
    });
    assert_eq!(subscriber.lost().total(), 0);
}

#[test]
fn liveliness_is_lost_and_regained_remotely() {
    let hosts = Hosts::new("alive", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let mut publisher = from.publisher::<[u8]>("/t").manual_by_topic(PERIOD).open().unwrap();
    let subscriber = to.subscriber::<[u8]>("/t").manual_by_topic(PERIOD).open().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    subscriber
        .on_liveliness(move |change| {
            let _ = sender.send(change.alive);
        })
        .detach();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(b"sign of life").unwrap();
    let next = || receiver.recv_timeout(LONG).unwrap();
    while next() {}
    publisher.send(b"another").unwrap();
    assert!(next(), "it is alive again");
    assert!(!next(), "and not for longer than its lease");
    drop(publisher);
    eventually("it is in neither count", || {
        let counts = subscriber.liveliness();
        (counts.alive, counts.not_alive) == (0, 0)
    });
}

#[test]
fn assertion_without_a_message_crosses() {
    let hosts = Hosts::new("asserts", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let publisher = from.publisher::<[u8]>("/t").manual_by_topic(PERIOD).open().unwrap();
    let subscriber = to.subscriber::<[u8]>("/t").manual_by_topic(PERIOD).open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    for _ in 0..2 {
        eventually("it asserts nothing", || subscriber.liveliness().not_alive == 1);
        eventually("it asserts that it is alive", || {
            publisher.assert_alive().unwrap();
            subscriber.liveliness().alive == 1
        });
    }
}

#[test]
fn known_losses_of_a_publisher_are_counted_once() {
    let mut hosts = Hosts::new("missing", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let mut publisher = from.publisher::<[u8]>("/t").open().unwrap();
    publisher.publish_gap(LossCause::Link, 1000).unwrap();
    let mut subscriber = to.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let mut counted = |what: &str, link: u64, restart: u64| {
        eventually(what, || {
            while !matches!(subscriber.try_recv(), Ok(None)) {}
            let lost = subscriber.lost();
            assert!(lost.link <= link && lost.restart <= restart, "{what}: {lost}");
            (lost.link, lost.restart) == (link, restart)
        });
    };
    publisher.publish_gap(LossCause::Link, 3).unwrap();
    counted("a gap without a message", 3, 0);
    publisher.send_with(b"x", Meta::default().with_gap(LossCause::Restart, 2)).unwrap();
    publisher.publish_gap(LossCause::Restart, 5).unwrap();
    counted("gaps before and behind a message", 3, 7);
    // The other link restarts its session; losses meanwhile are reported when it is back.
    hosts.stop(0);
    publisher.publish_gap(LossCause::Link, 4).unwrap();
    publisher.send_with(b"x", Meta::default().with_gap(LossCause::Link, 2)).unwrap();
    publisher.publish_gap(LossCause::Link, 1).unwrap();
    hosts.start(0, "");
    counted("gaps while no link was there", 10, 7);
    publisher.publish_gap(LossCause::Overrun, 1).unwrap();
    publisher.publish_gap(LossCause::Restart, 1).unwrap();
    counted("a gap after that", 10, 8);
    publisher.publish_gap(LossCause::Link, 1).unwrap();
    drop(publisher);
    counted("the last gap of a publisher that closes", 11, 8);
}

/// `/held` crosses in neither direction if `direction` is denied on host 0.
fn held_back(test: &str, direction: &str, from: usize, to: usize) {
    let rule = format!(
        "[[network.rule]]\ntopic = \"/held\"\ndirection = \"{direction}\"\nallow = false\n"
    );
    let hosts = Hosts::with_config(test, &[&rule, ""]);
    let (sends, hears) = (hosts.node(from, "sends"), hosts.node(to, "hears"));
    let mut held = sends.publisher::<[u8]>("/held").open().unwrap();
    let mut free = sends.publisher::<[u8]>("/free").open().unwrap();
    let mut no = hears.subscriber::<[u8]>("/held").open().unwrap();
    let mut yes = hears.subscriber::<[u8]>("/free").open().unwrap();
    free.wait_for_subscribers_timeout(1, LONG).unwrap();
    held.send(b"x").unwrap();
    free.send(b"x").unwrap();
    assert_eq!(&*yes.recv_timeout(LONG).unwrap(), b"x");
    // It would have come before: announced first, and sent first.
    assert!(no.try_recv().unwrap().is_none());
    assert_eq!((no.publisher_count(), held.subscriber_count()), (0, 0));
    let snapshot = hosts.domain(to).inspect();
    let is_held = |p: &&rnet::inspect::PublisherInfo| p.topic == "/held";
    assert!(!snapshot.publishers.iter().any(|p| is_held(&p)), "its endpoint is withheld as well");
}

#[test]
fn denied_outbound_topic_is_withheld_with_its_endpoint() {
    held_back("out", "out", 0, 1);
}

#[test]
fn denied_inbound_topic_is_withheld_with_its_endpoint() {
    held_back("in", "in", 1, 0);
}
