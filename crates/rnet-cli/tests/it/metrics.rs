//! `rnet metrics`.

use crate::util;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rnet::msgs::link_status::{Lost, Peer, State, Topic};
use rnet::msgs::{LinkStatus, duration_from_ns, timestamp_now};
use util::TestEnv;

const LONG: Duration = Duration::from_secs(30);

/// A topic on which three messages were sent and received.
fn with_robot(test: impl FnOnce(&TestEnv)) {
    let env = TestEnv::new();
    let (imu, control) = (env.node("imu"), env.node("control"));
    let mut angles = control.subscriber::<[u8]>("/angles").open().unwrap();
    let mut publisher = imu.publisher::<[u8]>("/angles").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    for _ in 0..3 {
        publisher.send(b"12345678").unwrap();
        angles.recv_timeout(LONG).unwrap();
    }
    test(&env);
}

fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let line = line.unwrap_or_else(|| panic!("{series} is missing:\n{text}"));
    line.parse().unwrap()
}

#[test]
fn the_counters_are_those_of_the_topics() {
    with_robot(|env| {
        let text = rnet!(env, "metrics", "--over", "0.1").ok();
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
fn text_follows_the_openmetrics_rules() {
    with_robot(|env| {
        let text = rnet!(env, "metrics", "--over", "0.1").ok();
        assert!(text.ends_with("# EOF\n"), "{text}");
        let mut families = BTreeSet::new();
        let mut family = String::new();
        for line in text.lines().filter(|line| *line != "# EOF") {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                family = rest.split(' ').next().unwrap().to_owned();
                // Each family once, with its samples together.
                assert!(families.insert(family.clone()), "{family} appears twice");
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
        // Each bucket includes the smaller ones.
        let bucket = |line: &&str| line.starts_with("rnet_topic_latency_seconds_bucket");
        let counts = text
            .lines()
            .filter(bucket)
            .map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap());
        assert!(counts.is_sorted(), "{text}");
    });
}

#[test]
fn a_host_whose_link_was_started_again_has_one_series() {
    let env = TestEnv::new();
    let link = env.node("_rnet/link_1");
    let lost = Lost { link: 5, ..Lost::default() };
    let image = Topic { name: "/image".into(), lost: Some(lost), ..Topic::default() };
    let before = Peer { host: "laptop".into(), topics: vec![image], ..Peer::default() };
    let before = Peer { state: State::Lost.into(), ..before };
    let now = Peer {
        state: State::Connected.into(),
        round_trip: Some(duration_from_ns(1_200_000)),
        ..before.clone()
    };
    let mut timestamp = timestamp_now();
    // It must not be considered silent, however slow this machine is.
    timestamp.seconds += 3600;
    let peers = vec![before.clone(), now, before];
    let status = LinkStatus { timestamp: Some(timestamp), peers, ..LinkStatus::default() };
    let mut said = link.publisher::<LinkStatus>("/_rnet/link").transient_local(1).open().unwrap();
    said.send(&status).unwrap();
    let text = rnet!(env, "metrics", "--over", "0.1").ok();
    let of_laptop = |name: &str| -> Vec<&str> {
        let lines = text.lines().filter(|line| line.starts_with(name) && line.contains("laptop"));
        lines.map(|line| line.rsplit_once(' ').unwrap().1).collect()
    };
    assert_eq!(of_laptop("rnet_host_connected{"), ["1"], "{text}");
    assert_eq!(of_laptop("rnet_host_round_trip_seconds{"), ["0.0012"], "{text}");
    assert_eq!(of_laptop("rnet_host_lost_messages_total{"), ["5"], "{text}");
}

/// The metric names in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
    text.match_indices("rnet_")
        .map(|(at, _)| {
            let rest = &text[at..];
            &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]
        })
        .collect()
}

fn grafana_dashboard() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/grafana/robot-net.json");
    std::fs::read_to_string(path).unwrap()
}

fn grafana_queries() -> Vec<String> {
    let dashboard: serde_json::Value = serde_json::from_str(&grafana_dashboard()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn grafana_dashboard_queries_existing_metrics() {
    let dashboard = &grafana_dashboard();
    let parsed: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    assert_eq!(parsed["title"], "robot-net");
    with_robot(|env| {
        let text = rnet!(env, "metrics", "--over", "0.1", "--format", "prometheus").ok();
        let (asked, there) = (names(dashboard), names(&text));
        let missing: Vec<_> = asked.difference(&there).collect();
        assert!(missing.is_empty() && asked.len() > 8, "{missing:?}\n{text}");
        // A missing value must not appear as 0.
        assert!(grafana_queries().iter().all(|query| !query.contains("vector(")));
    });
}

/// A program that is killed at the end of the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The JSON answer of a server on this host; `None` if it does not answer.
fn get(addr: &str, path: &str) -> Option<serde_json::Value> {
    let mut stream = TcpStream::connect(addr).ok()?;
    stream.set_read_timeout(Some(LONG)).ok()?;
    // With HTTP/1.0 the answer is not chunked.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {addr}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}

#[test]
#[ignore = "needs prometheus, which `make test-metrics` installs and runs this with"]
fn a_real_prometheus_scrapes_the_dashboard() {
    with_robot(|env| {
        let mut command = env.command();
        let mut dashboard =
            Program(command.args(["--json", "dashboard", "--port", "0"]).spawn().unwrap());
        let mut said = String::new();
        BufReader::new(dashboard.0.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let url = said["url"].as_str().unwrap();
        let target = url.strip_prefix("http://").unwrap().trim_end_matches('/');
        let config = env.dir.join("prometheus.yml");
        let text = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n- job_name: rnet\n  \
             static_configs:\n  - targets: ['{target}']\n"
        );
        std::fs::write(&config, text).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = free.local_addr().unwrap().to_string();
        drop(free);
        let mut command = Command::new("prometheus");
        command.arg(format!("--web.listen-address={addr}"));
        command.arg(format!("--config.file={}", config.display()));
        command.arg(format!("--storage.tsdb.path={}", env.dir.join("tsdb").display()));
        let log = std::fs::File::create(env.dir.join("prometheus.log")).unwrap();
        let _prometheus = Program(command.stderr(log).spawn().unwrap());
        let begun = Instant::now();
        for (query, wanted) in [
            ("up", "1"),
            ("rnet_topic_sent_messages_total%7Btopic%3D%22%2Fangles%22%7D", "3"),
            ("rnet_topic_latency_seconds_count%7Btopic%3D%22%2Fangles%22%7D", "3"),
            ("rnet_node_up%7Bnode%3D%22%2Fimu%22%7D", "1"),
        ] {
            let path = format!("/api/v1/query?query={query}");
            loop {
                let answer = get(&addr, &path).unwrap_or_default();
                if answer["data"]["result"][0]["value"][1] == wanted {
                    break;
                }
                let log = std::fs::read_to_string(env.dir.join("prometheus.log")).unwrap();
                assert!(begun.elapsed() < LONG * 3, "{query}: {answer}\n{log}");
                std::thread::sleep(Duration::from_millis(100)); // sleep: polling interval
            }
        }
        // Prometheus accepts the Grafana dashboard's queries. Without scraped data they do not report a
        // healthy robot.
        for query in grafana_queries() {
            let query = query.replace("$__rate_interval", "1m");
            let ask = |domain: &str| {
                let encoded = query.replace("$domain", domain);
                let encoded = encoded.bytes().map(|byte| format!("%{byte:02x}"));
                get(&addr, &format!("/api/v1/query?query={}", encoded.collect::<String>())).unwrap()
            };
            let (ours, other) = (ask("clitest"), ask("elsewhere"));
            assert_eq!(
                (&ours["status"], &other["status"]),
                (&"success".into(), &"success".into()),
                "{query}: {ours}"
            );
            assert_eq!(other["data"]["result"], serde_json::json!([]), "{query}");
            let is_shown = ours["data"]["result"][0]["value"][1].is_string();
            assert!(is_shown || !query.contains("rnet_series_left_out"), "{query}: {ours}");
        }
    });
}

#[test]
#[ignore = "needs promtool, which `make test-metrics` installs and runs this with"]
fn promtool_reports_no_errors() {
    with_robot(|env| {
        let text = rnet!(env, "metrics", "--over", "0.1", "--format", "prometheus").ok();
        let mut command = Command::new("promtool");
        command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let said = child.wait_with_output().unwrap();
        assert!(said.status.success(), "{}\n{text}", String::from_utf8_lossy(&said.stderr));
    });
}
