//! Facts about unanswered operations that need no search.
//!
//! The revision of a value in a reply is the revision of the one write that made it. And an unanswered
//! write that was never seen can mostly be ignored: removed from an explanation of the history, it leaves a
//! valid explanation. Without this, each killed process would double the number of states that a search has
//! to visit.

use std::collections::{HashMap, HashSet};

use crate::history::{Call, Guard, Key, Operation, Reply, Seen};

/// When an unanswered operation has to be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relevance {
    /// No reply can depend on it.
    Never,
    /// A reply may depend on the presence of a value, and not on which one.
    WhenAbsent,
    /// Whenever it is possible.
    Always,
}

/// Facts about a history beyond its replies.
#[derive(Debug, Default)]
pub struct Inferred {
    /// For each operation, its revision if known.
    pub revisions: Vec<Option<u64>>,
    /// For each operation, when it has to be tried.
    pub relevance: Vec<Relevance>,
}

/// Analyzes a history.
pub fn infer(history: &[Operation]) -> Inferred {
    let mut seen_revisions: HashMap<(Key, i64), HashSet<u64>> = HashMap::new();
    let mut makers: HashMap<(Key, i64), usize> = HashMap::new();
    for op in history {
        for (key, seen) in shown(op) {
            seen_revisions.entry((key, seen.value)).or_default().extend(seen.revision);
        }
        for made in made(op) {
            *makers.entry(made).or_default() += 1;
        }
    }
    let revision_of = |op: &Operation| {
        match &op.reply {
            Some((Reply::Done { changed: false, .. }, _)) => return None,
            Some((Reply::Done { revision: Some(revision), .. }, _)) => return Some(*revision),
            _ => {}
        }
        let mut known = made(op).into_iter().filter(|made| makers[made] == 1);
        known.find_map(|made| match seen_revisions.get(&made) {
            Some(revisions) if revisions.len() == 1 => revisions.iter().next().copied(),
            _ => None,
        })
    };
    let revisions: Vec<Option<u64>> = history.iter().map(revision_of).collect();
    let traces = traces(history, &revisions);
    let relevance = history.iter().map(|op| {
        let reads = matches!(op.call, Call::Get { .. } | Call::Snapshot { .. } | Call::Revision);
        if op.reply.is_none() && reads {
            return Relevance::Never;
        }
        let seen = || made(op).iter().any(|made| seen_revisions.contains_key(made));
        if op.reply.is_some() || !is_set(op) || seen() {
            return Relevance::Always;
        }
        let of_key = |key: Key| traces.get(&key).copied().unwrap_or(Relevance::Never);
        op.call.keys().into_iter().map(of_key).max().unwrap_or(Relevance::Never)
    });
    Inferred { relevance: relevance.collect(), revisions }
}

/// What the replies may reveal of a write to a key although its value was never seen there.
fn traces(history: &[Operation], revisions: &[Option<u64>]) -> HashMap<Key, Relevance> {
    let explained: HashSet<u64> = revisions.iter().flatten().copied().collect();
    let mut traces: HashMap<Key, Relevance> = HashMap::new();
    let mut note = |key: Key, what: Relevance| {
        let at = traces.entry(key).or_insert(what);
        *at = what.max(*at);
    };
    for op in history {
        match (&op.call, op.reply.as_ref().map(|(reply, _)| reply)) {
            // A sum, answered or not, reveals the value that it was added to.
            (Call::Add { key, .. }, _) => note(*key, Relevance::Always),
            (Call::Commit { .. }, Some(Reply::Conflict { key, found }))
                if found.is_none_or(|found| found != 0 && !explained.contains(&found)) =>
            {
                let keys = op.call.keys();
                keys.into_iter()
                    .filter(|k| key.is_none_or(|key| key == *k))
                    .for_each(|k| note(k, Relevance::Always));
            }
            (Call::Commit { writes, .. }, Some(Reply::Done { .. })) => {
                let deletes = writes.iter().filter(|w| w.value.is_none());
                deletes.for_each(|w| note(w.key, Relevance::WhenAbsent));
            }
            _ => {}
        }
    }
    traces
}

/// Whether it only sets keys: then only its values reveal it.
fn is_set(op: &Operation) -> bool {
    match &op.call {
        Call::Commit { writes, .. } => writes.iter().all(|w| w.value.is_some()),
        Call::Will { becomes, .. } => becomes.is_some(),
        _ => false,
    }
}

/// The values that an operation was shown.
fn shown(op: &Operation) -> Vec<(Key, Seen)> {
    match (&op.call, op.reply.as_ref().map(|(reply, _)| reply)) {
        (Call::Get { key }, Some(Reply::Got(Some(seen)))) => vec![(*key, *seen)],
        (Call::Snapshot { keys }, Some(Reply::Snapshot { entries, .. })) => {
            let pairs = keys.iter().zip(entries);
            pairs.filter_map(|(key, seen)| Some((*key, (*seen)?))).collect()
        }
        (Call::Commit { guards, .. }, _) => {
            let seen = |g: &Guard| Some((g.key, g.seen?));
            guards.iter().filter_map(seen).collect()
        }
        // It takes effect only if the key has this value.
        (Call::Will { key, of, .. }, _) => vec![(*key, Seen { value: *of, revision: None })],
        _ => Vec::new(),
    }
}

/// The values that an operation makes, as far as they are known without a search.
fn made(op: &Operation) -> Vec<(Key, i64)> {
    match (&op.call, &op.reply) {
        (Call::Commit { .. }, Some((Reply::Conflict { .. }, _))) => Vec::new(),
        (Call::Commit { writes, .. }, _) => {
            writes.iter().filter_map(|w| Some((w.key, w.value?))).collect()
        }
        (Call::Add { key, .. }, Some((Reply::Sum(sum), _))) => vec![(*key, *sum)],
        (Call::Will { key, becomes: Some(value), .. }, None) => vec![(*key, *value)],
        _ => Vec::new(),
    }
}
