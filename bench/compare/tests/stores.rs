//! Each store does what the workloads ask of it, with the real servers, through the real program.

mod common;

use common::{missing, not_run, received, run};
use serde_json::Value;
use std::collections::BTreeSet;

/// The calls of a run's clients, phase by phase.
fn calls(run: &Value) -> Vec<(&str, Vec<&Value>)> {
    let phases = run["phases"].as_array().expect("phases");
    phases
        .iter()
        .map(|phase| {
            let label = phase["label"].as_str().expect("a label");
            let processes = phase["processes"].as_array().expect("processes");
            let calls = processes.iter().map(|p| &p["result"]["calls"]);
            (label, calls.filter(|c| !c.is_null()).collect())
        })
        .collect()
}

/// Runs without failures, in which the built-in systems took part.
fn whole<'a>(raw: &'a Value, built_in: &str) -> &'a [Value] {
    missing(raw);
    let runs = raw["runs"].as_array().expect("runs");
    for run in runs {
        assert!(run["error"].is_null(), "{} {}: {}", run["system"], run["variant"], run["error"]);
    }
    assert!(runs.iter().any(|run| run["system"] == built_in), "{built_in} has run");
    runs
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn every_store_gives_back_what_was_set() {
    let raw = run("study1-kv", &["--scale", "0.2"]);
    for run in whole(&raw, "rnet-state") {
        let (_, clients) = calls(run).swap_remove(0);
        assert!(clients.len() >= 2, "{}", run["system"]);
        for calls in clients {
            assert!(number(&calls["count"]) > 0, "{}: {calls}", run["system"]);
            assert_eq!(calls["wrong"], 0, "{}: {calls}", run["system"]);
            let seen = calls["call"] == "set" || number(&calls["distinct"]) > 1;
            assert!(seen, "{}: the value never changes: {calls}", run["system"]);
        }
    }
}

#[test]
fn values_of_every_size_come_back_whole() {
    let raw = run("state-sizes", &["--scale", "0.2"]);
    for run in whole(&raw, "rnet-cell") {
        let phases = calls(run);
        assert_eq!(phases.len(), 8, "four sizes, set and got: {}", run["system"]);
        for (label, clients) in phases {
            assert_eq!(clients.len(), 1);
            assert!(number(&clients[0]["count"]) > 0, "{} {label}", run["system"]);
            assert_eq!(clients[0]["wrong"], 0, "{} {label}", run["system"]);
        }
    }
}

#[test]
fn every_addition_counts_in_every_store() {
    let raw = run("state-cas", &["--scale", "0.2"]);
    let mut variants = BTreeSet::new();
    for run in whole(&raw, "rnet-state") {
        let (system, variant) = (&run["system"], run["variant"].as_str().expect("a variant"));
        variants.insert(variant);
        let phases = calls(run);
        let [(_, made), (_, read)] = &phases[..] else { panic!("{system}: {phases:?}") };
        let clients = if variant.ends_with("4 clients") { 4 } else { 1 };
        assert_eq!((made.len(), read.len()), (clients, clients), "{system} {variant}");
        let sum: u64 = made.iter().map(|c| number(&c["count"])).sum();
        assert!(sum > 0, "{system} {variant}");
        for calls in read {
            assert_eq!(number(&calls["total"]), sum, "{system} {variant}");
        }
        let tries: u64 = made.iter().map(|c| number(&c["tries"])).sum();
        assert!(tries >= sum, "{system} {variant}: {tries} tries for {sum}");
    }
    assert_eq!(variants.len(), 4, "{variants:?}");
}

#[test]
fn durable_sets_are_made_on_a_disk_only() {
    // /dev/shm is memory: nothing runs, and the reason is reported.
    let raw = run("state-durable", &["--scale", "0.1", "--disk", "/dev/shm"]);
    assert_eq!(raw["runs"].as_array().map(Vec::len), Some(0));
    let memory = |s: &&Value| s["why"].as_str().is_some_and(|why| why.contains("is memory"));
    let skipped = raw["skipped"].as_array().expect("what was skipped");
    let of_ours = skipped.iter().filter(memory).filter(|s| s["system"] == "rnet-state").count();
    assert_eq!(of_ours, 2, "with 1 client and with 4: {skipped:?}");

    let raw = run("state-durable", &["--scale", "0.1"]);
    if raw["skipped"].as_array().is_some_and(|s| s.iter().any(|s| memory(&s))) {
        return not_run("durable_sets_are_made_on_a_disk_only: the build's folder is memory");
    }
    for run in whole(&raw, "rnet-state") {
        for (_, clients) in calls(run) {
            assert!(clients.iter().all(|c| number(&c["count"]) > 0), "{}", run["system"]);
        }
    }
}

#[test]
fn a_watcher_sees_what_was_set() {
    let raw = run("state-watch", &["--scale", "0.2"]);
    for run in whole(&raw, "rnet-watch") {
        let phases = received(run);
        assert_eq!(phases.len(), 2, "{}", run["system"]);
        for (label, r) in phases {
            let system = &run["system"];
            assert!(number(&r["count"]) > 0, "{system} {label}: {r}");
            assert_eq!(
                (number(&r["corrupt"]), number(&r["out_of_order"])),
                (0, 0),
                "{system}: {r}"
            );
        }
    }
}
