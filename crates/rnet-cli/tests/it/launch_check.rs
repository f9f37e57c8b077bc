//! Requirements of a file that the machine does not meet: reported by `rnet launch --check` and by the start.

use crate::util;

use std::io::Write as _;
use std::process::{Command, Stdio};

use util::robot::{Robot, sleeper};
use util::{CommandOutput, RunningCommand};

fn check(robot: &Robot, options: &[&str]) -> CommandOutput {
    let all: Vec<&str> = ["--check"].iter().chain(options).copied().collect();
    let mut ran = robot.launch(&all).wait();
    ran.stderr = ran.stderr.replace(&robot.path("").display().to_string(), "");
    ran
}

#[test]
fn missing_hardware_is_reported_with_file_line_and_key() {
    let robot = Robot::new(
        r#"[node.arm]
command = ["./arm"]
cpus = [0, 1023]
on_failure = ["no-such-program"]
[node.leg]
command = ["./data"]
[node.eye]
command = ["./eye"]
dir = "nowhere"
[node.ear]
command = ["no-such-program", "-x"]
env = { PATH = "/a:b" }
[node.hand]
command = ["./made"]
dir = "made"
[node.other]
command = ["./none"]
host = "other"
"#,
    );
    std::fs::write(robot.path("data"), "").unwrap();
    std::fs::create_dir_all(robot.path("made/made")).unwrap();
    let ran = check(&robot, &[]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(
        ran.stdout.contains("/arm") && ran.stdout.contains("/leg"),
        "the plan is shown: {ran:#?}"
    );
    let path = std::env::var("PATH").unwrap();
    let expected = [
        "rnet: robot.toml:2:11: node.arm.command: expected a program: ./arm does not exist (install it, or correct the \
         path), found \"./arm\"",
        "rnet: robot.toml:3:8: node.arm.cpus: expected cores that nodes may use on this machine, 0",
        &format!(
            "rnet: robot.toml:4:14: node.arm.on_failure: expected a program in one of the PATH directories, {path} \
             (install it, or give its full path), found \"no-such-program\""
        ),
        "rnet: robot.toml:11:11: node.ear.command: expected a program in one of the PATH directories, /a:b (install it, \
         or give its full path), found \"no-such-program\"",
        "rnet: robot.toml:9:7: node.eye.dir: expected an existing directory (create it, or correct the path), found \
         \"nowhere\"",
        "rnet: robot.toml:14:11: node.hand.command: expected a program: made/./made is a directory, found \"./made\"",
        "rnet: robot.toml:6:11: node.leg.command: expected a program: ./data is not executable (chmod +x, or give its \
         interpreter as the first element), found \"./data\"",
    ];
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{ran:#?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}\n{expected}");
    }
    assert!(lines[1].ends_with(", found 1023"), "{}", lines[1]);
    let ran = check(&robot, &["--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""), "{ran:#?}");
    assert_eq!(ran.json()["unfit"].as_array().unwrap().len(), expected.len());
}

/// As a user without permissions and memory.
#[test]
fn limits_that_this_user_may_not_have_are_reported() {
    let robot = Robot::new(
        "[node.arm]\ncommand = [\"true\"]\nscheduler = \"fifo\"\npriority = 50\n[node.leg]\ncommand = [\"true\"]\n\
         memory_limit_mib = 100000000\n",
    );
    // Root keeps only the permissions that child processes inherit.
    let mut drops: Vec<&str> = Vec::new();
    if rustix::process::geteuid().is_root() {
        drops.extend(["setpriv", "--bounding-set", "-sys_nice,-sys_resource"]);
    }
    drops.extend(["prlimit", "--rtprio=0", "--data=1073741824"]);
    let dropped = |program: &str| {
        let mut command = Command::new(drops[0]);
        command.args(&drops[1..]).arg(program);
        command
    };
    if !dropped("true").output().is_ok_and(|ran| ran.status.success()) {
        // Not `println!`, which the test harness captures. `scripts/step.sh` reads this line.
        let line = b"NOT RUN: limits_that_this_user_may_not_have_are_reported: rights cannot be dropped here\n";
        let _ = std::io::stderr().write_all(line);
        return;
    }
    let mut command = dropped(env!("CARGO_BIN_EXE_rnet"));
    robot.env.set_environment(&mut command);
    command.args(["launch", "--check"]).arg(robot.path("robot.toml"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let ran = RunningCommand::start(command).wait();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let said = ran.stderr;
    let expected = "robot.toml:3:13: node.arm.scheduler: expected a scheduler that this user may use (see rnet doctor --realtime): \
                    Operation not permitted (os error 1), found scheduler fifo, priority 50\n";
    assert!(said.contains(expected), "{said}");
    let expected = "robot.toml:7:20: node.leg.memory_limit_mib: expected at most this user's limit, 1024 MiB (raise \
                    it: ulimit -H -d), found 100000000\n";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_start_reports_the_same_and_the_rest_of_the_robot_runs() {
    let setup = "[node.setup]\ncommand = [\"sh\", \"-c\", \"printf '#!/bin/sh\\\\nexec sleep 600\\\\n' > arm; chmod +x arm\"]\n\
                 ready = \"exited\"\n";
    let robot = Robot::new(&format!(
        "{setup}[node.arm]\ncommand = [\"./arm\"]\nafter = [\"setup\"]\n[node.eye]\ncommand = [\"sh\"]\n\
         dir = \"nowhere\"\nrestart = \"never\"\n{}",
        sleeper("leg", "")
    ));
    let mut launch = robot.launch(&["--reload"]);
    launch.wait_for_stderr("robot.toml:5:11: node.arm.command: expected a program: ");
    launch.wait_for_stderr("robot.toml:9:7: node.eye.dir: expected an existing directory");
    // A file that an earlier node creates exists when its dependent starts.
    launch.wait_for_stdout("/arm  started");
    robot.pids("leg.pid", 1);
    // A changed file is checked as well.
    robot.write(&sleeper("leg", "on_failure = [\"no-such-helper\"]"));
    launch.wait_for_stderr(
        "node.leg.on_failure: expected a program in one of the PATH directories, ",
    );
    assert_eq!(robot.pids("leg.pid", 1).len(), 1);
    launch.signal("INT");
    let ran = launch.wait();
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    // The system's error is only "No such file or directory", without the path.
    let why = "; dir: expected an existing directory (create it, or correct the path), found ";
    assert!(ran.stdout.contains(why), "{ran:#?}");
    let warnings = ran.stderr.matches("; the node is started anyway\n").count();
    assert_eq!(warnings, 3, "{ran:#?}");
}
