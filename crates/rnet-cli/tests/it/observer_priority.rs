//! Inspection tools run at lower priority than a robot's nodes; tools that operate the robot do not.

use crate::util;

use std::collections::BTreeMap;
use std::fs;

use rnet_record::read::Recording;
use util::processes::{processes_of, until};
use util::terminal::Terminal;
use util::{BackgroundPublisher, RunningCommand, TestEnv};

/// Scheduling policy and nice value of each thread of a process, by name; for equal names, the lowest nice
/// value.
fn threads(pid: u32) -> BTreeMap<String, (i32, i32)> {
    let mut found = BTreeMap::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let Ok(stat) = fs::read_to_string(task.path().join("stat")) else { continue };
        let (name, rest) = stat.rsplit_once(") ").unwrap();
        let name = name.split_once('(').unwrap().1.to_owned();
        // From the third field of proc_pid_stat(5) on: the nice value is the 19th, the policy the 41st.
        let fields: Vec<i32> =
            rest.split(' ').map(|field| field.trim().parse().unwrap_or(0)).collect();
        let is = (fields[41 - 3], fields[19 - 3]);
        let least = found.entry(name).or_insert(is);
        *least = is.min(*least);
    }
    found
}

const NORMAL: (i32, i32) = (libc::SCHED_OTHER, 0);
const BATCH: (i32, i32) = (libc::SCHED_BATCH, 0);
const BATCH_NICE_19: (i32, i32) = (libc::SCHED_BATCH, 19);

/// The only process that was started in the test environment.
fn only_process(env: &TestEnv) -> u32 {
    let processes = processes_of(env);
    let [pid] = processes[..] else { panic!("{processes:?}") };
    pid
}

/// Tests may be started at a low priority, which a process keeps: this thread and what it starts run at the
/// normal one. Raising it needs a right.
fn raise_to_normal_priority(test: &str) -> bool {
    let raised = rustix::process::setpriority_process(None, 0).is_ok();
    if !raised {
        eprintln!(
            "NOT RUN: {test}: it was started at a low priority, which this user may not raise"
        );
    }
    raised
}

#[test]
fn top_takes_no_cpu_time_from_a_node_and_still_draws() {
    if !raise_to_normal_priority("top_takes_no_cpu_time_from_a_node_and_still_draws") {
        return;
    }
    let env = TestEnv::new();
    let imu = env.node("imu");
    let pump = BackgroundPublisher::start(
        imu.publisher::<[u8]>("/angles").open().unwrap(),
        Box::from(*b"1"),
    );
    let mut terminal = Terminal::start(&env, &["top", "--interval", "0.2"]);
    terminal.until("/angles");
    let threads = threads(only_process(&env));
    assert!(threads.values().all(|is| *is == BATCH_NICE_19), "{threads:?}");
    terminal.send_keys("q");
    assert_eq!(terminal.end(), Some(0));
    drop(pump);
}

#[test]
fn recorder_runs_at_low_priority_and_records_all() {
    if !raise_to_normal_priority("recorder_runs_at_low_priority_and_records_all") {
        return;
    }
    let env = TestEnv::new();
    let imu = env.node("imu");
    let file = env.dir.join("run.mcap");
    let mut recorder = env.spawn(&["record", "--json", "--output", file.to_str().unwrap()]);
    recorder.wait_for_stdout("progress");
    let mut angles = imu.publisher::<[u8]>("/angles").open().unwrap();
    angles.send(b"0.25").unwrap();
    let found = threads(only_process(&env));
    for thread in ["rnet-rec-follow", "rnet-rec-write", "rnet-rec-sync"] {
        assert_eq!(found.get(thread), Some(&BATCH), "{thread}: {found:?}");
    }
    // A recorder that is stopped before it has found the publisher records none of its messages.
    recorder.wait_for_stdout("\"messages\":1,");
    recorder.signal("INT");
    let end = recorder.wait().json_lines().pop().unwrap();
    assert_eq!((&end["messages"], &end["missing"]), (&1.into(), &0.into()), "{end}");
    assert_eq!(Recording::open(&file).unwrap().channels().count(), 1);
}

#[test]
fn participants_keep_their_priority_and_a_setting_turns_lowering_off() {
    if !raise_to_normal_priority(
        "participants_keep_their_priority_and_a_setting_turns_lowering_off",
    ) {
        return;
    }
    let env = TestEnv::new();
    let publisher = env.spawn(&["topic", "pub", "/note", "--text", "hello", "--no-wait"]);
    let ordinary = |pid: u32| {
        let found = threads(pid);
        assert!(found.values().all(|is| *is == NORMAL), "{found:?}");
    };
    until("it publishes", || {
        processes_of(&env).iter().any(|pid| threads(*pid).contains_key("rnet-control"))
    });
    ordinary(only_process(&env));
    drop(publisher);

    let mut command = env.command();
    command.args(["record", "--json", "--output"]).arg(env.dir.join("run.mcap"));
    command.env("RNET_TUNE_THREADS", "0");
    let mut recorder = RunningCommand::start(command);
    recorder.wait_for_stdout("progress");
    ordinary(only_process(&env));
}
