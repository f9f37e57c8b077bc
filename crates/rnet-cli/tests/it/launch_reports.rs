//! What `rnet launch` reports about a launch, and what `rnet doctor` reports after it.

use crate::util;

use util::robot::{Robot, is_alive, sleeper, wait_until_gone};

/// The doctor's problems with the launched nodes.
fn problems(robot: &Robot) -> Vec<String> {
    let found = robot.run(&["doctor", "--json"]).json();
    let findings = found["findings"].as_array().unwrap().iter();
    let wrong = findings.filter(|of| of["check"] == "launch" && of["level"] == "problem");
    wrong.map(|of| of["what"].as_str().unwrap().to_owned()).collect()
}

/// A node that fails at once and is given up.
fn broken(name: &str) -> String {
    format!("[node.{name}]\ncommand = [\"sh\", \"-c\", \"exit 3\"]\nrestart = \"never\"\n")
}

#[test]
fn requested_stops_are_not_problems() {
    let robot = Robot::with_box(&(sleeper("a", "") + &sleeper("b", "")));
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout("/a  started");
    launch.wait_for_stdout("/b  started");
    assert_eq!(robot.run(&["node", "stop", "a"]).ok(), "stopped /a\n");
    assert_eq!(problems(&robot), [""; 0], "an operator has stopped it");
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(130));
    assert_eq!(problems(&robot), [""; 0], "the launch was stopped");
    let status = robot.run(&["status", "--over", "0.1"]).ok();
    assert!(
        status.contains("all is well: all nodes started by rnet launch were stopped"),
        "{status}"
    );
}

#[test]
fn failed_node_is_a_problem_until_it_is_no_longer_expected() {
    let robot = Robot::new(&(broken("bad") + &sleeper("a", "")));
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout("/bad  given-up  exit code 3");
    robot.pids("a.pid", 1);
    let failed = "the launched node /bad is not running: exit code 3, after 0 restarts";
    assert_eq!(problems(&robot), [failed]);
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(1), "it was given up");
    assert_eq!(problems(&robot), [""; 0], "its launch was stopped");
    // A launch that ends by itself after a failure.
    robot.write(&(broken("bad") + &broken("old")));
    assert_eq!(robot.launch(&[]).wait().code, Some(1));
    assert_eq!(problems(&robot).len(), 2);
    robot.write(&broken("bad"));
    assert_eq!(robot.launch(&[]).wait().code, Some(1));
    assert_eq!(problems(&robot), [failed], "the file no longer contains the other node");
    assert_eq!(robot.run(&["node", "logs", "old"]).ok(), "");
    assert_eq!(robot.run(&["node", "stop", "bad"]).ok(), "/bad is not running\n");
    assert_eq!(problems(&robot), [""; 0], "an operator leaves it as it is");
    assert_eq!(robot.launch(&[]).wait().code, Some(1));
    assert_eq!(problems(&robot), [failed], "it was started again, and has failed again");
}

#[test]
fn failure_of_a_node_removed_from_the_file_is_resolved() {
    let robot = Robot::new(&(broken("bad") + &sleeper("a", "")));
    let mut launch = robot.launch(&["--reload"]);
    launch.wait_for_stdout("/bad  given-up  exit code 3");
    robot.pids("a.pid", 1);
    assert_eq!(problems(&robot).len(), 1);
    robot.write(&sleeper("a", ""));
    launch.wait_for_stdout("/bad  stopping  removed from the file");
    assert_eq!(problems(&robot), [""; 0]);
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(130));
}

#[test]
fn a_second_stop_of_a_launch_lists_running_nodes() {
    let deaf = "[node.deaf]\ncommand = [\"sh\", \"-c\", \"trap '' INT TERM; echo $$$$ > deaf.pid; while :; do sleep 0.05; \
                done\"]\nafter = [\"base\"]\ninterrupt_timeout_s = 1\nstop_timeout_s = 2\n";
    let robot = Robot::new(&(sleeper("base", "") + deaf));
    for options in [&[][..], &["--json"], &["--watch"]] {
        let launch = robot.launch(options);
        let deaf = robot.pids("deaf.pid", 1).remove(0);
        let base = robot.pids("base.pid", 1).remove(0);
        launch.signal("INT");
        launch.signal("TERM");
        let ran = launch.wait();
        assert_eq!(ran.code, Some(130), "{ran:#?}");
        let said = ran.stdout + &ran.stderr;
        let of = |pid: &str| {
            said.lines().find(|line| line.contains(&format!("pid {pid}, "))).expect(&said)
        };
        let is_said = ["goes-on", "keeps running"].iter().any(|word| of(&deaf).contains(word));
        assert!(of(&deaf).contains("/deaf") && is_said, "{said}");
        assert!(of(&deaf).contains("asked to stop; killed after 3 s"), "{said}");
        assert!(of(&base).contains("/base") && of(&base).contains("not asked to stop"), "{said}");
        // The keeper stops the node without the launcher.
        wait_until_gone(&deaf);
        assert!(is_alive(&base), "the base node was not asked to stop");
        assert_eq!(robot.run(&["node", "stop", "base"]).ok(), "stopped /base\n");
        for name in ["deaf.pid", "base.pid"] {
            std::fs::remove_file(robot.path(name)).unwrap();
        }
    }
}

#[test]
fn a_launch_of_nothing_reports_it() {
    let robot = Robot::new("");
    let nothing = |text: &str, options: &[&str], why: &str| {
        robot.write(text);
        for option in [None, Some("--check")] {
            let all: Vec<&str> = options.iter().copied().chain(option).collect();
            let ran = robot.launch(&all).wait();
            assert_eq!(ran.code, Some(0), "{ran:#?}");
            let said = ran.stderr.replace(&robot.path("").display().to_string(), "");
            assert_eq!(said, format!("rnet: no nodes to start on host {why}\n"));
        }
    };
    let sim = "[var]\nsim = false\n".to_owned() + &sleeper("a", "when = { sim = true }");
    let desk = sleeper("b", "host = \"desk\"");
    nothing("", &["--host", "lab"], "lab: robot.toml has no nodes");
    nothing(&sim, &["--host", "lab"], "lab: when excludes all 1 nodes of robot.toml");
    let why = "desk: host or when excludes all 1 nodes of robot.toml; its hosts are \"base\"";
    nothing(
        &format!("{sim}host = \"base\"\n"),
        &["--host", "base"],
        &why.replace("desk:", "base:"),
    );
    // The hosts of a file that is not read are unknown.
    let more = "[var]\nmore = false\n[[include]]\nfile = \"more.toml\"\nwhen = { more = true }\n";
    let why = "lab: host or when excludes all 1 nodes of robot.toml; its hosts are \"desk\"";
    nothing(&format!("{more}{desk}"), &["--host", "lab"], why);
}
