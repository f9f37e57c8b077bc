//! What processes did to the state and what they were told: calls, replies, and when.
//!
//! Keys are small numbers and values are numbers. Whoever records a history gives each write a value
//! of its own and checks that the bytes which stand for it are whole, so that here a value says who
//! wrote it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A key of a history.
pub type Key = u16;

/// What a process was shown of a key that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Seen {
    /// The value.
    pub value: i64,
    /// At which revision it was written; `None` if the reply did not tell.
    pub revision: Option<u64>,
}

/// A key that must be as it was seen, or nothing is written; `None`: absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// The key.
    pub key: Key,
    /// What it must be.
    pub seen: Option<Seen>,
}

/// One key's part of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Put {
    /// The key.
    pub key: Key,
    /// What it becomes; `None`: deleted.
    pub value: Option<i64>,
    /// The revision at which it must be, 0 for absent; `None`: whatever it is.
    pub expect: Option<u64>,
}

/// What a process asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// Reads a key.
    Get {
        /// The key.
        key: Key,
    },
    /// Writes some keys, all or none: a set, a compare-and-set, a delete, a transaction.
    Commit {
        /// Keys that must not have changed.
        guards: Vec<Guard>,
        /// What is written.
        writes: Vec<Put>,
    },
    /// Adds to a number; an absent one is 0.
    Add {
        /// The key.
        key: Key,
        /// What is added.
        delta: i64,
    },
    /// Reads many keys at once.
    Snapshot {
        /// The keys, in the order of the reply.
        keys: Vec<Key>,
    },
    /// Asks for the revision of the newest change.
    Revision,
    /// What a key becomes at the end of the process that wrote `of` there, if it still is that.
    Will {
        /// The key.
        key: Key,
        /// The value that the process wrote.
        of: i64,
        /// What is left in its place; `None`: nothing.
        becomes: Option<i64>,
    },
}

impl Call {
    /// The keys that it names.
    pub fn keys(&self) -> BTreeSet<Key> {
        match self {
            Call::Get { key } | Call::Add { key, .. } | Call::Will { key, .. } => [*key].into(),
            Call::Snapshot { keys } => keys.iter().copied().collect(),
            Call::Revision => BTreeSet::new(),
            Call::Commit { guards, writes } => {
                guards.iter().map(|g| g.key).chain(writes.iter().map(|w| w.key)).collect()
            }
        }
    }
}

/// What a process is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// What a [`Call::Get`] found.
    Got(Option<Seen>),
    /// A commit took place.
    Done {
        /// The revision that it made; `None` if the reply did not tell.
        revision: Option<u64>,
        /// Whether there was anything to change: a delete of what is not there changes nothing.
        changed: bool,
    },
    /// A commit was refused, and nothing was written.
    Conflict {
        /// The key that was not as expected, if told.
        key: Option<Key>,
        /// The revision at which it was, 0 for absent, if told.
        found: Option<u64>,
    },
    /// The outcome of an addition.
    Sum(i64),
    /// Many keys as of one revision.
    Snapshot {
        /// That revision.
        revision: u64,
        /// What stood at each key.
        entries: Vec<Option<Seen>>,
    },
    /// The revision of the newest change.
    Revision(u64),
}

/// One call and what came of it. Times are of one clock for all processes of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Who called.
    pub process: u32,
    /// What was asked for.
    pub call: Call,
    /// The call was not made before this time.
    pub called_ns: u64,
    /// What was told, and a time before which it was told. `None`: the process died first, and nobody knows
    /// whether the call had its effect, or will have.
    pub reply: Option<(Reply, u64)>,
    /// This is what an operation on several keys means for one of them.
    #[serde(default)]
    pub part: bool,
}

/// All keys of a history.
pub fn keys(history: &[Operation]) -> BTreeSet<Key> {
    history.iter().flat_map(|op| op.call.keys()).collect()
}

/// What a history means for one key: linearizable as a whole implies linearizable key by key, and
/// what is wrong with one key is easier to read.
pub fn of_key(history: &[Operation], key: Key) -> Vec<Operation> {
    history.iter().filter_map(|op| project(op, key)).collect()
}

fn project(op: &Operation, key: Key) -> Option<Operation> {
    if !op.call.keys().contains(&key) {
        return None;
    }
    let mut op = op.clone();
    match &mut op.call {
        Call::Commit { guards, writes } => {
            op.part = guards.len() + writes.len() > 1;
            guards.retain(|g| g.key == key);
            writes.retain(|w| w.key == key);
            // It may be another key that was in the way.
            if op.part
                && let Some((Reply::Conflict { key: Some(at), .. }, _)) = &op.reply
                && *at != key
            {
                return None;
            }
            if op.part && matches!(&op.reply, Some((Reply::Conflict { key: None, .. }, _))) {
                return None;
            }
        }
        Call::Snapshot { keys } => {
            op.part = true;
            let at = keys.iter().position(|k| *k == key)?;
            if let Some((Reply::Snapshot { entries, .. }, _)) = &mut op.reply {
                *entries = vec![*entries.get(at)?];
            }
            *keys = vec![key];
        }
        _ => {}
    }
    Some(op)
}
