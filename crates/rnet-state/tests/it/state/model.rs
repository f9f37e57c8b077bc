//! Random operations of two nodes, compared with a map that models the expected result.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rnet::Error;
use rnet::state::{State, Value};

use crate::common::Net;

const KEYS: [&str; 5] = ["/a", "/a/b", "/ab", "/c", "/c/d/e"];

#[derive(Clone, Debug)]
enum Op {
    Set {
        key: usize,
        value: i64,
        change: bool,
    },
    SetText {
        key: usize,
        change: bool,
    },
    /// Whether the operation names the current revision.
    CompareAndSet {
        key: usize,
        value: i64,
        right: bool,
    },
    Delete {
        key: usize,
    },
    Add {
        key: usize,
        amount: i64,
    },
    Push {
        key: usize,
        value: i64,
        max: usize,
    },
    SetAdd {
        key: usize,
        value: i64,
    },
    SetRemove {
        key: usize,
        value: i64,
    },
    /// Reads the first key, writes all; another node may write the first in between.
    Transact {
        keys: Vec<usize>,
        value: i64,
        disturbed: bool,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0..KEYS.len();
    let small = 0..4_i64;
    prop_oneof![
        (key.clone(), small.clone(), prop::bool::weighted(0.7))
            .prop_map(|(key, value, change)| Op::Set { key, value, change }),
        (key.clone(), any::<bool>()).prop_map(|(key, change)| Op::SetText { key, change }),
        (key.clone(), small.clone(), any::<bool>())
            .prop_map(|(key, value, right)| Op::CompareAndSet { key, value, right }),
        key.clone().prop_map(|key| Op::Delete { key }),
        (key.clone(), small.clone()).prop_map(|(key, amount)| Op::Add { key, amount }),
        (key.clone(), small.clone(), 1..4_usize).prop_map(|(key, value, max)| Op::Push {
            key,
            value,
            max
        }),
        (key.clone(), small.clone()).prop_map(|(key, value)| Op::SetAdd { key, value }),
        (key.clone(), small.clone()).prop_map(|(key, value)| Op::SetRemove { key, value }),
        (prop::collection::vec(key, 1..4), small, any::<bool>())
            .prop_map(|(keys, value, disturbed)| Op::Transact { keys, value, disturbed }),
    ]
}

/// The expected contents: value and version.
type Model = BTreeMap<&'static str, (Value, u64)>;

fn write(model: &mut Model, key: &'static str, value: Value) {
    let version = model.get(key).map_or(0, |(_, version)| *version);
    model.insert(key, (value, version + 1));
}

fn is_type_error<T: std::fmt::Debug>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::StateType { .. }))
}

/// Runs the operation on both, and compares the results.
fn apply(state: &State, other: &State, model: &mut Model, op: &Op) {
    let held = |model: &Model, key: usize| model.get(KEYS[key]).map(|(value, _)| value.clone());
    let set = |model: &mut Model, key: usize, value: Value, change: bool| {
        let fits = held(model, key).is_none_or(|held| held.type_name() == value.type_name());
        let put = state.put(KEYS[key]);
        let result = if change { put.change_type() } else { put }.set(&value);
        if fits || change {
            result.unwrap();
            write(model, KEYS[key], value);
        } else {
            assert!(is_type_error(result));
        }
    };
    match op {
        Op::Set { key, value, change } => set(model, *key, (*value).into(), *change),
        Op::SetText { key, change } => set(model, *key, "text".into(), *change),
        Op::CompareAndSet { key, value, right } => {
            let present = state.entry(KEYS[*key]).unwrap().map_or(0, |entry| entry.revision);
            let revision = if *right { present } else { present + 1 };
            let put = state.put(KEYS[*key]).change_type();
            match put.if_revision(revision).set(*value) {
                Ok(_) => {
                    assert!(right);
                    write(model, KEYS[*key], (*value).into());
                }
                Err(Error::Conflict { expected, found, .. }) => {
                    assert!(!right && (expected, found) == (revision, present));
                }
                Err(error) => panic!("{error}"),
            }
        }
        Op::Delete { key } => {
            assert_eq!(state.delete(KEYS[*key]).unwrap(), model.remove(KEYS[*key]).is_some());
        }
        Op::Add { key, amount } => match held(model, *key).unwrap_or(Value::Int(0)) {
            Value::Int(before) => {
                assert_eq!(state.add(KEYS[*key], *amount).unwrap(), before + amount);
                write(model, KEYS[*key], (before + amount).into());
            }
            _ => assert!(is_type_error(state.add(KEYS[*key], *amount))),
        },
        Op::Push { key, value, max } => match held(model, *key).unwrap_or(Value::List(vec![])) {
            Value::List(mut items) => {
                items.push((*value).into());
                items.drain(..items.len().saturating_sub(*max));
                assert_eq!(state.push(KEYS[*key], *value, *max).unwrap(), items.len());
                write(model, KEYS[*key], Value::List(items));
            }
            _ => assert!(is_type_error(state.push(KEYS[*key], *value, *max))),
        },
        Op::SetAdd { key, value } | Op::SetRemove { key, value } => {
            let adds = matches!(op, Op::SetAdd { .. });
            let change = |v: i64| {
                if adds { state.set_add(KEYS[*key], v) } else { state.set_remove(KEYS[*key], v) }
            };
            match held(model, *key).unwrap_or(Value::Set(vec![])) {
                Value::Set(mut members) => {
                    let value = Value::from(*value);
                    let is_in = members.contains(&value);
                    assert_eq!(change(value.as_int().unwrap()).unwrap(), is_in != adds);
                    if is_in != adds {
                        if adds {
                            members.push(value)
                        } else {
                            members.retain(|m| *m != value)
                        }
                        write(model, KEYS[*key], Value::set(members));
                    }
                }
                _ => assert!(is_type_error(change(*value))),
            }
        }
        Op::Transact { keys, value, disturbed } => {
            let mut t = state.transaction();
            assert_eq!(t.get(KEYS[keys[0]]).unwrap(), held(model, keys[0]));
            if *disturbed {
                other.put(KEYS[keys[0]]).change_type().set(-1).unwrap();
                write(model, KEYS[keys[0]], (-1).into());
            }
            for key in keys {
                t.put(KEYS[*key]).change_type().set(*value).unwrap();
            }
            let result = t.commit();
            if *disturbed {
                assert!(matches!(result, Err(Error::Conflict { .. })));
            } else {
                result.unwrap();
                let mut keys = keys.clone();
                keys.sort_unstable();
                keys.dedup();
                keys.into_iter().for_each(|key| write(model, KEYS[key], (*value).into()));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn state_behaves_like_a_map(ops in prop::collection::vec((any::<bool>(), op()), 1..60)) {
        let net = Net::new("state_behaves_like_a_map");
        let (a, b) = (net.node("a").state().unwrap(), net.node("b").state().unwrap());
        let mut watch = b.watch("/").unwrap();
        let mut below = a.watch("/a").unwrap();
        let mut model = Model::new();
        for (of_a, op) in &ops {
            let (state, other) = if *of_a { (&a, &b) } else { (&b, &a) };
            apply(state, other, &mut model, op);
            for (key, (value, version)) in &model {
                let entry = other.entry(key).unwrap().unwrap();
                prop_assert_eq!((&entry.value, entry.version), (value, *version), "{} {:?}", key, op);
            }
        }
        let snapshot = a.snapshot("").unwrap();
        prop_assert_eq!(snapshot.revision, b.revision());
        let listed: Vec<_> = snapshot.entries.values().map(|e| (e.key.as_str(), &e.value)).collect();
        let expected: Vec<_> = model.iter().map(|(key, (value, _))| (*key, value)).collect();
        prop_assert_eq!(&listed, &expected);
        // The watches that received each change have the same contents.
        for (watch, prefix) in [(&mut watch, ""), (&mut below, "/a")] {
            let mut reported = BTreeMap::new();
            while let Some(change) = watch.try_recv().unwrap() {
                match change.entry {
                    Some(entry) => reported.insert(change.key, entry),
                    None => reported.remove(&change.key),
                };
            }
            prop_assert_eq!(reported, a.snapshot(prefix).unwrap().entries);
        }
    }
}
