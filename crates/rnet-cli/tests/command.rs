//! `rnet command …`.

mod util;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rnet::msgs::{Twist, Vector3};
use rnet::{Command, Node};
use serde_json::json;
use util::{Place, SOON};

fn twist(x: f64) -> Twist {
    Twist { linear: Some(Vector3 { x, ..Default::default() }), ..Default::default() }
}

/// A receiver that falls back to standing still, and what it has applied.
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
    let place = Place::new();
    let none = rnet!(place, "command", "list");
    assert!(none.stderr.contains("no commands"), "{none:?}");
    let (a, b) = (place.node("base"), place.node("hand"));
    let (command, _applied) = base(&a);
    let listed = rnet!(place, "command", "list").ok();
    assert!(listed.contains("/cmd_vel") && listed.contains("fallback"), "{listed}");
    let driver = b.drive::<Twist>("/cmd_vel").priority(8).lease(Duration::from_secs(60));
    let mut driver = driver.take(SOON).unwrap();
    driver.send(&twist(1.0)).unwrap();
    let who = rnet!(place, "command", "who", "/cmd_vel", "--json").json();
    let receiver = &who["receivers"][0];
    assert_eq!((&receiver["driver"], &receiver["priority"]), (&json!("/hand"), &json!(8)));
    let who = rnet!(place, "command", "who", "/cmd_vel").ok();
    assert!(who.contains("driver: /hand") && who.contains("deadline: 500 ms"), "{who}");
    let said = rnet!(place, "command", "who", "/cmd_val").fails(1);
    assert!(said.contains("no command /cmd_val") && said.contains("/cmd_vel"), "{said}");
    driver.release().unwrap();
    let trail = rnet!(place, "command", "log", "/cmd_vel").ok();
    for what in ["opened", "granted", "/hand (priority 8)", "in force", "released", "fallback"] {
        assert!(trail.contains(what), "{what}: {trail}");
    }
    let first = rnet!(place, "command", "log", "/cmd_vel", "--count", "1", "--json").ok();
    assert!(first.contains(r#""kind":"opened""#), "{first}");
    drop(command);
}

#[test]
fn a_trail_is_followed_until_it_is_stopped() {
    let place = Place::new();
    let (a, b) = (place.node("base"), place.node("hand"));
    let (command, _applied) = base(&a);
    let mut log = place.spawn(&["command", "log", "/cmd_vel", "--follow"]);
    // What was before it is said first.
    log.until_stdout("opened");
    for round in ["first", "second"] {
        let driver = b.drive::<Twist>("/cmd_vel").lease(Duration::from_secs(60));
        let driver = driver.take(SOON).expect(round);
        log.until_stdout("granted");
        driver.release().unwrap();
        log.until_stdout("released");
    }
    log.signal("INT");
    assert_eq!(log.wait().code, Some(130));
    drop(command);
}

#[test]
fn a_command_is_taken_driven_and_released() {
    let place = Place::new();
    let (a, b) = (place.node("base"), place.node("hand"));
    let (command, applied) = base(&a);
    let drive =
        |priority| b.drive::<Twist>("/cmd_vel").priority(priority).lease(Duration::from_secs(60));
    let mut driver = drive(5).take(SOON).unwrap();
    driver.send(&twist(1.0)).unwrap();
    let said = rnet!(place, "command", "take", "/cmd_vel", "--for", "0.1").fails(1);
    assert!(said.contains("/hand has it with priority 5"), "{said}");
    let data = "{linear: {x: 3}}";
    rnet!(place, "command", "take", "/cmd_vel", data, "-p", "9", "--for", "0.2").ok();
    assert!(applied.lock().unwrap().contains(&3.0));
    assert_eq!(applied.lock().unwrap().last(), Some(&0.0), "it was given back");
    assert!(!driver.in_force());
    // To take it without a message is to stop.
    let mut driver = drive(5).take(SOON).unwrap();
    driver.send(&twist(2.0)).unwrap();
    rnet!(place, "command", "take", "/cmd_vel", "--priority", "6", "--for", "0.7").ok();
    assert_eq!(applied.lock().unwrap().last(), Some(&0.0));
    let mut driver = drive(5).take(SOON).unwrap();
    rnet!(place, "command", "release", "/cmd_vel").ok();
    assert!(driver.send(&twist(4.0)).is_err());
    assert_eq!(command.status().holder, "");
    let said = rnet!(place, "command", "take", "/cmd_vel", "{angel: 1}").fails(2);
    assert!(said.contains("angel"), "{said}");
    rnet!(place, "command", "take", "/cmd_vel", "{}", "--rate", "0").fails(2);
    rnet!(place, "command", "take", "/cmd_vel", "--lease", "0").fails(1);
}
