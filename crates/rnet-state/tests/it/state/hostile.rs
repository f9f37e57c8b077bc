//! Values that robot-net did not write are reported as invalid, and do not affect other keys.

use std::sync::Arc;

use proptest::prelude::*;
use rnet::schema::compile_text;
use rnet::state::Value;
use rnet::{DomainId, NodeName};
use rnet_shm::domain::directory::{DomainConfig, DomainDir};
use rnet_shm::domain::node::OwnNode;
use rnet_shm::state::{Region, StoredValue, Will, Write};

use super::{int, refusal};
use crate::common::Net;

/// A writer of the region that ignores all rules.
struct Scribbler(Region);

impl Scribbler {
    fn new(net: &Net) -> Scribbler {
        let config = DomainConfig {
            id: DomainId::new("t").unwrap(),
            base: Some(net.base().to_owned()),
            group: None,
        };
        let dir = DomainDir::open_or_create(&config).unwrap();
        let name = NodeName::new("evil").unwrap();
        let own = Arc::new(OwnNode::create(&dir, &name, "rust", "0").unwrap());
        Scribbler(Region::open(&own, Arc::new(|| 1)).unwrap())
    }

    fn write(&self, key: &str, kind: u16, type_id: u64, bytes: &[u8]) {
        self.write_with(key, kind, type_id, bytes, None);
    }

    fn write_with(&self, key: &str, kind: u16, type_id: u64, bytes: &[u8], will: Option<&[u8]>) {
        let stored = StoredValue { kind, type_id, bytes, will, expires_boot_ns: 0 };
        let write = Write { key, value: Some(stored), expect: None, durable: None };
        self.0.commit(&[write], &[], &mut |_, _| Ok(())).unwrap();
    }
}

#[test]
fn invalid_value_bytes_are_reported_as_such() {
    let net = Net::new("invalid_value_bytes_are_reported_as_such");
    let state = net.node("n").state().unwrap();
    let evil = Scribbler::new(&net);
    state.set("/good", 1).unwrap();
    let mut watch = state.watch("/").unwrap();
    assert!(watch.try_recv().unwrap().is_some());
    let item = |kind: u8, bytes: &[u8]| {
        [&1_u32.to_le_bytes()[..], &[kind], &(bytes.len() as u32).to_le_bytes(), bytes].concat()
    };
    let deep = (0..100).fold(vec![0; 4], |inner, _| item(7, &inner));
    let lies = 0x00ff_ffff_u32.to_le_bytes();
    for (kind, bytes, why) in [
        (0, &[][..], "a kind unknown to this version"),
        (999, &[], "a kind unknown to this version"),
        (10, &[], "the description of a type"),
        (1, &[2], "its 1 bytes are not a boolean"),
        (1, &[], "its 0 bytes are not a boolean"),
        (2, &[0; 7], "its 7 bytes are not an integer"),
        (3, &[0; 9], "its 9 bytes are not a float"),
        (4, b"ab\xff", "it is not UTF-8 from byte 2 on"),
        (6, b"{", "it is not JSON"),
        (6, b"\xff", "not UTF-8"),
        (7, &[1, 0], "it is truncated before its item count"),
        (7, &lies, "it declares 16777215 items but is too short for them"),
        (7, &[0, 0, 0, 0, 9], "1 bytes follow its last item"),
        (7, &[1, 0, 0, 0, 2, 200, 0, 0, 0], "it is truncated within an item"),
        (7, &deep, "more than 64 levels deep"),
        (7, &item(9, &[]), "it is a message"),
        (8, &item(7, &[0; 4]), "this is a list"),
        (8, &[2, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0], "not in order"),
        (9, &[], "its type 0000000000000000 has no description"),
    ] {
        evil.write("/bad", kind, 0, bytes);
        let error = refusal(state.get("/bad"));
        assert!(error.starts_with("bad value for /bad (written by /evil): "), "{error}");
        assert!(error.contains(why), "{kind}: {error}, not {why}");
        assert!(state.entry("/bad").is_err() && state.transaction().get("/bad").is_err());
        // An invalid value ends neither a listing nor a watch.
        let listed = state.list("/").unwrap();
        assert!(matches!(&listed[0].value, Value::Unreadable(reported) if reported.contains(why)));
        assert_eq!(listed[1].value, 1.into());
        let change = watch.try_recv().unwrap().unwrap();
        assert!(matches!(change.entry.unwrap().value, Value::Unreadable(_)));
    }
    assert!(refusal(state.set("/bad", 1)).contains("/bad holds a message ("));
    state.put("/bad").change_type().set(1).unwrap();
    assert_eq!(int(&state, "/bad"), Some(1));
    for (kind, bytes) in [(2, &[1][..]), (7, &[9, 9]), (8, &[9])] {
        evil.write("/bad", kind, 0, bytes);
        assert!(state.add("/bad", 1).is_err() && state.push("/bad", 1, 2).is_err());
        assert!(state.set_add("/bad", 1).is_err());
        assert!(state.cell::<i64>("/bad").unwrap().get().is_err());
    }
    evil.write_with("/will", 2, 0, &[0; 8], Some(&Will::encode(4, 0, b"\xff")));
    let will = state.entry("/will").unwrap().unwrap().last_will;
    assert!(format!("{will:?}").contains("Unreadable"), "{will:?}");
}

#[test]
fn invalid_descriptions_are_reported_as_such() {
    let net = Net::new("invalid_descriptions_are_reported_as_such");
    let state = net.node("n").state().unwrap();
    let evil = Scribbler::new(&net);
    let protobuf = |name: &str, set: &[u8]| {
        [&[2], &(name.len() as u16).to_le_bytes()[..], name.as_bytes(), set].concat()
    };
    let raw = [&[1], &br#"{"kind":"raw"}"#[..]].concat();
    let mut number = 0;
    for (kind, bytes, why) in [
        (10, vec![], "it is truncated"),
        (10, vec![3], "it has form 3, which this version does not support"),
        (10, vec![1, 0xff], "not UTF-8"),
        (10, vec![1, b'{'], "type description"),
        (10, raw, "it describes raw bytes as a plain type"),
        (10, vec![2, 9], "it is truncated"),
        (10, vec![2, 9, 0, 1], "it is truncated"),
        (10, protobuf("a.B", &[1, 2, 3]), "is invalid: "),
        (10, protobuf("a.B", &[]), "is invalid: "),
        (4, b"text".to_vec(), "has no description"),
    ] {
        number += 1;
        evil.write(&format!("!type/{number:016x}"), kind, 0, &bytes);
        evil.write("/m", 9, number, b"x");
        let error = refusal(state.get("/m"));
        assert!(error.contains(why), "{error}, not {why}");
    }
    // A plain type whose values have another length.
    let text = "syntax = \"proto3\"; message M { int32 x = 1; }";
    let schema = compile_text("m.proto", text).unwrap().schema("M").unwrap();
    evil.write(&format!("!type/{:016x}", 100), 10, 0, &protobuf("M", schema.descriptor_set()));
    evil.write("/m", 9, 100, b"\x08\x07");
    assert_eq!(state.get("/m").unwrap().unwrap().type_name(), "M");
    let plain = r#"{"kind":"plain","name":"P","size":8,"align":8,"fields":[{"name":"x","offset":0,"type":"f64"}]}"#;
    evil.write(&format!("!type/{:016x}", 101), 10, 0, &[&[1], plain.as_bytes()].concat());
    evil.write("/m", 9, 101, b"short");
    assert!(refusal(state.get("/m")).contains("5 bytes are not a message of this type"));
}

/// Two nodes that describe a type find another entry at its number.
#[test]
fn occupied_type_number_is_skipped() {
    #[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
    #[repr(C)]
    struct P {
        x: f64,
    }
    let net = Net::new("occupied_type_number_is_skipped");
    let (a, b) = (net.node("a").state().unwrap(), net.node("b").state().unwrap());
    let evil = Scribbler::new(&net);
    a.set_message("/p", &P { x: 1.0 }).unwrap();
    let number = a.get("/p").unwrap().unwrap().as_message().unwrap().type_id().unwrap();
    evil.write(&format!("!type/{number:016x}"), 10, 0, &[1, b'{']);
    // A node that does not know the type yet gives it another number, and reads it by that number.
    b.set_message("/q", &P { x: 2.0 }).unwrap();
    let other = b.get("/q").unwrap().unwrap().as_message().unwrap().type_id().unwrap();
    assert_eq!(other, number.wrapping_add(1));
    assert_eq!(a.get_message::<P>("/q").unwrap(), Some(P { x: 2.0 }));
    for n in 0..20 {
        evil.write(&format!("!type/{:016x}", number.wrapping_add(n)), 10, 0, &[1, b'{']);
    }
    let c = net.node("c").state().unwrap();
    assert!(
        refusal(c.set_message("/r", &P { x: 3.0 })).contains("16 types with the same fingerprint")
    );
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|n| Value::Float(f64::from(n) / 8.0)),
        ".{0,8}".prop_map(Value::from),
        prop::collection::vec(any::<u8>(), 0..8).prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => scalar(),
        1 => prop::collection::vec(scalar(), 0..6).prop_map(Value::set),
        1 => any::<Vec<u16>>().prop_map(|list| Value::json(format!("{list:?}")).unwrap()),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| prop::collection::vec(inner, 0..6).prop_map(Value::List))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_value_comes_back(values in prop::collection::vec(value(), 1..16)) {
        let net = Net::new("every_value_comes_back");
        let (a, b) = (net.node("a").state().unwrap(), net.node("b").state().unwrap());
        for value in values {
            a.put("/k").change_type().set(&value).unwrap();
            prop_assert_eq!(b.get("/k").unwrap(), Some(value));
        }
    }

    #[test]
    fn any_bytes_are_a_value_or_refused(
        records in prop::collection::vec((0..12_u16, prop::collection::vec(any::<u8>(), 0..40)), 1..32)
    ) {
        let net = Net::new("any_bytes_are_a_value_or_refused");
        let state = net.node("n").state().unwrap();
        let evil = Scribbler::new(&net);
        for (kind, bytes) in records {
            evil.write("/k", kind, 0, &bytes);
            if let Ok(Some(value)) = state.get("/k") {
                // A value that was read can be written back, and is then byte-identical.
                state.set("/copy", 0).unwrap();
                state.put("/copy").change_type().set(&value).unwrap();
                prop_assert_eq!(format!("{:?}", state.get("/copy").unwrap()), format!("{:?}", Some(value)));
                state.delete("/copy").unwrap();
            }
            let _ = (state.list("/"), state.push("/k", 1, 3), state.set_add("/k", 1), state.add("/k", 1));
        }
    }
}
