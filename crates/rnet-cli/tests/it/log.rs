//! `rnet log`.

use crate::util;

use rnet::LogLevel;
use rnet::msgs::{Log, timestamp_from_ns, timestamp_now, timestamp_to_ns};
use util::TestEnv;

#[test]
fn log_prints_kept_lines_by_time_and_exits() {
    let env = TestEnv::new();
    let (arm, leg) = (env.node("arm"), env.node("leg"));
    arm.log().set_level(LogLevel::Debug);
    arm.log().debug("first");
    leg.log().warning("second");
    arm.log().error("third\u{1b}[2J");
    let text = rnet!(env, "log").ok();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    for (line, end) in lines.iter().zip([
        "Z DEBUG   /arm: first",
        "Z WARNING /leg: second",
        "Z ERROR   /arm: third\\u{1b}[2J",
    ]) {
        assert!(line.ends_with(end), "{line}");
    }
    let shown = rnet!(env, "--json", "log", "--level", "warning", "--node", "/arm").json_lines();
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert_eq!((&shown[0]["level"], &shown[0]["node"]), (&"error".into(), &"/arm".into()));
    assert!(shown[0]["file"].as_str().unwrap().ends_with("tests/it/log.rs"), "{shown:?}");
    let ran = rnet!(env, "log", "--level", "error");
    assert_eq!((ran.stderr.as_str(), ran.stdout.lines().count()), ("", 1), "{ran:#?}");
    assert_eq!(rnet!(env, "log", "--count", "2").ok().lines().count(), 2);
    assert_eq!(rnet!(env, "log", "--node", "/hand/**").ok(), "");
}

#[test]
fn further_lines_of_an_entry_are_indented() {
    let env = TestEnv::new();
    let arm = env.node("arm");
    arm.log().error("it failed: one\nTraceback:\r\n  File \u{1b}[2J\n");
    let text = rnet!(env, "log").ok();
    let end = "/arm: it failed: one\n    Traceback:\n      File \\u{1b}[2J\n";
    assert!(text.ends_with(end), "{text:?}");
    let json = rnet!(env, "log", "--json").json_lines();
    assert_eq!(json[0]["message"], "it failed: one\nTraceback:\r\n  File \u{1b}[2J\n");
}

#[test]
fn log_follows_new_lines() {
    let env = TestEnv::new();
    let arm = env.node("arm");
    arm.log().info("before");
    let mut run = env.spawn(&["log", "--follow", "--count", "3"]);
    run.wait_for_stdout("before");
    arm.log().info("after");
    run.wait_for_stdout("after");
    let leg = env.node("leg");
    leg.log().info("a node that came later");
    let ran = run.wait();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.ends_with("/leg: a node that came later\n"), "{ran:#?}");
}

#[test]
fn it_prints_history_since_the_given_time() {
    let env = TestEnv::new();
    let node = env.node("arm");
    let mut lines = node.publisher::<Log>("/log").transient_local(10).open().unwrap();
    let now_ns = timestamp_to_ns(&timestamp_now()).unwrap();
    for (age_s, message) in [(5_000, "old"), (5, "new")] {
        let timestamp = Some(timestamp_from_ns(now_ns - age_s * 1_000_000_000));
        let log = Log { timestamp, level: 77, message: message.to_owned(), ..Default::default() };
        lines.send(&log).unwrap();
    }
    let text = rnet!(env, "log", "--since", "1000").ok();
    assert!(text.ends_with("Z -       /arm: new\n") && text.lines().count() == 1, "{text}");
    assert_eq!(rnet!(env, "log", "--level", "fatal").ok().lines().count(), 2);
}

#[test]
fn other_messages_on_the_topic_are_skipped_and_reported() {
    let env = TestEnv::new();
    let (raw, arm) = (env.node("raw"), env.node("arm"));
    let mut other = raw.publisher::<[u8]>("/log").transient_local(10).open().unwrap();
    other.send(b"one").unwrap();
    other.send(b"two").unwrap();
    arm.log().info("a line");
    let ran = rnet!(env, "log");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.ends_with("INFO    /arm: a line\n"), "{ran:#?}");
    assert_eq!(ran.stderr.matches("messages of /raw on /log are ignored").count(), 1, "{ran:#?}");
}

#[test]
fn without_lines_it_prints_nothing_or_waits() {
    let env = TestEnv::new();
    let _node = env.node("arm");
    assert_eq!(rnet!(env, "log").ok(), "");
    rnet!(env, "log", "--follow", "--timeout", "0.3").fails(124);
    let said = rnet!(env, "log", "--node", "a b").fails(2);
    assert!(said.contains("bad node name"), "{said}");
    rnet!(env, "log", "--timeout", "1").fails(2);
    let of = |node: &str| rnet!(env, "log", "--node", node).stderr;
    assert_eq!(of("arm"), "", "it is there and has said nothing");
    let none = "node /nope not found, and no lines of it are kept; see rnet node list\n";
    assert!(of("/nope").ends_with(none), "{}", of("/nope"));
}
