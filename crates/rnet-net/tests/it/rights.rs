//! Rights of hosts: each link refuses what a certificate does not allow, in both directions.

use crate::common;
use crate::hosts;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{LONG, eventually};
use hosts::Hosts;
use rnet::msgs::LinkStatus;
use rnet::msgs::link_status::{Cause, Direction};
use rnet::{ActionContext, CallOptions, Error, Node, OnFull, Subscriber};
use rnet_keys::Right::{self, Call, Drive, Publish, Read, Subscribe, Write};

/// Long enough for a request that would be answered.
const SHORT: Duration = Duration::from_millis(400);

/// All rights on everything.
pub const ALL: &[(Right, &str)] = &[
    (Publish, "/**"),
    (Subscribe, "/**"),
    (Call, "/**"),
    (Drive, "/**"),
    (Read, "/**"),
    (Write, "/**"),
];

/// The last status of a host's link.
struct Watch(Subscriber<LinkStatus>, LinkStatus);

impl Watch {
    fn of(node: &Node) -> Watch {
        let statuses = node.subscriber("/_rnet/link").transient_local().open().unwrap();
        Watch(statuses, LinkStatus::default())
    }

    fn until(&mut self, what: &str, mut is_so: impl FnMut(&LinkStatus) -> bool) -> &LinkStatus {
        eventually(what, || {
            while let Some(status) = self.0.try_recv().unwrap() {
                self.1.clone_from(&status);
            }
            is_so(&self.1)
        });
        &self.1
    }

    /// Waits until rights hold this topic back, with this text.
    fn until_held_back(&mut self, topic: &str, direction: Direction, text: &str) {
        let what = format!("{topic} is held back: {text}");
        self.until(&what, |status| {
            let topics = status.peers.iter().flat_map(|peer| &peer.topics);
            let mut of_it = topics.filter(|one| one.name == topic && one.direction() == direction);
            of_it
                .any(|one| one.held_back() == Cause::Rights && one.held_back_text.starts_with(text))
        });
    }
}

/// The topics of the endpoints on a host that are those of other hosts.
fn remote_topics(hosts: &Hosts, host: usize) -> BTreeSet<String> {
    let found = hosts.domain(host).inspect();
    let publishers = found.publishers.iter().map(|one| (&one.node, &one.topic));
    let subscriptions = found.subscriptions.iter().map(|one| (&one.node, &one.topic));
    let remote = publishers.chain(subscriptions).filter(|(node, _)| node.starts_with('@'));
    let topics = remote.map(|(_, topic)| topic.clone());
    topics.filter(|topic| topic != rnet::bridge::NODES_TOPIC).collect()
}

#[test]
fn topic_crosses_only_if_one_host_may_publish_and_the_other_may_subscribe() {
    let sender: &[_] = &[(Publish, "/a/**"), (Publish, "/both")];
    let receiver: &[_] = &[(Subscribe, "/a/x"), (Subscribe, "/both"), (Subscribe, "/c")];
    // In each direction: the host that greets first decides nothing.
    for (from, rights) in [(0, [sender, receiver]), (1, [receiver, sender])] {
        let hosts = Hosts::with_rights("rights", &rights);
        let (out, home) = (hosts.node(from, "out"), hosts.node(1 - from, "home"));
        let (sends, receives) = (format!("host{from}"), format!("host{}", 1 - from));
        let topics = ["/a/x", "/a/y", "/both", "/c"];
        let mut publishers = topics.map(|topic| out.publisher::<[u8]>(topic).open().unwrap());
        let mut subscribers =
            topics.map(|topic| home.subscriber::<[u8]>(topic).keep_all().open().unwrap());
        for at in [0, 2] {
            subscribers[at].wait_for_publishers_timeout(1, LONG).unwrap();
            publishers[at].wait_for_subscribers_timeout(1, LONG).unwrap();
        }
        for publisher in &mut publishers {
            publisher.send(b"x").unwrap();
        }
        hosts.settle();
        let received = subscribers.each_mut().map(|one| one.try_recv().unwrap().is_some());
        assert_eq!(received, [true, false, true, false]);
        let known = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(remote_topics(&hosts, 1 - from), known(&["/a/x", "/both"]));
        // A subscription shows the other side that something is wanted there. What this host may not
        // subscribe to is not visible.
        assert_eq!(remote_topics(&hosts, from), known(&["/a/x", "/both", "/c"]));
        let (mut there, mut here) = (Watch::of(&home), Watch::of(&out));
        there.until_held_back(
            "/a/y",
            Direction::In,
            &format!(
                "this host ({receives}) may not subscribe to /a/y: its certificate has no right subscribe for it; on \
                 the authority's machine, issue one with all its rights: rnet keys add-host {receives} --subscribe /a/y"
            ),
        );
        let why = format!("host {receives} may not subscribe to /a/y");
        here.until_held_back("/a/y", Direction::Out, &why);
        let why =
            format!("this host ({sends}) may not publish /c: its certificate has no right publish");
        here.until_held_back("/c", Direction::Out, &why);
        let status = here.until("the peer is identified", |status| {
            status.peers.iter().any(|peer| peer.certificate.is_some())
        });
        // Nothing was announced that had to be refused.
        assert_eq!(status.peers[0].refused_endpoints, 0);
        assert!(status.problems.is_empty(), "{:?}", status.problems);
        assert_eq!(status.authority, "0123456789abcdef");
        let (own, peer) = (status.certificate.as_ref().unwrap(), &status.peers[0]);
        assert_eq!(own.serial, (from + 1).to_string());
        assert_eq!(peer.certificate.as_ref().unwrap().serial, (2 - from).to_string());
        let left_s = own.expires.unwrap().seconds - status.timestamp.unwrap().seconds;
        assert!((86_000..=86_400).contains(&left_s), "{left_s}");
    }
}

#[test]
fn service_needs_call_of_the_client_and_publish_of_the_server() {
    let server: &[_] = &[(Publish, "/plan"), (Publish, "/dig"), (Publish, "/move")];
    let client: &[_] = &[(Call, "/plan"), (Call, "/move"), (Call, "/unserved")];
    let hosts = Hosts::with_rights("call-rights", &[server, client]);
    let (robot, desk) = (hosts.node(0, "robot"), hosts.node(1, "desk"));
    let serve = |node: &Node, name: &str| {
        let name = name.to_owned();
        node.service::<[u8], [u8]>(&name).serve(|request: &[u8]| Ok(request.to_vec())).unwrap()
    };
    let dig = serve(&robot, "/dig");
    let _others = [serve(&robot, "/plan"), serve(&robot, "/unserved")];
    let client = |name: &str| desk.client::<[u8], [u8]>(name).open().unwrap();
    assert_eq!(&*client("/plan").call_timeout(b"x", LONG).unwrap(), b"x");
    let refused = client("/dig");
    let mut there = Watch::of(&desk);
    let waiting = refused.start(b"x", CallOptions::new().timeout(LONG)).unwrap();
    let of_dig = |status: &LinkStatus, text: &str| {
        let topics = status.peers.iter().flat_map(|peer| &peer.topics);
        topics
            .filter(|one| one.name.starts_with("/_rnet/call/dig/"))
            .any(|one| one.held_back() == Cause::Rights && one.held_back_text.starts_with(text))
    };
    let why = "this host (host1) may not call /dig: its certificate has no right call";
    there.until("the client's host reports what is missing", |status| of_dig(status, why));
    drop(waiting);
    // The server's host withholds nothing: the subscription to requests shows that there is a server.
    assert_eq!(dig.stats().calls, 0);
    let unserved = client("/unserved");
    let error = unserved.call_timeout(b"x", SHORT).unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert_eq!(unserved.server_count(), 0);
    let why = "this host (host0) may not serve /unserved: its certificate has no right publish";
    Watch::of(&robot).until("the server's host reports what is missing", |status| {
        let topics = status.peers.iter().flat_map(|peer| &peer.topics);
        topics
            .filter(|one| one.held_back() == Cause::Rights)
            .any(|one| one.held_back_text.starts_with(why))
    });
    // An action has the same topics, and feedback.
    let goal = |goal: &[u8], context: &mut ActionContext<'_, [u8]>| {
        context.feedback(b"half")?;
        Ok(goal.to_vec())
    };
    let _action = robot.action::<[u8], [u8], [u8]>("/move").serve(goal).unwrap();
    let moves = desk.action_client::<[u8], [u8], [u8]>("/move").open().unwrap();
    let mut feedback = Vec::new();
    let goal = moves.send(b"there", CallOptions::new()).unwrap();
    let result = goal.result_with_timeout(LONG, |half| feedback.push(half.to_vec())).unwrap();
    assert_eq!((&*result, &*feedback), (&b"there"[..], &[b"half".to_vec()][..]));
}

#[test]
fn command_is_driven_only_with_the_right_to_drive() {
    let base: &[_] = &[(Publish, "/cmd"), (Subscribe, "/cmd")];
    let publisher: &[_] = &[(Publish, "/**"), (Subscribe, "/**"), (Call, "/**")];
    let hosts = Hosts::with_rights("drive", &[base, &[(Drive, "/cmd")], publisher]);
    let [base, driver, other] = [0, 1, 2].map(|host| hosts.node(host, "node"));
    let applied = Arc::new(Mutex::new(Vec::new()));
    let wheels = applied.clone();
    let command = base.command::<[u8]>("/cmd").deadline(Duration::from_secs(600)).fallback(b"stop");
    let _command = command.apply(move |one| wheels.lock().unwrap().push(one.to_vec())).unwrap();
    let take = |node: &Node, limit| {
        let drive = node.drive::<[u8]>("/cmd").lease(Duration::from_secs(600)).priority(1);
        drive.timeout(limit).take()
    };
    // It may publish on the topic, and call every service but this one.
    let mut forged = other.publisher::<[u8]>("/cmd").urgent().open().unwrap();
    forged.wait_for_subscribers_timeout(1, LONG).unwrap();
    let error = take(&other, SHORT).map(drop).unwrap_err();
    assert!(matches!(error, Error::Timeout { .. } | Error::NotInForce { .. }), "{error}");
    let why = "this host (host2) may not drive /cmd: its certificate has no right drive";
    Watch::of(&other).until("the missing right is reported", |status| {
        let topics = status.peers.iter().flat_map(|peer| &peer.topics);
        topics
            .filter(|one| one.held_back() == Cause::Rights)
            .any(|one| one.held_back_text.starts_with(why))
    });
    let mut driver = take(&driver, LONG).unwrap();
    forged.send_with(b"crash", rnet::Meta::default().with_correlation(driver.number())).unwrap();
    driver.send(b"go").unwrap();
    let last = || applied.lock().unwrap().last().cloned().unwrap_or_default();
    eventually("its command is applied", || last() == b"go");
    hosts.settle();
    driver.release().unwrap();
    eventually("its release is applied", || last() == b"stop");
    assert_eq!(*applied.lock().unwrap(), [&b"stop"[..], b"go", b"stop"]);
}

#[test]
fn state_is_read_and_written_by_key() {
    let reader: &[_] = &[(Read, "/arm/**"), (Read, "/one/key"), (Write, "/arm/mode")];
    let hosts = Hosts::with_rights("state-rights", &[&[], reader, &[(Read, "/**")], &[]]);
    let [robot, desk, spy, stranger] = [0, 1, 2, 3].map(|host| hosts.node(host, "node"));
    let state = robot.state().unwrap();
    for key in ["/arm/mode", "/arm/x", "/one/key", "/secret"] {
        state.set(key, 1).unwrap();
    }
    let _home = hosts.home(0);
    let remote = desk.state_of("host0").unwrap();
    assert_eq!(remote.get("/arm/x").unwrap().value, Some(1.into()));
    assert_eq!(remote.get("/one/key").unwrap().value, Some(1.into()));
    let refusal = |error: Error, words: &str| {
        let text = error.to_string();
        assert!(matches!(error, Error::BadValue { .. }) && text.contains(words), "{text}");
        assert!(text.contains("rnet keys add-host host1 --"), "{text}");
    };
    refusal(remote.get("/secret").unwrap_err(), "host host1 may not read /secret");
    remote.set("/arm/mode", 2).unwrap();
    refusal(remote.set("/arm/x", 2).unwrap_err(), "host host1 may not write /arm/x");
    refusal(remote.delete("/one/key").unwrap_err(), "host host1 may not write /one/key");
    // A list and a replica are refused unless the host may read all of it.
    assert_eq!(remote.list("/arm").unwrap().len(), 2);
    for prefix in ["/", "", "/one", "/secret"] {
        refusal(remote.list(prefix).unwrap_err(), "host host1 may not read all keys under");
        refusal(remote.mirror(prefix).map(drop).unwrap_err(), "may not read all keys under");
    }
    refusal(remote.params().unwrap_err(), "host host1 may not read all keys under /params");
    let replica = remote.mirror("/arm").unwrap();
    state.set("/arm/x", 3).unwrap();
    eventually("it is followed", || replica.get("/arm/x").unwrap().value == Some(3.into()));
    // The feed is visible only to the host for which it is.
    let feeds = |host: usize| {
        let topics = hosts.domain(host).inspect().publishers.into_iter().map(|one| one.topic);
        topics.filter(|topic| topic.starts_with("/_rnet/state/")).collect::<BTreeSet<_>>()
    };
    assert_eq!((feeds(0).len(), feeds(1)), (1, feeds(0)));
    let topic = feeds(0).pop_first().unwrap();
    let mut overhears = spy.subscriber::<[u8]>(&topic).keep_all().open().unwrap();
    let why = "host host2 may not follow keys with rights that it does not have";
    Watch::of(&robot).until("the other host is refused", |status| {
        status.problems.iter().any(|problem| problem.starts_with(why))
            && status.peers.iter().any(|peer| peer.host == "host2" && peer.refused_endpoints == 1)
    });
    let of_all = spy.state_of("host0").unwrap();
    let everything = of_all.mirror("/").unwrap();
    state.set("/secret", 4).unwrap();
    eventually("it follows all", || everything.get("/secret").unwrap().value == Some(4.into()));
    assert_eq!(feeds(0).len(), 2);
    assert_eq!((feeds(2).len(), feeds(2).contains(&topic)), (1, false));
    assert!(overhears.try_recv().unwrap().is_none());
    // Without a right to read, the service is not even called.
    let error = stranger.state_of("host0").unwrap().get("/arm/x").unwrap_err();
    assert!(matches!(error, Error::HomeAway { .. }), "{error}");
    let why = "this host (host3) may not read state through /_rnet/state/h";
    Watch::of(&stranger).until("the missing right is reported", |status| {
        let topics = status.peers.iter().flat_map(|peer| &peer.topics);
        topics
            .filter(|one| one.held_back() == Cause::Rights)
            .any(|one| one.held_back_text.starts_with(why))
    });
    // A feed ends with the rights for which it was.
    hosts.certify(1, &[(Read, "/one/key")]);
    eventually("the replica is outdated", || replica.is_stale());
    eventually("its feed is not visible any more", || !feeds(1).contains(&topic));
    state.set("/arm/x", 5).unwrap();
    refusal(remote.get("/arm/x").unwrap_err(), "host host1 may not read /arm/x");
    assert_eq!(replica.get("/arm/x").unwrap().value, Some(3.into()));
}

#[test]
fn changed_rights_apply_while_others_lose_nothing() {
    let hosts = Hosts::with_rights("changed-rights", &[ALL, ALL, &[(Subscribe, "/flow")]]);
    let [out, changed, steady] = [0, 1, 2].map(|host| hosts.node(host, "node"));
    let open = |topic: &str| {
        let publisher = out.publisher::<[u8]>(topic).reliable(OnFull::Wait(LONG));
        publisher.open().unwrap()
    };
    let (mut a, mut flow) = (open("/a"), open("/flow"));
    let read = |node: &Node, topic: &str| {
        node.subscriber::<[u8]>(topic).reliable().keep_all().open().unwrap()
    };
    let (mut reads_a, mut reads_flow) = (read(&changed, "/a"), read(&steady, "/flow"));
    let own = changed.publisher::<[u8]>("/own").reliable(OnFull::Refuse).open().unwrap();
    let mut reads_own = read(&out, "/own");
    a.wait_for_subscribers_timeout(1, LONG).unwrap();
    flow.wait_for_subscribers_timeout(1, LONG).unwrap();
    own.wait_for_subscribers_timeout(1, LONG).unwrap();
    a.send(b"1").unwrap();
    assert_eq!(&*reads_a.recv_timeout(LONG).unwrap(), b"1");
    let mut number = 0u64;
    let mut until = |what: &str, is_so: &mut dyn FnMut() -> bool| {
        eventually(what, || {
            flow.send(&number.to_le_bytes()).unwrap();
            number += 1;
            is_so()
        });
    };
    hosts.certify(1, &[(Subscribe, "/b"), (Publish, "/other")]);
    let gone = |topic: &'static str| {
        move |hosts: &Hosts, host| !remote_topics(hosts, host).contains(topic)
    };
    until("the host does not hear /a any more", &mut || gone("/a")(&hosts, 1));
    until("its publisher is gone", &mut || {
        gone("/own")(&hosts, 0) && reads_own.publisher_count() == 0
    });
    let mut b = open("/b");
    let mut reads_b = read(&changed, "/b");
    until("it hears /b now", &mut || reads_b.publisher_count() == 1);
    a.send(b"2").unwrap();
    b.send(b"3").unwrap();
    assert_eq!(&*reads_b.recv_timeout(LONG).unwrap(), b"3");
    // Back to all rights: everything is decided again.
    hosts.certify(1, ALL);
    until("it hears /a again", &mut || reads_a.publisher_count() == 1);
    until("its publisher is back", &mut || reads_own.publisher_count() == 1);
    for expected in 0..number {
        let sample = reads_flow.recv_timeout(LONG).unwrap();
        assert_eq!(*sample, expected.to_le_bytes());
    }
}
