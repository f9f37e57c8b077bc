//! Durable state through the public API: it outlives the domain, its writers and its persister.

use crate::common;
mod directories;
mod disks;
mod persisters;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{Child, Net, orders, role, tell};
use rnet::state::{State, Value};
use rnet::{Error, Node};

/// Entry point of the child processes: runs the role that the parent names.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    match role.as_str() {
        "writer" => persisters::writer(&net),
        "servant" => persisters::servant(&net),
        "full" => disks::full(&net),
        other => panic!("unknown role: {other}"),
    }
}

/// Simulates a power cut or a boot: of the domain only the disk contents remain.
fn reboot(net: &Net) {
    std::fs::remove_dir_all(net.inspect_path()).unwrap();
}

fn set(state: &State, key: &str, value: impl Into<Value>) {
    state.put(key).durable(true).set(value).unwrap();
}

fn all(state: &State) -> BTreeMap<String, Value> {
    state.list("/").unwrap().into_iter().map(|entry| (entry.key, entry.value)).collect()
}

#[test]
fn durable_keys_outlive_the_domain_and_others_do_not() {
    let net = Net::new("outlive");
    let before = {
        let node = net.node("one");
        let state = node.state().unwrap();
        assert!(!net.keep().exists(), "the disk stays untouched until needed");
        set(&state, "/int", 7);
        set(&state, "/text", "hello");
        set(&state, "/list", Value::list([1i64, 2]));
        set(&state, "/text", "again");
        // A later `set` keeps the key durable.
        state.set("/int", 8).unwrap();
        assert_eq!(state.add("/int", 1).unwrap(), 9);
        state.set("/memory", 1).unwrap();
        set(&state, "/gone", 1);
        assert!(state.delete("/gone").unwrap());
        // A key that is no longer durable.
        set(&state, "/was", 1);
        state.put("/was").durable(false).set(2).unwrap();
        assert!(state.is_durable("/int").unwrap() && !state.is_durable("/memory").unwrap());
        all(&state)
    };
    reboot(&net);
    let node = net.node("two");
    let state = node.state().unwrap();
    let mut expected = before;
    expected.retain(|key, _| key != "/memory" && key != "/was");
    assert_eq!(all(&state), expected);
    assert_eq!(expected.len(), 3);
    let entry = state.entry("/int").unwrap().unwrap();
    assert_eq!((entry.version, entry.owner.node.as_str(), entry.durable), (3, "/one", true));
    assert_eq!(state.disk_reports().unwrap(), [""; 0]);
    // A loaded key behaves like any other.
    assert_eq!(state.add("/int", 1).unwrap(), 10);
    drop((state, node));
    reboot(&net);
    assert_eq!(net.node("three").state().unwrap().get("/int").unwrap(), Some(Value::Int(10)));
}

/// If a disk is mounted late, or the first node used another directory, the store keeps its contents.
#[test]
fn store_that_is_found_late_keeps_its_contents() {
    let net = Net::new("late-store");
    let node = net.node("one");
    set(&node.state().unwrap(), "/calibration", 7);
    drop(node);
    reboot(&net);
    let aside = net.keep().with_extension("aside");
    std::fs::rename(net.keep(), &aside).unwrap();
    let node = net.node("early");
    let state = node.state().unwrap();
    assert_eq!(state.get("/calibration").unwrap(), None);
    std::fs::rename(&aside, net.keep()).unwrap();
    set(&state, "/other", 1);
    assert_eq!(state.get("/calibration").unwrap(), Some(Value::Int(7)));
    drop((state, node));
    reboot(&net);
    let state = net.node("after").state().unwrap();
    assert_eq!(state.get("/calibration").unwrap(), Some(Value::Int(7)));
    assert_eq!(state.get("/other").unwrap(), Some(Value::Int(1)));
}

#[test]
fn times_and_wills_are_kept_too() {
    let net = Net::new("wills");
    {
        let node = net.node("one");
        let state = node.state().unwrap();
        state.put("/short").durable(true).ttl(Duration::from_nanos(1)).set(1).unwrap();
        state.put("/long").durable(true).ttl(Duration::from_secs(3600)).set(1).unwrap();
        state.put("/willed").durable(true).last_will("dead").set("alive").unwrap();
        state.put("/doomed").durable(true).last_will_delete().set("alive").unwrap();
        // Power cut: no process executes the last will.
        std::mem::forget((state, node));
    }
    let end = {
        // In another domain directory, because the forgotten node still runs in this one.
        let moved = net.base().join("moved");
        std::fs::rename(net.inspect_path(), moved).unwrap();
        // Its persister still has the store open.
        let error = net.node("two").state().unwrap().disk_reports().unwrap();
        assert!(error[0].contains("RNET_DIR"), "{error:?}");
        net.node("three").state().unwrap().list("/").unwrap()
    };
    // The store was read nevertheless, in its current state.
    let now: BTreeMap<_, _> = end.iter().map(|e| (e.key.as_str(), e.value.clone())).collect();
    let expected = BTreeMap::from([("/long", Value::from(1)), ("/willed", Value::from("dead"))]);
    assert_eq!(now, expected);
    assert!(end.iter().all(|e| e.last_will.is_none()));
    assert!(end.iter().find(|e| e.key == "/long").unwrap().expires_boot_ns.is_some());
}

const SECOND: u64 = 1_000_000_000;

/// The clocks of a test: the boot clock that ends times to live, the boot id, and the wall clock.
#[derive(Clone, Default)]
struct Clocks {
    boot_ns: Arc<AtomicU64>,
    wall: Arc<AtomicU64>,
}

impl Clocks {
    fn at(boot_s: u64, wall_s: u64) -> Clocks {
        let clocks = Clocks::default();
        clocks.boot_ns.store(boot_s * SECOND, Ordering::SeqCst);
        clocks.wall.store(wall_s * SECOND, Ordering::SeqCst);
        clocks
    }

    fn pass(&self, seconds: u64) {
        self.boot_ns.fetch_add(seconds * SECOND, Ordering::SeqCst);
    }

    fn state(&self, node: &Node, boot: u64) -> State {
        let (boot_ns, wall) = (self.boot_ns.clone(), self.wall.clone());
        let read = |clock: Arc<AtomicU64>| move || clock.load(Ordering::SeqCst);
        rnet::binding::state_with_clocks(node, read(wall), read(boot_ns), boot).unwrap()
    }
}

/// Remaining time to live of a key, in seconds.
fn left(state: &State, clocks: &Clocks, key: &str) -> Option<u64> {
    let ends = state.entry(key).unwrap()?.expires_boot_ns.unwrap();
    Some((ends - clocks.boot_ns.load(Ordering::SeqCst)) / SECOND)
}

/// A robot without a battery-backed clock: it boots in 1970 and learns the right or a wrong time later.
#[test]
fn remaining_time_to_live_survives_reboot_and_wall_clock_changes() {
    let net = Net::new("time-left");
    let clocks = Clocks::at(1000, 1_790_000_000);
    {
        let node = net.node("one");
        let state = clocks.state(&node, 1);
        for (key, ttl) in [("/long", 3600), ("/short", 60), ("/longer", 7200)] {
            state.put(key).durable(true).ttl(Duration::from_secs(ttl)).set(1).unwrap();
        }
        // The wall clock is set: it jumps by years, and the boot clock does not.
        for wall in [5, 1_990_000_000, 0, 1_790_000_000] {
            clocks.wall.store(wall * SECOND, Ordering::SeqCst);
            assert_eq!(left(&state, &clocks, "/short"), Some(60), "wall clock at {wall} s");
        }
        clocks.pass(50);
        assert_eq!(left(&state, &clocks, "/short"), Some(10));
    }
    reboot(&net);
    // The same boot: the time to live kept running while no node was open.
    clocks.pass(15);
    clocks.wall.store(0, Ordering::SeqCst);
    {
        let node = net.node("two");
        let state = clocks.state(&node, 1);
        assert_eq!(left(&state, &clocks, "/short"), None);
        assert_eq!(left(&state, &clocks, "/long"), Some(3535));
        clocks.pass(35);
        state.put("/other").durable(true).set(1).unwrap();
    }
    reboot(&net);
    // Other boots: the remaining time as of the last write to disk.
    for (boot, wall) in [(2, 3), (3, 2_000_000_000), (4, 1)] {
        let clocks = Clocks::at(boot, wall);
        let node = net.node(&format!("boot{boot}"));
        let state = clocks.state(&node, boot);
        assert_eq!(left(&state, &clocks, "/short"), None);
        assert_eq!(left(&state, &clocks, "/long"), Some(3500 - 100 * (boot - 2)), "boot {boot}");
        assert_eq!(left(&state, &clocks, "/longer"), Some(7100 - 100 * (boot - 2)));
        // Renewed, and counted down from there by an active persister; an idle one does not record expiry.
        state.put("/other").durable(true).set(1).unwrap();
        clocks.pass(100);
        drop((state, node));
        reboot(&net);
    }
}

/// The persister deletes expired keys, so that no boot restores them.
#[test]
fn expired_key_stays_expired_after_a_reboot() {
    let net = Net::new("over-boot");
    let clocks = Clocks::at(1000, 1_790_000_000);
    {
        let node = net.node("one");
        let state = clocks.state(&node, 1);
        state.put("/k").durable(true).ttl(Duration::from_secs(60)).set(1).unwrap();
        clocks.pass(61);
        assert_eq!(state.get("/k").unwrap(), None);
        // The key was absent, so it is a new key, and not durable.
        state.set("/k", 2).unwrap();
        assert!(!state.is_durable("/k").unwrap());
    }
    reboot(&net);
    let clocks = Clocks::at(1, 0);
    let node = net.node("two");
    assert_eq!(clocks.state(&node, 2).get("/k").unwrap(), None);
}

#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
#[plain(name = "demo.Gain")]
#[repr(C)]
struct Gain {
    kp: f64,
}

/// The type description of a message is on disk as well, even if a key is durable only through its
/// declaration.
#[test]
fn messages_are_readable_after_a_reboot() {
    let net = Net::new("messages");
    let (gain, pose) = (Gain { kp: 1.5 }, rnet::msgs::Pose::default());
    {
        let node = net.node("one");
        let state = node.state().unwrap();
        state.put("/gain").durable(true).set_message(&gain).unwrap();
        set(&state, "/pose", 1);
        state.put("/pose").change_type().set_message(&pose).unwrap();
    }
    reboot(&net);
    let node = net.node("two");
    let state = node.state().unwrap();
    assert_eq!(state.get_message::<Gain>("/gain").unwrap(), Some(gain));
    assert_eq!(state.get_message::<rnet::msgs::Pose>("/pose").unwrap(), Some(pose));
}

#[test]
fn a_durable_parameter_outlives_its_node_and_its_domain() {
    let net = Net::new("parameter");
    let declare = |node: &rnet::Node| {
        node.param::<f64>("gain").default(1.0).min(0.0).max(10.0).durable().declare().unwrap()
    };
    {
        let node = net.node("arm");
        declare(&node).set(4.5).unwrap();
    }
    reboot(&net);
    let node = net.node("arm");
    let gain = declare(&node);
    assert_eq!(gain.get().unwrap(), 4.5);
    assert!(gain.set(11.0).is_err());
}

#[test]
fn transaction_is_written_to_disk_atomically() {
    let net = Net::new("transaction");
    {
        let node = net.node("one");
        let state = node.state().unwrap();
        let mut transaction = state.transaction();
        for i in 0..100 {
            transaction.put(&format!("/t/{i:03}")).durable(true).set(i).unwrap();
        }
        let revision = transaction.commit().unwrap();
        assert_eq!(state.entry("/t/099").unwrap().unwrap().revision, revision);
        // A key that is only read stays unchanged on disk.
        let mut reading = state.transaction();
        let read = reading.get("/t/000").unwrap();
        reading.put("/t/100").durable(true).set(100).unwrap();
        reading.commit().unwrap();
        assert_eq!(read, Some(Value::Int(0)));
        // If a condition fails, nothing is written to disk.
        let error = state.put("/t/000").durable(true).if_revision(revision + 9).set(5).unwrap_err();
        assert!(matches!(error, Error::Conflict { .. }), "{error}");
    }
    reboot(&net);
    let node = net.node("two");
    let state = node.state().unwrap();
    let found: Vec<_> = all(&state).into_values().collect();
    assert_eq!(found, (0..=100).map(Value::from).collect::<Vec<_>>());
}

#[test]
fn concurrent_writers_are_all_written_to_disk() {
    let net = Net::new("many");
    {
        let nodes = [net.node("a"), net.node("b")];
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let state = nodes[thread % 2].state().unwrap();
                scope.spawn(move || {
                    for i in 0..20 {
                        set(&state, &format!("/own/{thread}"), i);
                        set(&state, "/shared", i);
                        state.put("/count").durable(true).if_absent().set(0).ok();
                        state.add("/count", 1).unwrap();
                    }
                });
            }
        });
    }
    reboot(&net);
    let node = net.node("c");
    let state = node.state().unwrap();
    assert_eq!(state.get("/count").unwrap(), Some(Value::Int(160)));
    for thread in 0..8 {
        assert_eq!(state.get(&format!("/own/{thread}")).unwrap(), Some(Value::Int(19)));
    }
}

#[test]
fn damaged_store_is_reported_and_the_node_starts() {
    let net = Net::new("damaged");
    {
        let node = net.node("one");
        set(&node.state().unwrap(), "/a", 1);
    }
    reboot(&net);
    let folder = std::fs::read_dir(net.keep()).unwrap().next().unwrap().unwrap().path();
    let store = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&store, b"nothing of ours").unwrap();
    {
        let node = net.node("two");
        let state = node.state().unwrap();
        assert_eq!(state.get("/a").unwrap(), None);
        let reports = state.disk_reports().unwrap();
        assert!(reports.len() == 1 && reports[0].contains(".damaged-"), "{reports:?}");
        set(&state, "/a", 2);
        // Other nodes report the same.
        assert_eq!(net.node("peer").state().unwrap().disk_reports().unwrap(), reports);
    }
    reboot(&net);
    let state = net.node("three").state().unwrap();
    assert_eq!(state.get("/a").unwrap(), Some(Value::Int(2)));
    assert_eq!(state.disk_reports().unwrap(), [""; 0]);
    let aside = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path());
    let aside: Vec<_> = aside.filter(|p| p.to_str().unwrap().contains("damaged")).collect();
    assert_eq!(aside.len(), 1);
    assert_eq!(std::fs::read(&aside[0]).unwrap(), b"nothing of ours");
}

/// Reports the outcome of an order.
fn answer(done: rnet::Result<u64>) {
    match done {
        Ok(_) => tell("ok"),
        Err(error) => tell(&format!("{}: {error}", error.code())),
    }
}

/// Runs orders: `set <key> <number>`, or `will`, with the opposite operation as its last will.
fn obey(state: &State) {
    for order in orders() {
        let words: Vec<_> = order.split(' ').collect();
        match words[..] {
            ["set", key, value] => {
                let value: i64 = value.parse().unwrap();
                answer(state.put(key).durable(true).set(value));
            }
            ["will", key, value] => {
                let value: i64 = value.parse().unwrap();
                answer(state.put(key).durable(true).last_will(-value).set(value));
            }
            _ => panic!("unknown order {order:?}"),
        }
    }
}

/// Starts a child that becomes the persister.
fn persister(net: &Net) -> Child {
    let mut child = Child::spawn(net, "servant");
    child.expect("ready");
    child.say("set /first 1");
    child.expect("ok");
    child
}
