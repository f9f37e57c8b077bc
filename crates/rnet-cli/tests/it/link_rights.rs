//! What `rnet link status`, `rnet doctor`, `rnet status` and `rnet metrics` say about keys and rights.

use crate::link::{install, settings};
use crate::util;

use rnet::Publisher;
use rnet::msgs::link_status::{Cause, Certificate, Direction, Peer, State, Topic};
use rnet::msgs::{LinkStatus, Timestamp, timestamp_now};
use util::{CommandOutput, TestEnv};

const DAY_S: i64 = 86_400;

/// Ten minutes more than these days from now, so that a slow test counts no day less.
fn certificate(days: i64) -> Option<Certificate> {
    let seconds = timestamp_now().seconds + days * DAY_S + 600;
    let expires = Some(Timestamp { seconds, nanos: 0 });
    Some(Certificate { serial: "1f".into(), expires })
}

/// A link with keys that expire after these days, its own and those of two others.
fn status(own: i64, others: [i64; 2]) -> LinkStatus {
    let peer = |host: &str, days| Peer {
        host: host.into(),
        version: rnet::VERSION.into(),
        state: State::Connected.into(),
        certificate: certificate(days),
        ..Peer::default()
    };
    // A status that is not considered silent, however slow this machine is.
    let timestamp = Some(Timestamp { seconds: timestamp_now().seconds + 3600, nanos: 0 });
    LinkStatus {
        timestamp,
        host: "base".into(),
        certificate: certificate(own),
        authority: "0123456789abcdef".into(),
        peers: vec![peer("arm", others[0]), peer("eye", others[1])],
        ..LinkStatus::default()
    }
}

fn says(env: &TestEnv, status: &LinkStatus) -> (rnet::Node, Publisher<LinkStatus>) {
    let node = env.node("_rnet/link_1");
    let mut publisher = node.publisher("/_rnet/link").transient_local(1).open().unwrap();
    publisher.send(status).unwrap();
    (node, publisher)
}

fn doctor(env: &TestEnv) -> String {
    install(env, &settings("peers", "robot.toml:2"));
    let CommandOutput { stdout, .. } = rnet!(env, "doctor");
    stdout
}

#[test]
fn expiry_is_announced_thirty_days_before() {
    let env = TestEnv::new();
    let _said = says(&env, &status(12, [29, 31]));
    let (own, arm) = (
        "the certificate of this host (base) expires in 12 days",
        "of host arm expires in 29 days",
    );
    let text = rnet!(env, "link", "status").ok();
    assert!(text.contains("secured by keys of authority 0123456789abcdef"), "{text}");
    assert!(text.contains(own) && text.contains(arm), "{text}");
    assert!(!text.contains("host eye expires") && !text.contains("neither encrypted"), "{text}");
    let text = doctor(&env);
    assert!(text.contains(own) && text.contains(arm) && !text.contains("eye expires"), "{text}");
    assert!(text.contains("run rnet keys add-host with the host's name"), "{text}");
    // A probe must not restart a robot because of it.
    rnet!(env, "status", "--over", "0.1").ok();
    let text = rnet!(env, "metrics", "--over", "0.1").ok();
    let days = |series: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        let seconds: f64 = line.unwrap_or_else(|| panic!("{series}: {text}")).parse().unwrap();
        (seconds / DAY_S as f64).floor()
    };
    let host = |name| {
        format!("rnet_host_certificate_expiry_seconds{{domain=\"clitest\",host=\"{name}\"}}")
    };
    let own = r#"rnet_link_certificate_expiry_seconds{domain="clitest"}"#;
    assert_eq!((days(own), days(&host("arm")), days(&host("eye"))), (12.0, 29.0, 31.0));
    assert!(text.contains("rnet_link_insecure{domain=\"clitest\"} 0\n"), "{text}");
}

#[test]
fn expired_certificate_is_a_problem() {
    let env = TestEnv::new();
    let _said = says(&env, &status(-1, [400, 400]));
    let what = "the certificate of this host (base) has expired";
    assert!(rnet!(env, "link", "status").ok().contains(what));
    let ran = rnet!(env, "status", "--over", "0.1");
    assert!(ran.stdout.contains(&format!("PROBLEM  {what}")), "{ran:?}");
    assert_eq!(ran.code, Some(1));
}

#[test]
fn missing_rights_are_listed_once() {
    let env = TestEnv::new();
    let mut status = status(400, [400, 400]);
    let missing = |topic: &str, text: &str| Topic {
        name: topic.into(),
        direction: Direction::In.into(),
        held_back: Cause::Rights.into(),
        held_back_text: text.into(),
        ..Topic::default()
    };
    let why = "host arm may not publish /cmd_vel: its certificate has no right publish for it";
    let own = |name: &str| format!("this host (base) may not subscribe to {name}");
    status.peers[0].topics = vec![missing("/cmd_vel", why), missing("/scan", &own("/scan"))];
    status.peers[0].refused_endpoints = 3;
    status.peers[1].topics =
        ["/scan", "/a", "/b", "/c", "/d"].map(|one| missing(one, &own(one))).into();
    let _said = says(&env, &status);
    let text = rnet!(env, "link", "status").ok();
    assert_eq!(text.matches(why).count(), 1, "{text}");
    assert_eq!(text.matches(&own("/scan")).count(), 1, "{text}");
    let row = text.lines().find(|line| line.contains("/cmd_vel")).unwrap();
    assert!(row.trim_end().ends_with("rights"), "{text}");
    let text = doctor(&env);
    assert!(text.contains(why), "{text}");
    assert!(text.contains("2 more rights missing: rnet link status --all lists them"), "{text}");
    rnet!(env, "status", "--over", "0.1").ok();
    let text = rnet!(env, "metrics", "--over", "0.1").ok();
    let refused = "rnet_host_refused_endpoints_total{domain=\"clitest\",host=\"arm\"} 3\n";
    assert!(text.contains(refused), "{text}");
}
