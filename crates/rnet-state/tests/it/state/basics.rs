//! Set, get, delete, list.

use rnet::Error;
use rnet::state::{LastWill, Value};
use std::time::Duration;

use super::{int, one_of_each, refusal};
use crate::common::Net;

#[test]
fn set_value_is_read_in_every_node() {
    let net = Net::new("set_value_is_read_in_every_node");
    let (a, b) = (net.node("a").state().unwrap(), net.node("b").state().unwrap());
    let mut before = a.revision();
    for (at, value) in one_of_each().into_iter().enumerate() {
        let key = format!("/k{at}");
        assert_eq!(a.get(&key).unwrap(), None);
        let revision = a.set(&key, value.clone()).unwrap();
        assert!(revision > before, "{revision} after {before}");
        before = revision;
        assert_eq!(b.get(&key).unwrap().as_ref(), Some(&value));
        assert_eq!(b.revision(), revision);
        let entry = b.entry(&key).unwrap().unwrap();
        assert_eq!((entry.key, entry.value, entry.revision), (key, value, revision));
        assert_eq!((entry.version, entry.owner.node.as_str()), (1, "/a"));
        assert!(entry.owner.written_unix_ns > 1_700_000_000_000_000_000);
        assert_eq!((entry.durable, entry.expires_boot_ns, entry.last_will), (false, None, None));
    }
    b.set("/k1", 4).unwrap();
    let entry = a.entry("k1").unwrap().unwrap();
    assert_eq!((entry.version, entry.owner.node.as_str()), (2, "/b"), "names get their slash");
}

#[test]
fn numbers_of_every_size_are_one_type() {
    let net = Net::new("numbers_of_every_size_are_one_type");
    let state = net.node("n").state().unwrap();
    state.set("/i", 200_u8).unwrap();
    state.set("/i", -1_i16).unwrap();
    state.set("/i", 70_000_u32).unwrap();
    assert_eq!(state.get_as::<i64>("/i").unwrap(), Some(70_000));
    assert_eq!(state.get_as::<u32>("/i").unwrap(), Some(70_000));
    let error = refusal(state.get_as::<i16>("/i"));
    assert_eq!(error, "bad value for /i (written by /n): 70000 does not fit into i16");
    state.set("/f", 1.5_f32).unwrap();
    assert_eq!(state.get_as::<f64>("/f").unwrap(), Some(1.5));
    assert_eq!(state.get_as::<f32>("/none").unwrap(), None);
    state.set("/nan", f64::NAN).unwrap();
    assert!(state.get_as::<f64>("/nan").unwrap().unwrap().is_nan());
    state.set("/s", "text").unwrap();
    assert_eq!(state.get_as::<String>("/s").unwrap().as_deref(), Some("text"));
    assert_eq!(state.get_as::<Value>("/s").unwrap(), Some("text".into()));
    state.set("/b", b"\x00\x01").unwrap();
    assert_eq!(state.get_as::<Vec<u8>>("/b").unwrap(), Some(vec![0, 1]));
    assert_eq!(state.get_as::<bool>("/none").unwrap(), None);
}

#[test]
fn a_key_is_deleted_once() {
    let net = Net::new("a_key_is_deleted_once");
    let state = net.node("n").state().unwrap();
    assert!(!state.delete("/k").unwrap());
    state.set("/k", 1).unwrap();
    assert!(state.delete("/k").unwrap());
    assert!(!state.delete("/k").unwrap());
    assert_eq!(state.get("/k").unwrap(), None);
    assert_eq!(state.entry("/k").unwrap(), None);
    // The old type does not constrain the new value.
    state.set("/k", "text").unwrap();
    assert_eq!(state.entry("/k").unwrap().unwrap().value, "text".into());
}

#[test]
fn conditions_hold_or_nothing_is_written() {
    let net = Net::new("conditions_hold_or_nothing_is_written");
    let state = net.node("n").state().unwrap();
    let first = state.put("/k").if_absent().set(1).unwrap();
    let error = state.put("/k").if_absent().set(2).unwrap_err();
    assert_eq!(error, Error::Conflict { key: "/k".into(), expected: 0, found: first });
    assert_eq!(
        error.to_string(),
        format!(
            "conflict at /k: expected it to be absent, found revision {first}; read it again and \
             retry"
        )
    );
    let second = state.compare_and_set("/k", first, 2).unwrap();
    let error = refusal(state.compare_and_set("/k", first, 3));
    assert!(
        error.contains(&format!("expected revision {first}, found revision {second}")),
        "{error}"
    );
    assert!(state.put("/k").if_revision(first).delete().is_err());
    assert_eq!(int(&state, "/k"), Some(2));
    assert!(state.put("/k").if_revision(second).delete().unwrap());
    let error = refusal(state.compare_and_set("/k", second, 3));
    assert!(
        error.contains(&format!("expected revision {second}, but the key is absent")),
        "{error}"
    );
    assert_eq!(state.get("/k").unwrap(), None);
}

#[test]
fn a_key_keeps_its_type_unless_asked() {
    let net = Net::new("a_key_keeps_its_type_unless_asked");
    let state = net.node("n").state().unwrap();
    let all = one_of_each();
    for (at, value) in all.iter().enumerate() {
        let key = format!("/k{at}");
        state.set(&key, value).unwrap();
        for other in all.iter().filter(|other| other.type_text() != value.type_text()) {
            let (holds, given) = (value.type_text(), other.type_text());
            assert_eq!(
                state.set(&key, other).unwrap_err(),
                Error::StateType { key: key.clone(), holds, given }
            );
            assert_eq!(state.get(&key).unwrap().as_ref(), Some(value));
        }
    }
    assert_eq!(
        refusal(state.set("/k1", 1.0)),
        "/k1 holds an integer, not a float; use that type, or allow the change with change_type"
    );
    assert!(refusal(state.get_as::<f64>("/k1")).starts_with("/k1 holds an integer, not a float"));
    assert!(refusal(state.get_as::<i64>("/k3")).contains("a string, not an integer"));
    state.put("/k1").change_type().set(1.0).unwrap();
    assert_eq!(state.get("/k1").unwrap(), Some(Value::Float(1.0)));
    assert_eq!(state.entry("/k1").unwrap().unwrap().version, 2);
}

#[test]
fn a_prefix_lists_whole_names_in_order() {
    let net = Net::new("a_prefix_lists_whole_names_in_order");
    let state = net.node("n").state().unwrap();
    for (at, key) in ["/arm/x", "/army", "/arm", "/b/arm", "/arm/a/b"].into_iter().enumerate() {
        state.set(key, at as i32).unwrap();
    }
    assert_eq!(state.keys("/arm").unwrap(), ["/arm", "/arm/a/b", "/arm/x"]);
    assert_eq!(state.keys("arm/").unwrap(), ["/arm/a/b", "/arm/x"]);
    assert_eq!(state.keys("").unwrap(), ["/arm", "/arm/a/b", "/arm/x", "/army", "/b/arm"]);
    assert_eq!(state.keys("/").unwrap(), state.keys("").unwrap());
    assert!(state.keys("/none").unwrap().is_empty());
    let listed = state.list("/arm").unwrap();
    let values: Vec<_> = listed.iter().map(|entry| entry.value.as_int().unwrap()).collect();
    assert_eq!(values, [2, 4, 0]);
    let snapshot = state.snapshot("/arm/").unwrap();
    assert_eq!(snapshot.revision, state.revision());
    assert_eq!(snapshot.entries.into_values().collect::<Vec<_>>(), listed[1..]);
}

#[test]
fn options_are_reported_and_end_with_the_next_write() {
    let net = Net::new("options_are_reported_and_end_with_the_next_write");
    let now = 1_800_000_000_000_000_000;
    let state = rnet::binding::state_with_clocks(
        &net.node("n"),
        || 1_800_000_000_000_000_000,
        move || now,
        1,
    )
    .unwrap();
    let put = state.put("/k").ttl(Duration::from_secs(2)).last_will(7);
    put.set(1).unwrap();
    let entry = state.entry("/k").unwrap().unwrap();
    assert_eq!(entry.expires_boot_ns, Some(now + 2_000_000_000));
    assert_eq!(entry.last_will, Some(LastWill::Becomes(7.into())));
    // Durable keys have separate tests (tests/durable).
    assert!(!entry.durable && !state.is_durable("/k").unwrap());
    assert!(!state.is_durable("/none").unwrap());
    // A computed update keeps the other options.
    state.add("/k", 1).unwrap();
    state.update("/k", |value| Value::Int(value.unwrap().as_int().unwrap() * 10)).unwrap();
    let after = state.entry("/k").unwrap().unwrap();
    assert_eq!(after.value, 20.into());
    assert_eq!(after.expires_boot_ns, entry.expires_boot_ns);
    assert_eq!(after.last_will, entry.last_will);
    // A plain set replaces all options.
    state.set("/k", 3).unwrap();
    let after = state.entry("/k").unwrap().unwrap();
    assert_eq!((after.expires_boot_ns, after.last_will), (None, None));
    state.put("/k").durable(false).expires_at_boot_ns(now + 5).last_will_delete().set(3).unwrap();
    let after = state.entry("/k").unwrap().unwrap();
    assert_eq!((after.expires_boot_ns, after.durable), (Some(now + 5), false));
    assert_eq!(after.last_will, Some(LastWill::Delete));
    let error = refusal(state.put("/k").ttl(Duration::ZERO).set(1));
    assert!(error.contains("time to live of /k: it must be longer than 0"), "{error}");
    let error = refusal(state.put("/k").last_will("text").set(1));
    assert!(error.contains("an integer, not a string as its last will"), "{error}");
    state.put("/k").last_will("text").change_type().set(1).unwrap();
}

#[test]
fn a_hash_is_the_keys_below_it() {
    let net = Net::new("a_hash_is_the_keys_below_it");
    let state = net.node("n").state().unwrap();
    for prefix in ["/robot/arm", "robot/arm/"] {
        let hash = state.hash(prefix);
        let revision = hash.set_many([("kp", 1.5), ("ki", 0.5), ("sub/kd", 0.1)]).unwrap();
        assert_eq!(state.entry("/robot/arm/kp").unwrap().unwrap().revision, revision);
        assert_eq!(state.entry("/robot/arm/sub/kd").unwrap().unwrap().revision, revision);
        hash.set("kp", 2.5).unwrap();
        state.set("/robot/army", 1).unwrap();
        let all: Vec<_> = hash.all().unwrap().into_iter().collect();
        let expected = [("ki", 0.5), ("kp", 2.5), ("sub/kd", 0.1)];
        assert_eq!(all, expected.map(|(field, value)| (field.to_owned(), value.into())));
        assert_eq!(hash.get("kp").unwrap(), Some(2.5.into()));
        assert_eq!(hash.get("none").unwrap(), None);
        assert!(hash.delete("kp").unwrap() && !hash.delete("kp").unwrap());
        assert_eq!(hash.key("kp").unwrap(), "/robot/arm/kp");
    }
    let top = state.hash("/");
    top.set("robot/arm/kp", 3.5).unwrap();
    assert_eq!(state.get_as::<f64>("/robot/arm/kp").unwrap(), Some(3.5));
    assert!(top.all().unwrap().contains_key("robot/arm/kp"));
    for bad in ["", "/kp", "a b", "a/"] {
        assert!(refusal(top.get(bad)).starts_with("bad key name"), "{bad}");
    }
}

#[test]
fn a_node_has_one_state_and_its_handles_keep_it() {
    let net = Net::new("a_node_has_one_state_and_its_handles_keep_it");
    let node = net.node("n");
    let (a, b) = (node.state().unwrap(), node.state().unwrap());
    drop(node);
    a.set("/k", 1).unwrap();
    assert_eq!(int(&b, "/k"), Some(1));
    assert!(format!("{a:?}").contains("/n"));
    let threads: Vec<_> = (0..4)
        .map(|n| {
            let state = a.clone();
            std::thread::spawn(move || state.set(&format!("/t{n}"), n).map(|_| ()))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap().unwrap();
    }
    assert_eq!(b.keys("/").unwrap(), ["/k", "/t0", "/t1", "/t2", "/t3"]);
}
