//! Each driver carries 1,000 checked messages of 0 B, 22 B and 1 MiB from one process to another,
//! with the real servers, through the real program.

use serde_json::Value;
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

fn run(workload: &str, extra: &[&str]) -> Value {
    let dir = std::env::temp_dir();
    let json = dir.join(format!("compare-test-{workload}-{}.json", std::process::id()));
    let status = Command::new(env!("CARGO_BIN_EXE_compare"))
        .args(["run", "--workloads", workload, "--repeat", "1", "--json"])
        .arg(&json)
        .args(extra)
        .status()
        .expect("compare starts");
    assert!(status.success(), "{workload}: {status}");
    let text = std::fs::read(&json).expect("the raw data is there");
    std::fs::remove_file(&json).expect("and can be removed");
    serde_json::from_slice(&text).expect("and is JSON")
}

/// What cannot run here and why; in CI nothing may be missing.
fn missing(raw: &Value) -> Vec<String> {
    let systems = raw["systems"].as_object().expect("systems");
    let missing: Vec<String> = systems
        .iter()
        .filter(|(id, entry)| !entry["unavailable"].is_null() && *id != "rnet-state")
        .map(|(id, entry)| format!("{id}: {}", entry["unavailable"]))
        .collect();
    missing.iter().for_each(|m| eprintln!("not tested: {m}"));
    assert!(missing.is_empty() || std::env::var_os("CI").is_none(), "CI has all of them");
    missing
}

fn received(run: &Value) -> Vec<(&str, &Value)> {
    let phases = run["phases"].as_array().expect("phases");
    phases
        .iter()
        .flat_map(|phase| {
            let label = phase["label"].as_str().expect("a label");
            let processes = phase["processes"].as_array().expect("processes");
            let received = processes.iter().filter_map(|p| p["result"]["received"].as_array());
            received.flatten().map(move |r| (label, r))
        })
        .collect()
}

#[test]
fn every_driver_carries_empty_small_and_large_messages_whole() {
    let raw = run("carry", &[]);
    missing(&raw);
    let runs = raw["runs"].as_array().expect("runs");
    let mut problems = Vec::new();
    for run in runs {
        let (system, variant) = (run["system"].as_str().unwrap(), run["variant"].as_str().unwrap());
        // Of a thousand messages: how many a system may lose whose design is to lose.
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
fn every_store_gives_back_what_was_set() {
    let raw = run("study1-kv", &["--scale", "0.2"]);
    missing(&raw);
    let runs = raw["runs"].as_array().expect("runs");
    for run in runs {
        assert!(run["error"].is_null(), "{}: {}", run["system"], run["error"]);
        let processes = run["phases"][0]["processes"].as_array().expect("processes");
        let calls: Vec<&Value> =
            processes.iter().map(|p| &p["result"]["calls"]).filter(|c| !c.is_null()).collect();
        assert!(calls.len() >= 2, "{}", run["system"]);
        for calls in calls {
            assert!(calls["count"].as_u64() > Some(0), "{}: {calls}", run["system"]);
            assert_eq!(calls["wrong"], 0, "{}: {calls}", run["system"]);
            let seen = calls["call"] == "set" || calls["distinct"].as_u64() > Some(1);
            assert!(seen, "{}: the value never changes: {calls}", run["system"]);
        }
    }
    assert!(!runs.is_empty() || std::env::var_os("CI").is_none());
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
    // It holds what ran before the robot, which is nothing, if it is there at all.
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
