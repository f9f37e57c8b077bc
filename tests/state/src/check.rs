//! Checks whether one order of its operations explains a history: linearizability.
//!
//! The search is that of Wing and Gong (Testing and verifying concurrent objects, 1993): of the operations
//! that no other one precedes in time, try each that the specification allows next, and backtrack if none
//! is possible. It uses Lowe's cache (Testing for linearizability, 2017): a set of operations that leads to
//! a known state is not searched again. The cache holds 128-bit hashes; a collision could hide an
//! explanation, but never invent one.
//!
//! An operation without a reply may take effect at any time after its call, or never. An operation that is
//! possible and changes nothing is placed at once: any later operation could follow it just as well if it
//! came later. And revisions only grow: the answered write with the lowest one precedes all higher ones,
//! and no operation with a revision as high precedes it.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

use crate::history::{Operation, keys, of_key};
use crate::infer::{Inferred, Relevance, infer};
use crate::spec::State;
use rnet_survival::rng::mix_bits;

/// Steps after which a search gives up: about a minute.
pub const MAX_STEPS: u64 = 20_000_000;
/// The same for a single key, once the whole history is known to be wrong.
pub const MAX_STEPS_KEY: u64 = 1_000_000;

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// An order exists.
    Linearizable,
    /// No order exists.
    Wrong(Box<SearchFailure>),
    /// The search exceeded its steps.
    Undecided(Box<SearchFailure>),
}

impl Verdict {
    /// Whether an order exists.
    pub fn is_right(&self) -> bool {
        *self == Verdict::Linearizable
    }
}

/// How far the best attempt came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchFailure {
    /// The last few placed operations, in their order.
    pub placed: Vec<Operation>,
    /// How many were placed.
    pub count: usize,
    /// The candidates for the next place, none of which is possible.
    pub next: Vec<Operation>,
    /// The state before them.
    pub state: String,
}

impl fmt::Display for SearchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "after {} operations, the last of which were", self.count)?;
        for op in &self.placed {
            writeln!(f, "    {op:?}")?;
        }
        writeln!(f, "in {}, none of these can come next:", self.state)?;
        let (answered, open): (Vec<_>, Vec<_>) =
            self.next.iter().partition(|op| op.reply.is_some());
        for op in answered {
            writeln!(f, "    {op:?}")?;
        }
        writeln!(f, "nor after one of {} that were not answered", open.len())
    }
}

/// Checks a history. If a single key is wrong already, shows the failure of that key.
pub fn check(history: &[Operation]) -> Verdict {
    let verdict = search(history, MAX_STEPS);
    if verdict.is_right() {
        return verdict;
    }
    let of_one = keys(history).into_iter().map(|key| search(&of_key(history, key), MAX_STEPS_KEY));
    of_one.into_iter().find(|one| matches!(one, Verdict::Wrong(_))).unwrap_or(verdict)
}

/// Searches for an order of all operations.
pub fn search(history: &[Operation], max_steps: u64) -> Verdict {
    Search::new(history).run(max_steps)
}

/// No operation.
const NONE: usize = usize::MAX;
/// Operations of an attempt that are shown.
const SHOWN: usize = 8;

/// One placed operation, and its alternatives.
struct Frame {
    placed: usize,
    /// The state before it.
    before: State,
    /// The operations that remain to be tried in its place.
    others: Vec<usize>,
}

struct Search<'a> {
    history: &'a [Operation],
    known: Inferred,
    /// Answered operations that are not placed yet, by the time of their call: a doubly linked list with
    /// its head at the end, so that removing and restoring cost the same however many are removed.
    after: Vec<usize>,
    before: Vec<usize>,
    /// Unanswered operations that matter, by the time of their call.
    open: Vec<usize>,
    /// For each operation, the first one with the same request.
    class: Vec<usize>,
    /// Answered writes with a known revision, by revision.
    by_revision: Vec<usize>,
    /// How many of them are placed.
    by_revision_placed: usize,
    is_placed: Vec<bool>,
    left: usize,
    /// Of the set of placed operations.
    hash: u128,
    been: HashSet<u128, BuildHasherDefault<FoldHasher>>,
    frames: Vec<Frame>,
    best: SearchFailure,
}

impl<'a> Search<'a> {
    fn new(history: &'a [Operation]) -> Search<'a> {
        let known = infer(history);
        let mut order: Vec<usize> = (0..history.len()).collect();
        order.sort_by_key(|at| history[*at].called_ns);
        let (answered, mut open): (Vec<usize>, Vec<usize>) =
            order.into_iter().partition(|at| history[*at].reply.is_some());
        open.retain(|at| known.relevance[*at] != Relevance::Never);
        let head = history.len();
        let (mut after, mut before) = (vec![NONE; head + 1], vec![NONE; head + 1]);
        let mut last = head;
        for at in &answered {
            (after[last], before[*at]) = (*at, last);
            last = *at;
        }
        (after[last], before[head]) = (head, last);
        let same = |at: &usize| open.iter().find(|o| history[**o].call == history[*at].call);
        let class = (0..head).map(|at| same(&at).copied().unwrap_or(at)).collect();
        let left = answered.len();
        let mut by_revision = answered;
        by_revision.retain(|at| known.revisions[*at].is_some());
        by_revision.sort_by_key(|at| known.revisions[*at]);
        Search {
            history,
            known,
            after,
            before,
            open,
            class,
            by_revision,
            by_revision_placed: 0,
            is_placed: vec![false; head],
            left,
            hash: 0,
            been: HashSet::default(),
            frames: Vec::new(),
            best: SearchFailure::default(),
        }
    }

    fn run(mut self, max_steps: u64) -> Verdict {
        let mut state = State::default();
        let mut tries = self.candidates(&state);
        for _ in 0..max_steps {
            if self.left == 0 {
                return Verdict::Linearizable;
            }
            match self.place(state, tries) {
                Ok(next) => {
                    tries = self.candidates(&next);
                    state = next;
                }
                Err(stuck_in) => {
                    self.note(&stuck_in);
                    let Some(frame) = self.frames.pop() else {
                        return Verdict::Wrong(Box::new(self.best));
                    };
                    self.take_back(frame.placed);
                    (state, tries) = (frame.before, frame.others);
                }
            }
        }
        Verdict::Undecided(Box::new(self.best))
    }

    /// Places the first of `tries` that leads to an unexplored state; returns the state after it, or the
    /// unchanged state if there is none.
    fn place(&mut self, state: State, mut tries: Vec<usize>) -> Result<State, State> {
        while let Some(at) = tries.pop() {
            let Some(next) = self.step(&state, at) else { continue };
            let hash = self.hash ^ name_of(at);
            if !self.been.insert(hash ^ hash_of(&next)) {
                continue;
            }
            self.put(at);
            let others = if next == state { Vec::new() } else { tries };
            self.frames.push(Frame { placed: at, before: state, others });
            return Ok(next);
        }
        Err(state)
    }

    fn step(&self, state: &State, at: usize) -> Option<State> {
        let next = state.step(&self.history[at], self.known.revisions[at])?;
        let Some(&first) = self.by_revision.get(self.by_revision_placed) else { return Some(next) };
        let room = self.known.revisions[first].is_none_or(|revision| next.high() < revision);
        (first == at || room).then_some(next)
    }

    fn is_next_told(&self, at: usize) -> bool {
        self.by_revision.get(self.by_revision_placed) == Some(&at)
    }

    /// The operations that no unplaced one precedes, the most promising last: those that change nothing,
    /// then writes by their revision, then unanswered ones.
    fn candidates(&self, state: &State) -> Vec<usize> {
        let mut found = Vec::new();
        let mut until = u64::MAX;
        let head = self.history.len();
        let mut at = self.after[head];
        while at != head && self.history[at].called_ns <= until {
            found.push(at);
            until = until.min(self.returned(at));
            at = self.after[at];
        }
        let mut classes: Vec<usize> = Vec::new();
        for &at in self.open.iter().take_while(|at| self.history[**at].called_ns <= until) {
            // Of several with the same request, the one that was called first is sufficient.
            if self.is_placed[at] || classes.contains(&self.class[at]) {
                continue;
            }
            classes.push(self.class[at]);
            let tried = match self.known.relevance[at] {
                Relevance::Never => false,
                Relevance::WhenAbsent => {
                    self.history[at].call.keys().iter().any(|key| !state.has(*key))
                }
                Relevance::Always => true,
            };
            if tried {
                found.push(at);
            }
        }
        found.sort_by_cached_key(|at| {
            let op = &self.history[*at];
            let pure = op.reply.is_some() && self.step(state, *at).is_some_and(|s| s == *state);
            let revision = self.known.revisions[*at].unwrap_or(u64::MAX);
            std::cmp::Reverse((!pure, revision, op.reply.is_none(), op.called_ns))
        });
        found
    }

    fn returned(&self, at: usize) -> u64 {
        self.history[at].reply.as_ref().map_or(u64::MAX, |(_, returned)| *returned)
    }

    fn put(&mut self, at: usize) {
        self.hash ^= name_of(at);
        self.is_placed[at] = true;
        self.by_revision_placed += usize::from(self.is_next_told(at));
        if self.history[at].reply.is_some() {
            self.left -= 1;
            let (before, after) = (self.before[at], self.after[at]);
            (self.after[before], self.before[after]) = (after, before);
        }
    }

    fn take_back(&mut self, at: usize) {
        self.hash ^= name_of(at);
        self.is_placed[at] = false;
        if self.by_revision_placed > 0 && self.by_revision[self.by_revision_placed - 1] == at {
            self.by_revision_placed -= 1;
        }
        if self.history[at].reply.is_some() {
            self.left += 1;
            let (before, after) = (self.before[at], self.after[at]);
            (self.after[before], self.before[after]) = (at, at);
        }
    }

    /// Keeps the attempt that came furthest.
    fn note(&mut self, state: &State) {
        let count = self.frames.len();
        if count < self.best.count || count == self.best.count && !self.best.next.is_empty() {
            return;
        }
        let placed = self.frames[count.saturating_sub(SHOWN)..].iter().map(|f| f.placed);
        self.best = SearchFailure {
            placed: placed.map(|at| self.history[at].clone()).collect(),
            count,
            next: self.candidates(state).iter().map(|at| self.history[*at].clone()).collect(),
            state: format!("{state:?}"),
        };
    }
}

/// A number for an operation such that the hash of a set is the exclusive or of its numbers (Zobrist
/// hashing).
fn name_of(at: usize) -> u128 {
    let word = |salt: u64| u128::from(mix_bits(mix_bits(at as u64 ^ salt)));
    word(0x5bd1_e995) << 64 | word(0xc2b2_ae3d)
}

fn hash_of(state: &State) -> u128 {
    let word = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, state).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    word(1) << 64 | word(2)
}

/// The input is a hash already and only has to be folded.
#[derive(Default)]
struct FoldHasher(u64);

impl Hasher for FoldHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
    fn write_u128(&mut self, word: u128) {
        self.0 = (word >> 64) as u64 ^ word as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn sets_of_operations_have_different_hashes() {
        let hashes: HashSet<u128> = (0..1000).map(name_of).collect();
        assert_eq!(hashes.len(), 1000);
        let build: BuildHasherDefault<FoldHasher> = BuildHasherDefault::default();
        assert_ne!(build.hash_one(1_u128), build.hash_one(2_u128));
    }
}
