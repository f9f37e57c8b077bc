//! Commands are validated again before they are applied; authority is granted and lost.

use crate::common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::msgs::command_event::Kind;
use rnet::msgs::command_status::State;
use rnet::msgs::{CommandEvent, Twist};
use rnet::{Command, Driver, Error, FallbackReason, Node};

const TOPIC: &str = "/cmd";
const SAFE: &[u8] = b"safe";
/// Longer than any pause of a busy machine, so that no fallback runs unintentionally.
const NEVER: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_millis(100);

type Applied = Arc<Mutex<Vec<Vec<u8>>>>;

/// A receiver whose code becomes ready `wait` after the command has become invalid.
fn waiting(node: &Node, deadline: Duration) -> (Command, Applied) {
    let applied = Applied::default();
    let all = applied.clone();
    let builder = node.command::<[u8]>(TOPIC).deadline(deadline).fallback(SAFE);
    let command = builder.apply_checked(move |bytes, still_valid| {
        let begun = Instant::now();
        while bytes == b"wait" && still_valid() {
            assert!(begun.elapsed() < LONG, "it stays valid");
            std::thread::sleep(Duration::from_millis(1)); // sleep: simulates a held interpreter lock
        }
        if still_valid() {
            all.lock().unwrap().push(bytes.to_vec());
        }
    });
    (command.unwrap(), applied)
}

fn driver(node: &Node, priority: i32) -> Driver<[u8]> {
    node.drive(TOPIC).priority(priority).lease(NEVER).timeout(LONG).take().unwrap()
}

fn last(applied: &Applied) -> Vec<u8> {
    applied.lock().unwrap().last().cloned().unwrap_or_default()
}

fn wait_for(applied: &Applied, content: &[u8]) {
    eventually("the command is applied", || last(applied) == content);
}

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let orders = common::orders();
    match role.as_str() {
        "driver" => {
            let node = net.node("driver");
            let mut driver = driver(&node, 1);
            driver.send(b"wait").unwrap();
            tell("sent");
            let _ = orders.recv();
        }
        "receiver" => {
            let node = net.node("base");
            let _command = node.command::<[u8]>(TOPIC).fallback_hold().apply(|_| {}).unwrap();
            tell("receives");
            let _ = orders.recv();
        }
        _ => panic!("unknown role: {role}"),
    }
}

#[test]
fn a_command_that_became_too_old_before_it_could_be_applied_is_dropped() {
    let net = Net::new("commands-j-late");
    let (base, hand) = (net.node("base"), net.node("hand"));
    let (command, applied) = waiting(&base, SHORT);
    let mut driver = driver(&hand, 1);
    eventually("the command is received", || {
        driver.send(b"wait").unwrap();
        command.stats().late > 0
    });
    eventually("a command in time is applied", || {
        driver.send(b"go").unwrap();
        last(&applied) == b"go"
    });
    assert!(applied.lock().unwrap().iter().all(|content| content != b"wait"));
}

/// The deadline of the previous command passes while the next one waits: the fallback runs between them.
#[test]
fn the_fallback_comes_before_a_command_that_waited_past_the_deadline() {
    let net = Net::new("commands-j-due");
    let (base, hand) = (net.node("base"), net.node("hand"));
    let (did, waits) = (Applied::default(), Arc::new(AtomicBool::new(false)));
    let (applies, falls, holds) = (did.clone(), did.clone(), waits.clone());
    let command = base
        .command::<[u8]>(TOPIC)
        .deadline(Duration::from_secs(1))
        .fallback_handler(move |why| falls.lock().unwrap().push(format!("{why:?}").into_bytes()))
        .apply_checked(move |bytes, still_valid| {
            // Not ready before the previous deadline has passed.
            let waits = bytes == b"2" && holds.swap(false, Ordering::Relaxed);
            while waits && still_valid() {
                std::thread::sleep(Duration::from_millis(1)); // sleep: simulates a held interpreter lock
            }
            if still_valid() {
                applies.lock().unwrap().push(bytes.to_vec());
            }
        })
        .unwrap();
    let mut driver = driver(&hand, 1);
    for turn in 1.. {
        assert!(turn < 100, "the machine is too slow for every round");
        did.lock().unwrap().clear();
        waits.store(true, Ordering::Relaxed);
        driver.send(b"1").unwrap();
        eventually("the first command is applied", || last(&did) == b"1");
        // The second command must not be too old when the deadline of the first has passed.
        std::thread::sleep(Duration::from_millis(500)); // sleep: between two commands
        driver.send(b"2").unwrap();
        eventually("the second command arrived", || last(&did) != b"1");
        let deadline = format!("{:?}", FallbackReason::Deadline).into_bytes();
        assert_eq!(did.lock().unwrap()[1], deadline);
        // On a slow machine the second command may have become too old itself.
        eventually("the second command is applied or dropped", || {
            last(&did) == b"2" || command.stats().late >= turn
        });
        if last(&did) == b"2" {
            break;
        }
    }
}

#[test]
fn command_is_dropped_when_another_driver_requests_its_authority() {
    let net = Net::new("commands-j-preempted");
    let (base, low, high) = (net.node("base"), net.node("low"), net.node("high"));
    let (command, applied) = waiting(&base, NEVER);
    let mut first = driver(&low, 1);
    first.send(b"wait").unwrap();
    let mut second = driver(&high, 2);
    eventually("the command is dropped", || command.stats().superseded == 1);
    second.send(b"go").unwrap();
    wait_for(&applied, b"go");
    assert_eq!(*applied.lock().unwrap(), [SAFE, b"go"]);
}

#[test]
fn command_is_dropped_when_its_driver_leaves_or_releases() {
    let net = Net::new("commands-j-gone");
    let (base, hand) = (net.node("base"), net.node("hand"));
    let (command, applied) = waiting(&base, NEVER);
    let mut released = driver(&hand, 1);
    released.send(b"wait").unwrap();
    released.release().unwrap();
    eventually("no driver has authority", || command.status().holder.is_empty());
    let mut child = Child::spawn(&net, "driver");
    child.expect("sent");
    child.kill();
    eventually("both commands are dropped", || command.stats().superseded == 2);
    eventually("no driver has authority", || command.status().holder.is_empty());
    assert_eq!(last(&applied), SAFE);
    assert!(applied.lock().unwrap().iter().all(|content| content == SAFE));
}

/// An emergency stop takes authority and sends no command.
#[test]
fn change_of_authority_triggers_the_fallback_at_once() {
    let net = Net::new("commands-j-stop");
    let (base, low, high) = (net.node("base"), net.node("low"), net.node("high"));
    let (command, applied) = waiting(&base, NEVER);
    let log = rnet::command_log_topic(TOPIC);
    let mut log = low
        .subscriber::<CommandEvent>(&log)
        .lane(rnet::Lane::Urgent)
        .transient_local()
        .keep_all()
        .open()
        .unwrap();
    let mut first = driver(&low, 1);
    first.send(b"go").unwrap();
    wait_for(&applied, b"go");
    let _stop = driver(&high, 2);
    // Before the new driver learns that it has authority.
    assert_eq!(*applied.lock().unwrap(), [SAFE, b"go", SAFE]);
    assert_eq!(
        (command.status().state(), command.status().holder.as_str()),
        (State::Fallback, "/high")
    );
    let mut kinds = Vec::new();
    while !kinds.ends_with(&[Kind::Preempted, Kind::Granted]) {
        let event = log.recv_timeout(LONG).unwrap().into_message();
        if event.kind() == Kind::Fallback && kinds.contains(&Kind::InForce) {
            assert!(event.text.contains("higher priority"), "{}", event.text);
        }
        kinds.push(event.kind());
    }
    assert!(!first.in_force());
}

#[test]
fn commands_and_the_fallback_are_forwarded_to_a_topic() {
    let net = Net::new("commands-j-forward");
    let (base, hand, wheels) = (net.node("base"), net.node("hand"), net.node("wheels"));
    let at = |x: f64| Twist {
        linear: Some(rnet::msgs::Vector3 { x, ..Default::default() }),
        ..Default::default()
    };
    let builder = base.command::<Twist>(TOPIC).deadline(NEVER).fallback(&at(-1.0));
    let command = builder.forward("/wheels").unwrap();
    let mut driver = hand.drive::<Twist>(TOPIC).lease(NEVER).timeout(LONG).take().unwrap();
    driver.send(&at(1.0)).unwrap();
    eventually("the command is applied", || command.stats().applied == 1);
    // A late joiner receives the current command.
    let mut twists = wheels
        .subscriber::<Twist>("/wheels")
        .lane(rnet::Lane::Urgent)
        .transient_local()
        .open()
        .unwrap();
    let mut next = || twists.recv_timeout(LONG).unwrap().linear.unwrap().x;
    assert_eq!(next(), 1.0);
    driver.release().unwrap();
    assert_eq!(next(), -1.0);
    drop(command);

    for (topic, why) in [("/wheels", "cannot be published"), (TOPIC, "the topic of the command")] {
        let builder = base.command::<Twist>(TOPIC);
        let builder = match topic {
            TOPIC => builder.fallback_zero(),
            _ => builder.fallback_handler(|_| {}),
        };
        let error = builder.forward(topic).map(drop).unwrap_err();
        assert!(matches!(&error, Error::BadValue { why: of, .. } if of.contains(why)), "{error}");
    }
}

#[test]
fn a_fallback_that_fails_when_it_is_opened_is_an_error() {
    let net = Net::new("commands-j-first");
    let base = net.node("base");
    let failing = base.command::<[u8]>(TOPIC).fallback_handler(|_| panic!("on purpose"));
    let error = failing.apply(|_| {}).map(drop).unwrap_err();
    assert!(matches!(&error, Error::BadValue { why, .. } if why.contains("failed")), "{error}");
    let failing = base.command::<[u8]>(TOPIC).fallback(SAFE);
    let error = failing.apply(|_| panic!("on purpose")).map(drop).unwrap_err();
    assert!(matches!(&error, Error::BadValue { .. }), "{error}");
    // The failed receivers leave nothing behind.
    base.command::<[u8]>(TOPIC).fallback_hold().apply(|_| {}).map(drop).unwrap();
}

#[test]
fn driver_can_retake_its_authority() {
    let net = Net::new("commands-j-retake");
    let (base, hand, other) = (net.node("base"), net.node("hand"), net.node("other"));
    let (command, applied) = waiting(&base, NEVER);
    let mut first = driver(&hand, 1);
    first.retake().unwrap();
    let number = first.number();
    let mut second = driver(&other, 2);
    second.send(b"2").unwrap();
    wait_for(&applied, b"2");
    eventually("the driver is notified", || !first.in_force());
    let refused = first.retake().unwrap_err();
    assert!(
        matches!(&refused, Error::NotInForce { why, .. } if why.contains("/other")),
        "{refused}"
    );
    assert!(matches!(first.send(b"1"), Err(Error::NotInForce { .. })));
    second.release().unwrap();
    first.retake().unwrap();
    assert!(first.number() > number && first.in_force());
    first.send(b"1").unwrap();
    wait_for(&applied, b"1");
    // The same after the receiver restarts.
    drop(command);
    eventually("the driver is notified", || !first.in_force());
    let (_command, applied) = waiting(&base, NEVER);
    first.retake().unwrap();
    first.send(b"3").unwrap();
    wait_for(&applied, b"3");
}

#[test]
fn driver_can_retake_its_authority_automatically() {
    let net = Net::new("commands-j-auto");
    let (base, hand, other) = (net.node("base"), net.node("hand"), net.node("other"));
    let (command, applied) = waiting(&base, NEVER);
    let drive = hand.drive::<[u8]>(TOPIC).priority(1).lease(SHORT).auto_retake(true);
    let mut auto = drive.timeout(LONG).take().unwrap();
    // Its lease expires.
    eventually("no driver has authority", || command.status().holder.is_empty());
    eventually("the driver has authority again", || {
        auto.send(b"1").is_ok() && last(&applied) == b"1"
    });
    // Another driver takes authority and releases it.
    let mut high = driver(&other, 2);
    high.send(b"2").unwrap();
    wait_for(&applied, b"2");
    eventually("the driver is notified", || !auto.in_force());
    for _ in 0..5 {
        let error = auto.send(b"1").unwrap_err();
        assert!(matches!(error, Error::NotInForce { .. }), "{error}");
    }
    drop(high);
    eventually("the driver has authority again", || {
        auto.send(b"3").is_ok() && last(&applied) == b"3"
    });
    // The receiver restarts.
    drop(command);
    eventually("the driver is notified", || !auto.in_force());
    let (_command, applied) = waiting(&base, NEVER);
    eventually("the driver has authority again", || {
        auto.send(b"4").is_ok() && last(&applied) == b"4"
    });
}

#[test]
fn a_receiver_whose_process_is_stopped_is_not_waited_for() {
    let net = Net::new("commands-j-stopped");
    let hand = net.node("hand");
    let mut child = Child::spawn(&net, "receiver");
    child.expect("receives");
    let held = driver(&hand, 1);
    child.stop();
    let is_stopped = |error: &Error| matches!(error, Error::NotInForce { why, .. } if why.contains("receiver /base is stopped"));
    let taken = hand.drive::<[u8]>(TOPIC).priority(2).lease(NEVER).timeout(NEVER).take();
    let error = taken.map(drop).unwrap_err();
    assert!(is_stopped(&error), "{error}");
    let error = held.release().unwrap_err();
    assert!(is_stopped(&error), "{error}");
    child.resume();
    driver(&hand, 3).release().unwrap();
}
