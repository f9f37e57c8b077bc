//! `rnet bench`: short runs of each benchmark, whose counts add up and which leave nothing behind.

use crate::util;

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use util::processes::{assert_nothing_left, processes_of, until, workers_of};
use util::{CommandOutput, RunningCommand, TestEnv};

/// Runs `rnet --json bench …`, checks that it leaves nothing behind, and returns its document.
fn bench(args: &[&str]) -> Value {
    document(args, &run(args))
}

/// Runs `rnet --json bench …`, and checks that it leaves nothing behind.
fn run(args: &[&str]) -> CommandOutput {
    let env = TestEnv::new();
    let all: Vec<&str> = ["--json", "bench"].iter().chain(args).copied().collect();
    let ran = env.run(&all);
    assert_nothing_left(&env);
    ran
}

/// The document of a successful run.
fn document(args: &[&str], ran: &CommandOutput) -> Value {
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = ran.json();
    assert_eq!(document["bench"], args[0]);
    assert_eq!(document["version"], rnet::VERSION);
    let machine = &document["machine"];
    assert!(machine["cores"].as_u64().unwrap() > 0 && machine["cpu"].is_string(), "{machine}");
    document
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a count"))
}

/// Asserts that the counts of a document add up, and that nothing was lost.
#[track_caller]
fn assert_all_arrived(delivery: &Value) {
    assert!(count(&delivery["expected"]) > 0, "{delivery}");
    assert_eq!(delivery["expected"], delivery["received"], "{delivery}");
    for what in ["lost", "counted_lost", "out_of_order", "corrupt"] {
        assert_eq!(delivery[what], 0, "{delivery}");
    }
}

/// Minimum ≤ median ≤ maximum, and all above zero.
#[track_caller]
fn is_spread(spread: &Value) {
    let of = |key: &str| spread[key].as_f64().unwrap_or_else(|| panic!("{spread} is not a spread"));
    assert!(0.0 < of("min") && of("min") <= of("median") && of("median") <= of("max"), "{spread}");
}

#[track_caller]
fn are_percentiles(latency: &Value) {
    let names = ["p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"];
    names.iter().for_each(|name| is_spread(&latency[name]));
    let medians: Vec<f64> =
        names.iter().map(|name| latency[name]["median"].as_f64().unwrap()).collect();
    assert!(medians.is_sorted(), "{latency}");
}

#[test]
fn throughput_counts_every_message_at_every_reader() {
    for wait in ["spin", "adaptive", "block"] {
        let document = bench(&[
            "throughput",
            "--seconds",
            "0.2",
            "--repeats",
            "2",
            "--readers",
            "2",
            "--wait",
            wait,
        ]);
        let result = &document["result"];
        assert_all_arrived(&result["delivery"]);
        let [case] = &result["cases"].as_array().unwrap()[..] else { panic!("{result}") };
        is_spread(&case["messages_per_s"]);
        assert_eq!(case["runs"].as_array().unwrap().len(), 2);
        // Each message reaches both readers.
        assert_eq!(count(&result["delivery"]["expected"]) % 2, 0, "{result}");
        assert_eq!(document["settings"]["wait"], wait);
    }
}

#[test]
fn large_messages_are_read_in_full_or_not_at_all() {
    for (more, body) in [(None, "whole"), (Some("--untouched"), "ends")] {
        let mut args = vec!["throughput", "--size", "1M", "--seconds", "0.2", "--repeats", "1"];
        args.extend(more);
        let document = bench(&args);
        assert_all_arrived(&document["result"]["delivery"]);
        assert_eq!(document["settings"]["body"], body);
        let case = &document["result"]["cases"][0];
        let rate = |key: &str| case[key]["median"].as_f64().unwrap();
        assert_eq!(rate("bytes_per_s"), rate("messages_per_s") * (1 << 20) as f64);
    }
}

#[test]
fn best_effort_loses_only_what_is_counted() {
    // A best-effort sender of large messages overruns a reader that sums them.
    let document = bench(&[
        "throughput",
        "--best-effort",
        "--readers",
        "3",
        "--size",
        "100K",
        "--seconds",
        "0.2",
    ]);
    let delivery = &document["result"]["delivery"];
    assert_eq!(
        count(&delivery["received"]) + count(&delivery["lost"]),
        count(&delivery["expected"]),
        "{delivery}"
    );
    assert_eq!(delivery["lost"], delivery["counted_lost"], "{delivery}");
    assert_eq!(
        (&delivery["corrupt"], &delivery["out_of_order"]),
        (&0.into(), &0.into()),
        "{delivery}"
    );
}

#[test]
fn a_traced_topic_is_measured_beside_the_same_without_a_tracer() {
    let document =
        bench(&["trace", "--rate", "500", "--seconds", "0.3", "--repeats", "2", "--wait", "block"]);
    let result = &document["result"];
    assert_all_arrived(&result["delivery"]);
    let [off, on] = &result["cases"].as_array().unwrap()[..] else { panic!("{result}") };
    for case in [off, on] {
        are_percentiles(case);
        assert_eq!(case["runs"].as_array().unwrap().len(), 2, "{case}");
    }
    assert_eq!((&off["traced"], &off["traced_share"]["max"]), (&false.into(), &0.0.into()));
    // At this rate each message is traced; those in transit when the tracer ended may be missing.
    let share = on["traced_share"]["median"].as_f64().unwrap();
    assert!(on["traced"] == true && share > 0.0 && share <= 1.0, "{on}");
    ["p50_ratio", "p999_ratio", "reader_cores_ratio"].iter().for_each(|name| is_spread(&on[name]));
}

#[test]
fn latency_has_percentiles_and_keeps_the_rate() {
    for more in [&["--wait", "block"][..], &["--urgent", "--rate", "50000"], &["--size", "10K"]] {
        let mut args = vec!["latency", "--rate", "1000", "--seconds", "0.2", "--repeats", "2"];
        if more.contains(&"--rate") {
            args.drain(1..3);
        }
        args.extend(more);
        let document = bench(&args);
        let (settings, result) = (&document["settings"], &document["result"]);
        assert_all_arrived(&result["delivery"]);
        are_percentiles(&result["cases"][0]);
        // The schedule has a slot for each message, however late the sender is.
        let rate = settings["rates_hz"][0].as_f64().unwrap();
        assert_eq!(count(&result["delivery"]["expected"]) as f64, 2.0 * rate * 0.2, "{result}");
    }
}

#[test]
fn ways_of_waiting_are_compared_on_idle_and_on_busy_cores() {
    let document = bench(&["wait", "--rate", "200,1000", "--seconds", "0.2", "--repeats", "2"]);
    let result = &document["result"];
    assert_all_arrived(&result["delivery"]);
    let cases = result["cases"].as_array().unwrap();
    let of = |case: &Value| {
        let rate = case["rate_hz"].as_f64().unwrap();
        (count(&case["loops"]) > 0, rate as u64, case["wait"].as_str().unwrap().to_owned())
    };
    let mut wanted = Vec::new();
    for busy in [false, true] {
        for rate in [200, 1000] {
            wanted.extend(["adaptive", "block"].map(|wait| (busy, rate, wait.to_owned())));
        }
    }
    assert_eq!(cases.iter().map(of).collect::<Vec<_>>(), wanted);
    for case in cases {
        are_percentiles(case);
        assert_eq!(case["runs"].as_array().unwrap().len(), 2);
        if case["wait"] == "block" {
            assert_eq!(case["p999_ratio"]["median"], 1.0, "with itself");
        }
    }
}

#[test]
fn round_trips_of_each_size() {
    let document = bench(&["rtt", "--size", "16,4K,100K", "--seconds", "0.1", "--repeats", "2"]);
    assert_all_arrived(&document["result"]["delivery"]);
    let sizes = document["result"]["cases"].as_array().unwrap();
    let lens: Vec<u64> = sizes.iter().map(|size| count(&size["size_bytes"])).collect();
    assert_eq!(lens, [16, 4096, 100 << 10]);
    for size in sizes {
        are_percentiles(size);
        assert!(size["round_trips"]["min"].as_f64() > Some(0.0), "{size}");
    }
    bench(&["rtt", "--size", "100K", "--seconds", "0.1", "--untouched", "--wait", "block"]);
}

#[test]
fn the_built_in_robot_loses_nothing() {
    let document = bench(&["topology", "--seconds", "0.2", "--repeats", "2"]);
    let result = &document["result"];
    assert_all_arrived(&result["delivery"]);
    is_spread(&result["robot"][0]["cores"]);
    is_spread(&result["robot"][0]["rss_bytes"]);
    let topics = result["topics"].as_array().unwrap();
    let received = |topic: &Value| {
        let runs = topic["runs"].as_array().unwrap().iter();
        runs.map(|run| run["received"].as_f64().unwrap()).sum::<f64>()
    };
    assert!(topics.iter().all(|topic| received(topic) > 0.0), "{result}");
    let all: f64 = topics.iter().map(received).sum();
    assert_eq!(all as u64, count(&result["delivery"]["received"]));
    assert_eq!(document["settings"]["nodes"], 10);
}

#[test]
fn custom_topology_is_run() {
    let env = TestEnv::new();
    // Two publishers on one topic with messages of two lengths, one of which also subscribes to it; a topic
    // without subscribers; an idle node.
    let text = "
        name = 'mine'
        [[node]]
        name = 'a'
        subscribes = ['shared']
        publishes = [{ topic = 'shared', bytes = 16, period_ms = 2 },
                     { topic = '/unheard', type = 'stamped4_int32', period_ms = 10 }]
        [[node]]
        name = 'b'
        subscribes = ['/shared']
        publishes = [{ topic = 'shared', type = 'stamped_vector', size = 5000, period_ms = 4 }]
        [[node]]
        name = 'c'
    ";
    let file = env.dir.join("mine.toml");
    fs::write(&file, text).unwrap();
    let document =
        bench(&["topology", file.to_str().unwrap(), "--seconds", "0.2", "--repeats", "1"]);
    assert_eq!(document["settings"]["topology"], "mine");
    let topics = document["result"]["topics"].as_array().unwrap();
    let of = |name: &str| topics.iter().find(|t| t["topic"] == name).unwrap();
    // 100 and 50 messages; each reaches both nodes.
    assert_eq!(of("/shared")["received"]["median"], 300.0);
    assert_eq!(count(&document["result"]["delivery"]["expected"]), 300);
    assert!(of("/unheard")["mean_latency_ns"].is_null());
    is_spread(&of("/shared")["mean_latency_ns"]);
    assert_all_arrived(&document["result"]["delivery"]);
}

#[test]
fn example_topology_is_valid() {
    let env = TestEnv::new();
    let text = rnet!(env, "bench", "topology", "--example").ok();
    let file = env.dir.join("example.toml");
    fs::write(&file, text).unwrap();
    let document =
        bench(&["topology", file.to_str().unwrap(), "--seconds", "0.1", "--repeats", "1"]);
    assert_eq!(document["settings"]["topology"], "walker");
}

#[test]
fn nodes_of_a_large_domain_match_and_detect_a_death() {
    let document = bench(&["nodes", "--nodes", "3,7", "--processes", "2"]);
    let domains = document["result"]["cases"].as_array().unwrap();
    let counts = |domain: &Value| ["nodes", "processes", "killed"].map(|of| domain[of].as_u64());
    assert_eq!(counts(&domains[0]), [Some(3), Some(2), Some(2)]);
    assert_eq!(counts(&domains[1]), [Some(7), Some(2), Some(4)]);
    for figure in ["open_ns", "met_ns", "noticed_ns", "descriptors"] {
        assert!(
            domains.iter().all(|d| d[figure]["median"].as_f64() > Some(0.0)),
            "{figure}: {document}"
        );
    }
}

#[test]
fn idle_nodes_are_watched_and_joined() {
    let document = bench(&["idle", "--nodes", "3", "--seconds", "0.2"]);
    let result = &document["result"];
    let (nodes, joins) = (&result["nodes"][0], &result["joins"][0]);
    for figure in ["rss_bytes", "node_rss_bytes"] {
        is_spread(&nodes[figure]);
    }
    is_spread(&joins["join_ns"]);
    is_spread(&joins["topic_bytes"]);
    assert_eq!(nodes["runs"].as_array().unwrap().len(), 3);
    bench(&["idle", "--nodes", "1", "--seconds", "0.1"]);
}

#[test]
fn default_output_is_text() {
    let env = TestEnv::new();
    let run = |args: &[&str]| {
        let all: Vec<&str> = ["bench"].iter().chain(args).copied().collect();
        env.run(&all).ok()
    };
    let text = run(&["throughput", "--seconds", "0.1"]);
    for word in ["machine", "3 runs of 0.1 s", "messages/s", "CPU", " 0 lost"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let text = run(&["latency", "--seconds", "0.1", "--repeats", "1"]);
    for word in ["p50", "p90", "p99", "p99.9", "max", "behind", " 0 lost"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let text = run(&["rtt", "--seconds", "0.05", "--repeats", "1"]);
    assert!(text.contains("TRIPS") && text.contains("1048576"), "{text}");
    let text = run(&["topology", "--seconds", "0.1", "--repeats", "1"]);
    assert!(text.contains("TOO LATE") && text.contains("/joint_command"), "{text}");
    let text = run(&["idle", "--nodes", "2", "--seconds", "0.1"]);
    for word in ["wake-ups/s", "memory", "small topic", "join"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn without_settings_it_runs_in_dev_shm_and_leaves_nothing() {
    let env = TestEnv::new();
    let mut command = env.command();
    // It also ignores a group in the environment.
    command.env_remove("RNET_DIR").env("RNET_GROUP", "no-such-group");
    command.args(["bench", "throughput", "--seconds", "0.1", "--repeats", "1"]);
    let run = command.spawn().unwrap();
    let place_of_run = format!("robot-net-bench-{}-", run.id());
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let names = fs::read_dir("/dev/shm").unwrap().flatten().map(|entry| entry.file_name());
    let left: Vec<_> =
        names.filter(|name| name.to_string_lossy().starts_with(&place_of_run)).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn invalid_settings_are_usage_errors() {
    let env = TestEnv::new();
    for (args, word) in [
        (&["throughput", "--size", "15"][..], "16 (its number"),
        (&["throughput", "--size", "2G"], "1073741824"),
        (&["throughput", "--size", "1T"], "unit"),
        (&["throughput", "--readers", "0"], "1..=512"),
        (&["throughput", "--readers", "513"], "1..=512"),
        (&["throughput", "--wait", "often"], "spin"),
        (&["throughput", "--seconds", "0"], "0.05"),
        (&["throughput", "--repeats", "0"], "1..=1000"),
        (&["latency", "--rate", "0"], "rate"),
        (&["latency", "--rate", "1e9"], "rate"),
        (&["rtt", "--size", "64,3G"], "1073741824"),
        (&["nodes", "--nodes", "1"], "2..="),
        (&["nodes", "--nodes", "2000"], "2..="),
        (&["idle", "--nodes", "0"], "1..=200"),
        (&["idle", "--nodes", "1000"], "1..=200"),
        (&["idle", "--domain", "lab"], "private domain"),
        (&["idle", "--group", "users"], "private domain"),
        (&["topology", "x.toml", "--example"], "cannot be used with"),
        (&["everything"], "everything"),
    ] {
        let all: Vec<&str> = ["bench"].iter().chain(args).copied().collect();
        let said = env.run(&all).fails(2);
        assert!(said.contains(word), "{args:?}: {said}");
    }
    assert_nothing_left(&env);
}

#[test]
fn an_invalid_topology_is_reported() {
    let env = TestEnv::new();
    let files = TestEnv::new();
    let file = |name: &str, text: &str| {
        fs::write(files.dir.join(name), text).unwrap();
        files.dir.join(name).to_str().unwrap().to_owned()
    };
    let period = "name = 'x'\n[[node]]\nname = 'a'\n\
                  publishes = [{ topic = 't', bytes = 20, period_ms = 0 }]";
    for (path, word) in [
        (files.dir.join("none.toml").to_str().unwrap().to_owned(), "No such file"),
        (files.dir.to_str().unwrap().to_owned(), "not a file"),
        (file("empty.toml", ""), "missing field"),
        (file("half.toml", "name = 'x'\n[[node"), "line 2"),
        (file("period.toml", period), "publisher of t: the period is 0 ms"),
        (file("binary.toml", "\u{0}\u{1}"), "is not in robot-net's TOML format"),
        (file("robot.yaml", period), "must end in .toml"),
    ] {
        let ran = rnet!(env, "--json", "bench", "topology", path);
        assert!(ran.stdout.is_empty(), "{ran:#?}");
        let said = ran.fails(1);
        let error: Value = serde_json::from_str(&said).unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(word) && message.contains(&path), "{word}: {message}");
    }
    assert_nothing_left(&env);
}

#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let env = TestEnv::new();
    let said = rnet!(env, "--dir", "/proc/none", "bench", "idle").fails(1);
    assert!(said.contains("/proc/none") && said.contains("--dir"), "{said}");
}

/// A bench that would run for an hour, with all its workers started.
fn long_bench(env: &TestEnv, args: &[&str], workers: usize) -> RunningCommand {
    let all: Vec<&str> =
        ["bench"].iter().chain(args).chain(&["--seconds", "3600"]).copied().collect();
    let run = env.spawn(&all);
    until("all workers", || workers_of(env).len() == workers);
    run
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn a_worker_that_is_killed_ends_the_bench() {
    let env = TestEnv::new();
    for (args, workers, name) in [
        (&["throughput", "--readers", "2"][..], 3, "KILL"),
        (&["latency"], 2, "TERM"),
        (&["rtt"], 2, "KILL"),
        (&["topology"], 10, "KILL"),
        (&["idle", "--nodes", "2"], 2, "KILL"),
    ] {
        let run = long_bench(&env, args, workers);
        signal(name, *workers_of(&env).last().unwrap());
        let CommandOutput { code, stderr, .. } = run.wait();
        assert_eq!(code, Some(1), "{args:?}: {stderr}");
        assert!(stderr.contains("the run is invalid") && stderr.contains("signal"), "{stderr}");
        assert_nothing_left(&env);
    }
}

#[test]
fn interrupt_stops_all_workers_cleanly() {
    let env = TestEnv::new();
    for name in ["INT", "TERM"] {
        let run = long_bench(&env, &["topology"], 10);
        run.signal(name);
        let ran = run.wait();
        assert_eq!(ran.code, Some(130), "{ran:#?}");
        assert_nothing_left(&env);
    }
}

#[test]
fn a_command_that_is_killed_takes_its_workers_with_it() {
    let env = TestEnv::new();
    for (args, workers) in [(&["throughput", "--wait", "spin"][..], 2), (&["idle"], 10)] {
        let mut run = long_bench(&env, args, workers);
        run.signal("KILL");
        run.wait_for_exit();
        until("all workers have exited", || processes_of(&env).is_empty());
        assert_nothing_left(&env);
    }
}

#[test]
fn next_bench_removes_leftovers_of_a_killed_one() {
    let env = TestEnv::new();
    let directory = |name: &str| {
        fs::create_dir_all(env.dir.join(name).join("run0")).unwrap();
        env.dir.join(name)
    };
    let (left, used) = (directory("robot-net-bench-1-0"), directory("robot-net-bench-2-0"));
    let others = directory("others");
    symlink(&others, env.dir.join("robot-net-bench-3-0")).unwrap();
    let held = fs::File::open(&used).unwrap();
    held.lock().unwrap();
    let run = || rnet!(env, "bench", "idle", "--nodes", "1", "--seconds", "0.1").ok();
    run();
    assert!(!left.exists());
    for dir in [&used, &others] {
        assert!(dir.join("run0").exists(), "{dir:?}");
    }
    drop(held);
    run();
    assert!(!used.exists() && others.join("run0").exists());
    // The symlink and its target.
    assert_eq!(fs::read_dir(&env.dir).unwrap().count(), 2);
}

#[test]
fn a_worker_removes_only_a_bench_dir() {
    let env = TestEnv::new();
    let precious = env.dir.join("precious");
    fs::create_dir(&precious).unwrap();
    for path in [precious.clone(), env.dir.join("robot-net-bench-1-0/../precious")] {
        let role = json!({ "busy": { "core": 0 } });
        let node = json!({ "name": "n", "bench_dir": path, "dir": path, "domain": "d" });
        let job = json!({ "node": node, "role": role });
        let mut worker = env.command().arg("bench-worker").stdin(Stdio::piped()).spawn().unwrap();
        // Sends a job, and then closes the worker's stdin.
        writeln!(worker.stdin.take().unwrap(), "{job}").unwrap();
        let output = worker.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("robot-net-bench-") && said.contains("precious"), "{said}");
        assert!(precious.exists());
    }
}

#[test]
fn a_worker_without_a_command_has_no_job() {
    let env = TestEnv::new();
    let said = rnet!(env, "bench-worker").fails(2);
    assert!(said.contains("rnet bench"), "{said}");
    assert!(!rnet!(env, "--help").ok().contains("bench-worker"));
}

/// Each watcher detects each death, in each of the ways.
#[test]
fn death_is_detected_by_all() {
    for more in [&["--settle", "0"][..], &["--settle", "0.01", "--apart"]] {
        let args = [&["death", "--kills", "3", "--watchers", "2"], more].concat();
        let ran = run(&args);
        // Only the command itself knows which kernel features it needs.
        let cannot = "cannot create pid namespaces here";
        if more.contains(&"--apart") && ran.code == Some(1) && ran.stderr.contains(cannot) {
            // Not `eprintln!`, which the test harness captures. `scripts/step.sh` reads this line.
            let line = format!("NOT RUN: death_is_detected_by_all: {}\n", ran.stderr.trim());
            let _ = std::io::stderr().write_all(line.as_bytes());
            continue;
        }
        let document = document(&args, &ran);
        let ways = document["result"]["cases"].as_array().unwrap();
        assert_eq!(ways.len(), 4);
        for way in ways {
            let way = &way["runs"][0];
            assert_eq!(way["count"], 6.0, "{way}");
            let ns = |key: &str| way[key].as_f64().unwrap();
            assert!(ns("min_ns") > 0.0 && ns("min_ns") <= ns("max_ns"), "{way}");
        }
    }
}
