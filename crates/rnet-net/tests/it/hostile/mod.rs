//! Hostile links: their data is refused with an error that names it, takes a bounded amount of memory, and
//! reaches no topic that the rules forbid.

use crate::common;
use crate::hosts;
mod ends;
mod partial;
pub mod peer;
mod reports;
mod rights;
mod rules;
mod versions;
mod wills;

use std::fmt::Write;

use common::{LONG, eventually};
use hosts::Hosts;
use peer::{LANES, Peer};
use rnet::msgs::LinkStatus;
use rnet::msgs::link_status::State;
use rnet::{Error, Lane, Meta, Subscriber};
use rnet_net::link::LinkFailure;
use rnet_net::wire::{Data, Document, DocumentPart, Fragment, Item, Subscribe};
use rnet_net::{HostId, Presence};

/// The role of the children.
#[test]
#[ignore = "entry point of child processes"]
fn child_entry() {
    if common::role().is_some() {
        wills::talk();
    }
}

/// The id of the hostile host; the other one has id 1.
const EVIL: HostId = HostId(666);

/// A host with this configuration, and a hostile one.
fn hosts(test: &str, config: &str) -> (Hosts, Peer) {
    let hosts = Hosts::with_config(test, &[config]);
    let peer = Peer::join(hosts.net(), Presence { host: EVIL, term: 1 }, HostId(1));
    (hosts, peer)
}

/// Waits for a condition while the peer sends and acknowledges.
#[track_caller]
fn wait(peer: &Peer, what: &str, mut is: impl FnMut() -> bool) {
    eventually(what, || {
        peer.pump();
        is()
    });
}

fn publisher(id: u64, topic: &str) -> String {
    format!(
        r#"{{"id":{id},"node":"/evil","topic":{topic:?},"type":{{"kind":"raw"}},"qos":{{"publisher":{{"reliability":"reliable"}}}}}}"#
    )
}

fn announce(opened: &str) -> Vec<u8> {
    format!(r#"{{"all":true,"opened":[{opened}]}}"#).into_bytes()
}

/// The requests of the other host, in order.
fn subscribe_requests(peer: &Peer) -> Vec<Subscribe> {
    let wishes = std::cell::RefCell::new(Vec::new());
    peer.count(|item| {
        if let Item::Subscribe(want) = item {
            wishes.borrow_mut().push(*want);
        }
        false
    });
    wishes.into_inner()
}

fn data(channel: u32, seq: u64, payload: &[u8]) -> Item<'_> {
    let (sent_ns, meta) = (rnet::now_ns(), Meta::default());
    Item::Data(Data { channel, seq, sent_ns, meta, payload, compressed: false })
}

/// Sends its greeting and its endpoints once the other link has begun its session of this number.
#[track_caller]
fn introduce(peer: &Peer, session: u64, opened: &str) {
    wait(peer, "a session begins", || peer.sessions() >= session);
    assert!(peer.greet("evil"));
    assert!(peer.document(Document::Endpoints, &announce(opened)));
}

/// Waits until the peer receives a refusal for this reason.
#[track_caller]
fn is_told(peer: &Peer, why: &str) {
    wait(peer, why, || peer.documents(Document::Refused).iter().any(|text| text.contains(why)));
}

/// The problems, as the status reports them.
struct Problems(Subscriber<LinkStatus>);

impl Problems {
    fn of(hosts: &Hosts) -> (Problems, rnet::Node) {
        let node = hosts.node(0, "looks");
        (Problems(node.subscriber("/_rnet/link").transient_local().open().unwrap()), node)
    }

    /// Waits for a problem with these words.
    #[track_caller]
    fn wait(&mut self, peer: &Peer, words: &str) {
        wait(peer, words, || self.now().iter().any(|problem| problem.contains(words)));
    }

    fn now(&mut self) -> Vec<String> {
        let mut problems = Vec::new();
        while let Some(status) = self.0.try_recv().unwrap() {
            let problem = status.problems.iter().find(|problem| problem.chars().count() > 400);
            assert_eq!(problem, None, "each problem has a limited length");
            assert!(status.peers.iter().all(|peer| peer.version.len() <= 64));
            problems.clone_from(&status.problems);
        }
        problems
    }
}

#[test]
fn invalid_item_ends_the_stream_without_loss() {
    let (hosts, peer) = hosts("not-understood", "");
    let node = hosts.node(0, "hears");
    let mut hears = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
    introduce(&peer, 1, &publisher(7, "/t"));
    wait(&peer, "it is requested", || subscribe_requests(&peer).len() == 1);
    let channel = subscribe_requests(&peer)[0].channel;
    let flowing = Item::Delivery { channel, subscription: 0, active: true };
    assert!(
        peer.say(
            Lane::Bulk,
            &Item::Gap { channel, seq: 0, count: 0, cause: rnet::LossCause::Link }
        )
    );
    assert!(peer.say(Lane::Bulk, &flowing));
    wait(&peer, "it is admitted", || hears.publisher_count() == 1);
    peer.say(Lane::Bulk, &data(channel, 0, b"0"));
    // The earlier fragments of that message were not sent: the items after it in the frame are not read.
    let (sent_ns, meta) = (0, Meta::default());
    let middle = Fragment {
        channel,
        seq: 1,
        sent_ns,
        meta,
        total: 9,
        offset: 5,
        bytes: b"x",
        compressed: false,
    };
    peer.push(Lane::Bulk, &Item::Fragment(middle));
    peer.push(Lane::Bulk, &data(channel, 2, b"2"));
    wait(&peer, "a new session begins", || peer.sessions() == 2);
    assert_eq!(&*hears.recv_timeout(LONG).unwrap(), b"0");
    assert!(matches!(hears.recv_timeout(LONG), Err(Error::PeerLost { .. })));

    assert!(peer.greet("evil"));
    assert!(peer.document(Document::Endpoints, &announce(&publisher(7, "/t"))));
    wait(&peer, "it is requested again", || subscribe_requests(&peer).len() == 2);
    let again = subscribe_requests(&peer)[1];
    assert_eq!(again.from, Some(1), "the request continues after the last message that was read");
    is_told(&peer, "does not follow");
    for seq in 1..4 {
        peer.say(Lane::Bulk, &data(again.channel, seq, b"again"));
    }
    for _ in 1..4 {
        wait(&peer, "all of it comes", || hears.try_recv().unwrap().is_some());
    }
    assert_eq!(hears.lost().total(), 0);
}

/// A host that is suspended loses the others, and its clock stops: the step of their clocks is reported
/// although the session is another one.
#[test]
fn clock_step_of_an_absent_host_is_reported() {
    const STEP_NS: i64 = 10_000_000_000;
    let (hosts, peer) = hosts("step-away", "");
    let node = hosts.node(0, "looks");
    let mut statuses =
        node.subscriber::<LinkStatus>("/_rnet/link").transient_local().open().unwrap();
    let mut last = None;
    let mut peer_status = || {
        while let Some(status) = statuses.try_recv().unwrap() {
            last = status.peers.first().cloned();
        }
        last.clone().unwrap_or_default()
    };
    introduce(&peer, 1, &publisher(1, "/t"));
    eventually("its clock is known", || {
        peer.pulse();
        peer_status().clock_offset.is_some()
    });
    // The announcement stays incomplete, and the peer is silent for a second.
    let middle = DocumentPart::split(Document::Endpoints, &[b' '; 200_000]).last().unwrap();
    assert!(peer.say(Lane::Bulk, &Item::DocumentPart(middle)));
    wait(&peer, "it is lost", || peer_status().state() != State::Connected);
    assert_eq!(peer_status().clock_steps, []);
    peer.step(STEP_NS);
    wait(&peer, "a session begins", || peer.sessions() >= 2);
    assert!(peer.greet("evil"));
    assert!(peer.document(Document::Endpoints, &announce(&publisher(1, "/t"))));
    eventually("the step is reported", || {
        peer.pulse();
        !peer_status().clock_steps.is_empty()
    });
    let steps = peer_status().clock_steps;
    let by_ns = steps[0].step.map(|step| step.seconds * 1_000_000_000 + i64::from(step.nanos));
    assert!(steps.len() == 1 && by_ns.unwrap().abs_diff(STEP_NS) < 1_000_000_000, "{steps:?}");
}

#[test]
fn unanswered_type_request_is_repeated() {
    let (_hosts, peer) = hosts("asked-again", "");
    let of_type = |id: u64| {
        let hash = "0123456789abcdef0123456789abcdef";
        publisher(id, "/t").replace(
            r#""kind":"raw""#,
            &format!(r#""kind":"protobuf","name":"a.B","schema":"{hash}""#),
        )
    };
    introduce(&peer, 1, &of_type(1));
    let asked = || peer.count(|item| matches!(item, Item::NeedType { .. }));
    wait(&peer, "it is requested", || asked() == 1);
    assert!(peer.document(Document::Endpoints, br#"{"closed":[1]}"#));
    let opened = format!(r#"{{"opened":[{}]}}"#, of_type(2));
    assert!(peer.document(Document::Endpoints, opened.as_bytes()));
    wait(&peer, "it is requested again", || asked() == 2);
}

#[test]
fn peer_that_requests_more_than_it_reads_is_disconnected() {
    let (hosts, peer) = hosts("asks", "");
    let node = hosts.node(0, "has_a_type");
    let _publisher = node.publisher::<LinkStatus>("/t").open().unwrap();
    introduce(&peer, 1, "");
    let of_status = <LinkStatus as rnet::Message>::message_type().unwrap();
    let rnet::MessageType::Protobuf(schema) = of_status else { panic!("it is protobuf") };
    let hash = u128::from_str_radix(&schema.hash().to_string(), 16).unwrap();
    // Each request takes 19 bytes, and some kilobytes to answer.
    wait(&peer, "it is refused", || {
        for _ in 0..1000 {
            peer.push(Lane::Bulk, &Item::NeedType { hash });
        }
        peer.sessions() == 2
    });
    wait(&peer, "it gets the reason", || {
        peer.greet("evil") && !peer.documents(Document::Refused).is_empty()
    });
    assert!(peer.documents(Document::Refused)[0].contains("requests more data"));
}

#[test]
fn quadratic_input_blocks_no_other_host() {
    let (hosts, peer) = hosts("square", "");
    let (mut problems, _node) = Problems::of(&hosts);
    let mut opened = String::new();
    for id in 1..=20_000_u64 {
        let kind = format!(r#""kind":"protobuf","name":"a.B","schema":"{id:032x}""#);
        let one = publisher(id, "/t").replace(r#""kind":"raw""#, &kind);
        let _ = write!(opened, "{}{one}", if id == 1 { "" } else { "," });
    }
    introduce(&peer, 1, &opened);
    // A million endpoints that do not exist.
    let closed = vec!["7000000"; 1 << 20].join(",");
    assert!(peer.document(Document::Endpoints, format!(r#"{{"closed":[{closed}]}}"#).as_bytes()));
    assert!(peer.document(Document::Nodes, b"no JSON"));
    problems.wait(&peer, "nodes of another host");
}

#[test]
fn long_texts_are_not_kept() {
    let (hosts, peer) = hosts("long", "");
    let (mut problems, _node) = Problems::of(&hosts);
    wait(&peer, "a session begins", || peer.sessions() == 1);
    let long = "x".repeat(1 << 20);
    let hello = format!(r#"{{"host":"evil","release":"{long}","domain":"{long}"}}"#);
    assert!(peer.document(Document::Hello, hello.as_bytes()));
    assert!(peer.document(Document::Endpoints, &announce(&publisher(1, &long))));
    problems.wait(&peer, "xxx");
    for (kind, words) in [
        (format!(r#""kind":"protobuf","name":"{}","schema":"00"#, "y".repeat(300)), "too long"),
        (r#""kind":"protobuf","name":"a","schema":"..\u0000"#.to_owned(), "hash is invalid"),
    ] {
        let wrong = publisher(1, "/t").replace(r#""kind":"raw"#, &kind);
        assert!(peer.document(Document::Endpoints, &announce(&wrong)));
        problems.wait(&peer, words);
    }
    for topic in ["/a/../b", "/a\u{0}", "a b", "/*"] {
        assert!(peer.document(Document::Endpoints, &announce(&publisher(1, topic))));
    }
    assert!(peer.document(Document::Endpoints, &announce(&publisher(1, "/fine"))));
    wait(&peer, "the valid node is known", || {
        hosts.domain(0).inspect().publishers.iter().any(|p| p.topic == "/fine")
    });
}

#[test]
fn invalid_nodes_are_refused_by_name() {
    let (hosts, peer) = hosts("nodes", "");
    let (mut problems, _node) = Problems::of(&hosts);
    introduce(&peer, 1, "");
    let deep = "[".repeat(100_000);
    let (deep, known) = (format!(r#"{{"later":{deep}"#), format!(r#"{{"joined":{deep}"#));
    for (text, words) in [
        (deep.as_str(), "EOF while parsing"),
        (known.as_str(), "invalid type: sequence, expected a string"),
        (r#"{"joined":[{"name":7}]}"#, "integer `7`, expected a string"),
        (r#"{"joined":[{}]}"#, "missing field `name`"),
        (r#"{"joined":"/a"}"#, "expected a sequence"),
        (r#"[]"#, "nodes of another host"),
        (r#"{"joined":[{"name":"/a/../b"}]}"#, "/a/../b"),
        (r#"{"joined":[{"name":"/a\u0000b"}]}"#, "at character 3"),
        (r#"{"joined":[{"name":"@host9/a"}]}"#, "@host9/a"),
    ] {
        assert!(peer.document(Document::Nodes, text.as_bytes()), "{words}");
        problems.wait(&peer, words);
    }
    let mut many = String::from(r#"{"all":true,"joined":["#);
    for name in 0..100_000 {
        let _ = write!(many, r#"{{"name":"/n{name}"}},"#);
    }
    many.push_str(r#"{"name":"/last"}]}"#);
    assert!(peer.document(Document::Nodes, many.as_bytes()));
    problems.wait(&peer, "nodes of host evil");
    let mut domain = hosts.domain(0).domain();
    let mut of_evil = || domain.snapshot().unwrap().remote.len();
    wait(&peer, "the limit of nodes is reached", || of_evil() == 1024);
    assert!(peer.document(Document::Nodes, br#"{"all":true,"joined":[{"name":"/n7"}]}"#));
    wait(&peer, "one is left", || of_evil() == 1);
}

#[test]
fn link_without_announcement_is_restarted() {
    let hosts = Hosts::new("a link that tells nothing", 1);
    let peer = Peer::join(hosts.net(), Presence { host: EVIL, term: 1 }, HostId(1));
    // As after a lost greeting: each hears the other, and neither announces itself.
    wait(&peer, "a session", || peer.sessions() == 1);
    wait(&peer, "another one", || peer.sessions() == 2);
    assert!(peer.greet("evil"));
    assert!(peer.document(Document::Endpoints, br#"{"all":true}"#));
    wait(&peer, "its endpoints", || !peer.documents(Document::Endpoints).is_empty());
    let sessions = peer.sessions();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(5);
    wait(&peer, "5 s", || std::time::Instant::now() >= until);
    assert_eq!(peer.sessions(), sessions, "an announced host is not restarted");
}

/// Like a network that has lost one lane of a host without reporting it: if the host was heard before and a
/// new session does not help, the network counts as faulty.
#[test]
fn network_with_a_silent_lane_is_reopened() {
    let hosts = Hosts::new("one lane alone", 1);
    let peer = Peer::join(hosts.net(), Presence { host: EVIL, term: 1 }, HostId(1));
    let begin = |session| {
        wait(&peer, "a session", || peer.sessions() == session);
        assert!(peer.document(Document::Hello, br#"{"host":"evil","release":"0","pulse_ms":100}"#));
        assert!(peer.document(Document::Endpoints, br#"{"all":true}"#));
    };
    let last = |what: &str, is: &dyn Fn() -> bool| {
        eventually(what, || {
            peer.pulse();
            is()
        });
    };
    begin(1);
    last("both lanes get an answer", &|| LANES.iter().all(|lane| peer.is_answered(*lane)));
    peer.silence_urgent_lane();
    last("another session", &|| peer.sessions() == 2);
    assert_eq!(hosts.ended(0), None);
    begin(2);
    last("the link exits", &|| hosts.ended(0).is_some());
    let text = "host evil is visible, but its messages do not arrive";
    assert_eq!(hosts.ended(0), Some(LinkFailure::Network(text.into())));
}

#[test]
fn past_session_does_not_end_a_newer_one() {
    let hosts = Hosts::new("a session that is over", 1);
    let (own, old) = (Presence { host: EVIL, term: 1 }, 1 << 32);
    // As after a cut that ended no connection: the urgent lane delivers data from before the bulk lane's
    // restart.
    let peer = Peer::join_in(hosts.net(), own, HostId(1), [old + 1, old]);
    introduce(&peer, 1, "");
    wait(&peer, "its endpoints", || !peer.documents(Document::Endpoints).is_empty());
    peer.unsilence_urgent_lane();
    wait(&peer, "an answer on the urgent lane", || peer.is_answered(Lane::Urgent));
    let _publisher = hosts.node(0, "node").publisher::<[u8]>("/later").open().unwrap();
    let is_announced =
        || peer.documents(Document::Endpoints).iter().any(|text| text.contains("/later"));
    wait(&peer, "a publisher is announced", is_announced);
}

#[test]
fn partial_announcement_removes_no_endpoint_before_its_last_part() {
    let (hosts, peer) = hosts("parts", "");
    let node = hosts.node(0, "hears");
    let mut hears =
        ["/a", "/b", "/c", "/d"].map(|topic| node.subscriber::<[u8]>(topic).open().unwrap());
    let mut publisher_counts = || hears.each_mut().map(|subscriber| subscriber.publisher_count());
    let flow = |count: usize| {
        wait(&peer, "they are requested", || subscribe_requests(&peer).len() == count);
        let channel = subscribe_requests(&peer)[count - 1].channel;
        let flowing = Item::Delivery { channel, subscription: 0, active: true };
        assert!(peer.say(Lane::Bulk, &flowing));
    };
    introduce(&peer, 1, &publisher(1, "/a"));
    flow(1);
    for (at, topic) in ["/b", "/c"].into_iter().enumerate() {
        let opened = format!(r#"{{"opened":[{}]}}"#, publisher(at as u64 + 2, topic));
        assert!(peer.document(Document::Endpoints, opened.as_bytes()));
        flow(at + 2);
    }
    wait(&peer, "three are heard", || publisher_counts() == [1, 1, 1, 0]);
    // Everything is announced once more, in two parts: the second publisher is gone, and there is a fourth.
    let first = [publisher(1, "/a"), publisher(4, "/d")].join(",");
    let first = format!(r#"{{"all":true,"more":true,"opened":[{first}]}}"#);
    assert!(peer.document(Document::Endpoints, first.as_bytes()));
    flow(4);
    wait(&peer, "the fourth is heard", || publisher_counts()[3] == 1);
    assert_eq!(publisher_counts(), [1, 1, 1, 1]);
    let last = format!(r#"{{"opened":[{}]}}"#, publisher(3, "/c"));
    assert!(peer.document(Document::Endpoints, last.as_bytes()));
    // Its channel ends, like that of each publisher that is gone.
    let channel = subscribe_requests(&peer)[1].channel;
    assert!(peer.say(Lane::Bulk, &Item::Delivery { channel, subscription: 0, active: false }));
    wait(&peer, "the second one is gone", || publisher_counts() == [1, 0, 1, 1]);
}
