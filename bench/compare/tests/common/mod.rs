//! Runs the real program and reads its output files.

use serde_json::Value;
use std::io::Write;
use std::process::Command;

/// Runs a workload once and reads the raw data.
pub fn run(workload: &str, extra: &[&str]) -> Value {
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

/// Tests that cannot run here, with reasons. `scripts/step.sh` reads it; in CI nothing may be missing.
pub fn missing(raw: &Value) -> Vec<String> {
    let systems = raw["systems"].as_object().expect("systems");
    let missing: Vec<String> = systems
        .iter()
        .filter(|(_, entry)| !entry["unavailable"].is_null())
        .map(|(id, entry)| format!("{id}: {}", entry["unavailable"]))
        .collect();
    missing.iter().for_each(|what| not_run(what));
    missing
}

/// Reports that a test cannot run here, even if the test harness hides a test's output.
pub fn not_run(what: &str) {
    let _ = std::io::stderr().write_all(format!("NOT RUN: {what}\n").as_bytes());
}

/// The subscriptions of a run, each with the label of its phase.
pub fn received(run: &Value) -> Vec<(&str, &Value)> {
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
