//! State between hosts: which hosts read, write and follow keys of another host, and the results while that
//! host is away.

use crate::common;
use crate::hosts;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use common::{LONG, eventually};
use hosts::Hosts;
use rnet::msgs::state_reply::Refusal;
use rnet::msgs::{StateAsk, StateChange, StateEntry, StateReply, Twist};
use rnet::state::{Change, RemoteState, Replica, Value};
use rnet::{Error, HandlerError, Node};

const SHORT: Duration = Duration::from_millis(400);

#[track_caller]
fn away(error: &Error) -> bool {
    let Error::HomeAway { host, may_hold, .. } = error else { panic!("{error}") };
    assert_eq!(host, "host0");
    *may_hold
}

fn key_and_value(change: &Change) -> (&str, Option<Value>) {
    (&change.key, change.entry.as_ref().map(|entry| entry.value.clone()))
}

/// The state of the first host, once its home is found: on a busy machine that may take longer than the
/// time-out for an absent home.
fn state_of_host0(node: &Node) -> RemoteState {
    let remote = node.state_of("host0").unwrap();
    let is_there = || remote.get("/found").is_ok() && remote.delete("/found").is_ok();
    eventually("the home is found", is_there);
    remote
}

/// Waits until a key of a replica has this value.
fn has(replica: &Replica, key: &str, value: impl Into<Value>) {
    let value = Some(value.into());
    eventually("the replica has it", || replica.get(key).unwrap().value == value);
}

#[test]
fn reads_and_writes_reach_the_home() {
    let hosts = Hosts::new("state", 2);
    let _home = hosts.home(0);
    let (robot, desk) = (hosts.node(0, "robot"), hosts.node(1, "desk"));
    let here = robot.state().unwrap();
    let remote = state_of_host0(&desk);
    assert_eq!(remote.get("/arm/mode").unwrap().value, None);
    let revision = here.set("/arm/mode", "idle").unwrap();
    let entry = remote.entry("/arm/mode").unwrap();
    assert!(!entry.is_stale);
    let entry = entry.value.unwrap();
    assert_eq!((entry.value, entry.revision), ("idle".into(), revision));
    assert_eq!(entry.owner.node, "/robot");
    // Every kind of value crosses both ways.
    let values = [
        Value::from(true),
        Value::from(-3),
        Value::from(0.5),
        Value::from(vec![1_u8, 2]),
        Value::json("{\"a\":1}").unwrap(),
        Value::list([1, 2]),
        Value::set(["b", "a"]),
    ];
    for value in values {
        let written = remote.put("/kind").change_type().set(value.clone()).unwrap();
        assert_eq!(here.entry("/kind").unwrap().unwrap().revision, written);
        assert_eq!(here.get("/kind").unwrap().as_ref(), Some(&value));
        assert_eq!(remote.get("/kind").unwrap().value, Some(value));
    }
    let twist = Twist { linear: None, angular: None };
    remote.set_message("/twist", &twist).unwrap();
    assert_eq!(here.get_message::<Twist>("/twist").unwrap(), Some(twist));
    let read = remote.get("/twist").unwrap().value.unwrap();
    assert_eq!(read.as_message().unwrap().decode::<Twist>().unwrap(), twist);
    // Options, and writes that the home refuses.
    remote.put("/short").ttl(Duration::from_secs(100)).set(1).unwrap();
    assert!(remote.entry("/short").unwrap().value.unwrap().ttl_left().is_some());
    let now = remote.compare_and_set("/arm/mode", revision, "moving").unwrap();
    let error = remote.compare_and_set("/arm/mode", revision, "idle").unwrap_err();
    let conflict = Error::Conflict { key: "/arm/mode".into(), expected: revision, found: now };
    assert_eq!(error, conflict);
    assert!(matches!(remote.set("/arm/mode", 3).unwrap_err(), Error::StateType { .. }));
    assert!(remote.delete("/arm/mode").unwrap());
    assert!(!remote.delete("/arm/mode").unwrap());
    assert!(matches!(remote.set("//", 1).unwrap_err(), Error::BadName { .. }));
    let keys: Vec<String> = remote.list("/").unwrap().into_iter().map(|e| e.key).collect();
    assert_eq!(keys, ["/kind", "/short", "/twist"]);
}

#[test]
fn parameters_match_their_declaration() {
    let hosts = Hosts::new("params", 2);
    let _home = hosts.home(0);
    let (arm, desk) = (hosts.node(0, "arm"), hosts.node(1, "desk"));
    let gain = arm.param("/gain").default(1.0).max(10.0).declare().unwrap();
    let remote = state_of_host0(&desk);
    let params = remote.params().unwrap();
    assert_eq!(params.len(), 1);
    assert_eq!((&*params[0].key, params[0].is_default), ("/params/arm/gain", true));
    assert_eq!(params[0].description.as_ref().unwrap().name, "/gain");
    remote.set("/params/arm/gain", 2.0).unwrap();
    assert_eq!(gain.get().unwrap(), 2.0);
    let error = remote.set("/params/arm/gain", 11.0).unwrap_err();
    assert!(error.to_string().contains("above its maximum 10"), "{error}");
    assert!(!remote.params().unwrap()[0].is_default);
}

#[test]
fn replica_follows_and_ages_while_the_home_is_away() {
    let hosts = Hosts::new("replica", 2);
    let _home = hosts.home(0);
    let (robot, desk) = (hosts.node(0, "robot"), hosts.node(1, "desk"));
    let here = robot.state().unwrap();
    here.set("/arm/mode", "idle").unwrap();
    here.set("/other", 1).unwrap();
    let remote = state_of_host0(&desk);
    let replica = remote.mirror("/arm").unwrap();
    assert_eq!(replica.list().value.len(), 1);
    let first = replica.recv_timeout(LONG).unwrap();
    assert!(first.initial && key_and_value(&first) == ("/arm/mode", Some("idle".into())));
    here.set("/arm/mode", "moving").unwrap();
    let change = replica.recv_timeout(LONG).unwrap();
    assert_eq!(key_and_value(&change), ("/arm/mode", Some("moving".into())));
    here.set_message("/arm/twist", &Twist::default()).unwrap();
    assert_eq!(replica.recv_timeout(LONG).unwrap().key, "/arm/twist");
    here.delete("/arm/twist").unwrap();
    assert_eq!(key_and_value(&replica.recv_timeout(LONG).unwrap()), ("/arm/twist", None));
    // Read once, and not followed.
    assert_eq!(remote.get("/other").unwrap().value, Some(1.into()));
    hosts.cut(0, 1);
    eventually("the home is away", || replica.is_stale());
    let before = replica.age();
    here.set("/arm/mode", "lost").unwrap();
    here.set("/arm/new", 7).unwrap();
    here.set("/other", 2).unwrap();
    // A request that was sent before the home is known to be away may be applied later.
    eventually("the home is known to be away", || !away(&remote.set("/unheard", 1).unwrap_err()));
    assert!(replica.age() > before, "it grows");
    let held = replica.get("/arm/mode").unwrap();
    assert_eq!((held.value, held.is_stale), (Some("moving".into()), true));
    let read = remote.get("/other").unwrap();
    assert!(read.is_stale && read.age >= Duration::from_millis(100), "{read:?}");
    assert_eq!(read.value, Some(1.into()));
    // The value of a key that was never read is unknown; a key below the prefix is known to be absent.
    assert!(!away(&remote.get("/unread").unwrap_err()));
    assert_eq!(remote.get("/arm/new").unwrap().value, None);
    hosts.heal(0, 1);
    has(&replica, "/arm/new", 7);
    assert_eq!(replica.get("/arm/mode").unwrap().value, Some("lost".into()));
    eventually("it is current again", || !replica.is_stale());
    let mut seen = [replica.recv_timeout(LONG).unwrap(), replica.recv_timeout(LONG).unwrap()];
    seen.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(key_and_value(&seen[0]), ("/arm/mode", Some("lost".into())));
    assert_eq!(key_and_value(&seen[1]), ("/arm/new", Some(7.into())));
    assert_eq!(remote.get("/other").unwrap().value, Some(2.into()));
    assert_eq!(replica.try_recv().unwrap(), None);
}

#[test]
fn interrupted_write_reports_that_it_may_have_been_applied() {
    let hosts = Hosts::new("cut write", 2);
    let (robot, desk) = (hosts.node(0, "robot"), hosts.node(1, "desk"));
    // A home whose answers are late, at the names of the real one.
    let name = "/_rnet/state/h".to_owned() + &format!("{:016x}", fnv("host0")) + "/write";
    let (asked, asks) = mpsc::channel();
    let _slow = robot
        .service::<StateAsk, StateReply>(&name)
        .serve(move |ask| {
            asked.send(ask.key.clone())?;
            std::thread::sleep(SHORT); // sleep: a slow answer
            Ok::<_, HandlerError>(StateReply::default())
        })
        .unwrap();
    let remote = desk.state_of("host0").unwrap();
    let writing = std::thread::spawn(move || remote.set("/k", 1));
    assert_eq!(asks.recv_timeout(LONG).unwrap(), "/k");
    hosts.cut(0, 1);
    let error = writing.join().unwrap().unwrap_err();
    assert!(away(&error), "{error}");
    assert!(error.to_string().contains("may or may not have been applied"), "{error}");
    hosts.heal(0, 1);
    // It is not sent again.
    let again = desk.state_of("host0").unwrap();
    again.set("/other", 1).unwrap();
    assert_eq!(asks.recv_timeout(LONG).unwrap(), "/other");
    assert!(asks.try_recv().is_err());
}

/// FNV-1a, as in the names of a home's services and topics.
fn fnv(text: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[test]
fn home_serializes_writes_of_many_hosts() {
    let hosts = Hosts::new("counters", 3);
    let _home = hosts.home(0);
    let robot = hosts.node(0, "robot");
    let here = robot.state().unwrap();
    here.set("/count", 0).unwrap();
    let writers: Vec<_> = [1, 2]
        .map(|host| {
            let node = hosts.node(host, "writer");
            std::thread::spawn(move || {
                let remote = state_of_host0(&node);
                let mut done = 0;
                while done < 40 {
                    let entry = remote.entry("/count").unwrap().value.unwrap();
                    let next = entry.value.as_int().unwrap() + 1;
                    match remote.compare_and_set("/count", entry.revision, next) {
                        Ok(_) => done += 1,
                        Err(Error::Conflict { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .into_iter()
        .collect();
    for _ in 0..40 {
        here.add("/count", 1).unwrap();
    }
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert_eq!(here.get_as::<i64>("/count").unwrap(), Some(120));
}

#[test]
fn sixty_four_replicas_end_with_the_newest_values() {
    let hosts = Hosts::new("many", 2);
    let _home = hosts.home(0);
    let (robot, desk) = (hosts.node(0, "robot"), hosts.node(1, "desk"));
    let here = robot.state().unwrap();
    let remote = state_of_host0(&desk);
    let prefixes = (0..64).map(|n| format!("/p{}", n % 16));
    let replicas: Vec<Replica> = prefixes.map(|prefix| remote.mirror(&prefix).unwrap()).collect();
    let error = remote.mirror("/one/more").unwrap_err();
    assert!(matches!(error, Error::LimitReached { limit: 64, .. }), "{error}");
    for round in 0..20 {
        for n in 0..16 {
            here.set(&format!("/p{n}/k"), round).unwrap();
        }
    }
    for replica in &replicas {
        has(replica, &format!("{}/k", replica.prefix()), 19);
        let mut last = replica.recv_timeout(LONG).unwrap();
        while let Some(change) = replica.try_recv().unwrap() {
            last = change;
        }
        assert_eq!(key_and_value(&last).1, Some(19.into()));
    }
}

#[test]
fn replica_follows_a_restarted_home() {
    let hosts = Hosts::new("new home", 2);
    let (robot, desk) = (hosts.node(0, "robot"), hosts.node(1, "desk"));
    let here = robot.state().unwrap();
    here.set("/a", 1).unwrap();
    let home = hosts.home(0);
    let remote = state_of_host0(&desk);
    let replica = remote.mirror("/").unwrap();
    has(&replica, "/a", 1);
    drop(home);
    eventually("the home is away", || replica.is_stale());
    here.set("/a", 2).unwrap();
    here.set("/b", 3).unwrap();
    here.delete("/b").unwrap();
    let _home = hosts.home(0);
    has(&replica, "/a", 2);
    here.set("/a", 4).unwrap();
    has(&replica, "/a", 4);
    assert_eq!(replica.list().value.len(), 1);
}

#[test]
fn rule_that_denies_writes_allows_reads() {
    let rule = "[[network.rule]]\ntopic = \"/_rnet/call/_rnet/state/*/write/**\"\ndirection = \"in\"\nallow = false\n";
    let hosts = Hosts::with_config("rules", &[rule, ""]);
    let _home = hosts.home(0);
    let (robot, desk) = (hosts.node(0, "robot"), hosts.node(1, "desk"));
    robot.state().unwrap().set("/a", 1).unwrap();
    let remote = desk.state_of("host0").unwrap();
    assert_eq!(remote.get("/a").unwrap().value, Some(1.into()));
    let error = remote.set("/a", 2).unwrap_err();
    assert!(!away(&error) && error.to_string().contains("a rule in its robot.toml"), "{error}");
    assert_eq!(remote.get("/a").unwrap().value, Some(1.into()));
}

#[test]
fn host_with_a_stolen_name_is_not_trusted() {
    let hosts = Hosts::new("impostor", 3);
    let (real, liar) = (hosts.node(0, "real"), hosts.node(1, "liar"));
    real.state().unwrap().set("/a", 1).unwrap();
    // It answers at the names of host0.
    liar.state().unwrap().set("/a", 666).unwrap();
    let _lies = rnet::bridge::serve_state(&liar, "host0", None).unwrap();
    let desk = hosts.node(2, "desk");
    let remote = desk.state_of("host0").unwrap();
    assert!(!away(&remote.get("/a").unwrap_err()));
    let _home = hosts.home(0);
    let mut read = None;
    eventually("the real one is found", || {
        read = remote.get("/a").ok().and_then(|read| read.value);
        read.is_some()
    });
    for _ in 0..10 {
        assert_eq!(read, Some(1.into()));
        read = remote.get("/a").unwrap().value;
    }
}

/// Replies of a hostile home: each is refused with an error that names it, and does no harm.
fn hostile_replies() -> Vec<StateReply> {
    let entry = |key: &str, kind, value: &[u8]| StateEntry {
        key: key.to_owned(),
        kind,
        value: value.to_vec(),
        ..StateEntry::default()
    };
    let deep = [7, 0, 0, 0, 0].repeat(1000);
    let lie = StateEntry {
        type_description: vec![2, 255, 255, 1],
        r#type: u64::MAX,
        ..entry("/a", 9, &[1])
    };
    let past =
        StateEntry { ttl_left_ns: Some(u64::MAX), revision: u64::MAX, ..entry("/a", 2, &[0; 8]) };
    let entries = [
        entry("no key at all", 2, &[0; 8]),
        entry("/a", 2, &[0; 3]),
        entry("/a", 4, &[0xff]),
        entry("/a", 9, &[1, 2, 3]),
        entry("/a", u32::MAX, &[]),
        entry("/a", 7, &deep),
        entry("/a", 7, &[0xff; 4]),
        entry("/elsewhere", 1, &[1]),
        lie,
        past,
    ];
    let alone = |entry| StateReply { entries: vec![entry], ..StateReply::default() };
    let refusal = Refusal { code: "conflict".to_owned(), ..Refusal::default() };
    let topics = ["", "//", "/_rnet/nodes", "/a"];
    let topic =
        |name: &str| StateReply { topic: name.to_owned(), seq: u64::MAX, ..StateReply::default() };
    let refused = StateReply { refusal: Some(refusal), ..StateReply::default() };
    entries.into_iter().map(alone).chain(topics.map(topic)).chain([refused]).collect()
}

#[test]
fn hostile_home_and_hostile_client_are_refused() {
    let hosts = Hosts::new("hostile", 2);
    let (robot, desk) = (hosts.node(0, "robot"), hosts.node(1, "desk"));
    let name = |end: &str| format!("/_rnet/state/h{:016x}/{end}", fnv("host0"));
    {
        let (replies, turn) = (hostile_replies(), AtomicUsize::new(0));
        let count = replies.len();
        let next = move |_: &StateAsk| {
            let turn = turn.fetch_add(1, Ordering::SeqCst);
            Ok::<_, HandlerError>(replies[turn % replies.len()].clone())
        };
        let next = Arc::new(next);
        let (for_reads, for_writes) = (next.clone(), next);
        let service = |end: &str| robot.service::<StateAsk, StateReply>(&name(end));
        let _read = service("read").serve(move |ask| for_reads(ask)).unwrap();
        let _write = service("write").serve(move |ask| for_writes(ask)).unwrap();
        let remote = desk.state_of("host0").unwrap().with_timeout(SHORT);
        let mut refused = 0;
        for _ in 0..2 * count {
            refused += usize::from(remote.get("/a").is_err());
            let listed = remote.list("/a");
            refused += usize::from(listed.is_err());
            let under = listed.unwrap_or_default();
            assert!(under.iter().all(|entry| entry.key == "/a"), "{under:?}");
            refused += usize::from(remote.params().is_err());
            let _ = remote.set("/a", 1);
        }
        assert!(refused > count, "{refused} of {count}");
        for _ in 0..count {
            drop(remote.mirror("/a"));
        }
    }
    // Requests to the real home.
    let _home = hosts.home(0);
    let state = robot.state().unwrap();
    state.set("/a", 1).unwrap();
    for end in ["read", "write"] {
        let client = desk.client::<StateAsk, StateReply>(&name(end)).open().unwrap();
        for action in [-1, 0, 1, 2, 3, 4, 5, 6, 7, i32::MAX] {
            for (key, kind) in [("", 2), ("!type/0", 2), ("/a", u32::MAX), ("\u{0}", 0), ("/a", 9)]
            {
                let value = vec![0xff; 9];
                let entry = StateEntry { kind, value, r#type: 3, ..StateEntry::default() };
                let entry = Some(entry);
                let key = key.to_owned();
                let ttl_ns = Some(u64::MAX);
                let ask = StateAsk { action, key, entry, ttl_ns, ..StateAsk::default() };
                let reply = client.call_timeout(&ask, LONG).unwrap().into_message();
                // An empty or complete list; otherwise it is refused with its name.
                let lists = end == "read" && matches!(action, 1..=3 | 6);
                let deletes = end == "write" && action == 5;
                assert!(lists || deletes || reply.refusal.is_some(), "{end} {ask:?}: {reply:?}");
            }
        }
    }
    state.set("/a", 2).unwrap();
    assert_eq!(state_of_host0(&desk).get("/a").unwrap().value, Some(2.into()));
}

#[test]
fn invalid_feed_is_requested_again() {
    let hosts = Hosts::new("nonsense", 2);
    let (robot, desk) = (hosts.node(0, "robot"), hosts.node(1, "desk"));
    let topic = "/_rnet/state/nonsense";
    let (asked, asks) = mpsc::channel();
    let _read = robot
        .service::<StateAsk, StateReply>(&format!("/_rnet/state/h{:016x}/read", fnv("host0")))
        .serve(move |ask| {
            asked.send(ask.action)?;
            let topic = topic.to_owned();
            Ok::<_, HandlerError>(StateReply { topic, feed: 7, seq: 5, ..StateReply::default() })
        })
        .unwrap();
    let mut feed = robot
        .publisher::<StateChange>(topic)
        .reliable(rnet::OnFull::Refuse)
        .transient_local(1)
        .open()
        .unwrap();
    let replica = desk.state_of("host0").unwrap().mirror("/a").unwrap();
    let ask = || asks.recv_timeout(LONG).unwrap();
    ask();
    feed.wait_for_subscribers_timeout(1, LONG).unwrap();
    let entry =
        StateEntry { key: "/b".to_owned(), kind: 1, value: vec![1], ..StateEntry::default() };
    let beat = StateChange { feed: 7, seq: 5, ..StateChange::default() };
    let of_another = StateChange { feed: 8, seq: 900, ..beat.clone() };
    let missing = StateChange { seq: 7, ..beat.clone() };
    let outside = StateChange { seq: 6, entry: Some(entry.clone()), ..beat.clone() };
    let unread = StateEntry { key: "/a".to_owned(), value: vec![3], ..entry };
    let unread = StateChange { seq: 6, entry: Some(unread), ..beat.clone() };
    for nonsense in [missing, outside, unread] {
        feed.send(&beat).unwrap();
        feed.send(&of_another).unwrap();
        feed.send(&nonsense).unwrap();
        ask();
    }
    assert!(replica.list().value.is_empty());
}
