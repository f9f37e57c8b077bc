//! A host that does what its certificate does not allow: by announcements, and by frames without them.

use rnet_keys::Right;

use super::*;
use crate::rights::ALL;

/// A host with all rights, and a hostile one with these.
fn with_rights(test: &str, rights: &[(Right, &str)]) -> (Hosts, Peer) {
    let hosts = Hosts::with_rights(test, &[ALL]);
    hosts.certificates.issue(EVIL, "evil", rights);
    let peer = Peer::join(hosts.net(), Presence { host: EVIL, term: 1 }, HostId(1));
    (hosts, peer)
}

/// The topics of its endpoints on the other host.
fn topics(hosts: &Hosts) -> Vec<String> {
    let found = hosts.domain(0).inspect();
    let publishers = found.publishers.into_iter().map(|one| (one.node, one.topic));
    let subscriptions = found.subscriptions.into_iter().map(|one| (one.node, one.topic));
    let of_evil = publishers.chain(subscriptions).filter(|(node, _)| node == "@evil/evil");
    of_evil.map(|(_, topic)| topic).collect()
}

/// Waits until the peer knows that it was refused for this reason.
#[track_caller]
fn gets_refusal(peer: &Peer, why: &str) {
    wait(peer, why, || peer.documents(Document::Refused).iter().any(|text| text.contains(why)));
}

fn subscription(id: u64, topic: &str) -> String {
    format!(
        r#"{{"id":{id},"node":"/evil","topic":{topic:?},"type":{{"kind":"raw"}},"qos":{{"subscriber":{{}}}}}}"#
    )
}

#[test]
fn endpoints_without_the_right_are_refused_and_reported_once() {
    let rights = [(Right::Publish, "/free"), (Right::Subscribe, "/open"), (Right::Call, "/plan")];
    let (hosts, peer) = with_rights("refused", &rights);
    let (mut problems, _node) = Problems::of(&hosts);
    let home = format!("/_rnet/state/h{:016x}/read", rnet::bridge::StateTopic::hash_host("host0"));
    let call = |service: &str, end: &str| format!("/_rnet/call{service}/{end}");
    let refused = [
        (publisher(1, "/cmd"), "publish /cmd"),
        (subscription(2, "/secret"), "subscribe to /secret"),
        (publisher(3, &call("/dig", "s00000001/request")), "call /dig"),
        (publisher(4, &call("/dig", "s00000001/control")), "call /dig"),
        (subscription(5, &call("/dig", "c00000001/reply")), "call /dig"),
        // Requests for a service that it may call, but not serve.
        (subscription(6, &call("/plan", "s00000002/request")), "serve /plan"),
        (publisher(7, &call("/plan", "c00000003/reply")), "serve /plan"),
        (publisher(8, &call("/wheels/authority", "s00000001/request")), "drive /wheels"),
        (
            subscription(9, &call("/wheels/authority", "s00000002/request")),
            "receive commands of /wheels",
        ),
        (publisher(10, "/_rnet/command/wheels/status"), "receive commands of /wheels"),
        (subscription(11, "/_rnet/command/wheels/log"), "subscribe to the status of /wheels"),
        (publisher(12, &call(&home, "s00000001/request")), "read state through"),
        (
            subscription(13, &call(&home, "s00000001/request")),
            "answer for the state of another host",
        ),
        (publisher(14, "/_rnet/trace/secret"), "publish traces of /secret"),
        (subscription(15, "/_rnet/trace/secret"), "subscribe to traces of /secret"),
        (publisher(16, "/log"), "publish /log"),
    ];
    let allowed = [
        publisher(21, "/free"),
        subscription(22, "/open"),
        publisher(23, &call("/plan", "s00000001/request")),
        subscription(24, &call("/plan", "c00000001/reply")),
    ];
    let all: Vec<&str> =
        refused.iter().map(|(one, _)| &**one).chain(allowed.iter().map(|one| &**one)).collect();
    introduce(&peer, 1, &all.join(","));
    wait(&peer, "the allowed ones are visible", || topics(&hosts).len() >= allowed.len());
    let mut expected = vec![
        "/free".to_owned(),
        call("/plan", "s00000001/request"),
        "/open".to_owned(),
        call("/plan", "c00000001/reply"),
    ];
    expected.sort();
    let mut found = topics(&hosts);
    found.sort();
    assert_eq!(found, expected);
    let mut last = Vec::new();
    for (_, words) in &refused {
        let text = format!("host evil may not {words}");
        wait(&peer, &text, || {
            let now = problems.now();
            last = if now.is_empty() { std::mem::take(&mut last) } else { now };
            last.iter().any(|problem| problem.starts_with(&text))
        });
    }
    let of_dig = last.iter().filter(|problem| problem.contains("call /dig")).count();
    assert_eq!(of_dig, 1, "one cause is reported once: {last:?}");
    // They are announced again, as after a cut: nothing is reported twice.
    assert!(peer.document(Document::Endpoints, &announce(&all.join(","))));
    let count = 2 * refused.len() as u64;
    wait(&peer, "all are counted", || {
        let mut status = None;
        while let Some(sample) = problems.0.try_recv().unwrap() {
            status = Some(LinkStatus::clone(&sample));
        }
        status.is_some_and(|status| status.peers[0].refused_endpoints == count)
    });
    let hint = "its certificate has no right publish for it; on the authority's machine, issue one with all its \
                rights: rnet keys add-host evil --publish /cmd ...";
    assert!(last.iter().any(|problem| problem.contains(hint)), "{last:?}");
}

#[test]
fn frames_for_what_was_not_granted_have_no_effect() {
    let rights = [(Right::Publish, "/free"), (Right::Subscribe, "/open")];
    let (hosts, peer) = with_rights("forged", &rights);
    let (mut problems, node) = Problems::of(&hosts);
    let subscriber = |topic| node.subscriber::<[u8]>(topic).reliable().keep_all().open().unwrap();
    let (mut cmd, mut free) = (subscriber("/cmd"), subscriber("/free"));
    let topics = ["/secret", "/open"];
    let mut publishers =
        topics.map(|topic| node.publisher::<[u8]>(topic).transient_local(1).open().unwrap());
    publishers.iter_mut().for_each(|one| one.send(b"kept").unwrap());
    let with_will = publisher(1, "/cmd").replacen("{", r#"{"will":true,"#, 1);
    introduce(&peer, 1, &format!("{with_will},{}", publisher(2, "/free")));
    wait(&peer, "it is requested", || subscribe_requests(&peer).len() == 1);
    let granted = subscribe_requests(&peer)[0];
    assert_eq!(granted.publisher, 2);
    // Everything that a publisher sends, for the channel before and the one after the only granted one.
    for channel in [granted.channel - 1, granted.channel + 1, 77] {
        let (sent_ns, meta) = (0, Meta::default());
        let fragment = Fragment {
            channel,
            seq: 1,
            sent_ns,
            meta,
            total: 4,
            offset: 0,
            bytes: b"x",
            compressed: false,
        };
        let items = [
            Item::Gap { channel, seq: 0, count: 0, cause: rnet::LossCause::Link },
            Item::Delivery { channel, subscription: 0, active: true },
            data(channel, 0, b"crash"),
            Item::Fragment(fragment),
            Item::Will { channel, message: Some(b"crash") },
            Item::Alive { channel },
        ];
        assert!(items.iter().all(|item| peer.say(Lane::Bulk, item)));
    }
    // It guesses the publishers of the other host.
    let found = hosts.domain(0).inspect().publishers;
    let id = |topic: &str| found.iter().find(|one| one.topic == topic).unwrap().id;
    for (channel, topic) in [(5, "/secret"), (6, "/open")] {
        let wanted = Subscribe {
            channel,
            publisher: id(topic),
            from: None,
            reliable: false,
            transient_local: 1,
            credit: 1 << 20,
            wills: true,
            confirms_end: false,
        };
        assert!(peer.say(Lane::Bulk, &Item::Subscribe(wanted)));
    }
    let got = |of: u32| peer.count(|item| matches!(item, Item::Data(data) if data.channel == of));
    wait(&peer, "the allowed topic arrives", || got(6) == 1);
    problems.wait(&peer, "host evil may not subscribe to /secret");
    publishers.iter_mut().for_each(|one| one.send(b"live").unwrap());
    wait(&peer, "the allowed topic still arrives", || got(6) == 2);
    assert_eq!(got(5), 0);
    // Its granted channel works: the session goes on.
    let channel = granted.channel;
    let begins = Item::Gap { channel, seq: 0, count: 0, cause: rnet::LossCause::Link };
    assert!(peer.say(Lane::Bulk, &begins));
    assert!(peer.say(Lane::Bulk, &Item::Delivery { channel, subscription: 0, active: true }));
    wait(&peer, "it is admitted", || free.publisher_count() == 1);
    assert!(peer.say(Lane::Bulk, &data(channel, 0, b"fine")));
    wait(&peer, "its message arrives", || {
        free.try_recv().unwrap().is_some_and(|sample| *sample == *b"fine")
    });
    assert_eq!((cmd.publisher_count(), cmd.try_recv().unwrap().is_none()), (0, true));
    assert_eq!(peer.sessions(), 1);
}

#[test]
fn host_whose_name_is_not_that_of_its_certificate_is_refused() {
    let (hosts, peer) = with_rights("other-name", ALL);
    let (mut problems, _node) = Problems::of(&hosts);
    wait(&peer, "a session begins", || peer.sessions() == 1);
    assert!(peer.greet("host1"));
    assert!(peer.document(Document::Endpoints, &announce(&publisher(1, "/free"))));
    problems.wait(&peer, "host host1 is refused: it says that it is host host1, but its certificate is that of host evil");
    wait(&peer, "it is refused", || peer.sessions() == 2);
    gets_refusal(&peer, "but its certificate is that of host evil: there, set host = ");
    assert!(topics(&hosts).is_empty());
    // With its own name it is welcome.
    assert!(peer.greet("evil"));
    assert!(peer.document(Document::Endpoints, &announce(&publisher(1, "/free"))));
    wait(&peer, "its topic is visible", || topics(&hosts) == ["/free"]);
}

#[test]
fn host_without_a_certificate_is_refused_by_one_that_has_one() {
    let hosts = Hosts::with_rights("no-certificate", &[ALL]);
    let peer = Peer::join(hosts.net(), Presence { host: EVIL, term: 1 }, HostId(1));
    introduce(&peer, 1, &publisher(1, "/free"));
    gets_refusal(&peer, "it has no certificate: copy a keys file to it");
    assert!(topics(&hosts).is_empty());
}
