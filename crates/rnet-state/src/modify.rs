//! Changes that are computed from the present value: counters, lists, sets.
//!
//! Each reads the key, computes, and writes on condition that the key is still as it was read; else it begins
//! anew. So none is lost, whoever else writes. What a key has beside its value stays: its time to live, its
//! durability, and its last will if it is this node's.

use rnet_core::{Error, MAX_UPDATE_TRIES, MAX_VALUE_ITEMS, Result, key_name};
use rnet_shm::state::{Record, StoredValue, Write};

use super::encode::{self, Packed, kind};
use super::options::Options;
use super::shared::{CommitItem, StateShared};
use super::state::State;
use super::value::Value;

/// Tries after which a writer lets others run between two of them.
const SPIN_TRIES: usize = 16;

/// What a step makes of the present value: nothing new, or new bytes of the kind that the key is of.
enum Step<T> {
    Unchanged(T),
    Write(Packed<'static>, T),
}

/// Tries a write until no other writer is in between; lets those go on who were faster.
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
    /// The will of a record, if it stays with who writes now.
    fn own_will<'a>(&self, record: &'a Record) -> Option<&'a [u8]> {
        record.will().filter(|_| record.writer() == self.node_name())
    }

    /// Changes a key of one kind by a step from its bytes to new ones.
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
    /// Sets a key to the result of `change` on its value (`None` if it is absent), and returns the new value. If
    /// another writer interferes, `change` is called again with the new value.
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

    /// Adds to an integer, which begins at 0; returns the sum.
    ///
    /// # Errors `StateType` if the key holds no integer; `BadValue` if the sum does not fit into 64 bits: then
    /// nothing is changed; `LimitReached` if others were faster [`MAX_UPDATE_TRIES`] times.
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

    /// Adds to a float, which begins at 0; returns the sum.
    ///
    /// # Errors
    /// `StateType` if the key holds no float; `LimitReached` if others were faster [`MAX_UPDATE_TRIES`] times.
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

    /// Appends to a list, which begins empty, and takes items from its front until it has no more than
    /// `max_len`; returns how many it has.
    ///
    /// # Errors `BadValue` if `max_len` is 0 or more than [`MAX_VALUE_ITEMS`], or for a value that no list
    /// holds; `StateType` if the key holds no list; as [`State::add`].
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

    /// The items of a list, from the oldest to the newest; none if the key is absent.
    ///
    /// # Errors
    /// `StateType` if the key holds no list.
    pub fn items(&self, key: &str) -> Result<Vec<Value>> {
        self.items_of_kind(key, kind::LIST)
    }

    /// Puts a value into a set, which begins empty; `false` if it was there.
    ///
    /// # Errors
    /// `BadValue` for a value that no set holds; `StateType` if the key holds no set; as [`State::add`].
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

    /// Takes a value out of a set; `false` if it was not there. A set without members stays.
    ///
    /// # Errors
    /// `StateType` if the key holds no set; as [`State::add`].
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

    /// The members of a set, in order; none if the key is absent.
    ///
    /// # Errors
    /// `StateType` if the key holds no set.
    pub fn members(&self, key: &str) -> Result<Vec<Value>> {
        self.items_of_kind(key, kind::SET)
    }

    /// Whether a set has this member.
    ///
    /// # Errors
    /// `StateType` if the key holds no set.
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
