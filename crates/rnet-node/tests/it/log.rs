//! The log of a node: `/log`, its limits, and stderr.

use crate::common;

use std::process::Command;
use std::time::Duration;

use common::{Net, eventually};
use rnet::msgs::Log;
use rnet::{LOG_TOPIC, LogLevel, Node, Subscriber};

const LONG: Duration = Duration::from_secs(60);

fn reader(net: &Net) -> Subscriber<Log> {
    net.node("reader").subscriber(LOG_TOPIC).transient_local().keep_all().open().unwrap()
}

fn next(reader: &mut Subscriber<Log>) -> Log {
    (*reader.recv_timeout(LONG).unwrap()).clone()
}

#[test]
fn log_line_has_node_source_location_and_level() {
    let net = Net::new("log_line");
    let node = net.node("arm");
    let mut reader = reader(&net);
    node.log().warning(format_args!("joint {} is hot", 3));
    let line = line!() - 1;
    let log = next(&mut reader);
    assert_eq!((log.name.as_str(), log.message.as_str()), ("/arm", "joint 3 is hot"));
    assert_eq!((log.level(), log.line), (rnet::msgs::log::Level::Warning, line));
    assert!(log.file.ends_with("tests/it/log.rs"), "{}", log.file);
    assert!(log.timestamp.is_some());
}

#[test]
fn late_joiners_get_the_last_hundred_lines_of_each_node() {
    let net = Net::new("log_late");
    let nodes = [net.node("arm"), net.node("leg")];
    for node in &nodes {
        for at in 0..101 {
            node.log().publish(LogLevel::Info, at, "arm.rs", at);
        }
    }
    let mut reader = reader(&net);
    let mut got: Vec<(String, u32)> =
        (0..200).map(|_| next(&mut reader)).map(|log| (log.name, log.line)).collect();
    got.sort();
    let wanted = ["/arm", "/leg"].map(|name| (1..101).map(move |at| (name.to_owned(), at)));
    assert_eq!(got, wanted.into_iter().flatten().collect::<Vec<_>>());
}

#[test]
fn a_node_that_never_logs_has_no_publisher() {
    let net = Net::new("log_none");
    let node = net.node("arm");
    node.log().debug("dropped: no reader");
    let (watch, seen) = endpoints(&net.node("watcher"));
    node.log().info("dropped as well");
    eventually("the publisher is seen", || seen.try_recv().is_ok_and(|topic| topic == LOG_TOPIC));
    assert!(seen.try_recv().is_err());
    drop(watch);
}

fn endpoints(node: &Node) -> (rnet::EndpointWatch, std::sync::mpsc::Receiver<String>) {
    let (tell, seen) = std::sync::mpsc::channel();
    let watch = node.on_endpoint(move |event| {
        let _ = tell.send(event.endpoint().topic.to_string());
    });
    (watch.unwrap(), seen)
}

#[test]
fn lines_below_the_level_are_dropped() {
    let net = Net::new("log_level");
    let node = net.node("arm");
    let mut reader = reader(&net);
    assert_eq!(node.log().level(), LogLevel::Info);
    node.log().debug("one");
    node.log().set_level(LogLevel::Debug);
    node.log().debug("two");
    node.log().set_level(LogLevel::Error);
    node.log().warning("three");
    assert!(!node.log().is_enabled(LogLevel::Warning));
    node.log().fatal("four");
    assert_eq!([next(&mut reader).message, next(&mut reader).message], ["two", "four"]);
}

#[test]
fn a_flood_is_held_back_and_counted() {
    let net = Net::new("log_flood");
    let node = net.node("arm");
    let mut reader = reader(&net);
    // Nothing is lost from here on: lines before a match are kept for the subscriber, at most 100.
    node.log().publish(LogLevel::Info, "begin", "loop.rs", 1);
    assert_eq!(next(&mut reader).message, "begin");
    let mut calls = 0;
    // A slow machine produces a smaller flood.
    while node.log().suppressed_count() < 50 {
        node.log().publish(LogLevel::Info, "tick", "loop.rs", 7);
        calls += 1;
    }
    let held = node.log().suppressed_count();
    drop(node);
    let (mut ticks, mut reported) = (0, 0);
    while ticks + held < calls || reported < held {
        let log = next(&mut reader);
        match log.message.split_once(" line") {
            None => ticks += 1,
            Some((count, rest)) => {
                assert!(rest.contains("from loop.rs:7 suppressed"), "{}", log.message);
                reported += count.parse::<u64>().unwrap();
            }
        }
    }
    assert_eq!((ticks + held, reported), (calls, held));
}

#[test]
fn a_long_text_is_cut_between_two_characters() {
    let net = Net::new("log_long");
    let node = net.node("arm");
    let mut reader = reader(&net);
    node.log().publish(LogLevel::Info, "ä".repeat(10_001), &"é".repeat(1_000), 1);
    let log = next(&mut reader);
    assert_eq!(log.message, format!("{} [17002 more bytes]", "ä".repeat(1_500)));
    assert_eq!(log.file, "é".repeat(128));
}

#[test]
fn formatting_a_log_line_may_log_recursively() {
    struct Chatty<'a>(&'a Node);
    impl std::fmt::Display for Chatty<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.log().info("inner");
            f.write_str("outer")
        }
    }
    let net = Net::new("log_chatty");
    let node = net.node("arm");
    let mut reader = reader(&net);
    node.log().info(Chatty(&node));
    assert_eq!([next(&mut reader).message, next(&mut reader).message], ["inner", "outer"]);
}

#[test]
fn stderr_lines_use_the_ros_format() {
    const NAME: &str = "log::stderr_lines_use_the_ros_format";
    if std::env::var_os("LOG_TEST_CHILD").is_some() {
        match Node::new("arm") {
            Ok(node) => {
                node.log().debug("one");
                node.log().warning("two");
            }
            Err(error) => eprintln!("{error}"),
        }
        return;
    }
    let net = Net::new("log_stderr");
    let node = net.node("other");
    let stderr = |level| {
        let child = Command::new(std::env::current_exe().unwrap())
            .args([NAME, "--exact", "--nocapture"])
            .env("LOG_TEST_CHILD", "1")
            .env("RNET_LOG", level)
            .env("RNET_DIR", node.domain_path().parent().unwrap())
            .env("RNET_DOMAIN", node.domain())
            .output();
        String::from_utf8(child.unwrap().stderr).unwrap()
    };
    let all = stderr("debug");
    let lines: Vec<&str> = all.lines().filter(|line| line.contains("[/arm]: ")).collect();
    assert!(lines[0].starts_with("[DEBUG] [") && lines[0].ends_with("] [/arm]: one"), "{all}");
    assert!(lines[1].starts_with("[WARN] [") && lines[1].ends_with("] [/arm]: two"), "{all}");
    assert_eq!(lines.len(), 2, "{all}");
    let less = stderr("");
    assert!(!less.contains("one") && less.contains("two"), "{less}");
    let bad = stderr("loud");
    assert!(bad.contains("RNET_LOG") && bad.contains("must be debug, info"), "{bad}");
}

#[test]
fn weak_log_handle_does_not_keep_the_node() {
    let net = Net::new("log_weak");
    let node = net.node("arm");
    let weak = node.log().downgrade();
    let mut reader = reader(&net);
    assert!(weak.publish(LogLevel::Info, "here", "arm.rs", 1));
    assert_eq!(next(&mut reader).message, "here");
    drop(node);
    assert!(!weak.publish(LogLevel::Info, "gone", "arm.rs", 1));
    eventually("the name is free again", || net.builder("arm").open().is_ok());
}

#[test]
fn levels_have_names() {
    for level in ["debug", "info", "warning", "error", "fatal"] {
        assert_eq!(level.parse::<LogLevel>().unwrap().name(), level);
    }
    assert_eq!("warn".parse::<LogLevel>().unwrap(), LogLevel::Warning);
    let error = "loud".parse::<LogLevel>().unwrap_err().to_string();
    assert!(error.contains("\"loud\"") && error.contains("fatal"), "{error}");
}

#[test]
fn publisher_with_only_incompatible_subscribers_logs_it() {
    let net = Net::new("log_misfit");
    let mut reader = reader(&net);
    let (arm, leg) = (net.node("arm"), net.node("leg"));
    let mut says = |topic: &str, subscriber: &str| {
        let log = next(&mut reader);
        assert_eq!((log.name.as_str(), log.level()), ("/arm", rnet::msgs::log::Level::Error));
        let types = format!("incompatible types on {topic}");
        assert!(log.message.starts_with(&types), "{}", log.message);
        assert!(log.message.contains(&format!("subscriber {subscriber}")), "{}", log.message);
    };
    // The last endpoint that opens reports it for both.
    let _wanted = leg.subscriber::<rnet::msgs::Twist>("/created").open().unwrap();
    let mut created = arm.publisher::<rnet::msgs::Imu>("/created").open().unwrap();
    says("/created", "/leg");
    // A publisher with one compatible subscriber continues.
    let mut matched = arm.publisher::<rnet::msgs::Imu>("/matched").open().unwrap();
    let mut fits = leg.subscriber::<rnet::msgs::Imu>("/matched").open().unwrap();
    matched.wait_for_subscribers_timeout(1, LONG).unwrap();
    let _other = net.node("foot").subscriber::<rnet::msgs::Twist>("/matched").open().unwrap();
    says("/matched", "/foot");
    created.send(&Default::default()).unwrap();
    matched.send(&Default::default()).unwrap();
    fits.recv_timeout(LONG).unwrap();
}
