//! How launched nodes exit, and how their peers and their launcher report it.

use crate::util;

use std::time::Duration;

use util::robot::{Robot, until, wait_until_gone};

const LONG: Duration = Duration::from_secs(60);
/// The tools that report on a domain.
const TOOLS: [&[&str]; 3] =
    [&["status", "--over", "0.1"], &["top", "--once", "--interval", "0.1"], &["doctor"]];

/// A test node without signal handlers, which the kernel terminates.
#[test]
#[ignore = "node process of another test"]
fn motor_node() {
    if std::env::var_os("RNET_DIR").is_none() {
        return;
    }
    let node = rnet::Node::new("motor").unwrap();
    let mut state = node.publisher::<[u8]>("/state").last_will(&b"died"[..]).open().unwrap();
    state.wait_for_subscribers_timeout(1, LONG).unwrap();
    state.send(b"runs").unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn requested_stop_is_not_a_death_and_a_crash_is() {
    let program = std::env::current_exe().unwrap();
    let robot = Robot::new(&format!(
        "[node.motor]\ncommand = [\"{}\", \"--exact\", \"launch_exits::motor_node\", \"--ignored\"]\n\
         restart = \"never\"\n",
        program.display()
    ));
    let watcher = robot.env.node("watcher");
    for (how, is_death) in [("launch", false), ("stop", false), ("kill", true)] {
        let mut states = watcher.subscriber::<[u8]>("/state").open().unwrap();
        let mut launch = robot.launch(&[]);
        launch.wait_for_stdout("/motor  started");
        assert_eq!(&*states.recv_timeout(LONG).unwrap(), b"runs");
        match how {
            "launch" => launch.signal("INT"),
            word => drop(robot.run(&["node", word, "motor"]).ok()),
        }
        if is_death {
            let will = states.recv_timeout(LONG).unwrap();
            assert!(will.is_last_will() && &*will == b"died");
            let error = states.recv_timeout(LONG).unwrap_err();
            assert!(matches!(&error, rnet::Error::PeerLost { node, .. } if node == "/motor"));
        } else {
            // The next message is from the new motor: no event came between the two.
            if how == "stop" {
                launch.wait_for_stdout("/motor  stopped  terminated by SIGINT");
                launch.signal("INT");
            }
            assert_eq!(launch.wait().code, Some(130), "{how}");
            launch = robot.launch(&[]);
            launch.wait_for_stdout("/motor  started");
            let next = states.recv_timeout(LONG).unwrap();
            assert!(!next.is_last_will() && &*next == b"runs", "{how}: {:?}", &*next);
        }
        if !is_death {
            launch.signal("INT");
        }
        launch.wait();
    }
}

/// A shell starts the node in the background, where a signal of the stop does not end it. Its peers lose it.
#[test]
fn process_that_a_stop_kills_beside_its_node_is_not_reported_as_died() {
    let program = std::env::current_exe().unwrap();
    let robot = Robot::new(&format!(
        "[node.shell]\ncommand = [\"sh\", \"-c\", \"'{}' --exact launch_exits::motor_node --ignored & trap 'exit 0' \
         INT; while :; do sleep 0.05; done\"]\nrestart = \"never\"\n",
        program.display()
    ));
    let watcher = robot.env.node("watcher");
    let mut states = watcher.subscriber::<[u8]>("/state").open().unwrap();
    let launch = robot.launch(&[]);
    assert_eq!(&*states.recv_timeout(LONG).unwrap(), b"runs");
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(130));
    assert!(states.recv_timeout(LONG).unwrap().is_last_will());
    let error = states.recv_timeout(LONG).unwrap_err();
    assert!(matches!(error, rnet::Error::PeerLost { .. }), "{error}");
    let found = robot.run(&["status", "--over", "0.1"]).stdout;
    assert!(!found.contains("/motor"), "{found}");
}

#[test]
fn last_output_of_a_node_is_shown_with_its_failure() {
    let robot = Robot::new(
        "[node.bad]\ncommand = [\"sh\", \"-c\", \"for n in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $$n; done; \
         echo; echo no camera >&2; exit 3\"]\nrestart = \"never\"\n",
    );
    let ran = robot.launch(&[]).wait();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let (_, shown) = ran.stdout.split_once("/bad  given-up  exit code 3").expect(&ran.stdout);
    assert!(shown.contains("\n    line 4\n") && !shown.contains("line 3\n"), "{shown}");
    assert!(shown.contains("\n    line 12\n    no camera\n"), "{shown}");
    assert!(ran.stderr.contains("/bad: exit code 3: no camera"), "{ran:#?}");
    let found = robot.run(&["status", "--over", "0.1"]).stdout;
    assert!(found.contains("is not running: exit code 3, after 0 restarts: no camera"), "{found}");
}

/// A test node that refuses a gain above 1.
#[test]
#[ignore = "node process of another test"]
fn bounded_node() {
    if std::env::var_os("RNET_DIR").is_none() {
        return;
    }
    let node = rnet::Node::new("bounded").unwrap();
    let _gain = node.param("gain").default(0.5).max(1.0).declare().unwrap();
    let _rate = node.param("rate").default(10.0).declare().unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn a_parameter_that_the_node_refuses_is_reported() {
    let program = std::env::current_exe().unwrap();
    let robot = Robot::new(&format!(
        "[node.bounded]\ncommand = [\"{}\", \"--exact\", \"launch_exits::bounded_node\", \"--ignored\"]\n\
         params = {{ gain = 9.0, rate = 50.0 }}\n",
        program.display()
    ));
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout("/bounded  param-refused  gain = 9");
    launch.signal("INT");
    let ran = launch.wait();
    assert_eq!(ran.stdout.matches("param-refused").count(), 1, "{ran:#?}");
}

/// A running node has declared which gain it accepts, and the next launch's gain is refused.
#[test]
fn a_node_whose_parameters_cannot_be_set_is_a_problem_until_it_is_stopped() {
    let program = std::env::current_exe().unwrap();
    let file = |gain: f64| {
        format!(
            "[node.bounded]\ncommand = [\"{}\", \"--exact\", \"launch_exits::bounded_node\", \"--ignored\"]\n\
             params = {{ gain = {gain:?} }}\nrestart = \"never\"\n",
            program.display()
        )
    };
    let robot = Robot::new(&file(0.25));
    let launch = robot.launch(&[]);
    // The launcher sets `gain` before the node runs; the node declares `rate` afterwards.
    let declared = || robot.run(&["param", "describe", "bounded"]).stdout.contains("rate");
    until(&|| declared().then_some(()), &String::new);
    launch.signal("INT");
    launch.wait();
    robot.write(&file(9.0));
    let ran = robot.launch(&[]).wait();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let said =
        "the launched node /bounded is not running: cannot be started: cannot set its parameters";
    for tool in TOOLS {
        let report = robot.run(tool).stdout;
        assert!(report.contains(said), "{tool:?}: {report}");
    }
    assert!(robot.run(&["node", "logs", "bounded"]).ok().contains("cannot set its parameters"));
    robot.run(&["node", "stop", "bounded"]).ok();
    let report = robot.run(TOOLS[0]).stdout;
    assert!(!report.contains("/bounded"), "it was stopped on request: {report}");
}

#[test]
fn a_node_without_its_program_is_a_problem_until_it_runs() {
    let file = |program: &str| {
        format!("[node.motor]\ncommand = [\"{program}\", \"600\"]\nrestart = \"never\"\n")
    };
    let robot = Robot::new(&file("./no_such_program"));
    let ran = robot.launch(&[]).wait();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    for tool in TOOLS {
        let report = robot.run(tool).stdout;
        let said =
            "the launched node /motor is not running: cannot be started: ./no_such_program in ";
        assert!(report.contains(said), "{tool:?}: {report}");
    }
    robot.write(&file("sleep"));
    let mut launch = robot.launch(&[]);
    launch.wait_for_stdout("/motor  started");
    let report = robot.run(TOOLS[0]).stdout;
    assert!(!report.contains("/motor"), "{report}");
    launch.signal("INT");
    launch.wait();
}

/// Otherwise no process would end the command and its children.
#[test]
fn a_command_of_on_failure_dies_with_a_launcher_that_is_killed() {
    let robot = Robot::new(
        "[node.bad]\ncommand = [\"false\"]\nrestart = \"never\"\n\
         on_failure = [\"sh\", \"-c\", \"echo $$$$ >> pids; (trap '' TERM INT; sleep 600) & \
         echo $$! >> pids; trap '' TERM INT; wait; sleep 600\"]\n",
    );
    let launch = robot.launch(&[]);
    let pids = robot.pids("pids", 2);
    launch.signal("KILL");
    launch.wait();
    pids.iter().for_each(|pid| wait_until_gone(pid));
}
