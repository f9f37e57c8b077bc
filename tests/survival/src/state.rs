//! The use of the state by survivors and victims, and the checks of the judge.
//!
//! The surviving writer counts in two keys by transactions, so that a snapshot with different counts, or a
//! count that stops, is a violation. A victim uses all features of the state. `tests/state` checks that its
//! writes before its death are right; here they only must not harm other nodes.

use std::time::Duration;

use rnet::state::State;
use rnet::{Error, Node};

use crate::{LONG, message};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The two keys of the surviving writer.
const KEPT: [&str; 2] = ["/keep/a", "/keep/b"];
/// Bytes of a value that needs a span of slabs.
const LARGE: usize = 200_000;
/// Writes of one key, so that blocks are reused.
const AGAIN: u64 = 300;

/// Advances the count of the surviving writer.
///
/// # Errors
/// The errors of the state.
pub fn count_on(state: &State) -> Result<(), Error> {
    state.transact(|t| {
        let count = t.get_as::<i64>(KEPT[0])?.unwrap_or(0) + 1;
        KEPT.iter().try_for_each(|key| t.set(key, count))
    })
}

/// The count of the surviving writer.
///
/// # Errors
/// A state that must not be visible.
pub fn counted(state: &State) -> Result<i64, String> {
    let snapshot = state.snapshot("/keep").map_err(|error| error.to_string())?;
    let count = |key: &str| snapshot.entries.get(key).and_then(|e| e.value.as_int()).unwrap_or(0);
    match KEPT.map(count) {
        [a, b] if a == b => Ok(a),
        [a, b] => Err(format!("a snapshot of half a transaction: {a} and {b}")),
    }
}

/// The prefix of a victim's keys.
fn keys_of(name: &str) -> String {
    format!("/victim/{name}")
}

/// Whether the keys that a dead victim's last will deletes are gone.
///
/// # Errors
/// The errors of the state.
pub fn will_is_done(state: &State, name: &str) -> Result<bool, Error> {
    Ok(state.get(&format!("{}/alive", keys_of(name)))?.is_none())
}

/// Checks the remains of a dead victim, and deletes them; returns what is wrong.
///
/// # Errors
/// The errors of the state.
pub fn check_dead_node(state: &State, name: &str) -> Result<Vec<String>, Error> {
    let keys = keys_of(name);
    let mut wrong = Vec::new();
    let snapshot = state.snapshot(&keys)?;
    let of = |key: &str| snapshot.entries.get(&format!("{keys}/{key}")).map(|e| e.value.clone());
    if of("left") != of("right") {
        wrong.push(format!("half a transaction of {name}: {:?}, {:?}", of("left"), of("right")));
    }
    for (key, entry) in &snapshot.entries {
        if let Some(Err(what)) = entry.value.as_bytes().map(message::check) {
            wrong.push(format!("{key}: {what}"));
        }
        state.delete(key)?;
    }
    Ok(wrong)
}

/// Uses the features of the state.
pub struct User {
    state: State,
    keys: String,
    buf: Vec<u8>,
}

impl User {
    /// A victim of this name begins: it sets its last will.
    ///
    /// # Errors
    /// The errors of the state.
    pub fn begin(node: &Node, name: &str) -> Result<User, Error> {
        let user = User { state: node.state()?, keys: keys_of(name), buf: Vec::new() };
        user.state.put(&user.key("alive")).last_will_delete().set(true)?;
        Ok(user)
    }

    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.keys)
    }

    fn set(&mut self, key: &str, len: usize, number: u64) -> Result<u64, Error> {
        self.buf.resize(len, 0);
        message::fill(&mut self.buf, 7, number);
        self.state.set(&self.key(key), self.buf.as_slice())
    }

    /// Some of everything, repeatedly.
    ///
    /// # Errors
    /// The errors of the state.
    pub fn turn(&mut self, turn: u64) -> Result<(), Error> {
        self.set("small", 24 + (turn as usize * 37) % 300, turn)?;
        if turn.is_multiple_of(4) {
            let (left, right) = (self.key("left"), self.key("right"));
            self.state.transact(|t| {
                t.set(&left, turn as i64)?;
                t.set(&right, turn as i64)
            })?;
            self.state.add("/victims/turns", 1)?;
            self.state.delete(&self.key("small"))?;
        }
        if turn.is_multiple_of(8) {
            self.set("large", LARGE, turn)?;
            self.state.snapshot("/")?;
        }
        Ok(())
    }

    /// Once per life: a watch that sleeps, a refused transaction, many writes of one key.
    ///
    /// # Errors
    /// The errors of the state, and violations.
    pub fn once(&mut self) -> Outcome {
        let bell = self.key("bell");
        let mut watch = self.state.watch(&bell)?;
        let listener = std::thread::spawn(move || -> Result<(), Error> {
            while watch.recv_timeout(LONG)?.entry.is_none_or(|e| e.value.as_int() != Some(2)) {}
            Ok(())
        });
        for number in 0..3_i64 {
            // Longer than the watch stays awake.
            std::thread::sleep(Duration::from_millis(3)); // sleep: the watch falls asleep
            self.state.set(&bell, number)?;
        }
        listener.join().map_err(|_| "the watch panicked")??;
        let mut refused = self.state.transaction();
        refused.get(&bell)?;
        refused.set(&self.key("never"), 1)?;
        self.state.set(&bell, 3)?;
        if !matches!(refused.commit(), Err(Error::Conflict { .. })) {
            return Err(
                "VIOLATION at a victim: a transaction succeeded although its key has changed"
                    .into(),
            );
        }
        for number in 0..AGAIN {
            self.set("again", 24 + number as usize % 64, number)?;
        }
        Ok(())
    }

    /// Writes a value that is on disk before it is visible.
    ///
    /// # Errors
    /// The errors of the state.
    pub fn durable(&mut self) -> Result<(), Error> {
        self.state.put(&self.key("durable")).durable(true).set(1)?;
        self.state.delete(&self.key("durable"))?;
        Ok(())
    }
}
