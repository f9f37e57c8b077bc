//! `rnet launch` with nodes that are small programs, through the real binary.

use crate::util;

use std::collections::BTreeSet;
use std::io::Write as _;

use serde_json::Value;
use util::TestEnv;
use util::robot::{Robot, is_alive, sleeper, until, wait_until_gone};
use util::terminal::Terminal;

#[test]
fn nodes_start_in_their_order_and_stop_in_reverse() {
    let node = |name: &str, more: &str| {
        format!(
            "[node.{name}]\ncommand = [\"sh\", \"-c\", \"trap 'echo -{name} >> order; exit 0' INT; \
             echo +{name} >> order; while :; do sleep 0.05; done\"]\n{more}\n"
        )
    };
    let text = node("a", "after = [\"b\"]") + &node("b", "after = [\"c\"]") + &node("c", "");
    let robot = Robot::new(&text);
    let check =
        robot.run(&["launch", robot.path("robot.toml").to_str().unwrap(), "--check", "--json"]);
    let order: Vec<Value> =
        check.json()["nodes"].as_array().unwrap().iter().map(|node| node["node"].clone()).collect();
    assert_eq!(order, ["/c", "/b", "/a"]);
    let launch = robot.launch(&[]);
    robot.until("order", |text| text.lines().count() == 3);
    launch.signal("INT");
    let ran = launch.wait();
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    let order = robot.until("order", |text| text.lines().count() == 6);
    let stops: Vec<&str> = order.lines().filter(|line| line.starts_with('-')).collect();
    assert_eq!(stops, ["-a", "-b", "-c"], "{order}");
}

/// The program of two test nodes, which does not know about namespaces.
#[test]
#[ignore = "node process of another test"]
fn lidar_node() {
    let Some(dir) = std::env::var_os("RNET_DIR") else { return };
    assert!(std::path::Path::new(&dir).is_dir(), "the launcher says where");
    let node = rnet::Node::new("lidar").unwrap();
    let gain = node.param("gain").default(0.5).declare().unwrap();
    let mut scans = node.publisher::<[u8]>("scan").open().unwrap();
    let _map = node.subscriber::<[u8]>("/map").open().unwrap();
    let said = format!("{} {}", node.name(), gain.get().unwrap());
    loop {
        scans.send(said.as_bytes()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(10)); // sleep: the period of the stream
    }
}

#[test]
fn one_program_runs_twice_in_two_namespaces() {
    let program = std::env::current_exe().unwrap();
    let node = |side: &str, gain: f64| {
        format!(
            "[node.\"/{side}/lidar\"]\ncommand = [\"{}\", \"--exact\", \"launch::lidar_node\", \"--ignored\"]\n\
             namespace = \"{side}\"\nremap = {{ \"/map\" = \"/{side}/map\" }}\nparams = {{ gain = {gain:?} }}\n\
             ready = [\"scan\"]\nready_timeout_s = 60\n",
            program.display()
        )
    };
    let robot = Robot::new(&(node("left", 1.5) + &node("right", 2.5)));
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout("/left/lidar  ready");
    launch.wait_for_stdout("/right/lidar  ready");
    for (side, gain) in [("left", "1.5"), ("right", "2.5")] {
        let received =
            robot.run(&["topic", "echo", &format!("/{side}/scan"), "--once", "--raw"]).ok();
        assert!(
            received.contains(&format!("/{side}/lidar")) && received.contains(gain),
            "{received}"
        );
        let info = robot.run(&["node", "info", &format!("/{side}/lidar")]).ok();
        assert!(info.contains(&format!("/{side}/map")) && !info.contains(" /map"), "{info}");
    }
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(130));
}

#[test]
fn a_node_that_does_not_stop_is_killed_with_what_it_has_started() {
    let robot = Robot::new(
        "[node.deaf]\ncommand = [\"sh\", \"-c\", \"trap '' INT TERM; sleep 600 & echo $$! > child.pid; \
         echo deaf > begun; while :; do sleep 0.05; done\"]\ninterrupt_timeout_s = 0.1\nstop_timeout_s = 0.2\n",
    );
    let launch = robot.launch(&[]);
    robot.until("begun", |text| !text.is_empty());
    let child = robot.pids("child.pid", 1).remove(0);
    launch.signal("TERM");
    let ran = launch.wait();
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    assert!(ran.stdout.contains("/deaf  stopped  killed by SIGKILL"), "{ran:#?}");
    wait_until_gone(&child);
    let log = robot.run(&["node", "logs", "deaf"]).ok();
    assert!(log.contains("SIGTERM: still running 0.1 s after SIGINT"), "{log}");
    assert!(log.contains("SIGKILL: still running 0.2 s after SIGTERM"), "{log}");
}

#[test]
fn dependents_wait_until_a_node_is_ready() {
    let rnet = env!("CARGO_BIN_EXE_rnet");
    let text = format!(
        r#"
        [node.lidar]
        command = ["{rnet}", "topic", "pub", "/scan", "--text", "scan", "--rate", "100", "--node-name", "/lidar"]
        after = ["setup"]
        ready = ["/scan"]
        ready_timeout_s = 60
        [node.setup]
        command = ["sh", "-c", "echo done > setup"]
        ready = "exited"
        [node.map]
        command = ["sh", "-c", "cat setup; until test -e go; do sleep 0.05; done; echo > /dev/fd/$$RNET_READY_FD; exec sleep 600"]
        after = ["lidar"]
        ready = "notified"
        ready_timeout_s = 0.1
        "#
    ) + &sleeper("plan", "after = [\"map\"]");
    let robot = Robot::new(&text);
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout("/setup  ended  exit code 0");
    launch.wait_for_stdout("/lidar  ready");
    launch.wait_for_stdout(
        "/map  not-ready  after 0.1 s: it has not reported readiness on RNET_READY_FD; /plan is waiting for it",
    );
    assert!(!robot.path("plan.pid").exists());
    std::fs::write(robot.path("go"), "").unwrap();
    launch.wait_for_stdout("/map  ready");
    robot.pids("plan.pid", 1);
    assert_eq!(robot.run(&["node", "logs", "/map"]).ok(), "done\n");
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(130));
}

#[test]
fn a_crash_loop_is_given_up_and_on_failure_runs() {
    let robot = Robot::new(
        "[node.bad]\ncommand = [\"sh\", \"-c\", \"echo x >> starts; echo broken >&2; exit 3\"]\n\
         backoff_s = 0.01\ngive_up_after = 3\n\
         on_failure = [\"sh\", \"-c\", \"echo $$RNET_FAILED_NODE > safe; echo parked; exit 4\"]\n\
         [node.next]\ncommand = [\"true\"]\nafter = [\"missing\"]\n[node.missing]\ncommand = [\"./none\"]\n\
         restart = \"never\"\n",
    );
    let ran = robot.launch(&[]).wait();
    let said = ran.stderr.clone();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(said.contains("/bad: exit code 3: broken; on_failure: sh: exit code 4"), "{said}");
    assert!(ran.stdout.contains("/bad  on-failure  sh: exit code 4"), "{}", ran.stdout);
    assert!(said.contains("/missing: cannot be started: ./none in "), "{said}");
    assert!(said.contains("/next: never started: /missing is not ready"), "{said}");
    assert_eq!(robot.until("starts", |_| true).lines().count(), 3);
    robot.until("safe", |text| text == "/bad\n");
    assert_eq!(robot.run(&["node", "logs", "bad", "--lines", "2"]).ok(), "broken\nparked\n");
    let lines = robot.run(&["node", "logs", "bad", "--lines", "2", "--json"]).json_lines();
    let line = |text: &str| serde_json::json!({"node": "/bad", "line": text});
    assert_eq!(lines, [line("broken"), line("parked")]);
}

/// A stop of the launch also stops the `on_failure` command; the second signal lists the processes that die
/// with it.
#[test]
fn a_command_of_on_failure_ends_with_the_launch() {
    for (helper, killed) in [
        ("exec sleep 600", false),
        (
            "trap 'echo told > deaf' INT TERM; touch deaf; n=0; while [ $$n -lt 600 ]; do \
             n=$$((n + 1)); sleep 0.1; done",
            true,
        ),
    ] {
        let robot = Robot::new(&format!(
            "[node.bad]\ncommand = [\"false\"]\nrestart = \"never\"\nstop_timeout_s = {}\n\
             on_failure = [\"sh\", \"-c\", \"echo $$$$ >> pids; {helper}\"]\n",
            if killed { 600 } else { 5 }
        ));
        let mut launch = robot.launch(&[]);
        launch.wait_for_stdout("/bad  on-failure  sh started, pid ");
        let pid = robot.pids("pids", 1).remove(0);
        if killed {
            until(&|| robot.path("deaf").exists().then_some(()), &String::new);
        }
        launch.signal("INT");
        if killed {
            // The second signal has an effect only after the first was handled.
            robot.until("deaf", |text| text == "told\n");
            launch.signal("INT");
        }
        let ran = launch.wait();
        assert!(ran.code.is_some_and(|code| code != 0), "{ran:#?}");
        if killed {
            let left = format!("its on_failure sh, pid {pid}, exits with the launcher");
            assert!(ran.stdout.contains(&left), "{ran:#?}");
        } else {
            assert!(ran.stdout.contains("/bad  on-failure  sh: terminated by SIGINT"), "{ran:#?}");
        }
        wait_until_gone(&pid);
    }
}

/// Twelve nodes fail at once. Some `on_failure` commands have exited, others are stopped and receive no
/// signal.
#[test]
fn stopped_on_failure_commands_are_killed() {
    let node = |n: u32| {
        let helper = match n % 3 {
            0 => "true",
            1 => "exec sleep 600",
            _ => "trap '' INT TERM; kill -STOP $$$$",
        };
        format!(
            "[node.n{n}]\ncommand = [\"false\"]\nrestart = \"never\"\ninterrupt_timeout_s = 0.1\n\
             stop_timeout_s = 0.3\n\
             on_failure = [\"sh\", \"-c\", \"echo $$$$ >> pids; {helper}\"]\n"
        )
    };
    let robot = Robot::new(&(0..12).map(node).collect::<String>());
    let mut launch = robot.launch(&[]);
    let pids = robot.pids("pids", 12);
    for _ in 0..4 {
        launch.wait_for_stdout("on-failure  sh: exit code 0");
    }
    let stands = |pid: &String| {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") T "))
    };
    until(&|| (pids.iter().filter(|pid| stands(pid)).count() == 4).then_some(()), &String::new);
    launch.signal("INT");
    let ran = launch.wait();
    let ended = |how: &str| ran.stdout.matches(&format!("on-failure  sh: {how}")).count();
    assert_eq!(ended("exit code 0"), 4, "{ran:#?}");
    assert_eq!((ended("terminated by SIGINT"), ended("killed by SIGKILL")), (4, 4), "{ran:#?}");
    pids.iter().for_each(|pid| wait_until_gone(pid));
}

/// A node with `restart = "always"` that completes its work has not failed.
#[test]
fn node_with_restart_always_that_exits_successfully_has_ended() {
    let robot = Robot::new(
        "[node.once]\ncommand = [\"true\"]\nrestart = \"always\"\nbackoff_s = 0.01\ngive_up_after = 1000\n",
    );
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout("/once  ended  exit code 0; restarting in ");
    launch.signal("INT");
    let ran = launch.wait();
    assert!(!ran.stdout.contains("failed"), "{}", ran.stdout);
}

/// Nodes that fail together do not restart together.
#[test]
fn waits_before_a_restart_differ() {
    let text: String = (0..8)
        .map(|n| {
            format!("[node.n{n}]\ncommand = [\"false\"]\nbackoff_s = 100\nbackoff_max_s = 100\n")
        })
        .collect();
    let robot = Robot::new(&text);
    let mut launch = robot.launch(&[]);
    for _ in 0..8 {
        launch.wait_for_stdout("  failed  ");
    }
    launch.signal("INT");
    let ran = launch.wait();
    let words = "restarting in ";
    let waits = ran.stdout.lines().filter_map(|line| line.split_once(words)).map(|(_, wait)| wait);
    let different: BTreeSet<&str> = waits.collect();
    assert!(different.len() > 4, "{}", ran.stdout);
}

/// If this user may set it, a node has the scheduler and priority of the file.
#[test]
fn a_node_runs_in_real_time() {
    let robot = Robot::new(
        "[node.fast]\ncommand = [\"sh\", \"-c\", \"cut -d ' ' -f 40-41 /proc/self/stat > policy; exec sleep 600\"]\n\
         scheduler = \"fifo\"\npriority = 5\n[node.round]\n\
         command = [\"sh\", \"-c\", \"cut -d ' ' -f 40-41 /proc/self/stat > round; exec sleep 600\"]\n\
         scheduler = \"rr\"\npriority = 7\n",
    );
    let file = robot.path("robot.toml");
    let check = robot.run(&["launch", file.to_str().unwrap(), "--check"]);
    let launch = robot.launch(&[]);
    if check.stderr.contains("node.fast.scheduler") {
        let line =
            b"NOT RUN: a_node_runs_in_real_time: it may not be scheduled in real time here\n";
        let _ = std::io::stderr().write_all(line);
    } else {
        robot.until("policy", |text| text == "5 1\n");
        robot.until("round", |text| text == "7 2\n");
    }
    launch.signal("INT");
    launch.wait();
}

#[test]
fn a_killed_launcher_harms_no_node_and_the_next_one_adopts_them() {
    let text = sleeper("a", "")
        + &sleeper("b", "after = [\"a\"]")
        + &sleeper("c", "die_with_launcher = true");
    let robot = Robot::new(&text);
    let mut first = robot.launch(&[]);
    let a = robot.pids("a.pid", 1).remove(0);
    let b = robot.pids("b.pid", 1).remove(0);
    let c = robot.pids("c.pid", 1).remove(0);
    first.wait_for_stdout("/b  started");
    let second = robot.launch(&[]).wait().fails(1);
    let other =
        format!("is already launched in this domain by another rnet launch, pid {}\n", first.pid());
    assert!(second.contains(&other), "{second}");
    first.signal("KILL");
    first.wait_for_exit();
    wait_until_gone(&c);
    assert!(is_alive(&a) && is_alive(&b));
    // A node can be stopped without a launcher, and the next launcher knows how it exited.
    assert_eq!(robot.run(&["node", "stop", "b"]).ok(), "stopped /b\n");
    assert!(!is_alive(&b));
    assert_eq!(robot.run(&["node", "restart", "b"]).ok(), "restarted /b\n");
    let b = robot.pids("b.pid", 2).remove(1);
    let mut next = robot.launch(&[]);
    next.wait_for_stdout(&format!("/a  adopted  pid {a}"));
    next.wait_for_stdout(&format!("/b  adopted  pid {b}"));
    next.wait_for_stdout("/c  started");
    assert_eq!(robot.pids("c.pid", 2).len(), 2);
    // An adopted node is not a child of its launcher, which still learns how it exits.
    assert_eq!(robot.run(&["node", "kill", "a"]).ok(), "killed /a\n");
    next.wait_for_stdout("/a  failed  killed by SIGKILL; restarting in ");
    next.wait_for_stdout("/a  started");
    next.signal("INT");
    assert_eq!(next.wait().code, Some(130));
    wait_until_gone(&b);
}

#[test]
fn operators_stop_and_restart_nodes() {
    let robot = Robot::new(&(sleeper("a", "restart = \"always\"") + &sleeper("b", "")));
    let mut launch = robot.launch(&["--watch", "--json"]);
    let a = robot.pids("a.pid", 1).remove(0);
    robot.pids("b.pid", 1);
    assert_eq!(robot.run(&["node", "stop", "a"]).ok(), "stopped /a\n");
    assert!(!is_alive(&a));
    launch.wait_for_stdout("\"node\":\"/a\",\"state\":\"stopped\"");
    assert_eq!(robot.run(&["node", "restart", "/a"]).ok(), "restarted /a\n");
    let again = robot.pids("a.pid", 2).remove(1);
    launch.wait_for_stdout(&format!("\"pid\":{again},"));
    assert_eq!(robot.run(&["node", "restart", "a"]).ok(), "restarted /a\n");
    robot.pids("a.pid", 3);
    let said = robot.run(&["node", "restart", "a", "--json"]).json();
    assert_eq!(said, serde_json::json!({"node": "/a", "done": "restarted"}));
    robot.pids("a.pid", 4);
    let said = robot.run(&["node", "restart", "c"]).fails(1);
    assert!(said.contains("/c was not started by rnet launch in this domain"), "{said}");
    assert_eq!(robot.pids("b.pid", 1).len(), 1);
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(130));
}

#[test]
fn on_a_terminal_the_table_follows_the_nodes() {
    let robot = Robot::new(&(sleeper("a", "backoff_s = 0.01") + &sleeper("b", "")));
    let file = robot.path("robot.toml");
    let mut terminal = Terminal::start(&robot.env, &["launch", file.to_str().unwrap(), "--watch"]);
    let row = |node: &str, words: &[&str]| {
        let (node, words) = (format!("/{node}"), words.join(" "));
        move |screen: &str| {
            let words_of = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            screen.lines().map(words_of).any(|l| l.starts_with(&format!("{node} {words}")))
        }
    };
    let (a, b) = (robot.pids("a.pid", 1).remove(0), robot.pids("b.pid", 1).remove(0));
    terminal.wait_for_screen(row("a", &["running", "yes", &a]));
    terminal.wait_for_screen(row("b", &["running", "yes", &b]));
    assert_eq!(robot.run(&["node", "kill", "a"]).ok(), "killed /a\n");
    let again = robot.pids("a.pid", 2).remove(1);
    terminal.wait_for_screen(row("a", &["running", "yes", &again]));
    assert_eq!(robot.run(&["node", "stop", "b"]).ok(), "stopped /b\n");
    terminal.wait_for_screen(row("b", &["stopped", "no", "-"]));
    // The table stays beside the running output.
    terminal.wait_for_screen(row("a", &["running", "yes", &again]));
    terminal.wait_for_screen(|screen| screen.contains("NODE") && screen.contains("RESTARTS"));
    terminal.send_keys("\u{3}");
    assert_eq!(terminal.end(), Some(130));
    wait_until_gone(&again);
}

#[test]
fn nodes_without_a_launcher_are_stopped_and_killed_too() {
    let env = TestEnv::new();
    for (word, said) in [("stop", "stopped /free\n"), ("kill", "killed /free\n")] {
        let mut free = env.spawn(&["topic", "pub", "/t", "--text", "x", "--node-name", "/free"]);
        let is_there = || env.run(&["node", "list"]).stdout.contains("/free").then_some(());
        until(&is_there, &String::new);
        assert_eq!(env.run(&["node", word, "free"]).ok(), said);
        free.wait_for_exit();
    }
    let said = env.run(&["node", "kill", "free"]).fails(1);
    assert!(said.contains("free"), "{said}");
}

#[test]
fn a_changed_file_restarts_only_what_changed() {
    let robot = Robot::new(&(sleeper("a", "") + &sleeper("b", "") + &sleeper("c", "")));
    let mut launch = robot.launch(&["--reload"]);
    let pids: Vec<String> =
        ["a.pid", "b.pid", "c.pid"].map(|name| robot.pids(name, 1).remove(0)).into();
    robot.write("[node.a\n");
    launch.wait_for_stderr("robot.toml:1:8: ");
    robot.write(
        &(sleeper("a", "")
            + &sleeper("b", "env = { A = \"1\" }")
            + &sleeper("d", "after = [\"b\"]")),
    );
    robot.pids("b.pid", 2);
    robot.pids("d.pid", 1);
    wait_until_gone(&pids[1]);
    wait_until_gone(&pids[2]);
    assert!(is_alive(&pids[0]));
    assert_eq!(robot.pids("a.pid", 1).len(), 1);
    // The next launcher detects changes that were made while no launcher ran.
    launch.signal("KILL");
    launch.wait_for_exit();
    robot.write(&(sleeper("a", "env = { A = \"2\" }") + &sleeper("b", "env = { A = \"1\" }")));
    let mut next = robot.launch(&[]);
    next.wait_for_stdout("/b  adopted");
    robot.pids("a.pid", 2);
    wait_until_gone(&pids[0]);
    wait_until_gone(&robot.pids("d.pid", 1)[0]);
    next.signal("INT");
    assert_eq!(next.wait().code, Some(130));
}

#[test]
fn parameters_environment_and_limits_reach_the_node() {
    let robot = Robot::new(
        "[var]\nspeed = 2\n[node.arm]\ncommand = [\"sh\", \"-c\", \"echo $$$$ > arm.pid; echo $$SPEED $$RNET_DOMAIN; ulimit -d; \
         grep Cpus_allowed_list /proc/self/status; exec sleep 600\"]\nenv = { SPEED = \"${speed}\" }\n\
         params = { gain = 1.5, mode = \"run\", limits = [1, 2] }\ncpus = [0]\nmemory_limit_mib = 64\n\
         scheduler = \"batch\"\n",
    );
    let mut launch = robot.launch(&["--set", "speed=3"]);
    launch.wait_for_stdout("/arm  started");
    let logs = || robot.run(&["node", "logs", "arm"]).ok();
    let log = until(&|| Some(logs()).filter(|log| log.lines().count() == 3), &logs);
    assert_eq!(log, "3 clitest\n65536\nCpus_allowed_list:\t0\n");
    let pid = robot.pids("arm.pid", 1).remove(0);
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // Field 41. The first two fields are the id and the name, which may contain any characters.
    let policy = stat.rsplit_once(") ").unwrap().1.split(' ').nth(41 - 3);
    assert_eq!(policy, Some(libc::SCHED_BATCH.to_string().as_str()), "{stat}");
    assert_eq!(robot.run(&["state", "get", "/params/arm/gain"]).ok().trim(), "1.5");
    assert_eq!(robot.run(&["state", "get", "/params/arm/limits"]).ok().trim(), "1\n2");
    let said =
        robot.run(&["launch", "--set", "sped=3", robot.path("robot.toml").to_str().unwrap()]);
    assert!(
        said.fails(1).contains("--set: expected one of the variables \"speed\", found \"sped\"")
    );
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(130));
}

#[test]
fn logs_are_followed_over_their_rotation() {
    let robot = Robot::new(
        "[node.talker]\ncommand = [\"sh\", \"-c\", \"yes 0123456789abcdef | head -n 160000; echo last; \
         until test -e go; do sleep 0.05; done; echo after; exec sleep 600\"]\nlog_max_mib = 1\nlog_files = 2\n",
    );
    let launch = robot.launch(&[]);
    let last = || robot.run(&["node", "logs", "talker", "--lines", "1"]).stdout;
    until(&|| (last() == "last\n").then_some(()), &last);
    let all = robot.run(&["node", "logs", "talker"]).ok();
    // 2.6 MiB were written; at most two files of 1 MiB are kept.
    assert!(all.len() > 1 << 20 && all.len() <= 2 << 20, "{}", all.len());
    // The first line may have been split, with its first part discarded.
    assert!(all.lines().skip(1).all(|line| line == "0123456789abcdef" || line == "last"));
    let mut follow = robot.env.spawn(&["node", "logs", "talker", "--lines", "1", "--follow"]);
    follow.wait_for_stdout("last");
    std::fs::write(robot.path("go"), "").unwrap();
    follow.wait_for_stdout("after");
    follow.signal("INT");
    assert_eq!(follow.wait().code, Some(130));
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(130));
}

#[test]
fn each_host_starts_its_part_and_waits_for_no_other() {
    let text = sleeper("base", "host = \"base\"")
        + &sleeper("plan", "host = \"desk\"\nafter = [\"base\"]")
        + "[node.both]\ncommand = [\"sh\", \"-c\", \"echo ${host} $$RNET_HOST > both; exec sleep 600\"]\n";
    let robot = Robot::new(&text);
    let mut launch = robot.launch(&["--host", "desk"]);
    robot.pids("plan.pid", 1);
    launch.wait_for_stdout("/plan  started");
    launch.wait_for_stderr("rnet: /plan does not wait for /base, which is not started here");
    robot.until("both", |text| text == "desk desk\n");
    assert!(!robot.path("base.pid").exists());
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(130));
    // The environment sets the host as well, and the option overrides it.
    let file = robot.path("robot.toml");
    let mut command = robot.env.command();
    command.args(["launch", "--check", "--json"]).arg(&file).env("RNET_HOST", "base");
    let check = util::RunningCommand::start(command).wait();
    assert!(check.stdout.contains("/base") && !check.stdout.contains("/plan"), "{check:#?}");
    let said = robot.run(&["launch", file.to_str().unwrap(), "--host", "no host"]).fails(1);
    assert!(said.contains("--host") && said.contains("no host"), "{said}");
    let said = robot.run(&["launch", file.to_str().unwrap(), "--host", "dsk"]).fails(1);
    let expected = "rnet: --host: expected one of the hosts \"base\" or \"desk\", found \"dsk\"\n";
    assert_eq!(said, expected);
}

/// A node of the test below: it counts its starts in the state.
#[test]
#[ignore = "node process of another test"]
fn counting_node() {
    let node = rnet::Node::new("counter").unwrap();
    let gain = node.param::<f64>("gain").default(1.0).declare().unwrap();
    let starts = node.state().unwrap().add("/counter/starts", 1).unwrap();
    println!("start {starts} with gain {}", gain.get().unwrap());
    loop {
        std::thread::park();
    }
}

#[test]
fn a_restarted_node_finds_its_state_and_parameters_and_others_are_notified() {
    let program = std::env::current_exe().unwrap();
    let text = format!(
        "[node.counter]\ncommand = [\"{}\", \"--exact\", \"launch::counting_node\", \"--ignored\", \"--nocapture\"]\n\
         params = {{ gain = 2.5 }}\nbackoff_s = 0.01\n",
        program.display()
    );
    let robot = Robot::new(&text);
    let watcher = robot.env.node("watcher");
    let (tell, reported) = std::sync::mpsc::channel();
    watcher.on_node(move |event| tell.send(format!("{event:?}")).unwrap()).detach();
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout("/counter  started");
    let logged = |line: &str| {
        let poll = || robot.run(&["node", "logs", "counter"]).stdout;
        util::robot::until(&|| poll().contains(line).then_some(()), &poll);
    };
    logged("start 1 with gain 2.5");
    robot.run(&["param", "set", "counter", "gain", "3.5"]).ok();
    robot.run(&["node", "kill", "counter"]).ok();
    launch.wait_for_stdout("/counter  started");
    logged("start 2 with gain 3.5");
    let shown = robot.run(&["top", "--once", "--json", "--interval", "0.1"]).json();
    let nodes = shown["nodes"].as_array().unwrap();
    let counter = nodes.iter().find(|node| node["node"] == "/counter").unwrap();
    assert_eq!(counter["restarts"], 1, "{counter}");
    let hears = |what: &str| {
        while !reported.recv_timeout(std::time::Duration::from_secs(60)).unwrap().contains(what) {}
    };
    hears("Died");
    hears("Joined");
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(130));
}
