//! The domain's directory, or a part of it, is removed under live nodes, as systemd-logind (RemoveIPC) and
//! clean-up scripts do. Nodes restore it: old and new ones match, and each loss is counted.

use crate::common;

use std::path::Path;
use std::time::Duration;

use common::{Child, LONG, Net, eventually};
use rnet::{Node, OnFull, Publisher, Subscriber};

/// Entry point of the child processes: runs the role that the parent names.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = common::role() else { return };
    let net = Net::of_parent();
    match role.as_str() {
        "talker" => talker(&net),
        other => panic!("unknown role: {other}"),
    }
}

/// A node with state that answers on `/answer` to messages on `/ask`.
fn talker(net: &Net) {
    let orders = common::orders();
    common::no_core();
    let name = orders.recv().unwrap();
    let node = net.node(&name);
    let state = node.state().unwrap();
    state.put(&format!("/alive/{name}")).last_will(0).set(1).unwrap();
    let mut asked = node.subscriber::<[u8]>("/ask").reliable().open().unwrap();
    let mut answer = node
        .publisher::<[u8]>("/answer")
        .reliable(OnFull::Wait(Duration::from_secs(30)))
        .open()
        .unwrap();
    common::tell("up");
    loop {
        if let Ok(message) = asked.recv_timeout(Duration::from_millis(20)) {
            let text = format!("{name} {}", String::from_utf8_lossy(&message));
            let _ = answer.send(text.as_bytes());
        }
    }
}

fn start_talker(net: &Net, name: &str) -> Child {
    let mut talker = Child::spawn(net, "talker");
    talker.say(name);
    talker.expect("up");
    talker
}

/// Removes everything of the domain, however often its nodes restore it meanwhile.
fn wipe(net: &Net) {
    let dir = net.inspect_path();
    let before = inode(&dir);
    eventually("the directory is gone", || {
        let _ = std::fs::remove_dir_all(&dir);
        inode(&dir) != before
    });
}

fn inode(path: &Path) -> Option<u64> {
    std::os::unix::fs::MetadataExt::ino(&std::fs::symlink_metadata(path).ok()?).into()
}

/// A node that joins after the removal: it communicates with all talkers, and sees their state.
fn meets(net: &Net, name: &str, talkers: &[&str]) -> Node {
    let node = net.node(name);
    let mut ask = node
        .publisher::<[u8]>("/ask")
        .reliable(OnFull::Wait(Duration::from_secs(30)))
        .open()
        .unwrap();
    let mut answers = node.subscriber::<[u8]>("/answer").reliable().open().unwrap();
    let all = talkers.len();
    eventually("the endpoints are matched", || {
        ask.subscriber_count() == all && answers.publisher_count() == all
    });
    ask.send(name.as_bytes()).unwrap();
    let mut received: Vec<String> = (0..all)
        .map(|_| String::from_utf8_lossy(&answers.recv_timeout(LONG).unwrap()).into_owned())
        .collect();
    received.sort();
    let mut expected: Vec<String> =
        talkers.iter().map(|talker| format!("{talker} {name}")).collect();
    expected.sort();
    assert_eq!(received, expected);
    let state = node.state().unwrap();
    let alive = state.list("/alive").unwrap();
    let living = alive.iter().filter(|entry| entry.value == 1.into()).count();
    assert_eq!(living, all, "the wills of living nodes are not executed: {alive:?}");
    node
}

#[test]
fn two_nodes_and_a_new_one_match_after_a_wipe() {
    let net = Net::new("two_nodes_and_a_new_one_match_after_a_wipe");
    let _talkers = [start_talker(&net, "a"), start_talker(&net, "b")];
    wipe(&net);
    drop(meets(&net, "c", &["a", "b"]));
    wipe(&net);
    drop(meets(&net, "d", &["a", "b"]));
}

#[test]
fn ten_nodes_and_a_new_one_match_after_a_wipe() {
    let net = Net::new("ten_nodes_and_a_new_one_match_after_a_wipe");
    let names: Vec<String> = (0..10).map(|n| format!("n{n}")).collect();
    let _talkers: Vec<Child> = names.iter().map(|name| start_talker(&net, name)).collect();
    wipe(&net);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    meets(&net, "new", &names);
}

/// One node is stopped meanwhile: its state and its will are kept, and it returns when it resumes.
#[test]
fn a_node_that_is_stopped_during_the_wipe_comes_back() {
    let net = Net::new("a_node_that_is_stopped_during_the_wipe_comes_back");
    let (_a, b) = (start_talker(&net, "a"), start_talker(&net, "b"));
    b.stop();
    wipe(&net);
    let node = net.node("early");
    let state = node.state().unwrap();
    assert_eq!(
        state.get("/alive/b").unwrap(),
        Some(1.into()),
        "it lives, although no node sees it"
    );
    b.resume();
    meets(&net, "new", &["a", "b"]);
    assert_eq!(state.get("/alive/b").unwrap(), Some(1.into()));
}

/// A node that starts before the others have noticed joins their state instead of creating another.
#[test]
fn node_that_starts_before_detection_finds_the_existing_state() {
    let net = Net::new("node_that_starts_before_detection_finds_the_existing_state");
    let (a, b) = (start_talker(&net, "a"), start_talker(&net, "b"));
    a.stop();
    b.stop();
    wipe(&net);
    let node = net.node("first");
    assert_eq!(node.state().unwrap().get("/alive/a").unwrap(), Some(1.into()));
    a.resume();
    b.resume();
    meets(&net, "second", &["a", "b"]);
}

#[test]
fn node_killed_while_it_restores_files_is_swept() {
    let net = Net::new("node_killed_while_it_restores_files_is_swept");
    let _a = start_talker(&net, "a");
    for pause_ms in [150, 200, 205, 210, 230, 300] {
        let mut victim = start_talker(&net, "victim");
        wipe(&net);
        std::thread::sleep(Duration::from_millis(pause_ms)); // sleep: it may die at any step
        victim.kill();
        let node = net.node("looks");
        let state = node.state().unwrap();
        eventually("its will is executed", || {
            state.get("/alive/victim").unwrap() == Some(0.into())
        });
        drop((state, node));
        // Its restored files are swept, so that its name is free.
        let again = net.node("victim");
        again.state().unwrap().delete("/alive/victim").unwrap();
    }
}

/// Each removed part comes back, and only that part.
#[test]
fn each_removed_part_is_restored() {
    let net = Net::new("each_removed_part_is_restored");
    let _talker = start_talker(&net, "a");
    let dir = net.inspect_path();
    let folder = || {
        let mut folders = std::fs::read_dir(dir.join("nodes")).unwrap().flatten();
        folders.find(|f| f.file_name().to_string_lossy().starts_with("a@")).unwrap().path()
    };
    let inside = ["node", "ctl", "bells", "p1", "s0"].map(|name| folder().join(name));
    let whole = ["VERSION", "state", "names/a", "names", "nodes"].map(|name| dir.join(name));
    for (n, path) in inside.iter().chain(&whole).chain([&folder()]).enumerate() {
        assert!(path.symlink_metadata().is_ok(), "{path:?} exists");
        let _ = std::fs::remove_file(path).or_else(|_| std::fs::remove_dir_all(path));
        meets(&net, &format!("new{n}"), &["a"]);
        eventually("the path is restored", || path.symlink_metadata().is_ok());
    }
}

/// Traffic between matched nodes continues, and each sent message is received or counted.
#[test]
fn a_wipe_in_the_middle_of_traffic_loses_nothing() {
    let net = Net::new("a_wipe_in_the_middle_of_traffic_loses_nothing");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher: Publisher<[u8]> =
        a.publisher("/x").reliable(OnFull::Wait(Duration::from_secs(30))).open().unwrap();
    let mut early: Subscriber<[u8]> = b.subscriber("/x").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let mut sent = 0u64;
    let mut send = |publisher: &mut Publisher<[u8]>, count: u64| {
        for _ in 0..count {
            // Every tenth message is large, so that files are created meanwhile.
            let len = if sent.is_multiple_of(10) { 100_000 } else { 100 };
            let mut message = vec![0u8; len];
            message[..8].copy_from_slice(&sent.to_le_bytes());
            publisher.send(&message).unwrap();
            sent += 1;
        }
    };
    let hear = |subscriber: &mut Subscriber<[u8]>, from: u64, to: u64| {
        for n in from..to {
            let message = subscriber.recv_timeout(LONG).unwrap();
            assert_eq!(message[..8], n.to_le_bytes());
        }
    };
    send(&mut publisher, 50);
    hear(&mut early, 0, 50);
    wipe(&net);
    send(&mut publisher, 50);
    hear(&mut early, 50, 100);
    let c = net.node("c");
    let mut late: Subscriber<[u8]> = c.subscriber("/x").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
    send(&mut publisher, 50);
    hear(&mut early, 100, 150);
    hear(&mut late, 100, 150);
    let lost = |s: &Subscriber<[u8]>| s.stats().iter().map(|p| p.lost.total()).sum::<u64>();
    assert_eq!(lost(&early) + lost(&late), 0);
    // New nodes find what an old node creates now.
    let mut news: Publisher<[u8]> =
        b.publisher("/news").reliable(OnFull::Wait(Duration::from_secs(30))).open().unwrap();
    let mut hears: Subscriber<[u8]> = c.subscriber("/news").reliable().open().unwrap();
    news.wait_for_subscribers_timeout(1, LONG).unwrap();
    news.send(b"n").unwrap();
    assert_eq!(&hears.recv_timeout(LONG).unwrap()[..], b"n");
}

/// Durable keys stay in the same store, and the removal is recorded.
#[test]
fn durable_state_continues_and_the_wipe_is_recorded() {
    let net = Net::new("durable_state_continues_and_the_wipe_is_recorded");
    let a = net.node("a");
    let state = a.state().unwrap();
    state.put("/d").durable(true).set(1).unwrap();
    wipe(&net);
    state.put("/d").durable(true).set(2).unwrap();
    let b = net.node("b");
    assert_eq!(b.state().unwrap().get("/d").unwrap(), Some(2.into()));
    b.state().unwrap().put("/d").durable(true).set(3).unwrap();
    assert_eq!(state.get("/d").unwrap(), Some(3.into()));
    let base = Some(net.base().to_owned());
    let location = rnet::inspect::Location::new(Some("t"), base, None).unwrap();
    eventually("the removal is recorded", || location.put_back_at().is_some());
}

/// The follower's first signal goes to a node whose folder has just lost its name.
#[test]
fn watch_without_prior_signal_sees_a_change_after_a_wipe() {
    for _ in 0..20 {
        let net = Net::new("watch_without_prior_signal_sees_a_change_after_a_wipe");
        let (a, b) = (net.node("a"), net.node("b"));
        let mut watch = b.state().unwrap().watch("/news").unwrap();
        let state = a.state().unwrap();
        let hears =
            std::thread::spawn(move || watch.recv_timeout(LONG).unwrap().entry.map(|e| e.value));
        wipe(&net);
        state.set("/news", 1).unwrap();
        assert_eq!(hears.join().unwrap(), Some(1.into()));
    }
}
