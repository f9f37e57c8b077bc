//! Rules for one host apply to every host that declares its name.

use super::*;

#[test]
fn rule_for_a_host_applies_before_its_name_is_known() {
    let rule =
        "[[network.rule]]\ntopic = \"/cmd\"\ndirection = \"in\"\nhost = \"evil\"\nallow = false\n";
    let (hosts, peer) = hosts("before-hello", rule);
    wait(&peer, "a session begins", || peer.sessions() == 1);
    let both = announce(&format!("{},{}", publisher(1, "/cmd"), publisher(2, "/free")));
    assert!(peer.document(Document::Endpoints, &both));
    wait(&peer, "it is refused", || peer.sessions() == 2);
    assert!(peer.greet("evil") && peer.document(Document::Endpoints, &both));
    let topics = || {
        let of_evil = |p: &&rnet::inspect::PublisherInfo| p.node == "@evil/evil";
        let found = hosts.domain(0).inspect();
        found.publishers.iter().filter(of_evil).map(|p| p.topic.clone()).collect::<Vec<_>>()
    };
    wait(&peer, "the allowed topic is visible", || topics() == ["/free"]);
    is_told(&peer, "Endpoints before Hello");
}

/// Two hosts declare one name, like a laptop and its clone, or a host that returns before its old link is
/// lost.
fn holds_for_both_that_say(name: &str) {
    let rule = |topic: &str, direction: &str| {
        format!(
            "[[network.rule]]\ntopic = {topic:?}\ndirection = {direction:?}\nhost = {name:?}\nallow = false\n"
        )
    };
    let config = rule("/cmd", "in") + &rule("/secret", "out");
    let (hosts, first) = hosts("one name", &config);
    let second = Peer::join(hosts.net(), Presence { host: HostId(667), term: 1 }, HostId(1));
    let node = hosts.node(0, "node");
    let _kept = ["/secret", "/open"].map(|topic| node.publisher::<[u8]>(topic).open().unwrap());
    let mut shown = vec![format!("@{name}/evil"), format!("@{name}-2/evil")];
    for peer in [&first, &second] {
        wait(peer, "a session begins", || peer.sessions() == 1);
        assert!(peer.greet(name));
        let both = announce(&format!("{},{}", publisher(1, "/cmd"), publisher(2, "/free")));
        assert!(peer.document(Document::Endpoints, &both));
        let announced = || peer.documents(Document::Endpoints).concat();
        wait(peer, "the allowed topic is announced", || announced().contains("/open"));
        assert!(!announced().contains("/secret"), "{name}: {}", announced());
    }
    let of_both = || {
        let found = hosts.domain(0).inspect().publishers.into_iter();
        let of_others = found.filter(|publisher| publisher.node.starts_with('@'));
        of_others.map(|publisher| (publisher.topic, publisher.node)).collect::<Vec<_>>()
    };
    // Each has announced the forbidden topic first.
    eventually("the allowed topics are visible", || {
        [&first, &second].into_iter().for_each(Peer::pump);
        of_both().iter().filter(|(topic, _)| topic == "/free").count() == 2
    });
    let (topics, mut nodes): (Vec<String>, Vec<String>) = of_both().into_iter().unzip();
    assert_eq!(topics, ["/free", "/free"], "{name}");
    nodes.sort();
    shown.sort();
    assert_eq!(nodes, shown, "each has its own display name");
    // A publisher that opens later is withheld as well.
    let _later = node.publisher::<[u8]>("/secret").open().unwrap();
    let _then = node.publisher::<[u8]>("/open/too").open().unwrap();
    for peer in [&first, &second] {
        let announced = || peer.documents(Document::Endpoints).concat();
        wait(peer, "a later topic is announced", || announced().contains("/open/too"));
        assert!(!announced().contains("/secret"), "{name}: {}", announced());
    }
}

#[test]
fn rule_for_a_host_applies_to_both_hosts_of_that_name() {
    holds_for_both_that_say("evil");
}

#[test]
fn rule_for_a_host_with_a_long_name_applies() {
    holds_for_both_that_say(&"e".repeat(60));
}
