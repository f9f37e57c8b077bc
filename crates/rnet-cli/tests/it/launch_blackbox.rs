//! The black box that `rnet launch` starts beside the nodes.

use crate::util;

use std::process::Command;

use serde_json::Value;
use util::robot::{Robot, is_alive, sleeper, until, wait_until_gone};

const RNET: &str = env!("CARGO_BIN_EXE_rnet");

/// A node of the domain that publishes.
fn lidar() -> String {
    format!(
        "[node.lidar]\ncommand = [\"{RNET}\", \"topic\", \"pub\", \"/scan\", \"--text\", \"scan\", \"--rate\", \"50\", \
         \"--node-name\", \"/lidar\"]\nready = [\"/scan\"]\nready_timeout_s = 60\n"
    )
}

fn status(robot: &Robot) -> Value {
    robot.run(&["blackbox", "status", "--json"]).json()
}

/// Waits until a field of the box's status matches, and returns the status.
#[track_caller]
fn until_status(robot: &Robot, holds: impl Fn(&Value) -> bool) -> Value {
    let poll = || {
        let ran = robot.run(&["blackbox", "status", "--json"]);
        if ran.code == Some(0) { ran.json() } else { Value::Null }
    };
    until(&|| Some(poll()).filter(|status| holds(status)), &|| poll().to_string())
}

fn pid_of_box(robot: &Robot) -> String {
    pid_of(robot, "/blackbox")
}

fn pid_of(robot: &Robot, name: &str) -> String {
    let nodes = robot.run(&["node", "list", "--json"]).json();
    let nodes = nodes.as_array().or_else(|| nodes["nodes"].as_array()).unwrap().clone();
    let found = nodes.iter().find(|node| node["node"] == name || node["name"] == name);
    found.map_or_else(String::new, |node| node["pid"].to_string())
}

#[test]
fn a_death_makes_a_file_and_a_stop_does_not() {
    let text = lidar() + "restart = \"always\"\n[blackbox]\nafter_s = 0.1\nmemory_mib = 80\n";
    let robot = Robot::with_box(&text);
    let check = robot.run(&["launch", robot.path("robot.toml").to_str().unwrap(), "--check"]).ok();
    assert!(check.contains("rnet blackbox run --before 30 --after 0.1"), "{check}");
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout("/blackbox  started");
    launch.wait_for_stdout("/lidar  ready");
    let begun = until_status(&robot, |status| status["messages"].as_u64() > Some(0));
    assert_eq!(begun["memory_bytes"], 80 << 20);
    assert_eq!(begun["triggers"], serde_json::json!(["death", "fallback", "log fatal"]));
    let top = robot.run(&["top", "--once", "--interval", "0.1"]).ok();
    assert!(top.contains(" of 80 MiB in "), "{top}");
    let doctor = robot.run(&["doctor"]).stdout;
    assert!(doctor.contains("the black box keeps ") && doctor.contains("83.89 MB"), "{doctor}");
    // A requested restart is not a death.
    robot.run(&["node", "restart", "lidar"]).ok();
    launch.wait_for_stdout("/lidar  ready");
    assert_eq!(status(&robot)["fired"], 0);
    // An operator requested it.
    robot.run(&["node", "kill", "lidar"]).ok();
    launch.wait_for_stdout("/lidar  failed  killed by SIGKILL");
    launch.wait_for_stdout("/lidar  ready");
    assert_eq!(status(&robot)["fired"], 0);
    let pid = pid_of(&robot, "/lidar");
    assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    let after = until_status(&robot, |status| status["files"] == 1);
    assert_eq!(after["last"]["why"], "/lidar has died");
    launch.wait_for_stdout("/lidar  ready");
    let pid = pid_of_box(&robot);
    launch.signal("INT");
    let ran = launch.wait();
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    let at = |what: &str| ran.stdout.rfind(what).unwrap_or_else(|| panic!("{what}: {ran:#?}"));
    assert!(at("/lidar  stopped") < at("/blackbox  stopped"), "{ran:#?}");
    wait_until_gone(&pid);
    let list = robot.run(&["blackbox", "list", "--json"]).json();
    assert_eq!(list.as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list[0]["fired"].as_array().unwrap().len(), 1, "{list}");
}

#[test]
fn the_box_outlives_the_launcher_and_is_taken_over() {
    let robot = Robot::with_box(&sleeper("arm", ""));
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout("/arm  started");
    until_status(&robot, |status| !status.is_null());
    let pid = pid_of_box(&robot);
    launch.signal("KILL");
    launch.wait();
    assert!(is_alive(&pid));
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout(&format!("/blackbox  adopted  pid {pid}"));
    // If it is killed, it restarts like any node.
    robot.run(&["node", "kill", "blackbox"]).ok();
    launch.wait_for_stdout("/blackbox  failed  killed by SIGKILL");
    launch.wait_for_stdout("/blackbox  started");
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(130));
}

#[test]
fn a_domain_has_one_box_however_many_launch() {
    let robot = Robot::with_box(&sleeper("arm", ""));
    let folder = robot.path("files").to_string_lossy().into_owned();
    let mut by_hand = robot.env.spawn(&["blackbox", "run", "-o", &folder]);
    by_hand.wait_for_stderr("keeps up to");
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout("/blackbox  waits  the domain already has a black box, process ");
    launch.wait_for_stdout("/arm  started");
    // A launch of another file in the same domain.
    let other = robot.path("other.toml");
    std::fs::write(&other, sleeper("leg", "")).unwrap();
    by_hand.signal("INT");
    by_hand.wait();
    launch.wait_for_stdout("/blackbox  started");
    until_status(&robot, |status| !status.is_null());
    let mut second = robot.env.spawn(&["launch", other.to_str().unwrap()]);
    second.wait_for_stdout("/blackbox  waits  the domain already has a black box, that of ");
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(130));
    second.wait_for_stdout("/blackbox  started");
    second.signal("INT");
    assert_eq!(second.wait().code, Some(130));
}

#[test]
fn a_launch_ends_when_its_nodes_have_ended_and_the_box_with_it() {
    let robot = Robot::with_box("[node.once]\ncommand = [\"true\"]\n");
    let ran = robot.launch(&[]).wait();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.contains("/blackbox  stopped"), "{ran:#?}");
    // A box that cannot run does not stop the robot's work.
    robot.write(
        "[node.once]\ncommand = [\"sleep\", \"0.3\"]\n[blackbox]\noutput = \"/proc/none\"\n",
    );
    let ran = robot.launch(&[]).wait();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.contains("/blackbox  failed"), "{ran:#?}");
}
