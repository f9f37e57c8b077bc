//! `rnet log`.

use crate::util;

use rnet::LogLevel;
use rnet::msgs::{Log, timestamp_from_ns, timestamp_now, timestamp_to_ns};
use util::Place;

#[test]
fn it_prints_what_nodes_have_kept_by_time_and_ends() {
    let place = Place::new();
    let (arm, leg) = (place.node("arm"), place.node("leg"));
    arm.log().set_level(LogLevel::Debug);
    arm.log().debug("first");
    leg.log().warning("second");
    arm.log().error("third\u{1b}[2J");
    let text = rnet!(place, "log").ok();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    for (line, end) in lines.iter().zip([
        "Z DEBUG   /arm: first",
        "Z WARNING /leg: second",
        "Z ERROR   /arm: third\\u{1b}[2J",
    ]) {
        assert!(line.ends_with(end), "{line}");
    }
    let shown = rnet!(place, "--json", "log", "--level", "warning", "--node", "/arm").json_lines();
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert_eq!((&shown[0]["level"], &shown[0]["node"]), (&"error".into(), &"/arm".into()));
    assert!(shown[0]["file"].as_str().unwrap().ends_with("tests/it/log.rs"), "{shown:?}");
    let ran = rnet!(place, "log", "--level", "error");
    assert_eq!((ran.stderr.as_str(), ran.stdout.lines().count()), ("", 1), "{ran:#?}");
    assert_eq!(rnet!(place, "log", "--count", "2").ok().lines().count(), 2);
    assert_eq!(rnet!(place, "log", "--node", "/hand/**").ok(), "");
}

#[test]
fn it_follows() {
    let place = Place::new();
    let arm = place.node("arm");
    arm.log().info("before");
    let mut run = place.spawn(&["log", "--follow", "--count", "3"]);
    run.until_stdout("before");
    arm.log().info("after");
    run.until_stdout("after");
    let leg = place.node("leg");
    leg.log().info("a node that came later");
    let ran = run.wait();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.ends_with("/leg: a node that came later\n"), "{ran:#?}");
}

#[test]
fn it_looks_back_as_far_as_it_is_told() {
    let place = Place::new();
    let node = place.node("arm");
    let options = rnet::PublisherOptions::new().transient_local(10);
    let mut lines = node.publisher_with::<Log>("/log", options).unwrap();
    let now_ns = timestamp_to_ns(&timestamp_now()).unwrap();
    for (age_s, message) in [(5_000, "old"), (5, "new")] {
        let timestamp = Some(timestamp_from_ns(now_ns - age_s * 1_000_000_000));
        let log = Log { timestamp, level: 77, message: message.to_owned(), ..Default::default() };
        lines.send(&log).unwrap();
    }
    let text = rnet!(place, "log", "--since", "1000").ok();
    assert!(text.ends_with("Z -       /arm: new\n") && text.lines().count() == 1, "{text}");
    assert_eq!(rnet!(place, "log", "--level", "fatal").ok().lines().count(), 2);
}

#[test]
fn other_messages_on_the_topic_are_passed_over_and_told() {
    let place = Place::new();
    let (raw, arm) = (place.node("raw"), place.node("arm"));
    let options = rnet::PublisherOptions::new().transient_local(10);
    let mut other = raw.publisher_with::<[u8]>("/log", options).unwrap();
    other.send(b"one").unwrap();
    other.send(b"two").unwrap();
    arm.log().info("a line");
    let ran = rnet!(place, "log");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.ends_with("INFO    /arm: a line\n"), "{ran:#?}");
    assert_eq!(ran.stderr.matches("messages of /raw on /log are ignored").count(), 1, "{ran:#?}");
}

#[test]
fn without_lines_it_prints_nothing_or_waits() {
    let place = Place::new();
    let _node = place.node("arm");
    assert_eq!(rnet!(place, "log").ok(), "");
    rnet!(place, "log", "--follow", "--timeout", "0.3").fails(124);
    let said = rnet!(place, "log", "--node", "a b").fails(2);
    assert!(said.contains("bad node name"), "{said}");
    rnet!(place, "log", "--timeout", "1").fails(2);
    let of = |node: &str| rnet!(place, "log", "--node", node).stderr;
    assert_eq!(of("arm"), "", "it is there and has said nothing");
    let none = "node /nope not found, and no lines of it are kept; see rnet node list\n";
    assert!(of("/nope").ends_with(none), "{}", of("/nope"));
}
