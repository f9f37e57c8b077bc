//! `rnet demo`: short runs, whose counts add up and which leave nothing behind.

use crate::util;

use std::os::unix::fs::PermissionsExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use util::processes::{assert_nothing_left, processes_of, until, workers_of};
use util::{RunningCommand, TestEnv};

/// Long enough for a busy machine to close the loop again.
const SECONDS: &str = "8";

/// Runs one test at a time, because two robots at once overload a small machine.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn the_robot_recovers_from_a_kill_and_every_loss_is_counted() {
    let (_alone, env) = (alone(), TestEnv::new());
    let ran = rnet!(env, "--json", "demo", "--model", "embedded", "--seconds", SECONDS);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_nothing_left(&env);
    let document = ran.json();
    assert_eq!(
        (&document["demo"]["processes"], &document["demo"]["version"]),
        (&10.into(), &rnet::VERSION.into())
    );
    let result = &document["result"];
    let topics = result["topics"].as_array().unwrap();
    assert_eq!(topics.len(), 9, "{topics:?}");
    for topic in topics {
        assert!(
            topic["received"].as_u64() > Some(0) && topic["latency"]["p50_ns"].as_u64() > Some(0),
            "{topic}"
        );
        assert_eq!((&topic["unseen"], &topic["out_of_order"]), (&0.into(), &0.into()), "{topic}");
    }
    for took in ["held_after_ms", "closed_after_ms"] {
        assert!(result[took].is_number(), "{result}");
    }
    // At least one stop, for the kill. The last stop is released, or the run ended before.
    assert_eq!(result["stops"][0][1], true, "{result}");
}

#[test]
fn demo_prints_a_summary_table() {
    let (_alone, env) = (alone(), TestEnv::new());
    let ran = rnet!(env, "demo", "--model", "embedded", "--seconds", SECONDS);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_nothing_left(&env);
    assert!(ran.stderr.contains("topic list") && ran.stderr.contains("SIGKILL"), "{ran:#?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].starts_with("TOPIC") && lines[1].starts_with("/battery/state"), "{ran:#?}");
    let last = lines.last().unwrap();
    assert!(last.starts_with("messages ") && last.ends_with(" 0 lost unseen"), "{last}");
}

#[test]
fn it_can_be_inspected_in_the_given_domain() {
    let (_alone, env) = (alone(), TestEnv::new());
    let run = env.spawn(&["demo", "--model", "embedded", "--seconds", "3600", "--domain", "lab"]);
    until("all nodes", || {
        let nodes = rnet!(env, "--domain", "lab", "--json", "node", "list");
        nodes.code == Some(0) && nodes.json()["nodes"].as_array().unwrap().len() == 10
    });
    run.signal("INT");
    assert_eq!(run.wait().code, Some(130));
    assert!(processes_of(&env).is_empty());
    // The domain remains, as always when nodes leave; the run's directory is removed.
    let left: Vec<_> = std::fs::read_dir(&env.dir).unwrap().flatten().collect();
    assert!(left.iter().all(|e| e.file_name().to_str().unwrap().ends_with("-lab")), "{left:?}");
}

#[test]
fn interrupt_stops_it_cleanly_and_a_kill_ends_its_nodes() {
    let (_alone, env) = (alone(), TestEnv::new());
    for (name, code) in [("INT", Some(130)), ("TERM", Some(130)), ("KILL", None)] {
        let run = env.spawn(&["demo", "--model", "embedded", "--seconds", "3600"]);
        until("all nodes", || workers_of(&env).len() == 10);
        run.signal(name);
        assert_eq!(run.wait().code, code, "{name}");
        until("no process", || processes_of(&env).is_empty());
        assert_nothing_left(&env);
    }
}

#[test]
fn unsupported_options_are_refused() {
    let (_alone, env) = (alone(), TestEnv::new());
    let said = rnet!(env, "demo", "--model", "embedded", "--seconds", "1").fails(2);
    assert!(said.contains("2 to 3600"), "{said}");
    let said = rnet!(env, "demo", "--group", "lab").fails(2);
    assert!(said.contains("--group"), "{said}");
    let mut command = env.command();
    command.args(["demo", "--model", "mujoco"]).env("PATH", "/nonexistent");
    let said = RunningCommand::start(command).wait().fails(1);
    assert!(said.contains("pip install 'rnet-….whl[demo]'"), "{said}");
    assert_nothing_left(&env);
    let _robot = env.node_in("robot", "lab");
    let said = rnet!(env, "demo", "--domain", "lab").fails(2);
    assert!(said.contains("/robot runs in lab"), "{said}");
}

#[test]
fn python_is_started_in_the_demo_directory() {
    let (_alone, env, folder) = (alone(), TestEnv::new(), TestEnv::new());
    let python = folder.dir.join("python3");
    std::fs::write(&python, "#!/bin/sh\npwd >\"$SEEN\"\nexit 1\n").unwrap();
    std::fs::set_permissions(&python, PermissionsExt::from_mode(0o755)).unwrap();
    let (seen, mut command) = (folder.dir.join("seen"), env.command());
    command.args(["demo", "--model", "mujoco"]).current_dir(&folder.dir);
    command.env("PATH", &folder.dir).env("SEEN", &seen);
    RunningCommand::start(command).wait().fails(1);
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(seen.starts_with(env.dir.join("robot-net-bench-").to_str().unwrap()), "{seen}");
    assert_nothing_left(&env);
}
