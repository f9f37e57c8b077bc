//! The persister dies or is stopped while other nodes need it.

use std::time::{Duration, Instant};

use rnet::state::Value;

use super::{obey, persister, reboot, set};
use crate::common::{Child, Net, eventually, tell};

/// Increments two durable keys in one transaction, repeatedly.
pub fn writer(net: &Net) {
    let node = net.node("writer");
    let state = node.state().unwrap();
    crate::common::no_core();
    let last = state.get_as::<i64>("/n").unwrap().unwrap_or(0);
    for n in last + 1.. {
        let mut both = state.transaction();
        both.put("/n").durable(true).set(n).unwrap();
        both.put("/twin").durable(true).set(n).unwrap();
        both.commit().unwrap();
        tell(&n.to_string());
    }
}

/// Runs the parent's orders.
pub fn servant(net: &Net) {
    let node = net.node("servant");
    let state = node.state().unwrap();
    tell("ready");
    obey(&state);
}

#[test]
fn power_loss_at_any_time_keeps_committed_keys() {
    let net = Net::new("power");
    let mut reported = 0;
    for round in 0..15u64 {
        let mut child = Child::spawn(&net, "writer");
        for _ in 0..=round % 5 {
            reported = child.hear().parse().unwrap();
        }
        // At any point of a commit, not only at its end.
        let until = Instant::now() + Duration::from_micros(round * 397 % 4000);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        child.kill();
        while let Some(more) = child.heard_before_its_end() {
            reported = more.parse().unwrap();
        }
        reboot(&net);
        let node = net.node("look");
        let state = node.state().unwrap();
        let n = state.get_as::<i64>("/n").unwrap().unwrap();
        assert!(
            n == reported || n == reported + 1,
            "the store has {n}, the writer reported {reported}"
        );
        assert_eq!(state.get_as::<i64>("/twin").unwrap(), Some(n));
        assert_eq!(state.disk_reports().unwrap(), [""; 0]);
        drop((state, node));
        reboot(&net);
    }
}

#[test]
fn killed_persister_is_replaced_by_the_next_writer() {
    let net = Net::new("killed");
    let node = net.node("here");
    let state = node.state().unwrap();
    let mut child = persister(&net);
    set(&state, "/a", 1);
    child.kill();
    set(&state, "/a", 2);
    set(&state, "/b", 3);
    drop((state, node));
    reboot(&net);
    let state = net.node("again").state().unwrap();
    let values = ["/first", "/a", "/b"].map(|key| state.get_as::<i64>(key).unwrap());
    assert_eq!(values, [Some(1), Some(2), Some(3)]);
}

#[test]
fn stopped_persister_is_replaced_and_continues_as_a_writer() {
    let net = Net::new("stopped");
    let node = net.node("here");
    let state = node.state().unwrap();
    let mut child = persister(&net);
    for round in 0..3i64 {
        child.stop();
        let begun = Instant::now();
        set(&state, "/a", round);
        // In the first round the child is the persister.
        assert!(round > 0 || begun.elapsed() >= Duration::from_millis(500));
        child.resume();
        child.say(&format!("set /child {round}"));
        child.expect("ok");
        set(&state, "/b", round);
    }
    child.finish();
    drop((state, node));
    reboot(&net);
    let state = net.node("again").state().unwrap();
    for key in ["/child", "/a", "/b"] {
        assert_eq!(state.get(key).unwrap(), Some(Value::Int(2)), "{key}");
    }
    assert_eq!(state.disk_reports().unwrap(), [""; 0]);
}

#[test]
fn closing_persister_hands_over() {
    let net = Net::new("leaves");
    let node = net.node("here");
    let state = node.state().unwrap();
    for i in 0..5i64 {
        let other = net.node(&format!("other{i}"));
        set(&other.state().unwrap(), "/a", i);
        set(&state, "/b", i);
    }
    // Its durable last will is executed and on disk when it exits normally.
    let leaver = net.node("leaver");
    leaver.state().unwrap().put("/left").durable(true).last_will(2).set(1).unwrap();
    drop(leaver);
    eventually("the will is executed", || state.get("/left").unwrap() == Some(Value::Int(2)));
    drop((state, node));
    reboot(&net);
    let state = net.node("again").state().unwrap();
    for (key, value) in [("/a", 4), ("/b", 4), ("/left", 2)] {
        assert_eq!(state.get(key).unwrap(), Some(Value::Int(value)), "{key}");
    }
}

#[test]
fn the_durable_will_of_a_killed_persister_is_kept() {
    let net = Net::new("willed");
    let node = net.node("here");
    let state = node.state().unwrap();
    let mut child = Child::spawn(&net, "servant");
    child.expect("ready");
    child.say("will /c 5");
    child.expect("ok");
    child.kill();
    eventually("the will is executed", || {
        // A new node cleans up after dead ones.
        net.node("sweeper").state().unwrap();
        state.get("/c").unwrap() == Some(Value::Int(-5))
    });
    drop((state, node));
    reboot(&net);
    let state = net.node("again").state().unwrap();
    assert_eq!(state.get("/c").unwrap(), Some(Value::Int(-5)));
}
