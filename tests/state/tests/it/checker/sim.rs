//! A state of four keys and processes that use it, simulated step by step from a seed: right, or wrong in
//! one way. The checker has to find the wrong ones.

use std::collections::BTreeMap;

use rnet_state_tests::history::{Call, Guard, Key, Operation, Put, Reply, Seen};
use rnet_survival::rng::Rng;

/// How the simulated state is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is right.
    None,
    /// A read sometimes returns the state at the last operation of its process.
    StaleRead,
    /// A read returns a new value with the revision of the old one.
    MixedRead,
    /// An addition reads, and later writes.
    LostUpdate,
    /// A compare-and-set compares, and later writes.
    WeakCompare,
    /// The writes of a refused commit are visible for a while.
    DirtyRead,
    /// A snapshot reads one half of the keys, and later the other.
    SplitSnapshot,
    /// A transaction writes one key, and later the others.
    HalfTransaction,
    /// A transaction does not check keys that it only read.
    UnguardedTransaction,
    /// A write is answered first and done later.
    EarlyReply,
    /// A delete is undone if the previous one at this key was refused.
    Resurrected,
    /// The last write of a process disappears when it is killed.
    LostWithItsWriter,
    /// The work of a killed process is finished twice.
    FinishedTwice,
    /// Two writes of different keys may get one revision.
    SharedRevision,
}

/// All faults.
pub const FAULTS: [Fault; 13] = [
    Fault::StaleRead,
    Fault::MixedRead,
    Fault::LostUpdate,
    Fault::WeakCompare,
    Fault::DirtyRead,
    Fault::SplitSnapshot,
    Fault::HalfTransaction,
    Fault::UnguardedTransaction,
    Fault::EarlyReply,
    Fault::Resurrected,
    Fault::LostWithItsWriter,
    Fault::FinishedTwice,
    Fault::SharedRevision,
];

/// Keys of the simulation; the last one is a number for additions.
const KEYS: Key = 4;

type Store = BTreeMap<Key, (i64, u64)>;

struct Actor {
    id: u32,
    /// The call in progress: its index in the history, and its phase.
    at: Option<(usize, Phase)>,
    cache: Store,
}

#[derive(Clone, Debug)]
enum Phase {
    Called,
    /// Has done its first half.
    Half(Store),
    Ready(Reply),
}

/// The simulation.
pub struct Sim {
    fault: Fault,
    /// Steps between two kills, on average.
    lives: u64,
    rng: Rng,
    store: Store,
    revision: u64,
    history: Vec<Operation>,
    actors: Vec<Actor>,
    now: u64,
    next_value: i64,
    next_process: u32,
    /// Effects that come after their replies.
    late: Vec<Call>,
    /// The state of a key before the last refused commit that touched it.
    kept: BTreeMap<Key, (i64, u64)>,
}

impl Sim {
    /// Runs `calls` operations of `actors` processes; one is killed every `lives` steps on average.
    pub fn run(fault: Fault, seed: u64, actors: u32, calls: usize, lives: u64) -> Vec<Operation> {
        let new = |id| Actor { id, at: None, cache: Store::new() };
        let mut sim = Sim {
            fault,
            lives,
            rng: Rng::new(seed),
            store: Store::new(),
            revision: 0,
            history: Vec::new(),
            actors: (0..actors).map(new).collect(),
            now: 0,
            next_value: 1000,
            next_process: actors,
            late: Vec::new(),
            kept: BTreeMap::new(),
        };
        while sim.history.len() < calls {
            sim.tick();
        }
        for who in 0..sim.actors.len() {
            while sim.actors[who].at.is_some() {
                sim.advance(who);
            }
        }
        sim.history
    }

    fn tick(&mut self) {
        let who = self.rng.below(self.actors.len() as u64) as usize;
        if self.rng.below(self.lives) == 0 {
            self.kill(who);
        } else {
            self.advance(who);
        }
        if self.rng.below(4) == 0
            && let Some(call) = self.late.pop()
        {
            self.apply(&call);
        }
    }

    fn kill(&mut self, who: usize) {
        let id = self.actors[who].id;
        if let Some((at, phase)) = self.actors[who].at.take() {
            let call = self.history[at].call.clone();
            if let (Fault::FinishedTwice, Phase::Ready(_)) = (self.fault, &phase) {
                self.late.push(call);
            }
        }
        if self.fault == Fault::LostWithItsWriter {
            let last = self.history.iter().rev().find(|op| {
                op.process == id && matches!(op.reply, Some((Reply::Done { changed: true, .. }, _)))
            });
            let keys: Vec<Key> = last.iter().flat_map(|op| op.call.keys()).collect();
            self.store.retain(|key, _| !keys.contains(key));
        }
        self.actors[who] = Actor { id: self.next_process, at: None, cache: Store::new() };
        self.next_process += 1;
    }

    fn advance(&mut self, who: usize) {
        self.now += 1;
        let now = self.now;
        let Some((at, phase)) = self.actors[who].at.take() else {
            let call = self.some_call(who);
            let process = self.actors[who].id;
            let op = Operation { process, call, called_ns: now, reply: None, part: false };
            self.history.push(op);
            self.actors[who].at = Some((self.history.len() - 1, Phase::Called));
            return;
        };
        let phase = match phase {
            Phase::Ready(reply) => {
                self.history[at].reply = Some((reply, now));
                self.actors[who].cache = self.store.clone();
                return;
            }
            // Waits for a while.
            phase if self.rng.below(3) == 0 => phase,
            Phase::Called => self.begin(who, at),
            Phase::Half(before) => Phase::Ready(self.finish(at, &before)),
        };
        self.actors[who].at = Some((at, phase));
    }

    fn some_call(&mut self, who: usize) -> Call {
        let key = self.rng.below(u64::from(KEYS) - 1) as Key;
        let value = Some(self.next_value);
        self.next_value += 1;
        let cached = self.actors[who].cache.clone();
        let seen = |key: Key| cached.get(&key).map(|(v, r)| Seen { value: *v, revision: Some(*r) });
        let at = |key: Key| cached.get(&key).map_or(0, |(_, r)| *r);
        let one = |put: Put| Call::Commit { guards: Vec::new(), writes: vec![put] };
        match self.rng.below(10) {
            0..3 => Call::Get { key: self.rng.below(u64::from(KEYS)) as Key },
            3 => one(Put { key, value, expect: None }),
            4 => one(Put { key, value, expect: Some(at(key)) }),
            5 => one(Put { key, value: None, expect: None }),
            6 => Call::Add { key: KEYS - 1, delta: 1 + self.rng.below(1 << 40) as i64 },
            7 => Call::Snapshot { keys: (0..KEYS).collect() },
            _ => {
                let other = (key + 1) % (KEYS - 1);
                let guards = vec![Guard { key, seen: seen(key) }];
                let second = Put { key: (key + 2) % (KEYS - 1), value, expect: None };
                Call::Commit {
                    guards,
                    writes: vec![Put { key: other, value, expect: None }, second],
                }
            }
        }
    }

    /// The first half of an operation; all of it without a fault.
    fn begin(&mut self, who: usize, at: usize) -> Phase {
        let call = self.history[at].call.clone();
        let half = Phase::Half(self.store.clone());
        match (self.fault, &call) {
            (Fault::StaleRead, Call::Get { key }) if self.rng.below(4) == 0 => {
                Phase::Ready(Reply::Got(show(&self.actors[who].cache, *key)))
            }
            (Fault::LostUpdate, Call::Add { .. })
            | (Fault::MixedRead, Call::Get { .. })
            | (Fault::SplitSnapshot, Call::Snapshot { .. }) => half,
            (Fault::WeakCompare, Call::Commit { writes, .. }) if writes[0].expect.is_some() => half,
            (Fault::HalfTransaction, Call::Commit { guards, writes })
                if !guards.is_empty() && self.conflict(guards, writes).is_none() =>
            {
                self.revision += 1;
                self.write(&writes[..1]);
                half
            }
            (Fault::DirtyRead, Call::Commit { guards, writes })
                if self.conflict(guards, writes).is_some() =>
            {
                self.revision += 1;
                self.write(writes);
                half
            }
            (Fault::EarlyReply, Call::Commit { guards, writes })
                if guards.is_empty() && writes[0].expect.is_none() =>
            {
                let changed = writes[0].value.is_some() || self.store.contains_key(&writes[0].key);
                self.late.push(call);
                Phase::Ready(Reply::Done { revision: None, changed })
            }
            _ => Phase::Ready(self.apply(&call)),
        }
    }

    fn finish(&mut self, at: usize, before: &Store) -> Reply {
        match self.history[at].call.clone() {
            Call::Add { key, delta } => {
                let sum = before.get(&key).map_or(0, |(v, _)| *v) + delta;
                self.revision += 1;
                self.write(&[Put { key, value: Some(sum), expect: None }]);
                Reply::Sum(sum)
            }
            Call::Get { key } => {
                let old = before.get(&key).map(|(_, r)| *r);
                Reply::Got(
                    show(&self.store, key).map(|s| Seen { revision: old.or(s.revision), ..s }),
                )
            }
            Call::Snapshot { keys } => {
                let (first, second) = keys.split_at(keys.len() / 2);
                let old = first.iter().map(|key| show(before, *key));
                let entries = old.chain(second.iter().map(|key| show(&self.store, *key))).collect();
                Reply::Snapshot { revision: self.revision, entries }
            }
            Call::Commit { guards, writes } if self.fault == Fault::DirtyRead => {
                let conflict = self.conflict(&guards, &writes);
                for put in &writes {
                    let old = before.get(&put.key).map(|old| (put.key, *old));
                    self.store.remove(&put.key);
                    self.store.extend(old);
                }
                conflict.unwrap_or(Reply::Conflict { key: None, found: None })
            }
            Call::Commit { guards, writes } => {
                // As it was at the comparison.
                let now = std::mem::replace(&mut self.store, before.clone());
                let conflict = self.conflict(&guards, &writes);
                self.store = now;
                if let (Some(conflict), true) = (conflict, self.fault == Fault::WeakCompare) {
                    return conflict;
                }
                let rest =
                    if self.fault == Fault::HalfTransaction { &writes[1..] } else { &writes };
                self.revision += u64::from(self.fault == Fault::WeakCompare);
                self.write(rest);
                Reply::Done { revision: Some(self.revision), changed: true }
            }
            Call::Revision | Call::Will { .. } => Reply::Revision(self.revision),
        }
    }

    /// All of an operation at once.
    fn apply(&mut self, call: &Call) -> Reply {
        match call {
            Call::Get { key } => Reply::Got(show(&self.store, *key)),
            Call::Snapshot { keys } => Reply::Snapshot {
                revision: self.revision,
                entries: keys.iter().map(|key| show(&self.store, *key)).collect(),
            },
            Call::Add { key, delta } => {
                let sum = self.store.get(key).map_or(0, |(v, _)| *v) + delta;
                self.revision += 1;
                self.write(&[Put { key: *key, value: Some(sum), expect: None }]);
                Reply::Sum(sum)
            }
            Call::Commit { guards, writes } => {
                let blind = self.fault == Fault::UnguardedTransaction;
                let guards = if blind { &[] } else { guards.as_slice() };
                if let Some(conflict) = self.conflict(guards, writes) {
                    for put in writes {
                        if let Some(old) = self.store.get(&put.key) {
                            self.kept.insert(put.key, *old);
                        }
                    }
                    return conflict;
                }
                let changed =
                    writes.iter().any(|w| w.value.is_some() || self.store.contains_key(&w.key));
                if !changed {
                    return Reply::Done { revision: Some(0), changed };
                }
                let shares = self.fault == Fault::SharedRevision && self.rng.below(8) == 0;
                self.revision += u64::from(!shares);
                self.write(writes);
                Reply::Done { revision: Some(self.revision), changed }
            }
            Call::Revision | Call::Will { .. } => Reply::Revision(self.revision),
        }
    }

    fn conflict(&self, guards: &[Guard], writes: &[Put]) -> Option<Reply> {
        let at = |key: Key| self.store.get(&key).map_or(0, |(_, r)| *r);
        let guards = guards.iter().map(|g| (g.key, g.seen.and_then(|s| s.revision).unwrap_or(0)));
        let expects = writes.iter().filter_map(|w| Some((w.key, w.expect?)));
        let mut wrong = guards.chain(expects).filter(|(key, expect)| at(*key) != *expect);
        let (key, _) = wrong.next()?;
        Some(Reply::Conflict { key: Some(key), found: Some(at(key)) })
    }

    fn write(&mut self, writes: &[Put]) {
        for put in writes {
            match put.value {
                Some(value) => {
                    self.store.insert(put.key, (value, self.revision));
                }
                None => {
                    self.store.remove(&put.key);
                    if self.fault == Fault::Resurrected
                        && let Some(old) = self.kept.remove(&put.key)
                    {
                        self.store.insert(put.key, old);
                    }
                }
            }
        }
    }
}

fn show(store: &Store, key: Key) -> Option<Seen> {
    store.get(&key).map(|(value, r)| Seen { value: *value, revision: Some(*r) })
}
