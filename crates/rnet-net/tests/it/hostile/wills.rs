//! Last wills that another link invents.

use rnet::LossCause;

use super::*;

fn with_will(id: u64, topic: &str) -> String {
    publisher(id, topic).replacen('{', r#"{"will":true,"#, 1)
}

#[test]
fn invalid_wills_are_refused_by_name_without_growth() {
    let (hosts, peer) = hosts("wills", "");
    let (mut problems, _looks) = Problems::of(&hosts);
    let node = hosts.node(0, "hears");
    let mut hears = node.subscriber::<[u8]>("/t").open().unwrap();
    let _other = node.subscriber::<[u8]>("/without").open().unwrap();
    introduce(&peer, 1, &format!("{},{}", with_will(7, "/t"), publisher(8, "/without")));
    wait(&peer, "both are requested", || subscribe_requests(&peer).len() == 2);
    let of =
        |id: u64| subscribe_requests(&peer).into_iter().find(|want| want.publisher == id).unwrap();
    let (channel, without) = (of(7).channel, of(8).channel);
    assert_eq!((of(7).wills, of(8).wills), (true, false));
    let say = |channel, message| {
        let will = Item::Will { channel, message };
        wait(&peer, "the stream has capacity", || peer.say(Lane::Bulk, &will));
    };
    say(channel, Some(b"gone"));
    peer.say(Lane::Bulk, &Item::Gap { channel, seq: 0, count: 0, cause: LossCause::Link });
    peer.say(Lane::Bulk, &Item::Delivery { channel, subscription: 0, active: true });
    wait(&peer, "it is admitted", || hears.publisher_count() == 1);
    // None of these replaces the first.
    let long = vec![0; 4097];
    say(channel, Some(&long));
    problems.wait(&peer, "4097");
    say(without, Some(b"gone"));
    problems.wait(&peer, "opened without a last will");
    for channel in 0..10_000 {
        say(1000 + channel, Some(&long[..4096]));
    }
    peer.say(Lane::Bulk, &data(channel, 0, b"0"));
    wait(&peer, "all of it was read", || hears.try_recv().unwrap().is_some());
    assert_eq!(peer.sessions(), 1, "items without a channel are ignored");
    assert!(peer.document(Document::Endpoints, br#"{"lost":[7]}"#));
    peer.say(Lane::Bulk, &Item::Delivery { channel, subscription: 0, active: false });
    let mut will = None;
    wait(&peer, "its will is read", || {
        let sample = hears.try_recv().unwrap();
        will = sample.map(|sample| (sample.to_vec(), sample.is_last_will()));
        will.is_some()
    });
    assert_eq!(will, Some((b"gone".to_vec(), true)));
    assert!(matches!(hears.recv_timeout(LONG), Err(Error::PeerLost { .. })));
}

#[test]
fn flood_of_wills_is_accepted_or_ends_the_session() {
    let (hosts, peer) = hosts("many_wills", "");
    let node = hosts.node(0, "hears");
    let _hears = node.subscriber::<[u8]>("/t").open().unwrap();
    introduce(&peer, 1, &publisher(7, "/t"));
    wait(&peer, "it is requested", || subscribe_requests(&peer).len() == 1);
    let channel = subscribe_requests(&peer)[0].channel;
    // Each is refused, because no will was announced.
    for _ in 0..10_000 {
        let will = Item::Will { channel, message: Some(&[0; 4096]) };
        if peer.sessions() == 1 && !peer.say(Lane::Bulk, &will) {
            std::thread::yield_now();
        }
    }
    let topic = hosts.node(0, "other").publisher::<[u8]>("/other").open().unwrap();
    assert!(topic.id() > 0, "the host still works");
}

/// Like a link of an earlier release, which does not know wills.
#[test]
fn link_without_will_support_gets_a_message() {
    let (hosts, peer) = hosts("old", "");
    let mut child = hosts.child(0, "talker");
    introduce(&peer, 1, "");
    let known = || {
        let of = r#""topic":"/t""#;
        peer.documents(Document::Endpoints).into_iter().find(|text| text.contains(of))
    };
    wait(&peer, "it is announced", || known().is_some());
    let text = known().unwrap();
    assert!(text.contains(r#""will":true"#), "{text}");
    let announced: serde_json::Value = serde_json::from_str(&text).unwrap();
    let opened = announced["opened"].as_array().unwrap();
    let id = opened.iter().find(|one| one["topic"] == "/t").unwrap()["id"].as_u64().unwrap();
    let want = Subscribe {
        channel: 1,
        publisher: id,
        from: None,
        reliable: false,
        transient_local: 0,
        credit: 1 << 20,
        wills: false,
        confirms_end: false,
    };
    peer.say(Lane::Bulk, &Item::Subscribe(want));
    let flows = |item: &Item<'_>| matches!(item, Item::Delivery { active: true, .. });
    wait(&peer, "it flows", || peer.count(flows) == 1);
    child.kill();
    let will = |item: &Item<'_>| matches!(item, Item::Data(data) if data.payload == b"gone");
    wait(&peer, "the will comes as a message", || peer.count(will) == 1);
    assert_eq!(peer.count(|item| matches!(item, Item::Will { .. })), 0);
}

/// The role of its child.
pub fn talk() {
    let node = common::Net::of_parent().node("talker");
    let _publisher = node.publisher::<[u8]>("/t").last_will(&b"gone"[..]).open().unwrap();
    for _ in common::orders() {}
}
