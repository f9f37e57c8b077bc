//! Last wills: the values of keys after their owner's end.

use rnet::state::{LastWill, Value};

use super::int;
use crate::common::{self, Child, LONG, Net};

#[test]
fn last_will_is_executed_when_the_node_closes() {
    let net = Net::new("last_will_is_executed_when_the_node_closes");
    let watcher = net.node("watcher").state().unwrap();
    let node = net.node("owner");
    let state = node.state().unwrap();
    state.put("/becomes").last_will("gone").set("here").unwrap();
    state.put("/goes").last_will_delete().set(1).unwrap();
    state.put("/stays").set(1).unwrap();
    state.put("/others").last_will(-1).set(1).unwrap();
    state.put("/again").last_will(-1).set(1).unwrap();
    state.set("/again", 2).unwrap();
    watcher.set("/others", 5).unwrap();
    // A counter keeps its will if its owner increments it, and loses it if another node does.
    state.put("/mine").last_will(-1).set(1).unwrap();
    state.add("/mine", 1).unwrap();
    state.put("/theirs").last_will(-1).set(1).unwrap();
    watcher.add("/theirs", 1).unwrap();
    assert_eq!(
        watcher.entry("/becomes").unwrap().unwrap().last_will,
        Some(LastWill::Becomes("gone".into()))
    );
    let mut watch = watcher.watch("/becomes").unwrap();
    assert!(watch.recv_timeout(LONG).unwrap().initial);
    drop((state, node));
    let change = watch.recv_timeout(LONG).unwrap();
    let entry = change.entry.unwrap();
    assert_eq!((entry.value, entry.version, entry.last_will), ("gone".into(), 2, None));
    assert_eq!(watcher.get("/goes").unwrap(), None);
    let left: Vec<Value> =
        ["/stays", "/others", "/again"].map(|key| watcher.get(key).unwrap().unwrap()).into();
    assert_eq!(left, [1, 5, 2].map(Value::from));
    assert_eq!((int(&watcher, "/mine"), int(&watcher, "/theirs")), (Some(-1), Some(2)));
}

#[test]
fn a_handle_of_the_state_keeps_its_node() {
    let net = Net::new("a_handle_of_the_state_keeps_its_node");
    let other = net.node("other").state().unwrap();
    let node = net.node("owner");
    let state = node.state().unwrap();
    state.put("/k").last_will(0).set(1).unwrap();
    let mut cell = state.cell::<i64>("/k").unwrap();
    drop((state, node));
    assert_eq!(cell.get().unwrap(), Some(1), "the cell is a handle of the node");
    drop(cell);
    assert_eq!(int(&other, "/k"), Some(0));
}

/// A process that sets keys with last wills and is killed.
pub fn owner() {
    let orders = common::orders();
    common::no_core();
    let net = Net::of_parent();
    let state = net.node("owner").state().unwrap();
    for n in 0..20 {
        state.put(&format!("/will/{n}")).last_will(-1).set(n).unwrap();
        state.put(&format!("/goes/{n}")).last_will_delete().set(n).unwrap();
    }
    state.set("/stays", 1).unwrap();
    common::tell("set");
    let _ = orders.recv();
}

#[test]
fn last_will_is_executed_when_the_process_is_killed() {
    let net = Net::new("last_will_is_executed_when_the_process_is_killed");
    let node = net.node("watcher");
    let state = node.state().unwrap();
    let mut owner = Child::spawn(&net, "owner");
    owner.expect("set");
    assert_eq!(state.keys("/").unwrap().len(), 41);
    let mut watch = state.watch("/will").unwrap();
    owner.kill();
    let mut done = 0;
    while done < 20 {
        let change = watch.recv_timeout(LONG).unwrap();
        let value = change.entry.unwrap().value;
        assert_eq!(value == (-1).into(), !change.initial);
        done += u32::from(!change.initial);
    }
    common::eventually("the other keys are deleted", || state.keys("/goes").unwrap().is_empty());
    assert_eq!(int(&state, "/stays"), Some(1));
}
