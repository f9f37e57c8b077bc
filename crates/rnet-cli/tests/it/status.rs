//! `rnet status`.

use crate::util;

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use util::robot::{Robot, until};
use util::{BackgroundPublisher, RunningCommand, TestEnv};

const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_domain_without_problems_is_well() {
    let env = TestEnv::new();
    let (imu, control) = (env.node("imu"), env.node("control"));
    let _angles = control.subscriber::<[u8]>("/angles").open().unwrap();
    let pump = BackgroundPublisher::start(
        imu.publisher::<[u8]>("/angles").open().unwrap(),
        Box::from(*b"1"),
    );
    let text = rnet!(env, "status", "--over", "0.1", "/imu", "/control").ok();
    assert!(text.contains("2 nodes, 1 topic\nall is well"), "{text}");
    let document = rnet!(env, "status", "--over", "0.1", "--json").json();
    assert_eq!((&document["ok"], &document["nodes"]), (&true.into(), &2.into()), "{document}");
    let none = serde_json::json!([]);
    assert_eq!((&document["topics"], &document["problems"]), (&1.into(), &none), "{document}");
    drop(pump);
}

#[test]
fn expected_node_that_does_not_run_is_a_problem() {
    let env = TestEnv::new();
    let _imu = env.node("imu");
    let ran = rnet!(env, "status", "--over", "0.1", "/imu", "/control");
    let text = &ran.stdout;
    assert_eq!(ran.code, Some(1), "{text}");
    assert!(text.contains("PROBLEM  node /control is not running\n         -> start it"), "{text}");
    assert_eq!(text.matches("PROBLEM").count(), 1, "{text}");
}

#[test]
fn domain_without_nodes_is_a_problem() {
    let env = TestEnv::new();
    let ran = rnet!(env, "status", "--over", "0.1");
    let text = &ran.stdout;
    assert_eq!(ran.code, Some(1), "{text}");
    assert!(text.contains("PROBLEM  no node has joined this domain yet: /"), "{text}");
    assert!(text.contains(" does not exist"), "{text}");
    // `rnet top` reports the same.
    let text = rnet!(env, "top", "--once", "--interval", "0.1").ok();
    assert!(text.contains("PROBLEM  no node has joined this domain yet"), "{text}");
    let text = rnet!(env, "metrics", "--over", "0.1").ok();
    assert!(text.contains(r#"rnet_problems{domain="clitest",check="domain"} 1"#), "{text}");
    // A domain whose nodes have exited is not a problem: they may all have been stopped.
    drop(env.node("imu"));
    assert!(rnet!(env, "status", "--over", "0.1").ok().contains("all is well"));
}

#[test]
fn incompatibilities_and_losses_are_problems_while_they_last() {
    let env = TestEnv::new();
    let (camera, display) = (env.node("camera"), env.node("display"));
    let _image = camera.publisher::<[u8]>("/image").open().unwrap();
    let shown = display.subscriber::<[u8]>("/image").reliable().open().unwrap();
    let document = rnet!(env, "status", "--over", "0.1", "--json").json();
    assert_eq!(document["problems"][0]["check"], "qos", "{document}");
    assert!(document["problems"][0]["advice"].is_string(), "{document}");
    drop(shown);
    what_is_lost_is_a_problem_while_it_is(&env, "/scan");
}

/// A reader that is overrun: a current loss is a problem, a past one is not.
fn what_is_lost_is_a_problem_while_it_is(env: &TestEnv, topic: &str) {
    let (camera, display) = (env.node("camera2"), env.node("display2"));
    let scans = camera.publisher::<[u8]>(topic).log_len_bytes(64 << 10).open().unwrap();
    let mut slow = display.subscriber::<[u8]>(topic).keep_all().open().unwrap();
    let pump = BackgroundPublisher::start(scans, vec![0; 2000].into());
    let begun = Instant::now();
    let seen = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !seen.load(Ordering::Relaxed) {
                while slow.try_recv().unwrap().is_some() {}
                std::thread::sleep(Duration::from_millis(200)); // sleep: simulates a slow reader
            }
        });
        while !seen.load(Ordering::Relaxed) {
            let document = rnet!(env, "status", "--over", "1", "--json").json();
            let problems = document["problems"].as_array().unwrap();
            let is_found = problems.iter().any(|problem| problem["check"] == "loss");
            seen.store(is_found || begun.elapsed() > LONG, Ordering::Relaxed);
            assert!(is_found || begun.elapsed() < LONG, "{document}");
        }
    });
    drop(pump);
    rnet!(env, "status", "--over", "0.1").ok();
}

#[test]
fn given_up_node_is_a_problem_and_a_stopped_one_is_not() {
    let robot = Robot::new(
        "[node.fails]\ncommand = [\"sh\", \"-c\", \"exit 7\"]\n\
         [node.stays]\ncommand = [\"sleep\", \"600\"]\n",
    );
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout("/fails");
    let status =
        || robot.run(&["status", "--over", "0.1", "--json"]).json()["problems"].to_string();
    let mut problems = String::new();
    util::processes::until("the failed node is named", || {
        problems = status();
        problems.contains("the launched node /fails is not running: exit code 7")
    });
    assert!(
        problems.contains("rnet node restart /fails") && !problems.contains("/stays"),
        "{problems}"
    );
    robot.run(&["node", "stop", "/stays"]).ok();
    let problems = status();
    assert!(problems.contains("/fails") && !problems.contains("/stays"), "{problems}");
    robot.run(&["node", "stop", "/fails"]).ok();
    let problems = status();
    assert!(!problems.contains("launched node"), "{problems}");
    launch.signal("INT");
    launch.wait();
}

/// Calls use internal topics, which only robot-net uses.
#[test]
fn internal_topics_are_neither_judged_nor_listed_nor_counted() {
    let env = TestEnv::new();
    let (server, client) = (env.node("server"), env.node("client"));
    let service = server.service::<[u8], [u8]>("/plan").serve(|text| Ok(text.to_vec())).unwrap();
    client.call_timeout::<[u8], [u8]>("/plan", b"x", LONG).unwrap();
    let _scan = server.publisher::<[u8]>("/scan").open().unwrap();
    // Compatible pairs that do not match, and names that differ by a letter.
    let _asks = client.publisher::<[u8]>("/_rnet/call/plan/s00000001/request").open().unwrap();
    let _near = client.subscriber::<[u8]>("/_rnet/call/plan/s0000001/request").open().unwrap();
    let _deaf =
        client.subscriber::<[u8]>("/_rnet/call/plan/s00000001/request").reliable().open().unwrap();
    assert_eq!(env.run(&["topic", "list"]).ok(), "/scan\n");
    let all = env.run(&["topic", "list", "--all"]).ok();
    assert!(all.contains("/scan\n") && all.contains("/_rnet/call/plan/"), "{all}");
    let node = env.run(&["node", "info", "server"]).ok();
    assert!(node.contains("/scan") && !node.contains("_rnet"), "{node}");
    assert!(env.run(&["node", "info", "server", "--all"]).ok().contains("/_rnet/call/plan/"));
    let text = rnet!(env, "status", "--over", "0.1").ok();
    assert!(text.contains("2 nodes, 1 topic\nall is well"), "{text}");
    let text = env.run(&["doctor"]).ok();
    assert!(!text.contains("_rnet"), "{text}");
    drop(service);
}

/// A callback that panics is called once and dropped: later inspections still report it.
#[test]
fn a_callback_that_panicked_is_a_problem_until_its_node_ends() {
    const DROPPED: &str = "PROBLEM  1 callback of /control panicked and is not called again";
    let env = TestEnv::new();
    let (imu, control) = (env.node("imu"), env.node("control"));
    let called = control.subscriber::<[u8]>("/angles").open().unwrap().on(|_| panic!("of a test"));
    let mut angles = imu.publisher::<[u8]>("/angles").open().unwrap();
    angles.wait_for_subscribers_timeout(1, LONG).unwrap();
    angles.send(b"1").unwrap();
    let tools =
        [&["status", "--over", "0.1"][..], &["top", "--once", "--interval", "0.1"], &["doctor"]];
    let found = || env.run(tools[0]).stdout.contains(DROPPED).then_some(());
    until(&found, &String::new);
    for tool in tools {
        let ran = env.run(tool);
        assert!(ran.stdout.contains(DROPPED), "{tool:?}: {ran:#?}");
        // It is reported once, as a panic.
        assert!(!ran.stdout.contains("callbacks of /control failed"), "{tool:?}: {ran:#?}");
    }
    assert_eq!(env.run(tools[0]).code, Some(1));
    drop((called, control));
    assert!(rnet!(env, "status", "--over", "0.1").ok().contains("all is well"));
}

/// The handler continues: its failures are a problem only while they occur.
#[test]
fn failing_handler_is_a_problem_while_it_fails() {
    const FAILED: &str = "callbacks of /control failed ";
    let env = TestEnv::new();
    let (imu, control) = (env.node("imu"), env.node("control"));
    let serve = control.service::<[u8], [u8]>("/plan");
    let _plan = serve.serve(|_: &[u8]| -> Result<Vec<u8>, _> { panic!("of a test") }).unwrap();
    let (seen, status) = (AtomicBool::new(false), &["status", "--over", "0.1"][..]);
    assert!(env.run(status).ok().contains("all is well"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !seen.load(Ordering::Relaxed) {
                imu.call_timeout::<[u8], [u8]>("/plan", b"1", LONG).map(drop).unwrap_err();
            }
        });
        for tool in [status, &["top", "--once", "--interval", "0.1"][..], &["doctor"]] {
            let found = || Some(env.run(tool).stdout).filter(|text| text.contains(FAILED));
            let text = until(&found, &String::new);
            assert!(!text.contains("is not called again"), "{tool:?}: {text}");
        }
        seen.store(true, Ordering::Relaxed);
    });
    assert!(env.run(status).ok().contains("all is well"));
}

/// The process of a node that only signals end.
#[test]
#[ignore = "node process of another test"]
fn free_node() {
    if std::env::var_os("RNET_DIR").is_none() {
        return;
    }
    let _node = rnet::Node::new("free").unwrap();
    loop {
        std::thread::park();
    }
}

/// Starts the process of [`free_node`], and waits until it has joined.
fn start_free_node(env: &TestEnv) -> RunningCommand {
    let mut command = Command::new(std::env::current_exe().unwrap());
    env.set_environment(&mut command);
    command.args(["--exact", "status::free_node", "--ignored"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let free = RunningCommand::start(command);
    let is_there = || env.run(&["node", "list"]).stdout.contains("/free").then_some(());
    until(&is_there, &String::new);
    free
}

/// An ignored stop does not make a later death a normal exit.
#[test]
fn a_process_that_ignores_a_stop_dies_when_it_is_killed() {
    let env = TestEnv::new();
    let mut command = Command::new("sh");
    env.set_environment(&mut command);
    command.args(["-c", "trap '' INT TERM; exec \"$0\" \"$@\""]);
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "status::free_node", "--ignored"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut free = RunningCommand::start(command);
    let is_there = || env.run(&["node", "list"]).stdout.contains("/free").then_some(());
    until(&is_there, &String::new);
    let said = env.run(&["node", "stop", "free"]).fails(1);
    assert!(
        said.contains("is still running 5 s after SIGTERM; kill it with rnet node kill /free"),
        "{said}"
    );
    env.run(&["node", "kill", "free"]).ok();
    free.wait_for_exit();
    let ran = rnet!(env, "status", "--over", "0.1");
    assert!(ran.stdout.contains("node /free has died"), "{ran:#?}");
}

/// `status`, `top` and `doctor` share one diagnosis: each must report the same about a dead node.
#[test]
fn a_node_that_has_died_is_a_problem_and_one_that_has_left_is_not() {
    const DIED: &str = "node /free has died: its process exited without leaving the domain";
    let tools =
        [&["status", "--over", "0.1"][..], &["top", "--once", "--interval", "0.1"], &["doctor"]];
    for tool in tools {
        for (word, has_died) in [("kill", true), ("stop", false)] {
            let env = TestEnv::new();
            let mut free = start_free_node(&env);
            env.run(&["node", word, "free"]).ok();
            free.wait_for_exit();
            let ran = env.run(tool);
            assert_eq!(ran.stdout.contains(DIED), has_died, "{tool:?} after {word}: {ran:#?}");
            // The command succeeded. Only doctor reports problems of the machine.
            let codes = match (tool[0], has_died) {
                ("status", true) => [1, 1],
                ("doctor", _) => [0, 1],
                _ => [0, 0],
            };
            assert!(ran.code.is_some_and(|code| codes.contains(&code)), "{tool:?}: {ran:#?}");
        }
    }
}

/// Live nodes sweep a dead one within milliseconds; later and repeated inspections still report it.
#[test]
fn a_death_that_was_swept_is_a_problem_until_the_node_is_back() {
    const DIED: &str = "node /free has died";
    const STATUS: &[&str] = &["status", "--over", "0.1"];
    let env = TestEnv::new();
    let _living = env.node("imu");
    let die = || {
        let mut free = start_free_node(&env);
        free.signal("KILL");
        free.wait_for_exit();
        let nodes = env.domain_dir().join("nodes");
        // Only the folder of the live node is left.
        let is_swept = || std::fs::read_dir(&nodes).unwrap().count() == 1;
        until(&|| is_swept().then_some(()), &String::new);
    };
    die();
    for tool in [STATUS, STATUS, &["top", "--once", "--interval", "0.1"], &["doctor"], STATUS] {
        let ran = env.run(tool);
        assert!(ran.stdout.contains(DIED), "{tool:?}: {ran:#?}");
    }
    let back = env.node("free");
    assert!(env.run(STATUS).ok().contains("all is well"));
    drop(back);
    assert!(env.run(STATUS).ok().contains("all is well"));
    die();
    assert!(env.run(STATUS).stdout.contains(DIED));
    env.run(&["domain", "clean"]).ok();
    assert!(env.run(STATUS).ok().contains("all is well"));
}
