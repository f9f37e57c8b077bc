//! The operations of a process: a mix of all features of the state, on few keys.

use rnet::Error;
use rnet::state::{State, Value};
use rnet_survival::rng::Rng;

use crate::history::{Call, Guard, Key, Put, Reply, Seen};
use crate::log::Log;
use crate::value;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;
/// The reply to a call; `None`: it was abandoned without effect.
type Answer<T> = Outcome<Option<(Reply, T)>>;

/// The keys: registers, numbers, and one that each process writes once, with a last will.
pub const KEYS: [&str; 7] =
    ["/t/r0", "/t/r1", "/t/r2", "/t/deep/er/r3", "/t/n0", "/t/n1", "/t/left"];
/// How many of them are registers.
pub const REGISTERS: Key = 4;
/// How many are numbers.
pub const NUMBERS: Key = 2;
/// The key that is written once, with a last will.
pub const WILL_KEY: Key = REGISTERS + NUMBERS;
/// A register that is never deleted, so that its versions count its writes.
pub const NEVER_DELETED: Key = 0;
/// Values of one process.
const VALUES_PER_PROCESS: i64 = 1 << 24;

/// The number of a key.
pub fn key_of(name: &str) -> Option<Key> {
    KEYS.iter().position(|key| *key == name).map(|at| at as Key)
}

/// The number that a value represents.
///
/// # Errors
/// What is wrong with it.
pub fn number_of(value: &Value) -> Result<i64, String> {
    match value {
        Value::Int(number) => Ok(*number),
        Value::Bytes(bytes) => value::number(bytes),
        other => Err(format!("a value that no process wrote: {other:?}")),
    }
}

/// Uses the state, and records the results.
pub struct Workload<'a> {
    state: &'a State,
    log: Log,
    rng: Rng,
    next: i64,
    /// The revisions of each key that this process knows.
    known: [Option<u64>; KEYS.len()],
}

impl<'a> Workload<'a> {
    /// The workload of process number `process` of its history; `seed` determines its operations.
    pub fn new(state: &'a State, log: Log, process: u32, seed: u64) -> Workload<'a> {
        let next = i64::from(process + 1) * VALUES_PER_PROCESS;
        Workload { state, log, rng: Rng::new(seed), next, known: [None; KEYS.len()] }
    }

    fn value(&mut self) -> i64 {
        self.next += 1;
        self.next
    }

    fn register(&mut self) -> Key {
        self.rng.below(REGISTERS.into()) as Key
    }

    fn deletable(&mut self) -> Key {
        NEVER_DELETED + 1 + self.rng.below(u64::from(REGISTERS) - 1) as Key
    }

    fn bytes(&mut self, number: i64) -> Vec<u8> {
        let len = match self.rng.below(40) {
            0 => 60_000 + self.rng.below(90_000),
            1..4 => 3_000 + self.rng.below(6_000),
            _ => 16 + self.rng.below(200),
        };
        value::bytes(number, len as usize)
    }

    /// Runs one operation.
    ///
    /// # Errors
    /// A reply that the state must not give.
    pub fn step(&mut self) -> Outcome {
        match self.rng.below(100) {
            0..25 => self.get(),
            25..38 => self.set(),
            38..53 => self.compare_and_set(),
            53..60 => self.delete(),
            60..64 => self.delete_if(),
            64..76 => self.add(),
            76..84 => self.snapshot(),
            84..97 => self.transaction(),
            _ => self.revision(),
        }
    }

    /// Reads everything once.
    ///
    /// # Errors
    /// A reply that the state must not give.
    pub fn look(&mut self) -> Outcome {
        for key in 0..KEYS.len() as Key {
            self.get_key(key, true)?;
        }
        self.snapshot()?;
        self.revision()
    }

    fn get(&mut self) -> Outcome {
        let key = self.rng.below(KEYS.len() as u64) as Key;
        let with_revision = self.rng.below(3) > 0;
        self.get_key(key, with_revision)
    }

    fn get_key(&mut self, key: Key, with_revision: bool) -> Outcome {
        let (state, name) = (self.state, KEYS[usize::from(key)]);
        let seen = self.log.record(Call::Get { key }, || {
            let seen = if with_revision {
                state.entry(name)?.map(|e| (e.value, Some(e.revision)))
            } else {
                state.get(name)?.map(|value| (value, None))
            };
            let seen = seen
                .map(|(value, revision)| number_of(&value).map(|value| Seen { value, revision }));
            let seen = seen.transpose()?;
            Ok(Some((Reply::Got(seen), seen)))
        })?;
        if with_revision {
            self.known[usize::from(key)] = seen.map(|s| s.map_or(0, |s| s.revision.unwrap_or(0)));
        }
        Ok(())
    }

    /// A commit of one key.
    fn commit_one(
        &mut self,
        put: Put,
        make: impl FnOnce(&State, &str) -> Result<Done, Error>,
    ) -> Outcome {
        let (state, key) = (self.state, put.key);
        let call = Call::Commit { guards: Vec::new(), writes: vec![put] };
        let name = KEYS[usize::from(key)];
        let revision = self.log.record(call, || answer(make(state, name)))?.flatten();
        self.known[usize::from(key)] = revision.or(self.known[usize::from(key)]);
        Ok(())
    }

    fn set(&mut self) -> Outcome {
        let key = self.register();
        let will = match self.rng.below(6) {
            0 => Some(Some(self.value())),
            1 if key != NEVER_DELETED => Some(None),
            _ => None,
        };
        self.set_with(key, will)
    }

    /// Writes the key with a last will.
    ///
    /// # Errors
    /// A reply that the state must not give.
    pub fn leave(&mut self) -> Outcome {
        let becomes = self.value();
        self.set_with(WILL_KEY, Some(Some(becomes)))
    }

    /// Sets a key, with `will` as its last will.
    fn set_with(&mut self, key: Key, will: Option<Option<i64>>) -> Outcome {
        let number = self.value();
        let bytes = self.bytes(number);
        if let Some(becomes) = will {
            self.log.will(key, number, becomes)?;
        }
        let will = will.map(|becomes| becomes.map(|number| self.bytes(number)));
        let put = Put { key, value: Some(number), expect: None };
        self.commit_one(put, |state, name| {
            let put = state.put(name);
            let put = match will {
                None => put,
                Some(None) => put.last_will_delete(),
                Some(Some(bytes)) => put.last_will(bytes),
            };
            put.set(bytes).map(Done::At)
        })
    }

    fn compare_and_set(&mut self) -> Outcome {
        let key = self.register();
        let Some(expect) = self.known[usize::from(key)] else { return self.get_key(key, true) };
        let number = self.value();
        let bytes = self.bytes(number);
        let put = Put { key, value: Some(number), expect: Some(expect) };
        self.commit_one(put, |state, name| state.compare_and_set(name, expect, bytes).map(Done::At))
    }

    fn delete(&mut self) -> Outcome {
        let put = Put { key: self.deletable(), value: None, expect: None };
        self.commit_one(put, |state, name| state.delete(name).map(Done::Changed))
    }

    fn delete_if(&mut self) -> Outcome {
        let key = self.deletable();
        let Some(expect) = self.known[usize::from(key)] else { return self.get_key(key, true) };
        let put = Put { key, value: None, expect: Some(expect) };
        self.commit_one(put, |state, name| {
            state.put(name).if_revision(expect).delete().map(Done::Changed)
        })
    }

    fn add(&mut self) -> Outcome {
        let key = REGISTERS + self.rng.below(NUMBERS.into()) as Key;
        // Chosen so that a sum identifies its summands.
        let delta = 1 + self.rng.below(1 << 40) as i64;
        let state = self.state;
        self.log.record(Call::Add { key, delta }, || {
            match state.add(KEYS[usize::from(key)], delta) {
                Ok(sum) => Ok(Some((Reply::Sum(sum), ()))),
                // Other processes were faster each time.
                Err(Error::LimitReached { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            }
        })?;
        Ok(())
    }

    fn snapshot(&mut self) -> Outcome {
        let (prefix, keys): (&str, Vec<Key>) = match self.rng.below(4) {
            0 => ("/t/deep", vec![3]),
            1 => ("", (0..KEYS.len() as Key).collect()),
            _ => ("/t", (0..KEYS.len() as Key).collect()),
        };
        let state = self.state;
        self.log.record(Call::Snapshot { keys: keys.clone() }, || {
            let snapshot = state.snapshot(prefix)?;
            let strange = snapshot.entries.keys().find(|k| !KEYS.contains(&k.as_str()));
            if let Some(key) = strange {
                return Err(format!("a key that no process wrote: {key}").into());
            }
            let seen = |key: &Key| match snapshot.entries.get(KEYS[usize::from(*key)]) {
                None => Ok(None),
                Some(entry) => number_of(&entry.value)
                    .map(|value| Some(Seen { value, revision: Some(entry.revision) })),
            };
            let entries = keys.iter().map(seen).collect::<Result<Vec<_>, String>>()?;
            Ok(Some((Reply::Snapshot { revision: snapshot.revision, entries }, ())))
        })?;
        Ok(())
    }

    fn revision(&mut self) -> Outcome {
        let state = self.state;
        self.log.record(Call::Revision, || Ok(Some((Reply::Revision(state.revision()), ()))))?;
        Ok(())
    }

    /// Reads one or two keys, and writes one to three: those that it has read, and others.
    fn transaction(&mut self) -> Outcome {
        let mut transaction = self.state.transaction();
        let mut seen: Vec<(Key, Option<Seen>)> = Vec::new();
        for _ in 0..=self.rng.below(2) {
            let key = self.register();
            if seen.iter().any(|(k, _)| *k == key) {
                continue;
            }
            let found = self.log.record(Call::Get { key }, || {
                let value = transaction.get(KEYS[usize::from(key)])?;
                let seen = value.map(|v| number_of(&v)).transpose()?;
                let seen = seen.map(|value| Seen { value, revision: None });
                Ok(Some((Reply::Got(seen), seen)))
            })?;
            seen.push((key, found.flatten()));
        }
        let mut writes: Vec<Put> = Vec::new();
        for _ in 0..=self.rng.below(3) {
            let key = self.register();
            if writes.iter().any(|put| put.key == key) {
                continue;
            }
            let value = (key == NEVER_DELETED || self.rng.below(5) > 0).then(|| self.value());
            let name = KEYS[usize::from(key)];
            match value {
                Some(number) => transaction.set(name, self.bytes(number))?,
                None => transaction.delete(name)?,
            }
            writes.push(Put { key, value, expect: None });
        }
        let guards = seen.into_iter().map(|(key, seen)| Guard { key, seen }).collect();
        let written: Vec<Key> = writes.iter().map(|put| put.key).collect();
        let call = Call::Commit { guards, writes };
        let revision =
            self.log.record(call, || answer(transaction.commit().map(Done::At)))?.flatten();
        for key in written.into_iter().filter(|_| revision.is_some()) {
            self.known[usize::from(key)] = revision;
        }
        Ok(())
    }
}

/// The result of a commit.
enum Done {
    /// A revision; 0 if there was nothing to change.
    At(u64),
    /// Whether there was anything to change.
    Changed(bool),
}

/// The reply to a commit, and the known revision of its key.
fn answer(done: Result<Done, Error>) -> Answer<Option<u64>> {
    let reply = match done {
        Ok(Done::At(revision)) => {
            (Reply::Done { revision: Some(revision), changed: revision != 0 }, Some(revision))
        }
        Ok(Done::Changed(changed)) => (Reply::Done { revision: None, changed }, None),
        Err(Error::Conflict { key, found, .. }) => {
            let key = key_of(&key).ok_or_else(|| format!("a conflict at {key}"))?;
            (Reply::Conflict { key: Some(key), found: Some(found) }, None)
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Some(reply))
}
