//! Changes computed from the current value: counters, lists, sets.
//!
//! Each one reads the key, computes the new value, and writes on condition that the key is unchanged;
//! otherwise it retries. Concurrent updates are therefore never lost. The other attributes of the key are
//! kept: its time to live, its durability, and its last will if this node set it.

use rnet_core::{Error, MAX_UPDATE_TRIES, MAX_VALUE_ITEMS, Result, key_name};
use rnet_shm::state::{Record, StoredValue, Write};

use super::encode::{self, Packed, kind};
use super::options::Options;
use super::shared::{CommitItem, StateShared};
use super::state::State;
use super::value::Value;

/// Number of attempts after which a writer yields to others between two attempts.
const SPIN_TRIES: usize = 16;

/// Result of a step on the current value: no change, or new bytes of the same kind.
enum Step<T> {
    Unchanged(T),
    Write(Packed<'static>, T),
}

/// Retries a write until no other writer interferes; yields to faster writers.
pub(super) fn retry<T>(what: &str, mut write: impl FnMut() -> Result<T>) -> Result<T> {
    for tries in 0..MAX_UPDATE_TRIES {
        match write() {
            Err(Error::Conflict { .. }) if tries < SPIN_TRIES => std::hint::spin_loop(),
            Err(Error::Conflict { .. }) => std::thread::yield_now(),
            done => return done,
        }
    }
    let hint = "other writers changed the key on each try; use fewer writers, or write less often"
        .to_owned();
    Err(Error::limit_reached(what, MAX_UPDATE_TRIES, hint))
}

impl StateShared {
    /// The will of a record, if the current writer keeps it.
    fn own_will<'a>(&self, record: &'a Record) -> Option<&'a [u8]> {
        record.will().filter(|_| record.writer() == self.node_name())
    }

    /// Changes a key of one kind by a step that computes new bytes from the old ones.
    fn modify<T>(
        &self,
        key: &str,
        of: u16,
        mut step: impl FnMut(Option<&[u8]>) -> Result<Step<T>, String>,
    ) -> Result<T> {
        let key = key_name(key)?;
        let mut record = Record::default();
        retry(&format!("attempts to change {key}"), || {
            let found = self.read_into(&key, &mut record)?;
            if found && record.kind != of {
                return Err(Error::StateType {
                    key: key.to_string(),
                    holds: self.holds_text(record.kind, record.type_id),
                    given: encode::kind_text(of).to_owned(),
                });
            }
            let made = step(found.then(|| record.value()));
            let bad = |why| Error::bad_value(format!("value of {key}"), why);
            let (bytes, out) = match made.map_err(bad)? {
                Step::Unchanged(out) => return Ok(out),
                Step::Write(bytes, out) => (bytes, out),
            };
            let stored = StoredValue {
                kind: of,
                type_id: 0,
                bytes: &bytes,
                will: if found { self.own_will(&record) } else { None },
                expires_boot_ns: if found { record.expires_boot_ns } else { 0 },
            };
            let expect = Some(if found { record.revision } else { 0 });
            let write = Write { key: &key, value: Some(stored), expect, durable: None };
            self.write_at(write).map(|_| out)
        })
    }
}

impl State {
    /// Sets a key to the result of `change` on its value (`None` if it is absent), and returns the new value.
    /// If another writer interferes, `change` is called again with the new value.
    ///
    /// # Errors
    /// `LimitReached` if other writers interfered [`MAX_UPDATE_TRIES`] times; as [`State::set`].
    pub fn update(
        &self,
        key: &str,
        mut change: impl FnMut(Option<Value>) -> Value,
    ) -> Result<Value> {
        let shared = &self.shared;
        shared.check_fork()?;
        let key = key_name(key)?;
        let mut record = Record::default();
        retry(&format!("attempts to change {key}"), || {
            let found = shared.read_into(&key, &mut record)?;
            let present = if found { Some(shared.value_of(&record)?) } else { None };
            let value = change(present);
            let mut prepared = shared.prepare(&key, &value, &Options::default())?;
            if found {
                prepared.keep_attributes(record.expires_boot_ns, shared.own_will(&record));
            }
            let expect = Some(if found { record.revision } else { 0 });
            let mut items =
                [CommitItem { key: &key, value: Some(prepared), expect, durable: None }];
            shared.commit(&mut items, &[])?;
            drop(items);
            Ok(value)
        })
    }

    /// Adds to an integer, which starts at 0; returns the sum.
    ///
    /// # Errors
    /// `StateType` if the key holds another type; `BadValue` if the sum does not fit into 64 bits (the key is
    /// unchanged); `LimitReached` if other writers interfered [`MAX_UPDATE_TRIES`] times.
    pub fn add(&self, key: &str, amount: i64) -> Result<i64> {
        self.shared.modify(key, kind::INT, |present| {
            let present = match present {
                None => 0,
                Some(bytes) => i64::from_le_bytes(encode::eight_bytes(kind::INT, bytes)?),
            };
            let sum = present
                .checked_add(amount)
                .ok_or_else(|| format!("{present} plus {amount} does not fit into 64 bits"))?;
            Ok(Step::Write(Packed::int(sum), sum))
        })
    }

    /// Adds to a float, which starts at 0; returns the sum.
    ///
    /// # Errors
    /// `StateType` if the key holds another type; `LimitReached` if other writers interfered
    /// [`MAX_UPDATE_TRIES`] times.
    pub fn add_float(&self, key: &str, amount: f64) -> Result<f64> {
        self.shared.modify(key, kind::FLOAT, |present| {
            let present = match present {
                None => 0.0,
                Some(bytes) => f64::from_le_bytes(encode::eight_bytes(kind::FLOAT, bytes)?),
            };
            let sum = present + amount;
            Ok(Step::Write(Packed::float(sum), sum))
        })
    }

    /// Appends to a list, which starts empty, and removes items from its front until it has at most
    /// `max_len`; returns their number.
    ///
    /// # Errors
    /// `BadValue` if `max_len` is 0 or more than [`MAX_VALUE_ITEMS`], or for a value that a list cannot hold;
    /// `StateType` if the key holds another type; as [`State::add`].
    pub fn push(&self, key: &str, value: impl Into<Value>, max_len: usize) -> Result<usize> {
        if max_len == 0 || max_len > MAX_VALUE_ITEMS {
            return Err(Error::bad_value(
                format!("max_len of {key}"),
                format!("it is {max_len}; 1 to {MAX_VALUE_ITEMS} are allowed"),
            ));
        }
        let value = value.into();
        self.shared.modify(key, kind::LIST, |present| {
            let (list, len) = encode::push_item(present.unwrap_or_default(), &value, max_len)?;
            Ok(Step::Write(Packed::Owned(list), len))
        })
    }

    /// The items of a list, oldest first; empty if the key is absent.
    ///
    /// # Errors
    /// `StateType` if the key holds another type.
    pub fn items(&self, key: &str) -> Result<Vec<Value>> {
        self.items_of_kind(key, kind::LIST)
    }

    /// Adds a value to a set, which starts empty; `false` if the set already contains it.
    ///
    /// # Errors
    /// `BadValue` for a value that a set cannot hold; `StateType` if the key holds another type; as
    /// [`State::add`].
    pub fn set_add(&self, key: &str, value: impl Into<Value>) -> Result<bool> {
        let value = value.into();
        self.modify_set(key, |members| match find_member(members, &value) {
            Ok(_) => false,
            Err(at) => {
                members.insert(at, value.clone());
                true
            }
        })
    }

    /// Removes a value from a set; `false` if the set does not contain it. An empty set is kept.
    ///
    /// # Errors
    /// `StateType` if the key holds another type; as [`State::add`].
    pub fn set_remove(&self, key: &str, value: impl Into<Value>) -> Result<bool> {
        let value = value.into();
        self.modify_set(key, |members| match find_member(members, &value) {
            Ok(at) => {
                members.remove(at);
                true
            }
            Err(_) => false,
        })
    }

    /// The members of a set, sorted; empty if the key is absent.
    ///
    /// # Errors
    /// `StateType` if the key holds another type.
    pub fn members(&self, key: &str) -> Result<Vec<Value>> {
        self.items_of_kind(key, kind::SET)
    }

    /// Whether a set has this member.
    ///
    /// # Errors
    /// `StateType` if the key holds another type.
    pub fn contains(&self, key: &str, value: impl Into<Value>) -> Result<bool> {
        Ok(find_member(&self.members(key)?, &value.into()).is_ok())
    }

    fn modify_set(
        &self,
        key: &str,
        mut change: impl FnMut(&mut Vec<Value>) -> bool,
    ) -> Result<bool> {
        self.shared.modify(key, kind::SET, |present| {
            let mut members = match present.map(|bytes| encode::decode(kind::SET, bytes)) {
                None => Vec::new(),
                Some(Ok(Value::Set(members))) => members,
                Some(Ok(other)) => return Err(format!("it is {}", other.type_text())),
                Some(Err(why)) => return Err(why),
            };
            if !change(&mut members) {
                return Ok(Step::Unchanged(false));
            }
            let bytes = encode::encode(&Value::Set(members))?.to_vec();
            Ok(Step::Write(Packed::Owned(bytes), true))
        })
    }

    fn items_of_kind(&self, key: &str, of: u16) -> Result<Vec<Value>> {
        match self.get(key)? {
            None => Ok(Vec::new()),
            Some(Value::List(values)) if of == kind::LIST => Ok(values),
            Some(Value::Set(values)) if of == kind::SET => Ok(values),
            Some(other) => Err(Error::StateType {
                key: key.to_owned(),
                holds: other.type_text(),
                given: encode::kind_text(of).to_owned(),
            }),
        }
    }
}

fn find_member(members: &[Value], value: &Value) -> std::result::Result<usize, usize> {
    members.binary_search_by(|member| encode::order(member, value))
}
