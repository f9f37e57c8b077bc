//! `rnet metrics`.

mod util;

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use util::Place;

const LONG: Option<Duration> = Some(Duration::from_secs(30));

/// A topic of which three messages were sent and received.
fn with_robot(test: impl FnOnce(&Place)) {
    let place = Place::new();
    let (imu, control) = (place.node("imu"), place.node("control"));
    let mut angles = control.subscriber::<[u8]>("/angles").unwrap();
    let mut publisher = imu.publisher::<[u8]>("/angles").unwrap();
    publisher.wait_for_subscribers(1, LONG).unwrap();
    for _ in 0..3 {
        publisher.send(b"12345678").unwrap();
        angles.recv(LONG).unwrap();
    }
    test(&place);
}

fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let line = line.unwrap_or_else(|| panic!("{series} is missing:\n{text}"));
    line.parse().unwrap()
}

#[test]
fn the_counters_are_those_of_the_topics() {
    with_robot(|place| {
        let text = rnet!(place, "metrics", "--over", "0.1").ok();
        let topic = r#"{domain="clitest",topic="/angles"}"#;
        assert_eq!(value(&text, &format!("rnet_topic_sent_messages_total{topic}")), 3.0);
        assert_eq!(value(&text, &format!("rnet_topic_sent_bytes_total{topic}")), 24.0);
        assert_eq!(value(&text, &format!("rnet_topic_received_messages_total{topic}")), 3.0);
        let lost =
            r#"rnet_topic_lost_messages_total{domain="clitest",topic="/angles",cause="overrun"}"#;
        assert_eq!(value(&text, lost), 0.0);
        assert_eq!(value(&text, &format!("rnet_topic_latency_seconds_count{topic}")), 3.0);
        let sum = value(&text, &format!("rnet_topic_latency_seconds_sum{topic}"));
        assert!(sum > 0.0 && sum < 90.0, "{text}");
        let all =
            r#"rnet_topic_latency_seconds_bucket{domain="clitest",topic="/angles",le="+Inf"}"#;
        assert_eq!(value(&text, all), 3.0);
        assert!(text.contains("rnet_node_memory_bytes{domain=\"clitest\",node=\"/imu\""), "{text}");
    });
}

#[test]
fn the_text_keeps_the_rules_of_openmetrics() {
    with_robot(|place| {
        let text = rnet!(place, "metrics", "--over", "0.1").ok();
        assert!(text.ends_with("# EOF\n"), "{text}");
        let mut families = BTreeSet::new();
        let mut family = String::new();
        for line in text.lines().filter(|line| *line != "# EOF") {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                family = rest.split(' ').next().unwrap().to_owned();
                // Each once, and its samples together.
                assert!(families.insert(family.clone()), "{family} comes twice");
            } else if let Some(rest) = line.strip_prefix("# UNIT ") {
                let (name, unit) = rest.split_once(' ').unwrap();
                assert!(name == family && name.ends_with(&format!("_{unit}")), "{line}");
            } else if let Some(rest) = line.strip_prefix("# HELP ") {
                assert!(rest.starts_with(&format!("{family} ")), "{line}");
            } else {
                assert!(line.starts_with(&family), "{line} after {family}");
            }
        }
        assert!(families.len() > 15, "{families:?}");
        // Buckets hold what the smaller ones hold.
        let bucket = |line: &&str| line.starts_with("rnet_topic_latency_seconds_bucket");
        let counts = text
            .lines()
            .filter(bucket)
            .map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap());
        assert!(counts.is_sorted(), "{text}");
    });
}

/// The names of metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
    text.match_indices("rnet_")
        .map(|(at, _)| {
            let rest = &text[at..];
            &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]
        })
        .collect()
}

#[test]
fn the_grafana_dashboard_asks_for_what_there_is() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/grafana/robot-net.json");
    let dashboard = &std::fs::read_to_string(path).unwrap();
    let parsed: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    assert_eq!(parsed["title"], "robot-net");
    with_robot(|place| {
        let text = rnet!(place, "metrics", "--over", "0.1", "--format", "prometheus").ok();
        let (asked, there) = (names(dashboard), names(&text));
        let missing: Vec<_> = asked.difference(&there).collect();
        assert!(missing.is_empty() && asked.len() > 8, "{missing:?}\n{text}");
    });
}

#[test]
#[ignore = "needs promtool, which `make test-metrics` installs and runs this with"]
fn promtool_finds_no_fault() {
    with_robot(|place| {
        let text = rnet!(place, "metrics", "--over", "0.1", "--format", "prometheus").ok();
        let mut command = Command::new("promtool");
        command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let said = child.wait_with_output().unwrap();
        assert!(said.status.success(), "{}\n{text}", String::from_utf8_lossy(&said.stderr));
    });
}
