//! `rnet launch --reload` that is killed halfway, or reads an invalid file.

use crate::util;

use util::robot::{Robot, is_alive, sleeper, until, wait_until_gone};

/// A node that exits only when the file `go` exists, so that a reload waits for it.
fn slow(more: &str) -> String {
    format!(
        "[node.slow]\ncommand = [\"sh\", \"-c\", \"trap 'touch told; until test -e go; do sleep 0.05; done; exit 0' \
         INT; echo $$$$ >> slow.pid; while :; do sleep 0.05; done\"]\ninterrupt_timeout_s = 30\n{more}\n"
    )
}

#[test]
fn next_launcher_completes_a_reload_interrupted_by_a_kill() {
    let setup = |env: &str| {
        format!(
            "[node.setup]\ncommand = [\"sh\", \"-c\", \"echo $$$$ >> setup.pid\"]\nready = \"exited\"\n\
             after = [\"slow\"]\nenv = {{ A = \"{env}\" }}\n"
        )
    };
    let robot = Robot::new(&(sleeper("kept", "") + &slow("") + &sleeper("gone", "") + &setup("0")));
    let mut first = robot.launch(&["--reload"]);
    let [kept, old, gone] =
        ["kept", "slow", "gone"].map(|node| robot.pids(&format!("{node}.pid"), 1).remove(0));
    // The launcher has recorded that the node runs, and watches its file from here on.
    first.wait_for_stdout("/setup  ended");
    let changed = slow("env = { A = \"1\" }")
        + &setup("1")
        + &sleeper("late", "after = [\"slow\"]")
        + &sleeper("last", "after = [\"setup\"]");
    robot.write(&(sleeper("kept", "") + &changed + &sleeper("new", "")));
    // New nodes run, removed nodes have exited, and the changed node was asked to stop and still runs.
    let new = robot.pids("new.pid", 1).remove(0);
    wait_until_gone(&gone);
    until(&|| robot.path("told").exists().then_some(()), &String::new);
    first.signal("KILL");
    first.wait_for_exit();
    assert!([&kept, &old, &new].into_iter().all(|pid| is_alive(pid)));
    // Neither a stopping node nor one completed under the old file counts as ready for a new node.
    assert!(!robot.path("late.pid").exists() && !robot.path("last.pid").exists());
    let mut next = robot.launch(&["--reload"]);
    next.wait_for_stdout(&format!("/slow  stopping  pid {old} runs an outdated command"));
    assert!(is_alive(&old), "it was killed before its time to stop was over");
    std::fs::write(robot.path("go"), "").unwrap();
    next.wait_for_stdout("/slow  stopped  exit code 0; restarting");
    robot.pids("late.pid", 1);
    robot.pids("last.pid", 1);
    assert!(is_alive(&kept) && is_alive(&new));
    next.signal("INT");
    let ran = next.wait();
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    for (node, starts) in
        [("kept", 1), ("gone", 1), ("new", 1), ("slow", 2), ("setup", 2), ("late", 1), ("last", 1)]
    {
        let pids = robot.pids(&format!("{node}.pid"), starts);
        assert_eq!(pids.len(), starts, "starts of {node}");
        assert!(!pids.iter().any(|pid| is_alive(pid)), "{node} still runs");
    }
}

#[test]
fn invalid_file_keeps_the_old_nodes_running_and_supervised() {
    let old =
        sleeper("a", "backoff_s = 0.01\ngive_up_after = 1000") + &sleeper("b", "after = [\"a\"]");
    let robot = Robot::new(&old);
    let mut launch = robot.launch(&["--reload", "--watch", "--json"]);
    let a = robot.pids("a.pid", 1).remove(0);
    let b = robot.pids("b.pid", 1).remove(0);
    launch.wait_for_stdout(&format!("\"pid\":{b},"));
    // An error in each: the syntax, a key, a name, a cycle, a number; finally a missing file.
    let mut starts = 1;
    for (wrong, said) in [
        ("[node.a\n".to_owned(), "robot.toml:1:8: "),
        (format!("{old}colour = 1\n"), "node.b.colour: unknown key"),
        (
            sleeper("b", "after = [\"a\"]"),
            "node.b.after: expected one of the nodes \"/b\", found \"/a\"",
        ),
        (
            sleeper("a", "after = [\"b\"]") + &sleeper("b", "after = [\"a\"]"),
            "node.a.after: expected no cycle, found /a -> /b -> /a",
        ),
        (
            sleeper("a", "stop_timeout_s = -1"),
            "node.a.stop_timeout_s: expected seconds, 0 to 86400",
        ),
    ] {
        robot.write(&wrong);
        launch.wait_for_stderr(said);
        // A node that fails meanwhile restarts under the old file.
        assert_eq!(robot.run(&["node", "kill", "a"]).ok(), "killed /a\n");
        starts += 1;
        let again = robot.pids("a.pid", starts).remove(starts - 1);
        launch.wait_for_stdout(&format!("\"pid\":{again},"));
        assert!(is_alive(&b), "{said}");
    }
    std::fs::remove_file(robot.path("robot.toml")).unwrap();
    launch.wait_for_stderr("robot.toml: cannot be read: No such file or directory");
    assert_eq!(robot.run(&["node", "restart", "a"]).ok(), "restarted /a\n");
    robot.pids("a.pid", starts + 1);
    // A launcher that starts with such a file starts and stops no node.
    robot.write("[node.a\n");
    launch.signal("KILL");
    launch.wait_for_exit();
    robot.launch(&[]).wait().fails(1);
    assert!(is_alive(&b) && !is_alive(&a));
    // The corrected file is applied.
    robot.write(&old);
    let mut next = robot.launch(&[]);
    next.wait_for_stdout(&format!("/b  adopted  pid {b}"));
    next.signal("INT");
    assert_eq!(next.wait().code, Some(130));
    wait_until_gone(&b);
    assert_eq!((robot.pids("a.pid", 1).len(), robot.pids("b.pid", 1).len()), (starts + 1, 1));
}

#[test]
fn a_changed_node_finds_the_parameters_that_its_file_has_not_changed() {
    let text = |env: &str, mode: &str| {
        let more =
            format!("env = {{ A = \"{env}\" }}\nparams = {{ gain = 1.5, mode = \"{mode}\" }}\n");
        sleeper("arm", &more)
    };
    let robot = Robot::new(&text("0", "walk"));
    let get = |name: &str| {
        let key = format!("/params/arm/{name}");
        robot.run(&["state", "get", &key]).ok().trim().to_owned()
    };
    let mut first = robot.launch(&["--reload"]);
    robot.pids("arm.pid", 1);
    // The launcher has recorded that the node runs, and watches its file from here on.
    first.wait_for_stdout("/arm  started");
    robot.run(&["state", "set", "/params/arm/gain", "3.5"]).ok();
    robot.write(&text("1", "walk"));
    robot.pids("arm.pid", 2);
    assert_eq!((get("gain").as_str(), get("mode").as_str()), ("3.5", "walk"));
    robot.write(&text("1", "run"));
    robot.pids("arm.pid", 3);
    assert_eq!((get("gain").as_str(), get("mode").as_str()), ("3.5", "run"));
    // The same with a launcher that adopts the node.
    first.signal("KILL");
    first.wait_for_exit();
    robot.write(&text("2", "jump"));
    let next = robot.launch(&[]);
    robot.pids("arm.pid", 4);
    assert_eq!((get("gain").as_str(), get("mode").as_str()), ("3.5", "jump"));
    next.signal("INT");
    assert_eq!(next.wait().code, Some(130));
}
