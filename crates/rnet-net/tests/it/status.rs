//! The status of the link: what crosses, what does not and why, and counters that survive a cut.

use crate::common;
use crate::hosts;

use std::time::Instant;

use common::{LONG, eventually};
use hosts::Hosts;
use rnet::msgs::LinkStatus;
use rnet::msgs::link_status::{Cause, Direction, Lost, State, Topic};
use rnet::{Node, OnFull, Subscriber};

/// The last status of a host's link.
pub struct Watch {
    statuses: Subscriber<LinkStatus>,
    last: Option<LinkStatus>,
}

impl Watch {
    pub fn of(node: &Node) -> Watch {
        Watch {
            statuses: node.subscriber("/_rnet/link").transient_local().open().unwrap(),
            last: None,
        }
    }

    /// Waits until the only other host is in this state, and this topic matches.
    pub fn until(
        &mut self,
        what: &str,
        state: State,
        (topic, direction): (&str, Direction),
        mut is_so: impl FnMut(&Topic) -> bool,
    ) {
        eventually(what, || {
            while let Some(status) = self.statuses.try_recv().unwrap() {
                self.last = Some(LinkStatus::clone(&status));
            }
            let Some(peer) = self.last.as_ref().and_then(|last| last.peers.first()) else {
                return false;
            };
            let mut topics = peer.topics.iter();
            let topic = topics.find(|one| one.name == topic && one.direction() == direction);
            peer.state() == state && topic.is_some_and(&mut is_so)
        });
    }
}

/// In a star, each host that is connected to the middle learns which other present hosts it does not hear.
#[test]
fn hosts_heard_only_by_a_third_host_are_listed() {
    let hosts = Hosts::new("star", 3);
    hosts.cut(1, 2);
    let mut statuses = [1, 2].map(|host| Watch::of(&hosts.node(host, "look")));
    let mut until_named = |named: bool| {
        for (watch, other) in statuses.iter_mut().zip(["host2", "host1"]) {
            eventually("the middle reports that it reaches the other", || {
                while let Some(status) = watch.statuses.try_recv().unwrap() {
                    watch.last = Some(LinkStatus::clone(&status));
                }
                let peers = watch.last.iter().flat_map(|last| &last.peers);
                let mut middle = peers.filter(|peer| peer.host == "host0");
                middle.next().is_some_and(|peer| {
                    peer.text.contains(&format!("it reaches {other}, which")) == named
                })
            });
        }
    };
    until_named(true);
    hosts.heal(1, 2);
    until_named(false);
}

#[test]
fn topics_that_do_not_cross_are_listed_with_cause() {
    let config = "[[network.rule]]\ntopic = \"/denied\"\nallow = false\n\
                  [[network.rule]]\ntopic = \"/unwanted\"\ndirection = \"in\"\nallow = false\n\
                  [[network.topic]]\ntopic = \"/limited\"\nrate_limit_hz = 0.1\n\
                  [[network.topic]]\ntopic = \"/newest\"\nnewest_only = true\n\
                  [[network.topic]]\ntopic = \"/some\"\nevery = 3\n";
    let hosts = Hosts::with_config("causes", &[config, ""]);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let (mut here, mut there) = (Watch::of(&from), Watch::of(&to));
    let topics = ["/denied", "/unheard", "/limited", "/newest", "/some"];
    let mut publishers = topics.map(|topic| from.publisher::<[u8]>(topic).open().unwrap());
    let _heard = ["/limited", "/newest", "/some"].map(|topic| {
        let subscriber = to.subscriber::<[u8]>(topic).open().unwrap();
        let publisher = publishers.iter().find(|publisher| publisher.topic() == topic).unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        subscriber
    });
    let _from_there = to.publisher::<[u8]>("/denied").open().unwrap();
    let unwanted = from.subscriber::<[u8]>("/unwanted").open().unwrap();
    // The newest of the messages that come while the link does not read; sent again, because the link may
    // read each.
    let causes = [
        ("/denied", Direction::Out, Cause::Rule, "robot.toml:1"),
        ("/denied", Direction::In, Cause::Rule, "robot.toml:1"),
        ("/unheard", Direction::Out, Cause::NoSubscriber, "no subscriber there"),
        ("/limited", Direction::Out, Cause::RateLimit, "at most 0.1 Hz"),
        ("/newest", Direction::Out, Cause::LeftOut, "newest"),
        ("/some", Direction::Out, Cause::LeftOut, "1 of 3"),
    ];
    for (topic, direction, cause, text) in causes {
        here.until(topic, State::Connected, (topic, direction), |topic| {
            for publisher in &mut publishers {
                (0..100).for_each(|_| publisher.send(b"x").unwrap());
            }
            topic.held_back() == cause && topic.held_back_text.contains(text)
        });
    }
    // Without the names of the topics that the rules withhold, which do not cross either.
    let withheld = "rules in its robot.toml withhold 2 of its topics from this host";
    eventually("both topics are counted", || {
        there.until("no subscriber here", State::Connected, ("/unheard", Direction::In), |topic| {
            topic.held_back() == Cause::NoSubscriber
        });
        there.last.as_ref().unwrap().peers[0].text == withheld
    });
    assert_eq!(here.last.as_ref().unwrap().peers[0].text, "");
    drop((publishers, unwanted));
    eventually("nothing is withheld any more", || {
        there.until("the topic is listed", State::Connected, ("/denied", Direction::Out), |_| true);
        there.last.as_ref().unwrap().peers[0].text.is_empty()
    });
}

#[test]
fn status_shows_where_the_link_connects() {
    let config = "[network]\nconnect = [\"tcp/10.0.0.2:7450\"]\n";
    let lan = "[network]\nmode = \"lan\"\ninterfaces = [\"lo\"]\n";
    let hosts = Hosts::with_config("looks", &[config, lan]);
    let status = |host: usize| {
        let mut watch = Watch::of(&hosts.node(host, "watch"));
        LinkStatus::clone(&watch.statuses.recv_timeout(LONG).unwrap())
    };
    let (one, two) = (status(0), status(1));
    assert_eq!((one.mode.as_str(), one.connect), ("peers", vec!["tcp/10.0.0.2:7450".to_owned()]));
    assert_eq!((two.mode.as_str(), two.interfaces), ("lan", vec!["lo".to_owned()]));
}

/// The log of the publisher wraps around while the link waits for its turn: the messages that it skipped
/// count as left out as well.
#[test]
fn messages_skipped_by_newest_only_are_not_lost() {
    let config = "[[network.topic]]\ntopic = \"/t\"\nnewest_only = true\nrate_limit_hz = 20\n";
    let hosts = Hosts::with_config("passed over", &[config, ""]);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let mut publisher = from.publisher::<[u8]>("/t").log_len_bytes(1 << 16).open().unwrap();
    let mut subscriber = to.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let mut sent = 0_u64;
    for _ in 0..5 {
        for _ in 0..2_000 {
            sent += 1;
            publisher.send(&[sent.to_le_bytes(); 1 << 10].concat()).unwrap();
        }
        // The last of them crosses.
        while subscriber.recv_timeout(LONG).unwrap()[..8] != sent.to_le_bytes() {}
    }
    assert_eq!(subscriber.lost().total(), 0);
    let mut here = Watch::of(&from);
    here.until(
        "all messages are accounted for",
        State::Connected,
        ("/t", Direction::Out),
        |topic| {
            assert_eq!(topic.lost, Some(Lost::default()));
            topic.messages + topic.skipped == sent
        },
    );
}

/// The received numbers, up to this one.
fn numbers(subscriber: &mut Subscriber<[u8]>, last: u64) -> Vec<u64> {
    let mut received = Vec::new();
    while received.last() != Some(&last) {
        received.push(u64::from_le_bytes(
            (*subscriber.recv_timeout(LONG).unwrap()).try_into().unwrap(),
        ));
    }
    received
}

/// The message numbers decide which messages cross, and not the count of a link's reads: another link may
/// take over.
#[test]
fn every_nth_message_crosses_across_hand_overs() {
    let config = "[[network.topic]]\ntopic = \"/t\"\nevery = 3\n";
    let mut hosts = Hosts::with_config("every", &[config, ""]);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let mut publisher = from.publisher::<[u8]>("/t").reliable(OnFull::Refuse).open().unwrap();
    let mut subscriber = to.subscriber::<[u8]>("/t").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let mut sent = 0_u64;
    let mut send = |until: u64| {
        for number in sent..until {
            publisher.send(&number.to_le_bytes()).unwrap();
        }
        sent = until;
    };
    let thirds = |from: u64, last: u64| (from..=last).step_by(3).collect::<Vec<_>>();
    send(301);
    assert_eq!(numbers(&mut subscriber, 300), thirds(0, 300));
    let mut here = Watch::of(&from);
    here.until(
        "all messages are accounted for",
        State::Connected,
        ("/t", Direction::Out),
        |topic| {
            assert_eq!(topic.lost, Some(Lost::default()));
            (topic.messages, topic.skipped) == (101, 200)
        },
    );
    // Each hand-over happens at another position among the three.
    send(302);
    hosts.settle();
    hosts.start(0, config);
    send(400);
    assert_eq!(numbers(&mut subscriber, 399), thirds(303, 399));
    send(402);
    hosts.settle();
    hosts.start(1, "");
    send(500);
    assert_eq!(numbers(&mut subscriber, 498), thirds(402, 498));
    assert_eq!(subscriber.lost().total(), 0);
}

/// A message kept for late subscribers is the first that crosses, whatever its number.
#[test]
fn kept_message_crosses_with_every_n() {
    let config = "[[network.topic]]\ntopic = \"/t\"\nevery = 3\n";
    let hosts = Hosts::with_config("kept of every", &[config, ""]);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let mut publisher = from.publisher::<[u8]>("/t").transient_local(1).open().unwrap();
    for number in 0..5_u64 {
        publisher.send(&number.to_le_bytes()).unwrap();
    }
    let mut subscriber = to.subscriber::<[u8]>("/t").transient_local().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    for number in 5..10_u64 {
        publisher.send(&number.to_le_bytes()).unwrap();
    }
    assert_eq!(numbers(&mut subscriber, 9), [4, 6, 9]);
}

#[test]
fn rate_limit_passes_its_rate_and_the_last_message() {
    const HZ: f64 = 20.0;
    let config = format!("[[network.topic]]\ntopic = \"/t\"\nrate_limit_hz = {HZ}\n");
    let hosts = Hosts::with_config("rate", &[&config, ""]);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let mut publisher = from.publisher::<[u8]>("/t").open().unwrap();
    let mut subscriber = to.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let begun = Instant::now();
    let (mut sent, mut received) = (0_u64, Vec::new());
    eventually("some cross", || {
        publisher.send(&sent.to_le_bytes()).unwrap();
        sent += 1;
        while let Some(sample) = subscriber.try_recv().unwrap() {
            received.push(u64::from_le_bytes((*sample).try_into().unwrap()));
        }
        received.len() >= 10
    });
    // No later message would wake the link.
    publisher.send(&sent.to_le_bytes()).unwrap();
    received.extend(numbers(&mut subscriber, sent));
    // The first two may follow each other at once: an unused period is not carried over.
    let most = 2.0 + HZ * begun.elapsed().as_secs_f64();
    assert!(received.len() as f64 <= most, "{} of at most {most}", received.len());
    assert!(received.is_sorted_by(|a, b| a < b), "{received:?}");
    assert_eq!(subscriber.lost().total(), 0);
    let mut here = Watch::of(&from);
    here.until(
        "all messages are accounted for",
        State::Connected,
        ("/t", Direction::Out),
        |topic| {
            assert_eq!(topic.lost, Some(Lost::default()));
            topic.messages == received.len() as u64 && topic.messages + topic.skipped == sent + 1
        },
    );
}

#[test]
fn full_subscriber_is_reported_by_both_hosts() {
    let hosts = Hosts::new("credit", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let mut publisher = from.publisher::<[u8]>("/t").reliable(OnFull::Refuse).open().unwrap();
    let _heard = to.subscriber::<[u8]>("/t").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let mut here = Watch::of(&from);
    here.until("the subscriber there is full", State::Connected, ("/t", Direction::Out), |topic| {
        while publisher.send(&[0; 1000]).is_ok() {}
        // The status has the age of the waiting message.
        topic.held_back() == Cause::Credit && topic.waited.is_some()
    });
    let mut there = Watch::of(&to);
    there.until("the subscriber here is full", State::Connected, ("/t", Direction::In), |topic| {
        topic.held_back() == Cause::Credit
    });
}

#[test]
fn counts_outlast_a_cut() {
    let hosts = Hosts::new("counts", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let (mut here, mut there) = (Watch::of(&from), Watch::of(&to));
    let mut publisher = from.publisher::<[u8]>("/t").open().unwrap();
    let mut subscriber = to.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let both = |here: &mut Watch, there: &mut Watch, state: State, messages: u64| {
        here.until("sent", state, ("/t", Direction::Out), |t| t.messages == messages);
        there.until("came", state, ("/t", Direction::In), |t| t.messages == messages);
    };
    for _ in 0..5 {
        publisher.send(b"x").unwrap();
        subscriber.recv_timeout(LONG).unwrap();
    }
    both(&mut here, &mut there, State::Connected, 5);
    hosts.cut(0, 1);
    both(&mut here, &mut there, State::Lost, 5);
    hosts.heal(0, 1);
    eventually("it is counted again", || publisher.subscriber_count() == 1);
    publisher.send(b"x").unwrap();
    both(&mut here, &mut there, State::Connected, 6);
}

/// Each client of a service has its own topics: the list of absent topics does not grow with them.
#[test]
fn absent_topics_are_summed_up() {
    const COUNT: u64 = 150;
    let hosts = Hosts::new("ended", 2);
    let (from, to) = (hosts.node(0, "from"), hosts.node(1, "to"));
    let (mut here, mut there) = (Watch::of(&from), Watch::of(&to));
    let ends: Vec<_> = (0..COUNT)
        .map(|number| {
            let topic = format!("/client{number}");
            let mut subscriber = to.subscriber::<[u8]>(&topic).open().unwrap();
            let mut publisher = from.publisher::<[u8]>(&topic).open().unwrap();
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
            publisher.send(b"x").unwrap();
            subscriber.recv_timeout(LONG).unwrap();
            (subscriber, publisher)
        })
        .collect();
    let last = format!("/client{}", COUNT - 1);
    here.until("it is sent", State::Connected, (&last, Direction::Out), |t| t.messages == 1);
    there.until("it came", State::Connected, (&last, Direction::In), |t| t.messages == 1);
    // While the host is away, and when it is back, each is listed separately.
    hosts.cut(0, 1);
    here.until("it is listed", State::Lost, (&last, Direction::Out), |t| t.messages == 1);
    there.until("it is listed", State::Lost, (&last, Direction::In), |t| t.messages == 1);
    hosts.heal(0, 1);
    let all = |publisher: &rnet::Publisher<[u8]>| publisher.subscriber_count() == 1;
    eventually("all are matched again", || ends.iter().all(|(_, publisher)| all(publisher)));
    here.until("it is listed", State::Connected, (&last, Direction::Out), |t| t.messages == 1);
    let rows = &here.last.as_ref().unwrap().peers[0].topics;
    assert!(rows.iter().all(|topic| topic.name != "(ended)"), "{rows:?}");
    drop(ends);
    for (watch, direction) in [(&mut here, Direction::Out), (&mut there, Direction::In)] {
        let mut rows = Vec::new();
        watch.until("they are summed up", State::Connected, ("(ended)", direction), |topic| {
            topic.messages == COUNT - 64
        });
        let peer = &watch.last.as_ref().unwrap().peers[0];
        rows.extend(peer.topics.iter().filter(|topic| topic.direction() == direction));
        let ended = rows.iter().filter(|topic| topic.name.starts_with("/client"));
        assert_eq!(ended.count(), 64);
        let sum = rows.iter().filter(|topic| !topic.name.starts_with("/_rnet/"));
        assert_eq!(sum.map(|topic| topic.messages).sum::<u64>(), COUNT);
    }
}

/// A host requests a publisher once, however many of its nodes subscribe to it.
#[test]
fn message_crosses_once_for_two_subscribers_of_a_host() {
    const COUNT: u64 = 50;
    let hosts = Hosts::new("once", 2);
    let from = hosts.node(0, "from");
    let (mut here, mut there) = (Watch::of(&from), Watch::of(&hosts.node(1, "looks")));
    let mut publisher = from.publisher::<[u8]>("/t").reliable(OnFull::Refuse).open().unwrap();
    let nodes = ["one", "two"].map(|name| hosts.node(1, name));
    let mut subscribers = nodes.each_ref().map(|node| {
        let subscriber = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
        // The second subscriber finds an existing channel.
        eventually("it is counted", || publisher.subscriber_count() > 0);
        subscriber
    });
    publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
    for number in 0..COUNT {
        publisher.send(&number.to_le_bytes()).unwrap();
    }
    for subscriber in &mut subscribers {
        for number in 0..COUNT {
            assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), number.to_le_bytes());
        }
    }
    let crossed = |topic: &Topic| topic.messages == COUNT;
    here.until("each was sent once", State::Connected, ("/t", Direction::Out), crossed);
    there.until("each came once", State::Connected, ("/t", Direction::In), crossed);
    // A copy that is still in flight would be counted with this one.
    publisher.send(b"last").unwrap();
    for subscriber in &mut subscribers {
        assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), *b"last");
    }
    let crossed = |topic: &Topic| {
        assert!(topic.messages <= COUNT + 1, "{} messages", topic.messages);
        topic.messages == COUNT + 1
    };
    here.until("and the last", State::Connected, ("/t", Direction::Out), crossed);
    there.until("and the last", State::Connected, ("/t", Direction::In), crossed);
}
