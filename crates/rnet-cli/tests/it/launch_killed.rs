//! `rnet launch` in the short-lived states that a SIGKILL leaves, each held as long as the test needs it.

use crate::util;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use util::RunningCommand;
use util::robot::{Robot, is_alive, sleeper, stat, until, wait_until_gone};

/// A launcher that is killed between fork and exec leaves a child that holds its lock until exec. The test
/// holds the lock in place of that child.
struct LeftLock {
    path: PathBuf,
    _lock: File,
}

impl LeftLock {
    /// Kills the launcher of a robot with the node `a`; returns its lock and the node's process id.
    fn of_killed_launcher(robot: &Robot) -> (LeftLock, String) {
        let mut first = robot.launch(&[]);
        first.wait_for_stdout("/a  started");
        let a = robot.pids("a.pid", 1).remove(0);
        first.signal("KILL");
        first.wait_for_exit();
        let folder = robot.launch_file("");
        let mut names = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path());
        let path = names.find(|path| path.to_string_lossy().contains("/launcher-")).unwrap();
        let lock = File::options().write(true).open(&path).unwrap();
        lock.lock().unwrap();
        (LeftLock { path, _lock: lock }, a)
    }

    /// Waits until a command has opened the lock. One that gives up exits.
    fn wait_until_opened_by(&self, command: &RunningCommand) {
        let pid = command.pid().to_string();
        let has_opened = |path: &Path| {
            let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
            let mut targets = fds.filter_map(|fd| std::fs::read_link(fd.path()).ok());
            targets.any(|target| target == path).then_some(())
        };
        let has_ended = || (!is_alive(&pid)).then_some(());
        until(&|| has_opened(&self.path).or_else(has_ended), &String::new);
    }
}

#[test]
fn a_lock_that_outlives_its_launcher_delays_the_next_launcher() {
    let robot = Robot::new(&sleeper("a", ""));
    let (lock, a) = LeftLock::of_killed_launcher(&robot);
    let mut next = robot.launch(&[]);
    lock.wait_until_opened_by(&next);
    drop(lock);
    next.wait_for_stdout(&format!("/a  adopted  pid {a}"));
    next.signal("INT");
    assert_eq!(next.wait().code, Some(130));
    wait_until_gone(&a);
}

#[test]
fn a_launcher_that_waits_for_a_lock_can_be_interrupted() {
    let robot = Robot::new(&sleeper("a", ""));
    let (lock, a) = LeftLock::of_killed_launcher(&robot);
    let next = robot.launch(&[]);
    lock.wait_until_opened_by(&next);
    next.signal("INT");
    assert_eq!(next.wait().code, Some(130));
    assert!(is_alive(&a), "it has not begun to launch");
}

/// No launcher has the node: `restart` starts it itself.
#[test]
fn restart_beside_a_lock_that_outlives_its_launcher_starts_the_node() {
    let robot = Robot::new(&sleeper("a", ""));
    let (lock, a) = LeftLock::of_killed_launcher(&robot);
    let mut command = robot.env.command();
    command.args(["node", "restart", "a"]);
    let restart = RunningCommand::start(command);
    lock.wait_until_opened_by(&restart);
    drop(lock);
    assert_eq!(restart.wait().code, Some(0));
    wait_until_gone(&a);
    assert!(is_alive(&robot.pids("a.pid", 2)[1]));
}

/// Nobody else may start the node, and it is not said to run.
#[test]
fn restart_beside_a_stopped_launcher_waits_for_it() {
    let robot = Robot::new(&sleeper("a", ""));
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout("/a  started");
    let a = robot.pids("a.pid", 1).remove(0);
    launch.signal("STOP");
    let mut command = robot.env.command();
    command.args(["node", "restart", "a"]);
    let restart = RunningCommand::start(command);
    wait_until_gone(&a);
    std::thread::sleep(Duration::from_millis(500)); // sleep: time to exit too early
    assert!(is_alive(&restart.pid().to_string()));
    launch.signal("CONT");
    assert_eq!(restart.wait().code, Some(0));
    robot.pids("a.pid", 2);
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(130));
}

/// The kernel releases the lock of a killed keeper before it kills the keeper's node. A process of the test
/// replaces that keeper.
#[test]
fn a_node_does_not_start_while_its_last_keeper_exits() {
    let robot = Robot::new(&sleeper("a", ""));
    let mut first = robot.launch(&[]);
    first.wait_for_stdout("/a  started");
    first.signal("INT");
    assert_eq!(first.wait().code, Some(130));
    let mut sleep = Command::new("sleep");
    sleep.arg("600").stdout(Stdio::piped()).stderr(Stdio::piped());
    let keeper = RunningCommand::start(sleep);
    let pid = keeper.pid().to_string();
    let path = robot.launch_file("a.json");
    let read = || serde_json::from_slice::<Value>(&std::fs::read(&path).unwrap()).unwrap();
    let mut record = read();
    record["keeper"]["pid"] = json!(keeper.pid());
    record["keeper"]["start_ticks"] = json!(stat(&pid).unwrap()[19].parse::<u64>().unwrap());
    (record["main"], record["end"], record["stopped_keepers"]) =
        (Value::Null, Value::Null, json!([]));
    std::fs::write(&path, record.to_string()).unwrap();
    let mut next = robot.launch(&[]);
    next.wait_for_stdout("/a  ");
    assert_eq!(read()["keeper"]["pid"], json!(keeper.pid()), "another keeper has the node");
    drop(keeper);
    next.wait_for_stdout("/a  started");
    next.signal("INT");
    assert_eq!(next.wait().code, Some(130));
}

/// The stop belongs to a killed launch; the next launch runs the node.
#[test]
fn a_node_that_an_earlier_launch_was_stopping_starts_again() {
    let robot = Robot::new(
        "[node.a]\ncommand = [\"sh\", \"-c\", \"trap 'touch told; until test -e go; do sleep 0.05; done; exit 0' INT; \
         echo $$$$ >> a.pid; while :; do sleep 0.05; done\"]\ninterrupt_timeout_s = 600\n",
    );
    let mut first = robot.launch(&[]);
    first.wait_for_stdout("/a  started");
    robot.pids("a.pid", 1);
    first.signal("INT");
    until(&|| robot.path("told").exists().then_some(()), &|| robot.state());
    first.signal("KILL");
    first.wait_for_exit();
    let mut next = robot.launch(&[]);
    next.wait_for_stdout("/a  adopted");
    std::fs::write(robot.path("go"), "").unwrap();
    next.wait_for_stdout("/a  stopped  exit code 0; restarting");
    robot.pids("a.pid", 2);
    next.signal("INT");
    assert_eq!(next.wait().code, Some(130));
}
