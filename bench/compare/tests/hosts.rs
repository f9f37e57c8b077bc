//! The work between two hosts: every system carries from one network namespace to the other.

mod common;

use common::{missing, not_run, received, run};
use serde_json::Value;

const SYSTEMS: [&str; 5] = ["rnet-adaptive", "zenoh-tcp", "cyclonedds", "zmq-tcp", "nats"];

#[test]
fn ten_subscribers_on_another_host_get_every_message_and_the_cable_is_counted() {
    let raw = run("hosts-readers", &["--systems", &SYSTEMS.join(","), "--scale", "0.2"]);
    missing(&raw);
    for skipped in raw["skipped"].as_array().expect("what was skipped") {
        not_run(&format!("{} between two hosts: {}", skipped["system"], skipped["why"]));
    }
    for run in raw["runs"].as_array().expect("runs") {
        let (system, variant) = (&run["system"], run["variant"].as_str().expect("a variant"));
        assert!(run["error"].is_null(), "{system} {variant}: {}", run["error"]);
        let readers = if variant == "1->10" { 10 } else { 1 };
        let received = received(run);
        assert_eq!(received.len(), readers, "{system} {variant}");
        for (_, r) in received {
            let whole = r["count"] == 200 && r["lost"] == 0 && r["corrupt"] == 0;
            assert!(whole, "{system} {variant}: {r}");
        }
        let phase = &run["phases"][0];
        let wire_bytes = phase["wire_bytes"].as_u64().expect("the cable is counted");
        assert!(wire_bytes > 200 * 1024, "{system} {variant}: {wire_bytes} B");
        let names = names(phase);
        match system.as_str().expect("a name") {
            "rnet-adaptive" => assert!(names.ends_with(&["link a", "link b"]), "{names:?}"),
            "nats" => assert!(names.ends_with(&["server"]), "{names:?}"),
            _ => assert_eq!(names.len(), 1 + readers, "{names:?}"),
        }
    }
}

#[test]
fn a_system_of_one_host_is_left_out_by_name() {
    let raw = run("hosts-latency", &["--systems", "unix", "--scale", "0.05"]);
    assert_eq!(raw["runs"], Value::Array(Vec::new()));
    let skipped = &raw["skipped"][0];
    assert_eq!(skipped["system"], "unix");
    assert_eq!(skipped["why"], "its driver knows one host only");
}

fn names(phase: &Value) -> Vec<&str> {
    let processes = phase["processes"].as_array().expect("processes");
    processes.iter().filter_map(|process| process["name"].as_str()).collect()
}
