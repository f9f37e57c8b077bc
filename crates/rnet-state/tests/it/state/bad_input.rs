//! Refused input: names, sizes, depths, and values of the wrong type.

use rnet::state::{State, Value};
use rnet::{Error, limits};

use super::refusal;
use crate::common::Net;

#[test]
fn every_method_refuses_a_bad_name() {
    let net = Net::new("every_method_refuses_a_bad_name");
    let state = net.node("n").state().unwrap();
    let long = format!("/{}", "k".repeat(limits::MAX_KEY_LEN_BYTES));
    for bad in ["", "/", "/a/", "/a//b", "/a b", "!type/1", "/ä", long.as_str()] {
        let s: &State = &state;
        let results: Vec<(&str, Result<(), Error>)> = vec![
            ("get", s.get(bad).map(drop)),
            ("get_as", s.get_as::<i64>(bad).map(drop)),
            ("entry", s.entry(bad).map(drop)),
            ("is_durable", s.is_durable(bad).map(drop)),
            ("set", s.set(bad, 1).map(drop)),
            ("compare_and_set", s.compare_and_set(bad, 0, 1).map(drop)),
            ("delete", s.delete(bad).map(drop)),
            ("update", s.update(bad, |_| 1.into()).map(drop)),
            ("add", s.add(bad, 1).map(drop)),
            ("add_float", s.add_float(bad, 1.0).map(drop)),
            ("push", s.push(bad, 1, 2).map(drop)),
            ("items", s.items(bad).map(drop)),
            ("set_add", s.set_add(bad, 1).map(drop)),
            ("set_remove", s.set_remove(bad, 1).map(drop)),
            ("members", s.members(bad).map(drop)),
            ("contains", s.contains(bad, 1).map(drop)),
            ("cell", s.cell::<i64>(bad).map(drop)),
            ("transaction get", s.transaction().get(bad).map(drop)),
            ("transaction get_as", s.transaction().get_as::<i64>(bad).map(drop)),
            ("transaction set", s.transaction().set(bad, 1)),
            ("transaction delete", s.transaction().delete(bad)),
        ];
        for (method, result) in results {
            let error = result.expect_err(method);
            assert!(matches!(error, Error::BadName { what: "key", .. }), "{method}: {error}");
        }
        let no_prefix = !bad.is_empty() && bad != "/" && bad != "/a/";
        assert_eq!(s.list(bad).is_err(), no_prefix, "{bad}");
        assert_eq!(s.keys(bad).is_err(), no_prefix, "{bad}");
        assert_eq!(s.snapshot(bad).is_err(), no_prefix, "{bad}");
        assert_eq!(s.watch(bad).is_err(), no_prefix, "{bad}");
    }
    assert_eq!(state.revision(), 0, "nothing was written");
}

#[test]
fn value_length_is_limited() {
    let net = Net::new("value_length_is_limited");
    let state = net.node("n").state().unwrap();
    let mut value = vec![7_u8; limits::MAX_VALUE_LEN_BYTES];
    state.set("/big", value.as_slice()).unwrap();
    assert_eq!(state.get_as::<Vec<u8>>("/big").unwrap().as_ref(), Some(&value));
    value.push(7);
    let error = refusal(state.set("/big", value));
    assert!(
        error.starts_with(
            "limit reached: 67108864 bytes in the value of /big (this one has 67108865); "
        ),
        "{error}"
    );
    assert_eq!(state.entry("/big").unwrap().unwrap().version, 1);
}

#[test]
fn json_is_checked_before_it_is_written() {
    let net = Net::new("json_is_checked_before_it_is_written");
    let state = net.node("n").state().unwrap();
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(Value::json(nested(127)).is_ok());
    let error = refusal(Value::json(nested(128)));
    assert_eq!(error, "bad value for JSON: the JSON is more than 127 levels deep");
    assert!(refusal(Value::json(nested(1 << 20))).contains("127 levels"));
    for bad in ["", "{", "{\"a\": }", "nul", "[1,]", "NaN", "1 2", "'a'", "\"\u{1}\""] {
        assert!(refusal(Value::json(bad)).contains("it is not JSON"), "{bad}");
        // A hand-made invalid value is refused here as well.
        let error = refusal(state.set("/j", Value::Json(bad.into())));
        assert!(error.starts_with("bad value for value of /j: it is not JSON"), "{error}");
    }
    for good in ["null", "1e400", "\"\\\"[\"", "[[[]],{\"a\":{}}]", " 1 "] {
        let value = Value::json(good).unwrap();
        state.set("/j", value.clone()).unwrap();
        assert_eq!(state.get("/j").unwrap(), Some(value), "the text is unchanged");
    }
}

#[test]
fn lists_and_sets_have_limits_and_rules() {
    let net = Net::new("lists_and_sets_have_limits_and_rules");
    let state = net.node("n").state().unwrap();
    let nested = |depth: usize| (1..depth).fold(Value::List(vec![]), |v, _| Value::List(vec![v]));
    state.set("/l", nested(limits::MAX_VALUE_DEPTH)).unwrap();
    assert_eq!(state.get("/l").unwrap(), Some(nested(limits::MAX_VALUE_DEPTH)));
    let error = refusal(state.set("/l", nested(limits::MAX_VALUE_DEPTH + 1)));
    assert!(error.contains("more than 64 levels deep"), "{error}");
    let many = Value::list(vec![0; limits::MAX_VALUE_ITEMS]);
    state.set("/l", &many).unwrap();
    let error = refusal(state.set("/l", Value::list([many])));
    assert!(error.contains("more than 1048576 items"), "{error}");
    for (bad, why) in [
        (Value::set([Value::list([1])]), "this is a list"),
        (Value::set([Value::json("1").unwrap()]), "this is JSON"),
        (Value::Set(vec![2.into(), 1.into()]), "not in order"),
        (Value::Set(vec![1.into(), 1.into()]), "not in order"),
        (Value::Unreadable("x".into()), "an unreadable value cannot be written"),
        (Value::list([Value::Unreadable("x".into())]), "cannot be written"),
    ] {
        let error = refusal(state.set("/s", bad.clone()));
        assert!(error.contains(why), "{bad:?}: {error}");
    }
    let set = Value::set([Value::from(f64::NAN), Value::from(-0.0), Value::from(0.0), true.into()]);
    state.set("/s", set).unwrap();
    let Some(Value::Set(members)) = state.get("/s").unwrap() else { panic!("it is a set") };
    assert_eq!(members.len(), 4);
    assert!(members[0] == true.into() && members[3].as_float().unwrap().is_nan());
    assert!(state.contains("/s", f64::NAN).unwrap());
}
