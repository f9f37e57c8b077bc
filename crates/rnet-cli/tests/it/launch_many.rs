//! Many nodes in one launch, and several launchers of one file or one node.

use crate::util;

use std::collections::BTreeSet;

use util::RunningCommand;
use util::robot::{Robot, is_alive, sleeper, until};

#[test]
fn sixty_four_nodes_start_in_order_are_adopted_and_stop_in_reverse() {
    const NODES: usize = 64;
    // Each waits for the node with half its number: a tree of seven levels.
    let node = |n: usize| {
        let after = if n > 1 { format!("after = [\"n{}\"]", n / 2) } else { String::new() };
        format!(
            "[node.n{n}]\ncommand = [\"sh\", \"-c\", \"trap 'echo -{n} >> order; exit 0' INT; echo $$$$ > {n}.pid; \
             echo +{n} >> order; echo > /dev/fd/$$RNET_READY_FD; while :; do sleep 0.2; done\"]\nready = \"notified\"\n\
             ready_timeout_s = 600\ninterrupt_timeout_s = 600\n{after}\n"
        )
    };
    let robot = Robot::new(&(1..=NODES).map(node).collect::<String>());
    let mut first = robot.launch(&[]);
    let begun = robot.until("order", |text| text.lines().count() >= NODES && text.ends_with('\n'));
    let begun: Vec<usize> = begun.lines().map(|line| line[1..].parse().unwrap()).collect();
    assert_eq!(begun.iter().copied().collect::<BTreeSet<_>>().len(), NODES, "each once: {begun:?}");
    let at = |list: &[usize], n: usize| list.iter().position(|one| *one == n).unwrap();
    for n in 2..=NODES {
        assert!(at(&begun, n / 2) < at(&begun, n), "n{n} did not wait for n{}: {begun:?}", n / 2);
    }
    let pids: Vec<String> =
        (1..=NODES).map(|n| robot.pids(&format!("{n}.pid"), 1).remove(0)).collect();
    first.signal("KILL");
    first.wait_for_exit();
    assert!(pids.iter().all(|pid| is_alive(pid)));
    let mut next = robot.launch(&[]);
    (0..NODES).for_each(|_| next.wait_for_stdout("  ready"));
    next.signal("INT");
    let ran = next.wait();
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    for (at, pid) in pids.iter().enumerate() {
        let adopted = format!("/n{}  adopted  pid {pid}\n", at + 1);
        assert!(ran.stdout.contains(&adopted), "{}", ran.stdout);
    }
    let order = robot.until("order", |text| text.lines().count() >= 2 * NODES);
    let ends = order.lines().filter_map(|line| line.strip_prefix('-')?.parse().ok());
    let ends: Vec<usize> = ends.collect();
    assert_eq!((ends.len(), order.lines().count()), (NODES, 2 * NODES), "{order}");
    for n in 2..=NODES {
        assert!(at(&ends, n) < at(&ends, n / 2), "n{} ended before n{n}: {ends:?}", n / 2);
    }
    assert!(!pids.iter().any(|pid| is_alive(pid)));
}

#[test]
fn one_of_several_launchers_of_a_file_runs_and_the_others_report_it() {
    const LAUNCHERS: usize = 6;
    let robot = Robot::new(&(sleeper("a", "") + &sleeper("b", "")));
    // The same file under another path.
    std::os::unix::fs::symlink(robot.path("robot.toml"), robot.path("link.toml")).unwrap();
    let start = |n: usize| {
        let mut command = robot.env.command();
        let file = if n.is_multiple_of(2) { "robot.toml" } else { "link.toml" };
        command.current_dir(&robot.env.dir).args(["launch", file]);
        RunningCommand::start(command)
    };
    let mut all: Vec<RunningCommand> = (0..LAUNCHERS).map(start).collect();
    robot.pids("a.pid", 1);
    robot.pids("b.pid", 1);
    let path = robot.path("robot.toml");
    let refused = format!(
        "rnet: {} is already launched in this domain by another rnet launch",
        path.display()
    );
    let launches = |one: &RunningCommand| is_alive(&one.pid().to_string());
    let left = || all.iter().filter(|one| launches(one)).count();
    until(&|| (left() == 1).then_some(()), &|| format!("{} launchers run it", left()));
    let winner = all.iter().position(launches).unwrap();
    let winner = all.remove(winner);
    for other in all {
        let said = other.wait().fails(1);
        assert!(said.starts_with(&refused), "{said}");
    }
    // It reports its process id as soon as it has written it.
    let said = robot.launch(&[]).wait().fails(1);
    assert_eq!(said, format!("{refused}, pid {}\n", winner.pid()));
    assert_eq!((robot.pids("a.pid", 1).len(), robot.pids("b.pid", 1).len()), (1, 1));
    winner.signal("INT");
    assert_eq!(winner.wait().code, Some(130));
}

#[test]
fn a_node_that_another_file_has_launched_is_left_to_it() {
    let robot = Robot::new(&sleeper("a", ""));
    let mut first = robot.launch(&[]);
    let a = robot.pids("a.pid", 1).remove(0);
    first.wait_for_stdout("/a  started");
    let other = robot.path("other.toml");
    let text = sleeper("a", "") + &sleeper("b", "") + "[blackbox]\nenabled = false\n";
    std::fs::write(&other, text).unwrap();
    let mut command = robot.env.command();
    command.arg("launch").arg(&other);
    let mut second = RunningCommand::start(command);
    let file = robot.path("robot.toml");
    let why = format!("{} has already launched a node with this name", file.display());
    second.wait_for_stdout(&format!("/a  given-up  {why}"));
    robot.pids("b.pid", 1);
    second.signal("INT");
    let said = second.wait().fails(1);
    assert!(said.contains(&format!("/a: {why}")), "{said}");
    assert!(is_alive(&a), "it belongs to the other file");
    first.signal("INT");
    assert_eq!(first.wait().code, Some(130));
}
