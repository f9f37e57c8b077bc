//! `rnet rerun`. The node that is rerun is this program: see `the_node`.

use crate::util;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rnet::{Node, OnFull};
use rnet_record::{RecordOptions, Recorder};
use util::processes::{assert_nothing_left, until};
use util::{CommandOutput, DOMAIN, RunningCommand, TEST_TIMEOUT, TestEnv};

/// The node's role, and its gain.
const ROLE: &str = "RERUN_ROLE";
const GAIN: &str = "RERUN_GAIN";
/// A timeout that is expected to expire. A loaded machine starts the node in less time.
const SHORT_S: &str = "15";
/// Number of messages in the recording.
const COUNT: u32 = 40;

#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
#[repr(C)]
struct Angle {
    number: u64,
    rad: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
#[repr(C)]
struct Factor {
    by: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
#[repr(C)]
struct Torque {
    number: u64,
    now_ns: u64,
    newton_metres: [f64; 2],
}

/// A stateful controller: each answer depends on all previous angles, and on a gain that another thread
/// reads.
fn control(node: &Node, role: &str, gain: f64) {
    let mut sum = 0.0;
    let factor = std::sync::Arc::new(std::sync::Mutex::new(1.0));
    let (set, is_silent) = (factor.clone(), role == "silent");
    let mut taken = node.publisher::<Factor>("/factor_taken").open().unwrap();
    let _on = (role != "deaf").then(|| {
        node.subscriber::<Factor>("/factor").open().unwrap().on(move |factor| {
            *set.lock().unwrap() = factor.by;
            if !is_silent {
                taken.send(&factor).unwrap();
            }
        })
    });
    let mut angles = node.subscriber::<Angle>("/angle").reliable().keep_all().open().unwrap();
    let reliable = OnFull::Detach { stall: TEST_TIMEOUT };
    let mut torques = node.publisher::<Torque>("/torque").reliable(reliable).open().unwrap();
    let mut extra = (role == "extra").then(|| node.publisher::<Factor>("/extra").open().unwrap());
    let own_gain = node.service::<Factor, Factor>("/own/gain");
    let _service = (role == "calls").then(|| own_gain.serve(|_| Ok(Factor { by: 1.0 })).unwrap());
    while let Ok(angle) = angles.recv_timeout(TEST_TIMEOUT) {
        let angle = *angle;
        let by_state = match role {
            "keyed" => match node.state().unwrap().get("/gain").unwrap() {
                Some(value) => value.as_float().unwrap(),
                None => 0.0,
            },
            _ => 1.0,
        };
        sum += angle.rad * gain * by_state * *factor.lock().unwrap();
        match role {
            "silent" => continue,
            "calls" if angle.number == 3 => {
                let scaled = node.call_timeout::<Factor, Factor>(
                    "/scale",
                    &Factor { by: 1.0 },
                    TEST_TIMEOUT,
                );
                scaled.unwrap();
            }
            "dies" if angle.number == 7 => std::process::abort(),
            "spins" if angle.number == 7 => loop {
                std::hint::spin_loop();
            },
            "skips" if angle.number == 7 => continue,
            "extra" => extra.as_mut().unwrap().send(&Factor { by: sum }).unwrap(),
            _ => {}
        }
        let torque =
            Torque { number: angle.number, now_ns: node.now(), newton_metres: [sum, -1.0] };
        torques.send(&torque).unwrap();
    }
}

#[test]
#[ignore = "node process of the other tests"]
fn the_node() {
    let Ok(role) = std::env::var(ROLE) else { return };
    if role == "alone" {
        std::thread::park();
    }
    let gain = std::env::var(GAIN).map_or(1.5, |gain| gain.parse().unwrap());
    let name = if role == "renamed" { "other" } else { "arm" };
    control(&Node::builder(name).open().unwrap(), &role, gain);
}

fn node_args() -> Vec<String> {
    let program = std::env::current_exe().unwrap().display().to_string();
    [&program, "rerun::the_node", "--exact", "--ignored", "--nocapture"].map(str::to_owned).into()
}

/// A recording of the node at work. The factor changes during it.
fn recorded(env: &TestEnv) -> PathBuf {
    recorded_as(env, "works")
}

fn recorded_as(env: &TestEnv, role: &str) -> PathBuf {
    let file = env.dir.join("run.mcap");
    let mut command = Command::new(&node_args()[0]);
    command.args(&node_args()[1..]).env(ROLE, role).env_remove(GAIN);
    command.env("RNET_DIR", &env.dir).env("RNET_DOMAIN", DOMAIN).env("RNET_NETWORK", "off");
    let node = env.node("body");
    let state = (role == "keyed").then(|| node.state().unwrap());
    if let Some(state) = &state {
        state.set("/gain", 2.0).unwrap();
    }
    let scale = node.service::<Factor, Factor>("/scale");
    let _scale = (role == "calls").then(|| scale.serve(|by| Ok(*by)).unwrap());
    let mut angles = node
        .publisher::<Angle>("/angle")
        .reliable(OnFull::Detach { stall: TEST_TIMEOUT })
        .open()
        .unwrap();
    let mut factor = node
        .publisher::<Factor>("/factor")
        .reliable(OnFull::Detach { stall: TEST_TIMEOUT })
        .open()
        .unwrap();
    let mut torques = node.subscriber::<Torque>("/torque").reliable().keep_all().open().unwrap();
    let mut taken = node.subscriber::<Factor>("/factor_taken").open().unwrap();
    let location = rnet::inspect::Location::new(Some(DOMAIN), Some(env.dir.clone()), None).unwrap();
    let mut options = RecordOptions::default();
    options.location = Some(location);
    let recorder = Recorder::start(&file, options).unwrap();
    command.stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let process = RunningCommand::start(command);
    angles.wait_for_subscribers_timeout(1, TEST_TIMEOUT).unwrap();
    factor.wait_for_subscribers_timeout(1, TEST_TIMEOUT).unwrap();
    torques.wait_for_publishers_timeout(1, TEST_TIMEOUT).unwrap();
    taken.wait_for_publishers_timeout(1, TEST_TIMEOUT).unwrap();
    for number in 0..COUNT {
        if number == COUNT / 2 {
            factor.send(&Factor { by: 0.5 }).unwrap();
            // Its callback runs concurrently with the answering loop.
            assert_eq!(taken.recv_timeout(TEST_TIMEOUT).unwrap().by, 0.5);
            if let Some(state) = &state {
                state.set("/gain", 3.0).unwrap();
            }
        }
        if role == "calls" && number == 5 {
            node.call_timeout::<Factor, Factor>("/own/gain", &Factor { by: 0.0 }, TEST_TIMEOUT)
                .unwrap();
        }
        angles.send(&Angle { number: number.into(), rad: f64::from(number).sin() }).unwrap();
        assert_eq!(torques.recv_timeout(TEST_TIMEOUT).unwrap().number, u64::from(number));
    }
    let report = recorder.stop().unwrap();
    assert_eq!(report.losses.total(), 0);
    drop(process);
    file
}

fn again(env: &TestEnv, file: &Path, role: &str, gain: &str, args: &[&str]) -> CommandOutput {
    let mut command = env.command();
    command.arg("rerun").arg(file).args(["--ignore", "now_ns"]).args(args);
    if !args.contains(&"--timeout") {
        command.args(["--timeout", "60"]);
    }
    command.arg("--node").args(node_args()).env(ROLE, role).env(GAIN, gain);
    RunningCommand::start(command).wait()
}

/// Asserts that no process and no domain file is left.
fn assert_nothing_left_but(env: &TestEnv, files: &[&Path]) {
    for file in files {
        fs::remove_file(file).unwrap();
    }
    let _ = fs::remove_dir_all(env.domain_dir());
    assert_nothing_left(env);
}

#[test]
fn the_same_program_publishes_the_same_again() {
    let env = TestEnv::new();
    let file = recorded(&env);
    let (junit, plot) = (env.dir.join("rerun.xml"), env.dir.join("rerun.svg"));
    let (xml, svg) = (junit.to_str().unwrap(), plot.to_str().unwrap());
    let text = again(&env, &file, "works", "1.5", &["--junit", xml, "--plot", svg]).ok();
    assert!(text.contains(&format!("/arm received {} messages of /angle, /factor in", COUNT + 1)));
    assert!(text.contains(&format!("/torque: same, {COUNT} messages compared\n")), "{text}");
    let said = fs::read_to_string(&junit).unwrap();
    assert!(said.contains("tests=\"2\" failures=\"0\" errors=\"0\""), "{said}");
    assert!(said.contains("<testcase classname=\"/arm\" name=\"/torque\"/>"), "{said}");
    let drawn = fs::read_to_string(&plot).unwrap();
    assert!(drawn.contains(">recorded</text>") && drawn.contains(">re-run</text>"), "{drawn}");
    // The result depends neither on the playback speed nor on the comparison.
    let by_key =
        again(&env, &file, "works", "1.5", &["--key", "number", "--output", "/torque", "--json"]);
    assert_eq!(by_key.json()["outputs"][0]["compared"], COUNT, "{by_key:?}");
    assert_nothing_left_but(&env, &[&file, &junit, &plot]);
}

#[test]
fn it_finds_the_recorded_state_and_its_changes() {
    let env = TestEnv::new();
    let file = recorded_as(&env, "keyed");
    let ran = again(&env, &file, "keyed", "1.5", &["--json"]);
    let said = ran.json();
    assert_eq!(said["keys"]["changed"], 1, "{said}");
    assert_eq!(said["outputs"][1]["same"], true, "{said}");
    // A node that ignores the state answers differently.
    again(&env, &file, "works", "1.5", &[]).fails(1);
    assert_nothing_left_but(&env, &[&file]);
}

#[test]
fn calls_are_compared_by_service_or_left_out() {
    let env = TestEnv::new();
    let file = recorded_as(&env, "calls");
    let said = again(&env, &file, "calls", "1.5", &["--json"]).json();
    let calls = ["/own/gain reply", "/scale request"];
    let outputs = said["outputs"].as_array().unwrap();
    for topic in calls {
        let of = outputs.iter().find(|of| of["topic"] == topic).unwrap();
        assert_eq!((&of["same"], &of["compared"]), (&true.into(), &1.into()), "{said}");
    }
    assert_eq!(said["not_compared"]["calls"], serde_json::json!([]), "{said}");
    let why = again(&env, &file, "works", "1.5", &[]).fails(1);
    assert!(why.contains("not_served: /arm does not serve /own/gain"), "{why}");
    let text = again(&env, &file, "works", "1.5", &["--without-calls"]).ok();
    assert!(
        text.contains("not compared: its calls of /scale and its answers to /own/gain\n"),
        "{text}"
    );
    let said = again(&env, &file, "works", "1.5", &["--without-calls", "--json"]).json();
    let left_out = serde_json::json!({"calls": ["/scale"], "answers": ["/own/gain"]});
    assert_eq!((&said["same"], &said["not_compared"]), (&true.into(), &left_out), "{said}");
    assert_nothing_left_but(&env, &[&file]);
}

#[test]
fn its_time_is_that_of_the_recording() {
    let env = TestEnv::new();
    let file = recorded(&env);
    let mut command = env.command();
    command.arg("rerun").arg(&file);
    command.args(["--json", "--timeout", "60", "--output", "/torque", "--node"]);
    command.args(node_args()).env(ROLE, "works").env_remove(GAIN);
    let ran = RunningCommand::start(command).wait();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    // The recorded node used its host's time since its start.
    let said = ran.json();
    let first = &said["outputs"][0]["first"];
    assert_eq!((&first["field"], &first["number"]), (&"now_ns".into(), &0.into()), "{said}");
    let now_ns: u64 = first["rerun"].as_str().unwrap().parse().unwrap();
    let answered_ns = first["at_ns"].as_u64().unwrap();
    // The angle was sent before its answer, which followed at once.
    assert!((answered_ns - 60_000_000_000..answered_ns).contains(&now_ns), "{said}");
}

#[test]
fn a_changed_program_is_reported_by_field_within_tolerances() {
    let env = TestEnv::new();
    let file = recorded(&env);
    let (junit, plot) = (env.dir.join("rerun.xml"), env.dir.join("rerun.svg"));
    let args = ["--json", "--junit", junit.to_str().unwrap(), "--plot", plot.to_str().unwrap()];
    let ran = again(&env, &file, "works", "1.6", &args);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let said = ran.json();
    let torque = &said["outputs"][1];
    // The first angle is 0, and so is the first answer.
    assert_eq!((&torque["compared"], &torque["differing"]), (&COUNT.into(), &(COUNT - 1).into()));
    assert_eq!(torque["first"]["number"], 1, "{torque}");
    assert_eq!(torque["worst"]["field"], "newton_metres[0]", "{torque}");
    let xml = fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("failures=\"1\"") && xml.contains("newton_metres[0]"), "{xml}");
    assert!(fs::read_to_string(&plot).unwrap().contains("/torque newton_metres[0]"));
    let text = again(&env, &file, "works", "1.6", &[]);
    assert!(text.stdout.contains("first: message 1 at "), "{text:?}");
    let worst = text.stdout.lines().find_map(|line| line.trim().strip_prefix("worst: "));
    assert!(worst.is_some_and(|worst| xml.contains(worst)), "{worst:?} {xml}");
    again(&env, &file, "works", "1.6", &["--tolerance", "newton_metres=1"]).ok();
    again(&env, &file, "works", "1.6", &["--tolerance", "1"]).ok();
    again(&env, &file, "works", "1.6", &["--ignore", "newton_metres[0]"]).ok();
    again(&env, &file, "works", "1.6", &["--tolerance", "newton_metres=-1"]).fails(2);
}

#[test]
fn missing_and_unrecorded_messages_are_differences() {
    let env = TestEnv::new();
    let file = recorded(&env);
    let ran = again(&env, &file, "extra", "1.5", &[]);
    let extra = format!("/extra: DIFFERENT, 0 messages compared, {COUNT} were not recorded");
    assert!(ran.stdout.contains(&extra), "{ran:?}");
    ran.fails(1);
    again(&env, &file, "extra", "1.5", &["--output", "/torque"]).ok();
    let plot = env.dir.join("rerun.svg");
    let mut command = env.command();
    command.arg("rerun").arg(&file).args(["--output", "/extra", "--plot"]).arg(&plot);
    command.args(["--timeout", "60", "--node"]).args(node_args());
    command.env(ROLE, "extra").env(GAIN, "1.5");
    let said = RunningCommand::start(command).wait().fails(1);
    assert!(said.contains("rerun.svg was not written") && !plot.exists(), "{said}");
    let ran = again(&env, &file, "skips", "1.5", &["--key", "number", "--output", "/torque"]);
    let skipped = format!("{} messages compared, 1 recorded messages are missing", COUNT - 1);
    assert!(ran.stdout.contains(&skipped), "{ran:?}");
    ran.fails(1);
}

#[test]
fn a_node_that_dies_or_does_not_answer_is_a_named_error() {
    let env = TestEnv::new();
    let file = recorded(&env);
    let junit = env.dir.join("rerun.xml");
    let said = again(&env, &file, "dies", "1.5", &["--junit", junit.to_str().unwrap()]).fails(1);
    assert!(said.contains("died: /arm has died after message 7 of /angle"), "{said}");
    let xml = fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("errors=\"1\"") && xml.contains("<error type=\"died\""), "{xml}");
    assert_nothing_left_but(&env, &[&file, &junit]);
}

#[test]
fn a_run_that_fails_leaves_its_own_result_and_none_of_an_earlier_run() {
    let env = TestEnv::new();
    let file = recorded(&env);
    let (junit, plot) = (env.dir.join("rerun.xml"), env.dir.join("rerun.svg"));
    fs::write(&junit, "an earlier run").unwrap();
    fs::write(&plot, "an earlier run").unwrap();
    let options = ["--junit", junit.to_str().unwrap(), "--plot", plot.to_str().unwrap()];
    again(&env, &file, "dies", "1", &options).fails(1);
    assert!(fs::read_to_string(&junit).unwrap().contains("<testsuite"));
    assert!(!plot.exists());
    assert_nothing_left_but(&env, &[&file, &junit]);
    let help = rnet!(env, "rerun", "--help").ok();
    assert!(help.contains("robot-net-bench-PID-N"), "{help}");
}

#[test]
fn unwritable_result_is_refused_before_any_removal() {
    let env = TestEnv::new();
    let file = recorded(&env);
    let len = fs::metadata(&file).unwrap().len();
    let (junit, link) = (env.dir.join("rerun.xml"), env.dir.join("link.xml"));
    fs::write(&junit, "an earlier run").unwrap();
    std::os::unix::fs::symlink(&junit, &link).unwrap();
    let same = env.dir.join("same.svg");
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (xml, svg) = (text(&junit), text(&same));
    for (options, words) in [
        (["--junit", &xml, "--plot", "rerun.txt"], "ends in .svg"),
        (["--junit", &text(&file), "--plot", &svg], "is the recording"),
        (["--junit", &text(&link), "--plot", &svg], "is a symbolic link"),
        (["--junit", &text(&env.dir), "--plot", &svg], "is a folder"),
        (["--junit", &svg, "--plot", &svg], "is the file of --junit"),
    ] {
        let said = again(&env, &file, "works", "1.5", &options).fails(2);
        assert!(said.contains(words), "{said}");
        assert_eq!(fs::read_to_string(&junit).unwrap(), "an earlier run");
        assert_eq!(fs::metadata(&file).unwrap().len(), len);
    }
    assert!(!same.exists());
    assert_nothing_left_but(&env, &[&file, &junit, &link]);
}

#[test]
fn a_node_that_spins_or_is_silent_is_a_named_error() {
    let env = TestEnv::new();
    let file = recorded(&env);
    let short = ["--timeout", SHORT_S];
    let said = again(&env, &file, "spins", "1.5", &short).fails(124);
    assert!(
        said.contains("restless: /arm does not become idle after message 7 of /angle"),
        "{said}"
    );
    let said = again(&env, &file, "silent", "1.5", &short).fails(124);
    assert!(said.contains("no_answer: /arm does not answer: it received 41 messages"), "{said}");
}

#[test]
fn a_node_that_is_not_the_recorded_one_is_a_named_error() {
    let env = TestEnv::new();
    let file = recorded(&env);
    let said = again(&env, &file, "alone", "1.5", &["--timeout", SHORT_S]).fails(124);
    assert!(said.contains("not_joined: no node joined"), "{said}");
    let said = again(&env, &file, "renamed", "1.5", &[]).fails(1);
    assert!(said.contains("not_recorded: /other published nothing"), "{said}");
    assert!(said.contains("nodes that did: /arm, /body;"), "{said}");
    again(&env, &file, "renamed", "1.5", &["--name", "/arm"]).ok();
    let said = again(&env, &file, "deaf", "1.5", &["--input", "/factor", "--timeout", SHORT_S]);
    assert!(
        said.fails(124).contains("not_subscribed: /arm did not subscribe to /factor within 15s")
    );
    let said = rnet!(env, "rerun", file.to_str().unwrap(), "--node", "/none/such").fails(1);
    assert!(said.contains("command: cannot start /none/such"), "{said}");
    assert_nothing_left_but(&env, &[&file]);
}

#[test]
fn a_comparison_of_nothing_is_a_named_error() {
    let env = TestEnv::new();
    let file = recorded(&env);
    let junit = env.dir.join("rerun.xml");
    let said = again(
        &env,
        &file,
        "works",
        "1.5",
        &["--output", "/nope", "--junit", junit.to_str().unwrap()],
    )
    .fails(1);
    assert!(
        said.contains("nothing_compared: nothing was compared on /nope: /arm published"),
        "{said}"
    );
    assert!(said.contains("it publishes on /factor_taken, /torque"), "{said}");
    let xml = fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("tests=\"1\" failures=\"0\" errors=\"1\""), "{xml}");
    let said = again(&env, &file, "works", "1.5", &["--start", "1000"]).fails(1);
    assert!(
        said.contains("no_messages: the recording has no message of /angle, /factor"),
        "{said}"
    );
    assert!(said.contains("from 1000 s on"), "{said}");
    // Refused before the command is checked.
    let said = rnet!(env, "rerun", file.to_str().unwrap(), "--input", "/nope", "--node", "/none");
    let said = said.fails(1);
    assert!(said.contains("no_input: the recording has no /nope"), "{said}");
    assert!(said.contains("it has /angle, /factor,"), "{said}");
    for named in [["--key", "nope"], ["--ignore", "torque.x"], ["--tolerance", "nope=1"]] {
        let mut args = vec!["--output", "/torque"];
        args.extend(named);
        let said = again(&env, &file, "works", "1.5", &args).fails(1);
        let field = named[1].trim_end_matches("=1");
        let expected = format!(
            "no_field: {} {field}: messages of /torque have no field \"{field}\"",
            named[0]
        );
        assert!(said.contains(&expected), "{said}");
    }
    assert_nothing_left_but(&env, &[&file, &junit]);
}

/// Rerun nodes whose domains are in this directory.
fn nodes_of(env: &TestEnv) -> usize {
    let setting = format!("RNET_DIR={}/", env.dir.display()).into_bytes();
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let is_ours = |path: PathBuf| {
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(&setting))
    };
    pids.filter(|entry| is_ours(entry.path())).count()
}

#[test]
fn the_node_exits_with_the_command() {
    let env = TestEnv::new();
    let file = recorded(&env);
    let start = || {
        let mut command = env.command();
        command.arg("rerun").arg(&file).args(["--timeout", "60", "--node"]);
        command.args(node_args()).env(ROLE, "spins").env_remove(GAIN);
        let running = RunningCommand::start(command);
        until("the node is there", || nodes_of(&env) == 1);
        running
    };
    let running = start();
    running.signal("INT");
    assert_eq!(running.wait().code, Some(130));
    assert_eq!(nodes_of(&env), 0);
    let mut running = start();
    running.signal("KILL");
    running.wait_for_exit();
    until("the node is gone", || nodes_of(&env) == 0);
    // The next run removes the leftovers of the killed one.
    again(&env, &file, "works", "1.5", &[]).ok();
    assert_nothing_left_but(&env, &[&file]);
}
