//! Deaths that no node observed: their consequences still happen exactly once, through the first node that
//! checks. The watchers are stopped while nodes join, use the state and are killed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rnet::{Error, NodeEvent};

use super::int;
use crate::common::{self, Child, LONG, Net};

/// Keys with a last will that each owner sets.
const KEYS: usize = 5;

/// A node that executes the wills of others. First order: its name, and the number of executed wills that it
/// sees before it kills itself (0: never).
pub fn watcher() {
    let orders = common::orders();
    common::no_core();
    let net = Net::of_parent();
    let first = orders.recv().unwrap();
    let (name, dies_after) = first.split_once(' ').unwrap();
    let dies_after: usize = dies_after.parse().unwrap();
    let node = net.node(name);
    let events = Arc::new(Mutex::new(Vec::new()));
    let noted = events.clone();
    node.on_node(move |event| noted.lock().unwrap().push(event.clone())).detach();
    let state = node.state().unwrap();
    let mut watch = state.watch("/will").unwrap();
    if dies_after > 0 {
        std::thread::spawn(move || {
            let mut seen = 0;
            while seen < dies_after {
                let change = watch.recv_timeout(LONG).unwrap();
                seen += usize::from(change.entry.is_some_and(|e| e.value == (-1).into()));
            }
            // SAFETY: the process kills itself.
            unsafe { libc::raise(libc::SIGKILL) };
        });
    }
    common::tell("up");
    while let Ok(order) = orders.recv() {
        let (order, argument) = order.split_once(' ').unwrap_or((&order, ""));
        match order {
            "done" => {
                let wills: usize = argument.parse().unwrap();
                common::eventually("the wills are executed", || {
                    let entries = state.list("/will").unwrap();
                    let done = entries.iter().filter(|entry| entry.value == (-1).into());
                    done.count() == wills
                });
                let entries = state.list("/will").unwrap();
                // Each was written once by its owner and once by the executor of the will.
                assert!(entries.iter().all(|e| e.version == 2 && e.last_will.is_none()));
                common::tell("done");
            }
            "pairs" => {
                common::eventually("each node that joined has died", || {
                    let events = events.lock().unwrap();
                    let count = |wanted: fn(&str) -> NodeEvent| {
                        events.iter().filter(|e| **e == wanted(argument)).count()
                    };
                    let joined = count(|name| NodeEvent::Joined(name.to_owned()));
                    joined > 0 && joined == count(|name| NodeEvent::Died(name.to_owned()))
                });
                common::tell("pairs");
            }
            "follow" => {
                let count = argument.parse().unwrap();
                let mut held = Vec::new();
                common::eventually("that many watches are allowed", || {
                    while held.len() < count {
                        match state.watch("/nothing") {
                            Ok(watch) => held.push(watch),
                            Err(Error::LimitReached { .. }) => return false,
                            Err(error) => panic!("{error}"),
                        }
                    }
                    true
                });
                common::tell("followed");
            }
            other => panic!("unknown order: {other}"),
        }
    }
}

/// A node that starts up to a given step and is killed. Its order: its name, and the step.
pub fn victim() {
    let orders = common::orders();
    common::no_core();
    let net = Net::of_parent();
    let first = orders.recv().unwrap();
    let (name, far) = first.split_once(' ').unwrap();
    let node = net.node(name);
    let (mut state, mut watches) = (None, Vec::new());
    if far != "node" {
        state = Some(node.state().unwrap());
    }
    if let ("wills", Some(state)) = (far, &state) {
        for n in 0..KEYS {
            let key = format!("/will/{name}/{n}");
            state.put(&key).last_will(-1).set(n as i64).unwrap();
        }
    }
    if let ("watches", Some(state)) = (far, &state) {
        watches.extend((0..400).map(|_| state.watch("/nothing").unwrap()));
    }
    common::tell("ready");
    let _ = orders.recv();
    drop((state, watches, node));
}

fn start_watcher(net: &Net, name: &str, dies_after: usize) -> Child {
    let mut watcher = Child::spawn(net, "unseen_watcher");
    watcher.say(&format!("{name} {dies_after}"));
    watcher.expect("up");
    watcher
}

fn start_victim(net: &Net, name: &str, far: &str) -> Child {
    let mut victim = Child::spawn(net, "unseen_victim");
    victim.say(&format!("{name} {far}"));
    victim.expect("ready");
    victim
}

/// Kills nodes while all watchers are stopped, watchers included.
fn kill_unseen(watchers: &[&Child], make: impl FnOnce() -> Vec<Child>) {
    watchers.iter().for_each(|watcher| watcher.stop());
    let mut victims = make();
    victims.iter().for_each(Child::stop);
    victims.iter_mut().for_each(Child::kill);
    watchers.iter().for_each(|watcher| watcher.resume());
}

fn done(watcher: &mut Child, wills: usize) {
    watcher.say(&format!("done {wills}"));
    watcher.expect("done");
}

#[test]
fn wills_of_an_unknown_node_are_executed() {
    let net = Net::new("wills_of_an_unknown_node_are_executed");
    let mut watcher = start_watcher(&net, "watcher", 0);
    kill_unseen(&[&watcher], || vec![start_victim(&net, "owner", "wills")]);
    done(&mut watcher, KEYS);
}

#[test]
fn wills_of_many_dead_nodes_are_executed_once_by_several() {
    let net = Net::new("wills_of_many_dead_nodes_are_executed_once_by_several");
    let mut watchers: Vec<_> =
        ["a", "b", "c"].iter().map(|name| start_watcher(&net, name, 0)).collect();
    let all: Vec<&Child> = watchers.iter().collect();
    kill_unseen(&all, || {
        (0..64).map(|n| start_victim(&net, &format!("owner{n}"), "wills")).collect()
    });
    watchers.iter_mut().for_each(|watcher| done(watcher, 64 * KEYS));
}

#[test]
fn wills_of_an_unknown_node_are_executed_beside_busy_loops() {
    let net = Net::new("wills_of_an_unknown_node_are_executed_beside_busy_loops");
    let stop = Arc::new(AtomicBool::new(false));
    let loops: Vec<_> = (0..std::thread::available_parallelism().map_or(4, |n| n.get()))
        .map(|_| {
            let stop = stop.clone();
            std::thread::spawn(move || while !stop.load(Ordering::Relaxed) {})
        })
        .collect();
    let mut watcher = start_watcher(&net, "watcher", 0);
    for turn in 1..=5 {
        kill_unseen(&[&watcher], || vec![start_victim(&net, &format!("owner{turn}"), "wills")]);
        done(&mut watcher, turn * KEYS);
    }
    stop.store(true, Ordering::Relaxed);
    loops.into_iter().for_each(|busy| busy.join().unwrap());
}

/// A node without state sees the death, and sweeps the folder before a node with state checks.
#[test]
fn wills_are_executed_after_another_node_swept_the_folder() {
    let net = Net::new("wills_are_executed_after_another_node_swept_the_folder");
    let mut watcher = start_watcher(&net, "watcher", 0);
    let _bystander = net.node("bystander");
    watcher.stop();
    start_victim(&net, "owner", "wills").kill();
    let nodes = net.inspect_path().join("nodes");
    let is_swept = || {
        let mut names = std::fs::read_dir(&nodes).unwrap().map(|e| e.unwrap().file_name());
        !names.any(|name| name.to_string_lossy().starts_with("owner@"))
    };
    common::eventually("the folder is swept", is_swept);
    watcher.resume();
    done(&mut watcher, KEYS);
}

#[test]
fn wills_are_executed_by_the_next_node_when_none_lives() {
    let net = Net::new("wills_are_executed_by_the_next_node_when_none_lives");
    start_victim(&net, "owner", "wills").kill();
    let state = net.node("next").state().unwrap();
    let left: Vec<_> = (0..KEYS).map(|n| int(&state, &format!("/will/owner/{n}"))).collect();
    assert_eq!(left, [Some(-1); KEYS]);
}

/// The first sweeper dies during the sweep, and the remaining nodes knew none of the dead.
#[test]
fn a_sweep_whose_sweeper_is_killed_is_finished_by_the_next() {
    let net = Net::new("a_sweep_whose_sweeper_is_killed_is_finished_by_the_next");
    for (turn, dies_after) in [1, 20, 60].into_iter().enumerate() {
        let mut second = start_watcher(&net, "second", 0);
        let mut first = start_watcher(&net, "first", dies_after + turn * 20 * KEYS);
        second.stop();
        kill_unseen(&[&first], || {
            (0..20).map(|n| start_victim(&net, &format!("t{turn}n{n}"), "wills")).collect()
        });
        first.ended();
        second.resume();
        done(&mut second, (turn + 1) * 20 * KEYS);
    }
}

/// At whatever step a node died, its death is reported, and its folder and name are removed.
#[test]
fn node_that_died_before_its_first_key_is_reported_and_swept() {
    let net = Net::new("node_that_died_before_its_first_key_is_reported_and_swept");
    let mut watcher = start_watcher(&net, "watcher", 0);
    for far in ["node", "state", "wills"] {
        kill_unseen(&[&watcher], || vec![start_victim(&net, &format!("at_{far}"), far)]);
        watcher.say(&format!("pairs /at_{far}"));
        watcher.expect("pairs");
    }
    for folder in ["nodes", "names"] {
        let here = || {
            let entries = std::fs::read_dir(net.inspect_path().join(folder)).unwrap();
            entries.flatten().map(|e| e.file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        common::eventually("the leftovers of the dead nodes are swept", || {
            here().iter().all(|name| name.starts_with("watcher"))
        });
    }
}

#[test]
fn watch_slots_of_an_unknown_node_are_released() {
    let net = Net::new("watch_slots_of_an_unknown_node_are_released");
    let mut watcher = start_watcher(&net, "watcher", 0);
    kill_unseen(&[&watcher], || vec![start_victim(&net, "hoarder", "watches")]);
    watcher.say("follow 400");
    watcher.expect("followed");
}
