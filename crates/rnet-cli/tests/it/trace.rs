//! `rnet trace`.

use crate::util;

use std::sync::mpsc;
use std::time::Duration;

use rnet::bridge::{BridgePublisher, BridgePublisherBuilder};
use rnet::trace::TraceRecord;
use rnet::{Meta, Node, Origin, Proxy, Publisher, now_ns};
use util::{BackgroundPublisher, DOMAIN, TestEnv};

const LONG: Duration = Duration::from_secs(30);

/// A sensor at about 1 kHz, an estimator that answers in its callback, and an actuator.
fn with_robot(test: impl FnOnce(&TestEnv)) {
    let env = TestEnv::new();
    let (sensor, estimator, actuator) =
        (env.node("sensor"), env.node("estimator"), env.node("actuator"));
    let mut estimates: Publisher<[u8]> = estimator.publisher("/estimate").open().unwrap();
    let (tell, receiver) = mpsc::channel();
    let _moves = actuator.subscriber::<[u8]>("/estimate").open().unwrap().on(move |_| {
        let _ = tell.send(());
    });
    estimates.wait_for_subscribers_timeout(1, LONG).unwrap();
    let _estimates = estimator.subscriber::<[u8]>("/imu").open().unwrap().on(move |imu| {
        estimates.send(&imu).unwrap();
    });
    let imu: Publisher<[u8]> = sensor.publisher("/imu").open().unwrap();
    imu.wait_for_subscribers_timeout(1, LONG).unwrap();
    let pump = BackgroundPublisher::start(imu, Box::from(*b"12345678"));
    receiver.recv_timeout(LONG).unwrap();
    test(&env);
    drop(pump);
}

#[test]
fn an_edge_is_shown_stage_by_stage() {
    with_robot(|env| {
        let text = rnet!(env, "trace", "/imu", "--for", "1").ok();
        assert!(text.starts_with("/imu: /sensor -> /estimator, "), "{text}");
        for stage in ["dispatch", "callback", "all"] {
            assert!(text.lines().any(|line| line.starts_with(stage)), "{text}");
        }
        let document = rnet!(env, "trace", "/imu", "/estimate", "--for", "1", "--json").json();
        let edges = document["edges"].as_array().unwrap();
        let ends = |n: usize| ["topic", "publisher", "subscriber"].map(|end| &edges[n][end]);
        assert_eq!(ends(0), ["/estimate", "/estimator", "/actuator"]);
        assert_eq!(ends(1), ["/imu", "/sensor", "/estimator"]);
        for edge in edges {
            let traced = edge["traced"].as_u64().unwrap();
            assert!(traced > 0, "{edge}");
            assert_eq!(edge["stages"]["callback"]["count"], traced);
            assert_eq!(edge["total"]["count"], traced);
            let longest = |times: &serde_json::Value| times["max_us"].as_f64().unwrap();
            assert!(longest(&edge["total"]) >= longest(&edge["stages"]["callback"]), "{edge}");
        }
    });
}

#[test]
fn a_chain_is_measured_against_its_budget() {
    with_robot(|env| {
        let chain = ["trace", "--chain", "/imu,/estimate", "--for", "1", "--budget-ms"];
        let generous = [&chain[..], &["60000", "--json"]].concat();
        let document = env.run(&generous).json();
        let found = &document["chain"];
        let count = found["total"]["count"].as_u64().unwrap();
        assert!(count > 0, "{document}");
        assert_eq!(
            (&found["over_budget"], &found["hops"][1]["topic"]),
            (&0.into(), &"/estimate".into())
        );
        // The estimate is sent in the callback, which cannot have ended before.
        assert_eq!(found["hops"][0]["work"]["count"], count);
        let ran = env.run(&[&chain[..], &["0.000001"]].concat());
        let said = ran.stdout.clone();
        ran.fails(1);
        assert!(said.contains("over the budget of 0.000001 ms: "), "{said}");
        assert!(said.contains("/imu callback start to /estimate sent"), "{said}");
    });
}

#[test]
fn trace_file_is_readable_by_other_tools() {
    with_robot(|env| {
        let files = ["trace.svg", "trace.json"].map(|name| env.dir.join(name));
        let [svg, json] = files.each_ref().map(|file| file.to_str().unwrap());
        rnet!(env, "trace", "/imu", "--for", "1", "--svg", svg, "--perfetto", json).ok();
        let drawn = std::fs::read_to_string(svg).unwrap();
        assert!(drawn.contains("/imu: /sensor to /estimator, "), "{drawn}");
        assert!(drawn.ends_with("</svg>\n"), "{drawn}");
        let document = std::fs::read_to_string(json).unwrap();
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        let events = document["traceEvents"].as_array().unwrap();
        let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
        // A send and a callback for each message, and an arrow between them.
        assert!(of("s") > 0 && of("f") == of("s") && of("X") == 2 * of("s"), "{}", of("X"));
        let names: Vec<&str> =
            events.iter().filter_map(|event| event["args"]["name"].as_str()).collect();
        assert_eq!(names, ["/sensor", "/imu sent", "/estimator", "/imu"]);
    });
}

#[test]
fn a_file_that_cannot_be_written_costs_neither_the_table_nor_the_other_file() {
    with_robot(|env| {
        let files = ["none/trace.svg", "trace.json"].map(|name| env.dir.join(name));
        let [svg, json] = files.each_ref().map(|file| file.to_str().unwrap());
        let ran = rnet!(env, "trace", "/imu", "--for", "1", "--svg", svg, "--perfetto", json);
        assert!(ran.stdout.starts_with("/imu: /sensor -> /estimator, "), "{ran:?}");
        let said = ran.fails(1);
        assert!(said.contains(svg), "{said}");
        assert!(std::fs::read_to_string(json).unwrap().contains("traceEvents"));
    });
}

/// The link of a robot, as far as a trace needs it: laptop's lidar publishes the messages received here, and
/// laptop's viewer receives messages and reports on them. Its clock is known to 250 us.
fn with_laptop(test: impl FnOnce(&TestEnv)) {
    const LIDAR: u64 = 77 << 32;
    let env = TestEnv::new();
    let link = Node::builder("_rnet/link_1").tool().dir(&env.dir).domain(DOMAIN).open().unwrap();
    let proxy = |topic: &str, node: &str, endpoint| {
        link.publisher::<[u8]>(topic).proxy(Proxy::new("laptop", node, endpoint).unwrap())
    };
    let map = env.node("map");
    let _heard = map.subscriber::<[u8]>("/scan").open().unwrap().on(|_| ());
    let mut scans = proxy("/scan", "/lidar", LIDAR).open().unwrap();
    let records = proxy("/_rnet/trace/scan", "/viewer", 2);
    let mut records = records.message_type(TraceRecord::plain_type()).open().unwrap();
    scans.set_sent_uncertainty_ns(Some(250_000));
    records.set_sent_uncertainty_ns(Some(250_000));
    scans.wait_for_subscribers_timeout(1, LONG).unwrap();
    let (end, ended) = mpsc::channel::<()>();
    let sends = std::thread::spawn(move || {
        let from = |publisher, seq| Meta::default().with_origin(Origin { host: 5, publisher, seq });
        for seq in 0.. {
            scans.forward(b"scan", from(LIDAR, seq), now_ns() - 1_000_000).unwrap();
            // In its own time, which is a minute behind.
            let at = |ms| 60_000_000_000 + 1_000_000 * (10 * seq + ms);
            let record = TraceRecord {
                subscription: 78 << 32,
                publisher: LIDAR,
                seq,
                sent_ns: at(1),
                taken_ns: at(2),
                began_ns: at(3),
                ended_ns: at(4),
                written_ns: at(4),
                received: seq + 1,
                ..TraceRecord::default()
            };
            records.forward(&record.to_bytes(), from(2, seq), now_ns()).unwrap();
            if ended.recv_timeout(Duration::from_millis(2)) != Err(mpsc::RecvTimeoutError::Timeout)
            {
                break;
            }
        }
    });
    test(&env);
    drop(end);
    sends.join().unwrap();
}

#[test]
fn trace_between_hosts_shows_the_clock_uncertainty() {
    with_laptop(|env| {
        let svg = env.dir.join("trace.svg");
        let args = ["trace", "/scan", "--for", "1", "--svg", svg.to_str().unwrap()];
        let text = env.run(&args).ok();
        let table = |heading: &str| {
            let from = text.find(heading).unwrap_or_else(|| panic!("{heading}: {text}"));
            let rest = &text[from + 1..];
            rest[..rest.find("/scan: ").unwrap_or(rest.len())].to_owned()
        };
        let here = table("/scan: @laptop/lidar -> /map, ");
        assert!(here.contains("\nnetwork "), "{text}");
        assert!(here.contains("\nnetwork and all: ± 250.0 us clock uncertainty\n"), "{text}");
        // Both endpoints of this edge are on laptop.
        let there = table("/scan: @laptop/lidar -> @laptop/viewer, ");
        assert!(there.contains("\nbusy ") && !there.contains('±'), "{text}");
        let drawn = std::fs::read_to_string(&svg).unwrap();
        assert!(drawn.contains(" messages, ± 250.0 us clock uncertainty</text>"), "{drawn}");
        assert_eq!(drawn.matches("<path ").count(), 2, "{drawn}");

        let edges = rnet!(env, "trace", "/scan", "--for", "1", "--json").json()["edges"].take();
        let of = |n: usize, name: &str| edges[n][name].clone();
        assert_eq!((of(0, "subscriber"), of(0, "uncertain_us")), ("/map".into(), 250.0.into()));
        assert!(edges[0]["stages"]["network"]["p50_us"].as_f64().unwrap() >= 1000.0, "{edges}");
        let viewer = (of(1, "subscriber"), of(1, "uncertain_us"));
        assert_eq!(viewer, ("@laptop/viewer".into(), 0.0.into()));
        // Independent of its clock.
        assert_eq!(edges[1]["total"]["p50_us"], 3000.0, "{edges}");
    });
}

#[test]
fn untraceable_topics_are_reported() {
    let env = TestEnv::new();
    let node = env.node("display");
    let _heard = node.subscriber::<[u8]>("/scan").open().unwrap();
    let said = rnet!(env, "trace", "/scam", "/scan", "--for", "0.1").fails(124);
    for part in ["/scam has no subscribers (did you mean /scan?)", "/scan has subscribers"] {
        assert!(said.contains(part), "{said}");
    }
    rnet!(env, "trace").fails(2);
    rnet!(env, "trace", "--chain", "/scan").fails(2);
    rnet!(env, "trace", "/scan", "--budget-ms", "1").fails(2);
    rnet!(env, "trace", "--chain", "/a,/b", "--budget-ms", "0").fails(2);
    let long = format!("/{}", "a".repeat(250));
    let said = rnet!(env, "trace", &long).fails(2);
    assert!(said.contains("255"), "{said}");
    let many: Vec<String> = (0..65).map(|n| format!("/t{n}")).collect();
    let mut args = vec!["trace"];
    args.extend(many.iter().map(String::as_str));
    assert!(env.run(&args).fails(2).contains("64"));
}
