//! Each driver carries 1,000 checked messages of 0 B, 22 B and 1 MiB from one process to another,
//! with the real servers, through the real program, and brings the reply to each call.

mod common;

use common::{missing, received, run};
use std::process::Command;

/// Systems whose library is built in: nothing can be missing.
const ALWAYS: &[&str] = &[
    "tcp",
    "unix",
    "rnet-spin",
    "rnet-adaptive",
    "rnet-block",
    "iceoryx2-event",
    "iceoryx2-poll",
    "zeromq-rs",
    "zenoh-tcp",
    "zenoh-shm",
];

/// The same of those that call.
const CALLS_ALWAYS: &[&str] = &["rnet-call", "rnet-adaptive", "zenoh-query", "grpc"];

#[test]
fn every_driver_carries_empty_small_and_large_messages_whole() {
    let raw = run("carry", &[]);
    missing(&raw);
    let runs = raw["runs"].as_array().expect("runs");
    let mut problems = Vec::new();
    for run in runs {
        let (system, variant) = (run["system"].as_str().unwrap(), run["variant"].as_str().unwrap());
        // Messages, of a thousand, that a lossy system may lose.
        let may_lose = match (raw["systems"][system]["may_lose"].is_null(), variant) {
            (true, _) => 0,
            (false, "flood") => 999,
            (false, _) => 50,
        };
        if !run["error"].is_null() {
            problems.push(format!("{system} {variant}: {}", run["error"]));
            continue;
        }
        let received = received(run);
        assert_eq!(received.len(), 3, "{system} {variant}: three sizes");
        for (label, r) in received {
            let number = |key: &str| r[key].as_u64().expect("a number");
            let sent = 1000;
            let (count, lost) = (number("count"), number("lost"));
            let whole = count + lost == sent && lost <= may_lose;
            if !whole || number("corrupt") != 0 || number("out_of_order") != 0 {
                problems.push(format!("{system} {variant} {label}: {r}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    for id in ALWAYS {
        let variants = runs.iter().filter(|r| r["system"] == *id).count();
        assert_eq!(variants, 2, "{id} has run in both variants");
    }
}

#[test]
fn every_call_has_its_reply() {
    let raw = run("call", &["--scale", "0.05"]);
    missing(&raw);
    let runs = raw["runs"].as_array().expect("runs");
    for run in runs {
        let (system, variant) = (run["system"].as_str().unwrap(), run["variant"].as_str().unwrap());
        assert!(run["error"].is_null(), "{system} {variant}: {}", run["error"]);
        let result = &run["phases"][0]["processes"][0]["result"];
        let trips = result["round_trips"].as_array().expect("round trips");
        let expected = if variant == "at once" { 250 } else { 25 };
        assert_eq!(trips.len(), expected, "{system} {variant}: {}", result["round_trips_lost"]);
        assert!(trips.iter().all(|trip| trip[0] == 64 && trip[1].as_u64() > Some(0)), "{system}");
    }
    for id in CALLS_ALWAYS {
        assert_eq!(
            runs.iter().filter(|r| r["system"] == *id).count(),
            2,
            "{id} has run in both variants"
        );
    }
}

#[test]
fn a_system_that_is_not_known_is_named_with_those_that_are() {
    let output = Command::new(env!("CARGO_BIN_EXE_compare"))
        .args(["run", "--systems", "carrier-pigeon", "--json", "/tmp/never-written.json"])
        .output()
        .expect("compare starts");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("carrier-pigeon") && said.contains("rnet-adaptive"), "{said}");
    assert!(!std::path::Path::new("/tmp/never-written.json").exists());
}

#[test]
fn a_robot_of_the_command_line_runs_and_a_wrong_file_is_refused_by_name() {
    let json = std::env::temp_dir().join(format!("compare-robot-{}.json", std::process::id()));
    let output = Command::new(env!("CARGO_BIN_EXE_compare"))
        .args(["run", "--workloads", "sierra_nevada", "--systems", "unix"])
        .args(["--topology", "/tmp/no-such-robot.toml", "--json"])
        .arg(&json)
        .output()
        .expect("compare starts");
    // If it exists, it is empty: nothing ran before the robot.
    let _ = std::fs::remove_file(&json);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no-such-robot.toml"), "{said}");

    let raw = run("sierra_nevada", &["--systems", "unix,rnet-adaptive", "--scale", "0.1"]);
    let runs = raw["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert!(run["error"].is_null(), "{}", run["error"]);
        let received = received(run);
        assert_eq!(received.len(), 17, "subscriptions of the ten nodes");
        for (_, r) in received {
            assert_eq!(r["lost"], 0, "{r}");
        }
    }
}
