//! Facts about single values that a history proves without a search: the revision of a value, and the
//! number of writes of a key.

use std::collections::{HashMap, HashSet};

use crate::history::{Call, Key, Operation, Reply, Seen};
use crate::infer::infer;
use crate::workload::{NEVER_DELETED, REGISTERS, WILL_KEY};

/// The facts of a history.
#[derive(Debug, Default)]
pub struct Facts {
    /// Values of registers that a process tried to write.
    wanted: HashSet<(Key, i64)>,
    revision_of: HashMap<(Key, i64), u64>,
    value_at: HashMap<(Key, u64), i64>,
    /// For each key, the number of answered writes, and the largest possible number.
    writes: HashMap<Key, (u64, u64)>,
}

impl Facts {
    /// Collects the facts of a history.
    pub fn of(history: &[Operation]) -> Facts {
        let mut facts = Facts::default();
        let known = infer(history);
        for (op, revision) in history.iter().zip(known.revisions) {
            let done = match &op.reply {
                None => None,
                Some((Reply::Done { changed, .. }, _)) => Some(*changed),
                Some((Reply::Sum(_), _)) => Some(true),
                Some(_) => Some(false),
            };
            for (key, value) in written(op) {
                if let Some(value) = value {
                    facts.wanted.insert((key, value));
                    if let Some(revision) = revision {
                        facts.know(key, value, revision);
                    }
                }
                let (least, most) = facts.writes.entry(key).or_default();
                // With several keys, a delete may have found nothing.
                *least += u64::from(done == Some(true) && value.is_some());
                *most += u64::from(done != Some(false));
            }
            if let (Call::Get { key }, Some((Reply::Got(Some(seen)), _))) = (&op.call, &op.reply) {
                facts.know_seen(*key, *seen);
            }
            if let (Call::Snapshot { keys }, Some((Reply::Snapshot { entries, .. }, _))) =
                (&op.call, &op.reply)
            {
                for (key, seen) in keys.iter().zip(entries) {
                    seen.iter().for_each(|seen| facts.know_seen(*key, *seen));
                }
            }
        }
        facts
    }

    fn know_seen(&mut self, key: Key, seen: Seen) {
        if let Some(revision) = seen.revision {
            self.know(key, seen.value, revision);
        }
    }

    fn know(&mut self, key: Key, value: i64, revision: u64) {
        self.revision_of.insert((key, value), revision);
        self.value_at.insert((key, revision), value);
    }

    /// Checks that a key may have held this value at this revision.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn holds(&self, key: Key, value: i64, revision: u64) -> Result<(), String> {
        if !is_number(key) && !self.wanted.contains(&(key, value)) {
            return Err("a value that no process wrote".to_owned());
        }
        if let Some(at) = self.revision_of.get(&(key, value))
            && *at != revision
        {
            return Err(format!("a value of revision {at}"));
        }
        match self.value_at.get(&(key, revision)) {
            Some(other) if *other != value => Err(format!("at this revision the value is {other}")),
            _ => Ok(()),
        }
    }

    /// Whether a key is never deleted.
    pub fn is_kept(&self, key: Key) -> bool {
        key == NEVER_DELETED || is_number(key)
    }

    /// The smallest number of writes of a key: the number of answered writes.
    pub fn least_writes(&self, key: Key) -> u64 {
        self.writes.get(&key).map_or(0, |(least, _)| *least)
    }

    /// The largest number of writes and deletes, including unanswered ones.
    pub fn most_writes(&self, key: Key) -> u64 {
        self.writes.get(&key).map_or(0, |(_, most)| *most)
    }
}

fn is_number(key: Key) -> bool {
    (REGISTERS..WILL_KEY).contains(&key)
}

/// The keys that an operation writes, and the values that are known.
fn written(op: &Operation) -> Vec<(Key, Option<i64>)> {
    match &op.call {
        Call::Commit { writes, .. } => writes.iter().map(|put| (put.key, put.value)).collect(),
        Call::Will { key, becomes, .. } => vec![(*key, *becomes)],
        Call::Add { key, delta } => match &op.reply {
            Some((Reply::Sum(sum), _)) => vec![(*key, Some(*sum))],
            // Not a sum, but different from all other values.
            _ => vec![(*key, Some(-delta))],
        },
        _ => Vec::new(),
    }
}
