//! Transactions over several keys, all or nothing.

use std::collections::BTreeMap;

use rnet_core::{Error, MAX_TRANSACTION_KEYS, Result, key_name};
use rnet_shm::state::{Guard, Record};

use super::codec::StateType;
use super::message::StateMessage;
use super::modify::retry;
use super::options::{Options, option_methods};
use super::shared::CommitItem;
use super::state::State;
use super::value::Value;
use rnet_node::Message;

/// Reads and writes of several keys, created by [`State::transaction`]. [`Transaction::commit`] writes all
/// changes, or none if another writer has changed a key that was read here.
///
/// Dropping it without a commit writes nothing.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut settings = rnet_node::NodeSettings::new("arm");
/// # settings.dir = Some(std::env::temp_dir());
/// # settings.domain = Some(format!("tx{}", std::process::id()));
/// # let node = settings.open()?;
/// # let state = rnet_state::State::open(&node, None, None)?;
/// state.set("/bin/left", 5)?;
/// let moved = state.transact(|t| {
///     let left = t.get_as::<i64>("/bin/left")?.unwrap_or(0);
///     let right = t.get_as::<i64>("/bin/right")?.unwrap_or(0);
///     t.set("/bin/left", left - 1)?;
///     t.set("/bin/right", right + 1)?;
///     Ok(right + 1)
/// })?;
/// assert_eq!(moved, 1);
/// # let path = node.state.domain.path().to_owned();
/// # drop((state, node));
/// # std::fs::remove_dir_all(path)?;
/// # Ok(()) }
/// ```
#[must_use = "nothing is written until commit"]
#[derive(Debug)]
pub struct Transaction {
    state: State,
    keys: BTreeMap<String, Touched>,
}

/// A key that the transaction has used.
#[derive(Debug, Default)]
struct Touched {
    /// The revision at its first read; 0: absent.
    read: Option<u64>,
    write: Option<Pending>,
}

#[derive(Debug)]
struct Pending {
    /// `None`: delete the key.
    value: Option<Value>,
    options: Options,
}

impl State {
    /// Starts a transaction: reads and writes of several keys that are committed together or not at all.
    pub fn transaction(&self) -> Transaction {
        Transaction { state: self.clone(), keys: BTreeMap::new() }
    }

    /// Runs `body` in a transaction and commits it; repeats both if another writer interfered, at most
    /// [`rnet_core::MAX_UPDATE_TRIES`] times. `body` may therefore run several times.
    ///
    /// # Errors
    /// That of `body`; `LimitReached` if other writers interfered each time; as [`State::set`].
    pub fn transact<T>(&self, mut body: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        retry("transaction attempts", || {
            let mut transaction = self.transaction();
            let out = body(&mut transaction)?;
            transaction.commit()?;
            Ok(out)
        })
    }
}

impl Transaction {
    /// The value of a key: the one set by this transaction, otherwise the current one.
    ///
    /// # Errors
    /// `Conflict` if it was read here before, and another writer has changed it since; `LimitReached` beyond
    /// [`MAX_TRANSACTION_KEYS`].
    pub fn get(&mut self, key: &str) -> Result<Option<Value>> {
        let key = key_name(key)?;
        if let Some(pending) = self.pending(&key) {
            return Ok(pending.value.clone());
        }
        let mut record = Record::default();
        if self.read(&key, &mut record)? {
            self.state.shared.value_of(&record).map(Some)
        } else {
            Ok(None)
        }
    }

    /// As [`Transaction::get`], as a Rust type.
    ///
    /// # Errors
    /// `StateType` if it has another type; as [`Transaction::get`].
    pub fn get_as<T: StateType>(&mut self, key: &str) -> Result<Option<T>> {
        let key = key_name(key)?;
        if let Some(pending) = self.pending(&key) {
            let Some(value) = &pending.value else { return Ok(None) };
            return T::from_value(&key, value).map(Some);
        }
        let mut record = Record::default();
        if self.read(&key, &mut record)? {
            self.state.shared.typed(&record).map(Some)
        } else {
            Ok(None)
        }
    }

    fn pending(&self, key: &str) -> Option<&Pending> {
        self.keys.get(key)?.write.as_ref()
    }

    fn read(&mut self, key: &str, record: &mut Record) -> Result<bool> {
        let found = self.state.shared.read_into(key, record)?;
        let revision = if found { record.revision } else { 0 };
        match self.touch(key)?.read.get_or_insert(revision) {
            before if *before == revision => Ok(found),
            before => {
                let expected = *before;
                Err(Error::Conflict { key: key.to_owned(), expected, found: revision })
            }
        }
    }

    /// The record of a key; creates it within the limit.
    fn touch(&mut self, key: &str) -> Result<&mut Touched> {
        if self.keys.len() >= MAX_TRANSACTION_KEYS && !self.keys.contains_key(key) {
            return Err(Error::limit_reached(
                "keys in a transaction",
                MAX_TRANSACTION_KEYS,
                "split them over several transactions",
            ));
        }
        Ok(self.keys.entry(key.to_owned()).or_default())
    }

    /// Sets a key on commit.
    ///
    /// # Errors
    /// `LimitReached` beyond [`MAX_TRANSACTION_KEYS`]. The commit reports an invalid value.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) -> Result<()> {
        self.put(key).set(value)
    }

    /// Sets a key to a message on commit.
    ///
    /// # Errors
    /// As [`Transaction::set`].
    pub fn set_message<M: Message>(&mut self, key: &str, message: &M) -> Result<()> {
        self.put(key).set(StateMessage::of(message)?)
    }

    /// Deletes a key on commit.
    ///
    /// # Errors
    /// As [`Transaction::set`].
    pub fn delete(&mut self, key: &str) -> Result<()> {
        self.pend(key, Pending { value: None, options: Options::default() })
    }

    /// Writes with options.
    pub fn put<'a>(&'a mut self, key: &'a str) -> TransactionPut<'a> {
        TransactionPut { transaction: self, key, options: Options::default() }
    }

    fn pend(&mut self, key: &str, pending: Pending) -> Result<()> {
        let key = key_name(key)?;
        self.touch(&key)?.write = Some(pending);
        Ok(())
    }

    /// Writes all changes if the keys that were read here are unchanged; returns the revision of all written
    /// keys.
    ///
    /// # Errors
    /// `Conflict` with the first key that another writer has changed; [`State::transact`] then repeats the
    /// transaction. As [`State::set`].
    pub fn commit(self) -> Result<u64> {
        let shared = &self.state.shared;
        shared.check_fork()?;
        let (mut items, mut guards) = (Vec::with_capacity(self.keys.len()), Vec::new());
        for (key, touched) in &self.keys {
            let Some(Pending { value, options }) = &touched.write else {
                let revision = touched.read.unwrap_or_default();
                guards.push(Guard { key, revision });
                continue;
            };
            let value = match value {
                Some(value) => Some(shared.prepare(key, value, options)?),
                None => None,
            };
            items.push(CommitItem { key, value, expect: touched.read, durable: options.durable });
        }
        shared.commit(&mut items, &guards)
    }
}

/// A write with options, in a transaction; created by [`Transaction::put`].
#[must_use = "nothing is written until set"]
#[derive(Debug)]
pub struct TransactionPut<'a> {
    transaction: &'a mut Transaction,
    key: &'a str,
    options: Options,
}

impl TransactionPut<'_> {
    option_methods!();

    /// Sets the key on commit.
    ///
    /// # Errors
    /// As [`Transaction::set`].
    pub fn set(self, value: impl Into<Value>) -> Result<()> {
        self.transaction
            .pend(self.key, Pending { value: Some(value.into()), options: self.options })
    }
}
