//! The public state API: each method, its refusals, and its guarantees.

use crate::common;

mod bad_input;
mod basics;
mod cells;
mod expiry;
mod forked;
mod hostile;
mod messages;
mod model;
mod modify;
mod transactions;
mod unobserved_deaths;
mod watch_consistency;
mod watching;
mod wills;

use rnet::state::{State, Value};

/// Entry point of the child processes: runs the role that the parent names.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    match common::role().as_deref() {
        Some("owner") => wills::owner(),
        Some("unseen_watcher") => unobserved_deaths::watcher(),
        Some("unseen_victim") => unobserved_deaths::victim(),
        Some("counter") => modify::counter(),
        other => panic!("unknown role: {other:?}"),
    }
}

/// The text of the error that this call must return.
fn refusal<T: std::fmt::Debug>(result: rnet::Result<T>) -> String {
    result.expect_err("it must be refused").to_string()
}

/// The integer at a key.
fn int(state: &State, key: &str) -> Option<i64> {
    state.get(key).expect("it can be read").and_then(|value| value.as_int())
}

/// One value of each type except messages.
fn one_of_each() -> Vec<Value> {
    vec![
        Value::Bool(true),
        Value::Int(-3),
        Value::Float(0.1),
        Value::Str("grün".into()),
        Value::Bytes(vec![0, 255]),
        Value::json(r#"{"a": [1, null]}"#).unwrap(),
        Value::list([Value::Int(1), Value::Str("x".into()), Value::list([2.5])]),
        Value::set(["b", "a"]),
    ]
}
