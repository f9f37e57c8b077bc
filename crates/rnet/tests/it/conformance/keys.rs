//! The state and the parameters of an actor, and its steps on them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rnet::param::RefusedValue;
use rnet::state::{Change, Entry, LastWill, State, Transaction, Value, Watch};
use rnet::{Node, Param, Result};
use serde::{Deserialize, Serialize};

use super::actor::Outcome;
use crate::common::{LONG, eventually};

/// A value of the state, as actors of all languages exchange it with the test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Val {
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    Bytes(Vec<u8>),
    Json(String),
    List(Vec<Val>),
    Set(Vec<Val>),
}

impl From<&Val> for Value {
    fn from(value: &Val) -> Value {
        match value {
            Val::Bool(value) => Value::Bool(*value),
            Val::Int(value) => Value::Int(*value),
            Val::Float(value) => Value::Float(*value),
            Val::Str(value) => Value::Str(value.clone()),
            Val::Bytes(value) => Value::Bytes(value.clone()),
            Val::Json(text) => Value::Json(text.clone()),
            Val::List(values) => Value::list(values),
            Val::Set(values) => Value::set(values),
        }
    }
}

impl From<&Value> for Val {
    fn from(value: &Value) -> Val {
        let all = |values: &[Value]| values.iter().map(Val::from).collect();
        match value {
            Value::Bool(value) => Val::Bool(*value),
            Value::Int(value) => Val::Int(*value),
            Value::Float(value) => Val::Float(*value),
            Value::Str(value) => Val::Str(value.clone()),
            Value::Bytes(value) => Val::Bytes(value.clone()),
            Value::Json(text) => Val::Json(text.clone()),
            Value::List(values) => Val::List(all(values)),
            Value::Set(values) => Val::Set(all(values)),
            other => panic!("no step stores this: {other:?}"),
        }
    }
}

/// The options of a write.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PutOptions {
    pub if_revision: Option<u64>,
    pub ttl_ms: Option<u64>,
    pub durable: Option<bool>,
    pub last_will: Option<Val>,
    pub last_will_delete: bool,
    pub change_type: bool,
}

/// A step of an actor on the state of its domain, or on the parameters of its node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum KeyStep {
    /// Returns the revision of the write.
    Set {
        key: String,
        value: Val,
        options: PutOptions,
    },
    Get {
        key: String,
    },
    Entry {
        key: String,
    },
    /// Returns whether the key existed.
    Delete {
        key: String,
        if_revision: Option<u64>,
    },
    Keys {
        prefix: String,
    },
    /// Adds 1 to an integer this many times: with `add`, then with `update`.
    Count {
        key: String,
        times: u32,
    },
    Begin,
    /// Reads a key in the transaction.
    Read {
        key: String,
    },
    /// Sets a key in the transaction.
    Write {
        key: String,
        value: Val,
    },
    Commit,
    Watch {
        prefix: String,
    },
    /// The next changes of the watch.
    Changes {
        count: usize,
    },
    /// Declares "/gain", a float from 0 to `max`, and "/mode", one of two texts. Reports a stored value that is not
    /// allowed.
    Declare {
        max: f64,
    },
    GetParam {
        name: String,
    },
    SetParam {
        name: String,
        value: Val,
    },
    ResetParam {
        name: String,
    },
    /// The reported values of "/gain", once this many exist.
    ParamChanges {
        at_least: usize,
    },
}

/// An entry as an actor sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeenEntry {
    pub value: Val,
    pub revision: u64,
    pub version: u64,
    pub owner: String,
    pub durable: bool,
    pub expires: bool,
    pub last_will: Option<Val>,
    pub last_will_delete: bool,
}

/// A change as an actor sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeenChange {
    pub key: String,
    pub value: Option<Val>,
    pub expired: Option<bool>,
    pub initial: bool,
    pub skipped: Option<u64>,
}

impl From<&Entry> for SeenEntry {
    fn from(entry: &Entry) -> SeenEntry {
        let last_will = match &entry.last_will {
            Some(LastWill::Becomes(value)) => Some(value.into()),
            _ => None,
        };
        SeenEntry {
            value: (&entry.value).into(),
            revision: entry.revision,
            version: entry.version,
            owner: entry.owner.node.clone(),
            durable: entry.durable,
            expires: entry.ttl_left().is_some(),
            last_will,
            last_will_delete: entry.last_will == Some(LastWill::Delete),
        }
    }
}

impl From<Change> for SeenChange {
    fn from(change: Change) -> SeenChange {
        let value = change.entry.as_ref().map(|entry| (&entry.value).into());
        let Change { key, expired, initial, skipped, .. } = change;
        SeenChange { key, value, expired, initial, skipped }
    }
}

/// The state and the parameters of an actor.
#[derive(Default)]
pub struct Keys {
    watch: Option<Watch>,
    transaction: Option<Transaction>,
    gain: Option<Param<f64>>,
    mode: Option<Param<String>>,
    reported: Arc<Mutex<Vec<String>>>,
}

impl Keys {
    pub fn act(&mut self, node: &Node, step: KeyStep) -> Result<Outcome> {
        let state = node.state()?;
        let said = |word: String| Ok(Outcome::Said(vec![word]));
        match step {
            KeyStep::Set { key, value, options } => {
                return said(set(&state, &key, &value, options)?.to_string());
            }
            KeyStep::Get { key } => {
                return Ok(Outcome::Value(state.get(&key)?.as_ref().map(Val::from)));
            }
            KeyStep::Entry { key } => {
                return Ok(Outcome::Entry(state.entry(&key)?.as_ref().map(SeenEntry::from)));
            }
            KeyStep::Delete { key, if_revision } => {
                let put = state.put(&key);
                let existed = match if_revision {
                    Some(revision) => put.if_revision(revision).delete()?,
                    None => put.delete()?,
                };
                return said(existed.to_string());
            }
            KeyStep::Keys { prefix } => return Ok(Outcome::Said(state.keys(&prefix)?)),
            KeyStep::Count { key, times } => {
                for _ in 0..times {
                    state.add(&key, 1)?;
                    state.update(&key, |value| match value {
                        Some(Value::Int(number)) => Value::Int(number + 1),
                        other => panic!("not a count: {other:?}"),
                    })?;
                }
            }
            KeyStep::Begin => self.transaction = Some(state.transaction()),
            KeyStep::Read { key } => {
                let value = self.transaction().get(&key)?;
                return Ok(Outcome::Value(value.as_ref().map(Val::from)));
            }
            KeyStep::Write { key, value } => self.transaction().set(&key, &value)?,
            KeyStep::Commit => {
                let transaction = self.transaction.take().expect("a transaction was begun");
                return said(transaction.commit()?.to_string());
            }
            KeyStep::Watch { prefix } => self.watch = Some(state.watch(&prefix)?),
            KeyStep::Changes { count } => {
                let watch = self.watch.as_mut().expect("a watch was opened");
                let changes: Result<Vec<_>> =
                    (0..count).map(|_| Ok(watch.recv_timeout(LONG)?.into())).collect();
                return Ok(Outcome::Changes(changes?));
            }
            other => return self.param(node, other),
        }
        Ok(Outcome::Said(Vec::new()))
    }

    fn transaction(&mut self) -> &mut Transaction {
        self.transaction.as_mut().expect("a transaction was begun")
    }

    fn param(&mut self, node: &Node, step: KeyStep) -> Result<Outcome> {
        match step {
            KeyStep::Declare { max } => return self.declare(node, max),
            KeyStep::GetParam { name } if name == "/gain" => {
                return Ok(Outcome::Value(Some(Val::Float(self.gain().get()?))));
            }
            KeyStep::GetParam { .. } => {
                return Ok(Outcome::Value(Some(Val::Str(self.mode().get()?))));
            }
            KeyStep::SetParam { value: Val::Float(value), .. } => self.gain().set(value)?,
            KeyStep::SetParam { value: Val::Str(value), .. } => self.mode().set(value)?,
            KeyStep::ResetParam { name } if name == "/gain" => self.gain().reset()?,
            KeyStep::ResetParam { .. } => self.mode().reset()?,
            KeyStep::ParamChanges { at_least } => {
                let reported = || self.reported.lock().expect("unpoisoned").clone();
                eventually("the changes are reported", || reported().len() >= at_least);
                return Ok(Outcome::Said(reported()));
            }
            other => panic!("not a step of a parameter: {other:?}"),
        }
        Ok(Outcome::Said(Vec::new()))
    }

    fn gain(&self) -> &Param<f64> {
        self.gain.as_ref().expect("the parameters were declared")
    }

    fn mode(&self) -> &Param<String> {
        self.mode.as_ref().expect("the parameters were declared")
    }

    fn declare(&mut self, node: &Node, max: f64) -> Result<Outcome> {
        let reported = self.reported.clone();
        let gain = node
            .param("/gain")
            .default(1.0)
            .min(0.0)
            .max(max)
            .unit("1/s")
            .on_refused(|_| {})
            .on_change(move |value: f64| {
                reported.lock().expect("unpoisoned").push(format!("gain {value:.1}"));
            })
            .declare()?;
        let mode = node.param("/mode").default("idle".to_owned()).choices(["idle", "moving"]);
        self.mode = Some(mode.declare()?);
        let refused =
            gain.refused().map(|RefusedValue { value, why, .. }| format!("{value} {why}"));
        self.gain = Some(gain);
        Ok(Outcome::Said(refused.into_iter().collect()))
    }
}

fn set(state: &State, key: &str, value: &Val, options: PutOptions) -> Result<u64> {
    let mut put = state.put(key);
    if let Some(revision) = options.if_revision {
        put = put.if_revision(revision);
    }
    if let Some(ttl_ms) = options.ttl_ms {
        put = put.ttl(Duration::from_millis(ttl_ms));
    }
    if let Some(durable) = options.durable {
        put = put.durable(durable);
    }
    if let Some(will) = &options.last_will {
        put = put.last_will(will);
    }
    if options.last_will_delete {
        put = put.last_will_delete();
    }
    if options.change_type {
        put = put.change_type();
    }
    put.set(value)
}
