//! `rnet command …`.

use crate::util;

use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rnet::msgs::{Twist, Vector3};
use rnet::{Command, Node};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use util::{DOMAIN, TEST_TIMEOUT, TestEnv};

fn twist(x: f64) -> Twist {
    Twist { linear: Some(Vector3 { x, ..Default::default() }), ..Default::default() }
}

/// A receiver whose fallback is a stop, and the values that it applied.
fn base(node: &Node) -> (Command, Arc<Mutex<Vec<f64>>>) {
    let applied = Arc::new(Mutex::new(Vec::new()));
    let wheels = applied.clone();
    let command = node.command::<Twist>("/cmd_vel").deadline(Duration::from_millis(500));
    let command = command.fallback_zero().apply(move |twist| {
        wheels.lock().unwrap().push(twist.linear.map_or(0.0, |linear| linear.x));
    });
    (command.unwrap(), applied)
}

#[test]
fn a_command_is_shown_with_its_driver_and_its_trail() {
    let env = TestEnv::new();
    let none = rnet!(env, "command", "list");
    assert!(none.stderr.contains("no commands"), "{none:?}");
    let (a, b) = (env.node("base"), env.node("hand"));
    let (command, _applied) = base(&a);
    let listed = rnet!(env, "command", "list").ok();
    assert!(listed.contains("/cmd_vel") && listed.contains("fallback"), "{listed}");
    let driver = b.drive::<Twist>("/cmd_vel").priority(8).lease(Duration::from_secs(60));
    let mut driver = driver.timeout(TEST_TIMEOUT).take().unwrap();
    driver.send(&twist(1.0)).unwrap();
    let who = rnet!(env, "command", "who", "/cmd_vel", "--json").json();
    let receiver = &who["receivers"][0];
    assert_eq!((&receiver["driver"], &receiver["priority"]), (&json!("/hand"), &json!(8)));
    let who = rnet!(env, "command", "who", "/cmd_vel").ok();
    assert!(who.contains("driver: /hand") && who.contains("deadline: 500 ms"), "{who}");
    // The receiver reported last before it counted these: the table shows the age of its counts.
    for _ in 0..9 {
        driver.send(&twist(1.0)).unwrap();
    }
    while command.stats().applied < 2 {
        std::thread::sleep(Duration::from_millis(1)); // sleep: polling interval
    }
    assert!(command.status().applied >= 2, "{:?}", command.status());
    let listed = rnet!(env, "command", "list").ok();
    assert!(listed.contains("SINCE") && !listed.contains("APPLIED"), "{listed}");
    let who = rnet!(env, "command", "who", "/cmd_vel", "--json").json();
    assert!(who["receivers"][0]["since_s"].as_f64().unwrap() > 0.0, "{who}");
    let who = rnet!(env, "command", "who", "/cmd_vel").ok();
    assert!(who.contains("since: ") && who.contains("applied before: "), "{who}");
    let said = rnet!(env, "command", "who", "/cmd_val").fails(1);
    assert!(said.contains("command /cmd_val not found") && said.contains("/cmd_vel"), "{said}");
    driver.release().unwrap();
    let trail = rnet!(env, "command", "log", "/cmd_vel").ok();
    for what in ["opened", "granted", "/hand (priority 8)", "in force", "released", "fallback"] {
        assert!(trail.contains(what), "{what}: {trail}");
    }
    let first = rnet!(env, "command", "log", "/cmd_vel", "--count", "1", "--json").ok();
    assert!(first.contains(r#""kind":"opened""#), "{first}");
    drop(command);
}

#[test]
fn a_trail_is_followed_until_it_is_stopped() {
    let env = TestEnv::new();
    let (a, b) = (env.node("base"), env.node("hand"));
    let (command, _applied) = base(&a);
    let mut log = env.spawn(&["command", "log", "/cmd_vel", "--follow"]);
    // Earlier entries come first.
    log.wait_for_stdout("opened");
    for round in ["first", "second"] {
        let driver = b.drive::<Twist>("/cmd_vel").lease(Duration::from_secs(60));
        let driver = driver.timeout(TEST_TIMEOUT).take().expect(round);
        log.wait_for_stdout("granted");
        driver.release().unwrap();
        log.wait_for_stdout("released");
    }
    log.signal("INT");
    assert_eq!(log.wait().code, Some(130));
    drop(command);
}

#[test]
fn a_command_is_taken_driven_and_released() {
    let env = TestEnv::new();
    let (a, b) = (env.node("base"), env.node("hand"));
    let (command, applied) = base(&a);
    let drive =
        |priority| b.drive::<Twist>("/cmd_vel").priority(priority).lease(Duration::from_secs(60));
    let mut driver = drive(5).timeout(TEST_TIMEOUT).take().unwrap();
    driver.send(&twist(1.0)).unwrap();
    let said = rnet!(env, "command", "take", "/cmd_vel", "--for", "0.1").fails(1);
    assert!(said.contains("/hand holds it with priority 5"), "{said}");
    let data = "{linear: {x: 3}}";
    rnet!(env, "command", "take", "/cmd_vel", data, "-p", "9", "--for", "0.2").ok();
    assert!(applied.lock().unwrap().contains(&3.0));
    assert_eq!(applied.lock().unwrap().last(), Some(&0.0), "it was given back");
    assert!(!driver.in_force());
    // Taking it without a message stops the robot.
    let mut driver = drive(5).timeout(TEST_TIMEOUT).take().unwrap();
    driver.send(&twist(2.0)).unwrap();
    rnet!(env, "command", "take", "/cmd_vel", "--priority", "6", "--for", "0.7").ok();
    assert_eq!(applied.lock().unwrap().last(), Some(&0.0));
    let mut driver = drive(5).timeout(TEST_TIMEOUT).take().unwrap();
    rnet!(env, "command", "release", "/cmd_vel").ok();
    assert!(driver.send(&twist(4.0)).is_err());
    // It also takes over from a driver with the highest possible priority.
    let mut driver = drive(rnet::HIGHEST_PRIORITY).timeout(TEST_TIMEOUT).take().unwrap();
    driver.send(&twist(2.0)).unwrap();
    let released = rnet!(env, "command", "release", "/cmd_vel", "--json").json();
    assert_eq!(released, json!({"command": "/cmd_vel", "released": true}));
    assert!(driver.send(&twist(4.0)).is_err());
    assert_eq!(command.status().holder, "");
    let said = rnet!(env, "command", "take", "/cmd_vel", "{angel: 1}").fails(2);
    assert!(said.contains("angel"), "{said}");
    rnet!(env, "command", "take", "/cmd_vel", "{}", "--rate", "0").fails(2);
    rnet!(env, "command", "take", "/cmd_vel", "--lease", "0").fails(1);
}

const ROLE: &str = "RNET_TEST_RECEIVER";

/// A receiver in a separate process, which runs this test program.
#[test]
#[ignore = "entry point of the child processes"]
fn the_receiver() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let node = Node::new("other").unwrap();
    let deadline = Duration::from_millis(500);
    let command = node.command::<[u8]>("/other").deadline(deadline).fallback_hold().apply(|_| {});
    println!("opened");
    let _command = command.unwrap();
    std::thread::park();
}

fn receiver(env: &TestEnv) -> Child {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["command::the_receiver", "--exact", "--ignored", "--nocapture"]).env(ROLE, "1");
    child.env("RNET_DIR", &env.dir).env("RNET_DOMAIN", DOMAIN).env("RNET_NETWORK", "off");
    child.stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_receiver_that_is_stopped_does_not_hide_the_others() {
    let env = TestEnv::new();
    let a = env.node("base");
    let (command, _applied) = base(&a);
    let mut other = receiver(&env);
    // The receiver exists once it answers.
    while rnet!(env, "command", "who", "/other").code != Some(0) {}
    let pid = Pid::from_raw(other.id().cast_signed()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let mut listed = rnet!(env, "command", "list");
    // The kernel delivers the signal asynchronously.
    while !listed.stdout.contains("no answer") {
        listed = rnet!(env, "command", "list");
    }
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.stdout.contains("/cmd_vel") && listed.stdout.contains("fallback"), "{listed:?}");
    assert!(listed.stderr.contains("/other does not answer"), "{listed:?}");
    let all = rnet!(env, "command", "list", "--json").json();
    let of = |name| all["commands"].as_array().unwrap().iter().find(|c| c["command"] == name);
    assert_eq!(of("/other").unwrap()["state"], "no_answer");
    assert_eq!(of("/cmd_vel").unwrap()["state"], "fallback");
    // All tools that report problems name it.
    let why = "/other, the receiver of /other, does not answer: its process";
    assert!(rnet!(env, "doctor").stdout.contains(why));
    assert!(rnet!(env, "status").stdout.contains(why));
    assert!(rnet!(env, "top", "--once").stdout.contains(why));
    let metrics = rnet!(env, "metrics", "--over", "0.1").ok();
    assert!(metrics.contains("check=\"no_answer\"} 1"), "{metrics}");
    for what in ["take", "release"] {
        let said = rnet!(env, "command", what, "/other").fails(1);
        assert!(said.contains("the process of its receiver /other is stopped"), "{said}");
    }
    kill_process(pid, Signal::KILL).unwrap();
    other.wait().unwrap();
    drop(command);
}

#[test]
fn a_fallback_that_fails_is_shown() {
    let env = TestEnv::new();
    let node = env.node("base");
    let command = node.command::<[u8]>("/bad").fallback_handler(|why| {
        assert_eq!(why, rnet::FallbackReason::Opened, "on purpose");
    });
    let command = command.apply(|_| {}).unwrap();
    let mut driver = node.drive::<[u8]>("/bad").timeout(TEST_TIMEOUT).take().unwrap();
    driver.send(b"go").unwrap();
    drop(driver);
    let mut listed = String::new();
    while !listed.contains("FALLBACK FAILED") {
        listed = rnet!(env, "command", "list").ok();
    }
    let who = rnet!(env, "command", "who", "/bad", "--json").json();
    assert_eq!(who["receivers"][0]["fallback_failed"], json!(true));
    let why = "/base has fallen back on /bad, and its fallback FAILED";
    assert!(rnet!(env, "doctor").stdout.contains(why));
    assert!(rnet!(env, "status").stdout.contains(why));
    assert!(rnet!(env, "top", "--once").stdout.contains(why));
    let metrics = rnet!(env, "metrics", "--over", "0.1").ok();
    assert!(metrics.contains("check=\"fallback_failed\"} 1"), "{metrics}");
    drop(command);
}

#[test]
fn data_is_sent_as_often_as_the_receiver_needs_it() {
    let env = TestEnv::new();
    // The receiver may start later.
    let take = env.spawn(&["command", "take", "/quick", "x: 1", "-r", "2", "--for", "0.1"]);
    let node = env.node("base");
    let command = node.command::<Vector3>("/quick").deadline(Duration::from_millis(400));
    let command = command.fallback_zero().apply(|_| {}).unwrap();
    let took = take.wait();
    assert_eq!(took.code, Some(0), "{took:?}");
    assert!(took.stderr.contains("give --rate 8 or more"), "{took:?}");
    let taken = rnet!(env, "--json", "command", "take", "/quick", "x: 1", "--for", "0.1").json();
    assert_eq!((&taken["command"], &taken["rate_hz"]), (&json!("/quick"), &json!(20.0)));
    drop(command);
    let command = node.command::<Vector3>("/quick").deadline(Duration::from_millis(50));
    let command = command.fallback_zero().apply(|_| {}).unwrap();
    let taken = rnet!(env, "--json", "command", "take", "/quick", "x: 1", "--for", "0.1").json();
    assert_eq!(taken["rate_hz"], json!(60.0));
    drop(command);
}

#[test]
fn a_stop_outlasts_its_program_by_the_lease() {
    let env = TestEnv::new();
    let (a, b) = (env.node("base"), env.node("hand"));
    let (command, _applied) = base(&a);
    // Longer than the test's time limit.
    let mut stop = env.spawn(&["command", "take", "/cmd_vel", "-p", "9", "--lease", "600"]);
    stop.wait_for_stderr("drives /cmd_vel");
    stop.signal("KILL");
    stop.wait();
    let drive =
        |priority| b.drive::<Twist>("/cmd_vel").priority(priority).lease(Duration::from_secs(60));
    while a.peers().iter().any(|peer| peer.contains("command")) {
        std::thread::sleep(Duration::from_millis(1)); // sleep: polling interval
    }
    let Err(rnet::Error::NotInForce { why, .. }) = drive(9).timeout(TEST_TIMEOUT).take() else {
        panic!("it had authority at once");
    };
    assert!(why.contains("holds it with priority 9"), "{why}");
    drive(10).timeout(TEST_TIMEOUT).take().unwrap().release().unwrap();
    drive(0).timeout(TEST_TIMEOUT).take().unwrap().release().unwrap();
    drop(command);
}

#[test]
fn waiting_for_a_receiver_and_lost_authority_are_reported_at_once() {
    let env = TestEnv::new();
    let node = env.node("base");
    let (command, _applied) = base(&node);
    let near = "waiting for a receiver: command /cmd_val not found";
    let mut wrong = env.spawn(&["command", "take", "/cmd_val", "--timeout", "600"]);
    wrong.wait_for_stderr(near);
    wrong.signal("INT");
    assert_eq!(wrong.wait().code, Some(130));
    let said = rnet!(env, "command", "take", "/cmd_val", "--timeout", "0.05").fails(124);
    assert!(said.contains("after 50ms: command /cmd_val not found"), "{said}");
    assert!(said.contains("did you mean /cmd_vel"), "{said}");
    // A script reads the document to learn that it has authority.
    let mut stop = env.spawn(&["--json", "command", "take", "/cmd_vel"]);
    stop.wait_for_stdout("\"driver\": \"/rnet_command_");
    assert!(command.status().holder.starts_with("/rnet_command_"));
    stop.signal("INT");
    assert_eq!(stop.wait().code, Some(130));
    // A reader that closes the pipe does not end a stop.
    let mut unread = env.command();
    unread.args(["--json", "command", "take", "/cmd_vel"]).stderr(Stdio::null());
    let mut unread = unread.spawn().unwrap();
    drop(unread.stdout.take());
    while command.status().holder.is_empty() {
        std::thread::sleep(Duration::from_millis(1)); // sleep: polling interval
    }
    kill_process(Pid::from_raw(unread.id().cast_signed()).unwrap(), Signal::INT).unwrap();
    assert_eq!(unread.wait().unwrap().code(), Some(130), "it was ended by its reader");
    rnet!(env, "command", "log", "/cmd_vel", "--count", "0").fails(2);
    let data = "{linear: {x: 3}}";
    let sent = rnet!(env, "topic", "pub", "/cmd_vel", data, "--once");
    assert!(sent.stderr.contains("/cmd_vel is a command, and /base ignores messages"), "{sent:?}");
    let other = rnet!(env, "topic", "pub", "/other", "--text", "x", "--once", "--no-wait");
    assert!(!other.stderr.contains("command"), "{other:?}");
    drop(command);
}
