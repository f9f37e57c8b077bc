//! `rnet launch` when its processes are killed, and its files are changed or corrupted.

use crate::util;

use std::cell::Cell;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use util::RunningCommand;
use util::robot::{
    Robot, is_alive, kill, parent_of, processes, sleeper, stat, until, wait_until_gone,
};

/// A node that starts a child and waits for it; both write their process ids.
const PARENT: &str = "[node.parent]\ncommand = [\"sh\", \"-c\", \"sleep 600 & echo $$! >> child.pid; \
                      echo $$$$ >> parent.pid; wait\"]\nbackoff_s = 0.05\ngive_up_after = 1000\n";

#[test]
fn a_keeper_that_is_killed_leaves_nothing_of_its_node() {
    let robot = Robot::new(PARENT);
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout("/parent  started");
    let pid = robot.pids("parent.pid", 1).remove(0);
    let child = robot.pids("child.pid", 1).remove(0);
    kill("KILL", &parent_of(&pid).unwrap());
    launch.wait_for_stdout("/parent  failed  killed together with its keeper");
    // The launcher searches for them before it reports the failure.
    assert!(!is_alive(&child), "the node's child is still running, without a parent");
    assert!(!is_alive(&pid));
    let again = robot.pids("child.pid", 2).remove(1);
    // No launcher runs; the next launcher detects it.
    launch.signal("KILL");
    launch.wait_for_exit();
    kill("KILL", &parent_of(&robot.pids("parent.pid", 2)[1]).unwrap());
    let mut next = robot.launch(&[]);
    next.wait_for_stdout("/parent  started");
    wait_until_gone(&again);
    assert!(is_alive(&robot.pids("child.pid", 3)[2]));
    next.signal("INT");
    assert_eq!(next.wait().code, Some(130));
    wait_until_gone(&robot.pids("child.pid", 3)[2]);
}

#[test]
fn what_a_node_has_started_in_other_groups_ends_with_it() {
    // With job control, a shell puts each job into its own process group.
    let robot = Robot::new(
        "[node.jobs]\ncommand = [\"sh\", \"-c\", \"set -m; sleep 600 & echo $$! > job.pid; exit 0\"]\n",
    );
    let ran = robot.launch(&[]).wait();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(!is_alive(&robot.pids("job.pid", 1)[0]));
}

#[test]
fn a_second_stop_request_gives_the_node_its_time_and_does_not_spin() {
    let robot = Robot::new(
        "[node.slow]\ncommand = [\"sh\", \"-c\", \"trap 'touch told; sleep 3; touch clean; exit 0' INT; \
         echo $$$$ > slow.pid; while :; do sleep 0.05; done\"]\ninterrupt_timeout_s = 60\n",
    );
    let launch = robot.launch(&[]);
    let keeper = parent_of(&robot.pids("slow.pid", 1)[0]).unwrap();
    kill("TERM", &keeper);
    until(&|| robot.path("told").exists().then_some(()), &String::new);
    kill("TERM", &keeper);
    launch.signal("INT");
    // User and system time in ticks of 10 ms, while the keeper exists.
    let used = Cell::new(0);
    let poll = || {
        if let Some(fields) = stat(&keeper) {
            used.set([&fields[11], &fields[12]].map(|n| n.parse::<u64>().unwrap()).iter().sum());
        }
        robot.path("clean").exists().then_some(())
    };
    until(&poll, &|| "the node did not get its time to stop".to_owned());
    assert!(used.get() < 100, "{} ticks in 3 s: the keeper spins", used.get());
    let ran = launch.wait();
    assert!(ran.stdout.contains("/slow  stopped  exit code 0"), "{ran:#?}");
}

#[test]
fn a_request_for_a_node_that_has_just_started_is_handled() {
    let robot = Robot::new(&sleeper("a", ""));
    let mut launch = robot.launch(&[]);
    let pid = robot.pids("a.pid", 1).remove(0);
    launch.wait_for_stdout("/a  started");
    // Simulates an `rnet node stop` that checked during a backoff and signalled no process.
    let request = robot.launch_file("a.request");
    std::fs::write(&request, [0xff, 0, b'x']).unwrap();
    std::os::unix::fs::symlink("stop", robot.launch_file("a.draft_request")).unwrap();
    std::fs::rename(robot.launch_file("a.draft_request"), &request).unwrap();
    launch.wait_for_stdout("/a  stopped");
    assert!(!is_alive(&pid) && request.symlink_metadata().is_err());
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(130));
}

#[test]
fn a_node_is_stopped_in_the_middle_of_its_backoff() {
    let robot = Robot::new(
        "[node.bad]\ncommand = [\"sh\", \"-c\", \"echo x >> starts; exit 3\"]\nbackoff_s = 600\nbackoff_max_s = 600\n",
    );
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout("/bad  failed  exit code 3; restarting in");
    assert_eq!(robot.run(&["node", "stop", "bad"]).ok(), "/bad is not running\n");
    let request = robot.launch_file("bad.request");
    until(&|| request.symlink_metadata().is_err().then_some(()), &String::new);
    assert_eq!(robot.run(&["node", "restart", "bad"]).ok(), "restarted /bad\n");
    robot.until("starts", |text| text.lines().count() == 2);
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(130));
}

#[test]
fn a_new_mistake_in_a_file_is_reported_once_and_its_fix_is_seen() {
    let robot = Robot::new(&sleeper("a", ""));
    let mut launch = robot.launch(&["--reload"]);
    robot.pids("a.pid", 1);
    std::fs::write(robot.path("more.toml"), "[node.b\n").unwrap();
    robot.write(&format!("[[include]]\nfile = \"more.toml\"\n{}", sleeper("a", "")));
    launch.wait_for_stderr("more.toml:1:8: ");
    std::fs::write(robot.path("more.toml"), sleeper("b", "")).unwrap();
    robot.pids("b.pid", 1);
    assert_eq!(robot.pids("a.pid", 1).len(), 1);
    launch.signal("INT");
    let ran = launch.wait();
    assert_eq!(ran.code, Some(130));
    assert_eq!(ran.stderr.matches("more.toml:1:8").count(), 1, "{}", ran.stderr);
}

#[test]
fn corrupt_record_counts_as_missing() {
    let robot = Robot::new(&sleeper("a", ""));
    let launch = robot.launch(&[]);
    let first = robot.pids("a.pid", 1).remove(0);
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(130));
    wait_until_gone(&first);
    let path = robot.launch_file("a.json");
    let record = std::fs::read_to_string(&path).unwrap();
    let keeper = format!("\"pid\":{}", std::process::id());
    let mut begin = record.clone();
    begin.truncate(record.len() / 2);
    // Truncated, from another boot, of a process id that was reused, with an impossible number.
    let unended = record.split(",\"end\":").next().unwrap().to_owned() + ",\"end\":null}";
    let boot = "\"boot_id\":\"";
    let other_boot = unended.replace(boot, &format!("{boot}0"));
    let pids: Vec<&str> = unended.match_indices("\"pid\":").map(|(at, _)| &unended[at..]).collect();
    let own = &pids[0][..pids[0].find(',').unwrap()];
    let texts: [Vec<u8>; 7] = [
        Vec::new(),
        vec![0xff; 4096],
        begin.into(),
        unended.replace(own, &keeper).into(),
        unended.replace(own, "\"pid\":-1").into(),
        unended.replace(own, "\"pid\":99999999999").into(),
        other_boot.into(),
    ];
    for (n, text) in texts.iter().enumerate() {
        std::fs::write(&path, text).unwrap();
        std::fs::write(robot.launch_file("a.request"), text).unwrap();
        let mut launch = robot.launch(&[]);
        launch.wait_for_stdout("/a  started");
        assert_eq!(robot.pids("a.pid", n + 2).len(), n + 2);
        launch.signal("INT");
        assert_eq!(launch.wait().code, Some(130));
    }
}

#[test]
fn a_running_node_with_a_corrupt_record_is_reported_once_and_adopted_when_possible() {
    let robot = Robot::new(&sleeper("a", ""));
    let mut first = robot.launch(&[]);
    let a = robot.pids("a.pid", 1).remove(0);
    first.wait_for_stdout("/a  started");
    first.signal("KILL");
    first.wait_for_exit();
    let path = robot.launch_file("a.json");
    let record = std::fs::read(&path).unwrap();
    std::fs::write(&path, "spoilt").unwrap();
    // A launch that is stopped reports the nodes that keep running, and does not wait for them.
    let mut stopped = robot.launch(&[]);
    stopped.wait_for_stdout("/a  not-adopted  it is running, but its record ");
    stopped.signal("INT");
    let said = stopped.wait().fails(1);
    assert!(
        said.contains("/a: it keeps running: its record ") && said.contains("a.json"),
        "{said}"
    );
    let mut next = robot.launch(&[]);
    next.wait_for_stdout("/a  not-adopted  it is running, but its record ");
    std::fs::write(&path, record).unwrap();
    next.wait_for_stdout(&format!("/a  adopted  pid {a}"));
    assert_eq!(robot.pids("a.pid", 1).len(), 1);
    next.signal("INT");
    let ran = next.wait();
    assert_eq!(ran.code, Some(130));
    wait_until_gone(&a);
}

#[test]
fn endless_line_and_closed_output_harm_no_node() {
    let robot = Robot::new(
        "[node.long]\ncommand = [\"sh\", \"-c\", \"head -c 50000000 /dev/zero; echo; echo end; exec >&- 2>&-; \
         touch done; exec sleep 600\"]\nlog_max_mib = 1\nlog_files = 2\n",
    );
    let launch = robot.launch(&[]);
    until(&|| robot.path("done").exists().then_some(()), &String::new);
    let log = || robot.run(&["node", "logs", "long", "--lines", "1"]).stdout;
    until(&|| (log() == "end\n").then_some(()), &log);
    let len = |name: &str| std::fs::metadata(robot.launch_file(name)).unwrap().len();
    assert!(len("long.log") <= 1 << 20 && len("long.log.1") <= 1 << 20);
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(130));
}

#[test]
fn a_launch_that_is_stopped_before_it_has_adopted_a_node_stops_it() {
    let robot = Robot::new(&sleeper("a", ""));
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout("/a  started");
    let pid = robot.pids("a.pid", 1).remove(0);
    launch.signal("KILL");
    launch.wait_for_exit();
    // It waits for a node that never becomes ready.
    robot.write(&format!(
        "{}{}",
        sleeper("first", "ready = \"notified\""),
        sleeper("a", "after = [\"first\"]")
    ));
    let mut next = robot.launch(&[]);
    next.wait_for_stdout("/first  started");
    next.signal("INT");
    assert_eq!(next.wait().code, Some(130));
    assert!(!is_alive(&pid));
}

/// Launchers, keepers and nodes are killed at random.
#[test]
fn random_kills_start_no_node_twice_and_lose_none() {
    const KILLS: usize = 36;
    const NODES: [&str; 3] = ["a", "b", "c"];
    // A node reports a second instance: it and its child hold a lock, which the kernel releases when both
    // have exited.
    let node = |name: &str| {
        format!(
            "[node.{name}]\ncommand = [\"sh\", \"-c\", \"exec 9>>{name}.lock; flock -n 9 || echo {name} >> twice; \
             echo $$$$ >> {name}.pid; sleep 600 & wait\"]\nbackoff_s = 0.01\nbackoff_max_s = 0.05\n\
             give_up_after = 1000\n"
        )
    };
    let robot = Robot::new(&NODES.map(node).concat());
    let seed = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 | 1;
    let mut state = seed;
    let mut below = |limit: u64| {
        // Marsaglia's xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    };
    let alive = |name: &str| -> Vec<String> {
        let text = std::fs::read_to_string(robot.path(&format!("{name}.pid"))).unwrap_or_default();
        let here = processes(&robot.env.dir);
        text.lines().filter(|pid| here.iter().any(|one| one == pid)).map(str::to_owned).collect()
    };
    let mut launch = robot.launch(&[]);
    for _ in 0..KILLS {
        std::thread::sleep(Duration::from_millis(below(150))); // sleep: when is part of the test
        let what = below(3);
        let launcher = launch.pid().to_string();
        assert!(
            is_alive(&launcher),
            "seed {seed}: it exited by itself: {}",
            launch.output_so_far()
        );
        if what == 0 {
            launch.signal("KILL");
            launch.wait_for_exit();
            launch = robot.launch(&[]);
            continue;
        }
        let main = alive(NODES[below(3) as usize]).pop();
        let keeper = || {
            processes(&robot.env.dir).into_iter().find(|pid| {
                let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                command.windows(13).any(|part| part == b"launch-keeper")
            })
        };
        if let Some(pid) = if what == 1 { main } else { keeper() } {
            // It may have exited by now.
            let _ = Command::new("kill").args(["-s", "KILL", &pid]).output();
        }
    }
    for name in NODES {
        let state = || {
            let (said, robot) = (launch.output_so_far(), robot.state());
            format!("seed {seed}: of {name}, these run: {:?}\n{said}\n{robot}", alive(name))
        };
        let launcher = launch.pid().to_string();
        let runs = || {
            assert!(is_alive(&launcher), "the launcher exited by itself: {}", state());
            (alive(name).len() == 1).then_some(())
        };
        until(&runs, &state);
    }
    assert!(!robot.path("twice").exists(), "seed {seed}: two at once: {}", robot.state());
    // The last launcher may have just started, and not catch signals yet.
    launch.wait_for_stdout("/c  ");
    launch.signal("INT");
    let ran = launch.wait();
    assert_eq!(ran.code, Some(130), "seed {seed}: {ran:#?}");
    let left = processes(&robot.env.dir);
    assert!(left.is_empty(), "seed {seed}: {left:?}");
}

/// A launch whose files are on a disk of 1 MiB in its own mount namespace. A shell runs `first` there before.
/// `None` if mount namespaces are unavailable.
fn launch_on_small_disk(robot: &Robot, test: &str, first: &str) -> Option<RunningCommand> {
    let ran = Command::new("unshare").args(["--map-root-user", "--mount", "true"]).output();
    if !ran.is_ok_and(|ran| ran.status.success()) {
        // Not `println!`, which the test harness captures. `scripts/step.sh` reads this line.
        let line = format!("NOT RUN: {test}: no mount namespaces here\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
        return None;
    }
    let script = format!(
        "mkdir -p durable && mount -t tmpfs -o size=1m none durable && {first} && exec \"$0\" launch robot.toml"
    );
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &script, env!("CARGO_BIN_EXE_rnet")]);
    robot.env.set_environment(&mut command);
    command.current_dir(&robot.env.dir).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(RunningCommand::start(command))
}

#[test]
fn a_full_disk_loses_reported_lines_of_output_and_no_node() {
    let robot = Robot::new(
        "[node.talker]\ncommand = [\"sh\", \"-c\", \"head -c 1500000 /dev/zero | tr '\\\\0' x | fold -w 1000; rm durable/filler; \
         until grep 'bytes of output were lost' durable/launch/*/talker.log > lost; do echo room; \
         sleep 0.05; done; touch told; exec sleep 600\"]\n",
    );
    let first = "head -c 524288 /dev/zero > durable/filler";
    let test = "a_full_disk_costs_lines_of_output";
    let Some(mut launch) = launch_on_small_disk(&robot, test, first) else { return };
    launch.wait_for_stdout("/talker  started");
    let said = || std::fs::read_to_string(robot.path("lost")).unwrap_or_default();
    until(&|| robot.path("told").exists().then_some(()), &said);
    assert!(said().contains("No space left on device"), "{}", said());
    launch.signal("INT");
    let ended = launch.wait();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(ended.stdout.contains("/talker  stopped"), "{ended:?}");
}

/// As after a recording that has filled the disk. A node gives the orders, because it has the disk, too.
#[test]
fn nodes_are_restarted_and_stopped_on_a_full_disk() {
    let rnet = env!("CARGO_BIN_EXE_rnet");
    let robot = Robot::new(&format!(
        "{}[node.user]\ncommand = [\"sh\", \"-c\", \"until test -s a.pid; do sleep 0.05; done; \
         head -c 2000000 /dev/zero > durable/filler; kill -s KILL `cat a.pid`; \
         until test `wc -l < a.pid` = 2; do sleep 0.05; done; '{rnet}' node restart a > said 2>&1; \
         '{rnet}' node stop a >> said 2>&1; touch done; exec sleep 600\"]\n",
        sleeper("a", "backoff_s = 0.05")
    ));
    let test = "nodes_are_restarted_and_stopped_on_a_full_disk";
    let Some(launch) = launch_on_small_disk(&robot, test, "true") else { return };
    robot.until("done", |_| robot.path("done").exists());
    assert_eq!(robot.until("said", |_| true), "restarted /a\nstopped /a\n");
    let pids = robot.pids("a.pid", 3);
    assert!(pids.len() == 3 && pids.iter().all(|pid| !is_alive(pid)), "{pids:?}");
    launch.signal("INT");
    let ended = launch.wait();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(!ended.stdout.contains("killed together"), "{ended:?}");
}

/// The command's keeper cannot write its record; the command is a child of the launcher.
#[test]
fn a_command_of_on_failure_runs_on_a_full_disk() {
    // The rest of the command, the test's action, and the exit that the launch reports.
    let stubborn = "trap '' INT TERM; echo $$$$ >> pids; while :; do sleep 0.05; done";
    let sleeps = "echo $$$$ >> pids; exec sleep 600";
    // Its children end with it, even if they ignore signals.
    let leaves_a_child = "(trap '' INT TERM; exec sh -c 'echo $$$$ >> pids; exec sleep 600') & \
                          until test -s pids; do sleep 0.05; done; exit 4";
    for (then, signal, reported) in [
        ("exit 4", None, Some("exit code 4")),
        (leaves_a_child, None, Some("exit code 4")),
        (sleeps, Some("INT"), Some("terminated by SIGINT")),
        (stubborn, Some("INT"), Some("killed by SIGKILL")),
        (sleeps, Some("KILL"), None),
    ] {
        let robot = Robot::new(&format!(
            "[node.bad]\ncommand = [\"sh\", \"-c\", \"head -c 2000000 /dev/zero > durable/filler; exit 3\"]\n\
             restart = \"never\"\ninterrupt_timeout_s = 0.1\nstop_timeout_s = 0.1\n\
             on_failure = [\"sh\", \"-c\", \"echo $$RNET_FAILED_NODE > helped; {then}\"]\n"
        ));
        let test = "a_command_of_on_failure_runs_on_a_full_disk";
        let Some(mut launch) = launch_on_small_disk(&robot, test, "true") else { return };
        launch.wait_for_stdout("/bad  on-failure  sh started, pid ");
        robot.until("helped", |text| text == "/bad\n");
        let pid = then.contains("pids").then(|| robot.pids("pids", 1).remove(0));
        signal.iter().for_each(|signal| launch.signal(signal));
        let ended = launch.wait();
        if let Some(end) = reported {
            let line = format!("/bad  on-failure  sh: {end}\n");
            assert!(ended.stdout.contains(&line), "{line}: {ended:?}");
            assert_eq!(ended.code, Some(1), "{ended:?}");
        }
        pid.iter().for_each(|pid| wait_until_gone(pid));
    }
}

/// A folder in place of the temporary file makes the record unwritable, like a full disk.
#[test]
fn a_node_that_is_ready_while_its_record_cannot_be_written_is_ready_when_it_can() {
    let robot = Robot::new(&format!(
        "[node.slow]\ncommand = [\"sh\", \"-c\", \"until test -e go; do sleep 0.05; done; \
         eval \\\"echo 1 >&$$RNET_READY_FD\\\"; exec sleep 600\"]\nready = \"notified\"\n{}",
        sleeper("late", "after = [\"slow\"]")
    ));
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout("/slow  started");
    let launches = std::fs::read_dir(robot.path("durable").join("launch")).unwrap();
    let folder = launches.map(|entry| entry.unwrap().path()).next().unwrap();
    let draft = folder.join("slow.draft");
    std::fs::remove_file(&draft).unwrap();
    std::fs::create_dir(&draft).unwrap();
    std::fs::write(robot.path("go"), "").unwrap();
    let log = || robot.run(&["node", "logs", "slow"]).stdout;
    until(&|| log().contains("slow.json").then_some(()), &log);
    std::fs::remove_dir(&draft).unwrap();
    robot.pids("late.pid", 1);
    assert_eq!(log().matches("slow.json").count(), 1, "it is reported once: {}", log());
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(130));
}

/// A node that requests more memory than its limit gets an allocation error, and exits as its program
/// defines.
#[test]
fn a_memory_limit_ends_the_node_that_exceeds_it_and_no_other() {
    let robot = Robot::new(&format!(
        "{}[node.hungry]\ncommand = [\"python3\", \"-c\", \"bytearray(1 << 30)\"]\nmemory_limit_mib = 200\n\
         restart = \"never\"\n",
        sleeper("arm", "")
    ));
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout("/hungry  given-up");
    let log = robot.run(&["node", "logs", "hungry"]).ok();
    assert!(log.contains("MemoryError"), "{log}");
    let arm = robot.pids("arm.pid", 1);
    assert!(is_alive(&arm[0]));
    launch.signal("INT");
    // The exit code of any node that was given up.
    assert_eq!(launch.wait().code, Some(1));
}
