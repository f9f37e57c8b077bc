//! What processes requested of the state and what was replied: calls, replies, and when.
//!
//! Keys are small numbers and values are numbers. A recorder of a history gives each write a unique value
//! and checks that its bytes are intact, so that a value identifies its writer.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A key of a history.
pub type Key = u16;

/// A present key, as a process saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Seen {
    /// The value.
    pub value: i64,
    /// The revision at which it was written; `None` if the reply did not contain it.
    pub revision: Option<u64>,
}

/// A condition: unless the key is as it was seen, nothing is written. `None` means absent.
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
    /// Its new value; `None`: deleted.
    pub value: Option<i64>,
    /// Its expected revision, 0 for absent; `None`: any.
    pub expect: Option<u64>,
}

/// A request of a process.
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
        /// The writes.
        writes: Vec<Put>,
    },
    /// Adds to a number; an absent one is 0.
    Add {
        /// The key.
        key: Key,
        /// The summand.
        delta: i64,
    },
    /// Reads many keys at once.
    Snapshot {
        /// The keys, in the order of the reply.
        keys: Vec<Key>,
    },
    /// Requests the revision of the newest change.
    Revision,
    /// The new value of a key at the end of the process that wrote `of` there, if the key still has that
    /// value.
    Will {
        /// The key.
        key: Key,
        /// The value that the process wrote.
        of: i64,
        /// The value that replaces it; `None`: none.
        becomes: Option<i64>,
    },
}

impl Call {
    /// The keys in the request.
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

/// A reply to a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The result of a [`Call::Get`].
    Got(Option<Seen>),
    /// A commit took place.
    Done {
        /// Its revision; `None` if the reply did not contain it.
        revision: Option<u64>,
        /// Whether it changed anything: a delete of an absent key changes nothing.
        changed: bool,
    },
    /// A commit was refused, and nothing was written.
    Conflict {
        /// The key that was not as expected, if reported.
        key: Option<Key>,
        /// Its actual revision, 0 for absent, if reported.
        found: Option<u64>,
    },
    /// The result of an addition.
    Sum(i64),
    /// Many keys as of one revision.
    Snapshot {
        /// That revision.
        revision: u64,
        /// The state of each key.
        entries: Vec<Option<Seen>>,
    },
    /// The revision of the newest change.
    Revision(u64),
}

/// A call and its result. Times are of one clock for all processes of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// The calling process.
    pub process: u32,
    /// The request.
    pub call: Call,
    /// The call was not made before this time.
    pub called_ns: u64,
    /// The reply, and a time after it. `None`: the process died first, and it is unknown whether the call
    /// has taken or will take effect.
    pub reply: Option<(Reply, u64)>,
    /// The meaning of an operation on several keys for one of them.
    #[serde(default)]
    pub part: bool,
}

/// All keys of a history.
pub fn keys(history: &[Operation]) -> BTreeSet<Key> {
    history.iter().flat_map(|op| op.call.keys()).collect()
}

/// The meaning of a history for one key: linearizability of the whole implies linearizability of each key,
/// and a failure of one key is easier to read.
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
            // Another key may have caused the conflict.
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
