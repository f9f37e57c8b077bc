//! Well-behaved links of an earlier and of a later release: messages cross both ways without a problem.

use std::time::Duration;

use super::reports::flows;
use super::*;

/// The publisher and the subscription there, as their link announces them.
const THERE: [u64; 2] = [7, 8];
const CHANNEL: u32 = 3;
const COUNT: u64 = 100;
/// Longer than the silence after which [`hosts`] are lost here.
const SILENCE: Duration = Duration::from_millis(1500);
const LOST_SOON: &str = "[network]\nlost_after_ms = 500";

/// A subscription, as a link announces it.
fn subscriber(id: u64, topic: &str) -> String {
    publisher(id, topic).replace(r#""publisher":"#, r#""subscriber":"#)
}

/// The greeting of a link, its host, and its further behavior.
struct PeerBehavior<'a> {
    hello: &'a str,
    nodes: Option<&'a str>,
    endpoints: &'a str,
    /// The release that the status must show.
    release: &'a str,
    /// Nodes that must be visible: those of its endpoints, with or without a report of nodes.
    remote: &'a [&'a str],
    may_be_silent: bool,
}

/// A whole session with a link that behaves like this.
fn talk((hosts, peer): &(Hosts, Peer), said: &PeerBehavior<'_>) {
    let node = hosts.node(0, "both");
    let mut statuses =
        node.subscriber::<LinkStatus>("/_rnet/link").transient_local().open().unwrap();
    let mut hears = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
    let mut says = node.publisher::<[u8]>("/u").reliable(rnet::OnFull::Refuse).open().unwrap();

    wait(peer, "a session begins", || peer.sessions() == 1);
    assert!(peer.document(Document::Hello, said.hello.as_bytes()));
    assert!(said.nodes.is_none_or(|nodes| peer.document(Document::Nodes, nodes.as_bytes())));
    assert!(peer.document(Document::Endpoints, said.endpoints.as_bytes()));

    // The peer owns a publisher.
    let channel = flows(peer, &mut hears);
    let mut hear = |seqs: std::ops::Range<u64>| {
        for seq in seqs.clone() {
            wait(peer, "the stream has capacity", || {
                peer.say(Lane::Bulk, &data(channel, seq, &seq.to_le_bytes()))
            });
        }
        for seq in seqs {
            let mut received = None;
            wait(peer, "a message of it", || {
                received = hears.try_recv().unwrap().map(|sample| sample.to_vec());
                received.is_some()
            });
            assert_eq!(received.as_deref(), Some(&seq.to_le_bytes()[..]));
        }
    };
    hear(0..COUNT);

    // The peer requests a publisher of this host.
    let mut publisher = None;
    wait(peer, "the publisher here is announced to it", || {
        publisher = peer.documents(Document::Endpoints).iter().find_map(|text| {
            let all: serde_json::Value = serde_json::from_str(text).unwrap();
            let mut opened = all["opened"].as_array()?.iter();
            opened.find(|one| one["topic"] == "/u")?["id"].as_u64()
        });
        publisher.is_some()
    });
    let want = Subscribe {
        channel: CHANNEL,
        publisher: publisher.unwrap(),
        from: None,
        reliable: true,
        transient_local: 0,
        credit: 1 << 20,
        wills: false,
        confirms_end: false,
    };
    assert!(peer.say(Lane::Bulk, &Item::Subscribe(want)));
    let flowing = |subscription| Item::Delivery { channel: CHANNEL, subscription, active: true };
    wait(peer, "it flows", || peer.count(|item| *item == flowing(0)) == 1);
    assert!(peer.say(Lane::Bulk, &flowing(THERE[1])));
    wait(peer, "it is counted", || says.subscriber_count() == 1);
    (0..COUNT).for_each(|number| says.send(&number.to_le_bytes()).unwrap());
    let is_ours = |item: &Item<'_>| match item {
        Item::Data(data) if data.channel == CHANNEL => {
            assert_eq!(data.payload, data.seq.to_le_bytes());
            true
        }
        _ => false,
    };
    wait(peer, "all come", || peer.count(is_ours) as u64 == COUNT);
    assert!(peer.say(Lane::Bulk, &Item::Credit { channel: CHANNEL, read: 1 << 10 }));

    if said.may_be_silent {
        std::thread::sleep(SILENCE); // sleep: the silence that the link must tolerate
        hear(COUNT..2 * COUNT);
    }
    let mut domain = hosts.domain(0).domain();
    wait(peer, "its nodes are known", || {
        let remote = domain.snapshot().unwrap().remote;
        remote.iter().map(|node| node.node.to_string()).eq(said.remote.iter().copied())
    });
    let mut last = None;
    wait(peer, "it is connected", || {
        while let Some(status) = statuses.try_recv().unwrap() {
            assert_eq!(status.problems, Vec::<String>::new());
            last = status.peers.first().cloned();
        }
        last.as_ref().is_some_and(|of_it| of_it.state() == State::Connected)
    });
    let last = last.unwrap();
    assert_eq!((last.version.as_str(), last.text.as_str()), (said.release, ""));
    assert_eq!(hears.lost().total(), 0);
    assert_eq!((peer.sessions(), peer.documents(Document::Refused).len()), (1, 0));
}

#[test]
fn link_of_an_earlier_release_works_and_may_be_silent() {
    let all = [publisher(THERE[0], "/t"), subscriber(THERE[1], "/u")].join(",");
    let said = PeerBehavior {
        hello: r#"{"release":"0.0.1","host":"old","domain":"","wall_offset_ns":0}"#,
        nodes: None,
        endpoints: &format!(r#"{{"all":true,"opened":[{all}],"closed":[],"lost":[]}}"#),
        release: "0.0.1",
        remote: &["@old/evil"],
        may_be_silent: true,
    };
    talk(&hosts("earlier", LOST_SOON), &said);
}

#[test]
fn link_of_a_later_release_works_and_unknown_items_are_skipped() {
    let both = hosts("later", "");
    both.1.use_later_version();
    let later = r#"{"later":[1,{"a":null}],"#;
    let all = [publisher(THERE[0], "/t"), subscriber(THERE[1], "/u")].join(",");
    let all = all.replace(r#"{"id""#, &format!(r#"{later}"id""#));
    let all = all.replace(r#"{"reliability""#, &format!(r#"{later}"reliability""#));
    let said = PeerBehavior {
        hello: &format!(r#"{later}"release":"9.0.0","host":"new","pulse_ms":100}}"#),
        nodes: Some(&format!(r#"{later}"all":true,"joined":[{later}"name":"/idle"}}]}}"#)),
        endpoints: &format!(r#"{later}"all":true,"opened":[{all}],"gone":[],"withheld":0}}"#),
        release: "9.0.0",
        remote: &["@new/evil", "@new/idle"],
        may_be_silent: false,
    };
    talk(&both, &said);
}
